// SPDX-License-Identifier: MIT
/* The JIT linker: inputs come in pieces like modules, and the image goes back the same way. */
#include "server/call_link.h"

#include <stdlib.h>
#include <string.h>
#include "server/call_module.h"
#include "lib/jit_option.h"

#define LOG_BYTES 8192u
#define OPTIONS	  24u

struct srv_link {
	struct srv_session *session;
	CUlinkState real;
	uint8_t *data; /* the input that is coming in */
	uint64_t got, room;
	void *image; /* the driver's */
	size_t bytes;
	/* The driver keeps these until the link is destroyed. */
	char log[2][LOG_BYTES];
	unsigned noptions;
	CUjit_option option[OPTIONS + 4];
	void *value[OPTIONS + 4];
};

/* Held over the driver's calls: links are few, and what one lane works on another may destroy. Inside it: handles_lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct srv_link *link_of(struct srv_call *c, uint64_t handle)
{
	void *l;

	return srv_use(c, KIND_linkstate, handle, &l) ? l : NULL;
}

static void drop_data(struct srv_link *l)
{
	image_gone(l->session, l->room);
	free(l->data);
	l->data = NULL;
	l->got = l->room = 0;
}

void link_drop(struct srv_link *l)
{
	pthread_mutex_lock(&lock);
	drv_cuda.cuLinkDestroy(l->real);
	drop_data(l);
	free(l);
	pthread_mutex_unlock(&lock);
}

static void add_option(struct srv_link *l, CUjit_option option, void *value)
{
	l->option[l->noptions] = option;
	l->value[l->noptions++] = value;
}

void srv_LINK_CREATE(struct srv_call *c)
{
	uint32_t at = sizeof(struct rec_LINK_CREATE);
	const uint64_t *option, *value;
	struct rec_LINK_CREATE a;
	struct srv_link *l;
	CUresult r;

	if (!srv_body(c, &a, sizeof(a)) || !srv_fresh(c, KIND_linkstate, a.state) || !srv_enter(c, a.ctx))
		return;
	if (a.n > OPTIONS || a.option_n != a.n || a.value_n != a.n || !(option = srv_bytes(c, &at, a.n * 8ull)) ||
	    !(value = srv_bytes(c, &at, a.n * 8ull))) {
		srv_fail(c, CUDA_ERROR_INVALID_VALUE);
		return;
	}
	if (!drv_cuda.cuLinkCreate_v2 || !drv_cuda.cuLinkAddData_v2 || !drv_cuda.cuLinkComplete || !drv_cuda.cuLinkDestroy) {
		srv_fail(c, CUDA_ERROR_NOT_SUPPORTED);
		return;
	}
	l = calloc(1, sizeof(*l));
	if (!l) {
		srv_fail(c, CUDA_ERROR_OUT_OF_MEMORY);
		return;
	}
	l->session = c->session;
	for (unsigned i = 0; i < a.n; i++) {
		if (!jit_option_is_number(option[i])) {
			free(l);
			srv_fail(c, CUDA_ERROR_INVALID_VALUE);
			return;
		}
		add_option(l, option[i], (void *)value[i]);
	}
	add_option(l, CU_JIT_INFO_LOG_BUFFER, l->log[0]);
	add_option(l, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, (void *)(uintptr_t)LOG_BYTES);
	add_option(l, CU_JIT_ERROR_LOG_BUFFER, l->log[1]);
	add_option(l, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, (void *)(uintptr_t)LOG_BYTES);
	r = drv_cuda.cuLinkCreate_v2(l->noptions, l->option, l->value, &l->real);
	if (r)
		free(l);
	else
		srv_put(c, KIND_linkstate, a.state, l, a.ctx);
	srv_fail(c, r);
}

/* What goes wrong here is ADD's to say: its length does not fit then. */
void srv_LINK_DATA(struct srv_call *c)
{
	struct rec_LINK_DATA a;
	const uint8_t *src;
	struct srv_link *l;

	if (!srv_body(c, &a, sizeof(a)))
		return;
	pthread_mutex_lock(&lock);
	l = link_of(c, a.state);
	src = a.inlined ? c->body + sizeof(a) : c->payload;
	if (!l || a.off != l->got || a.bytes > IMAGE_MAX - l->got ||
	    (a.inlined ? a.bytes != a.inlined || a.bytes > c->body_len - sizeof(a) : a.bytes != c->payload_len)) {
		srv_fail(c, l ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE);
		goto out;
	}
	/* One more for the NUL behind a text. */
	if (l->got + a.bytes + 1 > l->room) {
		uint64_t room = 2 * (l->got + a.bytes + 1), more = room - l->room;
		bool may = image_room(c->session, more);
		uint8_t *p = may ? realloc(l->data, room) : NULL;

		if (!p) {
			if (may)
				image_gone(c->session, more);
			srv_fail(c, CUDA_ERROR_OUT_OF_MEMORY);
			goto out;
		}
		l->data = p;
		l->room = room;
	}
	memcpy(l->data + l->got, src, a.bytes);
	l->got += a.bytes;
out:
	pthread_mutex_unlock(&lock);
}

