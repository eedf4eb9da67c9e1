// SPDX-License-Identifier: GPL-2.0
/* The module's paths in instructions, beside an eventfd's: for a guest with one processor whose clock counts them (scripts/vm
 * --icount). */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>
#include "tests/selftests/rgpu/stub.h"

#define ROUNDS 2000

static void must(bool good, const char *what)
{
	if (!good) {
		fprintf(stderr, "kpath: %s\n", what);
		exit(1);
	}
}

/*
 * Under -icount shift=0 the time stamp counter advances by one with each instruction, of whatever process, in user space and
 * kernel. Per call, after some that warm up.
 */
static double instructions(void (*call)(void))
{
	__u64 begin;
	int i;

	for (i = 0; i < ROUNDS / 20; i++)
		call();
	begin = __rdtsc();
	for (i = 0; i < ROUNDS; i++)
		call();
	return (double)(__rdtsc() - begin) / ROUNDS;
}

static void known(void)
{
	unsigned long n = 500;

	__asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(n));
}

/* With another process at the other end. */
static double with_peer(void (*peer)(void), void (*call)(void))
{
	double n;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		peer();
		_exit(0);
	}
	n = instructions(call);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return n;
}

static int ping, pong;

static void eventfd_peer(void)
{
	eventfd_t v;

	while (!eventfd_read(ping, &v) && !eventfd_write(pong, 1))
		;
}

static void eventfd_round(void)
{
	eventfd_t v;

	must(!eventfd_write(ping, 1) && !eventfd_read(pong, &v), "eventfd failed");
}

static void eventfd_alone(void)
{
	eventfd_write(pong, 1);
}

static struct proxy p;
static int fd, sfd;

/* Answers control requests with what they brought. */
static void control_peer(void)
{
	struct pollfd pfd = {.fd = p.ctl, .events = POLLIN};
	struct request r;

	for (;;) {
		poll(&pfd, 1, -1);
		while (!proxy_pull(&p, &r))
			proxy_reply(&p, r.id, 0, r.data, r.len);
	}
}

static void control_round(void)
{
	char data[64] = "";
	__u32 len = sizeof(data);

	must(!app_control(fd, 1, data, &len, len), "CONTROL failed");
}

static void doorbell_peer(void)
{
	struct pollfd pfd = {.fd = sfd, .events = POLLIN};
	struct rgpu_kicked k = {.size = sizeof(k)};

	for (;;) {
		poll(&pfd, 1, -1);
		ioctl(sfd, RGPU_SES_KICKED, &k);
		app_kick(sfd, 0);
	}
}

static void doorbell_round(void)
{
	must(!app_kick(fd, 0) && !app_wait(fd, 0, -1), "KICK or WAIT failed");
}

/* The other side is busy. */
static void kick_alone(void)
{
	app_kick(fd, 0);
}

int main(void)
{
	double n = instructions(known);

	must(n > 999 && n < 1200, "the time stamp counter does not count instructions: run this by scripts/vm --icount");
	ping = eventfd(0, 0);
	pong = eventfd(0, 0);
	must(!proxy_open(&p) && !proxy_online(&p, 0, 1), "no proxy");
	fd = app_open(0);
	sfd = start_with(&p, fd, NULL);
	must(!app_channel(fd, CHAN_RING, NULL), "no channel");
	while (!app_wait(fd, 0, 0))
		;
	printf("eventfd_round %.0f\n", with_peer(eventfd_peer, eventfd_round));
	printf("doorbell_round %.0f\n", with_peer(doorbell_peer, doorbell_round));
	printf("control_round %.0f\n", with_peer(control_peer, control_round));
	printf("eventfd_alone %.0f\n", instructions(eventfd_alone));
	printf("kick_alone %.0f\n", instructions(kick_alone));
	close(fd);
	acknowledge(&p);
	close(sfd);
	proxy_close(&p);
	return 0;
}
