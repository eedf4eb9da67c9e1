// SPDX-License-Identifier: MIT
/* cuMemcpy and its kin: where the two ends lie, and what each call promises; the bytes are moved by copy.c. */
#include <string.h>
#include "rgpu_rpc.h"
#include "shim/copy.h"
#include "shim/ctx.h"
#include "shim/graph.h"
#include "shim/pinned.h"
#include "shim/session.h"
#include "shim/shared.h"

#define LEGACY	   ((CUstream)0)
#define PER_THREAD CU_STREAM_PER_THREAD

static int enter(struct rgpu_call *c, CUstream hStream, uint64_t *wire)
{
	struct rgpu_obj *obj;
	int r = rgpu_enter(c, RGPU_NO_OP);

	if (!r)
		r = rgpu_use(c, KIND_stream, hStream, true, wire, &obj);
	return r ? r : rgpu_capture(c, *wire);
}

/* The end of copies that kernels reach, too, is memory that the program looks at: it waits where the call promises that. */
static int between(struct rgpu_call *c, uint64_t dst, uint64_t src, size_t bytes, uint64_t stream, bool sync)
{
	int r = rgpu_check_range(c, dst, bytes);

	if (!r)
		r = rgpu_check_range(c, src, bytes);
	if (r || !bytes)
		return r;
	if (c->capturing)
		return sync && (shared_has(dst) || shared_has(src)) ? rgpu_capture_refuse(c)
								    : capture_copy(c, dst, true, src, true, bytes);
	c->op = OP_D2D;
	r = rpc_D2D(c, dst, src, bytes, stream);
	return !r && sync && (copies_end(dst) || copies_end(src)) ? stream_sync(c, stream) : r;
}

static int to_device(CUdeviceptr dst, const void *src, size_t bytes, CUstream hStream, bool sync)
{
	struct rgpu_call c;
	uint64_t stream, twin;
	int r = enter(&c, hStream, &stream);

	if (!r && !src && bytes)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r && pinned_twin(src, bytes, &twin))
		return between(&c, dst, twin, bytes, stream, sync);
	if (!r)
		r = rgpu_check_range(&c, dst, bytes);
	if (!r && c.capturing)
		return sync ? rgpu_capture_refuse(&c) : capture_copy(&c, dst, true, (uint64_t)src, false, bytes);
	if (!r)
		r = copy_to_device(&c, dst, src, bytes, stream, sync);
	return !r && sync && allocs_synced(dst) ? stream_sync(&c, stream) : r;
}

static int to_host(void *dst, CUdeviceptr src, size_t bytes, CUstream hStream, bool sync)
{
	struct rgpu_call c;
	uint64_t stream, twin;
	int r = enter(&c, hStream, &stream);

	if (!r && !dst && bytes)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r && pinned_twin(dst, bytes, &twin))
		return between(&c, twin, src, bytes, stream, sync);
	if (!r)
		r = rgpu_check_range(&c, src, bytes);
	if (!r && c.capturing)
		return sync ? rgpu_capture_refuse(&c) : capture_copy(&c, (uint64_t)dst, false, src, true, bytes);
	return r ? r : copy_to_host(&c, dst, src, bytes, stream, sync);
}

/* Between two places of device memory nobody waits, with and without Async in the name, as documented. */
static int on_device(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream hStream, bool sync)
{
	struct rgpu_call c;
	uint64_t stream;
	int r = enter(&c, hStream, &stream);

	return r ? r : between(&c, dst, src, bytes, stream, sync);
}

static int settle_between(int r, CUdeviceptr dst, CUdeviceptr src, CUstream stream)
{
	bool mine = allocs_synced(dst);

	return r || (!mine && !allocs_synced(src)) ? r : rgpu_settle(r, mine ? dst : src, (uint64_t)stream);
}

static int peer(CUdeviceptr dst, CUcontext dctx, CUdeviceptr src, CUcontext sctx, size_t bytes, CUstream hStream)
{
	struct rgpu_obj *dobj, *sobj;
	uint64_t stream, wd, ws;
	struct rgpu_call c;
	int r = enter(&c, hStream, &stream);

	if (!r)
		r = rgpu_use(&c, KIND_context, dctx, false, &wd, &dobj);
	if (!r)
		r = rgpu_use(&c, KIND_context, sctx, false, &ws, &sobj);
	if (!r)
		r = rgpu_check_range(&c, dst, bytes);
	if (!r)
		r = rgpu_check_range(&c, src, bytes);
	if (r || !bytes)
		return r;
	if (c.capturing)
		return capture_copy(&c, dst, true, src, true, bytes);
	c.op = OP_D2D_PEER;
	r = rpc_D2D_PEER(&c, dst, wd, src, ws, bytes, stream);
	/* Both devices are at work now. */
	heap_busy(ctx_of(dobj)->device, c.lane, atomic_load(&c.session->counter));
	heap_busy(ctx_of(sobj)->device, c.lane, atomic_load(&c.session->counter));
	return r;
}

