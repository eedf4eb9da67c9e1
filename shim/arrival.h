/* SPDX-License-Identifier: MIT */
/* Asynchronous copies down into page-locked memory by way of a buffer, whose bytes are put there when the stream has come so far.
 */
#ifndef RGPU_SHIM_ARRIVAL_H
#define RGPU_SHIM_ARRIVAL_H

#include "shim/copy.h"

/* Rows of a copy down: where they go, and how far apart they lie there and in what comes. */
struct rows {
	uint8_t *to;
	uint64_t width, height, to_pitch, pitch;
};

/* @src has the rows with what lies between them. false: it is no page-locked memory, or there is no room; else *r is a CUresult.
 */
bool arrival_copy(struct rgpu_call *c, const struct rows *rows, struct remote src, uint64_t stream, int *r);
/* This memory is about to go: what comes there later is dropped. */
void arrival_forget(uint64_t start, uint64_t bytes);

#endif
