/* SPDX-License-Identifier: MIT */
/* What a graph's node is to do, as it crosses the wire behind a GRAPH_NODE record. Append-only. */
#ifndef RGPU_API_GRAPH_WIRE_H
#define RGPU_API_GRAPH_WIRE_H

#include <stdint.h>

/* Kinds are the driver's CUgraphNodeType, and: work that the server captured, named by its graph; bytes that the client is asked
 * for. */
#define RGPU_NODE_FRAGMENT 100u
#define RGPU_NODE_PULL	   101u

/* CU_GRAPH_NODE_TYPE_KERNEL: then nattrs × CUlaunchAttribute, then the parameters as the kernel's table says. */
struct rgpu_wire_kernel {
	uint64_t module;
	uint32_t index, nattrs, param_bytes, shared;
	uint32_t grid[3], block[3];
};

enum rgpu_wire_place {
	RGPU_PLACE_DEVICE, /* at is an address */
	RGPU_PLACE_HOST,   /* … an offset in the graph's host memory: RGPU_HOST_AT */
	RGPU_PLACE_ARRAY,  /* … an array's handle */
};

struct rgpu_wire_end {
	uint64_t at, pitch, height; /* height: rows in a slice */
	uint64_t x, y, z;	    /* of arrays */
	uint32_t place, reserved;
};

/* CU_GRAPH_NODE_TYPE_MEMCPY */
struct rgpu_wire_copy {
	struct rgpu_wire_end dst, src;
	uint64_t width, height, depth;
};

/* CU_GRAPH_NODE_TYPE_MEMSET */
struct rgpu_wire_fill {
	uint64_t dst, pitch, width, height;
	uint32_t value, bytes;
};

/* CU_GRAPH_NODE_TYPE_HOST, RGPU_NODE_PULL: the client's name of the function; where in host memory its bytes go. */
struct rgpu_wire_host {
	uint64_t id, at, bytes;
};

/* CU_GRAPH_NODE_TYPE_CONDITIONAL. The bodies of all such nodes of a graph are numbered from 1, in the order in which those were
 * sent. */
struct rgpu_wire_cond {
	uint64_t handle;
	uint32_t type, size;
};

/* GRAPH_NODE's changes: whether it does, and for a new node the body that it is in (0: the graph itself). */
#define RGPU_NODE_CHANGES 1u
#define RGPU_NODE_IN(c)	  ((c) >> 8)
#define RGPU_NODE_BODY(n) ((n) << 8)

/* CU_GRAPH_NODE_TYPE_WAIT_EVENT, CU_GRAPH_NODE_TYPE_EVENT_RECORD, RGPU_NODE_FRAGMENT: a handle. BATCH_MEM_OP:
 * CUstreamBatchMemOpParams. */

/* A graph has one piece of host memory from the beginning; an executable graph may get more. */
#define RGPU_HOST_AT(piece, off) ((uint64_t)(piece) << 48 | (off))
#define RGPU_HOST_PIECE(at)	 ((unsigned)((at) >> 48))
#define RGPU_HOST_OFF(at)	 ((at)&0xffffffffffffull)
#define RGPU_HOST_PIECES	 64u
#define RGPU_HOST_MAX		 (1ull << 40)

/* GRAPH_LAUNCH: ranges of host memory, first those that are filled before, then those that come down after. */
struct rgpu_wire_range {
	uint64_t at, bytes;
};

#endif
