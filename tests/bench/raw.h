/* SPDX-License-Identifier: MIT */
/* The yardstick: what TLS 1.3 itself gives between two processes, with the cipher that rgpu uses and nothing of rgpu's in it. */
#ifndef RGPU_BENCH_RAW_H
#define RGPU_BENCH_RAW_H

#include <stddef.h>
#include <stdint.h>

/* All end the program with a message when something fails. */
struct raw;

/* Serves one connection at @fd to its end. */
void raw_serve(int fd);

struct raw *raw_open(int port); /* of this machine */
void raw_close(struct raw *r);
void raw_ping(struct raw *r);		  /* 64 bytes there and back: about what a small call is */
void raw_up(struct raw *r, size_t bytes); /* until the other side has all of them */
void raw_down(struct raw *r, size_t bytes);

#endif
