/* SPDX-License-Identifier: MIT */
/* The options by which run and bench reach a server without the module, as the client libraries take them from the environment.
 */
#ifndef RGPU_TOOLS_DIRECT_H
#define RGPU_TOOLS_DIRECT_H

#include <getopt.h>
#include <stdbool.h>
#include "lib/auth.h"
#include "lib/why.h"

struct direct {
	const char *server, *text[RGPU_AUTH_SETTINGS];
};

/* Their codes begin where no letter is. */
#define DIRECT_FIRST 512
#define DIRECT_OPTIONS                                                                                                           \
	{"server", required_argument, NULL, DIRECT_FIRST},                                                                       \
		{"key", required_argument, NULL, DIRECT_FIRST + 1 + RGPU_AUTH_SET_KEY},                                          \
		{"tls-cert", required_argument, NULL, DIRECT_FIRST + 1 + RGPU_AUTH_SET_TLS_CERT},                                \
		{"tls-key", required_argument, NULL, DIRECT_FIRST + 1 + RGPU_AUTH_SET_TLS_KEY},                                  \
		{"tls-ca", required_argument, NULL, DIRECT_FIRST + 1 + RGPU_AUTH_SET_TLS_CA},                                    \
	{                                                                                                                        \
		"auth", required_argument, NULL, DIRECT_FIRST + 1 + RGPU_AUTH_SET_KIND                                           \
	}

/* Whether getopt_long()'s @c was one of them. */
bool direct_option(struct direct *d, int c, const char *arg);

/* Into the environment, when any was given; else there has to be a device. The libraries read all of it again; here a mistake
 * gets its answer before they do. 0, or −1 with @why. */
int direct_set(const struct direct *d, char why[RGPU_WHY_MAX]);

#endif
