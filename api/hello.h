/* SPDX-License-Identifier: MIT */
/* The shim's own words at the start of a session: which tables it was built from, and the environment that may cross. */
#ifndef RGPU_API_HELLO_H
#define RGPU_API_HELLO_H

#include <stdint.h>

#define RGPU_HELLO_MAGIC 0x48454c4fu /* "HELO" */
#define RGPU_API_VERSION 1	     /* of the tables: rows are only added, so an older one is a subset */
#define RGPU_HELLO_ENV	 2048	     /* bytes of environment at most */

/*
 * Variables that change what the driver does and that name nothing of either machine. All others stay at home: the driver's name
 * files to write and libraries to load, and above all CUDA_VISIBLE_DEVICES, which is applied by the client.
 */
#define RGPU_HELLO_NAMES                                                                                                         \
	"CUDA_LAUNCH_BLOCKING", "CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_MODULE_LOADING", "CUDA_MODULE_DATA_LOADING",                \
		"CUDA_FORCE_PTX_JIT", "CUDA_DISABLE_PTX_JIT", "CUDA_CACHE_DISABLE", "CUDA_AUTO_BOOST",                           \
		"CUDA_SCALE_LAUNCH_QUEUES"

/* Behind it env_len bytes of NAME=VALUE strings, each with its NUL: RGPU_HELLO_NAMES only. */
struct rgpu_shim_hello {
	uint32_t magic;
	uint32_t api_version;
	uint32_t cuda_version; /* of the headers that the shim was built with */
	uint32_t env_len;
};

#endif
