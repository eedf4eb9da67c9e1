/* SPDX-License-Identifier: MIT */
/*
 * A long wire on loopback, for benches: carries TCP connections to a port of this machine with a delay and at a rate.
 * Usage: slowlink PORT RTT_US MBIT_PER_S (0: as fast as it goes) [KIB]; prints "port N", and runs until it is killed.
 *
 * It takes in no more than KIB at once, so that a sender sees what the wire carries.
 * It ends TCP on both sides, so what is in flight is limited by the wire here and not by TCP's windows.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define READ_MAX (64u << 10)
#define QUEUE	 (256u << 10) /* bytes that may wait for the wire to be free, as in a router */
#define CHUNKS	 (1u << 15)

static int64_t delay_ns;
static double ns_per_byte;

/* One direction. Bytes lie in a ring, from arrival until they are due. */
struct wire {
	int from, to;
	uint8_t *ring;
	uint64_t size, head, tail;
	struct {
		uint64_t end; /* tail after it */
		int64_t due;
	} chunk[CHUNKS];
	uint32_t first, last;
	int64_t free_at; /* when the wire has sent what it was given */
};

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static bool has_room(const struct wire *w, int64_t t)
{
	return (w->free_at - t) <= (int64_t)(QUEUE * ns_per_byte) && w->tail - w->head + READ_MAX <= w->size &&
	       w->last - w->first < CHUNKS;
}

/* -1: the connection ended. */
static int take(struct wire *w, int64_t t)
{
	uint64_t at = w->tail % w->size, room = w->size - at;
	ssize_t n = recv(w->from, w->ring + at, room < READ_MAX ? room : READ_MAX, MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	if (!n)
		return -1;
	w->free_at = (w->free_at > t ? w->free_at : t) + (int64_t)(n * ns_per_byte);
	w->tail += n;
	w->chunk[w->last % CHUNKS].end = w->tail;
	w->chunk[w->last++ % CHUNKS].due = w->free_at + delay_ns;
	return 0;
}

/* 1: the other side takes no more now. */
static int give(struct wire *w, int64_t t)
{
	uint64_t end = w->head;

	while (w->first != w->last && w->chunk[w->first % CHUNKS].due <= t)
		end = w->chunk[w->first++ % CHUNKS].end;
	if (w->first != w->last && end == w->head)
		return 0;
	/* What is due and was not taken stays due: as one chunk in front. */
	while (w->head < end) {
		uint64_t at = w->head % w->size, n = end - w->head;
		ssize_t did;

		if (n > w->size - at)
			n = w->size - at;
		did = send(w->to, w->ring + at, n, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (did < 0 && (errno == EAGAIN || errno == EINTR)) {
			w->chunk[--w->first % CHUNKS].end = end;
			w->chunk[w->first % CHUNKS].due = 0;
			return 1;
		}
		if (did < 0)
			return -1;
		w->head += did;
	}
	return 0;
}

static void *carry(void *arg)
{
	struct wire *w = arg;
	bool open = true;

	prctl(PR_SET_TIMERSLACK, 1);
	while (open || w->first != w->last) {
		int64_t t = now(), until = INT64_MAX;
		struct pollfd p[2] = {{.fd = -1}, {.fd = -1}};
		int full = give(w, t);

		if (full < 0)
			break;
		if (open && has_room(w, t)) {
			p[0] = (struct pollfd){.fd = w->from, .events = POLLIN};
		} else if (open) {
			until = w->free_at - (int64_t)(QUEUE * ns_per_byte) / 2;
		}
		if (full)
			p[1] = (struct pollfd){.fd = w->to, .events = POLLOUT};
		else if (w->first != w->last && w->chunk[w->first % CHUNKS].due < until)
			until = w->chunk[w->first % CHUNKS].due;
		if (until != INT64_MAX) {
			int64_t left = until > t ? until - t : 0;
			struct timespec ts = {left / 1000000000, left % 1000000000};

			ppoll(p, 2, &ts, NULL);
		} else {
			ppoll(p, 2, NULL, NULL);
		}
		if (p[0].revents && take(w, now()))
			open = false;
	}
	shutdown(w->to, SHUT_WR);
	shutdown(w->from, SHUT_RD);
	return NULL;
}

static struct wire *wire_new(int from, int to)
{
	struct wire *w = calloc(1, sizeof(*w));

	w->from = from;
	w->to = to;
	/* Without a rate: as much as such a machine may send meanwhile. */
	w->size = (2 << 20) + (uint64_t)(delay_ns / (ns_per_byte > 0.4 ? ns_per_byte : 0.4));
	w->ring = malloc(w->size);
	if (!w->ring) {
		perror("slowlink");
		exit(1);
	}
	return w;
}

struct pair {
	struct wire *up, *down;
};

static void *serve(void *arg)
{
	struct pair *p = arg;
	pthread_t t;

	pthread_create(&t, NULL, carry, p->up);
	carry(p->down);
	pthread_join(t, NULL);
	close(p->up->from);
	close(p->up->to);
	free(p->up->ring);
	free(p->up);
	free(p->down->ring);
	free(p->down);
	free(p);
	return NULL;
}

static struct sockaddr_in loopback(int port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)};
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = loopback(0), target;
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1, room;
	socklen_t len = sizeof(at);
	double mbit;

	if (argc != 4 && argc != 5) {
		fprintf(stderr, "usage: slowlink PORT RTT_US MBIT_PER_S [KIB]\n");
		return 2;
	}
	target = loopback(atoi(argv[1]));
	delay_ns = (int64_t)(atof(argv[2]) * 500);
	mbit = atof(argv[3]);
	ns_per_byte = mbit > 0 ? 8000 / mbit : 0;
	room = argc > 4 ? atoi(argv[4]) << 10 : 0;
	if (room)
		setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	if (listener < 0 || bind(listener, (void *)&at, len) || listen(listener, 16) ||
	    getsockname(listener, (void *)&at, &len)) {
		perror("slowlink");
		return 1;
	}
	printf("port %d\n", ntohs(at.sin_port));
	fflush(stdout);
	for (;;) {
		int in = accept(listener, NULL, NULL), out;
		struct pair *p;
		pthread_t t;

		if (in < 0)
			continue;
		out = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (out >= 0 && room)
			setsockopt(out, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
		if (out < 0 || connect(out, (void *)&target, sizeof(target))) {
			perror("slowlink: the target");
			close(in);
			close(out);
			continue;
		}
		setsockopt(in, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		setsockopt(out, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		p = calloc(1, sizeof(*p));
		p->up = wire_new(in, out);
		p->down = wire_new(out, in);
		pthread_create(&t, NULL, serve, p);
		pthread_detach(t);
	}
}
