// SPDX-License-Identifier: MIT
/* Counters of round trips: one word a record, bumped where a fence is published. */
#include "shim/count.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "api/names.h"
#include "lib/twin.h"

static _Atomic uint32_t counts[1 << 16]; /* by op; untouched pages cost nothing */
static _Atomic uint32_t hidden;
static atomic_bool trace;

void count_round_trip(uint16_t op)
{
	atomic_fetch_add_explicit(&counts[op], 1, memory_order_relaxed);
}

void count_hidden(uint32_t n)
{
	atomic_fetch_add_explicit(&hidden, n, memory_order_relaxed);
}

long rgpuRoundTrips(const char *name)
{
	long sum = hidden;
	int op;

	if (name && !strcmp(name, "NEED"))
		return hidden;
	if (name) {
		op = rgpu_op_find(name);
		return op < 0 ? -1 : (long)counts[op];
	}
	for (op = 0; op < 1 << 16; op++)
		sum += counts[op];
	return sum;
}

void count_trace(void)
{
	const char *s = getenv("RGPU_TRACE_ROUNDTRIPS");

	atomic_store(&trace, s && !strcmp(s, "1"));
}

__attribute__((destructor)) static void print_counts(void)
{
	if (!atomic_load(&trace))
		return;
	fprintf(stderr, "rgpu: %ld round trips\n", rgpuRoundTrips(NULL));
	fprintf(stderr, "rgpu: %llu bytes of shared memory compared\n", (unsigned long long)twin_compared());
	if (hidden)
		fprintf(stderr, "rgpu: %10u NEED\n", hidden);
	for (int op = 0; op < 1 << 16; op++)
		if (counts[op])
			fprintf(stderr, "rgpu: %10u %s\n", counts[op], rgpu_op_name(op));
}
