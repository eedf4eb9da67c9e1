// SPDX-License-Identifier: MIT
/* The table of allocations and the allocator behind it: small pieces of shared granules, big ones of their own. */
#include "softgpu/softgpu.h"

#include <stdlib.h>
#include <string.h>
#include "softgpu/ranges.h"

#define SMALL_MAX   (SOFTGPU_GRANULE / 2)
#define SMALL_ALIGN 512u
#define HOST_HEAP   SOFTGPU_DEVICES_MAX

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* all below; the arena's lock is taken inside */
static struct alloc *table;				 /* sorted by base */
static size_t count, room;
static struct ranges heap[SOFTGPU_DEVICES_MAX + 1]; /* free pieces of granules that are mapped already, per device; last: host */
static unsigned long long next_id = 1;

/* Index of the first allocation that begins above @addr. */
static size_t above(uint64_t addr)
{
	size_t lo = 0, hi = count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (table[mid].base > addr)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

static bool enter(const struct alloc *a)
{
	size_t at;

	if (count == room) {
		size_t more = room ? room * 2 : 64;
		struct alloc *p = realloc(table, more * sizeof(*p));

		if (!p)
			return false;
		table = p;
		room = more;
	}
	at = above(a->base);
	memmove(&table[at + 1], &table[at], (count - at) * sizeof(*table));
	table[at] = *a;
	count++;
	return true;
}

static struct alloc *containing(uint64_t addr)
{
	size_t at = above(addr);

	if (!at || addr - table[at - 1].base >= table[at - 1].bytes)
		return NULL;
	return &table[at - 1];
}

static struct ranges *heap_of(const struct device *d)
{
	return &heap[d ? d->index : HOST_HEAP];
}

static uint64_t take(struct device *d, uint64_t bytes)
{
	uint64_t addr;

	if (bytes <= SMALL_MAX) {
		addr = ranges_take_low(heap_of(d), bytes, SMALL_ALIGN);
		if (addr)
			return addr;
		addr = arena_take(SOFTGPU_GRANULE, 0, 0);
		if (!addr)
			return 0;
		if (!arena_map(addr, SOFTGPU_GRANULE)) {
			arena_give(addr, SOFTGPU_GRANULE);
			return 0;
		}
		if (!ranges_give(heap_of(d), addr + bytes, addr + SOFTGPU_GRANULE))
			return 0;
		return addr;
	}
	addr = arena_take(bytes, 0, 0);
	if (addr && !arena_map(addr, bytes)) {
		arena_give(addr, bytes);
		addr = 0;
	}
	return addr;
}

static void give(struct device *d, uint64_t addr, uint64_t bytes)
{
	if (bytes <= SMALL_MAX) {
		ranges_give(heap_of(d), addr, addr + bytes);
	} else {
		arena_unmap(addr, bytes);
		arena_give(addr, bytes);
	}
}

static CUresult allocate(struct ctx *c, struct device *d, enum alloc_kind kind, uint64_t bytes, unsigned int flags, bool hidden,
			 uintptr_t pool, struct alloc *out)
{
	uint64_t unit = bytes <= SMALL_MAX ? SMALL_ALIGN : SOFTGPU_GRANULE;
	struct device *charged = kind == ALLOC_HOST ? NULL : d;
	struct alloc a = {.bytes = bytes, .kind = kind, .dev = d, .ctx = c, .flags = flags, .hidden = hidden, .pool = pool};
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

	if (!bytes || bytes > 1ull << 46)
		return bytes ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
	TRY(arena_init(0, 0));
	a.ctx_handle = c ? c->obj.handle : 0;
	a.room = (bytes + unit - 1) & ~(unit - 1);
	if (charged && !device_charge(charged, a.room))
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&lock);
	a.base = take(charged, a.room);
	if (a.base) {
		a.id = next_id++;
		if (enter(&a))
			r = CUDA_SUCCESS;
		else
			give(charged, a.base, a.room);
	}
	pthread_mutex_unlock(&lock);
	if (r != CUDA_SUCCESS && charged)
		device_uncharge(charged, a.room);
	if (r == CUDA_SUCCESS)
		*out = a;
	return r;
}

CUresult mem_alloc(struct ctx *c, struct device *d, enum alloc_kind kind, uint64_t bytes, struct alloc *out)
{
	return allocate(c, d, kind, bytes, 0, false, 0, out);
}

CUresult mem_alloc_host(struct ctx *c, uint64_t bytes, unsigned int flags, struct alloc *out)
{
	return allocate(c, c->dev, ALLOC_HOST, bytes, flags, false, 0, out);
}

