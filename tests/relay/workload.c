// SPDX-License-Identifier: MIT
/* What a program of the relay's tests does, and what must hold afterwards whatever happened on the way. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/relay/workload.h"

#define RECORDS 6 /* of a round */
#define REPLIES 5 /* of which one is quiet */
#define BODY	3000

struct lane {
	struct app *app;
	struct work *w;
	unsigned ch;
};

static void wrong(struct work *w, const char *what, unsigned ch, unsigned round)
{
	printf("# wrong: %s, channel %u, round %u\n", what, ch, round);
	__atomic_add_fetch(&w->wrong, 1, __ATOMIC_RELAXED);
}

static bool lands(const uint8_t *p, uint64_t seq, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		if (p[i] != fake_byte(seq, i))
			return false;
	return true;
}

static int one_round(struct lane *l, unsigned round, uint8_t *body)
{
	struct app *app = l->app;
	uint64_t n = l->w->bulk, up = 0, quiet = n, fenced = 2 * n;
	uint8_t *bo = app->bo[l->ch + 1];
	struct rgpu_seg send = {l->ch + 1, RGPU_SEG_SEND, up, n}, recv[2] = {{l->ch + 1, RGPU_SEG_RECV, quiet, n}};
	uint32_t arg = round * 7 + 1, len = BODY;
	uint64_t seq = app->ch[l->ch].seq;
	struct rgpu_rep rep;
	int err;

	/* The slot is free once the record that sent from it is acknowledged. */
	err = seq ? app_acked(app, l->ch, seq - 4) : 0;
	for (uint64_t i = 0; i < n; i++)
		bo[up + i] = fake_byte(round + 1000 * l->ch, i);
	memset(bo + quiet, 0, 2 * n);
	err = err ? err : app_post(app, l->ch, FAKE_NOP, 0, NULL, 0, NULL, 0);
	err = err ? err : app_post(app, l->ch, FAKE_H2D, RGPU_REC_FENCE, &send, 1, NULL, 0);
	err = err ? err : app_post(app, l->ch, FAKE_D2H, 0, recv, 1, NULL, 0);
	recv[0] = (struct rgpu_seg){l->ch + 1, RGPU_SEG_RECV, fenced, n / 3};
	recv[1] = (struct rgpu_seg){l->ch + 1, RGPU_SEG_RECV, fenced + n / 3, n - n / 3};
	err = err ? err : app_post(app, l->ch, FAKE_D2H, RGPU_REC_FENCE, recv, 2, NULL, 0);
	err = err ? err : app_post(app, l->ch, FAKE_NOP, RGPU_REC_FENCE, NULL, 0, &arg, 4);
	err = err ? err : app_post(app, l->ch, FAKE_BODY, RGPU_REC_FENCE, NULL, 0, &len, 4);
	for (unsigned i = 0; i < 4 && !err; i++) {
		static const uint8_t record[] = {2, 4, 5, 6};

		err = app_reply(app, l->ch, &rep, body);
		if (err)
			return err;
		if (rep.seq != seq + record[i])
			wrong(l->w, "reply to another record", l->ch, round);
		if (i == 0) {
			uint64_t hash = fake_hash(bo + up, n);

			if (rep.body_len != 8 || memcmp(body, &hash, 8))
				wrong(l->w, "uploaded bytes", l->ch, round);
		} else if (i == 1) {
			if (rep.bulk != n || !lands(bo + fenced, rep.seq, n))
				wrong(l->w, "downloaded bytes", l->ch, round);
			if (!lands(bo + quiet, seq + 3, n))
				wrong(l->w, "quietly downloaded bytes", l->ch, round);
		} else if (i == 2 && rep.status != (int)arg) {
			wrong(l->w, "status", l->ch, round);
		} else if (i == 3 && (rep.body_len != BODY || !lands(body, rep.seq, BODY))) {
			wrong(l->w, "body", l->ch, round);
		}
	}
	return err;
}

static void *run_lane(void *arg)
{
	struct lane *l = arg;
	uint8_t *body = malloc(RGPU_REP_MAX);
	int err = 0;

	for (unsigned i = 0; i < l->w->rounds && !err; i++)
		err = one_round(l, i, body);
	if (!err)
		err = app_acked(l->app, l->ch, l->app->ch[l->ch].seq);
	if (err)
		__atomic_store_n(&l->w->reason, err, __ATOMIC_RELAXED);
	free(body);
	return NULL;
}

void work_run(struct app *app, struct work *w)
{
	pthread_t t[APP_CHANNELS];
	struct lane l[APP_CHANNELS];

	for (unsigned i = 0; i < app->nchannels; i++) {
		l[i] = (struct lane){app, w, i};
		pthread_create(&t[i], NULL, run_lane, &l[i]);
	}
	for (unsigned i = 0; i < app->nchannels; i++)
		pthread_join(t[i], NULL);
}

static uint64_t load64(const __u64 *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static uint32_t load32(const __u32 *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

/* The relay's last stores come after those that the program waited for. */
static bool numbers(const struct app_chan *c, uint64_t records, uint64_t replies)
{
	for (int i = 0; i < 5000; i++) {
		if (load64(&c->p->acked) == records && load64(&c->p->delivered) == replies &&
		    load64(&c->p->published) == replies && load32(&c->p->sq_head) == c->tail &&
		    load32(&c->p->cq_tail) == c->head && load32(&c->p->cq_next) == c->head)
			return true;
		usleep(1000);
	}
	return false;
}

const char *work_check(struct app *app, const struct work *w)
{
	uint64_t next[APP_CHANNELS] = {0}, records = (uint64_t)w->rounds * RECORDS, replies = (uint64_t)w->rounds * REPLIES;
	struct fake *f = app->server;
	const char *bad = "";

	if (w->reason)
		return app->why;
	if (w->wrong)
		return "wrong answers";
	pthread_mutex_lock(&f->lock);
	for (unsigned i = 0; i < f->nlog; i++)
		if (f->log[i].seq != ++next[f->log[i].channel])
			bad = "executed out of order, or twice";
	for (unsigned i = 0; i < app->nchannels; i++) {
		struct app_chan *c = &app->ch[i];

		if (next[i] != records)
			bad = "not everything was executed";
		if (!numbers(c, records, replies))
			bad = "the numbers of the P page";
	}
	if (f->again)
		bad = "records were sent again that the server had";
	if (f->trouble[0])
		bad = f->trouble;
	pthread_mutex_unlock(&f->lock);
	return bad;
}
