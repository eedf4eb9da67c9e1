/* SPDX-License-Identifier: MIT */
/* Launches: blocks handed out in ascending order to workers, which run them warp by warp. */
#include <fenv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "softgpu/ptx/children.h"
#include "softgpu/ptx/texture.h"
#include "softgpu/ptx/whole.h"

#define SHARED_UNIT 128u /* bytes, from compute capability 8.0 on (PTX ISA, %total_smem_size) */

/*
 * A worker runs a block to its end before it takes the next. A block that keeps yielding (it spins, perhaps on
 * what a later block will write) gets company: after PATIENCE such turns another block becomes resident, and
 * the worker goes round. Cooperative launches have all blocks resident from the start.
 */
#define PATIENCE     64u
#define MAX_RESIDENT 64u

static size_t align64(size_t n)
{
	return (n + 63) & ~(size_t)63;
}

/* The block is over, or the launch has failed: gives back its registers and its place in the cluster. */
static void release_block(struct block *b)
{
	for (u32 n = 0; n < b->nwarps; n++) {
		struct warp *w = &b->warps[n];

		/* Only after a fault: a finished warp has returned all. A frame goes when its last split is gone. */
		for (u32 k = 0; k < w->nsplit; k++)
			for (struct frame *fr = w->split[k].frame, *up; fr; fr = up) {
				up = fr->parent;
				fr->lanes &= ~w->split[k].mask;
				if (!fr->lanes)
					ptx_frame_put(b->worker, fr);
			}
		w->nsplit = 0;
	}
	b->cluster->warps[b->rank] = NULL;
	if (!--b->cluster->blocks && b->cluster->size > 1)
		free(b->cluster);
	b->cluster = NULL;
	b->busy = false;
}

static void warp_init(struct block *b, u32 index)
{
	const struct launch *l = b->l;
	struct warp *w = &b->warps[index];
	struct frame *fr = ptx_frame_get(b->worker, l->f, l->frame_cls);
	u32 first = index * WARP, n = l->nthreads - first;

	/* In pieces that gcc stores directly: with small blocks its rep stos for all of it would be seen. */
	_Static_assert(offsetof(struct warp, lane_mask) == 256, "what is cleared");
	memset(w, 0, 64);
	memset((u8 *)w + 64, 0, 64);
	memset((u8 *)w + 128, 0, 64);
	memset((u8 *)w + 192, 0, 64);
	w->blk = b;
	w->index = index;
	w->shared = b->shared;
	w->shared_size = l->shared_bytes;
	w->local = b->local + (size_t)index * WARP * l->local_stride;
	w->local_stride = l->local_stride;
	w->live = n >= WARP ? FULL : (1u << n) - 1;
	w->whole = l->whole && w->live == FULL;
	w->whole_tries = l->whole ? WHOLE_TRIES : 0;
	w->tid = (const u32(*)[WARP])l->tid[index];
	if (!fr) {
		ptx_raise(w, NULL, -1, PTX_NOMEM, 0, "out of host memory for a warp's registers");
		return;
	}
	if (w->whole && fr->grid_id != l->grid_id)
		ptx_whole_fill(w, fr);
	fr->lanes = w->live;
	w->nsplit = 1;
	w->split[0] = (struct split){.pc = l->f->code, .frame = fr, .mask = w->live};
}

/* Cluster by cluster, and within each by rank; x runs fastest in both. */
static void place(struct block *b, u64 index)
{
	const struct launch *l = b->l;
	const u32 *dim = l->cluster, *grid = l->p->grid;
	u64 cluster = index / l->cluster_size;
	u32 nx = grid[0] / dim[0], ny = grid[1] / dim[1], rank = (u32)(index % l->cluster_size);

	b->rank = rank;
	if (index < grid[0] && l->cluster_size == 1) { /* without divisions, which small blocks would feel */
		b->id[0] = (u32)index;
		b->id[1] = b->id[2] = 0;
		return;
	}
	b->id[0] = (u32)(cluster % nx) * dim[0] + rank % dim[0];
	b->id[1] = (u32)(cluster / nx % ny) * dim[1] + rank / dim[0] % dim[1];
	b->id[2] = (u32)(cluster / nx / ny) * dim[2] + rank / dim[0] / dim[1];
}

