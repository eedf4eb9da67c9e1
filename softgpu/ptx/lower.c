/* SPDX-License-Identifier: MIT */
/* Lowering of one function: the walk over its instructions, guards, and the table of special families. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/ptx/lower.h"

void lower_unsupported(struct lower *lo, const char *why)
{
	u32 len = lo->p->len > 120 ? 120 : lo->p->len;

	load_fail(lo->ld, PTX_UNSUPPORTED, lo->p->line, "'%.*s' is not supported%s%s", (int)len, lo->p->op, why ? ": " : "",
		  why ? why : "");
}

static void split_mods(struct lower *lo)
{
	const char *s = lo->p->op, *end = s + lo->p->len;

	lo->nmod = 0;
	lo->used_mods = 1;
	while (s < end) {
		const char *dot = memchr(s, '.', (size_t)(end - s));
		const char *e = dot ? dot : end;

		if (lo->nmod == 16)
			lower_unsupported(lo, "too many modifiers");
		lo->mod[lo->nmod].s = s;
		lo->mod[lo->nmod++].len = (u32)(e - s);
		s = e + 1;
	}
}

bool mod(struct lower *lo, const char *name)
{
	size_t len = strlen(name);

	for (u32 k = 1; k < lo->nmod; k++)
		if (lo->mod[k].len == len && !memcmp(lo->mod[k].s, name, len)) {
			lo->used_mods |= 1u << k;
			return true;
		}
	return false;
}

void mods_ignore(struct lower *lo, const char *const *names)
{
	for (; *names; names++)
		mod(lo, *names);
	for (u32 k = 1; k < lo->nmod; k++)
		if (lo->mod[k].len > 4 && (!memcmp(lo->mod[k].s, "L1::", 4) || !memcmp(lo->mod[k].s, "L2::", 4)))
			lo->used_mods |= 1u << k;
}

enum type mod_type(struct lower *lo, u32 n)
{
	for (u32 k = 1; k < lo->nmod; k++) {
		enum type t = type_by_name(lo->mod[k].s, lo->mod[k].len);

		if (t != TY_NONE && !n--) {
			lo->used_mods |= 1u << k;
			return t;
		}
	}
	return TY_NONE;
}

void mods_done(struct lower *lo)
{
	if (lo->used_mods != (1u << lo->nmod) - 1)
		lower_unsupported(lo, NULL);
}

u64 mod_flags(struct lower *lo)
{
	u64 f = 0;

	if (mod(lo, "rn") || mod(lo, "rni"))
		f |= RND_N;
	else if (mod(lo, "rz") || mod(lo, "rzi"))
		f |= RND_Z;
	else if (mod(lo, "rm") || mod(lo, "rmi"))
		f |= RND_M;
	else if (mod(lo, "rp") || mod(lo, "rpi"))
		f |= RND_P;
	else if (mod(lo, "rna"))
		f |= RND_NA;
	if (mod(lo, "ftz"))
		f |= MF_FTZ;
	if (mod(lo, "sat"))
		f |= MF_SAT;
	if (mod(lo, "approx") || mod(lo, "full"))
		f |= MF_APPROX;
	return f;
}

struct ins *emit(struct lower *lo, ptx_handler fn, enum ins_kind kind)
{
	struct ins *i;

	lo->code = load_grow(lo->ld, lo->code, lo->n, &lo->cap, sizeof(*lo->code));
	lo->info = load_grow(lo->ld, lo->info, lo->n, &lo->icap, sizeof(*lo->info));
	memset(&lo->info[lo->n], 0, sizeof(*lo->info));
	i = &lo->code[lo->n++];
	*i = (struct ins){.fn = fn, .kind = kind, .guard = NO_GUARD, .line = lo->p ? lo->p->line : lo->ast->line_end};
	return i;
}

struct ins *emit_op(struct lower *lo, const char *fmt, ...)
{
	const struct op_row *row = NULL;
	char name[128];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(name, sizeof(name), fmt, ap);
	va_end(ap);
	if (n > 0 && (size_t)n < sizeof(name))
		row = ptx_op_find(name, (size_t)n);
	if (!row)
		lower_unsupported(lo, NULL);
	return emit(lo, row->fn, K_PLAIN);
}

void need_ops(struct lower *lo, u32 min, u32 max)
{
	if (lo->p->nops < min || lo->p->nops > max)
		load_fail(lo->ld, PTX_SYNTAX, lo->p->line, "'%.*s' with %u operands", (int)lo->p->len, lo->p->op, lo->p->nops);
}

/* Carry chains: the condition code is a predicate register of the function. */
static void carry(struct lower *lo, struct ins *i)
{
	u32 len = lo->mod[0].len;
	const char *op = lo->mod[0].s;
	bool in = len == 4 && (!memcmp(op, "addc", 4) || !memcmp(op, "subc", 4) || !memcmp(op, "madc", 4));

	if (!in && !mod(lo, "cc"))
		return;
	if (!lo->has_cc) {
		lo->cc = temp(lo, RC_PRED);
		lo->has_cc = true;
	}
	if (in)
		set_use(lo, i, 4, lo->cc);
	if (mod(lo, "cc"))
		set_def(lo, i, 5, lo->cc);
}

