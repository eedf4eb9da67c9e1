// SPDX-License-Identifier: MIT
/* Starting the session, its lanes, and how it ends: an error is told once, and stays. */
#include "shim/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "api/hello.h"
#include "lib/log.h"
#include "rgpu_rpc.h"
#include "shim/ctx.h"
#include "shim/cuda_api.h"

extern char **environ;

static const char *const allowed[] = {RGPU_HELLO_NAMES};

static bool is_allowed(const char *var)
{
	for (size_t i = 0; i < sizeof(allowed) / sizeof(*allowed); i++) {
		size_t n = strlen(allowed[i]);

		if (!strncmp(var, allowed[i], n) && var[n] == '=')
			return true;
	}
	return false;
}

static uint32_t fill_hello(uint8_t *buf, size_t room)
{
	struct rgpu_shim_hello h = {
		.magic = RGPU_HELLO_MAGIC,
		.api_version = RGPU_API_VERSION,
		.cuda_version = CUDA_VERSION,
	};
	size_t at = sizeof(h);

	for (char **e = environ; e && *e; e++) {
		size_t n = strlen(*e) + 1;

		if (!is_allowed(*e))
			continue;
		if (n > room - at || at - sizeof(h) + n > RGPU_HELLO_ENV) {
			rgpu_warn("%.32s… is not passed on: the environment that crosses is limited to %d bytes", *e,
				  RGPU_HELLO_ENV);
			continue;
		}
		memcpy(buf + at, *e, n);
		at += n;
	}
	h.env_len = at - sizeof(h);
	memcpy(buf, &h, sizeof(h));
	return at;
}

static int status_of(int err)
{
	switch (err) {
	case -EACCES:
	case -EPERM:
		return CUDA_ERROR_NOT_PERMITTED;
	case -EPROTO:
		return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
	case -ENOMEM:
	case -EDQUOT:
		return CUDA_ERROR_OUT_OF_MEMORY;
	default:
		return CUDA_ERROR_DEVICE_UNAVAILABLE;
	}
}

int session_start(struct rgpu_session *s)
{
	uint8_t hello[sizeof(struct rgpu_shim_hello) + RGPU_HELLO_ENV];
	unsigned dev[RGPU_DEVICES_MAX];
	int r = 0;

	if (__atomic_load_n(&s->started, __ATOMIC_ACQUIRE))
		return session_dead(s) ? session_fail(s, NULL) : 0;
	pthread_mutex_lock(&s->lock);
	if (s->started)
		goto out;
	for (unsigned i = 0; i < s->ndevices; i++)
		dev[i] = s->devices[i]->server_index;
	if (!s->kpage)
		r = rgpu_transport_start(s->transport, dev, s->ndevices, hello, fill_hello(hello, sizeof(hello)));
	if (r) {
		r = session_error(s, status_of(r), "no session could be started");
		goto out;
	}
	s->kpage = rgpu_transport_kpage(s->transport);
	r = window_open(s);
	if (!r)
		__atomic_store_n(&s->started, true, __ATOMIC_RELEASE);
out:
	pthread_mutex_unlock(&s->lock);
	return r;
}

/* No stream's handle, and no other thread's own stream's name. */
static uint64_t name_own(void)
{
	static _Atomic uint64_t last;

	return 1ull << 63 | (atomic_fetch_add(&last, 1) + 1);
}

/* The session's lock is not taken by a thread that starts it: that one makes the first lane. */
static struct rgpu_lane *from_pool(struct rgpu_session *s)
{
	struct rgpu_lane *l = NULL;

	if (!__atomic_load_n(&s->started, __ATOMIC_ACQUIRE))
		return NULL;
	pthread_mutex_lock(&s->lock);
	l = s->pool;
	if (l)
		s->pool = l->next;
	pthread_mutex_unlock(&s->lock);
	return l;
}

struct rgpu_lane *session_lane_first(struct rgpu_session *s, int *err)
{
	struct rgpu_lane *l = from_pool(s);

	if (!l) {
		l = calloc(1, sizeof(*l));
		if (!l) {
			*err = CUDA_ERROR_OUT_OF_MEMORY;
			return NULL;
		}
		l->session = s;
		*err = lane_open(l);
		if (*err) {
			free(l);
			return NULL;
		}
	}
	l->own = name_own();
	thread_get()->lane = l;
	return l;
}

/* What the server kept for the thread is forgotten there, in order, before another thread uses the lane. */
void session_lane_back(struct rgpu_lane *l)
{
	struct rgpu_session *s = l->session;
	struct rgpu_call c = {.op = OP_LANE_RESET, .session = s};

	if (process_ready() || session_dead(s)) {
		/* Nobody wants it any more; a child of fork finds the lock as it was then, so without it. */
		l->next = atomic_load(&s->lost);
		while (!atomic_compare_exchange_weak(&s->lost, &l->next, l))
			;
		return;
	}
	thread_get()->lane = l;
	rpc_LANE_RESET(&c);
	thread_get()->lane = NULL;
	pthread_mutex_lock(&s->lock);
	l->next = s->pool;
	s->pool = l;
	pthread_mutex_unlock(&s->lock);
}

int session_fail(struct rgpu_session *s, const char *why)
{
	int reason = s->kpage ? __atomic_load_n(&s->kpage->reason, __ATOMIC_ACQUIRE) : 0;

	/* The program is exiting, and this thread is late. */
	if ((reason == -ESHUTDOWN || reason == -ECANCELED) && process_exiting())
		return CUDA_ERROR_DEINITIALIZED;
	if (!atomic_exchange(&s->failed, true)) {
		if (!why)
			why = rgpu_transport_why(s->transport);
		rgpu_err(
			"the session with the GPU's server is lost: %s; all CUDA calls fail from now on, start the program again",
			why && *why ? why
			: reason    ? strerror(-reason)
				    : "no reason was given");
	}
	return CUDA_ERROR_DEVICE_UNAVAILABLE;
}

int session_error(struct rgpu_session *s, int status, const char *what)
{
	const char *why = rgpu_transport_why(s->transport);

	if (why && *why)
		rgpu_err("%s: %s", what, why);
	else
		rgpu_err("%s", what);
	return status;
}

void session_pending(struct rgpu_session *s, uint16_t op, int status)
{
	int none = 0;

	atomic_compare_exchange_strong(&s->pending[op_library(op)], &none, status);
}

/*
 * An error that ends a context is its own affair: the driver says it again to each call that waits there. Another context is
 * well, and a new one knows nothing of it.
 */
int session_take_pending(struct rgpu_session *s, uint16_t op)
{
	unsigned lib = op_library(op);
	int status;

	if (__builtin_expect(!atomic_load_explicit(&s->pending[lib], memory_order_relaxed), 1))
		return 0;
	status = atomic_exchange(&s->pending[lib], 0);
	return !lib && ctx_is_sticky(status) ? 0 : status;
}

int rgpuTakesPtxOnly(void)
{
	struct rgpu_session *s;

	if (process_init())
		return 0;
	s = process_get()->session;
	return !session_start(s) && !(s->images & RGPU_IMAGE_ELF);
}
