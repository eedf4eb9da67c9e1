/* SPDX-License-Identifier: MIT */
/* A small arena and launch helpers for the PTX engine's tests: device memory without the driver. */
#ifndef RGPU_TESTS_SOFTGPU_TEST_ARENA_H
#define RGPU_TESTS_SOFTGPU_TEST_ARENA_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "softgpu/arena.h"
#include "softgpu/ptx/ptx.h"
#include "tests/tap.h"

struct softgpu_arena softgpu_arena;

#define TEST_ARENA_GRANULES 512u
#define TEST_ARENA_MAPPED   256u /* the rest stays unmapped: wild addresses to be caught */

static uint8_t test_state[TEST_ARENA_GRANULES];
static uint64_t test_used;

static void test_arena_init(void)
{
	size_t size = TEST_ARENA_GRANULES * SOFTGPU_GRANULE;
	uint8_t *p = mmap(NULL, size + SOFTGPU_GRANULE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		abort();
	p = (uint8_t *)(((uintptr_t)p + SOFTGPU_GRANULE - 1) & ~(uintptr_t)(SOFTGPU_GRANULE - 1));
	if (mprotect(p, TEST_ARENA_MAPPED * SOFTGPU_GRANULE, PROT_READ | PROT_WRITE))
		abort();
	memset(test_state, 1, TEST_ARENA_MAPPED);
	softgpu_arena = (struct softgpu_arena){p, size, test_state};
}

/* Device memory, zeroed once; never given back but by test_arena_reset. */
static __attribute__((unused)) void *test_alloc(size_t bytes)
{
	uint64_t at = (test_used + 255) & ~255ull;

	if (at + bytes > TEST_ARENA_MAPPED * SOFTGPU_GRANULE)
		abort();
	test_used = at + bytes;
	return softgpu_arena.base + at;
}

static __attribute__((unused)) void test_arena_reset(void)
{
	test_used = 0;
}

static uint64_t test_mem_alloc(void *arg, size_t bytes, size_t align)
{
	(void)arg;
	test_used = (test_used + align - 1) & ~(uint64_t)(align - 1);
	return (uint64_t)(uintptr_t)test_alloc(bytes);
}

static void test_mem_free(void *arg, uint64_t addr)
{
	(void)arg;
	(void)addr;
}

static char test_log[512];

/* PTX_SEEDS names a folder that gets every text: the beginning of a fuzzer's corpus. */
static void test_seed(const char *text, size_t len)
{
	const char *dir = getenv("PTX_SEEDS");
	static unsigned int n;
	char name[4096];
	FILE *f;

	if (!dir)
		return;
	snprintf(name, sizeof(name), "%s/%d-%u", dir, (int)getpid(), n++);
	f = fopen(name, "wb");
	if (f) {
		fwrite(text, 1, len, f);
		fclose(f);
	}
}

static __attribute__((unused)) enum ptx_status test_load(const char *text, size_t len, struct ptx_module **m)
{
	const struct ptx_mem mem = {.alloc = test_mem_alloc, .free = test_mem_free};

	test_seed(text, len);
	return ptx_module_load(text, len, &mem, m, test_log, sizeof(test_log));
}

/* Loads or ends the test program: for PTX that must load. */
static __attribute__((unused)) struct ptx_module *test_must_load(const char *text)
{
	struct ptx_module *m;

	if (test_load(text, strlen(text), &m) != PTX_OK) {
		printf("Bail out! %s\n", test_log);
		exit(1);
	}
	return m;
}

static __attribute__((unused)) char *test_read_file(const char *name, size_t *len)
{
	FILE *f = fopen(name, "rb");
	char *p = NULL;

	if (!f)
		return NULL;
	if (!fseek(f, 0, SEEK_END)) {
		*len = (size_t)ftell(f);
		rewind(f);
		p = malloc(*len + 1);
		if (p)
			p[fread(p, 1, *len, f)] = 0;
	}
	fclose(f);
	return p;
}

/* The module in PROGRAM.ptx, which lies beside the test, in a new arena. *@text is the caller's, as long as the module. */
static __attribute__((unused)) struct ptx_module *test_module_beside(const char *program, char **text)
{
	char name[4096];
	size_t len;

	snprintf(name, sizeof(name), "%s.ptx", program);
	*text = test_read_file(name, &len);
	if (!*text)
		skip_all("%s is not there", name);
	test_arena_init();
	return test_must_load(*text);
}

static struct ptx_fault test_fault;
static unsigned test_threads = 1;
static uint32_t test_cluster[3]; /* of the launches to come; 0: what the kernel says */
static char test_text[65536];	 /* what device printf printed in the last launch */
static size_t test_text_len;

static void test_print(void *arg, const char *s, size_t n)
{
	(void)arg;
	if (n > sizeof(test_text) - 1 - test_text_len)
		n = sizeof(test_text) - 1 - test_text_len;
	memcpy(test_text + test_text_len, s, n);
	test_text_len += n;
	test_text[test_text_len] = 0;
}

/* A launch of @f with the packed parameter block @params. */
static __attribute__((unused)) enum ptx_status test_launch_dim(struct ptx_func *f, const uint32_t grid[3],
							       const uint32_t block[3], uint32_t shared, const void *params,
							       bool cooperative)
{
	const struct ptx_launch l = {
		.grid = {grid[0], grid[1], grid[2]},
		.block = {block[0], block[1], block[2]},
		.cluster = {test_cluster[0], test_cluster[1], test_cluster[2]},
		.dyn_shared = shared,
		.params = params,
		.threads = test_threads,
		.cooperative = cooperative,
		.print = test_print,
	};

	test_text_len = 0;
	test_text[0] = 0;
	return ptx_launch(f, &l, &test_fault);
}

static __attribute__((unused)) enum ptx_status test_launch(struct ptx_func *f, uint32_t grid, uint32_t block, const void *params)
{
	return test_launch_dim(f, (const uint32_t[3]){grid, 1, 1}, (const uint32_t[3]){block, 1, 1}, 0, params, false);
}

#endif
