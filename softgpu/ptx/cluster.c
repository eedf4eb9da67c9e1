/* SPDX-License-Identifier: MIT */
/* barrier.cluster: all threads of a cluster that have not exited arrive before any passes its wait. */
#include "softgpu/ptx/exec.h"

static void release(struct cluster *c, u32 nwarps)
{
	for (u32 n = 0; n < c->size * nwarps; n++) {
		struct warp *w = c->warps[n / nwarps];

		if (!w)
			continue;
		w += n % nwarps;
		w->cluster_arrived = 0;
		for (u32 k = 0; k < w->nsplit; k++) {
			struct split *s = &w->split[k];

			if (s->state != ST_BAR || s->bar != CLUSTER_BARRIER)
				continue;
			s->pc++;
			s->state = ST_READY;
		}
	}
	c->arrived = 0;
}

bool ptx_cluster_arrive(struct warp *w, const struct ins *i, u32 mask)
{
	struct cluster *c = w->blk->cluster;

	if (mask & w->cluster_arrived) {
		ptx_raise(w, i, __builtin_ctz(mask & w->cluster_arrived), PTX_ILLEGAL_INSTRUCTION, 0,
			  "barrier.cluster.arrive twice without a wait (line %u)", i->line);
		return false;
	}
	w->cluster_arrived |= mask;
	c->arrived += (u32)__builtin_popcount(mask);
	if (c->arrived == c->live)
		release(c, w->blk->nwarps);
	return true;
}

/* Threads that are gone are not waited for, arrived or not. */
void ptx_cluster_exit(struct warp *w, u32 mask)
{
	struct cluster *c = w->blk->cluster;

	c->live -= (u32)__builtin_popcount(mask);
	c->arrived -= (u32)__builtin_popcount(mask & w->cluster_arrived);
	w->cluster_arrived &= ~mask;
	if (c->arrived && c->arrived == c->live)
		release(c, w->blk->nwarps);
}
