/* SPDX-License-Identifier: MIT */
/* The device library functions: vprintf, malloc, free, __assertfail, cudaGraphSetConditional. */
#include <stdio.h>

#include "softgpu/ptx/call.h"
#include "softgpu/ptx/heap.h"
#include "softgpu/ptx/print.h"

HANDLER(call_vprintf)
{
	for (u32 rest = em; rest; rest &= rest - 1) {
		u32 l = (u32)__builtin_ctz(rest);
		s32 n = ptx_print(w, i, l, arg64(w, i, l, 0), arg64(w, i, l, 1));

		if (w->stop)
			return;
		result(w, i, l, &n, 4);
	}
}

HANDLER(call_malloc)
{
	struct ptx_heap *h = w->frame->f->m->heap;

	for (u32 rest = em; rest; rest &= rest - 1) {
		u32 l = (u32)__builtin_ctz(rest);
		u64 p = ptx_heap_alloc(h, arg64(w, i, l, 0));

		result(w, i, l, &p, 8);
	}
}

HANDLER(call_free)
{
	struct ptx_heap *h = w->frame->f->m->heap;

	for (u32 rest = em; rest; rest &= rest - 1) {
		u32 l = (u32)__builtin_ctz(rest);
		u64 p = arg64(w, i, l, 0);

		if (p && !ptx_heap_release(h, p)) {
			ptx_raise(w, i, (int)l, PTX_ILLEGAL_ADDRESS, p,
				  "free of 0x%llx, which this module's malloc did not give (line %u)", (unsigned long long)p,
				  i->line);
			return;
		}
	}
}

static const char *string_or(struct warp *w, u32 lane, u64 addr, size_t *len)
{
	const char *s = addr ? ptx_lane_string(w, lane, addr, 1024, len) : NULL;

	if (!s) {
		s = "?";
		*len = 1;
	}
	return s;
}

/* As CUDA prints it: file:line: function: block: [x,y,z], thread: [x,y,z] Assertion `text` failed. */
HANDLER(call_assertfail)
{
	const struct ptx_launch *p = w->blk->l->p;

	for (u32 rest = em; rest; rest &= rest - 1) {
		u32 l = (u32)__builtin_ctz(rest), line = (u32)arg64(w, i, l, 2);
		size_t nm, nf, nn;
		const char *msg = string_or(w, l, arg64(w, i, l, 0), &nm), *file = string_or(w, l, arg64(w, i, l, 1), &nf);
		const char *func = string_or(w, l, arg64(w, i, l, 3), &nn);
		char buf[4096];
		int n = snprintf(buf, sizeof(buf),
				 "%.*s:%u: %.*s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%.*s` failed.\n", (int)nf, file,
				 line, (int)nn, func, w->blk->id[0], w->blk->id[1], w->blk->id[2], w->tid[0][l], w->tid[1][l],
				 w->tid[2][l], (int)nm, msg);

		if (p->print && n > 0) {
			pthread_mutex_lock(&w->blk->l->lock);
			p->print(p->print_arg, buf, (size_t)n);
			pthread_mutex_unlock(&w->blk->l->lock);
		}
		if (n > 0)
			buf[n - 1] = 0;
		ptx_raise(w, i, (int)l, PTX_ASSERT, 0, "%.250s", buf);
	}
}

HANDLER(call_set_conditional)
{
	const struct ptx_launch *p = w->blk->l->p;

	for (u32 rest = em; rest; rest &= rest - 1) {
		u32 l = (u32)__builtin_ctz(rest);

		if (p->condition)
			p->condition(arg64(w, i, l, 0), (u32)arg64(w, i, l, 1));
	}
}

const struct op_row ptx_ops_call[] = {
	{"call:vprintf", "wdd", call_vprintf, 0},
	{"call:malloc", "dd", call_malloc, 0},
	{"call:free", "-d", call_free, 0},
	{"call:__assertfail", "-ddwdd", call_assertfail, 0},
	{"call:cudaGraphSetConditional", "-dw", call_set_conditional, 0},
	{NULL, NULL, NULL, 0},
};
