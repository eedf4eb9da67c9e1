// SPDX-License-Identifier: MIT
/* A program for the relay's tests: rings and buffer objects in plain memory, records in, replies out. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include "tests/relay/fake_app.h"

static int channel_map(void *arg, uint32_t ch, struct rgpu_relay_map *out)
{
	struct app *app = arg;
	struct app_chan *c = &app->ch[ch];

	if (ch >= app->nchannels || !c->alive)
		return -ENOENT;
	*out = (struct rgpu_relay_map){c->a, c->p, c->sq, c->cq, c->sq_size, c->cq_size};
	return 0;
}

static void channel_unmap(void *arg, uint32_t ch, const struct rgpu_relay_map *m)
{
	(void)arg;
	(void)ch;
	(void)m;
}

static bool channel_alive(void *arg, uint32_t ch)
{
	return __atomic_load_n(&((struct app *)arg)->ch[ch].alive, __ATOMIC_SEQ_CST);
}

static uint32_t nchannels(void *arg)
{
	return ((struct app *)arg)->nchannels;
}

static int bo_map(void *arg, uint32_t handle, uint8_t **base, uint64_t *bytes)
{
	struct app *app = arg;
	int maps;

	if (!handle || (handle > APP_BOS && handle > app->handles) || !app->bo[(handle - 1) % APP_BOS + 1])
		return -ENOENT;
	*base = app->bo[(handle - 1) % APP_BOS + 1];
	*bytes = APP_BO_BYTES;
	maps = __atomic_add_fetch(&app->maps, 1, __ATOMIC_SEQ_CST);
	if (maps > app->most_maps)
		app->most_maps = maps;
	return 0;
}

static void bo_unmap(void *arg, uint32_t handle, uint8_t *base, uint64_t bytes)
{
	(void)handle;
	(void)base;
	(void)bytes;
	__atomic_sub_fetch(&((struct app *)arg)->maps, 1, __ATOMIC_SEQ_CST);
}

static void kick(void *arg, uint32_t ch)
{
	struct app *app = arg;

	pthread_mutex_lock(&app->lock);
	app->rung[ch] = true;
	pthread_cond_broadcast(&app->bell);
	pthread_mutex_unlock(&app->lock);
}

static int kicked(void *arg, uint64_t bits[RGPU_CHANNELS_MAX / 64])
{
	struct app *app = arg;
	uint64_t count;

	(void)!read(app->event_fd, &count, sizeof(count));
	pthread_mutex_lock(&app->lock);
	memcpy(bits, app->kicked, sizeof(app->kicked));
	memset(app->kicked, 0, sizeof(app->kicked));
	pthread_mutex_unlock(&app->lock);
	return 0;
}

static int lease(void *arg, struct rgpu_lease *out, char why[RGPU_WHY_MAX])
{
	return fake_lease(((struct app *)arg)->server, out, why);
}

static void failed(void *arg, int reason, const char *why)
{
	struct app *app = arg;

	pthread_mutex_lock(&app->lock);
	strcpy(app->why, why);
	__atomic_store_n(&app->reason, reason, __ATOMIC_SEQ_CST);
	pthread_cond_broadcast(&app->bell);
	pthread_mutex_unlock(&app->lock);
}

static const struct rgpu_relay_ops outside_ops = {
	.channel_map = channel_map,
	.channel_unmap = channel_unmap,
	.channel_alive = channel_alive,
	.nchannels = nchannels,
	.bo_map = bo_map,
	.bo_unmap = bo_unmap,
	.kick = kick,
	.kicked = kicked,
	.lease = lease,
	.failed = failed,
};

static const struct rgpu_relay_ops inside_ops = {
	.channel_map = channel_map,
	.channel_unmap = channel_unmap,
	.bo_map = bo_map,
	.bo_unmap = bo_unmap,
	.lease = lease,
	.failed = failed,
};

static void new_relay(struct app *app)
{
	struct rgpu_addr a = {.host = "127.0.0.1", .port = app->server->port};

	app->relay = rgpu_relay_new(app->inside ? &inside_ops : &outside_ops, app, &a, app->inside ? -1 : app->event_fd);
}

void app_start(struct app *app, struct fake *server, bool inside, unsigned n, uint32_t sq_size, uint32_t cq_size)
{
	char why[RGPU_WHY_MAX];
	struct rgpu_lease l;
	int err;

	memset(app, 0, sizeof(*app));
	pthread_mutex_init(&app->lock, NULL);
	pthread_cond_init(&app->bell, NULL);
	app->server = server;
	app->inside = inside;
	app->nchannels = n;
	app->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	for (unsigned i = 0; i < n; i++) {
		struct app_chan *c = &app->ch[i];

		c->a = calloc(1, 4096);
		c->p = calloc(1, 4096);
		c->sq = malloc(sq_size);
		c->cq = malloc(cq_size);
		c->sq_size = sq_size;
		c->cq_size = cq_size;
		c->alive = true;
	}
	for (unsigned i = 1; i <= APP_BOS; i++)
		app->bo[i] = calloc(1, APP_BO_BYTES);
	new_relay(app);
	fake_lease(server, &l, why);
	err = rgpu_relay_attach(app->relay, &l, why);
	/* A script may cut the very first connection: then the thread begins with another lease. */
	if (err && !server->cuts) {
		fprintf(stderr, "attach: %s\n", why);
		abort();
	}
	rgpu_relay_run(app->relay, 5000);
	for (unsigned i = 0; i < n; i++)
		if (inside)
			rgpu_relay_open(app->relay, i);
		else
			app_kick(app, i); /* as CHANNEL_CREATE does */
}

