// SPDX-License-Identifier: MIT
/* Stamps: the prefix over random arrival, repeated and missing ones, growth, and threads that wait. */
#include <errno.h>
#include <unistd.h>
#include "server/stamps.h"
#include "tests/tap.h"

static void arrival(void)
{
	enum { N = 20000 };
	static uint64_t order[N];
	struct stamps s;
	uint64_t done = 0, worst = 0;
	static bool run[N + 2];
	unsigned seed = 42;

	stamps_init(&s);
	for (int i = 0; i < N; i++)
		order[i] = i + 1;
	for (int i = N - 1; i > 0; i--) {
		int j = rand_r(&seed) % (i + 1);
		uint64_t t = order[i];

		order[i] = order[j];
		order[j] = t;
	}
	for (int i = 0; i < N; i++)
		worst |= stamps_receive(&s, order[i]);
	is_int(worst, 0, "stamps are received in any order, beyond the first span");
	worst = 0;
	for (int i = N - 1; i >= 0; i--) {
		stamps_done(&s, order[i]);
		run[order[i]] = true;
		while (run[done + 1])
			done++;
		worst += s.prefix != done;
	}
	is_int(worst, 0, "the prefix is right after each of %d in random order", N);
	is_int(stamps_receive(&s, N), -EEXIST, "a stamp below the prefix is a repeated one");
	is_int(stamps_receive(&s, N + 5), 0, "one ahead is received");
	is_int(stamps_receive(&s, N + 5), -EEXIST, "and is repeated when it comes twice");
	is_int(stamps_receive(&s, N + STAMPS_SPAN_MAX + 1), -ERANGE, "one beyond what can wait is refused");
	is_int(stamps_receive(&s, 0), -EEXIST, "0 is no stamp");
	is_int(stamps_missing(&s), 0, "nobody waits, so nothing is missing");
	stamps_destroy(&s);
}

struct waiter {
	struct stamps *s;
	uint64_t after;
	_Atomic int result; /* 0 waits, 1 went on, 2 was broken */
	pthread_t t;
};

static void *wait_main(void *arg)
{
	struct waiter *w = arg;
	struct stamps_waiter sw;

	stamps_waiter_init(&sw);
	w->result = stamps_wait(w->s, &sw, w->after) ? 1 : 2;
	stamps_waiter_destroy(&sw);
	return NULL;
}

static bool is_listed(struct stamps *s, unsigned n)
{
	unsigned have;

	do {
		have = 0;
		pthread_mutex_lock(&s->lock);
		for (struct stamps_waiter *w = s->waiters; w; w = w->next)
			have++;
		pthread_mutex_unlock(&s->lock);
		usleep(100);
	} while (have != n);
	return true;
}

static void waiting(void)
{
	struct waiter w[3];
	struct stamps s;

	stamps_init(&s);
	for (int i = 0; i < 3; i++) {
		w[i] = (struct waiter){.s = &s, .after = 2 + i};
		pthread_create(&w[i].t, NULL, wait_main, &w[i]);
	}
	is_listed(&s, 3);
	stamps_receive(&s, 2);
	stamps_done(&s, 2);
	is_int(stamps_missing(&s), 1, "1 is missing when only 2 came");
	stamps_receive(&s, 1);
	is_int(stamps_missing(&s), 3, "then 3");
	ok(!w[0].result, "nobody goes while 1 has not run");
	stamps_done(&s, 1);
	pthread_join(w[0].t, NULL);
	is_int(w[0].result, 1, "the one that waits for 2 goes when 1 has run");
	is_listed(&s, 2);
	ok(!w[1].result && !w[2].result, "the others wait on");
	stamps_receive(&s, 3);
	stamps_done(&s, 3);
	pthread_join(w[1].t, NULL);
	is_int(w[1].result, 1, "3 goes after 3");
	stamps_break(&s);
	pthread_join(w[2].t, NULL);
	is_int(w[2].result, 2, "a broken session ends the wait, and says so");
	stamps_destroy(&s);
}

int main(void)
{
	alarm(60);
	arrival();
	waiting();
	return tap_done();
}