/* An instruction whose whole opcode is a row of the table. */
void lower_form(struct lower *lo)
{
	const struct op_row *row = ptx_op_find(lo->p->op, lo->p->len);
	struct ins tmp = {0};
	struct ins *i;
	u32 n;

	if (!row || (lo->p->nops == 4 && strlen(row->sig) == 3)) {
		if (lower_rare(lo))
			return;
		lower_unsupported(lo, NULL);
	}
	n = (u32)strlen(row->sig);
	need_ops(lo, n, n);
	for (u32 k = 1; k < n; k++)
		tmp.r[k] = row->sig[k] == 'p' ? pred_src(lo, &lo->p->ops[k]) : src(lo, &lo->p->ops[k], row->sig[k]);
	i = emit(lo, row->fn, K_PLAIN);
	for (u32 k = 1; k < n; k++)
		set_use(lo, i, k, tmp.r[k]);
	set_def(lo, i, 0, dst(lo, &lo->p->ops[0], row->sig[0]));
	if (row->flags & OP_MODS)
		i->imm = mod_flags(lo);
	carry(lo, i);
}

static const struct {
	const char *op;
	lower_fn fn;
} special[] = {
	{"mov", lower_mov},
	{"cvta", lower_cvta},
	{"isspacep", lower_isspacep},
	{"mapa", lower_mapa},
	{"getctarank", lower_getctarank},
	{"cvt", lower_cvt},
	{"setp", lower_setp},
	{"set", lower_set},
	{"ld", lower_ld},
	{"ldu", lower_ld},
	{"st", lower_st},
	{"atom", lower_atom},
	{"red", lower_red},
	{"membar", lower_fence},
	{"fence", lower_fence},
	{"prefetch", lower_prefetch},
	{"prefetchu", lower_prefetch},
	{"bra", lower_bra},
	{"brx", lower_brx},
	{"call", lower_call},
	{"ret", lower_ret},
	{"exit", lower_exit},
	{"trap", lower_trap},
	{"brkpt", lower_trap},
	{"nanosleep", lower_nanosleep},
	{"bar", lower_bar},
	{"barrier", lower_bar},
	{"shfl", lower_shfl},
	{"vote", lower_vote},
	{"match", lower_match},
	{"redux", lower_redux},
	{"activemask", lower_activemask},
	{"elect", lower_elect},
	{"cp", lower_cp_async},
	{"mbarrier", lower_mbarrier},
	{"tensormap", lower_tensormap},
	{"griddepcontrol", lower_nop},
	{"discard", lower_prefetch},
	{"applypriority", lower_prefetch},
	{"pmevent", lower_nop},
	{"createpolicy", lower_createpolicy},
	{"alloca", lower_alloca},
	{"stacksave", lower_stacksave},
	{"stackrestore", lower_stacksave},
	{"vadd", lower_video},
	{"vsub", lower_video},
	{"vabsdiff", lower_video},
	{"vmin", lower_video},
	{"vmax", lower_video},
	{"vshl", lower_video},
	{"vshr", lower_video},
	{"vmad", lower_video},
	{"vset", lower_video},
	{"vadd2", lower_video},
	{"vsub2", lower_video},
	{"vavrg2", lower_video},
	{"vabsdiff2", lower_video},
	{"vmin2", lower_video},
	{"vmax2", lower_video},
	{"vset2", lower_video},
	{"vadd4", lower_video},
	{"vsub4", lower_video},
	{"vavrg4", lower_video},
	{"vabsdiff4", lower_video},
	{"vmin4", lower_video},
	{"vmax4", lower_video},
	{"vset4", lower_video},
	{"lop3", lower_lop3},
	{"mma", lower_mma},
	{"wmma", lower_wmma},
	{"ldmatrix", lower_ldmatrix},
	{"stmatrix", lower_ldmatrix},
	{"movmatrix", lower_movmatrix},
	{"tex", lower_tex},
	{"tld4", lower_tex},
	{"txq", lower_txq},
	{"suq", lower_txq},
	{"suld", lower_surface},
	{"sust", lower_surface},
	{"sured", lower_surface},
};

