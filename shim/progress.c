// SPDX-License-Identifier: MIT
/* Draws behind what the program has written, and gives the cursor back: its own output stays as it was. */
#include "shim/progress.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/clock.h"

#define MIN_BYTES (1u << 20) /* a look at the terminal costs more than it tells below this */
#define CELLS	  24

/* Save the cursor, write without going on in the next line, come back. */
#define BEGIN "\0337\033[?7l"
#define END   "\033[K\033[?7h\0338"

static int64_t after_ns; /* −1: never */

void progress_setting(void)
{
	const char *s = getenv("RGPU_PROGRESS"), *term = getenv("TERM");
	char *end;
	long ms = 1000;

	if (s) {
		ms = strtol(s, &end, 10);
		if (*end || end == s || ms < 0)
			ms = 1000;
	}
	after_ns = (s && !ms) || !term || !strcmp(term, "dumb") ? -1 : ms * 1000000;
}

/* A program in the background would be stopped for writing, one whose terminal does not take more would wait. */
static bool ours(void)
{
	struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};

	return tcgetpgrp(STDERR_FILENO) == getpgrp() && poll(&p, 1, 0) == 1 && p.revents == POLLOUT;
}

void progress_begin(struct progress *p, struct rgpu_lane *l, uint64_t bytes, uint64_t piece)
{
	if (after_ns < 0 || bytes < MIN_BYTES || l->progress || !isatty(STDERR_FILENO))
		return;
	*p = (struct progress){.first = l->seq, .piece = piece, .total = bytes, .began = rgpu_now_ns()};
	l->progress = p;
}

static void put(const char *text, int n)
{
	if (write(STDERR_FILENO, text, n) < 0) {
		/* What cannot be shown is no failure of the program's. */
	}
}

static void draw(const struct progress *p, uint64_t done, int64_t now)
{
	double seconds = (now - p->began) * 1e-9;
	unsigned full = done * CELLS / p->total;
	char text[256];
	int n;

	n = snprintf(text, sizeof(text), BEGIN "rgpu: %.0f of %.0f MiB up, %.1f MB/s [%.*s%.*s]" END, done / 1048576.0,
		     p->total / 1048576.0, done / seconds / 1e6, (int)full, "########################", CELLS - (int)full,
		     "                        ");
	put(text, n < (int)sizeof(text) ? n : (int)sizeof(text) - 1);
}

void progress_look(struct rgpu_lane *l)
{
	struct progress *p = l->progress;
	int64_t now = rgpu_now_ns();
	uint64_t acked, done;

	if (now - p->began < after_ns || (p->drawn && now - p->drawn < PROGRESS_LOOK_MS * 1000000LL) || !ours())
		return;
	acked = __atomic_load_n(&l->ch.p->acked, __ATOMIC_ACQUIRE);
	done = acked > p->first ? (acked - p->first) * p->piece : 0;
	p->drawn = now;
	draw(p, done < p->total ? done : p->total, now);
}

void progress_end(struct rgpu_lane *l)
{
	struct progress *p = l->progress;

	l->progress = NULL;
	if (p && p->drawn && ours())
		put("\033[K", 3);
}
