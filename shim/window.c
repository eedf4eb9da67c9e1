// SPDX-License-Identifier: MIT
/* Agrees with the server on the address window, and keeps that range free of everything else in this process. */
#include "shim/heap.h"

#include <string.h>
#include <sys/mman.h>
#include "api/hello.h"
#include "rgpu_rpc.h"
#include "shim/cuda_api.h"
#include "shim/session.h"

#ifdef __SANITIZE_THREAD__ /* which leaves a program little of the address space */
#define WINDOW_BYTES (1ull << 36)
#define WINDOW_HINT  0x7e9000000000ull
#define WINDOW_STEP  0x002000000000ull
#else
#define WINDOW_BYTES (1ull << 40)
#define WINDOW_HINT  0x200000000000ull
#define WINDOW_STEP  0x040000000000ull
#endif
#define TRIES 12

static bool hold(uint64_t base, uint64_t bytes)
{
	void *p = mmap((void *)base, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (p == MAP_FAILED)
		return false;
	/* Kernels before 4.17 take MAP_FIXED_NOREPLACE for a mere hint. */
	if ((uint64_t)p != base) {
		munmap(p, bytes);
		return false;
	}
	madvise(p, bytes, MADV_DONTDUMP);
	return true;
}

int window_open(struct rgpu_session *s)
{
	uint64_t hint = WINDOW_HINT;

	for (int i = 0; i < TRIES; i++, hint += WINDOW_STEP) {
		struct rgpu_call c = {.op = OP_OPEN, .session = s};
		uint64_t base, size;
		uint32_t images, version;
		int r = rpc_OPEN(&c, RGPU_API_VERSION, s->ndevices, hint, WINDOW_BYTES, &base, &size, &images, &version);

		if (r)
			return r;
		if (!hold(base, size))
			continue;
		s->images = images;
		s->window.base = base;
		s->window.size = size;
		s->window.space = space_new(base, size);
		return s->window.space ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
	}
	return session_error(
		s, CUDA_ERROR_OUT_OF_MEMORY,
		"no address range is free both here and at the server for device memory; raise the limit on virtual memory "
		"(ulimit -v)");
}

static uint64_t granules(const struct device *d, uint64_t bytes)
{
	uint64_t unit = d->props.granularity;

	return (bytes + unit - 1) / unit * unit;
}

uint64_t window_take(struct device *d, uint64_t bytes)
{
	struct window *w = &d->session->window;
	uint64_t whole = granules(d, bytes), addr;

	if (whole < bytes || whole > w->size)
		return 0;
	pthread_mutex_lock(&w->lock);
	addr = space_take(w->space, whole, d->props.granularity);
	pthread_mutex_unlock(&w->lock);
	return addr;
}

void window_give(struct device *d, uint64_t addr, uint64_t bytes)
{
	struct window *w = &d->session->window;

	pthread_mutex_lock(&w->lock);
	space_give(w->space, addr, granules(d, bytes));
	pthread_mutex_unlock(&w->lock);
}
