/* SPDX-License-Identifier: MIT */
/* The warp scheduler: runs one split of a warp at a time, splits at divergent branches, merges where they meet. */
#include <string.h>

#include "softgpu/ptx/whole.h"

/*
 * Divergence is a table of splits {lanes, pc, frame, state}, not a stack, so any control flow works. The ready
 * split with the deepest frame and then the lowest weak topological order runs: lanes inside a loop finish it
 * before the others go on, and all meet again as early as the graph allows. A split that loops while others
 * are ready hands over after EDGES_ROTATE back-edges, for HOLD control transfers, so that a lock's holder gets
 * to release it; after EDGES_YIELD the other warps of the block have a turn.
 */
#define EDGES_YIELD 1024u
#define HOLD	    64u
#define MAX_DEPTH   16384u

static struct split *add_split(struct warp *w, const struct ins *pc, struct frame *fr, u32 mask)
{
	struct split *s = &w->split[w->nsplit++];

	*s = (struct split){.pc = pc, .frame = fr, .mask = mask, .state = ST_READY};
	return s;
}

static void drop_split(struct warp *w, u32 k)
{
	if (k != --w->nsplit)
		w->split[k] = w->split[w->nsplit];
	if (w->cur == w->nsplit)
		w->cur = k;
}

/* The lanes of @arrived whose member mask is complete at the .sync instruction @i. */
static u32 sync_ready(const struct warp *w, const struct frame *fr, const struct ins *i, u32 arrived)
{
	u32 go = 0;

	if (i->r[7] < 0) {
		u32 m = *(const u32 *)(fr->f->pool + i->r[7]);

		return (m & w->live & ~arrived) ? 0 : arrived;
	}
	const u32 *m = (const u32 *)(fr->mem + i->r[7]);

	for (u32 rest = arrived; rest; rest &= rest - 1) {
		u32 l = (u32)__builtin_ctz(rest);

		if (!(m[l] & w->live & ~arrived))
			go |= 1u << l;
	}
	return go;
}

/*
 * Wakes splits that wait at a .sync instruction and need nobody any more, because lanes came or left. Lanes at
 * different bar.warp.sync instructions meet each other; for those that meet in other operations see meet.c.
 */
static bool wake_sync(struct warp *w)
{
	u32 at_warpsync = 0;
	bool woke = false;

	for (u32 k = 0; k < w->nsplit; k++)
		if (w->split[k].state == ST_SYNC && w->split[k].pc->kind == K_WARPSYNC)
			at_warpsync |= w->split[k].mask;
	for (u32 k = 0; k < w->nsplit; k++) {
		struct split *s = &w->split[k];
		u32 arrived = s->mask;

		if (s->state != ST_SYNC)
			continue;
		if (s->pc->kind == K_WARPSYNC) {
			if ((sync_ready(w, s->frame, s->pc, at_warpsync) & s->mask) != s->mask)
				continue;
			s->pc++;
		} else {
			/* a split at one place may be in parts, after some of its lanes went on */
			for (u32 j = 0; j < w->nsplit; j++)
				if (w->split[j].state == ST_SYNC && w->split[j].pc == s->pc && w->split[j].frame == s->frame)
					arrived |= w->split[j].mask;
			if (!sync_ready(w, s->frame, s->pc, arrived))
				continue;
		}
		s->state = ST_READY;
		woke = true;
	}
	return woke || ptx_meet(w);
}

static bool before(const struct split *a, const struct split *b)
{
	const struct ptx_func *fa = a->frame->f, *fb = b->frame->f;

	if (a->frame->depth != b->frame->depth)
		return a->frame->depth > b->frame->depth;
	if (fa != fb)
		return fa->index < fb->index;
	return fa->order[a->pc - fa->code] < fb->order[b->pc - fb->code];
}

