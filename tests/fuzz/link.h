/* SPDX-License-Identifier: MIT */
/* A link for fuzz targets, in place of lib/link.c: what comes in is the input, what goes out is dropped. No TLS, no socket. */
#ifndef RGPU_TESTS_FUZZ_LINK_H
#define RGPU_TESTS_FUZZ_LINK_H

#include "lib/link.h"

/* Its bytes are read in pieces of @step at most; behind them it has ended, or, if @open, has nothing more for now. */
struct rgpu_link *fuzz_link(const uint8_t *data, size_t size, size_t step, bool open);

/* From here on nothing more is there for once after each @pieces of them, so that the reader does something else. */
void fuzz_link_pause(struct rgpu_link *l, unsigned pieces);
bool fuzz_link_left(const struct rgpu_link *l);

#endif
