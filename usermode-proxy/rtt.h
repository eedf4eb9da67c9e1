/* SPDX-License-Identifier: MIT */
/* The last round trips to the server, of all control connections of this process. */
#ifndef RGPU_PROXY_RTT_H
#define RGPU_PROXY_RTT_H

#include <stdint.h>

void rtt_add(int64_t ns);

/* The median and the 99th percentile of the last samples, in ns; how many there are. */
unsigned rtt_percentiles(unsigned long long *p50, unsigned long long *p99);

#endif
