// SPDX-License-Identifier: MIT
/* One session in its worker process: its making, its end, and the hand-over of connections. */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <openssl/crypto.h>
#include "lib/link.h"
#include "server/lane.h"
#include "server/lend.h"

const struct worker_times worker_times_default = {
	.grace = 120000,
	.direct_grace = 2000,
	.hang = 10000,
	.ping = 5000,
	.silence = 20000,
	.handshake = 10000,
};

int worker_init(struct worker *w, struct srv_session *session, bool direct, const struct worker_times *t)
{
	int err;

	memset(w, 0, sizeof(*w));
	w->session = session;
	w->direct = direct;
	w->times = *t;
	w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->wake_fd < 0)
		return -errno;
	err = stamps_init(&w->stamps);
	if (err) {
		close(w->wake_fd);
		return err;
	}
	w->link_fd = -1;
	w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (w->epoll_fd < 0 || watch_fd(w, w->wake_fd, EPOLLIN)) {
		err = -errno;
		close(w->wake_fd);
		return err;
	}
	pthread_mutex_init(&w->input_lock, NULL);
	pthread_mutex_init(&w->end_lock, NULL);
	output_init(&w->output);
	cache_init(&w->cache);
	worker_compress(w, RGPU_PACK_AUTO);
	return pending_init(w);
}

void worker_destroy(struct worker *w)
{
	worker_break(w, 0, "closed");
	pthread_mutex_lock(&w->input_lock);
	input_reset(w);
	while (w->nlanes)
		lane_close(w->lanes[0]);
	pthread_mutex_unlock(&w->input_lock);
	while (w->threads)
		usleep(200);
	pending_destroy(w);
	worker_retire(w, 0);
	cache_destroy(&w->cache);
	rgpu_packer_free(&w->unpack);
	free(w->input.packed);
	if (w->output.next_fd >= 0)
		close(w->output.next_fd);
	output_destroy(&w->output);
	stamps_destroy(&w->stamps);
	pthread_mutex_destroy(&w->end_lock);
	pthread_mutex_destroy(&w->input_lock);
	close(w->epoll_fd);
	close(w->wake_fd);
}

void worker_compress(struct worker *w, enum rgpu_pack_mode mode)
{
	pthread_mutex_lock(&w->output.lock);
	w->compress = mode;
	pthread_mutex_unlock(&w->output.lock);
}

void worker_kick(struct worker *w)
{
	uint64_t one = 1;

	/* It fails only when the counter is full, and then the I/O thread is awake. */
	(void)!write(w->wake_fd, &one, sizeof(one));
}

void worker_break(struct worker *w, int err, const char *fmt, ...)
{
	va_list ap;
	bool first;

	pthread_mutex_lock(&w->end_lock);
	first = !w->broken;
	if (first) {
		w->end_err = err;
		va_start(ap, fmt);
		vsnprintf(w->end_text, sizeof(w->end_text), fmt, ap);
		va_end(ap);
		w->broken = true;
	}
	pthread_mutex_unlock(&w->end_lock);
	if (!first)
		return;
	stamps_break(&w->stamps);
	worker_kick(w);
}

void worker_connect(struct worker *w, int fd, uint32_t lease, const uint8_t psk[RGPU_KEY_LEN])
{
	struct output *o = &w->output;

	pthread_mutex_lock(&o->lock);
	if (o->next_fd >= 0)
		close(o->next_fd);
	o->next_fd = fd;
	o->next_lease = lease;
	o->next_plain = !psk;
	if (psk)
		memcpy(o->next_psk, psk, RGPU_KEY_LEN);
	pthread_mutex_unlock(&o->lock);
	worker_kick(w);
}

void worker_retire(struct worker *w, uint32_t lease)
{
	struct output *o = &w->output;

	pthread_mutex_lock(&o->lock);
	o->lease = lease;
	output_cut(o);
	pthread_mutex_unlock(&o->lock);
	worker_kick(w);
}
