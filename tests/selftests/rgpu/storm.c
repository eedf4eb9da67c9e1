// SPDX-License-Identifier: GPL-2.0
/* More messages than a socket has room for (ENOBUFS): the proxy loses no request by it, a monitor goes on with the next event. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/selftests/rgpu/stub.h"

#define ASKERS 40

static struct proxy p;

static int room(int fd, int bytes)
{
	return setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
}

/* Takes in all that waits. Says how often the kernel told that it had more. */
static int drain(int fd)
{
	char buf[NL_MSG_MAX];
	int over = 0;

	for (;;) {
		if (recv(fd, buf, sizeof(buf), MSG_DONTWAIT) >= 0)
			continue;
		if (errno != ENOBUFS)
			return over;
		over++;
	}
}

static int set_online(__u8 on)
{
	struct msg m;

	if (on)
		return proxy_online(&p, 1, 1);
	msg_begin(&p.nl, &m, RGPU_CMD_DEV_SET);
	msg_u32(&m, RGPU_A_DEVICE, 1);
	msg_u8(&m, RGPU_A_ONLINE, 0);
	return nl_call(&p.nl, &m, NULL);
}

static void monitor(void)
{
	struct msg m;
	struct nl nl;
	int i, bad = 0;

	nl_open(&nl);
	is_int(nl_join(&nl, RGPU_MCGRP_MONITOR), 0, "a monitor");
	room(nl.fd, 8192);
	for (i = 0; i < 100; i++)
		bad |= set_online(1) | set_online(0);
	is_int(bad, 0, "that does not read holds nobody up");
	ok(drain(nl.fd) > 0, "and is told that it missed something");
	is_int(set_online(1), 0, "the next event");
	ok(nl_recv(&nl, &m, 20000), "comes");
	is_int(msg_cmd(&m), RGPU_CMD_DEV_NTF, "as what it is");
	is_int(*(const __u8 *)msg_attr(&m, RGPU_A_ONLINE, NULL), 1, "with its news");
	nl_close(&nl);
}

static void *ask(void *arg)
{
	__u32 len = 0;

	app_control(*(int *)arg, 1, NULL, &len, 0);
	return NULL;
}

static void asker(void)
{
	int fd = app_open(0), i;
	pthread_t t;

	if (app_start(fd, NULL))
		_exit(1);
	for (i = 0; i < ASKERS; i++)
		pthread_create(&t, NULL, ask, &fd);
	pause();
	_exit(0);
}

/* A CANCEL for each request that the dead program had, all at once, to a proxy that does not read. */
static void cancels(void)
{
	static struct request r[ASKERS], more;
	int i, sfd, err = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		asker();
	proxy_next(&p, &r[0]);
	sfd = proxy_attach(&p, r[0].session);
	proxy_reply(&p, r[0].id, 0, NULL, 0);
	for (i = 0; i < ASKERS; i++)
		err |= proxy_next(&p, &r[i]);
	is_int(err, 0, "%d requests are pulled", ASKERS);
	nl_events(&p.nl);
	room(p.nl.fd, 1);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	is_int(counter_becomes("gone", 1), 1, "their program is killed");

	/* The answer to this has no room either: what it had pulled must come back. */
	{
		struct msg m;

		msg_begin(&p.nl, &m, RGPU_CMD_PULL);
		(void)!send(p.nl.fd, &m, m.h.nlmsg_len, 0);
	}
	ok(drain(p.nl.fd) > 0, "the proxy's socket overflows");
	room(p.nl.fd, 1 << 20);
	is_int(proxy_next(&p, &more), 0, "there is something to pull");
	is_int(more.type, RGPU_REQ_GONE, "which is GONE");
	is_int(proxy_reply(&p, more.id, 0, NULL, 0), 0, "and acknowledged");
	for (i = 0, err = 0; i < ASKERS; i++)
		err += proxy_reply(&p, r[i].id, 0, NULL, 0) == -ENOENT;
	is_int(err, ASKERS, "answers to the dead find nobody");
	close(sfd);
}

int main(void)
{
	if (!ok(proxy_open(&p) == 0 && proxy_online(&p, 0, 1) == 0, "the proxy registers"))
		return tap_done();
	monitor();
	cancels();
	proxy_close(&p);
	nothing_left();
	return tap_done();
}