/* Memory for one block: warps, local, and without @c a cluster of its own with shared memory. False: no host memory. */
static bool block_init(struct block *b, struct launch *l, struct worker *wk, u64 index, struct cluster *c)
{
	size_t warps = align64(l->nwarps * sizeof(struct warp)), local = align64((size_t)l->nwarps * WARP * l->local_stride);
	size_t own = c ? 0 : align64(sizeof(*c)) + align64(l->shared_bytes), need = warps + local + own;

	if (b->mem_size < need) {
		free(b->mem);
		b->mem = aligned_alloc(64, need);
		b->mem_size = b->mem ? need : 0;
		if (!b->mem)
			return false;
	}
	b->l = l;
	b->worker = wk;
	place(b, index);
	if (!c) {
		c = (struct cluster *)(b->mem + warps + local);
		c->size = 1;
		c->blocks = c->live = c->arrived = c->idle = c->stride = 0;
		c->shared = (u8 *)c + align64(sizeof(*c));
	}
	b->cluster = c;
	b->warps = (struct warp *)b->mem;
	b->shared = c->shared + (size_t)b->rank * c->stride;
	b->nwarps = l->nwarps;
	b->live_threads = l->nthreads;
	b->yields = 0;
	b->waiting = 0;
	c->warps[b->rank] = b->warps;
	c->blocks++;
	c->live += l->nthreads;
	for (; b->bars_used; b->bars_used &= b->bars_used - 1)
		b->bar[__builtin_ctz(b->bars_used)] = (struct barrier){.all = true};
	b->local = b->mem + warps;
	warp_init(b, 0);
	b->started = 1;
	for (u32 k = 1; k < l->nwarps; k++)
		b->warps[k].nsplit = 0;
	b->busy = true;
	return true;
}

static void raise_deadlock(struct block *b)
{
	struct warp *w = NULL;
	const struct split *s = NULL;

	for (u32 n = 0; n < b->nwarps && !s; n++)
		if (b->warps[n].nsplit) {
			w = &b->warps[n];
			s = &w->split[0];
		}
	if (!s)
		return;
	ptx_raise(w, s->pc, __builtin_ctz(s->mask), PTX_DEADLOCK, 0,
		  "deadlock: all threads of block (%u,%u,%u) wait, these of mask 0x%08x at %s in line %u of the PTX", b->id[0],
		  b->id[1], b->id[2], s->mask, s->state == ST_BAR ? "a barrier" : "a .sync instruction for lanes that never come",
		  s->pc->line);
}

static u64 now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000000000u + (u64)t.tv_nsec;
}

/* One turn for each warp. RUN_DONE: the block is finished. */
static enum run block_pass(struct block *b)
{
	bool progress = false, yielded = false;
	const struct launch *l = b->l;
	u32 left = 0;

	if (l->p->cancel && __atomic_load_n(l->p->cancel, __ATOMIC_RELAXED)) {
		ptx_raise(&b->warps[0], NULL, -1, PTX_CANCELLED, 0, "the launch was cancelled");
		return RUN_STOP;
	}

	if (l->p->deadline && now_ns() > l->p->deadline) {
		ptx_raise(&b->warps[0], NULL, -1, PTX_TIMEOUT, 0, "the launch took longer than it may");
		return RUN_STOP;
	}
	for (u32 n = 0; n < b->nwarps; n++) {
		struct warp *w = &b->warps[n];

		/* Not before: where warps do not wait for each other, they all have the same frame, one after the other. */
		if (n == b->started) {
			warp_init(b, n);
			b->started++;
		}
		if (!w->nsplit)
			continue;
		switch (ptx_warp_run(w)) {
		case RUN_STOP:
			return RUN_STOP;
		case RUN_YIELD:
			yielded = true;
			break;
		default:
			break;
		}
		progress |= w->progress;
		left += w->nsplit != 0;
	}
	if (progress)
		b->cluster->idle = 0;
	if (!left)
		return RUN_DONE;
	/* In a cluster others may bring what this block waits for: all must have had a turn since something moved. */
	if (!progress && (b->cluster->size == 1 || ++b->cluster->idle > 2 * b->cluster->size)) {
		raise_deadlock(b);
		return RUN_STOP;
	}
	b->yields += yielded;
	return RUN_YIELD;
}

