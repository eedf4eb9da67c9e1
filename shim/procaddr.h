/* SPDX-License-Identifier: MIT */
/* The generated table behind cuGetProcAddress. */
#ifndef RGPU_SHIM_PROCADDR_H
#define RGPU_SHIM_PROCADDR_H

struct rgpu_procaddr {
	const char *name;
	int version;	/* of CUDA, in which this ABI came */
	int per_thread; /* 1: for programs built for per-thread default streams */
	int (*symbol)(void);
};

/* Sorted by name, then per_thread, then version. */
extern const struct rgpu_procaddr rgpu_procaddr[];
extern const unsigned rgpu_procaddr_n;

#endif
