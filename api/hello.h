/* SPDX-License-Identifier: MIT */
/* The shim's own words at the start of a session: which tables it was built from, and the environment that may cross. */
#ifndef RGPU_API_HELLO_H
#define RGPU_API_HELLO_H

#include <stdint.h>

#define RGPU_HELLO_MAGIC 0x48454c4fu /* "HELO" */
#define RGPU_API_VERSION 1	     /* of the tables: rows are only added, so an older one is a subset */
#define RGPU_HELLO_ENV	 2048	     /* bytes of environment at most */

/* Behind it env_len bytes of NAME=VALUE strings, each with its NUL: variables of the allow-list only. */
struct rgpu_shim_hello {
	uint32_t magic;
	uint32_t api_version;
	uint32_t cuda_version; /* of the headers that the shim was built with */
	uint32_t env_len;
};

#endif
