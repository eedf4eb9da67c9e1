/* SPDX-License-Identifier: MIT */
/* Round trips by the name of the record that waited: law 12. */
#ifndef RGPU_SHIM_COUNT_H
#define RGPU_SHIM_COUNT_H

#include <stdint.h>
#include "shim/call.h"

void count_round_trip(uint16_t op);
void count_hidden(uint32_t n); /* NEED, of no record: uploads that had to be sent after all */
void count_trace(void);	       /* RGPU_TRACE_ROUNDTRIPS=1: prints them when the process exits */

/*
 * For tests: replies waited for so far by records of that name, by all of them when @name is NULL, −1 when no record is
 * called that. Names are those of the API tables (api/): cuStreamQuery, LOAD_END …, and NEED.
 */
RGPU_PRIVATE_API long rgpuRoundTrips(const char *name);

#endif