void app_restart(struct app *app)
{
	new_relay(app);
	rgpu_relay_run(app->relay, 5000);
	for (unsigned i = 0; i < app->nchannels; i++)
		app_kick(app, i);
}

void app_stop(struct app *app)
{
	rgpu_relay_free(app->relay, false);
	for (unsigned i = 0; i < app->nchannels; i++) {
		free(app->ch[i].a);
		free(app->ch[i].p);
		free(app->ch[i].sq);
		free(app->ch[i].cq);
	}
	for (unsigned i = 1; i <= APP_BOS; i++)
		free(app->bo[i]);
	close(app->event_fd);
	pthread_mutex_destroy(&app->lock);
	pthread_cond_destroy(&app->bell);
}

void app_kick(struct app *app, unsigned ch)
{
	uint64_t one = 1;

	if (app->inside) {
		rgpu_relay_kick(app->relay, ch);
		return;
	}
	pthread_mutex_lock(&app->lock);
	app->kicked[0] |= 1ull << ch;
	pthread_mutex_unlock(&app->lock);
	(void)!write(app->event_fd, &one, sizeof(one));
}

static int reason(struct app *app)
{
	return __atomic_load_n(&app->reason, __ATOMIC_SEQ_CST);
}

static void sleep_on(struct app *app, unsigned ch)
{
	struct timespec t;

	if (app->inside) {
		rgpu_relay_wait(app->relay, ch, 30000);
		return;
	}
	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += 30;
	pthread_mutex_lock(&app->lock);
	while (!app->rung[ch] && !app->reason)
		if (pthread_cond_timedwait(&app->bell, &app->lock, &t))
			break;
	app->rung[ch] = false;
	pthread_mutex_unlock(&app->lock);
}

enum wish { ROOM, REPLY, ACKED, PUBLISHED };

static bool holds(struct app_chan *c, enum wish w, uint64_t v)
{
	switch (w) {
	case ROOM:
		return c->sq_size - (c->tail - __atomic_load_n(&c->p->sq_head, __ATOMIC_ACQUIRE)) >= v;
	case REPLY:
		return __atomic_load_n(&c->p->cq_tail, __ATOMIC_ACQUIRE) != c->head;
	case ACKED:
		return __atomic_load_n(&c->p->acked, __ATOMIC_ACQUIRE) >= v;
	default:
		return __atomic_load_n(&c->p->published, __ATOMIC_ACQUIRE) >= v;
	}
}