/* Chooses the split to run and merges into it those at the same place; false when all wait. */
static bool pick(struct warp *w)
{
	struct split *s;
	u32 best = WARP;

	do {
		for (u32 k = 0; k < w->nsplit; k++)
			if (w->split[k].state == ST_READY && (best == WARP || before(&w->split[k], &w->split[best])))
				best = k;
	} while (best == WARP && wake_sync(w));
	if (best == WARP)
		return false;
	w->cur = best;
	s = &w->split[best];
	for (u32 k = 0; k < w->nsplit; k++) {
		struct split *o = &w->split[k];

		if (k != w->cur && o->state == ST_READY && o->pc == s->pc && o->frame == s->frame) {
			s->mask |= o->mask;
			drop_split(w, k--);
			s = &w->split[w->cur];
		}
	}
	return true;
}

/* Another ready split than the current one, for a while. */
static bool rotate(struct warp *w)
{
	for (u32 n = 1; n < w->nsplit; n++) {
		u32 k = (w->cur + n) % w->nsplit;

		if (w->split[k].state == ST_READY) {
			w->cur = k;
			w->hold = HOLD;
			return true;
		}
	}
	return false;
}

static void bar_release(struct block *b, u32 id)
{
	struct barrier *bar = &b->bar[id];

	for (u32 n = 0; n < b->nwarps; n++) {
		struct warp *w = &b->warps[n];

		for (u32 k = 0; k < w->nsplit; k++) {
			struct split *s = &w->split[k];
			const struct ins *i = s->pc;
			u8 *d = s->frame->mem + i->r[0];

			if (s->state != ST_BAR || s->bar != id)
				continue;
			if (i->imm == BAR_RED_POPC)
				for (u32 rest = s->mask; rest; rest &= rest - 1)
					((u32 *)d)[__builtin_ctz(rest)] = bar->popc;
			if (i->imm == BAR_RED_AND || i->imm == BAR_RED_OR) {
				bool r = i->imm == BAR_RED_AND ? bar->all : bar->any;

				*(u32 *)d = (*(u32 *)d & ~s->mask) | (r ? s->mask : 0);
			}
			s->pc++;
			s->state = ST_READY;
		}
	}
	b->waiting -= bar->waiting + bar->arrived;
	*bar = (struct barrier){.all = true};
}

/* With an explicit count a warp whose living lanes all arrived counts as 32, as the hardware has it. */
static u32 bar_count(struct block *b, u32 id)
{
	u32 sum = 0;

	for (u32 n = 0; n < b->nwarps; n++) {
		struct warp *w = &b->warps[n];
		u32 m = 0;

		for (u32 k = 0; k < w->nsplit; k++)
			if (w->split[k].state == ST_BAR && w->split[k].bar == id)
				m |= w->split[k].mask;
		sum += m && m == w->live ? WARP : (u32)__builtin_popcount(m);
	}
	return sum;
}

static void bar_check(struct block *b, u32 id)
{
	struct barrier *bar = &b->bar[id];

	if (!bar->waiting && !bar->arrived)
		return;
	if (bar->count ? bar_count(b, id) + bar->arrived >= bar->count : bar->waiting + bar->arrived >= b->live_threads)
		bar_release(b, id);
}

static void bar_recheck(struct block *b)
{
	for (u32 id = 0; b->waiting && id < BARRIERS; id++)
		bar_check(b, id);
}

/* The split @s arrives at @i. False after a fault. */
static bool bar_arrive(struct warp *w, struct split *s, const struct ins *i)
{
	u32 lane = (u32)__builtin_ctz(s->mask), n = (u32)__builtin_popcount(s->mask);
	u32 id = ((u32 *)opnd_ptr(w, i->r[1]))[lane], count = ((u32 *)opnd_ptr(w, i->r[2]))[lane];
	struct barrier *bar;

	if (id >= BARRIERS || (count & (WARP - 1)) || count > 1024) {
		ptx_raise(w, i, (int)lane, PTX_ILLEGAL_INSTRUCTION, 0,
			  "barrier %u for %u threads: there are barriers 0 to 15, for multiples of 32 threads (line %u)", id,
			  count, i->line);
		return false;
	}
	bar = &w->blk->bar[id];
	w->blk->bars_used |= 1u << id;
	bar->count = count;
	if (i->imm == BAR_ARRIVE) {
		n = s->mask == w->live ? WARP : n;
		bar->arrived += n;
		s->pc = i + 1;
	} else {
		s->state = ST_BAR;
		s->bar = (u8)id;
		s->pc = i;
		bar->waiting += n;
	}
	w->blk->waiting += n;
	if (i->imm >= BAR_RED_POPC) {
		u32 p = *pred_ptr(w, i->r[3]) & s->mask;

		bar->popc += (u32)__builtin_popcount(p);
		bar->all = bar->all && p == s->mask;
		bar->any = bar->any || p;
	}
	bar_check(w->blk, id);
	return true;
}

