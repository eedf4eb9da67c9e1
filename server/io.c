// SPDX-License-Identifier: MIT
/* The worker's I/O thread: connections come and go, bytes move, and time runs out for the dead. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <openssl/crypto.h>
#include "lib/addr.h"
#include "lib/clock.h"
#include "lib/link.h"
#include "lib/log.h"
#include "server/lane.h"
#include "server/lend.h"

#define ROUND_BYTES (1u << 20) /* each way, before the other way has its turn */
#define TICK_MS	    1000
#define BYE_MS	    1000 /* for the last word to leave */

struct io {
	struct worker *w;
	struct rgpu_link *greeting; /* in its handshake */
	uint32_t greeting_lease;
	uint8_t psk[RGPU_KEY_LEN];
	bool live;     /* output.link was ours when we last looked */
	int64_t began; /* of the greeting, or of a link without ATTACH yet */
	int64_t lost;  /* since when there is no connection */
	int grace;     /* ms after `lost` */
	int64_t pinged;
};

static bool find_psk(void *arg, const char *identity, uint8_t key[RGPU_KEY_LEN])
{
	struct io *io = arg;

	memcpy(key, io->psk, RGPU_KEY_LEN);
	return !strcmp(identity, RGPU_DATA_IDENTITY);
}

/* A socket was handed over: greet it. */
static void take_next(struct io *io)
{
	struct output *o = &io->w->output;
	bool plain;
	int fd;

	pthread_mutex_lock(&o->lock);
	fd = o->next_fd;
	plain = o->next_plain;
	o->next_fd = -1;
	io->greeting_lease = fd >= 0 ? o->next_lease : io->greeting_lease;
	if (fd >= 0)
		memcpy(io->psk, o->next_psk, RGPU_KEY_LEN);
	pthread_mutex_unlock(&o->lock);
	if (fd < 0)
		return;
	rgpu_link_free(io->greeting);
	rgpu_sock_tune(fd);
	io->greeting = plain ? rgpu_link_plain(fd) : rgpu_link_server(fd, find_psk, io);
	if (!io->greeting)
		close(fd);
	io->began = rgpu_now_ns();
}

/* The connection is gone, by @err or because its lease is over; the session waits for the next. */
static void lost(struct io *io, int err)
{
	struct worker *w = io->w;
	struct output *o = &w->output;
	bool ended = err == -ENOTCONN || err == -ECONNRESET || err == -EPIPE;

	pthread_mutex_lock(&o->lock);
	ended = ended && o->link; /* else it was cut off here, and the client is on its way back */
	if (o->link && err)
		rgpu_info("the connection was lost: %s", err == -ENOTCONN    ? "closed by the client"
							 : err == -ETIMEDOUT ? "silence"
									     : rgpu_link_why(o->link));
	output_cut(o);
	pthread_mutex_unlock(&o->lock);
	forget_link(w);
	input_reset(w);
	io->live = false;
	io->lost = rgpu_now_ns();
	io->grace = w->direct && ended ? w->times.direct_grace : w->times.grace;
}

/* Another thread has cut the connection off. */
static void see_cut(struct io *io)
{
	struct output *o = &io->w->output;
	bool cut;

	pthread_mutex_lock(&o->lock);
	cut = io->live && !o->link;
	pthread_mutex_unlock(&o->lock);
	if (cut)
		lost(io, 0);
}

