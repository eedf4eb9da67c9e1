// SPDX-License-Identifier: MIT
/* How much of the machine and of the network a session uses, from two looks at its worker. */
#include <sched.h>
#include <time.h>
#include "lib/clock.h"
#include "server/usage.h"

/* CPU time of all threads of the worker. What its children of other libraries use is not in it. */
static uint64_t cpu_time(pid_t pid)
{
	struct timespec t;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &t))
		return 0;
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static unsigned cpus(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
}

void usage_look(struct usage *u, pid_t worker, uint64_t up, uint64_t down)
{
	int64_t now = rgpu_now_ns(), past = now - u->at;
	uint64_t cpu, busy;

	if (u->at && past < USAGE_WINDOW_MS * 1000000LL)
		return;
	cpu = cpu_time(worker);
	u->known = u->at && past <= USAGE_STALE_MS * 1000000LL && cpu >= u->cpu_ns && up >= u->up && down >= u->down;
	if (u->known) {
		busy = (100 * (cpu - u->cpu_ns) + (uint64_t)past * cpus() / 2) / ((uint64_t)past * cpus());
		u->busy = busy > 100 ? 100 : busy;
		u->rate_up = (double)(up - u->up) * 1e9 / past;
		u->rate_down = (double)(down - u->down) * 1e9 / past;
	}
	u->at = now;
	u->cpu_ns = cpu;
	u->up = up;
	u->down = down;
}
