// SPDX-License-Identifier: MIT
/* Host functions: the driver's thread waits in a call of ours while the client, which asks for the next one due, runs the
 * program's. */
#include "server/host.h"

#include <stdlib.h>
#include <string.h>
#include "server/call_wait.h"

/* One call by the driver. It lives on the stack of the driver's thread. */
struct host_run {
	uint64_t id, number;
	int32_t status;
	uint8_t *into;
	uint64_t bytes;
	bool ended;
	struct host_run *next;
};

void hosts_init(struct srv_hosts *h)
{
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->ended, NULL);
}

struct host_fn *host_fn_new(struct srv_session *s, uint64_t id, bool once)
{
	struct host_fn *f = malloc(sizeof(*f));

	if (f)
		*f = (struct host_fn){.session = s, .id = id, .once = once};
	return f;
}

static void run(struct host_fn *f, int32_t status)
{
	struct srv_hosts *h = &f->session->hosts;
	struct host_run r = {.id = f->id, .status = status, .into = f->into, .bytes = f->bytes}, **at = &h->due;

	if (f->once)
		free(f);
	pthread_mutex_lock(&h->lock);
	r.number = ++h->number;
	while (*at)
		at = &(*at)->next;
	*at = &r;
	if (h->asker)
		srv_look_again(h->asker);
	while (!r.ended)
		pthread_cond_wait(&h->ended, &h->lock);
	pthread_mutex_unlock(&h->lock);
}

void CUDA_CB host_fn_call(void *fn)
{
	run(fn, 0);
}

void CUDA_CB host_fn_callback(CUstream stream, CUresult status, void *fn)
{
	(void)stream;
	run(fn, status);
}

void srv_HOST_FUNC(struct srv_call *c)
{
	struct rec_HOST_FUNC a;
	struct host_fn *f;
	void *stream;
	CUresult r;

	if (!srv_body(c, &a, sizeof(a)) || !srv_use(c, KIND_stream, a.hStream, &stream) || !srv_enter(c, a.ctx))
		return;
	if (a.callback ? !drv_cuda.cuStreamAddCallback : !drv_cuda.cuLaunchHostFunc) {
		srv_fail(c, CUDA_ERROR_NOT_SUPPORTED);
		return;
	}
	f = host_fn_new(c->session, a.id, true);
	if (!f) {
		srv_fail(c, CUDA_ERROR_OUT_OF_MEMORY);
		return;
	}
	if (a.callback)
		r = drv_cuda.cuStreamAddCallback(stream, host_fn_callback, f, 0);
	else
		r = drv_cuda.cuLaunchHostFunc(stream, host_fn_call, f);
	if (r)
		free(f);
	srv_fail(c, r);
}

/* The next one due goes to who asks. Under pending.lock, or on the lane's thread. */
static int32_t next_ready(struct srv_call *c)
{
	struct srv_hosts *h = &c->session->hosts;
	struct rep_HOST_NEXT reply;
	struct host_run *r;

	pthread_mutex_lock(&h->lock);
	r = h->due;
	if (!r) {
		h->asker = c;
	} else {
		h->due = r->next;
		r->next = h->told;
		h->told = r;
		reply = (struct rep_HOST_NEXT){.id = r->id, .number = r->number, .state = r->status};
		if (h->asker == c)
			h->asker = NULL;
	}
	pthread_mutex_unlock(&h->lock);
	if (!r)
		return SRV_PENDING;
	srv_answer(c, &reply, sizeof(reply));
	return CUDA_SUCCESS;
}

void srv_HOST_NEXT(struct srv_call *c)
{
	c->out_len = sizeof(struct rep_HOST_NEXT);
	c->status = next_ready(c);
	if (c->status != SRV_PENDING)
		return;
	c->ready = next_ready;
	c->told = true;
}

void srv_HOST_DONE(struct srv_call *c)
{
	struct srv_hosts *h = &c->session->hosts;
	struct host_run **at, *r;
	struct rec_HOST_DONE a;

	if (!srv_body(c, &a, sizeof(a)))
		return;
	pthread_mutex_lock(&h->lock);
	for (at = &h->told; *at && (*at)->number != a.number; at = &(*at)->next)
		;
	r = *at;
	if (r) {
		*at = r->next;
		if (c->payload_len && c->payload_len == r->bytes)
			memcpy(r->into, c->payload, r->bytes);
		r->ended = true;
		pthread_cond_broadcast(&h->ended);
	}
	pthread_mutex_unlock(&h->lock);
	if (!r)
		srv_fail(c, CUDA_ERROR_INVALID_VALUE);
}

static void put_bytes(struct srv_call *c, int32_t status)
{
	struct rec_HOST_H2D a;

	memcpy(&a, c->body, sizeof(a));
	locked_put(&wait_context(c)->locked, wait_arg(c), a.bytes);
	(void)status;
}

/*
 * A copy that comes after host functions: they may write what it reads, so the client gives the bytes when the stream has come
 * here. The driver must not read them earlier, as it would from pageable memory.
 */
void srv_HOST_H2D(struct srv_call *c)
{
	struct rec_HOST_H2D a;
	struct host_fn *f;
	struct srv_ctx *x;
	uint8_t *buf;
	void *stream;
	CUresult r;

	if (!srv_body(c, &a, sizeof(a)) || !(x = srv_context(c, a.ctx)) || !srv_use(c, KIND_stream, a.hStream, &stream) ||
	    !srv_range(c, a.dst, a.bytes) || !srv_enter(c, a.ctx))
		return;
	if (!a.bytes || a.bytes > RGPU_CHUNK_MAX || !drv_cuda.cuLaunchHostFunc) {
		srv_fail(c, a.bytes && a.bytes <= RGPU_CHUNK_MAX ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE);
		return;
	}
	buf = locked_get(&x->locked, a.bytes);
	f = buf ? host_fn_new(c->session, a.id, true) : NULL;
	if (!f) {
		if (buf)
			locked_put(&x->locked, buf, a.bytes);
		srv_fail(c, CUDA_ERROR_OUT_OF_MEMORY);
		return;
	}
	f->into = buf;
	f->bytes = a.bytes;
	r = drv_cuda.cuLaunchHostFunc(stream, host_fn_call, f);
	if (r) {
		locked_put(&x->locked, buf, a.bytes);
		free(f);
		srv_fail(c, r);
		return;
	}
	c->status = drv_cuda.cuMemcpyHtoDAsync_v2(a.dst, buf, a.bytes, stream);
	wait_for_stream(c, x, stream, put_bytes, buf);
}