static void greet(struct io *io)
{
	struct output *o = &io->w->output;
	int err = rgpu_link_handshake(io->greeting);

	if (err == -EAGAIN)
		return;
	if (err)
		rgpu_info("a data connection was refused: %s", rgpu_link_why(io->greeting));
	/* Nothing of the old one is taken for the new one's. What is cut off from here on has another lease. */
	see_cut(io);
	pthread_mutex_lock(&o->lock);
	if (!err && io->greeting_lease == o->lease && !o->link) {
		o->link = io->greeting;
		o->failed = 0;
		io->greeting = NULL;
		io->live = true;
		/* Here, as the link may be cut off by another thread as soon as it is known. */
		io->w->may_spin = sysconf(_SC_NPROCESSORS_ONLN) > 1;
		io->w->same_host = rgpu_sock_same_host(rgpu_link_fd(o->link));
	}
	pthread_mutex_unlock(&o->lock);
	rgpu_link_free(io->greeting);
	io->greeting = NULL;
	OPENSSL_cleanse(io->psk, sizeof(io->psk));
	if (!io->live)
		return;
	io->began = io->pinged = rgpu_now_ns();
	io->w->input.last_records = io->w->input.last_bytes = io->began;
}

static bool expired(int64_t since, int ms, int64_t now)
{
	return now - since >= ms * 1000000LL;
}

/* Whether lanes wait for a stamp and none is at work: only the client can move them. */
static bool all_held(struct worker *w)
{
	bool held = false;

	for (unsigned i = 0; i < w->nlanes; i++) {
		int phase = w->lanes[i]->phase;

		if (phase == LANE_RUNNING)
			return false;
		held |= phase == LANE_HELD;
	}
	return held;
}

/*
 * A client that answers no ping is not there: a dead host, a cut network, or all of it is stopped (SIGSTOP, a
 * debugger in a direct program). Its session waits for the grace period. One that answers and yet sends nothing
 * of what its own records wait for never will.
 */
static void watch(struct io *io, int64_t now)
{
	struct worker *w = io->w;
	bool held = all_held(w);
	uint64_t missing;

	if (expired(io->pinged, held ? w->times.hang / 4 : w->times.ping, now)) {
		uint64_t body = now;

		io->pinged = now;
		pthread_mutex_lock(&w->output.lock);
		output_ctl(&w->output, RGPU_D_PING, 0, &body, sizeof(body));
		pthread_mutex_unlock(&w->output.lock);
	}
	if (expired(w->input.last_bytes, w->times.silence, now)) {
		lost(io, -ETIMEDOUT);
		return;
	}
	if (!held || w->input.pongs < 2 || !expired(w->input.last_records, w->times.hang, now))
		return;
	missing = stamps_missing(&w->stamps);
	if (missing && all_held(w))
		worker_break(w, EPROTO,
			     "the call with stamp %llu never came, and others wait for it; the program's state is damaged",
			     (unsigned long long)missing);
}

static void tell_lazily(struct worker *w)
{
	pthread_mutex_lock(&w->output.lock);
	for (unsigned i = 0; i < w->nlanes; i++)
		if (w->lanes[i]->received > w->lanes[i]->granted_received)
			output_grant_due(w->lanes[i]);
	pthread_mutex_unlock(&w->output.lock);
	w->input.lazy_grant = false;
}

static void timers(struct io *io, int64_t now)
{
	struct worker *w = io->w;

	if (io->greeting && expired(io->began, w->times.handshake, now)) {
		rgpu_info("a data connection was dropped: it did not finish its TLS handshake");
		rgpu_link_free(io->greeting);
		io->greeting = NULL;
	}
	if (io->live && !w->output.attached && expired(io->began, w->times.handshake, now))
		lost(io, -ETIMEDOUT);
	if (io->live && w->output.attached)
		watch(io, now);
	if (!io->live && !io->greeting && expired(io->lost, io->grace, now))
		worker_break(w, ESTALE, "the client did not come back within %d.%d s", io->grace / 1000, io->grace % 1000 / 100);
}

/* Moves bytes both ways. true: more waits, do not sleep. */
static bool move(struct io *io)
{
	struct worker *w = io->w;
	struct output *o = &w->output;
	int more = input_read(w, ROUND_BYTES), err;
	bool left = false;

	if (more < 0) {
		lost(io, more);
		return true;
	}
	pthread_mutex_lock(&o->lock);
	err = output_pump(w, ROUND_BYTES);
	left = !err && o->link && !o->want_out && output_more(w);
	pthread_mutex_unlock(&o->lock);
	if (err) {
		lost(io, err);
		return true;
	}
	return more > 0 || left;
}

