// SPDX-License-Identifier: MIT
/* Host functions: the driver's thread waits in a call of ours while the client, which asks for the next one due, runs the
 * program's. */
#include "server/host.h"

#include <stdlib.h>
#include <string.h>
#include "api/hostfunc.h"
#include "server/call_wait.h"

#define REFUSED_MAX 65536u /* that the client was not told of */

/* One call by the driver. It lives on the stack of the driver's thread. */
struct host_run {
	uint64_t id, number;
	int32_t status;
	uint8_t *into;
	uint64_t bytes;
	bool ended;
	bool refused; /* no thread of the driver's: on the heap */
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

/* With the lock. */
static void put(struct srv_hosts *h, struct host_run *r)
{
	struct host_run **at = &h->due;

	r->number = ++h->number;
	while (*at)
		at = &(*at)->next;
	*at = r;
	if (h->asked)
		srv_look_again(h->asked);
}

void host_refused(struct srv_session *s, uint64_t id)
{
	struct host_run *r = NULL;

	pthread_mutex_lock(&s->hosts.lock);
	/* Without one the client goes on listening for it: that costs an open question, no more. */
	if (s->hosts.refused < REFUSED_MAX)
		r = calloc(1, sizeof(*r));
	if (r) {
		*r = (struct host_run){.id = id, .status = RGPU_HOST_REFUSED, .refused = true};
		s->hosts.refused++;
		put(&s->hosts, r);
	}
	pthread_mutex_unlock(&s->hosts.lock);
}

static void run(struct host_fn *f, int32_t status)
{
	struct srv_hosts *h = &f->session->hosts;
	struct host_run r = {.id = f->id, .status = status, .into = f->into, .bytes = f->bytes};

	if (f->once)
		free(f);
	pthread_mutex_lock(&h->lock);
	put(h, &r);
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

static void host_func(struct srv_call *c, const struct rec_HOST_FUNC *a)
{
	struct host_fn *f;
	void *stream;
	CUresult r;

	if (!srv_use(c, KIND_stream, a->hStream, &stream) || !srv_enter(c, a->ctx))
		return;
	if (a->callback ? !drv_cuda.cuStreamAddCallback : !drv_cuda.cuLaunchHostFunc) {
		srv_fail(c, CUDA_ERROR_NOT_SUPPORTED);
		return;
	}
	f = host_fn_new(c->session, a->id, true);
	if (!f) {
		srv_fail(c, CUDA_ERROR_OUT_OF_MEMORY);
		return;
	}
	if (a->callback)
		r = drv_cuda.cuStreamAddCallback(stream, host_fn_callback, f, 0);
	else
		r = drv_cuda.cuLaunchHostFunc(stream, host_fn_call, f);
	if (r)
		free(f);
	srv_fail(c, r);
}

void srv_HOST_FUNC(struct srv_call *c)
{
	struct rec_HOST_FUNC a;

	if (!srv_body(c, &a, sizeof(a)))
		return;
	host_func(c, &a);
	if (c->status)
		host_refused(c->session, a.id);
}

/* The next one due goes to who asks. Under pending.lock, or on the lane's thread. */
static int32_t next_ready(struct srv_call *c)
{
	struct srv_hosts *h = &c->session->hosts;
	struct rep_HOST_NEXT reply;
	struct host_run *r;

	pthread_mutex_lock(&h->lock);
	r = h->due;
	h->asked = srv_worker(c);
	if (r) {
		h->due = r->next;
		r->next = h->told;
		h->told = r;
		reply = (struct rep_HOST_NEXT){.id = r->id, .number = r->number, .state = r->status};
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
	bool found;

	if (!srv_body(c, &a, sizeof(a)))
		return;
	pthread_mutex_lock(&h->lock);
	for (at = &h->told; *at && (*at)->number != a.number; at = &(*at)->next)
		;
	r = *at;
	found = r;
	if (found) {
		*at = r->next;
		if (!r->refused && c->payload_len && c->payload_len == r->bytes)
			memcpy(r->into, c->payload, r->bytes);
		r->ended = true;
		if (r->refused) {
			h->refused--;
			free(r);
		} else {
			pthread_cond_broadcast(&h->ended);
		}
	}
	pthread_mutex_unlock(&h->lock);
	if (!found)
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
static bool ask_for_bytes(struct srv_call *c, const struct rec_HOST_H2D *a)
{
	struct host_fn *f;
	struct srv_ctx *x;
	uint8_t *buf;
	void *stream;
	CUresult r;

	if (!(x = srv_context(c, a->ctx)) || !srv_use(c, KIND_stream, a->hStream, &stream) || !srv_range(c, a->dst, a->bytes) ||
	    !srv_enter(c, a->ctx))
		return false;
	if (!a->bytes || a->bytes > RGPU_CHUNK_MAX || !drv_cuda.cuLaunchHostFunc) {
		srv_fail(c, a->bytes && a->bytes <= RGPU_CHUNK_MAX ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE);
		return false;
	}
	buf = locked_get(&x->locked, a->bytes);
	f = buf ? host_fn_new(c->session, a->id, true) : NULL;
	if (!f) {
		if (buf)
			locked_put(&x->locked, buf, a->bytes);
		srv_fail(c, CUDA_ERROR_OUT_OF_MEMORY);
		return false;
	}
	f->into = buf;
	f->bytes = a->bytes;
	r = drv_cuda.cuLaunchHostFunc(stream, host_fn_call, f);
	if (r) {
		locked_put(&x->locked, buf, a->bytes);
		free(f);
		srv_fail(c, r);
		return false;
	}
	c->status = drv_cuda.cuMemcpyHtoDAsync_v2(a->dst, buf, a->bytes, stream);
	wait_for_stream(c, x, stream, put_bytes, buf);
	return true;
}

void srv_HOST_H2D(struct srv_call *c)
{
	struct rec_HOST_H2D a;

	if (srv_body(c, &a, sizeof(a)) && !ask_for_bytes(c, &a))
		host_refused(c->session, a.id);
}
