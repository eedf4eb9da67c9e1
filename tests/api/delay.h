/* SPDX-License-Identifier: MIT */
/* A long wire between a test program and its server: a process that passes every byte on, so many milliseconds late. */
#ifndef TESTS_API_DELAY_H
#define TESTS_API_DELAY_H

#include <arpa/inet.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include "tests/api/serve.h"

#define DELAY_ENDS 32 /* of connections, two each: 2 i and 2 i + 1 */

struct delay_piece {
	int64_t due;
	size_t len, at;
	struct delay_piece *next;
	char bytes[16384];
};

static int delay_end[DELAY_ENDS];					      /* −1: none */
static struct delay_piece *delay_first[DELAY_ENDS], **delay_last[DELAY_ENDS]; /* to be written there */

static int64_t delay_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ll + t.tv_nsec / 1000000;
}

static void delay_accept(int listener, const struct sockaddr_in *server)
{
	int fd = accept(listener, NULL, NULL), to = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), i = 0;

	while (i < DELAY_ENDS && delay_end[i] >= 0)
		i += 2;
	if (fd < 0 || i == DELAY_ENDS || connect(to, (const struct sockaddr *)server, sizeof(*server)))
		_exit(1);
	for (int k = 0; k < 2; k++) {
		delay_end[i + k] = k ? to : fd;
		delay_first[i + k] = NULL;
		delay_last[i + k] = &delay_first[i + k];
	}
}

static void delay_close(int i)
{
	for (i &= ~1; close(delay_end[i]), delay_end[i] = -1, !(i & 1); i++)
		;
}

static void delay_read(int i, int ms)
{
	struct delay_piece *p = malloc(sizeof(*p));
	ssize_t n = read(delay_end[i], p->bytes, sizeof(p->bytes));

	if (n <= 0) {
		free(p);
		delay_close(i);
		return;
	}
	p->due = delay_now() + ms;
	p->len = n;
	p->at = 0;
	p->next = NULL;
	*delay_last[i ^ 1] = p;
	delay_last[i ^ 1] = &p->next;
}

static void delay_write(int i)
{
	struct delay_piece *p = delay_first[i];
	ssize_t n = send(delay_end[i], p->bytes + p->at, p->len - p->at, MSG_NOSIGNAL | MSG_DONTWAIT);

	p->at += n > 0 ? n : 0;
	if (p->at < p->len)
		return;
	delay_first[i] = p->next;
	if (!p->next)
		delay_last[i] = &delay_first[i];
	free(p);
}

static void delay_run(int listener, const struct sockaddr_in *server, int ms)
{
	for (int i = 0; i < DELAY_ENDS; i++)
		delay_end[i] = -1;
	for (;;) {
		struct pollfd p[DELAY_ENDS + 1] = {[DELAY_ENDS] = {.fd = listener, .events = POLLIN}};
		int64_t now = delay_now(), wait = 1000;

		for (int i = 0; i < DELAY_ENDS; i++) {
			p[i] = (struct pollfd){.fd = delay_end[i], .events = POLLIN};
			if (delay_end[i] < 0 || !delay_first[i])
				continue;
			if (delay_first[i]->due <= now)
				p[i].events |= POLLOUT;
			else if (delay_first[i]->due - now < wait)
				wait = delay_first[i]->due - now;
		}
		poll(p, DELAY_ENDS + 1, wait);
		for (int i = 0; i < DELAY_ENDS; i++) {
			if (p[i].revents & POLLOUT && delay_end[i] >= 0)
				delay_write(i);
			if (p[i].revents & ~POLLOUT && delay_end[i] >= 0)
				delay_read(i, ms);
		}
		if (p[DELAY_ENDS].revents)
			delay_accept(listener, server);
	}
}

/* After serve(): what the program connects to from here on is @ms away, each way. */
static void serve_from_afar(int ms)
{
	struct sockaddr_in server = {.sin_family = AF_INET}, here = {.sin_family = AF_INET};
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char *addr = getenv("RGPU_SERVER"), far[32];
	socklen_t len = sizeof(here);

	server.sin_port = htons(atoi(strrchr(addr, ':') + 1));
	server.sin_addr.s_addr = here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(listener, (struct sockaddr *)&here, sizeof(here)) || listen(listener, 16) ||
	    getsockname(listener, (struct sockaddr *)&here, &len)) {
		printf("Bail out! no port for the long wire\n");
		exit(1);
	}
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		delay_run(listener, &server, ms);
	}
	close(listener);
	snprintf(far, sizeof(far), "127.0.0.1:%d", ntohs(here.sin_port));
	setenv("RGPU_SERVER", far, 1);
}

#endif
