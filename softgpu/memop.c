// SPDX-License-Identifier: MIT
/* Stream memory operations: a stream waits for a value in memory, or writes one. */
#include "softgpu/graph.h"

#include <stdlib.h>
#include <string.h>

struct mem_op {
	struct op op;
	uint64_t addr, value;
	unsigned int bytes; /* 4 or 8 */
	unsigned int flags;
};

static bool still_there(const struct mem_op *m)
{
	return softgpu_reaches(m->addr, m->bytes);
}

static bool holds(struct op *op)
{
	struct mem_op *m = container_of(op, struct mem_op, op);
	uint64_t v, want = m->value;
	bool wide = m->bytes == 8;

	if (!still_there(m))
		return true; /* for run to complain */
	v = wide ? __atomic_load_n((uint64_t *)(uintptr_t)m->addr, __ATOMIC_ACQUIRE)
		 : __atomic_load_n((uint32_t *)(uintptr_t)m->addr, __ATOMIC_ACQUIRE);
	switch (m->flags & 3) {
	case CU_STREAM_WAIT_VALUE_EQ:
		return v == want;
	case CU_STREAM_WAIT_VALUE_AND:
		return v & want;
	case CU_STREAM_WAIT_VALUE_NOR:
		return (~(v | want)) & (wide ? UINT64_MAX : UINT32_MAX);
	default: /* a cyclic comparison */
		return wide ? (int64_t)(v - want) >= 0 : (int32_t)(uint32_t)(v - want) >= 0;
	}
}

static CUresult wait_run(struct op *op, struct stream *s)
{
	(void)s;
	return still_there(container_of(op, struct mem_op, op)) ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS;
}

static CUresult write_run(struct op *op, struct stream *s)
{
	struct mem_op *m = container_of(op, struct mem_op, op);

	(void)s;
	if (!still_there(m))
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	if (m->bytes == 8)
		__atomic_store_n((uint64_t *)(uintptr_t)m->addr, m->value, __ATOMIC_RELEASE);
	else
		__atomic_store_n((uint32_t *)(uintptr_t)m->addr, (uint32_t)m->value, __ATOMIC_RELEASE);
	return CUDA_SUCCESS;
}

static CUresult check(CUdeviceptr addr, unsigned int bytes, bool wait, unsigned int flags)
{
	unsigned int known = wait ? 3u | CU_STREAM_WAIT_VALUE_FLUSH : CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER;

	if (flags & ~known || addr % bytes)
		return CUDA_ERROR_INVALID_VALUE;
	return mem_check(addr, bytes);
}

static CUresult make(CUdeviceptr addr, uint64_t value, unsigned int bytes, bool wait, unsigned int flags, struct op **op)
{
	struct mem_op *m;

	if (wait && !sched_can_poll())
		return CUDA_ERROR_OPERATING_SYSTEM;
	m = op_new(sizeof(*m), wait ? wait_run : write_run, op_free);
	if (!m)
		return CUDA_ERROR_OUT_OF_MEMORY;
	m->addr = addr;
	m->value = value;
	m->bytes = bytes;
	m->flags = flags;
	m->op.quick = true;
	if (wait)
		m->op.ready = holds;
	*op = &m->op;
	return CUDA_SUCCESS;
}

static CUresult submit(struct stream *s, CUdeviceptr addr, uint64_t value, unsigned int bytes, bool wait, unsigned int flags)
{
	struct op *op;

	TRY(make(addr, value, bytes, wait, flags, &op));
	return stream_submit(s, op, NULL);
}

static CUresult capture(struct stream *s, const CUstreamBatchMemOpParams *list, unsigned int count)
{
	struct gparams p = {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, .memop = {.count = count}};
	struct gstream gs = graph_stream(s);

	p.memop.ctx = gs.ctx;
	p.memop.paramArray = malloc(count * sizeof(*list));
	if (!p.memop.paramArray)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(p.memop.paramArray, list, count * sizeof(*list));
	return graph_capture(&gs, &p);
}