static u8 *area(const struct frame *fr, u32 lane)
{
	return (u8 *)(uintptr_t)fr->mem + fr->f->frame_regs + (size_t)lane * fr->f->area;
}

/* The callee of an indirect call by the lanes of @s; lanes with another target stay behind in a split of their own. */
static const struct ptx_func *indirect_callee(struct warp *w, u32 *mask, const struct ins *i, const struct call_site *site)
{
	const u64 *target = opnd_ptr(w, i->r[0]);
	u32 lane = (u32)__builtin_ctz(*mask), same = 0;
	const struct ptx_module *m = w->frame->f->m;
	const struct ptx_func *f = NULL;
	u64 t = target[lane], index = ((t & WINDOW_MASK) >> 4) - 1;

	if (t >> WINDOW_SHIFT == WINDOW_FUNC && !(t & 15) && index < m->nfuncs)
		f = m->funcs[index];
	if (!f || f->is_entry || f->param_bytes != site->param_bytes || f->ret_bytes != site->ret_bytes) {
		ptx_raise(w, i, (int)lane, PTX_ILLEGAL_INSTRUCTION, t,
			  "indirect call to 0x%llx, which is no function of this type (line %u)", (unsigned long long)t, i->line);
		return NULL;
	}
	for (u32 rest = *mask; rest; rest &= rest - 1) {
		u32 l = (u32)__builtin_ctz(rest);

		same |= (u32)(target[l] == t) << l;
	}
	if (same != *mask) {
		add_split(w, i, w->frame, *mask & ~same);
		*mask = same;
	}
	return f;
}

static bool call(struct warp *w, u32 mask, const struct ins *i)
{
	struct frame *fr = w->frame, *to;
	const struct call_site *site = &fr->f->calls[i->imm];
	const struct ptx_func *f = site->callee ? site->callee : indirect_callee(w, &mask, i, site);
	struct split *s = &w->split[w->cur];

	if (!f)
		return false;
	if (fr->depth >= MAX_DEPTH || fr->local + fr->f->local_own + fr->allocated + f->local_own > w->local_stride ||
	    !(to = ptx_frame_get(w->blk->worker, f, f->frame_cls))) {
		ptx_raise(w, i, (int)__builtin_ctz(mask), PTX_STACK, 0, "stack overflow: call of '%s' at depth %u (line %u)",
			  f->name, fr->depth, i->line);
		return false;
	}
	to->parent = fr;
	to->site = site;
	to->ret = i + 1;
	to->lanes = mask;
	to->depth = fr->depth + 1;
	to->local = fr->local + fr->f->local_own + fr->allocated;
	for (u32 rest = mask; rest; rest &= rest - 1) {
		u32 l = (u32)__builtin_ctz(rest);

		for (u32 k = 0; k < site->nargs; k++)
			memcpy(area(to, l) + site->args[k].to, area(fr, l) + site->args[k].from, site->args[k].bytes);
	}
	s->mask = mask;
	s->frame = to;
	s->pc = f->code;
	return true;
}