static int settle(CUcontext ctx)
{
	struct rgpu_call c;
	int r = rgpu_enter(&c, OP_CTX_WAIT);

	if (!r)
		r = ctx_use(&c, ctx);
	return r ? r : ctx_sync(&c);
}

/* Without a stream it is in order with all work of both contexts, before and after: three waits, for a call that is rare. */
static int peer_in_order(CUdeviceptr dst, CUcontext dctx, CUdeviceptr src, CUcontext sctx, size_t bytes, CUstream hStream)
{
	int r = settle(dctx);

	if (!r)
		r = settle(sctx);
	if (!r)
		r = peer(dst, dctx, src, sctx, bytes, hStream);
	return r ? r : settle(NULL);
}

/* Page-locked memory lies there, too. */
static bool in_window(struct rgpu_call *c, uint64_t addr)
{
	return addr - c->session->window.base < c->session->window.size && !pinned_find((void *)addr, &(struct pinned){0});
}

/* Unified addressing: the pointers say what they are. */
static int any(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream hStream, bool sync)
{
	struct block b;
	bool d = heap_find(dst, &b), s = heap_find(src, &b);
	struct rgpu_call c;
	uint64_t stream;
	int r;

	if (d && s)
		return on_device(dst, src, bytes, hStream, sync);
	if (d)
		return to_device(dst, (const void *)src, bytes, hStream, sync);
	if (s)
		return to_host((void *)dst, src, bytes, hStream, sync);
	r = enter(&c, hStream, &stream);
	if (r || !bytes)
		return r;
	/* An address of the window that is no allocation; else two pointers of the host, copied when the stream's work is done.
	 */
	if (!dst || !src || in_window(&c, dst) || in_window(&c, src))
		return CUDA_ERROR_INVALID_VALUE;
	if (c.capturing)
		return sync ? rgpu_capture_refuse(&c) : capture_copy(&c, dst, false, src, false, bytes);
	r = stream_sync(&c, stream);
	if (r)
		return r;
	memmove((void *)dst, (const void *)src, bytes);
	return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t n)
{
	return to_device(dst, src, n, LEGACY, true);
}

CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr dst, const void *src, size_t n)
{
	return to_device(dst, src, n, PER_THREAD, true);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t n, CUstream hStream)
{
	return to_device(dst, src, n, hStream, false);
}

CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr dst, const void *src, size_t n, CUstream hStream)
{
	return to_device(dst, src, n, hStream ? hStream : PER_THREAD, false);
}

CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t n)
{
	return to_host(dst, src, n, LEGACY, true);
}

CUresult cuMemcpyDtoH_v2_ptds(void *dst, CUdeviceptr src, size_t n)
{
	return to_host(dst, src, n, PER_THREAD, true);
}

CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t n, CUstream hStream)
{
	return to_host(dst, src, n, hStream, false);
}

CUresult cuMemcpyDtoHAsync_v2_ptsz(void *dst, CUdeviceptr src, size_t n, CUstream hStream)
{
	return to_host(dst, src, n, hStream ? hStream : PER_THREAD, false);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t n)
{
	return settle_between(on_device(dst, src, n, LEGACY, false), dst, src, LEGACY);
}

CUresult cuMemcpyDtoD_v2_ptds(CUdeviceptr dst, CUdeviceptr src, size_t n)
{
	return settle_between(on_device(dst, src, n, PER_THREAD, false), dst, src, PER_THREAD);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream hStream)
{
	return on_device(dst, src, n, hStream, false);
}

CUresult cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream hStream)
{
	return on_device(dst, src, n, hStream ? hStream : PER_THREAD, false);
}

CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext dctx, CUdeviceptr src, CUcontext sctx, size_t n)
{
	return peer_in_order(dst, dctx, src, sctx, n, LEGACY);
}

CUresult cuMemcpyPeer_ptds(CUdeviceptr dst, CUcontext dctx, CUdeviceptr src, CUcontext sctx, size_t n)
{
	return peer_in_order(dst, dctx, src, sctx, n, PER_THREAD);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dctx, CUdeviceptr src, CUcontext sctx, size_t n, CUstream hStream)
{
	return peer(dst, dctx, src, sctx, n, hStream);
}

CUresult cuMemcpyPeerAsync_ptsz(CUdeviceptr dst, CUcontext dctx, CUdeviceptr src, CUcontext sctx, size_t n, CUstream hStream)
{
	return peer(dst, dctx, src, sctx, n, hStream ? hStream : PER_THREAD);
}

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t n)
{
	return any(dst, src, n, LEGACY, true);
}

CUresult cuMemcpy_ptds(CUdeviceptr dst, CUdeviceptr src, size_t n)
{
	return any(dst, src, n, PER_THREAD, true);
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream hStream)
{
	return any(dst, src, n, hStream, false);
}

CUresult cuMemcpyAsync_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream hStream)
{
	return any(dst, src, n, hStream ? hStream : PER_THREAD, false);
}
