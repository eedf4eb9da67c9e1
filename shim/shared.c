// SPDX-License-Identifier: MIT
/* Makes shared memory: regions that exist here and at the server, and the program's pieces of them. */
#include "shim/shared_int.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "rgpu_rpc.h"
#include "shim/cuda_api.h"
#include "shim/session.h"
#include "shim/unsupported.h"

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

/*
 * Memory whose writes the module tells of, through /dev/rgpuN. Else, or where it may have no more of such memory, false, and the
 * region is compared with a shadow.
 */
static bool track(struct region *g, struct rgpu_session *s, uint64_t addr, uint64_t bytes)
{
	if (sysconf(_SC_PAGESIZE) != TWIN_PAGE || rgpu_transport_bo_create(s->transport, bytes, &g->bo))
		return false;
	g->dirty = calloc(2 * ((bytes / TWIN_PAGE + 63) / 64), sizeof(*g->dirty));
	if (g->dirty && !rgpu_transport_bo_track(s->transport, &g->bo, (void *)addr))
		return true;
	free(g->dirty);
	g->dirty = NULL;
	rgpu_transport_bo_destroy(s->transport, &g->bo);
	g->bo.handle = 0;
	return false;
}

/* After its place in the window was given back. */
static void memory_free(struct region *g, struct rgpu_session *s)
{
	if (g->twin.shadow)
		munmap(g->twin.shadow, g->range.bytes);
	if (g->bo.handle) {
		rgpu_transport_bo_destroy(s->transport, &g->bo);
		free(g->dirty);
	}
}

static void region_free(struct region *g, struct rgpu_session *s)
{
	struct rgpu_call c = {.op = OP_UNSHARE, .session = s};

	ranges_remove(&shared_map, &g->range);
	atomic_fetch_sub(&shared_regions, 1);
	if (!g->managed)
		atomic_fetch_sub(&shared_mapped, 1);
	if (!g->mirror && !g->borrowed)
		back(g->range.start, g->range.bytes, false);
	memory_free(g, s);
	if (!rpc_UNSHARE(&c, g->range.start, g->range.bytes) && !g->borrowed) {
		pthread_mutex_lock(&s->window.lock);
		space_give(s->window.space, g->range.start, g->range.bytes);
		pthread_mutex_unlock(&s->window.lock);
	}
	space_free(g->space);
	free(g);
}

/*
 * @host: the program's own memory, at a multiple of TWIN_LINE; NULL: new memory at the device address. One that lies in the
 * window has its place there. With the lock.
 */
