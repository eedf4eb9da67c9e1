// SPDX-License-Identifier: MIT
/*
 * Linked into a server that does one record wrong, so that tests/api/outputs.py sees which tests notice.
 *
 * RGPU_TEST_SPOIL="OP skip BYTES": the record is not run, and answered by that many zeros. "OP give BYTES OFFSET:MASK …": it is
 * run, and in its answer each of these bytes is XORed with its mask, what lies behind the first BYTES with 1, and what comes by
 * RECV segments, too.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "server/dispatch.h"

#define MARKS 64

static struct {
	bool on, skip;
	uint16_t op;
	uint32_t fixed;
	unsigned n;
	struct {
		uint32_t at;
		uint8_t mask;
	} mark[MARKS];
} spoil;
static srv_fn real;

/* Calls whose answer comes later. */
static struct late {
	struct late *next;
	struct srv_call *c;
	int32_t (*ready)(struct srv_call *c);
} * lates;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

srv_fn __real_srv_find(uint16_t op);
srv_fn __wrap_srv_find(uint16_t op);

static __attribute__((constructor)) void begin(void)
{
	const char *s = getenv("RGPU_TEST_SPOIL");
	char how[8];
	int len;

	if (!s)
		return;
	if (sscanf(s, "%hx %7s %u%n", &spoil.op, how, &spoil.fixed, &len) != 3)
		abort();
	spoil.on = true;
	spoil.skip = !strcmp(how, "skip");
	for (s += len; spoil.n < MARKS && sscanf(s, " %u:%hhu%n", &spoil.mark[spoil.n].at, &spoil.mark[spoil.n].mask, &len) == 2;
	     s += len)
		spoil.n++;
	real = __real_srv_find(spoil.op);
}

static void spoil_answer(struct srv_call *c)
{
	for (unsigned i = 0; i < spoil.n; i++)
		if (spoil.mark[i].at < c->out_len)
			c->out[spoil.mark[i].at] ^= spoil.mark[i].mask;
	for (uint32_t i = spoil.fixed; i < c->out_len; i++)
		c->out[i] ^= 1;
	for (uint64_t i = 0; c->recv && i < c->recv_used; i++)
		c->recv[i] ^= 1;
}

static int32_t ready(struct srv_call *c)
{
	struct late *l, **at = &lates;
	int32_t status;

	pthread_mutex_lock(&lock);
	while ((*at)->c != c)
		at = &(*at)->next;
	l = *at;
	pthread_mutex_unlock(&lock);
	status = l->ready(c);
	if (status == SRV_PENDING)
		return status;
	spoil_answer(c);
	pthread_mutex_lock(&lock);
	for (at = &lates; *at != l; at = &(*at)->next)
		;
	*at = l->next;
	pthread_mutex_unlock(&lock);
	free(l);
	return status;
}

static void spoiled(struct srv_call *c)
{
	struct late *l;

	if (spoil.skip) {
		memset(c->out, 0, spoil.fixed);
		c->out_len = spoil.fixed;
		return;
	}
	real(c);
	if (!c->ready) {
		spoil_answer(c);
		return;
	}
	l = malloc(sizeof(*l));
	if (!l)
		abort();
	pthread_mutex_lock(&lock);
	*l = (struct late){lates, c, c->ready};
	lates = l;
	pthread_mutex_unlock(&lock);
	c->ready = ready;
}

srv_fn __wrap_srv_find(uint16_t op)
{
	return spoil.on && op == spoil.op && real ? spoiled : __real_srv_find(op);
}
