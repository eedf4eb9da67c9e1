/* SPDX-License-Identifier: MIT */
/* Faults: the first of a launch is kept, and every warp of it stops at its next control instruction. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "softgpu/ptx/exec.h"

void ptx_raise(struct warp *w, const struct ins *i, int lane, enum ptx_status st, u64 addr, const char *fmt, ...)
{
	struct launch *l = w->blk->l;
	u32 who = lane >= 0 ? (u32)lane : (w->live ? (u32)__builtin_ctz(w->live) : 0);
	va_list ap;

	w->stop = true;
	pthread_mutex_lock(&l->lock);
	if (!atomic_load(&l->stop)) {
		struct ptx_fault *f = l->fault;

		for (u32 k = 0; k < 3; k++) {
			f->block[k] = w->blk->id[k];
			f->thread[k] = w->tid[k][who];
		}
		f->addr = addr;
		f->line = i ? i->line : 0;
		va_start(ap, fmt);
		vsnprintf(f->text, sizeof(f->text), fmt, ap);
		va_end(ap);
		atomic_store(&l->stop, (int)st);
	}
	pthread_mutex_unlock(&l->lock);
}