CUresult mem_alloc_pool(struct ctx *c, struct device *d, uint64_t bytes, uintptr_t pool, struct alloc *out)
{
	return allocate(c, d, ALLOC_DEVICE, bytes, 0, false, pool, out);
}

CUresult mem_alloc_array(struct device *d, uint64_t bytes, struct alloc *out)
{
	TRY(allocate(NULL, d, ALLOC_DEVICE, bytes, 0, true, 0, out));
	if (out->room <= SMALL_MAX) /* larger ones have fresh pages */
		memset((void *)(uintptr_t)out->base, 0, bytes);
	return CUDA_SUCCESS;
}

void mem_free_array(const struct alloc *a)
{
	struct alloc gone;

	if (mem_remove(a->base, &gone))
		mem_release(&gone, true);
}

CUresult mem_enter(const struct alloc *a)
{
	CUresult r = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	struct alloc b = *a;
	size_t at;

	pthread_mutex_lock(&lock);
	at = above(a->base + a->bytes - 1);
	if (!at || table[at - 1].base + table[at - 1].bytes <= a->base) {
		b.id = next_id++;
		r = enter(&b) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

bool mem_find(uint64_t addr, struct alloc *out)
{
	struct alloc *a;

	pthread_mutex_lock(&lock);
	a = containing(addr);
	if (a)
		*out = *a;
	pthread_mutex_unlock(&lock);
	return a;
}

bool mem_remove(uint64_t base, struct alloc *out)
{
	struct alloc *a;
	bool found;

	pthread_mutex_lock(&lock);
	a = containing(base);
	found = a && a->base == base;
	if (found) {
		*out = *a;
		count--;
		memmove(a, a + 1, (count - (a - table)) * sizeof(*a));
	}
	pthread_mutex_unlock(&lock);
	return found;
}

void mem_release(const struct alloc *a, bool uncharge)
{
	struct device *charged = a->kind == ALLOC_HOST ? NULL : a->dev;

	if (!a->room) {
		softgpu_unregister(a->base);
		return;
	}
	pthread_mutex_lock(&lock);
	give(charged, a->base, a->room);
	pthread_mutex_unlock(&lock);
	if (!uncharge)
		return;
	if (charged)
		device_uncharge(charged, a->room);
	pool_uncharge(a);
}

bool mem_set_sync_memops(uint64_t base, bool on)
{
	struct alloc *a;

	pthread_mutex_lock(&lock);
	a = containing(base);
	if (a)
		a->sync_memops = on;
	pthread_mutex_unlock(&lock);
	return a;
}

void mem_free_of_ctx(struct ctx *c)
{
	for (;;) {
		struct alloc a;
		bool found = false;

		pthread_mutex_lock(&lock);
		for (size_t i = count; i-- > 0 && !found;) {
			if (table[i].ctx != c)
				continue;
			found = true;
			a = table[i];
			count--;
			memmove(&table[i], &table[i + 1], (count - i) * sizeof(*table));
		}
		pthread_mutex_unlock(&lock);
		if (!found)
			return;
		mem_release(&a, true);
	}
}

CUresult mem_check(uint64_t addr, uint64_t bytes)
{
	struct mapping m;
	struct alloc a;

	if (!bytes)
		return CUDA_SUCCESS;
	if (mem_find(addr, &a))
		return bytes <= a.bytes - (addr - a.base) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	if (vmm_find(addr, &m) && softgpu_mapped(addr, bytes))
		return CUDA_SUCCESS;
	return CUDA_ERROR_INVALID_VALUE;
}

/* ---- Module globals ---- */

static uint64_t globals_alloc(void *arg, size_t bytes, size_t align)
{
	struct alloc a;

	/* Allocations begin at multiples of 512, and big ones at granules. */
	if (align > SMALL_ALIGN && bytes <= SMALL_MAX)
		bytes = SMALL_MAX + 1;
	if (align > SOFTGPU_GRANULE || allocate(NULL, arg, ALLOC_DEVICE, bytes, 0, true, 0, &a) != CUDA_SUCCESS)
		return 0;
	memset((void *)(uintptr_t)a.base, 0, a.bytes);
	return a.base;
}

static void globals_free(void *arg, uint64_t addr)
{
	struct alloc a;

	(void)arg;
	if (addr && mem_remove(addr, &a))
		mem_release(&a, true);
}

struct ptx_mem module_memory(struct device *d)
{
	return (struct ptx_mem){
		.alloc = globals_alloc, .free = globals_free, .arg = d, .heap_bytes = atomic_load(&d->heap_bytes)};
}
