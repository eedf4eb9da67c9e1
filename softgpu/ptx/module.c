/* SPDX-License-Identifier: MIT */
/* Modules: load (parse, place variables, lower), look-up, free. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/ptx/heap.h"
#include "softgpu/ptx/lower.h"
#include "softgpu/ptx/whole.h"

#define HEAP_BYTES	(8u << 20) /* CUDA's default cudaLimitMallocHeapSize */
#define RECURSIVE_STACK (64u << 10)
#define MAX_CALL_CHAIN	1024u
#define MAX_LOCAL	(1u << 26)

static void free_func(struct ptx_func *f)
{
	if (!f)
		return;
	for (u32 k = 0; k < f->ncalls; k++)
		free(f->calls[k].args);
	ptx_whole_free(f);
	free(f->calls);
	free(f->ins_info);
	free(f->code);
	free(f->order);
	free(f->ops);
	free(f->pool_mem);
	free(f->params);
	free(f->name);
	free(f);
}

void ptx_module_free(struct ptx_module *m)
{
	if (!m)
		return;
	for (u32 k = 0; k < m->nfuncs; k++)
		free_func(m->funcs[k]);
	for (u32 k = 0; k < m->nvars; k++)
		free(m->vars[k].name);
	free(m->funcs);
	free(m->vars);
	ptx_heap_free(m->heap);
	if (m->data)
		m->mem.free(m->mem.arg, m->data);
	free(m);
}

bool ptx_module_has_heap(const struct ptx_module *m)
{
	return m->heap;
}

static void *must(struct load *ld, void *p)
{
	if (!p)
		load_fail(ld, PTX_NOMEM, 0, "out of host memory while loading PTX");
	return p;
}

static char *name_of(struct load *ld, const char *s, u32 len)
{
	return must(ld, strndup(s, len));
}

/* Gives the variables of one space their offsets behind @bytes; counts them in *n. */
static u64 place_vars(struct load *ld, enum space sp, u64 bytes, u32 *n)
{
	for (struct sym *v = ld->vars; v; v = v->next) {
		if (v->space != sp || v->is_extern)
			continue;
		if (v->unsized)
			load_fail(ld, PTX_SYNTAX, v->line, "'%.*s' has no size", (int)v->len, v->name);
		bytes = (bytes + v->align - 1) & ~(u64)(v->align - 1);
		v->addr = bytes;
		v->placed = true;
		bytes += v->size;
		++*n;
	}
	return bytes;
}

/* All .const and .global variables, the grid barriers and the heap are one allocation. */
static void place_data(struct load *ld)
{
	struct ptx_module *m = ld->m;
	u64 consts, bytes, coop, heap = 0, heap_bytes = m->mem.heap_bytes ? m->mem.heap_bytes : HEAP_BYTES;
	u32 n = 0;

	consts = place_vars(ld, SP_CONST, 0, &n);
	bytes = place_vars(ld, SP_GLOBAL, consts, &n);
	coop = bytes = (bytes + 255) & ~255ull;
	if (ld->uses_envreg)
		bytes += COOP_SLOTS * COOP_BYTES;
	if (ld->uses_heap) {
		heap = bytes;
		bytes += heap_bytes;
	}
	if (!bytes)
		return;
	m->data = m->mem.alloc ? m->mem.alloc(m->mem.arg, bytes, 4096) : 0;
	if (!m->data)
		load_fail(ld, PTX_OUT_OF_RESOURCES, 0, "no device memory for %llu bytes of module variables",
			  (unsigned long long)bytes);
	m->const_end = m->data + consts;
	memset((void *)(uintptr_t)m->data, 0, ld->uses_heap ? heap : bytes);
	m->vars = must(ld, calloc(n + 1, sizeof(*m->vars)));
	for (struct sym *v = ld->vars; v; v = v->next) {
		if (!v->placed)
			continue;
		v->addr += m->data;
		m->vars[m->nvars].name = name_of(ld, v->name, v->len);
		m->vars[m->nvars].addr = v->addr;
		m->vars[m->nvars].managed = v->managed;
		m->vars[m->nvars++].bytes = v->size;
	}
	if (ld->uses_envreg)
		m->coop = m->data + coop;
	if (ld->uses_heap)
		m->heap = must(ld, ptx_heap_new(m->data + heap, heap_bytes));
}

