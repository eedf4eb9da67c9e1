/* SPDX-License-Identifier: MIT */
/*
 * How many blocks of a function fit on a multiprocessor: warps, registers and shared memory as devices of compute capability 7.0
 * and later share them out (CUDA programming guide, "Compute Capabilities", and the toolkit's occupancy calculator).
 */
#ifndef RGPU_LIB_OCCUPANCY_H
#define RGPU_LIB_OCCUPANCY_H

#include <stdint.h>

#define OCCUPANCY_WARP	32u
#define OCCUPANCY_REGS	256u /* a warp gets registers in these */
#define OCCUPANCY_PARTS 4u   /* of a multiprocessor: each has its own registers for its own warps */

/* Attributes of a device. */
struct occupancy_device {
	unsigned major; /* compute capability */
	unsigned threads_block, threads_sm, blocks_sm, regs_block, regs_sm;
	unsigned shared_sm, shared_reserved; /* bytes; the latter of each block */
};

/* Attributes of a function. */
struct occupancy_function {
	unsigned threads_block, regs, shared; /* shared: bytes that it has always */
};

static inline uint64_t occupancy_up(uint64_t n, uint64_t unit)
{
	return (n + unit - 1) / unit * unit;
}

/* What a block takes of shared memory, in bytes. */
static inline uint64_t occupancy_shared(const struct occupancy_device *d, uint64_t bytes)
{
	return occupancy_up(bytes + d->shared_reserved, d->major >= 8 ? 128 : 256);
}

/* 0: it cannot be launched so. */
static inline unsigned occupancy_of(const struct occupancy_device *d, const struct occupancy_function *f, unsigned threads,
				    uint64_t dynamic)
{
	uint64_t warps = occupancy_up(threads, OCCUPANCY_WARP) / OCCUPANCY_WARP, blocks = d->blocks_sm, limit;

	if (!threads || threads > d->threads_block || threads > f->threads_block)
		return 0;
	limit = d->threads_sm / OCCUPANCY_WARP / warps;
	if (limit < blocks)
		blocks = limit;
	if (f->regs) {
		uint64_t per_warp = occupancy_up((uint64_t)f->regs * OCCUPANCY_WARP, OCCUPANCY_REGS);

		limit = per_warp * warps > d->regs_block ? 0 : d->regs_sm / OCCUPANCY_PARTS / per_warp * OCCUPANCY_PARTS / warps;
		if (limit < blocks)
			blocks = limit;
	}
	if (f->shared + dynamic + d->shared_reserved) {
		limit = d->shared_sm / occupancy_shared(d, f->shared + dynamic);
		if (limit < blocks)
			blocks = limit;
	}
	return (unsigned)blocks;
}

/*
 * The largest block size among those that keep the most threads on a multiprocessor, of at most @most; *fit: how many of it fit.
 * @dynamic says what a size takes. 0: none fits.
 */
static inline unsigned occupancy_best(const struct occupancy_device *d, const struct occupancy_function *f, unsigned most,
				      uint64_t (*dynamic)(void *arg, unsigned threads), void *arg, unsigned *fit)
{
	unsigned best = 0;

	*fit = 0;
	for (unsigned n = (unsigned)occupancy_up(most, OCCUPANCY_WARP); n; n -= OCCUPANCY_WARP) {
		unsigned threads = n < most ? n : most, blocks = occupancy_of(d, f, threads, dynamic(arg, threads));

		if (blocks * threads > best * *fit) {
			best = threads;
			*fit = blocks;
		}
	}
	return best;
}

#endif
