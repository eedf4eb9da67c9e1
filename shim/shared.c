// SPDX-License-Identifier: MIT
/* Makes shared memory: regions that exist here and at the server, and the program's pieces of them. */
#include "shim/shared_int.h"

#include <stdlib.h>
#include <sys/mman.h>
#include "rgpu_rpc.h"
#include "shim/cuda_api.h"
#include "shim/session.h"

#define SMALL_MAX    (1ull << 20) /* up to here pieces share a region */
#define SMALL_REGION (4ull << 20)
#define PIECE_ALIGN  4096u

atomic_uint shared_regions, shared_mapped;
pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER, shared_down = PTHREAD_MUTEX_INITIALIZER;
struct range *shared_map;

/* Ours while it has a twin, the window's PROT_NONE again afterwards. */
static bool back(uint64_t addr, uint64_t bytes, bool with_memory)
{
	void *p = mmap((void *)addr, bytes, with_memory ? PROT_READ | PROT_WRITE : PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);

	return p != MAP_FAILED;
}

static void region_free(struct region *g, struct rgpu_session *s)
{
	struct rgpu_call c = {.op = OP_UNSHARE, .session = s};

	ranges_remove(&shared_map, &g->range);
	atomic_fetch_sub(&shared_regions, 1);
	if (!g->managed)
		atomic_fetch_sub(&shared_mapped, 1);
	if (!g->mirror)
		back(g->range.start, g->range.bytes, false);
	munmap(g->twin.shadow, g->range.bytes);
	if (!rpc_UNSHARE(&c, g->range.start, g->range.bytes)) {
		pthread_mutex_lock(&s->window.lock);
		space_give(s->window.space, g->range.start, g->range.bytes);
		pthread_mutex_unlock(&s->window.lock);
	}
	free(g);
}

/* @host: the program's own memory, at a multiple of TWIN_LINE; NULL: new memory at the device address. With the lock. */
static int region_new(struct device *d, uint64_t bytes, bool managed, uint8_t *host, struct region **out)
{
	struct window *w = &d->session->window;
	uint64_t unit = d->props.granularity, whole = (bytes + unit - 1) / unit * unit;
	struct rgpu_call c = {.op = OP_SHARE, .session = d->session};
	struct region *g = calloc(1, sizeof(*g));
	void *shadow = MAP_FAILED;
	uint64_t addr = 0;
	int r = CUDA_ERROR_OUT_OF_MEMORY;

	if (!g || whole < bytes)
		goto fail;
	pthread_mutex_lock(&w->lock);
	addr = whole <= w->size ? space_take(w->space, whole, unit) : 0;
	pthread_mutex_unlock(&w->lock);
	if (!addr)
		goto fail;
	shadow = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (shadow == MAP_FAILED || (!host && !back(addr, whole, true)))
		goto fail;
	madvise(shadow, whole, MADV_DONTDUMP);
	r = rpc_SHARE(&c, addr, whole, managed);
	if (r)
		goto fail;
	g->range = (struct range){.start = addr, .bytes = whole};
	g->twin = (struct twin){
		.mem = host ? host : (uint8_t *)addr, .shadow = shadow, .addr = addr, .bytes = host ? bytes : whole};
	g->managed = managed;
	g->mirror = host;
	ranges_insert(&shared_map, &g->range);
	atomic_fetch_add(&shared_regions, 1);
	if (!managed)
		atomic_fetch_add(&shared_mapped, 1);
	*out = g;
	return 0;
fail:
	if (shadow != MAP_FAILED)
		munmap(shadow, whole);
	if (addr) {
		if (!host)
			back(addr, whole, false);
		pthread_mutex_lock(&w->lock);
		space_give(w->space, addr, whole);
		pthread_mutex_unlock(&w->lock);
	}
	free(g);
	return r;
}