static void init_data(struct load *ld)
{
	for (struct sym *v = ld->vars; v; v = v->next) {
		if (!v->placed)
			continue;
		if (v->init)
			memcpy((void *)(uintptr_t)v->addr, v->init, v->size);
		for (struct init_reloc *r = v->relocs; r; r = r->next) {
			u64 val = r->sym->addr;

			if (r->sym->kind == SYM_FUNC) {
				if (!r->sym->func->out)
					load_fail(ld, PTX_UNSUPPORTED, r->line, "'%s' has no body here", r->sym->func->name);
				val = WINDOW_FUNC << WINDOW_SHIFT | ((u64)r->sym->func->out->index + 1) * 16;
			} else if (!r->sym->placed) {
				load_fail(ld, PTX_UNSUPPORTED, r->line, "'%.*s' has no address at load time", (int)r->sym->len,
					  r->sym->name);
			}
			val += r->add;
			if (r->mask)
				val = (val & r->mask) >> __builtin_ctzll(r->mask);
			memcpy((u8 *)(uintptr_t)v->addr + r->offset, &val, r->size);
		}
	}
}

static u64 align_up(u64 v, u64 a)
{
	return (v + a - 1) & ~(a - 1);
}

static void place_shared_var(struct load *ld, struct sym *v, u64 *at)
{
	*at = align_up(*at, v->align);
	v->addr = *at;
	v->placed = true;
	*at += v->size;
	if (*at > 1u << 20)
		load_fail(ld, PTX_OUT_OF_RESOURCES, v->line, "more than 1 MiB of shared memory");
}

static bool has_calls(const struct func_ast *f)
{
	for (u32 k = 0; k < f->nins; k++)
		if (f->ins[k].len >= 4 && !memcmp(f->ins[k].op, "call", 4))
			return true;
	return false;
}

/* Module-scope shared variables that only kernels name are placed kernel by kernel. */
static void place_used_shared(struct load *ld, struct opnd *o, u64 *at, u64 *dyn_align)
{
	struct sym *s = o->sym;

	for (u32 k = 0; k < o->nlist; k++)
		place_used_shared(ld, &o->list[k], at, dyn_align);
	if (!s || s->kind != SYM_VAR || s->space != SP_SHARED || s->placed)
		return;
	if (s->unsized || (s->is_extern && !s->size)) {
		if (s->align > *dyn_align)
			*dyn_align = s->align;
	} else if (!s->used_in_func) {
		place_shared_var(ld, s, at);
	}
}

/* What device functions name has one place for all kernels, at the bottom. */
static u64 place_common_shared(struct load *ld)
{
	u64 at = 0;

	for (struct sym *v = ld->vars; v; v = v->next)
		if (v->space == SP_SHARED && v->used_in_func && !v->unsized)
			place_shared_var(ld, v, &at);
	for (struct func_ast *f = ld->funcs; f; f = f->next)
		for (struct sym *v = f->locals; !f->is_entry && v; v = v->next)
			if (v->space == SP_SHARED)
				place_shared_var(ld, v, &at);
	return at;
}

static void place_dynamic(struct load *ld, u64 at)
{
	for (struct sym *v = ld->vars; v; v = v->next)
		if (v->space == SP_SHARED && v->unsized)
			v->addr = at;
}

