// SPDX-License-Identifier: MIT
/* Fuzz target: any bytes as PTX are loaded or refused in order, and a kernel that loads runs or faults in order. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>

#include "softgpu/arena.h"
#include "softgpu/ptx/ptx.h"
#include "tests/fuzz/fuzz.h"

struct softgpu_arena softgpu_arena;

#define GRANULES 16u /* the upper half stays unmapped */
#define RUN_USEC 20000

static uint8_t state[GRANULES];
static volatile int cancel;

static void too_long(int sig)
{
	(void)sig;
	cancel = 1;
}

static void arena_init(void)
{
	size_t size = GRANULES * SOFTGPU_GRANULE;
	uint8_t *p = mmap(NULL, size + SOFTGPU_GRANULE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		abort();
	p = (uint8_t *)(((uintptr_t)p + SOFTGPU_GRANULE - 1) & ~(uintptr_t)(SOFTGPU_GRANULE - 1));
	if (mprotect(p, size / 2, PROT_READ | PROT_WRITE))
		abort();
	memset(state, 1, GRANULES / 2);
	softgpu_arena = (struct softgpu_arena){p, size, state};
	signal(SIGVTALRM, too_long);
}

/* One module at a time: its variables begin where the arena does. */
static uint64_t mem_alloc(void *arg, size_t bytes, size_t align)
{
	(void)arg;
	(void)align;
	return bytes > GRANULES / 2 * SOFTGPU_GRANULE ? 0 : (uint64_t)(uintptr_t)softgpu_arena.base;
}

static void mem_free(void *arg, uint64_t addr)
{
	(void)arg;
	if (addr != (uint64_t)(uintptr_t)softgpu_arena.base)
		abort();
}

static void run(struct ptx_func *f)
{
	const struct ptx_func_info *info = ptx_func_info(f);
	const struct itimerval on = {.it_value = {0, RUN_USEC}}, off = {0};
	void *params = calloc(1, info->param_bytes + 1);
	struct ptx_fault fault;
	struct ptx_launch l = {
		.grid = {2, 1, 1}, .block = {37, 1, 1}, .dyn_shared = 256, .params = params, .threads = 1, .cancel = &cancel};

	/* The first eight bytes of the parameters are a good pointer, as most kernels want it. */
	if (info->param_bytes >= 8)
		memcpy(params, &softgpu_arena.base, 8);
	if (info->max_threads < 37)
		l.block[0] = info->max_threads;
	/* Not what takes long by its size alone. */
	if (info->local_bytes <= 64 << 10) {
		cancel = 0;
		setitimer(ITIMER_VIRTUAL, &on, NULL);
		ptx_launch(f, &l, &fault);
		setitimer(ITIMER_VIRTUAL, &off, NULL);
	}
	free(params);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct ptx_mem mem = {.alloc = mem_alloc, .free = mem_free};
	struct ptx_module *m = NULL;
	char log[256];

	if (!softgpu_arena.base)
		arena_init();
	if (ptx_module_load((const char *)data, size, &mem, &m, log, sizeof(log)) == PTX_OK) {
		for (size_t k = 0; k < 4 && ptx_module_kernel_at(m, k); k++)
			run(ptx_module_kernel_at(m, k));
		ptx_module_free(m);
	} else if (m || !log[0]) {
		abort(); /* a refusal has a reason */
	}
	return 0;
}
