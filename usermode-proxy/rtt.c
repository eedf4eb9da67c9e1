// SPDX-License-Identifier: MIT
/* The last round trips to the server, of all control connections of this process. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "usermode-proxy/rtt.h"

#define SAMPLES 512

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t ring[SAMPLES];
static unsigned added;

void rtt_add(int64_t ns)
{
	pthread_mutex_lock(&lock);
	ring[added++ % SAMPLES] = ns;
	pthread_mutex_unlock(&lock);
}

static int ascending(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

unsigned rtt_percentiles(unsigned long long *p50, unsigned long long *p99)
{
	int64_t sorted[SAMPLES];
	unsigned n;

	pthread_mutex_lock(&lock);
	n = added < SAMPLES ? added : SAMPLES;
	memcpy(sorted, ring, n * sizeof(*sorted));
	pthread_mutex_unlock(&lock);
	if (!n)
		return 0;
	qsort(sorted, n, sizeof(*sorted), ascending);
	*p50 = sorted[(n - 1) / 2];
	*p99 = sorted[(n * 99 + 99) / 100 - 1];
	return n;
}
