// SPDX-License-Identifier: MIT
/* shim/tally.h: what threads count and raise at once is all there, and settling takes nothing that came later. */
#include "shim/tally.h"

#include <pthread.h>
#include "tests/tap.h"

#define THREADS 4
#define ROUNDS	200000

static struct tally sum, most, settled;
static char lane[THREADS]; /* only their addresses matter */
static _Atomic uint64_t stamp;
static pthread_barrier_t begin;

static struct rgpu_lane *lane_of(unsigned i)
{
	return i ? (struct rgpu_lane *)&lane[i] : NULL; /* one thread has none at hand */
}

static void *count(void *arg)
{
	unsigned i = (char *)arg - lane;

	pthread_barrier_wait(&begin);
	for (unsigned n = 0; n < ROUNDS; n++) {
		tally_add(&sum, lane_of(i), 1);
		tally_raise(&most, lane_of(i), atomic_fetch_add(&stamp, 1) + 1);
	}
	return NULL;
}

/* Raises while the other settles up to what is behind it: what was raised last must stay. */
static void *raise(void *arg)
{
	_Atomic bool *end = arg;
	uint64_t bad = 0;

	for (uint64_t n = 2; n < ROUNDS; n += 2) {
		tally_raise(&settled, lane_of(1), n);
		bad += tally_most(&settled) != n;
	}
	atomic_store(end, true);
	return (void *)bad;
}

int main(void)
{
	pthread_t t[THREADS];
	_Atomic bool end = false;
	uint64_t last = 0;
	void *bad;

	pthread_barrier_init(&begin, NULL, THREADS);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, count, &lane[i]);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	is_int(tally_sum(&sum), THREADS * ROUNDS, "every count of %d threads is there", THREADS);
	is_int(tally_most(&most), THREADS * ROUNDS, "the highest stamp is there");
	ok(atomic_load(&sum.own) && atomic_load(&sum.others), "one thread was the owner, the others were not");
	tally_raise(&most, lane_of(1), 5);
	tally_raise(&most, lane_of(2), 5);
	is_int(tally_most(&most), THREADS * ROUNDS, "it is never lowered");

	pthread_create(&t[0], NULL, raise, &end);
	while (!atomic_load(&end)) {
		uint64_t now = tally_most(&settled);

		if (now > 1)
			tally_settle(&settled, now - 1);
		last = now;
	}
	pthread_join(t[0], &bad);
	is_int((uint64_t)bad, 0, "settling what is older takes nothing away");
	ok(last <= tally_most(&settled), "and the highest stays");
	tally_settle(&settled, ROUNDS);
	is_int(tally_most(&settled), 0, "settled up to the last, it is 0");
	tally_clear(&most);
	tally_raise(&most, lane_of(3), 7);
	ok(atomic_load(&most.own) == 7 && !atomic_load(&most.others), "cleared, it has another owner");
	return tap_done();
}