static void leave(struct warp *w, struct split *s)
{
	struct frame *fr = s->frame;
	const struct call_site *site = fr->site;

	for (u32 rest = s->mask; rest; rest &= rest - 1) {
		u32 l = (u32)__builtin_ctz(rest);

		for (u32 k = 0; k < site->nrets; k++)
			memcpy(area(fr->parent, l) + site->rets[k].to, area(fr, l) + fr->f->ret_at + site->rets[k].from,
			       site->rets[k].bytes);
	}
	s->pc = fr->ret;
	s->frame = fr->parent;
	fr->lanes &= ~s->mask;
	if (!fr->lanes)
		ptx_frame_put(w->blk->worker, fr);
}

static void exit_lanes(struct warp *w)
{
	struct split s = w->split[w->cur];

	w->live &= ~s.mask;
	w->blk->live_threads -= (u32)__builtin_popcount(s.mask);
	for (struct frame *fr = s.frame, *up; fr; fr = up) {
		up = fr->parent;
		fr->lanes &= ~s.mask;
		if (!fr->lanes)
			ptx_frame_put(w->blk->worker, fr);
	}
	drop_split(w, w->cur);
	w->hold = 0;
	if (w->nsplit)
		wake_sync(w);
	bar_recheck(w->blk);
	ptx_cluster_exit(w, s.mask);
}

/* What must happen now and then in every loop. RUN_DONE: nothing to do. */
static enum run look_around(struct warp *w)
{
	struct launch *l = w->blk->l;

	if (atomic_load_explicit(&l->stop, memory_order_relaxed))
		return RUN_STOP;
	if (l->p->cancel && __atomic_load_n(l->p->cancel, __ATOMIC_RELAXED)) {
		ptx_raise(w, NULL, -1, PTX_CANCELLED, 0, "the launch was cancelled");
		return RUN_STOP;
	}
	return w->edges >= EDGES_YIELD ? RUN_YIELD : RUN_DONE;
}

static enum run back_edge(struct warp *w)
{
	return ++w->edges % EDGES_ROTATE ? RUN_DONE : look_around(w);
}

/* Brings the lanes that wait at the .sync instruction @i together; the ones to run now, 0 when none. */
static u32 sync_arrive(struct warp *w, const struct ins *i, u32 mask)
{
	struct frame *fr = w->frame;
	u32 arrived = mask, go;

	for (u32 k = 0; k < w->nsplit; k++)
		if (k != w->cur && w->split[k].pc == i && w->split[k].frame == fr) {
			arrived |= w->split[k].mask;
			drop_split(w, k--);
		}
	go = sync_ready(w, fr, i, arrived);
	w->split[w->cur].mask = go ? go : arrived;
	w->split[w->cur].pc = i;
	if (!go) {
		w->split[w->cur].state = ST_SYNC;
		wake_sync(w);
	} else if (go != arrived) {
		add_split(w, i, fr, arrived & ~go)->state = ST_SYNC;
	}
	return go;
}

enum run ptx_warp_run(struct warp *w)
{
	const struct ins *i, *code;
	struct split *s;
	u32 mask, taken;
	enum run r;

