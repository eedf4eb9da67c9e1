/* SPDX-License-Identifier: MIT */
/* How much of the machine and of the network a session uses, from two looks at its worker. */
#ifndef RGPU_SERVER_USAGE_H
#define RGPU_SERVER_USAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct usage {
	bool known; /* two looks have been had: what follows them holds */
	int64_t at; /* of the last look, CLOCK_MONOTONIC in ns; 0 never */
	uint64_t cpu_ns, up, down;
	uint32_t busy;		     /* per cent of all CPUs that this server may use, at most 100 */
	uint64_t rate_up, rate_down; /* bytes per second */
};

#define USAGE_WINDOW_MS 100  /* a look that comes sooner after the last one changes nothing */
#define USAGE_STALE_MS	5000 /* one that comes later is a first look again */

/* @up, @down: bytes that the worker has received and sent since it began. */
void usage_look(struct usage *u, pid_t worker, uint64_t up, uint64_t down);

#endif