/* A piece of a region for small ones, or a new region. */
static int piece(struct device *d, uint64_t bytes, bool managed, struct region **out, uint64_t *addr)
{
	int r;

	for (struct range *n = ranges_next(shared_map, 0); n && bytes <= SMALL_MAX; n = ranges_next(shared_map, n->start + 1)) {
		*out = (struct region *)n;
		*addr = (*out)->space && (*out)->managed == managed ? space_take((*out)->space, bytes, PIECE_ALIGN) : 0;
		if (*addr)
			return 0;
	}
	r = region_new(d, bytes <= SMALL_MAX ? SMALL_REGION : bytes, managed, NULL, out);
	if (r)
		return r;
	*addr = (*out)->range.start;
	if (bytes > SMALL_MAX)
		return 0;
	(*out)->space = space_new(*addr, (*out)->range.bytes);
	*addr = (*out)->space ? space_take((*out)->space, bytes, PIECE_ALIGN) : 0;
	if (*addr)
		return 0;
	region_free(*out, d->session);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static struct shared *block_new(struct device *d, struct rgpu_obj *context, uint64_t bytes, bool managed)
{
	struct shared *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->block.kind = managed ? BLOCK_MANAGED : BLOCK_MAPPED;
	m->block.device = d;
	m->block.context = context;
	m->block.asked = bytes;
	return m;
}

int shared_alloc(struct device *d, struct rgpu_obj *context, uint64_t bytes, bool managed, unsigned flags, uint64_t *addr)
{
	uint64_t size = (bytes + PIECE_ALIGN - 1) & ~(uint64_t)(PIECE_ALIGN - 1);
	struct shared *m = block_new(d, context, bytes, managed);
	int r = CUDA_ERROR_OUT_OF_MEMORY;

	if (m && size >= bytes) {
		pthread_mutex_lock(&shared_lock);
		r = piece(d, size, managed, &m->region, addr);
		if (!r) {
			m->flags = flags;
			m->block.range.start = *addr;
			m->block.range.bytes = size;
			m->region->blocks++;
			allocs_enter(&m->block);
		}
		pthread_mutex_unlock(&shared_lock);
	}
	if (r)
		free(m);
	return r;
}

static void drop(struct shared *m)
{
	struct rgpu_session *s = m->block.device->session;
	struct region *g = m->region;

	pthread_mutex_lock(&shared_down);
	pthread_mutex_lock(&shared_lock);
	if (g->space)
		space_give(g->space, m->block.range.start, m->block.range.bytes);
	if (!--g->blocks && !g->space)
		region_free(g, s);
	pthread_mutex_unlock(&shared_lock);
	pthread_mutex_unlock(&shared_down);
	free(m);
}

int shared_free(uint64_t addr, bool managed)
{
	struct shared *m = (struct shared *)allocs_leave(addr, managed ? BLOCK_MANAGED : BLOCK_MAPPED);

	if (!m)
		return CUDA_ERROR_INVALID_VALUE;
	drop(m);
	return 0;
}

int shared_mirror(struct device *d, struct rgpu_obj *context, void *host, uint64_t bytes, uint64_t *addr)
{
	uint64_t skip = (uint64_t)host % TWIN_LINE, all = (skip + bytes + TWIN_LINE - 1) / TWIN_LINE * TWIN_LINE;
	struct shared *m = block_new(d, context, bytes, false);
	int r;

	if (!m)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&shared_lock);
	r = region_new(d, all, false, (uint8_t *)host - skip, &m->region);
	if (!r) {
		m->region->blocks = 1;
		*addr = m->block.range.start = m->region->range.start + skip;
		m->block.range.bytes = bytes;
		allocs_enter(&m->block);
	}
	pthread_mutex_unlock(&shared_lock);
	if (r)
		free(m);
	return r;
}

void shared_unmirror(uint64_t addr)
{
	shared_free(addr, false);
}

void shared_drop_context(struct rgpu_obj *context)
{
	struct block b = {0};

	while (allocs_next(b.range.start + 1, BLOCK_MANAGED, context, &b))
		shared_free(b.range.start, true);
}

bool shared_has(uint64_t addr)
{
	struct block b;

	return shared_any() && heap_find(addr, &b) && (b.kind == BLOCK_MANAGED || b.kind == BLOCK_MAPPED);
}

void *shared_host(uint64_t addr)
{
	struct region *g;
	void *host;

	pthread_mutex_lock(&shared_lock);
	g = (struct region *)ranges_find(shared_map, addr);
	host = g ? g->twin.mem + (addr - g->twin.addr) : NULL;
	pthread_mutex_unlock(&shared_lock);
	return host;
}

void shared_attached(struct shared *m)
{
	pthread_mutex_lock(&shared_lock);
	m->region->always = true;
	pthread_mutex_unlock(&shared_lock);
}
