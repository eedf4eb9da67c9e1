// SPDX-License-Identifier: MIT
/* Copies: bytes of the record into the device, and the device's bytes into the reply; all in stream order, none waited for here.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "lib/clock.h"
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

void srv_H2D(struct srv_call *c)
{
	const uint8_t *src = c->body + sizeof(struct rec_H2D);
	struct rec_H2D a;
	struct srv_ctx *x;
	void *stream;
	CUresult r;

	if (!srv_body(c, &a, sizeof(a)) || !(x = srv_context(c, a.ctx)) || !srv_use(c, KIND_stream, a.hStream, &stream) ||
	    !srv_range(c, a.dst, a.bytes) || !srv_enter(c, a.ctx))
		return;
	if (a.inlined ? a.inlined != a.bytes || a.bytes > c->body_len - sizeof(a) : a.bytes != c->payload_len) {
		srv_fail(c, CUDA_ERROR_INVALID_VALUE);
		return;
	}
	r = drv_cuda.cuMemcpyHtoDAsync_v2(a.dst, a.inlined ? src : c->payload, a.bytes, stream);
	if (r) {
		srv_fail(c, r);
		return;
	}
	/* The bytes stay until the driver has them. */
	wait_for_stream(c, x, stream, NULL, NULL);
	if (a.sync)
		stay(c);
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

void srv_D2H(struct srv_call *c)
{
	bool fence = c->rec.flags & RGPU_REC_FENCE;
	struct rec_D2H a;
	struct srv_ctx *x;
	void *stream;
	void *locked = NULL;
	uint8_t *to;
	CUresult r;

	if (!srv_body(c, &a, sizeof(a)) || !(x = srv_context(c, a.ctx)) || !srv_use(c, KIND_stream, a.hStream, &stream) ||
	    !srv_range(c, a.src, a.bytes) || !srv_enter(c, a.ctx))
		return;
	if (a.inlined ? !fence || a.inlined != a.bytes || a.bytes > SRV_OUT_MAX - sizeof(struct rep_D2H)
		      : a.bytes != c->recv_len) {
		srv_fail(c, CUDA_ERROR_INVALID_VALUE);
		return;
	}
	to = a.inlined ? calloc(1, a.bytes) : srv_recv_buffer(c);
	if (!to) {
		srv_fail(c, CUDA_ERROR_OUT_OF_MEMORY);
		return;
	}
	if (fence) {
		c->out_len = sizeof(struct rep_D2H) + a.inlined;
		memset(c->out, 0, c->out_len);
	}
	/* Into other memory the driver copies before it returns, and the lane would hold whoever lets the stream go on. */
	if (!fence)
		locked = locked_get(&x->locked, a.bytes);
	r = drv_cuda.cuMemcpyDtoHAsync_v2(locked ? locked : to, a.src, a.bytes, stream);
	if (r) {
		if (locked)
			locked_put(&x->locked, locked, a.bytes);
		if (a.inlined)
			free(to);
		srv_fail(c, r);
		return;
	}
	wait_for_stream(c, x, stream,
			a.inlined ? down_inline_done
			: locked  ? down_locked_done
				  : down_done,
			a.inlined ? to : locked);
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
