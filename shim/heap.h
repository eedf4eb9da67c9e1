/* SPDX-License-Identifier: MIT */
/* Device addresses named by the client: the window that both sides reserve, leases of memory in it, and the allocator on top. */
#ifndef RGPU_SHIM_HEAP_H
#define RGPU_SHIM_HEAP_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include "shim/ranges.h"
#include "shim/tally.h"

struct device;
struct rgpu_session;
struct rgpu_obj;

/* Addresses [base, base + size): PROT_NONE here, reserved at the server. */
struct window {
	pthread_mutex_t lock; /* space */
	uint64_t base, size;
	struct space *space; /* addresses that no lease covers */
};

int window_open(struct rgpu_session *s); /* a CUresult */
/* Addresses for @bytes, in whole granules of the device; 0: there are none. */
uint64_t window_take(struct device *d, uint64_t bytes);
void window_give(struct device *d, uint64_t addr, uint64_t bytes);

#define HEAP_ALIGN 512u
#define HEAP_BINS  64
#define HEAP_SMALL (1u << 20)

enum block_kind {
	BLOCK_HEAP,    /* a piece of a segment, in use or free */
	BLOCK_GLOBAL,  /* a module's variable */
	BLOCK_VMM,     /* physical memory that the program mapped itself */
	BLOCK_MANAGED, /* shared.h */
	BLOCK_IPC,     /* another process's: ipc.h */
	BLOCK_MAPPED,  /* page-locked host memory that kernels reach: shared.h */
};

struct block {
	struct range range; /* first. In the process's allocations while in use */
	enum block_kind kind;
	struct device *device;
	struct rgpu_obj *context;   /* that allocated it */
	struct segment *segment;    /* of the heap */
	struct block *left, *right; /* neighbours in the segment */
	struct block *next, **at;   /* in a bin, or in the parked list */
	uint64_t asked;		    /* bytes that the program asked for: range.bytes is rounded up */
	uint64_t stamp;		    /* parked: the session's counter when it was freed */
	uint64_t id;		    /* CU_POINTER_ATTRIBUTE_BUFFER_ID */
	uint64_t pool;		    /* the pool's handle; 0: none */
	bool free;
	bool sync_memops; /* CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: allocs.c */
	bool closed;	  /* mapped, and no device was given access */
};

/*
 * Per device. Blocks up to HEAP_SMALL come from shared segments, larger ones have a lease of their own.
 *
 * A freed block may still be used by a kernel that runs. CUDA's cuMemFree waits for that; here the block is parked until a
 * wait that began after it was freed has seen the device idle, so that free costs no round trip and blocks nobody.
 */
struct heap {
	pthread_mutex_t lock;
	struct block *bins[HEAP_BINS];
	struct block *parked, **parked_end;
	uint64_t parked_bytes;
	struct segment *cached;		     /* whole leases of large blocks that nobody uses */
	uint64_t cached_bytes, leased, used; /* used: what the program holds, and what is parked */
	struct tally busy;		     /* the counter when the device was last given work; 0: none since it was seen idle */
};

void heap_init(struct heap *h);
/* 0 and *addr, a CUresult otherwise: OUT_OF_MEMORY is the server's answer, given at the call. */
int heap_alloc(struct device *d, struct rgpu_obj *context, uint64_t bytes, uint64_t *addr);
int heap_free(uint64_t addr); /* INVALID_VALUE: @addr is no allocation's beginning */
/* The same in stream order, see ordered.h: allocated again at once by whoever comes later in the stream that freed. */
int heap_alloc_ordered(struct device *d, struct rgpu_obj *context, uint64_t stream, uint64_t pool, uint64_t bytes,
		       uint64_t *addr);
int heap_free_ordered(uint64_t addr, struct rgpu_obj *context, uint64_t stream);
/* For ordered.c: a block that is in no allocation goes back, at once or when a wait has seen the device idle. */
void heap_release(struct block *b);
void heap_park(struct block *b, uint64_t stamp);
unsigned heap_bin(uint64_t bytes);
void heap_trim(struct device *d);     /* what is leased and whole is given back to the server */
int heap_make_room(struct device *d); /* the same, of all that was freed: waits for work that may use it. A CUresult */
/* A wait that began when the session's counter was @stamp found all of the device's work done. */
void heap_idle(struct device *d, uint64_t stamp);
/* The device was given work, by the thread with that lane (tally.h), when the session's counter was @counter. */
#define heap_busy(d, lane, counter) tally_raise(&(d)->heap.busy, lane, counter)
void heap_drop_context(struct rgpu_obj *context); /* frees what it allocated */
uint64_t heap_unused(struct device *d);		  /* bytes leased that nobody uses */

/* allocs.c: all device memory that the program can name, by address. */

void allocs_enter(struct block *b); /* gives it an id */
/* Whether a synchronous operation on it is to wait although it need not; false: @addr is in no allocation, or it is not so. */
bool allocs_synced(uint64_t addr);
bool allocs_set_synced(uint64_t addr, bool on); /* false: it is in none */
/* Takes the block of that kind that begins at @addr. NULL: there is none. */
struct block *allocs_leave(uint64_t addr, enum block_kind kind);
/* The allocation that contains @addr, copied; false: none. */
bool heap_find(uint64_t addr, struct block *out);
/* The same itself: of a kind that nobody but the caller takes out. */
struct block *allocs_at(uint64_t addr, enum block_kind kind);
bool allocs_touch(uint64_t addr, uint64_t bytes); /* something is there already */
/* [addr, addr + len) lies in allocations that a device reaches, which is one unless the program mapped several side by side. */
bool allocs_cover(uint64_t addr, unsigned __int128 len);
/* The first block of that kind and context from @from on, copied; false: none. */
bool allocs_next(uint64_t from, enum block_kind kind, struct rgpu_obj *context, struct block *out);
/* Memory that came with a module: known by its address, never freed by itself. 0 or OUT_OF_MEMORY. */
int heap_add_global(struct device *d, struct rgpu_obj *context, uint64_t addr, uint64_t bytes);
void heap_drop_global(uint64_t addr);

/* vmm.c: the program's own reservation that contains @addr. */
bool vmm_reserved(uint64_t addr, uint64_t *start, uint64_t *bytes);
/* What the memory that is mapped at @addr may be exported as; 0: nothing. */
unsigned vmm_handle_types(uint64_t addr);

#endif
