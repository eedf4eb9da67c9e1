/* SPDX-License-Identifier: MIT */
/* How long to look for something before sleeping: a wake-up costs more than such a look, where that is enough. */
#ifndef RGPU_LIB_SPIN_H
#define RGPU_LIB_SPIN_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/addr.h"

#define RGPU_SPIN_MAX 30000LL /* ns */
#define RGPU_SPIN_MIN 1000LL

/* It came while somebody looked; it did not. */
__attribute__((unused)) static inline int64_t rgpu_spin_more(int64_t ns)
{
	return ns * 2 < RGPU_SPIN_MAX ? ns * 2 : RGPU_SPIN_MAX;
}

__attribute__((unused)) static inline int64_t rgpu_spin_less(int64_t ns)
{
	return ns / 2 > RGPU_SPIN_MIN ? ns / 2 : RGPU_SPIN_MIN;
}

/* It came @waited after the look began that was in vain: a longer one would have been enough, or not. */
__attribute__((unused)) static inline int64_t rgpu_spin_next(int64_t ns, int64_t waited)
{
	return waited < 3 * RGPU_SPIN_MAX ? rgpu_spin_more(ns) : rgpu_spin_less(ns);
}

/* Whether the peer, which is on this machine, runs on another processor: else it would wait for ours. */
struct rgpu_apart {
	unsigned asked;
	bool apart;
};

/* Asked now and then: the answer seldom changes. */
__attribute__((unused)) static inline bool rgpu_spin_apart(struct rgpu_apart *a, int fd)
{
	if (!(a->asked++ % 8))
		a->apart = rgpu_sock_apart(fd);
	return a->apart;
}

#endif
