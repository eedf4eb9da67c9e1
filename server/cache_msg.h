/* SPDX-License-Identifier: MIT */
/* What a worker says to the listener about kept blocks: a question, and its answer, over a stream socket. */
#ifndef RGPU_SERVER_CACHE_MSG_H
#define RGPU_SERVER_CACHE_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/digest.h"

enum cache_what {
	CACHE_LIST = 1, /* → hints, len bytes */
	CACHE_WANTS,	/* hint, len, at_once → yes: PUT it */
	CACHE_PUT,	/* len, at_once; then len bytes → yes: it is kept under @hint */
	CACHE_GET,	/* hint, sha256, len → yes, then len bytes */
};

struct cache_ask {
	uint32_t what, len;
	uint64_t hint;
	uint8_t sha256[RGPU_SHA256_LEN];
	uint32_t at_once, reserved;
};

struct cache_answer {
	uint32_t yes, len;
	uint64_t hint;
};

/* All of it, or false: the other side is gone, or (for a socket with a timeout) slow. */
bool cache_read(int fd, void *buf, size_t len);
bool cache_write(int fd, const void *buf, size_t len);

#endif
