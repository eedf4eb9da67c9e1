/* SPDX-License-Identifier: MIT */
/* HOST:PORT on the command line, and TCP sockets to and at such an address. */
#ifndef RGPU_LIB_ADDR_H
#define RGPU_LIB_ADDR_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/why.h"

struct rgpu_addr {
	char host[256]; /* a name or a numeric address, without brackets */
	uint16_t port;
};
#define RGPU_ADDR_TEXT_MAX 272

/*
 * Accepts HOST, HOST:PORT, [V6], [V6]:PORT and a bare V6 address; without a port: RGPU_DEFAULT_PORT. Port 0 is
 * accepted only when @any_port (a listener that wants a free one). -EINVAL.
 */
int rgpu_addr_parse(const char *text, bool any_port, struct rgpu_addr *out, char why[RGPU_WHY_MAX]);
void rgpu_addr_text(const struct rgpu_addr *a, char out[RGPU_ADDR_TEXT_MAX]);

/*
 * A connected, tuned, non-blocking, close-on-exec socket; every address of the name is tried within @timeout_ms together.
 * -ECONNREFUSED, -ETIMEDOUT, -EHOSTUNREACH (also: no such name) …
 */
int rgpu_addr_connect(const struct rgpu_addr *a, int timeout_ms, char why[RGPU_WHY_MAX]);

/* A listening, non-blocking, close-on-exec socket on the first address of the name. @port, if given, receives the port it got. */
int rgpu_addr_listen(const struct rgpu_addr *a, uint16_t *port, char why[RGPU_WHY_MAX]);

/* Whether every address of the name is a loopback address; false when it does not resolve. */
bool rgpu_addr_is_loopback(const struct rgpu_addr *a);

/*
 * Options that every connection of ours wants, at both ends: no delay, keep-alive after 5 s, an end to unanswered
 * bytes after 20 s, and little unsent data in the kernel, so that a small call is not queued behind megabytes.
 */
void rgpu_sock_tune(int fd);
/* Both of its ends have loopback addresses. */
bool rgpu_sock_is_loopback(int fd);
/* Both ends are on this machine, as far as their addresses say. */
bool rgpu_sock_same_host(int fd);
/* The other end, on this machine, sent its last bytes from another processor than the one that the caller runs on. */
bool rgpu_sock_apart(int fd);

#endif
