/* SPDX-License-Identifier: MIT */
/* Where softgpu's streams meet lib/graph: work that is captured instead of queued, and a node's work as operations. */
#ifndef SOFTGPU_GRAPH_H
#define SOFTGPU_GRAPH_H

#include "lib/graph/graph.h"
#include "softgpu/softgpu.h"

/* What @s is to the capture model. */
struct gstream graph_stream(const struct stream *s);
/* Before work is given to @s: whether it is to be captured. */
CUresult stream_capturing(const struct stream *s, bool *capturing);
/* For calls that cannot be captured. */
CUresult stream_not_capturing(const struct stream *s);

/* The operations that do a node's work, not submitted yet. Parameters were checked when the node was made. */
CUresult launch_op_of(const struct gkernel *k, struct ctx *c, struct op **op);
CUresult launch_check(const struct gkernel *k);
CUresult copy_op_of(const CUDA_MEMCPY3D *p, struct op **op);
CUresult copy_check(const CUDA_MEMCPY3D *p);
CUresult fill_op_of(const CUDA_MEMSET_NODE_PARAMS_v2 *p, struct op **op);
CUresult fill_check(const CUDA_MEMSET_NODE_PARAMS_v2 *p);
CUresult memop_op_of(const CUstreamBatchMemOpParams *p, struct op **op); /* *op is NULL where there is nothing to do */
CUresult memop_check(const CUstreamBatchMemOpParams *p);
CUresult host_op_of(CUhostFn fn, void *data, struct op **op);
CUresult guest_op_of(struct gguest *g, struct op **op);

/* A node's work on events, when a launch has come to it. */
bool event_recorded(CUevent e, CUresult *r);
/* Makes @op, which @on is given next, wait for the event. */
CUresult event_depend(struct op *op, struct stream *on, CUevent e);

/* The value that a conditional node looks at. */
struct gcond_value {
	CUgraphConditionalHandle handle;
	atomic_uint value;
	unsigned int initial;
	bool assign; /* initial again at each launch */
};
struct gcond_value *cond_find(CUgraphConditionalHandle h);
void cond_set(uint64_t h, uint32_t value); /* a kernel's wish; of a condition that is gone it is nothing */

#endif