static CUresult one(CUstream stream, CUdeviceptr addr, uint64_t value, unsigned int bytes, bool wait, unsigned int flags)
{
	AUTO_PUT struct stream *s = NULL;
	CUstreamBatchMemOpParams op = {0};
	bool capturing;

	TRY(stream_resolve(stream, &s));
	TRY(check(addr, bytes, wait, flags));
	TRY(stream_capturing(s, &capturing));
	if (capturing) {
		op.operation = wait	    ? bytes == 8 ? CU_STREAM_MEM_OP_WAIT_VALUE_64 : CU_STREAM_MEM_OP_WAIT_VALUE_32
			       : bytes == 8 ? CU_STREAM_MEM_OP_WRITE_VALUE_64
					    : CU_STREAM_MEM_OP_WRITE_VALUE_32;
		/* Both halves of the union lie alike. */
		op.waitValue.address = addr;
		op.waitValue.value64 = value;
		op.waitValue.flags = flags;
		return capture(s, &op, 1);
	}
	return submit(s, addr, value, bytes, wait, flags);
}

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	return one(stream, addr, value, 4, true, flags);
}

CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	return one(stream, addr, value, 8, true, flags);
}

CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	return one(stream, addr, value, 4, false, flags);
}

CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	return one(stream, addr, value, 8, false, flags);
}

static bool split(const CUstreamBatchMemOpParams *p, CUdeviceptr *addr, uint64_t *value, unsigned int *bytes, bool *wait,
		  unsigned int *flags)
{
	*bytes = p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 || p->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64 ? 8 : 4;
	switch (p->operation) {
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
		*wait = true;
		*addr = p->waitValue.address;
		*value = *bytes == 8 ? p->waitValue.value64 : p->waitValue.value;
		*flags = p->waitValue.flags;
		return true;
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		*wait = false;
		*addr = p->writeValue.address;
		*value = *bytes == 8 ? p->writeValue.value64 : p->writeValue.value;
		*flags = p->writeValue.flags;
		return true;
	default:
		return false;
	}
}

CUresult memop_check(const CUstreamBatchMemOpParams *p)
{
	unsigned int bytes, flags;
	CUdeviceptr addr;
	uint64_t value;
	bool wait;

	/* Order within a stream and coherence with the host need nothing here. */
	if (p->operation == CU_STREAM_MEM_OP_BARRIER || p->operation == CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES)
		return CUDA_SUCCESS;
	if (!split(p, &addr, &value, &bytes, &wait, &flags))
		return CUDA_ERROR_INVALID_VALUE;
	return check(addr, bytes, wait, flags);
}

CUresult memop_op_of(const CUstreamBatchMemOpParams *p, struct op **op)
{
	unsigned int bytes, flags;
	CUdeviceptr addr;
	uint64_t value;
	bool wait;

	*op = NULL;
	return split(p, &addr, &value, &bytes, &wait, &flags) ? make(addr, value, bytes, wait, flags, op) : CUDA_SUCCESS;
}

/* All are checked before the first is queued, so that a bad one leaves nothing behind. */
CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *params, unsigned int flags)
{
	AUTO_PUT struct stream *s = NULL;
	unsigned int bytes, opflags;
	CUdeviceptr addr;
	uint64_t value;
	bool wait, capturing;

	TRY(stream_resolve(stream, &s));
	if (flags || !params || !count || count > 256)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < count; i++)
		TRY(memop_check(&params[i]));
	TRY(stream_capturing(s, &capturing));
	if (capturing)
		return capture(s, params, count);
	for (unsigned int i = 0; i < count; i++)
		if (split(&params[i], &addr, &value, &bytes, &wait, &opflags))
			TRY(submit(s, addr, value, bytes, wait, opflags));
	return CUDA_SUCCESS;
}

/* The first edition's names: the same work, once the attribute said that it is there. */
CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	return cuStreamWaitValue32_v2(stream, addr, value, flags);
}

CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	return cuStreamWaitValue64_v2(stream, addr, value, flags);
}

CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	return cuStreamWriteValue32_v2(stream, addr, value, flags);
}

CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	return cuStreamWriteValue64_v2(stream, addr, value, flags);
}

CUresult cuStreamBatchMemOp(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *params, unsigned int flags)
{
	return cuStreamBatchMemOp_v2(stream, count, params, flags);
}