lower_fn lower_special(const char *op, u32 len)
{
	for (size_t k = 0; k < sizeof(special) / sizeof(special[0]); k++)
		if (strlen(special[k].op) == len && !memcmp(special[k].op, op, len))
			return special[k].fn;
	return NULL;
}

static bool ends_block(const struct ins *i)
{
	return i->kind == K_BRA || i->kind == K_BRX || i->kind == K_NEXT || i->kind == K_RET || i->kind == K_EXIT;
}

/* Branches carry labels as ~label until every label's place is known; see patch_labels. */
static void guard(struct lower *lo, u32 first)
{
	const struct pins *p = lo->p;
	bool plain = true;
	struct ins *i;

	for (u32 k = first; k < lo->n; k++) {
		plain = plain && lo->code[k].kind == K_PLAIN;
		/* The guard itself is overwritten before the last instruction has read it. */
		if (k + 1 < lo->n)
			for (u32 r = 0; r < NREGS; r++)
				if ((lo->info[k].def >> r & 1) && lo->code[k].r[r] == p->guard)
					plain = false;
	}
	if (plain) {
		for (u32 k = first; k < lo->n; k++) {
			lo->code[k].kind = K_GUARD;
			lo->code[k].guard = p->guard;
			lo->code[k].guard_inverted = p->guard_inverted;
		}
		return;
	}
	if (!ends_block(&lo->code[lo->n - 1]))
		emit(lo, NULL, K_NEXT);
	emit(lo, NULL, K_NEXT); /* makes room */
	memmove(&lo->code[first + 1], &lo->code[first], (lo->n - 1 - first) * sizeof(*lo->code));
	memmove(&lo->info[first + 1], &lo->info[first], (lo->n - 1 - first) * sizeof(*lo->info));
	i = &lo->code[first];
	*i = (struct ins){.kind = K_BRA, .guard = p->guard, .guard_inverted = !p->guard_inverted, .line = p->line};
	i->target = lo->n; /* the next instruction: a real index, as opposed to a label */
	i->sub = 1;
	lo->info[first] = (struct ins_info){0};
}

static void patch_labels(struct lower *lo)
{
	for (u32 k = 0; k < lo->n; k++) {
		struct ins *i = &lo->code[k];

		if (i->kind == K_BRA && !i->sub)
			i->target = lo->label_at[i->target];
		if (i->kind == K_BRX)
			for (u32 t = 0; t < i->imm; t++)
				lo->ops[i->target + t] = (s32)lo->label_at[lo->ops[i->target + t]];
	}
}

