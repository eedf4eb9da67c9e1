// SPDX-License-Identifier: MIT
/* The session's order: which stamps were received and have run, and the wait until all up to one have. */
#include <errno.h>
#include <stdlib.h>
#include "server/stamps.h"

#define SPAN_FIRST 4096u

static bool bit(const uint64_t *map, uint64_t span, uint64_t n)
{
	n &= span - 1;
	return map[n / 64] >> (n % 64) & 1;
}

static void set(uint64_t *map, uint64_t span, uint64_t n)
{
	n &= span - 1;
	map[n / 64] |= 1ull << (n % 64);
}

static void clear(uint64_t *map, uint64_t span, uint64_t n)
{
	n &= span - 1;
	map[n / 64] &= ~(1ull << (n % 64));
}

int stamps_init(struct stamps *s)
{
	*s = (struct stamps){.span = SPAN_FIRST};
	s->received = calloc(s->span / 64, 8);
	s->run = calloc(s->span / 64, 8);
	if (!s->received || !s->run) {
		free(s->received);
		free(s->run);
		return -ENOMEM;
	}
	pthread_mutex_init(&s->lock, NULL);
	return 0;
}

void stamps_destroy(struct stamps *s)
{
	pthread_mutex_destroy(&s->lock);
	free(s->received);
	free(s->run);
}

void stamps_waiter_init(struct stamps_waiter *w)
{
	*w = (struct stamps_waiter){0};
	pthread_cond_init(&w->wake, NULL);
}

void stamps_waiter_destroy(struct stamps_waiter *w)
{
	pthread_cond_destroy(&w->wake);
}

/* Makes room for stamps up to prefix + @distance. */
static int grow(struct stamps *s, uint64_t distance)
{
	uint64_t span = s->span, prefix = s->prefix, *received, *run;

	while (span < distance)
		span *= 2;
	received = calloc(span / 64, 8);
	run = calloc(span / 64, 8);
	if (!received || !run) {
		free(received);
		free(run);
		return -ENOMEM;
	}
	for (uint64_t n = prefix + 1; n <= prefix + s->span; n++) {
		if (bit(s->received, s->span, n))
			set(received, span, n);
		if (bit(s->run, s->span, n))
			set(run, span, n);
	}
	free(s->received);
	free(s->run);
	s->received = received;
	s->run = run;
	s->span = span;
	return 0;
}

int stamps_receive(struct stamps *s, uint64_t stamp)
{
	uint64_t prefix;
	int rc = 0;

	pthread_mutex_lock(&s->lock);
	prefix = s->prefix;
	if (stamp <= prefix)
		rc = -EEXIST;
	else if (stamp - prefix > STAMPS_SPAN_MAX)
		rc = -ERANGE;
	else if (stamp - prefix > s->span)
		rc = grow(s, stamp - prefix);
	if (!rc && bit(s->received, s->span, stamp))
		rc = -EEXIST;
	if (!rc)
		set(s->received, s->span, stamp);
	pthread_mutex_unlock(&s->lock);
	return rc;
}

static void wake_reached(struct stamps *s, uint64_t prefix)
{
	struct stamps_waiter **at = &s->waiters, *w;

	while ((w = *at)) {
		if (w->after > prefix && !s->broken) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		w->woken = true;
		pthread_cond_signal(&w->wake);
	}
}

void stamps_done(struct stamps *s, uint64_t stamp)
{
	uint64_t prefix;

	pthread_mutex_lock(&s->lock);
	set(s->run, s->span, stamp);
	prefix = s->prefix;
	if (stamp == prefix + 1) {
		while (bit(s->run, s->span, prefix + 1)) {
			prefix++;
			clear(s->run, s->span, prefix);
			clear(s->received, s->span, prefix);
		}
		atomic_store_explicit(&s->prefix, prefix, memory_order_release);
		wake_reached(s, prefix);
	}
	pthread_mutex_unlock(&s->lock);
}

bool stamps_wait(struct stamps *s, struct stamps_waiter *w, uint64_t after)
{
	bool go;

	if (stamps_reached(s, after))
		return true;
	pthread_mutex_lock(&s->lock);
	if (after > s->prefix && !s->broken) {
		w->after = after;
		w->woken = false;
		w->next = s->waiters;
		s->waiters = w;
		while (!w->woken)
			pthread_cond_wait(&w->wake, &s->lock);
	}
	go = after <= s->prefix;
	pthread_mutex_unlock(&s->lock);
	return go;
}

uint64_t stamps_missing(struct stamps *s)
{
	uint64_t upto = 0, missing = 0;

	pthread_mutex_lock(&s->lock);
	for (struct stamps_waiter *w = s->waiters; w; w = w->next)
		if (w->after > upto)
			upto = w->after;
	for (uint64_t n = s->prefix + 1; n <= upto && !missing; n++)
		if (n - s->prefix > s->span || !bit(s->received, s->span, n))
			missing = n;
	pthread_mutex_unlock(&s->lock);
	return missing;
}

void stamps_break(struct stamps *s)
{
	pthread_mutex_lock(&s->lock);
	s->broken = true;
	wake_reached(s, s->prefix);
	pthread_mutex_unlock(&s->lock);
}