	w->progress = false;
	w->edges = 0;
	w->hold = 0;
choose:
	if (w->stop)
		return RUN_STOP;
	if (w->nsplit == 1 && w->split[0].state == ST_READY)
		w->cur = 0;
	else if (w->hold && w->split[w->cur].state == ST_READY)
		w->hold--;
	else if (!pick(w))
		return w->nsplit ? RUN_BLOCKED : RUN_DONE;
	w->progress = true;
	if (!w->whole && w->whole_tries && w->nsplit == 1)
		w->whole = ptx_whole_enter(w);
enter:
	s = &w->split[w->cur];
	w->frame = s->frame;
	w->regs = s->frame->mem;
	w->pool = s->frame->f->pool;
	code = s->frame->f->code;
	mask = s->mask;
	while (w->whole)
		switch (ptx_whole_run(w)) {
		case WHOLE_SLOW:
			break;
		case WHOLE_CONTROL:
			i = s->pc;
			goto control;
		case WHOLE_EDGE:
			if ((r = look_around(w)) != RUN_DONE)
				return r;
			break;
		default:
			return RUN_STOP;
		}
	i = s->pc;
run:
	for (;; i++) {
		if (i->kind == K_PLAIN) {
			i->fn(w, i, mask);
		} else if (i->kind == K_GUARD) {
			u32 p = *pred_ptr(w, i->guard), em = mask & (i->guard_inverted ? ~p : p);

			if (em)
				i->fn(w, i, em);
		} else {
			break;
		}
	}
	if (__builtin_expect(w->stop, 0))
		return RUN_STOP;
control:
	switch ((enum ins_kind)i->kind) {
	case K_NEXT:
		if (w->nsplit == 1) {
			i++;
			goto run;
		}
		s->pc = i + 1;
		goto choose;
	case K_BRA:
		taken = mask;
		if (i->guard != NO_GUARD) {
			u32 p = *pred_ptr(w, i->guard);

			taken &= i->guard_inverted ? ~p : p;
		}
		if (!taken) {
			s->pc = i + 1;
		} else {
			if (taken != mask) {
				add_split(w, i + 1, s->frame, mask & ~taken);
				s->mask = taken;
			}
			s->pc = code + i->target;
			if (s->pc <= i && (r = back_edge(w)) != RUN_DONE)
				return r;
			if (s->pc <= i && w->nsplit > 1 && !(w->edges % EDGES_ROTATE) && rotate(w))
				goto enter;
		}
		if (w->nsplit > 1)
			goto choose;
		i = s->pc;
		goto run;
	case K_BRX: {
		const u32 *index = opnd_ptr(w, i->r[0]);
		u32 t = index[__builtin_ctz(mask)], same = 0;

		for (u32 rest = mask; rest; rest &= rest - 1)
			same |= (u32)(index[__builtin_ctz(rest)] == t) << __builtin_ctz(rest);
		if (t >= i->imm) {
			ptx_raise(w, i, (int)__builtin_ctz(mask), PTX_ILLEGAL_INSTRUCTION, 0,
				  "brx.idx with index %u in a table of %u (line %u)", t, (u32)i->imm, i->line);
			return RUN_STOP;
		}
		if (same != mask)
			add_split(w, i, s->frame, mask & ~same);
		s->mask = same;
		s->pc = code + s->frame->f->ops[i->target + t];
		if (s->pc <= i && (r = back_edge(w)) != RUN_DONE)
			return r;
		goto choose;
	}
	case K_CALL:
		if (!call(w, mask, i))
			return RUN_STOP;
		if ((r = back_edge(w)) != RUN_DONE)
			return r;
		goto choose;
	case K_RET:
		leave(w, s);
		goto choose;
	case K_EXIT:
		exit_lanes(w);
		if (!w->nsplit)
			return RUN_DONE;
		goto choose;
	case K_SYNC:
	case K_WARPSYNC:
		if (w->nsplit > 1 || sync_ready(w, s->frame, i, mask) != mask) {
			mask = sync_arrive(w, i, mask);
			s = &w->split[w->cur];
			if (!mask)
				goto choose;
		}
		i->fn(w, i, mask);
		i++;
		goto run;
	case K_BAR:
		if (!bar_arrive(w, s, i))
			return RUN_STOP;
		goto choose;
	case K_CLUSTER:
		s->pc = i + 1;
		if (!i->imm) {
			if (!ptx_cluster_arrive(w, i, mask))
				return RUN_STOP;
		} else if (mask & w->cluster_arrived) {
			s->pc = i;
			s->state = ST_BAR;
			s->bar = CLUSTER_BARRIER;
		}
		goto choose;
	case K_YIELD:
		s->pc = i + 1;
		if (atomic_load_explicit(&w->blk->l->stop, memory_order_relaxed))
			return RUN_STOP;
		if (w->nsplit > 1 && w->edges < EDGES_YIELD && rotate(w)) {
			w->edges += EDGES_ROTATE;
			goto enter;
		}
		return RUN_YIELD;
	default:
		__builtin_unreachable();
	}
}