/* Part selectors and signs of registers belong to the video instructions, whose names begin with v as that of vote does. */
static void no_parts(struct lower *lo, const struct opnd *o)
{
	if (o->sel[0] || o->negated)
		lower_unsupported(lo, "a part or the negation of a register");
	for (u32 k = 0; k < o->nlist; k++)
		no_parts(lo, &o->list[k]);
	if (o->second)
		no_parts(lo, o->second);
}

static void lower_body(struct lower *lo)
{
	struct func_ast *a = lo->ast;
	u8 *labelled = load_alloc(lo->ld, a->nins + 1);

	lo->label_at = load_alloc(lo->ld, (a->nins + 1) * sizeof(u32));
	/* Any instruction that a branch names begins a block. Labels resolve to parsed indices first. */
	for (u32 k = 0; k < a->nins; k++) {
		const struct pins *p = &a->ins[k];

		for (u32 o = 0; o < p->nops; o++) {
			struct sym *s = p->ops[o].kind == O_SYM ? p->ops[o].sym : NULL;

			while (s && s->fwd)
				s = s->fwd;
			if (s && s->kind == SYM_LABEL)
				labelled[s->ins] = 1;
			for (u32 t = 0; s && s->kind == SYM_TARGETS && t < s->ntargets; t++) {
				struct sym *l = s->targets[t];

				while (l->fwd)
					l = l->fwd;
				labelled[l->ins] = 1;
			}
		}
	}
	for (const struct sym *v = a->params; v; v = v->next)
		if (v->in_reg)
			lower_area_load(lo, (s32)v->reg, (u32)v->addr);
	for (u32 k = 0; k <= a->nins; k++) {
		u32 first;
		lower_fn fn;

		if (labelled[k] && lo->n && !ends_block(&lo->code[lo->n - 1]))
			emit(lo, NULL, K_NEXT);
		lo->label_at[k] = lo->n;
		if (k == a->nins)
			break;
		lo->p = &a->ins[k];
		first = lo->n;
		split_mods(lo);
		fn = lower_special(lo->mod[0].s, lo->mod[0].len);
		for (u32 o = 0; fn != lower_video && o < lo->p->nops; o++)
			no_parts(lo, &lo->p->ops[o]);
		if (lo->nmod > 1 && lo->mod[1].len == 5 && !memcmp(lo->mod[1].s, "async", 5))
			fn = fn == lower_st ? lower_st_async : fn == lower_red ? lower_red_async : fn;
		if (fn)
			fn(lo);
		else
			lower_form(lo);
		if (lo->p->guard >= 0 && lo->n > first && lo->code[first].kind != K_BRA)
			guard(lo, first);
	}
	lo->p = NULL;
	lower_return(lo);
	patch_labels(lo);
}