static int region_new(struct device *d, uint64_t bytes, bool managed, uint8_t *host, struct region **out)
{
	uint64_t unit = d->props.granularity, whole = (bytes + unit - 1) / unit * unit, addr = (uint64_t)host;
	bool borrowed = host && addr - d->session->window.base < d->session->window.size;
	struct rgpu_call c = {.op = OP_SHARE, .session = d->session};
	struct region *g = calloc(1, sizeof(*g));
	void *shadow = NULL;
	int r = CUDA_ERROR_OUT_OF_MEMORY;

	if (!borrowed)
		addr = g ? window_take(d, bytes) : 0;
	if (!g || !addr)
		goto fail;
	if (host || !managed || !track(g, d->session, addr, whole)) {
		shadow = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (shadow == MAP_FAILED)
			shadow = NULL;
		if (!shadow || (!host && !back(addr, whole, true)))
			goto fail;
		madvise(shadow, whole, MADV_DONTDUMP);
	}
	r = rpc_SHARE(&c, addr, whole, managed);
	if (r)
		goto fail;
	g->range = (struct range){.start = addr, .bytes = whole};
	g->twin = (struct twin){.mem = host	      ? host
				       : g->bo.handle ? g->bo.base
						      : (uint8_t *)addr,
				.shadow = shadow,
				.addr = addr,
				.bytes = host ? bytes : whole};
	g->managed = managed;
	g->mirror = host;
	g->borrowed = borrowed;
	ranges_insert(&shared_map, &g->range);
	atomic_fetch_add(&shared_regions, 1);
	if (!managed)
		atomic_fetch_add(&shared_mapped, 1);
	*out = g;
	return 0;
fail:
	if (addr && !borrowed) {
		if (!host)
			back(addr, whole, false);
		window_give(d, addr, bytes);
	}
	if (g) {
		g->twin.shadow = shadow;
		g->range.bytes = whole;
		memory_free(g, d->session);
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
	struct shared *m;
	int r = CUDA_ERROR_OUT_OF_MEMORY;

	if (!device_attribute(d, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY))
		return rgpu_unsupported("memory that kernels share with the program",
					"the server's driver has no virtual host memory");
	m = block_new(d, context, bytes, managed);
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
	/* The last one takes the region along: while there is any, each wait asks the server. */
	if (!--g->blocks)
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

int shared_mirror(struct device *d, struct rgpu_obj *context, void *host, uint64_t bytes, unsigned flags, uint64_t *addr)
{
	uint64_t skip = (uint64_t)host % TWIN_LINE, all = (skip + bytes + TWIN_LINE - 1) / TWIN_LINE * TWIN_LINE;
	struct shared *m;
	int r;

	if (!device_attribute(d, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY))
		return rgpu_unsupported("memory that kernels share with the program",
					"the server's driver has no virtual host memory");
	m = block_new(d, context, bytes, false);
	if (!m)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&shared_lock);
	r = region_new(d, all, false, (uint8_t *)host - skip, &m->region);
	if (!r) {
		m->region->blocks = 1;
		m->flags = flags;
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

/* Memory of ours at a page that variables lie in. It stays: the next load of the module may find its variables there again. */
struct page {
	struct range range; /* first */
};

static struct range *pages;

static bool page_ours(uint64_t addr, uint64_t size)
{
	struct page *p = (struct page *)ranges_find(pages, addr);
	void *got;

	if (p)
		return true;
	p = calloc(1, sizeof(*p));
	if (!p)
		return false;
	got = mmap((void *)addr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (got != (void *)addr) {
		/* Kernels before 4.17 take MAP_FIXED_NOREPLACE for a mere hint. */
		if (got != MAP_FAILED)
			munmap(got, size);
		free(p);
		return false;
	}
	p->range = (struct range){.start = addr, .bytes = size};
	ranges_insert(&pages, &p->range);
	return true;
}

/* Lines of a variable that no region has yet. With the lock. */
static int share_lines(struct device *d, uint64_t addr, uint64_t bytes, uint64_t from, uint64_t length)
{
	struct rgpu_call c = {.op = OP_SHARE_VAR, .session = d->session};
	struct region *g = calloc(1, sizeof(*g));
	void *shadow = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int r = g && shadow != MAP_FAILED ? rpc_SHARE_VAR(&c, addr, bytes, from, length) : CUDA_ERROR_OUT_OF_MEMORY;

	if (r) {
		if (shadow != MAP_FAILED)
			munmap(shadow, length);
		free(g);
		return r;
	}
	/* Zeros at both ends to begin with: a module that was here before may have left something. */
	memset((void *)from, 0, length);
	g->range = (struct range){.start = from, .bytes = length};
	g->twin = (struct twin){.mem = (uint8_t *)from, .shadow = shadow, .addr = from, .bytes = length};
	g->managed = g->variable = true;
	ranges_insert(&shared_map, &g->range);
	atomic_fetch_add(&shared_regions, 1);
	return 0;
}

int shared_variable(struct device *d, uint64_t addr, uint64_t bytes)
{
	uint64_t first = addr - addr % TWIN_LINE, end = (addr + bytes + TWIN_LINE - 1) / TWIN_LINE * TWIN_LINE;
	uint64_t size = sysconf(_SC_PAGESIZE);
	int r = 0;

	pthread_mutex_lock(&shared_lock);
	for (uint64_t at = first - first % size; at < end && !r; at += size)
		r = page_ours(at, size) ? 0 : CUDA_ERROR_NOT_SUPPORTED;
	/* Variables that lie close together have lines in common: those are there once. */
	while (first < end && !r) {
		struct range *there = ranges_find(shared_map, first), *next = ranges_next(shared_map, first);
		uint64_t to = next && next->start < end ? next->start : end;

		if (there) {
			first = there->start + there->bytes;
			continue;
		}
		r = share_lines(d, addr, bytes, first, to - first);
		first = to;
	}
	pthread_mutex_unlock(&shared_lock);
	return r;
}

/* With it go the lines that it brought along for others: those are variables of the same module, and go, too. */
void shared_drop_variable(uint64_t addr, uint64_t bytes)
{
	uint64_t at = addr - addr % TWIN_LINE;

	if (!shared_any())
		return;
	pthread_mutex_lock(&shared_lock);
	for (; at < addr + bytes; at += TWIN_LINE) {
		struct region *g = (struct region *)ranges_find(shared_map, at);

		if (!g || !g->variable)
			continue;
		ranges_remove(&shared_map, &g->range);
		atomic_fetch_sub(&shared_regions, 1);
		munmap(g->twin.shadow, g->range.bytes);
		free(g);
	}
	pthread_mutex_unlock(&shared_lock);
}

void shared_drop_context(struct rgpu_obj *context)
{
	struct block b = {0};

	while (allocs_next(b.range.start + 1, BLOCK_MANAGED, context, &b))
		shared_free(b.range.start, true);
}

bool shared_has(uint64_t addr)
{
	bool has;

	if (!shared_any())
		return false;
	pthread_mutex_lock(&shared_lock);
	has = ranges_find(shared_map, addr);
	pthread_mutex_unlock(&shared_lock);
	return has;
}

void *shared_host(uint64_t addr)
{
	struct region *g;
	void *host;

	pthread_mutex_lock(&shared_lock);
	g = (struct region *)ranges_find(shared_map, addr);
	host = !g ? NULL : g->bo.handle ? (void *)addr : g->twin.mem + (addr - g->twin.addr);
	pthread_mutex_unlock(&shared_lock);
	return host;
}

void shared_attached(struct shared *m)
{
	pthread_mutex_lock(&shared_lock);
	m->region->always = true;
	pthread_mutex_unlock(&shared_lock);
}