/* What it takes up to where dynamic shared memory may begin; *exact: without that padding. */
static u64 place_kernel_shared(struct load *ld, struct func_ast *f, u64 common, u32 *exact)
{
	u64 at = has_calls(f) ? common : 0, dyn_align = 16;

	for (struct sym *v = ld->vars; v; v = v->next)
		if (v->space == SP_SHARED && !v->used_in_func)
			v->placed = false;
	for (struct sym *v = f->locals; v; v = v->next)
		if (v->space == SP_SHARED)
			place_shared_var(ld, v, &at);
	/* A kernel may name what a device function also names without calling it. */
	for (u32 k = 0; k < f->nins; k++)
		for (u32 o = 0; o < f->ins[k].nops; o++) {
			struct opnd *op = &f->ins[k].ops[o];

			if (op->sym && op->sym->kind == SYM_VAR && op->sym->space == SP_SHARED && op->sym->used_in_func &&
			    at < common)
				at = common;
			place_used_shared(ld, op, &at, &dyn_align);
		}
	*exact = (u32)at;
	return align_up(at, dyn_align);
}

static void make_func(struct load *ld, struct func_ast *a, u32 index)
{
	struct ptx_func *f = must(ld, calloc(1, sizeof(*f)));
	u32 k = 0;

	ld->m->funcs[index] = f;
	ld->m->nfuncs = index + 1;
	f->m = ld->m;
	f->index = index;
	f->is_entry = a->is_entry;
	f->name = must(ld, strdup(a->name));
	f->params = must(ld, calloc(a->nparams + 1, sizeof(*f->params)));
	for (struct sym *p = a->params; p; p = p->next, k++)
		f->params[k] = (struct ptx_param){(u32)p->addr, (u32)p->size};
	f->info = (struct ptx_func_info){
		.name = f->name,
		.nparams = a->nparams,
		.param_bytes = a->param_bytes,
		.params = f->params,
		.max_threads = a->max_threads,
		.cluster = {a->cluster[0], a->cluster[1], a->cluster[2]},
		.max_cluster = a->max_cluster,
		.explicit_cluster = a->explicit_cluster,
		.blocks_are_clusters = a->blocks_are_clusters,
		.target = ld->target,
		.version = ld->version,
	};
	a->out = f;
}

/* Local memory of the deepest call chain; cycles, indirect calls and alloca get a fixed stack, checked at each use. */
static u32 stack_need(struct load *ld, struct ptx_func *f, u8 *state, bool *open_ended)
{
	u32 deepest = 0;

	if (state[f->index] == 1) {
		*open_ended = true;
		return 0;
	}
	if (state[f->index] == 2) {
		*open_ended |= f->recursive;
		return f->local_total;
	}
	/* The host's stack is walked as deep as the calls nest; no kernel's is so deep. */
	if (++ld->depth > MAX_CALL_CHAIN)
		load_fail(ld, PTX_UNSUPPORTED, 0, "calls nest more than %u functions deep at '%s'", MAX_CALL_CHAIN, f->name);
	state[f->index] = 1;
	if (f->indirect || f->allocas)
		f->recursive = true;
	for (u32 k = 0; k < f->ncalls; k++) {
		u32 n;

		if (!f->calls[k].callee)
			continue;
		n = stack_need(ld, f->calls[k].callee, state, &f->recursive);
		if (n > deepest)
			deepest = n;
	}
	if (deepest > MAX_LOCAL - f->local_own)
		load_fail(ld, PTX_UNSUPPORTED, 0, "more than 64 MiB of local memory a thread in '%s' and what it calls", f->name);
	f->local_total = f->local_own + deepest;
	state[f->index] = 2;
	ld->depth--;
	*open_ended |= f->recursive;
	return f->local_total;
}

/* False: the function is refused, and its cause is in the log. */
static bool try_lower(struct load *ld, struct func_ast *f)
{
	jmp_buf *outer = ld->fail, here;

	if (setjmp(here)) {
		ld->fail = outer;
		return false;
	}
	if (ld->refuse)
		ld->fail = &here;
	ld->where = f->name;
	lower_function(ld, f);
	ld->where = NULL;
	ld->fail = outer;
	return true;
}