/* input_lock is held, but not while it sleeps. */
static void sleep_until_something(struct io *io, bool busy)
{
	struct worker *w = io->w;
	int timeout = w->input.lazy_grant ? LAZY_MS : TICK_MS;
	struct epoll_event e[4];
	uint64_t count;
	int n;

	if (w->times.hang < 4 * TICK_MS || io->grace < 4 * TICK_MS)
		timeout = LAZY_MS;
	if (io->greeting)
		watch_fd(w, rgpu_link_fd(io->greeting), EPOLLIN | (rgpu_link_events(io->greeting) & POLLOUT ? EPOLLOUT : 0));
	if (io->live)
		watch_link(w);
	pthread_mutex_unlock(&w->input_lock);
	n = epoll_wait(w->epoll_fd, e, 4, busy ? 0 : timeout);
	take_reading(w);
	for (int i = 0; i < n; i++) {
		if (e[i].data.fd == w->wake_fd)
			(void)!read(w->wake_fd, &count, sizeof(count));
		else if (e[i].data.fd == w->link_fd)
			link_event(w, &e[i]);
	}
	if (n <= 0 && !busy && w->input.lazy_grant)
		tell_lazily(w);
}

/* Tells the client, if it is there, why the session is over. */
static void say_bye(struct io *io)
{
	struct worker *w = io->w;
	struct output *o = &w->output;
	struct rgpu_error_frame bye = {.err = w->end_err};
	int64_t deadline = rgpu_deadline(BYE_MS);

	memcpy(bye.text, w->end_text, sizeof(bye.text));
	pthread_mutex_lock(&o->lock);
	/* The frame that is on its way is finished, and nothing else comes before the last word. */
	o->ctl_len = 0;
	if (o->link && output_ctl(o, RGPU_D_BYE, 0, &bye, sizeof(bye)))
		o->attached = false;
	while (o->link && !output_pump(w, ROUND_BYTES) && o->want_out && rgpu_ms_left(deadline)) {
		struct pollfd p = {.fd = rgpu_link_fd(o->link), .events = POLLOUT};

		pthread_mutex_unlock(&o->lock);
		poll(&p, 1, rgpu_ms_left(deadline));
		pthread_mutex_lock(&o->lock);
	}
	/*
	 * A socket that is closed with bytes unread resets the connection, and the client may then never see why. It
	 * closes when it has read this; until then its bytes are read and thrown away.
	 */
	while (o->link && w->end_err && rgpu_ms_left(deadline)) {
		struct pollfd p = {.fd = rgpu_link_fd(o->link), .events = POLLIN};
		uint8_t nothing[16384];
		ssize_t n = -1;

		pthread_mutex_unlock(&o->lock);
		if (poll(&p, 1, rgpu_ms_left(deadline)) > 0)
			n = recv(p.fd, nothing, sizeof(nothing), MSG_DONTWAIT);
		pthread_mutex_lock(&o->lock);
		if (n <= 0)
			break;
	}
	pthread_mutex_unlock(&o->lock);
}

void worker_io(struct worker *w)
{
	struct io io = {.w = w, .lost = rgpu_now_ns(), .grace = w->times.grace};

	pthread_mutex_lock(&w->input_lock);
	while (!w->broken) {
		bool busy = false;

		take_next(&io);
		if (io.greeting)
			greet(&io);
		see_cut(&io);
		if (io.live)
			busy = move(&io);
		timers(&io, rgpu_now_ns());
		if (!w->broken)
			sleep_until_something(&io, busy);
	}
	pthread_mutex_unlock(&w->input_lock);
	say_bye(&io);
	worker_retire(w, 0);
	rgpu_link_free(io.greeting);
	OPENSSL_cleanse(io.psk, sizeof(io.psk));
}