static struct block *new_slot(struct worker *wk, u32 k)
{
	if (k >= wk->cap) {
		u32 cap = wk->cap ? wk->cap * 2 : 4;
		struct block *p = realloc(wk->blocks, cap * sizeof(*p));

		if (!p)
			return NULL;
		memset(p + wk->cap, 0, (cap - wk->cap) * sizeof(*p));
		for (u32 n = wk->cap; n < cap; n++)
			p[n].bars_used = (1u << BARRIERS) - 1;
		/* Warps point to their block, which may have moved. */
		for (u32 n = 0; n < wk->cap; n++)
			for (u32 q = 0; p[n].busy && q < p[n].nwarps; q++)
				p[n].warps[q].blk = &p[n];
		wk->blocks = p;
		wk->cap = cap;
	}
	return &wk->blocks[k];
}

static void no_memory(struct launch *l)
{
	pthread_mutex_lock(&l->lock);
	if (!atomic_load(&l->stop)) {
		snprintf(l->fault->text, sizeof(l->fault->text), "out of host memory for a block's state");
		atomic_store(&l->stop, PTX_NOMEM);
	}
	pthread_mutex_unlock(&l->lock);
}

/* Makes the next block resident, with all others of its cluster. */
static bool take_blocks(struct launch *l, struct worker *wk)
{
	u64 next = atomic_load(&l->next_block);
	struct cluster *c = NULL;
	u32 stride = (u32)align64(l->shared_bytes), size = l->cluster_size;

	do {
		if (next >= l->nblocks)
			return false;
	} while (!atomic_compare_exchange_weak(&l->next_block, &next, next + size));
	if (size > 1) {
		c = aligned_alloc(64, align64(sizeof(*c)) + (size_t)size * stride);
		if (!c) {
			no_memory(l);
			return false;
		}
		*c = (struct cluster){.size = size, .stride = stride, .shared = (u8 *)c + align64(sizeof(*c))};
	}
	for (u32 k = 0; k < size; k++) {
		struct block *b = new_slot(wk, wk->nblocks);

		if (!b || !block_init(b, l, wk, next + k, c)) {
			no_memory(l);
			if (c && !k)
				free(c);
			return false;
		}
		wk->nblocks++;
	}
	return true;
}

static void finish_block(struct worker *wk, u32 k)
{
	struct block *last = &wk->blocks[--wk->nblocks], *b = &wk->blocks[k];
	struct block tmp;

	release_block(b);
	if (b == last)
		return;
	tmp = *b;
	*b = *last;
	*last = tmp;
	for (u32 n = 0; n < b->nwarps; n++)
		b->warps[n].blk = b;
}

