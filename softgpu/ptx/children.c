/* SPDX-License-Identifier: MIT */
/* Work that a kernel gives to the device: kept until its grid has run, then run in the order in which it came. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/arena.h"
#include "softgpu/ptx/children.h"

/* All launches of the process together; each is some hundred bytes of the host's. */
#define MAX_PENDING (1u << 20)

static atomic_uint pending;

/*
 * A kernel cannot wait for its children, so running them after their parent, one after the other, is an order that the streams
 * and events of any program allow. The parent's launch ends with the last of them.
 */
bool children_add(struct launch *l, struct child *c, bool tail)
{
	struct child_queue *q = &l->children[tail];

	if (atomic_fetch_add(&pending, 1) >= MAX_PENDING) {
		atomic_fetch_sub(&pending, 1);
		free(c);
		return false;
	}
	c->next = NULL;
	pthread_mutex_lock(&l->lock);
	*(q->last ? &q->last->next : &q->first) = c;
	q->last = c;
	pthread_mutex_unlock(&l->lock);
	return true;
}

static enum ptx_status run_rows(const struct child *c, struct ptx_fault *fault)
{
	for (u64 k = 0; k < c->rows && c->width; k++) {
		u64 to = c->to + k * c->to_pitch, from = c->from + k * c->from_pitch;
		bool bad_to = !softgpu_mapped(to, c->width);

		if (bad_to || (c->kind == CHILD_COPY && !softgpu_mapped(from, c->width))) {
			fault->addr = bad_to ? to : from;
			snprintf(fault->text, sizeof(fault->text), "illegal address 0x%llx in a copy or fill that a kernel gave",
				 (unsigned long long)fault->addr);
			return PTX_ILLEGAL_ADDRESS;
		}
		if (c->kind == CHILD_COPY)
			memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, c->width);
		else
			memset((void *)(uintptr_t)to, (int)c->from, c->width);
	}
	return PTX_OK;
}

static enum ptx_status run_child(struct launch *l, const struct child *c)
{
	struct ptx_launch p = *l->p;
	enum ptx_status st;

	if (c->kind != CHILD_GRID)
		return run_rows(c, l->fault);
	memcpy(p.grid, c->grid, sizeof(p.grid));
	memcpy(p.block, c->block, sizeof(p.block));
	memset(p.cluster, 0, sizeof(p.cluster));
	p.dyn_shared = c->shared;
	p.params = c->params;
	p.cooperative = false;
	st = ptx_run_grid(c->f, &p, l->fault, l->depth + 1);
	if (st != PTX_OK && !l->fault->kernel)
		l->fault->kernel = c->f->name;
	return st;
}

enum ptx_status children_run(struct launch *l)
{
	enum ptx_status st = (enum ptx_status)atomic_load(&l->stop);

	for (u32 tail = 0; tail < 2; tail++)
		for (struct child *c = l->children[tail].first, *next; c; c = next) {
			next = c->next;
			if (st == PTX_OK)
				st = run_child(l, c);
			free(c);
			atomic_fetch_sub(&pending, 1);
		}
	return st;
}
