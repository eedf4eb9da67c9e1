// SPDX-License-Identifier: MIT
/* Copies: bytes of the record into the device, and the device's bytes into the reply; all in stream order, none waited for here.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "lib/clock.h"
#include "lib/half.h"
#include "server/call_wait.h"

#define STAY_NS 200000000ll

/*
 * What comes after a synchronous copy finds its bytes, also in streams that are in no order with this one: the lane stays until
 * the copy has run. The client says so only when nothing is before it, so that is soon. Should another thread have put something
 * there at the same time that waits for somebody, the lane must not be what that waits for.
 */
static void stay(struct srv_call *c)
{
	struct timespec nap = {.tv_nsec = 20000};
	int64_t end = rgpu_now_ns() + STAY_NS;
	int32_t status;

	for (unsigned i = 0; c->ready; i++) {
		status = c->ready(c);
		if (status != SRV_PENDING) {
			c->ready = NULL;
			c->status = status;
		} else if (rgpu_now_ns() > end) {
			return;
		} else if (i < 64) {
			sched_yield();
		} else {
			nanosleep(&nap, NULL);
		}
	}
}

/* Where the device's side is: an address, or the bytes of a box in an array from @at on. */
struct remote {
	uint64_t at;
	CUarray array; /* NULL: an address */
	uint64_t x, y, z, width, height, depth;
};

/* Extents that no array has would overflow what is computed from them. */
#define EXTENT_MAX (1ull << 32)

static bool box_ok(struct srv_call *c, const struct remote *r, uint64_t bytes)
{
	unsigned __int128 all = (unsigned __int128)r->width * r->height;
	bool ok = r->width && r->height && r->depth && r->width < EXTENT_MAX && r->height < EXTENT_MAX && r->depth < EXTENT_MAX &&
		  r->x < EXTENT_MAX && r->y < EXTENT_MAX && r->z < EXTENT_MAX && all < (1ull << 48);

	if (ok)
		all *= r->depth;
	if (ok && r->at <= all && bytes <= all - r->at)
		return true;
	srv_fail(c, CUDA_ERROR_INVALID_VALUE);
	return false;
}

/*
 * Between host memory and the device's side, either way: the bytes of a box are parts of rows, whole rows, and whole slices,
 * a copy each.
 */
static CUresult move(const struct remote *r, void *host, uint64_t bytes, bool up, CUstream stream)
{
	uint64_t slice = r->width * r->height, done = 0;

	if (!r->array)
		return up ? drv_cuda.cuMemcpyHtoDAsync_v2(r->at, host, bytes, stream)
			  : drv_cuda.cuMemcpyDtoHAsync_v2(host, r->at, bytes, stream);
	if (!drv_cuda.cuMemcpy3DAsync_v2)
		return CUDA_ERROR_NOT_SUPPORTED;
	while (done < bytes) {
		uint64_t at = r->at + done, left = bytes - done, x = at % r->width, y = at / r->width % r->height, z = at / slice;
		CUDA_MEMCPY3D p = {.WidthInBytes = r->width, .Height = 1, .Depth = 1};
		CUresult res;

		if (x || left < r->width)
			p.WidthInBytes = left < r->width - x ? left : r->width - x;
		else if (y || left < slice)
			p.Height = left / r->width < r->height - y ? left / r->width : r->height - y;
		else {
			p.Height = r->height;
			p.Depth = left / slice;
		}
		if (up) {
			p.srcMemoryType = CU_MEMORYTYPE_HOST;
			p.srcHost = (uint8_t *)host + done;
			p.srcPitch = p.WidthInBytes;
			p.srcHeight = p.Height;
			p.dstMemoryType = CU_MEMORYTYPE_ARRAY;
			p.dstArray = r->array;
			p.dstXInBytes = r->x + x;
			p.dstY = r->y + y;
			p.dstZ = r->z + z;
		} else {
			p.dstMemoryType = CU_MEMORYTYPE_HOST;
			p.dstHost = (uint8_t *)host + done;
			p.dstPitch = p.WidthInBytes;
			p.dstHeight = p.Height;
			p.srcMemoryType = CU_MEMORYTYPE_ARRAY;
			p.srcArray = r->array;
			p.srcXInBytes = r->x + x;
			p.srcY = r->y + y;
			p.srcZ = r->z + z;
		}
		res = drv_cuda.cuMemcpy3DAsync_v2(&p, stream);
		if (res)
			return res;
		done += p.WidthInBytes * p.Height * p.Depth;
	}
	return CUDA_SUCCESS;
}