static int wait_for(struct app *app, unsigned ch, enum wish w, uint64_t v)
{
	struct app_chan *c = &app->ch[ch];
	time_t end = time(NULL) + 60;

	while (!holds(c, w, v)) {
		__atomic_store_n(&c->a->cq_event, RGPU_EVENT_ASLEEP, __ATOMIC_SEQ_CST);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (!holds(c, w, v) && !reason(app))
			sleep_on(app, ch);
		__atomic_store_n(&c->a->cq_event, RGPU_EVENT_AWAKE, __ATOMIC_SEQ_CST);
		if (reason(app) && !holds(c, w, v))
			return reason(app);
		if (time(NULL) > end) {
			fprintf(stderr, "stuck: channel %u, wish %d for %llu\n", ch, w, (unsigned long long)v);
			abort();
		}
	}
	return 0;
}

int app_post(struct app *app, unsigned ch, uint16_t op, uint8_t flags, const struct rgpu_seg *seg, unsigned nseg,
	     const void *body, uint32_t body_len)
{
	struct app_chan *c = &app->ch[ch];
	struct rgpu_rec rec = {.op = op, .flags = flags, .nseg = nseg};
	uint32_t at = c->tail & (c->sq_size - 1), to_end = c->sq_size - at;
	int err;

	rec.len = (sizeof(rec) + nseg * sizeof(*seg) + body_len + 15) & ~15u;
	err = wait_for(app, ch, ROOM, rec.len > to_end ? rec.len + to_end : rec.len);
	if (err)
		return err;
	if (rec.len > to_end) {
		struct rgpu_rec pad = {.len = to_end, .flags = RGPU_REC_PAD};

		memcpy(c->sq + at, &pad, 16);
		c->tail += to_end;
		at = 0;
	}
	rec.seq = ++c->seq;
	memcpy(c->sq + at, &rec, sizeof(rec));
	if (nseg)
		memcpy(c->sq + at + sizeof(rec), seg, nseg * sizeof(*seg));
	if (body_len)
		memcpy(c->sq + at + sizeof(rec) + nseg * sizeof(*seg), body, body_len);
	c->tail += rec.len;
	__atomic_store_n(&c->a->sq_tail, c->tail, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&c->p->sq_event, __ATOMIC_RELAXED) == RGPU_EVENT_ASLEEP)
		app_kick(app, ch);
	return 0;
}

int app_reply(struct app *app, unsigned ch, struct rgpu_rep *rep, uint8_t body[RGPU_REP_MAX])
{
	struct app_chan *c = &app->ch[ch];

	for (;;) {
		uint32_t at = c->head & (c->cq_size - 1);
		int err = wait_for(app, ch, REPLY, 0);

		if (err)
			return err;
		memset(rep, 0, sizeof(*rep));
		memcpy(rep, c->cq + at, c->cq_size - at < sizeof(*rep) ? c->cq_size - at : sizeof(*rep));
		if (!(rep->flags & RGPU_REP_PAD))
			memcpy(body, c->cq + at + sizeof(*rep), rep->body_len);
		c->head += rep->len;
		__atomic_store_n(&c->a->cq_head, c->head, __ATOMIC_RELEASE);
		if (!(rep->flags & RGPU_REP_PAD))
			return 0;
	}
}

int app_acked(struct app *app, unsigned ch, uint64_t seq)
{
	return wait_for(app, ch, ACKED, seq);
}

int app_published(struct app *app, unsigned ch, uint64_t rseq)
{
	return wait_for(app, ch, PUBLISHED, rseq);
}

int app_failed(struct app *app)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += 20;
	pthread_mutex_lock(&app->lock);
	while (!app->reason)
		if (pthread_cond_timedwait(&app->bell, &app->lock, &t))
			break;
	pthread_mutex_unlock(&app->lock);
	return reason(app);
}
