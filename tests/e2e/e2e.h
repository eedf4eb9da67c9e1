/* SPDX-License-Identifier: MIT */
/* What the end-to-end programs share: they end with one line, and with status 1 as soon as anything is not as it should be. */
#ifndef RGPU_TESTS_E2E_H
#define RGPU_TESTS_E2E_H

#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program with a message on stderr. */
#define die(...)                                                                                                                 \
	do {                                                                                                                     \
		fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);                                                                  \
		fprintf(stderr, __VA_ARGS__);                                                                                    \
		fputc('\n', stderr);                                                                                             \
		exit(1);                                                                                                         \
	} while (0)

/* Driver calls that must succeed. */
#ifdef __cuda_cuda_h__
#define DR(call)                                                                                                                 \
	do {                                                                                                                     \
		CUresult r_ = (call);                                                                                            \
		const char *name_ = NULL;                                                                                        \
		if (r_) {                                                                                                        \
			cuGetErrorName(r_, &name_);                                                                              \
			die("%s: %s (%d)", #call, name_ ? name_ : "?", (int)r_);                                                 \
		}                                                                                                                \
	} while (0)
#endif

/* Runtime calls that must succeed. */
#ifdef __CUDA_RUNTIME_API_H__
#define RT(call)                                                                                                                 \
	do {                                                                                                                     \
		cudaError_t e_ = (call);                                                                                         \
		if (e_)                                                                                                          \
			die("%s: %s: %s", #call, cudaGetErrorName(e_), cudaGetErrorString(e_));                                  \
	} while (0)
#endif

/* Small whole numbers, so that float sums are exact in whatever order they are added. */
static inline uint32_t e2e_next(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

/* The first argument as a number, or @otherwise. */
static inline long e2e_arg(int argc, char **argv, int i, long otherwise)
{
	return argc > i ? strtol(argv[i], NULL, 0) : otherwise;
}

/* Whether standard input has ended: how a test ends a program that goes on until then. */
static inline int e2e_told_to_end(void)
{
	struct pollfd p = {0, POLLIN, 0};

	return poll(&p, 1, 0) > 0;
}

/* The path of a file that lies beside the program. */
static inline const char *e2e_beside(const char *argv0, const char *name)
{
	static char path[4096];
	const char *slash = strrchr(argv0, '/');

	snprintf(path, sizeof(path), "%.*s%s", slash ? (int)(slash + 1 - argv0) : 0, argv0, name);
	return path;
}

/* A whole file with a NUL behind it, as cuModuleLoadData wants PTX. */
static inline char *e2e_read(const char *path, size_t *len)
{
	FILE *f = fopen(path, "rb");
	char *buf;
	long n;

	if (!f || fseek(f, 0, SEEK_END) || (n = ftell(f)) < 0 || fseek(f, 0, SEEK_SET))
		die("cannot read %s", path);
	buf = (char *)calloc(1, n + 1);
	if (!buf || fread(buf, 1, n, f) != (size_t)n)
		die("cannot read %s", path);
	fclose(f);
	if (len)
		*len = n;
	return buf;
}

#endif
