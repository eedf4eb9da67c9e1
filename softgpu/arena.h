/* SPDX-License-Identifier: MIT */
/* The soft device memory: one reserved range of host addresses in which a device pointer *is* a host pointer. */
#ifndef SOFTGPU_ARENA_H
#define SOFTGPU_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * All soft devices of a process share one arena, reserved PROT_NONE at start and populated in
 * granules. An access is legal when every granule that it touches is mapped; the PTX engine asks
 * that before each access, so a wild pointer is CUDA_ERROR_ILLEGAL_ADDRESS and never a SIGSEGV.
 * Like a real GPU, whose pages are this large, it does not see an overrun inside one granule.
 *
 * state[] is written under the driver's memory lock and read without one: a byte goes 0 → 1 after
 * its pages are mapped, and 1 → 0 before they are unmapped and only with no kernel running.
 */
#define SOFTGPU_GRANULE_SHIFT 21
#define SOFTGPU_GRANULE	      (1ull << SOFTGPU_GRANULE_SHIFT)

struct softgpu_arena {
	uint8_t *base;	/* multiple of SOFTGPU_GRANULE */
	uint64_t size;	/* bytes, multiple of SOFTGPU_GRANULE */
	uint8_t *state; /* one byte a granule: 0 unmapped, 1 mapped */
};

extern struct softgpu_arena softgpu_arena;

/* True when [addr, addr + len) lies in mapped granules; len 0 is true for any address. */
static inline bool softgpu_mapped(uint64_t addr, uint64_t len)
{
	const struct softgpu_arena *a = &softgpu_arena;
	uint64_t off = addr - (uint64_t)(uintptr_t)a->base;

	if (!len)
		return true;
	if (off >= a->size || len > a->size - off)
		return false;
	for (uint64_t g = off >> SOFTGPU_GRANULE_SHIFT; g <= (off + len - 1) >> SOFTGPU_GRANULE_SHIFT; g++)
		if (!a->state[g])
			return false;
	return true;
}

/* Memory of the program that cuMemHostRegister made known (ptx/registered.c). */
extern unsigned int softgpu_nregistered;
bool softgpu_register(uint64_t addr, uint64_t bytes); /* false: no memory to note it */
void softgpu_unregister(uint64_t addr);
bool softgpu_registered(uint64_t addr, uint64_t len); /* all of it lies in one registered piece */

/* True when kernels and other work may touch it. */
static inline bool softgpu_reaches(uint64_t addr, uint64_t len)
{
	return softgpu_mapped(addr, len) ||
	       (__atomic_load_n(&softgpu_nregistered, __ATOMIC_ACQUIRE) && softgpu_registered(addr, len));
}

#endif