static void lower_all(struct load *ld)
{
	struct ptx_module *m = ld->m;
	u64 common, widest = 0;
	bool dynamic_in_func = false, refused = false;
	u32 n = 0, k = 0;
	u8 *state;

	for (struct func_ast *f = ld->funcs; f; f = f->next)
		n += f->has_body;
	m->funcs = must(ld, calloc(n + 1, sizeof(*m->funcs)));
	for (int entry = 1; entry >= 0; entry--)
		for (struct func_ast *f = ld->funcs; f; f = f->next)
			if (f->has_body && f->is_entry == entry) {
				make_func(ld, f, k++);
				m->nkernels += (u32)entry;
			}
	common = place_common_shared(ld);
	for (struct sym *v = ld->vars; v; v = v->next)
		dynamic_in_func |= v->space == SP_SHARED && v->unsized && v->used_in_func;
	for (struct func_ast *f = ld->funcs; f; f = f->next)
		if (f->has_body && f->is_entry) {
			f->out->shared_static = (u32)place_kernel_shared(ld, f, common, &f->out->info.shared_bytes);
			if (f->out->shared_static > widest)
				widest = f->out->shared_static;
		}
	for (struct func_ast *f = ld->funcs; f; f = f->next) {
		if (!f->has_body)
			continue;
		if (f->is_entry) {
			place_kernel_shared(ld, f, common, &f->out->info.shared_bytes);
			if (dynamic_in_func)
				f->out->info.shared_bytes = f->out->shared_static = (u32)widest;
			place_dynamic(ld, f->out->shared_static);
		} else {
			place_dynamic(ld, widest);
		}
		if (!try_lower(ld, f)) {
			ld->refuse(ld->refuse_arg, ld->log);
			refused = true;
		}
	}
	if (refused)
		longjmp(*ld->fail, 1);
	for (k = 0; k < m->nfuncs; k++)
		m->funcs[k]->info.const_bytes = m->data ? (u32)(m->const_end - m->data) : 0;
	state = load_alloc(ld, m->nfuncs);
	for (k = 0; k < m->nfuncs; k++) {
		bool open_ended = false;

		stack_need(ld, m->funcs[k], state, &open_ended);
	}
	for (k = 0; k < m->nfuncs; k++) {
		struct ptx_func *f = m->funcs[k];

		f->info.local_bytes = f->local_total;
		if (f->recursive)
			f->info.local_bytes += RECURSIVE_STACK;
	}
}

/*
 * libcudadevrt's functions, when a program was linked with it, are made of system calls of a GPU's own. Those that the engine
 * provides replace them.
 */
static void drop_device_runtime(struct load *ld)
{
	for (struct func_ast *f = ld->funcs; f; f = f->next) {
		char row[128];
		int n;

		if (!f->has_body || strncmp(f->name, "__cudaCDP2", 10))
			continue;
		n = snprintf(row, sizeof(row), "call:%s", f->name);
		if (n > 0 && (size_t)n < sizeof(row) && ptx_op_find(row, (size_t)n))
			f->has_body = false;
	}
}

/* The heap and the grid barriers must be placed before lowering shows who needs them. */
static void scan_uses(struct load *ld)
{
	for (struct func_ast *f = ld->funcs; f; f = f->next) {
		/* The device runtime keeps there what a kernel prepares to launch. */
		if (!f->has_body &&
		    (!strcmp(f->name, "malloc") || !strcmp(f->name, "free") || !strncmp(f->name, "__cudaCDP2", 10)))
			ld->uses_heap = true;
		for (u32 k = 0; k < f->nins && !ld->uses_envreg; k++)
			for (u32 o = 0; o < f->ins[k].nops; o++)
				if (f->ins[k].ops[o].kind == O_SREG &&
				    (f->ins[k].ops[o].sreg == SR_ENVREG1 || f->ins[k].ops[o].sreg == SR_ENVREG2))
					ld->uses_envreg = true;
	}
}

