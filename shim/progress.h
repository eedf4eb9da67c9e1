/* SPDX-License-Identifier: MIT */
/* A bar on the program's terminal while one upload takes longer than a second. */
#ifndef RGPU_SHIM_PROGRESS_H
#define RGPU_SHIM_PROGRESS_H

#include "shim/lane.h"

#define PROGRESS_LOOK_MS 100

/* Of one copy, on the stack of the thread that waits for it. */
struct progress {
	uint64_t first, piece, total; /* records of so many bytes each, behind this one */
	int64_t began, drawn;	      /* drawn: when last; 0 never */
};

/* Reads RGPU_PROGRESS. Before the first copy. */
void progress_setting(void);

/* Does nothing unless standard error is a terminal that is ours to write to. The lane knows of @p until the end. */
void progress_begin(struct progress *p, struct rgpu_lane *l, uint64_t bytes, uint64_t piece);
/* Draws when it is time to. */
void progress_look(struct rgpu_lane *l);
/* Takes the bar away again. */
void progress_end(struct rgpu_lane *l);

#endif