static void launch_worker(void *arg)
{
	struct launch *l = arg;
	struct worker *wk = ptx_worker_get();
	fenv_t env;
	u64 nclusters = l->nblocks / l->cluster_size, share = (nclusters + l->width - 1) / l->width * l->cluster_size;
	u32 k = 0;

	if (!wk) {
		no_memory(l);
		return;
	}
	wk->smid = atomic_fetch_add(&l->next_sm, 1);
	wk->nblocks = 0;
	/* The caller's rounding mode and its handling of denormals are not the kernel's. */
	fegetenv(&env);
	fesetenv(FE_DFL_ENV);
	while (!atomic_load(&l->stop)) {
		bool more = !wk->nblocks;

		if (wk->nblocks && (wk->nblocks < MAX_RESIDENT || l->p->cooperative) &&
		    wk->blocks[wk->nblocks - 1].yields > PATIENCE)
			more = true;
		if (l->p->cooperative && wk->nblocks < share)
			more = true;
		if (more && take_blocks(l, wk)) {
			if (l->p->cooperative)
				continue;
			k = wk->nblocks - l->cluster_size;
		}
		if (!wk->nblocks)
			break;
		if (k >= wk->nblocks)
			k = 0;
		switch (block_pass(&wk->blocks[k])) {
		case RUN_DONE:
			finish_block(wk, k);
			break;
		case RUN_STOP:
			goto out;
		default:
			k++;
			break;
		}
	}
out:
	for (u32 n = 0; n < wk->nblocks; n++)
		release_block(&wk->blocks[n]);
	wk->nblocks = 0;
	fesetenv(&env);
	ptx_worker_put(wk);
}

/* The thread numbers of a block's warps, and behind them a copy of the parameters, aligned for any type. */
static bool number_threads(struct launch *l)
{
	const u32 *dim = l->p->block;
	size_t tids = l->nwarps * sizeof(*l->tid);

	l->tid = aligned_alloc(64, tids + align64(l->f->param_bytes + 1));
	if (l->tid && l->f->param_bytes)
		memcpy((u8 *)l->tid + tids, l->p->params, l->f->param_bytes);
	l->params = (u8 *)l->tid + tids;
	for (u32 t = 0; l->tid && t < l->nwarps * WARP; t++) {
		l->tid[t / WARP][0][t % WARP] = t % dim[0];
		l->tid[t / WARP][1][t % WARP] = t / dim[0] % dim[1];
		l->tid[t / WARP][2][t % WARP] = t / dim[0] / dim[1];
	}
	return l->tid;
}

static enum ptx_status refuse(struct ptx_fault *fault, enum ptx_status st, const char *text)
{
	snprintf(fault->text, sizeof(fault->text), "%s", text);
	return st;
}

/* A grid barrier's memory for a cooperative launch: one of the module's slots, or none free. */
static bool coop_get(struct launch *l, u32 *slot)
{
	struct ptx_module *m = l->f->m;
	u32 used = atomic_load(&m->coop_used);

	*slot = COOP_SLOTS;
	if (!m->coop || !l->p->cooperative)
		return true;
	do {
		if (used == FULL)
			return false;
		*slot = (u32)__builtin_ctz(~used);
	} while (!atomic_compare_exchange_weak(&m->coop_used, &used, used | 1u << *slot));
	l->coop = m->coop + *slot * COOP_BYTES;
	memset((void *)(uintptr_t)l->coop, 0, COOP_BYTES);
	return true;
}

bool ptx_cluster_shape(const struct ptx_func_info *info, const u32 asked[3], u32 out[3])
{
	u32 size = 1;

	for (u32 d = 0; d < 3; d++) {
		out[d] = asked[0] ? asked[d] : info->cluster[d] ? info->cluster[d] : 1;
		if (!out[d] || out[d] > MAX_CLUSTER || (asked[0] && info->cluster[0] && asked[d] != info->cluster[d]))
			return false;
		size *= out[d];
	}
	if (info->explicit_cluster && !asked[0] && !info->cluster[0])
		return false;
	return size <= MAX_CLUSTER && (!info->max_cluster || size <= info->max_cluster);
}

static bool shape_cluster(struct launch *l)
{
	const struct ptx_func_info *info = &l->f->info;
	const u32 *grid = l->p->grid;

	if (!ptx_cluster_shape(info, l->p->cluster, l->cluster))
		return false;
	l->cluster_size = l->cluster[0] * l->cluster[1] * l->cluster[2];
	l->explicit_cluster = l->p->cluster[0] || info->cluster[0];
	return !(grid[0] % l->cluster[0]) && !(grid[1] % l->cluster[1]) && !(grid[2] % l->cluster[2]);
}