static uint32_t logs_of(const struct srv_link *l)
{
	return (*l->log[0] ? 1u : 0) | (*l->log[1] ? 2u : 0);
}

static CUresult add(struct srv_call *c, struct srv_link *l, const struct rec_LINK_ADD *a)
{
	CUjit_option option[OPTIONS];
	uint32_t at = sizeof(*a);
	void *value[OPTIONS];
	const uint64_t *pair;
	const char *name;
	unsigned kind;
	CUresult r;

	name = srv_string(c, &at, a->name_bytes);
	pair = a->n <= OPTIONS ? srv_bytes(c, &at, a->n * 16ull) : NULL;
	if (!name || !pair || !l->got)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < a->n; i++) {
		if (!jit_option_is_number(pair[2 * i]))
			return CUDA_ERROR_INVALID_VALUE;
		option[i] = pair[2 * i];
		value[i] = (void *)pair[2 * i + 1];
	}
	l->data[l->got] = 0;
	r = image_check(l->data, l->got);
	if (r)
		return r;
	/* The client takes containers apart. Whether an image is a library's means something to softgpu only. */
	kind = image_is_elf(l->data, l->got)				? CU_JIT_INPUT_CUBIN
	       : a->kind == CU_JIT_INPUT_LIBRARY && !driver_takes_elf() ? CU_JIT_INPUT_LIBRARY
									: CU_JIT_INPUT_PTX;
	return drv_cuda.cuLinkAddData_v2(l->real, kind, l->data, l->got, name, a->n, option, value);
}

void srv_LINK_ADD(struct srv_call *c)
{
	struct rep_LINK_ADD reply = {0};
	struct rec_LINK_ADD a;
	struct srv_link *l;

	if (!srv_body(c, &a, sizeof(a)) || !srv_enter(c, a.ctx))
		return;
	pthread_mutex_lock(&lock);
	l = link_of(c, a.state);
	if (l) {
		srv_fail(c, add(c, l, &a));
		drop_data(l);
		reply.logs = logs_of(l);
		srv_answer(c, &reply, sizeof(reply));
	}
	pthread_mutex_unlock(&lock);
}

void srv_LINK_COMPLETE(struct srv_call *c)
{
	struct rep_LINK_COMPLETE reply = {0};
	struct rec_LINK_COMPLETE a;
	struct srv_link *l;
	CUresult r;

	if (!srv_body(c, &a, sizeof(a)) || !srv_enter(c, a.ctx))
		return;
	pthread_mutex_lock(&lock);
	l = link_of(c, a.state);
	if (l) {
		r = drv_cuda.cuLinkComplete(l->real, &l->image, &l->bytes);
		if (r)
			l->bytes = 0;
		reply.bytes = l->bytes;
		reply.logs = logs_of(l);
		srv_fail(c, r);
		srv_answer(c, &reply, sizeof(reply));
	}
	pthread_mutex_unlock(&lock);
}

void srv_LINK_IMAGE(struct srv_call *c)
{
	struct rec_LINK_IMAGE a;
	struct srv_link *l;

	if (!srv_body(c, &a, sizeof(a)))
		return;
	pthread_mutex_lock(&lock);
	l = link_of(c, a.state);
	if (l && a.off > l->bytes) {
		srv_fail(c, CUDA_ERROR_INVALID_VALUE);
	} else if (l && c->recv_len && srv_recv_buffer(c)) {
		c->recv_used = l->bytes - a.off < c->recv_len ? l->bytes - a.off : c->recv_len;
		memcpy(c->recv, (const uint8_t *)l->image + a.off, c->recv_used);
	}
	pthread_mutex_unlock(&lock);
}

void srv_LINK_LOG(struct srv_call *c)
{
	struct rec_LINK_LOG a;
	struct srv_link *l;

	if (!srv_body(c, &a, sizeof(a)))
		return;
	pthread_mutex_lock(&lock);
	l = link_of(c, a.state);
	if (l)
		srv_answer(c, l->log[a.which & 1], strnlen(l->log[a.which & 1], LOG_BYTES));
	pthread_mutex_unlock(&lock);
}

void srv_LINK_DESTROY(struct srv_call *c)
{
	struct rec_LINK_DESTROY a;
	void *l;

	if (srv_body(c, &a, sizeof(a)) && srv_take(c, KIND_linkstate, a.state, &l))
		link_drop(l);
}
