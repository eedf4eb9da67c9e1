// SPDX-License-Identifier: MIT
/* Looking before sleeping: how long, and whether the other end of a loopback connection runs on another processor. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/addr.h"
#include "lib/spin.h"
#include "tests/relay/tcp.h"
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
	tcp_pair(fd);
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
