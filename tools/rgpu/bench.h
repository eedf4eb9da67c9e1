/* SPDX-License-Identifier: MIT */
/* What rgpu bench measures, and the forms in which it is told. */
#ifndef RGPU_TOOLS_BENCH_H
#define RGPU_TOOLS_BENCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <rgpu_wire.h>
#include "lib/why.h"

enum bench_id { BENCH_RTT, BENCH_CALL, BENCH_ISSUE, BENCH_LAUNCH, BENCH_WAIT, BENCH_STEP, BENCH_TIMES };
enum bench_copy { BENCH_UP, BENCH_DOWN, BENCH_UP_PINNED, BENCH_DOWN_PINNED, BENCH_COPIES };

#define BENCH_SIZE_MIN (64ull << 10)
#define BENCH_SIZES    6 /* each four times the one before: up to 64 MiB */

/* Of the samples' times, in seconds; none: it was not measured. */
struct bench_time {
	double median, p99, best;
	unsigned samples;
};

struct bench {
	char device[64];
	bool through_module, linked;
	struct rgpu_telemetry_link link; /* linked: the server tells */
	struct bench_time time[BENCH_TIMES], copy[BENCH_COPIES][BENCH_SIZES];
};

extern const char *const bench_time_names[BENCH_TIMES], *const bench_copy_names[BENCH_COPIES];

/* On device @n of those that this process sees, @seconds for each measure. @lib: our libcuda. 0, or −1 with @why: there is no
 * device, a call failed, or what came back is not what was sent. */
int bench_measure(struct bench *b, const char *lib, int n, double seconds, char why[RGPU_WHY_MAX]);

void bench_table(const struct bench *b, FILE *to);
void bench_csv(const struct bench *b, FILE *to);
void bench_svg(const struct bench *b, FILE *to);

#endif
