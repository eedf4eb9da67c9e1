/* SPDX-License-Identifier: MIT */
/* What a program of the relay's tests does, and what must hold afterwards whatever happened on the way. */
#ifndef RGPU_TESTS_WORKLOAD_H
#define RGPU_TESTS_WORKLOAD_H

#include "tests/relay/fake_app.h"

/*
 * @rounds times on every channel, each in its own thread: a quiet record, an upload of @bulk bytes in one record, a quiet
 * download, a fenced download, a fence with a status, a fence with a long body. Wrong answers are counted.
 */
struct work {
	unsigned rounds;
	uint64_t bulk;
	unsigned wrong; /* atomic */
	int reason;	/* of the session's end, if it ended */
};
void work_run(struct app *app, struct work *w);

/* Everything was executed once and in order, everything is acknowledged and published. "" or what is wrong. */
const char *work_check(struct app *app, const struct work *w);

#endif
