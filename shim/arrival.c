// SPDX-License-Identifier: MIT
/*
 * Asynchronous copies down into page-locked memory that nothing can be received in straight: registered memory, and many short
 * rows. The bytes come into a buffer object of ours, and when the stream has come behind the copy, which it is held there for,
 * they are put where the program looks.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "rgpu_rpc.h"
#include "shim/arrival.h"
#include "shim/ctx.h"
#include "shim/hostfunc.h"
#include "shim/pinned.h"
#include "shim/session.h"

#define SMALL	 (64u << 10) /* buffers of that size are kept for the next ones */
#define KEPT_MAX 16u
#define ROOM_MAX (64ull << 20) /* of all that are on their way; what does not fit is waited for */

struct arrival {
	struct rgpu_session *session;
	struct rgpu_bo bo;
	struct rows rows;
	struct arrival *next; /* kept, on its way, or lost */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* all of them, and what they are put into */
static struct arrival *kept, *coming, *lost;
static unsigned nkept;
static uint64_t room_used;

static void buffer_free(struct arrival *a)
{
	bool keep;

	pthread_mutex_lock(&lock);
	room_used -= a->bo.bytes;
	keep = a->bo.bytes == SMALL && nkept < KEPT_MAX;
	if (keep) {
		a->next = kept;
		kept = a;
		nkept++;
	}
	pthread_mutex_unlock(&lock);
	if (keep)
		return;
	rgpu_transport_bo_destroy(a->session->transport, &a->bo);
	free(a);
}

/* Records that name their buffers may not have left yet; behind this fence they have. */
static void reclaim(struct rgpu_session *s)
{
	struct arrival *a, *next;

	pthread_mutex_lock(&lock);
	a = lost;
	lost = NULL;
	pthread_mutex_unlock(&lock);
	if (a)
		print_fetch(s);
	for (; a; a = next) {
		next = a->next;
		buffer_free(a);
	}
}

static struct arrival *buffer_new(struct rgpu_session *s, uint64_t bytes)
{
	uint64_t size = (bytes + SMALL - 1) / SMALL * SMALL;
	struct arrival *a = NULL;
	bool fits;

	pthread_mutex_lock(&lock);
	fits = bytes <= ROOM_MAX && room_used + size <= ROOM_MAX;
	if (fits)
		room_used += size;
	if (fits && size == SMALL && kept) {
		a = kept;
		kept = a->next;
		nkept--;
	}
	pthread_mutex_unlock(&lock);
	if (a || !fits)
		return a;
	a = calloc(1, sizeof(*a));
	if (!a || rgpu_transport_bo_create(s->transport, size, &a->bo)) {
		free(a);
		pthread_mutex_lock(&lock);
		room_used -= size;
		pthread_mutex_unlock(&lock);
		return NULL;
	}
	a->session = s;
	return a;
}

static void land(void *arg, bool came)
{
	struct arrival *a = arg, **at = &coming;

	pthread_mutex_lock(&lock);
	while (*at != a)
		at = &(*at)->next;
	*at = a->next;
	for (uint64_t y = 0; came && y < a->rows.height; y++)
		memcpy(a->rows.to + y * a->rows.to_pitch, (uint8_t *)a->bo.base + y * a->rows.pitch, a->rows.width);
	if (!came) {
		a->next = lost;
		lost = a;
	}
	pthread_mutex_unlock(&lock);
	if (came)
		buffer_free(a);
}

/* Behind the last byte that it is put to. */
static uint64_t end_of(const struct rows *r)
{
	return (uint64_t)r->to + (r->height - 1) * r->to_pitch + r->width;
}

void arrival_forget(uint64_t start, uint64_t bytes)
{
	pthread_mutex_lock(&lock);
	for (struct arrival *a = coming; a; a = a->next)
		if ((uint64_t)a->rows.to - start < bytes)
			a->rows.height = 0;
	pthread_mutex_unlock(&lock);
}

static void note(struct arrival *a)
{
	pthread_mutex_lock(&lock);
	a->next = coming;
	coming = a;
	pthread_mutex_unlock(&lock);
}

bool arrival_copy(struct rgpu_call *c, const struct rows *rows, struct remote src, uint64_t stream, int *r)
{
	uint64_t bytes = (rows->height - 1) * rows->pitch + rows->width, id;
	struct arrival *a;
	struct pinned m;

	if (!pinned_find(rows->to, &m) || end_of(rows) - m.range.start > m.range.bytes)
		return false;
	reclaim(c->session);
	a = buffer_new(c->session, bytes);
	if (!a)
		return false;
	a->rows = *rows;
	*r = copy_down_into(c, &a->bo, src, bytes, stream);
	note(a);
	if (!*r) {
		c->op = OP_HOST_FUNC;
		*r = hostfunc_announce(c, &(struct hostfunc){.land = land, .data = a, .once = true}, &id);
	}
	if (!*r) {
		*r = rpc_HOST_FUNC(c, stream, id, false);
		if (c->sent)
			return true;
		hostfunc_withdraw(id);
	}
	land(a, false);
	return true;
}
