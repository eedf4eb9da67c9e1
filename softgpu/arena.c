// SPDX-License-Identifier: MIT
/* The arena's reservation, its free address space, and mapping and unmapping of granules in it. */
#include "softgpu/softgpu.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include "softgpu/ranges.h"

/*
 * Where the arena lies when nobody asks for another place. It must be out of the way of what the
 * program maps itself, and of the shadow memory of the sanitizers.
 */
#define DEFAULT_BASE   0x200000000000ull
#define DEFAULT_BYTES  (16ull << 40)
#define SMALLEST_BYTES (64ull << 30) /* below that a process limit leaves no use */
#define OWN_BYTES      (2ull << 40)  /* for plain allocations, above a hinted reservation */

struct softgpu_arena softgpu_arena;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* the reservation and space */
static struct ranges space;				 /* granules that nobody has taken */

static void *reserve(uint64_t base, uint64_t bytes)
{
	void *p = mmap((void *)(uintptr_t)base, bytes, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (base ? MAP_FIXED_NOREPLACE : 0), -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	/* Kernels before 4.17 take MAP_FIXED_NOREPLACE for a mere hint. */
	if (base && (uintptr_t)p != base) {
		munmap(p, bytes);
		return NULL;
	}
	return p;
}

static CUresult reserve_locked(uint64_t hint, uint64_t bytes)
{
	uint64_t room = DEFAULT_BYTES, base;
	uint8_t *p = NULL, *state;

	if (hint) {
		bytes = (bytes + SOFTGPU_GRANULE - 1) & ~(SOFTGPU_GRANULE - 1);
		if (room < bytes + OWN_BYTES)
			room = bytes + OWN_BYTES;
		for (; !p && room >= bytes + SOFTGPU_GRANULE * 64; room = bytes + (room - bytes) / 2) {
			p = reserve(hint, room);
			if (p)
				break;
		}
	}
	if (!p) {
		room = DEFAULT_BYTES;
		p = reserve(DEFAULT_BASE, room);
	}
	for (; !p && room >= SMALLEST_BYTES; room /= 2) {
		p = reserve(0, room);
		if (p)
			break;
	}
	if (!p) {
		log_line("cannot reserve %llu GiB of address space for device memory (%s); raise the limit on virtual memory "
			 "(ulimit -v)",
			 SMALLEST_BYTES >> 30, strerror(errno));
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	madvise(p, room, MADV_DONTDUMP);
	base = ((uintptr_t)p + SOFTGPU_GRANULE - 1) & ~(SOFTGPU_GRANULE - 1);
	room = ((uintptr_t)p + room - base) & ~(SOFTGPU_GRANULE - 1);
	state = mmap(NULL, room >> SOFTGPU_GRANULE_SHIFT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		     0);
	if (state == MAP_FAILED || !ranges_give(&space, base, base + room)) {
		munmap(p, room);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	softgpu_arena.state = state;
	softgpu_arena.size = room;
	softgpu_arena.base = (uint8_t *)(uintptr_t)base;
	return CUDA_SUCCESS;
}

CUresult arena_init(uint64_t hint, uint64_t bytes)
{
	CUresult r = CUDA_SUCCESS;

	pthread_mutex_lock(&lock);
	if (!softgpu_arena.base)
		r = reserve_locked(hint & ~(SOFTGPU_GRANULE - 1), bytes);
	pthread_mutex_unlock(&lock);
	return r;
}

/* From the top downward, so that the bottom stays free for reservations that ask for an address. */
uint64_t arena_take(uint64_t bytes, uint64_t align, uint64_t at)
{
	uint64_t addr;

	if (align < SOFTGPU_GRANULE)
		align = SOFTGPU_GRANULE;
	pthread_mutex_lock(&lock);
	if (at)
		addr = ranges_take_at(&space, at, at + bytes) ? at : 0;
	else
		addr = ranges_take_high(&space, bytes, align);
	pthread_mutex_unlock(&lock);
	return addr;
}

void arena_give(uint64_t addr, uint64_t bytes)
{
	pthread_mutex_lock(&lock);
	ranges_give(&space, addr, addr + bytes);
	pthread_mutex_unlock(&lock);
}

static void set_state(uint64_t addr, uint64_t bytes, uint8_t value)
{
	uint64_t first = (addr - (uintptr_t)softgpu_arena.base) >> SOFTGPU_GRANULE_SHIFT;

	for (uint64_t i = 0; i < bytes >> SOFTGPU_GRANULE_SHIFT; i++)
		__atomic_store_n(&softgpu_arena.state[first + i], value, __ATOMIC_SEQ_CST);
}

bool arena_map(uint64_t addr, uint64_t bytes)
{
	void *p = mmap((void *)(uintptr_t)addr, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);

	if (p == MAP_FAILED)
		return false;
	madvise(p, bytes, MADV_HUGEPAGE);
	madvise(p, bytes, MADV_DONTDUMP);
	set_state(addr, bytes, 1);
	return true;
}

bool arena_map_file(uint64_t addr, uint64_t bytes, int fd, uint64_t offset, bool accessible)
{
	void *p = mmap((void *)(uintptr_t)addr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd,
		       (off_t)offset);

	if (p == MAP_FAILED)
		return false;
	madvise(p, bytes, MADV_HUGEPAGE);
	madvise(p, bytes, MADV_DONTDUMP);
	set_state(addr, bytes, accessible);
	return true;
}

void arena_set_access(uint64_t addr, uint64_t bytes, bool accessible)
{
	set_state(addr, bytes, accessible);
}

/*
 * An operation that asked softgpu_mapped() before may be in the middle of its access. Then fresh
 * pages take the place of the old ones, so that it hits memory that nobody reads.
 */
void arena_unmap(uint64_t addr, uint64_t bytes)
{
	bool busy;

	set_state(addr, bytes, 0);
	busy = atomic_load(&softgpu_running);
	if (mmap((void *)(uintptr_t)addr, bytes, busy ? PROT_READ | PROT_WRITE : PROT_NONE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
		log_line("cannot give %llu bytes of device memory back: %s", (unsigned long long)bytes, strerror(errno));
	else
		madvise((void *)(uintptr_t)addr, bytes, MADV_DONTDUMP);
}