static void send_up(struct srv_call *c, struct srv_ctx *x, const struct remote *to, const void *src, uint64_t bytes,
		    CUstream stream, bool sync)
{
	CUresult r = move(to, (void *)src, bytes, true, stream);

	if (r) {
		/* What is on its way already still reads. */
		if (to->array)
			drv_cuda.cuStreamSynchronize(stream);
		srv_fail(c, r);
		return;
	}
	/* The bytes stay until the driver has them. */
	wait_for_stream(c, x, stream, NULL, NULL);
	if (sync)
		stay(c);
}

/* @head: bytes of the body before those that it has inlined. */
static void up(struct srv_call *c, struct srv_ctx *x, const struct remote *to, uint64_t bytes, CUstream stream, uint32_t head,
	       uint32_t inlined, bool sync)
{
	const uint8_t *src = inlined ? c->body + head : c->payload;

	if (inlined ? inlined != bytes || bytes > c->body_len - head : bytes != c->payload_len) {
		srv_fail(c, CUDA_ERROR_INVALID_VALUE);
		return;
	}
	send_up(c, x, to, src, bytes, stream, sync);
}

void srv_H2D(struct srv_call *c)
{
	struct remote to = {0};
	struct rec_H2D a;
	struct srv_ctx *x;
	void *stream;

	if (!srv_body(c, &a, sizeof(a)) || !(x = srv_context(c, a.ctx)) || !srv_use(c, KIND_stream, a.hStream, &stream) ||
	    !srv_range(c, a.dst, a.bytes) || !srv_enter(c, a.ctx))
		return;
	to.at = a.dst;
	up(c, x, &to, a.bytes, stream, sizeof(a), a.inlined, a.sync);
}

/* Single precision that came as half. */
void srv_H2D_HALF(struct srv_call *c)
{
	struct remote to = {0};
	struct rec_H2D_HALF a;
	struct srv_ctx *x;
	void *stream;

	if (!srv_body(c, &a, sizeof(a)) || !(x = srv_context(c, a.ctx)) || !srv_use(c, KIND_stream, a.hStream, &stream) ||
	    !srv_range(c, a.dst, a.bytes) || !srv_enter(c, a.ctx))
		return;
	if (a.bytes % 4 || !c->payload_len || a.bytes / 2 != c->payload_len) {
		srv_fail(c, CUDA_ERROR_INVALID_VALUE);
		return;
	}
	/* As with an answer's bytes: it lives until the copy has run. Nothing of it is sent. */
	c->recv = malloc(a.bytes);
	if (!c->recv) {
		srv_fail(c, CUDA_ERROR_OUT_OF_MEMORY);
		return;
	}
	rgpu_half_to(c->recv, c->payload, a.bytes / 4);
	to.at = a.dst;
	send_up(c, x, &to, c->recv, a.bytes, stream, a.sync);
}

void srv_H2A(struct srv_call *c)
{
	void *stream, *array;
	struct remote to;
	struct rec_H2A a;
	struct srv_ctx *x;

	if (!srv_body(c, &a, sizeof(a)) || !(x = srv_context(c, a.ctx)) || !srv_use(c, KIND_stream, a.hStream, &stream) ||
	    !srv_use(c, KIND_array, a.array, &array))
		return;
	to = (struct remote){a.at, array, a.x, a.y, a.z, a.width, a.height, a.depth};
	if (!box_ok(c, &to, a.bytes) || !srv_enter(c, a.ctx))
		return;
	up(c, x, &to, a.bytes, stream, sizeof(a), a.inlined, a.sync);
}

static void down_done(struct srv_call *c, int32_t status)
{
	struct rep_D2H r = {.text = session_has_text(c->session)};

	if (c->out_len)
		memcpy(c->out, &r, sizeof(r));
	if (c->recv)
		c->recv_used = status ? 0 : c->recv_len;
}

/* The bytes are in locked memory, which stays with the session. */
static void down_locked_done(struct srv_call *c, int32_t status)
{
	if (!status)
		memcpy(c->recv, wait_arg(c), c->recv_len);
	locked_put(&wait_context(c)->locked, wait_arg(c), c->recv_len);
	down_done(c, status);
}

/* A small answer travels in the reply's body, whose place is not fixed while the copy runs: it comes through a buffer. */
static void down_inline_done(struct srv_call *c, int32_t status)
{
	uint8_t *buf = wait_arg(c);

	down_done(c, status);
	memcpy(c->out + sizeof(struct rep_D2H), buf, c->out_len - sizeof(struct rep_D2H));
	free(buf);
}

