/* SPDX-License-Identifier: MIT */
/* A link for fuzz targets, in place of lib/link.c: what comes in is the input, what goes out is dropped. No TLS, no socket. */
#ifndef RGPU_TESTS_FUZZ_LINK_H
#define RGPU_TESTS_FUZZ_LINK_H

#include "lib/link.h"

/* Its bytes are read in pieces of @step at most; behind them it has ended, or, if @open, has nothing more for now. */
struct rgpu_link *fuzz_link(const uint8_t *data, size_t size, size_t step, bool open);

#endif