static u32 shape_of(const u32 *block)
{
	return block[0] % WARP == 0 || (block[1] == 1 && block[2] == 1) ? SHAPE_ROWS : SHAPE_ANY;
}

/* RGPU_SOFTGPU_ANALYSIS=0 runs the general form only: for tests, and to find out whose fault it is. */
static bool whole_wanted(void)
{
	static atomic_int known; /* 0: not yet, 1: yes, 2: no */
	int k = atomic_load_explicit(&known, memory_order_relaxed);

	if (!k) {
		const char *s = getenv("RGPU_SOFTGPU_ANALYSIS");

		k = s && !strcmp(s, "0") ? 2 : 1;
		atomic_store(&known, k);
	}
	return k == 1;
}

enum ptx_status ptx_run_grid(struct ptx_func *f, const struct ptx_launch *p, struct ptx_fault *fault, u32 depth)
{
	static _Atomic u64 grid_ids;
	struct launch l = {.f = f, .p = p, .fault = fault, .depth = depth};
	u64 threads = (u64)p->block[0] * p->block[1] * p->block[2];
	enum ptx_status st;
	u32 slot;

	if (!shape_cluster(&l))
		return refuse(fault, PTX_OUT_OF_RESOURCES, "the cluster's shape is not one that this kernel and grid can have");
	if (!p->grid[0] || !p->grid[1] || !p->grid[2] || p->grid[1] > 65535 || p->grid[2] > 65535 || p->grid[0] > INT32_MAX)
		return refuse(fault, PTX_OUT_OF_RESOURCES, "a grid has 1 to 2147483647 × 65535 × 65535 blocks");
	if (!p->block[0] || !p->block[1] || !p->block[2] || threads > f->info.max_threads || p->block[2] > 64)
		return refuse(fault, PTX_OUT_OF_RESOURCES, "the block has more threads than the kernel's limit, or none");
	if ((u64)f->shared_static + p->dyn_shared > 1u << 20)
		return refuse(fault, PTX_OUT_OF_RESOURCES, "more than 1 MiB of shared memory");
	l.nblocks = (u64)p->grid[0] * p->grid[1] * p->grid[2];
	l.nthreads = (u32)threads;
	l.nwarps = (l.nthreads + WARP - 1) / WARP;
	/* A GPU gives it out in units, and compilers read to a unit's end. */
	l.shared_bytes = (f->shared_static + p->dyn_shared + SHARED_UNIT - 1) & ~(SHARED_UNIT - 1);
	l.grid_id = atomic_fetch_add(&grid_ids, 1) + 1;
	l.local_stride = (f->info.local_bytes + 15) & ~15u;
	l.width = p->threads ? p->threads : 1;
	if (l.width > l.nblocks / l.cluster_size)
		l.width = (u32)(l.nblocks / l.cluster_size);
	if (!number_threads(&l))
		return refuse(fault, PTX_NOMEM, "out of host memory for a launch");
	if (!coop_get(&l, &slot)) {
		free(l.tid);
		return refuse(fault, PTX_OUT_OF_RESOURCES, "32 cooperative launches of this module run already");
	}
	if (!p->plain && whole_wanted())
		l.whole = ptx_whole_get(f, shape_of(p->block));
	l.frame_cls = l.whole ? ptx_frame_class(l.whole->frame_size) : f->frame_cls;
	pthread_mutex_init(&l.lock, NULL);
	ptx_texture_launches(1);
	ptx_pool_run(l.width - 1, launch_worker, &l);
	ptx_texture_launches(-1);
	free(l.tid);
	if (slot < COOP_SLOTS)
		atomic_fetch_and(&f->m->coop_used, ~(1u << slot));
	st = children_run(&l);
	pthread_mutex_destroy(&l.lock);
	return st;
}

enum ptx_status ptx_launch(struct ptx_func *f, const struct ptx_launch *p, struct ptx_fault *fault)
{
	memset(fault, 0, sizeof(*fault));
	return ptx_run_grid(f, p, fault, 0);
}