static void publish(struct lower *lo)
{
	struct ptx_func *f = lo->f;
	struct load *ld = lo->ld;

	f->code = aligned_alloc(64, lo->n * sizeof(struct ins));
	f->order = calloc(lo->n, sizeof(u32));
	f->ops = calloc(lo->nops + 1, sizeof(s32));
	f->pool_mem = aligned_alloc(64, lo->pool_bytes + 64);
	f->calls = calloc(lo->ncalls + 1, sizeof(*f->calls));
	f->ins_info = calloc(lo->n, sizeof(*f->ins_info));
	if (!f->ins_info || !f->code || !f->order || !f->ops || !f->pool_mem || !f->calls)
		load_fail(ld, PTX_NOMEM, 0, "out of host memory while loading PTX");
	memcpy(f->code, lo->code, lo->n * sizeof(struct ins));
	memcpy(f->ins_info, lo->info, lo->n * sizeof(*f->ins_info));
	f->ncode = lo->n;
	if (lo->nops)
		memcpy(f->ops, lo->ops, lo->nops * sizeof(s32));
	f->nops = lo->nops;
	for (u32 k = 0; k < lo->n; k++)
		f->order[k] = lo->blocks[lo->block_of[k]].order;

	f->pool = f->pool_mem + lo->pool_bytes;
	for (u32 k = 0; k < lo->nconsts; k++) {
		const struct pool_const *c = lo->const_list[k];
		u8 *at = f->pool_mem + lo->pool_bytes + c->off;

		for (u32 l = 0; l < WARP; l++) {
			if (c->cls == RC_64)
				memcpy(at + l * 8, &c->val, 8);
			else if (c->cls == RC_32)
				memcpy(at + l * 4, &c->val, 4);
			else if (c->cls == RC_16)
				memcpy(at + l * 2, &c->val, 2);
			else if (!l)
				memcpy(at, &c->val, 4);
		}
	}
	for (u32 k = 0; k < lo->ncalls; k++) {
		struct call_site *c = &f->calls[k];
		const struct call_site *s = &lo->calls[k];

		*c = *s;
		c->args = calloc(s->nargs + s->nrets + 1, sizeof(*c->args));
		c->rets = c->args ? c->args + s->nargs : NULL;
		f->ncalls = k + 1;
		if (!c->args)
			load_fail(ld, PTX_NOMEM, 0, "out of host memory while loading PTX");
		if (s->nargs)
			memcpy(c->args, s->args, s->nargs * sizeof(*c->args));
		if (s->nrets)
			memcpy(c->rets, s->rets, s->nrets * sizeof(*c->args));
	}
	f->area = (lo->area + 15) & ~15u;
	f->frame_size = f->frame_regs + WARP * f->area;
	f->frame_cls = ptx_frame_class(f->frame_size);
}

/* Places parameters, .param and .local variables; .shared ones have their place from the module. */
static void place_variables(struct lower *lo)
{
	struct func_ast *a = lo->ast;
	u32 local = 0;

	lo->f->param_bytes = a->param_bytes;
	lo->area = (a->param_bytes + 15) & ~15u;
	lo->f->ret_at = lo->area;
	lo->f->ret_bytes = a->ret_bytes;
	for (struct sym *v = a->rets; v; v = v->next)
		v->addr += lo->area;
	lo->area += (a->ret_bytes + 15) & ~15u;
	if (a->is_entry)
		lo->area = 0; /* kernel parameters are the launch's, the same for all lanes */
	for (struct sym *v = a->locals; v; v = v->next) {
		u32 *at = v->space == SP_PARAM ? &lo->area : &local;

		if (v->space == SP_SHARED)
			continue;
		*at = (*at + v->align - 1) & ~(v->align - 1);
		if (v->size > 1u << 26 || *at + v->size > 1u << 26)
			load_fail(lo->ld, PTX_UNSUPPORTED, v->line, "more than 64 MiB of local memory a thread");
		v->addr = *at;
		*at += (u32)v->size;
	}
	lo->f->local_own = (local + 15) & ~15u;
}

void lower_function(struct load *ld, struct func_ast *a)
{
	struct lower *lo = load_alloc(ld, sizeof(*lo));

	lo->ld = ld;
	lo->ast = a;
	lo->f = a->out;
	lo->nregs = a->nregs;
	lo->cregs = a->nregs + 64;
	lo->cls = load_alloc(ld, lo->cregs);
	for (u32 k = 0; k < a->nregs; k++)
		lo->cls[k] = (u8)type_class(a->regs[k]);
	lo->pair = load_alloc(ld, a->nregs * sizeof(*lo->pair));
	for (u32 k = 0; k < a->nregs; k++)
		if (lo->cls[k] == RC_COUNT) {
			lo->pair[k] = temp(lo, RC_64);
			temp(lo, RC_64);
		}
	place_variables(lo);
	lower_body(lo);
	lower_cfg(lo);
	lower_slots(lo);
	publish(lo);
}
