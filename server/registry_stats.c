// SPDX-License-Identifier: MIT
/* STATS: what all sessions use, and which of them are the asker's. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/clock.h"
#include "server/registry_int.h"

#define STATS_MS 1000 /* for one worker; one that is busy joining a device is passed over */
#define ALL_MS	 4000 /* for all */
#define LEAST_MS 20   /* … but each has so much */

struct picture {
	const struct asker *a;
	struct rgpu_stats_device dev[DEVICES_MAX];
	struct rgpu_stats_session *ses;
	unsigned nses, room;
	unsigned ndev;
};

/* One session's answer into the picture: its memory into the devices', itself only when it is the asker's. */
static int add(void *arg, struct ses *s, const struct wmsg *m)
{
	struct picture *p = arg;

	for (unsigned i = 0; i < m->stats.ndevices && i < 64; i++) {
		uint32_t d = m->stats.device[i];
		struct rgpu_stats_session *e;

		if (d >= p->ndev)
			continue;
		p->dev[d].mem_used += m->stats.mem[i];
		p->dev[d].sessions++;
		if (p->a && strcmp(s->ident.key_id, p->a->key_id))
			continue;
		if (p->nses == p->room) {
			p->room = p->room ? 2 * p->room : 16;
			e = reallocarray(p->ses, p->room, sizeof(*e));
			if (!e)
				return -ENOMEM;
			p->ses = e;
		}
		e = &p->ses[p->nses++];
		*e = (struct rgpu_stats_session){
			.uid = s->ident.uid,
			.pid = s->ident.pid,
			.device = d,
			.mem_used = m->stats.mem[i],
			.records = m->stats.records,
			.fences = m->stats.fences,
		};
		memcpy(e->sid, s->sid, sizeof(e->sid));
		memcpy(e->comm, s->ident.comm, sizeof(e->comm));
	}
	return 0;
}

static ssize_t render(const struct picture *p, uint8_t **out)
{
	/* A frame's worth at most: 14,000 sessions. */
	unsigned max = (RGPU_FRAME_MAX - sizeof(struct rgpu_stats) - sizeof(p->dev)) / sizeof(*p->ses);
	struct rgpu_stats h = {.ndevices = p->ndev, .nsessions = p->nses < max ? p->nses : max};
	size_t devs = p->ndev * sizeof(*p->dev), sess = h.nsessions * sizeof(*p->ses);
	uint8_t *buf = malloc(sizeof(h) + devs + sess);

	if (!buf)
		return -ENOMEM;
	memcpy(buf, &h, sizeof(h));
	memcpy(buf + sizeof(h), p->dev, devs);
	if (sess)
		memcpy(buf + sizeof(h) + devs, p->ses, sess);
	*out = buf;
	return sizeof(h) + devs + sess;
}

/* ThreadSanitizer sees no pthread_mutex_clocklock(). */
bool registry_lock_within(struct ses *s, int ms)
{
	int64_t deadline = rgpu_deadline(ms);

	while (pthread_mutex_trylock(&s->lock))
		if (!rgpu_ms_left(deadline) || usleep(500))
			return false;
	return true;
}

static int patience(int64_t deadline)
{
	int left = rgpu_ms_left(deadline);

	return left < LEAST_MS ? LEAST_MS : left > STATS_MS ? STATS_MS : left;
}

int registry_each(struct registry *r, int (*visit)(void *arg, struct ses *s, const struct wmsg *m), void *arg)
{
	unsigned room = r->most;
	struct ses **ses = calloc(room, sizeof(*ses));
	struct wmsg *m = calloc(1, sizeof(*m));
	char why[RGPU_WHY_MAX];
	int64_t deadline = rgpu_deadline(ALL_MS);
	int err = -ENOMEM;
	unsigned found;

	if (ses && m) {
		err = 0;
		found = registry_watch(r, NULL, ses, room);
		for (unsigned i = 0; i < found; i++) {
			/* One that ended meanwhile, or hangs, uses nothing that could be told. */
			if (!err && registry_lock_within(ses[i], patience(deadline))) {
				m->type = W_STATS;
				if (ses[i]->state == SES_LIVE && !registry_ask(ses[i], m, patience(deadline), why))
					err = visit(arg, ses[i], m);
				pthread_mutex_unlock(&ses[i]->lock);
			}
			registry_put(ses[i]);
		}
	}
	free(ses);
	free(m);
	return err;
}

ssize_t registry_stats(struct registry *r, const struct asker *a, uint8_t **out)
{
	struct picture p = {.a = a, .ndev = r->devices->n};
	uint32_t busy[DEVICES_MAX];
	ssize_t n;

	registry_busy(r, busy);
	for (unsigned i = 0; i < p.ndev; i++) {
		p.dev[i].mem_total = r->devices->mem_total[i];
		p.dev[i].utilization = busy[i];
	}
	n = registry_each(r, add, &p);
	if (!n)
		n = render(&p, out);
	free(p.ses);
	return n;
}
