// SPDX-License-Identifier: MIT
/* The worker's side of kept blocks. A thread offers what was uploaded, so that neither the link nor a lane waits for that. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include "rgpu_ops.h"
#include "lib/clock.h"
#include "server/cache_msg.h"
#include "server/lane.h"

#define PATIENCE 3 /* seconds; a listener that does not answer is done without: nobody reads the connection meanwhile */
#define DRAIN_MS 1000

void cache_init(struct cache *c)
{
	c->fd = -1;
	c->tail = &c->head;
	pthread_mutex_init(&c->talk, NULL);
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->wake, NULL);
}

static void batch_free(struct batch *b)
{
	free(b->payload);
	free(b);
}

void cache_destroy(struct cache *c)
{
	pthread_mutex_lock(&c->lock);
	c->stop = true;
	pthread_cond_signal(&c->wake);
	pthread_mutex_unlock(&c->lock);
	if (c->running)
		pthread_join(c->thread, NULL);
	while (c->head) {
		struct batch *b = c->head;

		c->head = b->next;
		batch_free(b);
	}
	if (c->fd >= 0)
		close(c->fd);
	pthread_cond_destroy(&c->wake);
	pthread_mutex_destroy(&c->lock);
	pthread_mutex_destroy(&c->talk);
}

/* With talk. An answer that is late would be taken for the next one's. */
static void hang_up(struct cache *c)
{
	c->on = false;
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

/* With talk. @more: bytes behind the question. */
static bool ask(struct cache *c, const struct cache_ask *q, const void *more, struct cache_answer *a)
{
	if (c->fd >= 0 && cache_write(c->fd, q, sizeof(*q)) && (!more || cache_write(c->fd, more, q->len)) &&
	    cache_read(c->fd, a, sizeof(*a)))
		return true;
	hang_up(c);
	return false;
}

bool cache_get(struct cache *c, const struct rgpu_ref *ref, void *to)
{
	struct cache_ask q = {.what = CACHE_GET, .len = ref->len, .hint = ref->hint};
	struct cache_answer a = {0};
	bool got = false;

	memcpy(q.sha256, ref->sha256, sizeof(q.sha256));
	pthread_mutex_lock(&c->talk);
	if (ask(c, &q, NULL, &a) && a.yes) {
		got = a.len == ref->len && cache_read(c->fd, to, a.len);
		if (!got)
			hang_up(c);
	}
	pthread_mutex_unlock(&c->talk);
	if (got) {
		c->hits++;
		c->saved += ref->len;
	} else {
		c->misses++;
	}
	return got;
}

uint64_t *cache_list(struct cache *c, unsigned *n)
{
	struct cache_ask q = {.what = CACHE_LIST};
	struct cache_answer a = {0};
	uint64_t *list = NULL;

	*n = 0;
	pthread_mutex_lock(&c->talk);
	if (ask(c, &q, NULL, &a) && a.len) {
		list = malloc(a.len);
		if (!list || !cache_read(c->fd, list, a.len)) {
			free(list);
			list = NULL;
			hang_up(c);
		}
	}
	pthread_mutex_unlock(&c->talk);
	if (list)
		*n = a.len / sizeof(*list);
	return list;
}

/* One block of a payload. */
static void offer(struct worker *w, const uint8_t *bytes, uint32_t len, bool at_once)
{
	struct cache *c = &w->cache;
	struct cache_ask q = {.what = CACHE_WANTS, .len = len, .hint = rgpu_hint(bytes, len), .at_once = at_once};
	struct cache_answer a = {0};
	bool kept = false;

	pthread_mutex_lock(&c->talk);
	if (ask(c, &q, NULL, &a) && a.yes) {
		q.what = CACHE_PUT;
		kept = ask(c, &q, bytes, &a) && a.yes;
	}
	pthread_mutex_unlock(&c->talk);
	if (kept)
		output_known(w, &a.hint, 1, false);
}

/* Images of programs come again with the program. */
static bool is_image(uint16_t op)
{
	return op == OP_LOAD_DATA || op == OP_LINK_DATA;
}

/* The blocks of a payload, as the client cut it into frames: by segments. */
static void offer_all(struct worker *w, const struct batch *b)
{
	const struct rgpu_rec *rec = (const struct rgpu_rec *)b->bytes;
	const struct rgpu_seg *seg = (const struct rgpu_seg *)(rec + 1);
	uint64_t at = 0;

	for (unsigned i = 0; i < rec->nseg; i++)
		for (uint64_t left = seg[i].dir == RGPU_SEG_SEND ? seg[i].len : 0, n; left; left -= n, at += n) {
			n = left < RGPU_FRAME_BULK ? left : RGPU_FRAME_BULK;
			if (n >= RGPU_BLOCK_MIN && !(b->named >> at / CACHE_GRAIN & 1))
				offer(w, b->payload + at, n, is_image(rec->op));
		}
}

static void *cache_main(void *arg)
{
	struct worker *w = arg;
	struct cache *c = &w->cache;

	pthread_mutex_lock(&c->lock);
	while (!c->stop) {
		struct batch *b = c->head;

		if (!b) {
			pthread_cond_wait(&c->wake, &c->lock);
			continue;
		}
		c->head = b->next;
		if (!c->head)
			c->tail = &c->head;
		pthread_mutex_unlock(&c->lock);
		if (c->on)
			offer_all(w, b);
		pthread_mutex_lock(&c->lock);
		c->queued -= b->payload_len;
		batch_free(b);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

void cache_use(struct worker *w, int fd)
{
	struct timeval patience = {.tv_sec = PATIENCE};
	struct cache *c = &w->cache;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	pthread_mutex_lock(&c->talk);
	hang_up(c);
	c->fd = fd;
	if (!c->running)
		c->running = !pthread_create(&c->thread, NULL, cache_main, w);
	c->on = c->running;
	pthread_mutex_unlock(&c->talk);
}

bool cache_offer(struct worker *w, struct batch *b)
{
	struct cache *c = &w->cache;
	bool take = c->on && b->payload_len >= RGPU_BLOCK_MIN;

	if (!take)
		return false;
	pthread_mutex_lock(&c->lock);
	take = c->queued + b->payload_len <= CACHE_QUEUE_MAX && !c->stop;
	if (take) {
		c->queued += b->payload_len;
		b->next = NULL;
		*c->tail = b;
		c->tail = &b->next;
		pthread_cond_signal(&c->wake);
	}
	pthread_mutex_unlock(&c->lock);
	return take;
}

void cache_drain(struct cache *c)
{
	int64_t deadline = rgpu_deadline(DRAIN_MS);
	uint64_t left;

	do {
		pthread_mutex_lock(&c->lock);
		left = c->on ? c->queued : 0;
		pthread_mutex_unlock(&c->lock);
	} while (left && rgpu_ms_left(deadline) && !usleep(1000));
}
