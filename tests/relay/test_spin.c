// SPDX-License-Identifier: MIT
/* Looking before sleeping: how long, and whether the other end of a loopback connection runs on another processor. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/addr.h"
#include "lib/spin.h"
#include "tests/tap.h"

static void test_next(void)
{
	int64_t ns = RGPU_SPIN_MAX;

	for (int i = 0; i < 20; i++)
		ns = rgpu_spin_next(ns, 10 * RGPU_SPIN_MAX);
	is_int(ns, RGPU_SPIN_MIN, "long waits make it as short as it gets");
	for (int i = 0; i < 20; i++)
		ns = rgpu_spin_next(ns, RGPU_SPIN_MAX);
	is_int(ns, RGPU_SPIN_MAX, "short ones as long, from there, too");
}

static int pin(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	return sched_setaffinity(0, sizeof(one), &one);
}

/* A connection to ourselves. */
static void pair(int fd[2])
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	int l = socket(AF_INET, SOCK_STREAM, 0);

	fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(l, (void *)&at, len) || listen(l, 1) || getsockname(l, (void *)&at, &len) || connect(fd[0], (void *)&at, len))
		abort();
	fd[1] = accept(l, NULL, NULL);
	close(l);
}

static void test_apart(void)
{
	int cpu[2], n = 0, fd[2];
	cpu_set_t mine;
	char c = 0;

	sched_getaffinity(0, sizeof(mine), &mine);
	for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
		if (CPU_ISSET(i, &mine))
			cpu[n++] = i;
	if (n < 2) {
		ok(1, "apart # SKIP one processor");
		return;
	}
	pair(fd);
	pin(cpu[0]);
	ok(write(fd[0], &c, 1) == 1 && read(fd[1], &c, 1) == 1, "a byte goes across");
	is_int(rgpu_sock_apart(fd[1]), 0, "sent from this processor: together");
	pin(cpu[1]);
	is_int(rgpu_sock_apart(fd[1]), 1, "sent from the one that we left: apart");
	ok(write(fd[0], &c, 1) == 1 && read(fd[1], &c, 1) == 1, "another byte goes across");
	is_int(rgpu_sock_apart(fd[1]), 0, "from the new one: together again");
	is_int(rgpu_sock_apart(-1), 0, "no socket is not apart");
	close(fd[0]);
	close(fd[1]);
}

int main(void)
{
	test_next();
	test_apart();
	return tap_done();
}