/* Leaves by longjmp when anything is wrong; what was allocated hangs on @ld and its module. */
static void load_all(struct load *ld, const char *text, size_t len)
{
	lex_init(&ld->lx, text, len);
	parse_module(ld);
	coop_functions(ld);
	drop_device_runtime(ld);
	scan_uses(ld);
	place_data(ld);
	lower_all(ld);
	init_data(ld);
}

static bool try_load(struct load *ld, const char *text, size_t len)
{
	jmp_buf here;

	if (setjmp(here))
		return false;
	ld->fail = &here;
	load_all(ld, text, len);
	return true;
}

static enum ptx_status load_module(const char *text, size_t len, const struct ptx_mem *mem, struct ptx_module **out, char *log,
				   size_t log_size, void (*refuse)(void *arg, const char *cause), void *arg)
{
	struct load *ld = calloc(1, sizeof(*ld));
	struct ptx_module *m = calloc(1, sizeof(*m));
	enum ptx_status st = PTX_OK;

	*out = NULL;
	if (log_size)
		log[0] = 0;
	if (!ld || !m) {
		free(ld);
		free(m);
		return PTX_NOMEM;
	}
	m->mem = *mem;
	ld->m = m;
	ld->log = log;
	ld->log_size = log_size;
	ld->refuse = refuse;
	ld->refuse_arg = arg;
	ld->funcs_tail = &ld->funcs;
	ld->vars_tail = &ld->vars;
	if (try_load(ld, text, len)) {
		*out = m;
	} else {
		st = ld->status;
		ptx_module_free(m);
	}
	bump_free(&ld->mem);
	free(ld);
	return st;
}

enum ptx_status ptx_module_load(const char *text, size_t len, const struct ptx_mem *mem, struct ptx_module **out, char *log,
				size_t log_size)
{
	return load_module(text, len, mem, out, log, log_size, NULL, NULL);
}

struct tell {
	void (*refuse)(void *arg, const char *cause);
	void *arg;
	bool told;
};

static void tell_function(void *arg, const char *cause)
{
	struct tell *t = arg;

	t->told = true;
	t->refuse(t->arg, cause);
}

enum ptx_status ptx_module_check(const char *text, size_t len, const struct ptx_mem *mem, struct ptx_module **out,
				 void (*refuse)(void *arg, const char *cause), void *arg)
{
	char log[1024];
	struct tell t = {refuse, arg, false};
	enum ptx_status st;

	st = load_module(text, len, mem, out, log, sizeof(log), tell_function, &t);
	if (st != PTX_OK && !t.told)
		refuse(arg, log);
	return st;
}

struct ptx_func *ptx_module_kernel_at(struct ptx_module *m, size_t index)
{
	return index < m->nkernels ? m->funcs[index] : NULL;
}

struct ptx_func *ptx_module_kernel(struct ptx_module *m, const char *name)
{
	for (u32 k = 0; k < m->nkernels; k++)
		if (!strcmp(m->funcs[k]->name, name))
			return m->funcs[k];
	return NULL;
}

bool ptx_module_global(struct ptx_module *m, const char *name, uint64_t *addr, size_t *bytes)
{
	for (u32 k = 0; k < m->nvars; k++)
		if (!strcmp(m->vars[k].name, name)) {
			*addr = m->vars[k].addr;
			*bytes = m->vars[k].bytes;
			return true;
		}
	return false;
}

bool ptx_module_managed(struct ptx_module *m, const char *name)
{
	for (u32 k = 0; k < m->nvars; k++)
		if (!strcmp(m->vars[k].name, name))
			return m->vars[k].managed;
	return false;
}

const struct ptx_func_info *ptx_func_info(const struct ptx_func *f)
{
	return &f->info;
}