static void down(struct srv_call *c, struct srv_ctx *x, const struct remote *from, uint64_t bytes, CUstream stream,
		 uint32_t inlined)
{
	bool fence = c->rec.flags & RGPU_REC_FENCE;
	void *locked = NULL;
	uint8_t *to;
	CUresult r;

	if (inlined ? !fence || inlined != bytes || bytes > SRV_OUT_MAX - sizeof(struct rep_D2H) : bytes != c->recv_len) {
		srv_fail(c, CUDA_ERROR_INVALID_VALUE);
		return;
	}
	to = inlined ? calloc(1, bytes) : srv_recv_buffer(c);
	if (!to) {
		srv_fail(c, CUDA_ERROR_OUT_OF_MEMORY);
		return;
	}
	if (fence) {
		c->out_len = sizeof(struct rep_D2H) + inlined;
		memset(c->out, 0, c->out_len);
	}
	/* Into other memory the driver copies before it returns, and the lane would hold whoever lets the stream go on. */
	if (!fence)
		locked = locked_get(&x->locked, bytes);
	r = move(from, locked ? locked : to, bytes, false, stream);
	if (r) {
		if (from->array)
			drv_cuda.cuStreamSynchronize(stream);
		if (locked)
			locked_put(&x->locked, locked, bytes);
		if (inlined)
			free(to);
		srv_fail(c, r);
		return;
	}
	wait_for_stream(c, x, stream, inlined ? down_inline_done : locked ? down_locked_done : down_done, inlined ? to : locked);
}

void srv_D2H(struct srv_call *c)
{
	struct remote from = {0};
	struct rec_D2H a;
	struct srv_ctx *x;
	void *stream;

	if (!srv_body(c, &a, sizeof(a)) || !(x = srv_context(c, a.ctx)) || !srv_use(c, KIND_stream, a.hStream, &stream) ||
	    !srv_range(c, a.src, a.bytes) || !srv_enter(c, a.ctx))
		return;
	from.at = a.src;
	down(c, x, &from, a.bytes, stream, a.inlined);
}

/* Its reply is D2H's. */
_Static_assert(sizeof(struct rep_A2H) == sizeof(struct rep_D2H), "one answer for both");

void srv_A2H(struct srv_call *c)
{
	void *stream, *array;
	struct remote from;
	struct rec_A2H a;
	struct srv_ctx *x;

	if (!srv_body(c, &a, sizeof(a)) || !(x = srv_context(c, a.ctx)) || !srv_use(c, KIND_stream, a.hStream, &stream) ||
	    !srv_use(c, KIND_array, a.array, &array))
		return;
	from = (struct remote){a.at, array, a.x, a.y, a.z, a.width, a.height, a.depth};
	if (!box_ok(c, &from, a.bytes) || !srv_enter(c, a.ctx))
		return;
	down(c, x, &from, a.bytes, stream, a.inlined);
}

void srv_D2D(struct srv_call *c)
{
	struct rec_D2D a;
	void *stream;

	if (!srv_body(c, &a, sizeof(a)) || !srv_use(c, KIND_stream, a.hStream, &stream) || !srv_range(c, a.dst, a.bytes) ||
	    !srv_range(c, a.src, a.bytes) || !srv_enter(c, a.ctx))
		return;
	srv_fail(c, drv_cuda.cuMemcpyDtoDAsync_v2(a.dst, a.src, a.bytes, stream));
}

void srv_D2D_PEER(struct srv_call *c)
{
	struct rec_D2D_PEER a;
	struct srv_ctx *dst, *src;
	void *stream;

	if (!srv_body(c, &a, sizeof(a)) || !(dst = srv_context(c, a.dst_ctx)) || !(src = srv_context(c, a.src_ctx)) ||
	    !srv_use(c, KIND_stream, a.hStream, &stream) || !srv_range(c, a.dst, a.bytes) || !srv_range(c, a.src, a.bytes) ||
	    !srv_enter(c, a.ctx))
		return;
	if (!drv_cuda.cuMemcpyPeerAsync) {
		srv_fail(c, CUDA_ERROR_NOT_SUPPORTED);
		return;
	}
	srv_fail(c, drv_cuda.cuMemcpyPeerAsync(a.dst, dst->real, a.src, src->real, a.bytes, stream));
}
