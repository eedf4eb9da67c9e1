/* SPDX-License-Identifier: MIT */
/* Monotonic time and deadlines for poll(). */
#ifndef RGPU_LIB_CLOCK_H
#define RGPU_LIB_CLOCK_H

#include <limits.h>
#include <stdint.h>
#include <time.h>

#define RGPU_FOREVER INT64_MAX

__attribute__((unused)) static inline int64_t rgpu_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* The time @timeout_ms from now; a negative one never comes. */
__attribute__((unused)) static inline int64_t rgpu_deadline(int timeout_ms)
{
	return timeout_ms < 0 ? RGPU_FOREVER : rgpu_now_ns() + timeout_ms * 1000000LL;
}

/* Milliseconds until @deadline for poll(), rounded up: 0 once it has passed, −1 for never. */
__attribute__((unused)) static inline int rgpu_ms_left(int64_t deadline)
{
	int64_t left;

	if (deadline == RGPU_FOREVER)
		return -1;
	left = deadline - rgpu_now_ns();
	if (left <= 0)
		return 0;
	left = (left + 999999) / 1000000;
	return left > INT_MAX ? INT_MAX : (int)left;
}

#endif
