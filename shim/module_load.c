// SPDX-License-Identifier: MIT
/* Sends an image to the server in pieces, and reads the table of its kernels: one round trip. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "rgpu_rpc.h"
#include "shim/call_int.h"
#include "shim/handles.h"
#include "shim/module_int.h"
#include "shim/shared.h"
#include "shim/staging.h"
#include "shim/unsupported.h"
#include "lib/jit_option.h"

#define INLINE_MAX  RGPU_BLOCK_MIN /* smaller images travel in the records: no staging buffer is made for them */
#define INLINE_PART (48u << 10)

/* The table as it comes in. */
struct table {
	uint8_t *bytes;
	uint64_t len, room;
	uint32_t functions;
};

int load_options_read(struct load_options *o, unsigned n, const CUjit_option *options, void **values)
{
	memset(o, 0, sizeof(*o));
	if (n && (!options || !values))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < n; i++) {
		switch (options[i]) {
		case CU_JIT_INFO_LOG_BUFFER:
			o->log[LOG_INFO].text = values[i];
			break;
		case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
			o->log[LOG_INFO].size = &values[i];
			o->log[LOG_INFO].room = (uint32_t)(size_t)values[i];
			break;
		case CU_JIT_ERROR_LOG_BUFFER:
			o->log[LOG_ERROR].text = values[i];
			break;
		case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
			o->log[LOG_ERROR].size = &values[i];
			o->log[LOG_ERROR].room = (uint32_t)(size_t)values[i];
			break;
		case CU_JIT_WALL_TIME:
			o->wall_time = &values[i];
			break;
		case CU_JIT_THREADS_PER_BLOCK:
			break; /* its value is the driver's answer, too, and nobody would carry it back: what was asked for stays
				*/
		default:
			if (!jit_option_is_number(options[i]))
				return rgpu_unsupported("a JIT option with pointers", NULL);
			if (o->n == sizeof(o->list) / sizeof(*o->list))
				return CUDA_ERROR_INVALID_VALUE;
			o->list[o->n].option = options[i];
			o->list[o->n++].value = (uint64_t)values[i];
		}
	}
	return 0;
}

_Static_assert(sizeof(struct rec_LOAD_DATA) == sizeof(struct rec_LINK_DATA), "pieces of modules and of links are alike");

static void *begin_data(struct rgpu_call *c, uint64_t module, uint64_t off, uint64_t bytes, unsigned nseg, uint32_t inlined)
{
	struct rec_LOAD_DATA *b;

	b = rgpu_begin(c, 0, nseg, sizeof(*b) + inlined);
	if (!b)
		return NULL;
	*b = (struct rec_LOAD_DATA){.module = module, .off = off, .bytes = bytes, .inlined = inlined};
	return b + 1;
}

static int send_inline(struct rgpu_call *c, uint64_t module, const uint8_t *image, size_t bytes)
{
	for (size_t off = 0; off < bytes;) {
		uint32_t n = bytes - off < INLINE_PART ? bytes - off : INLINE_PART;
		void *at = begin_data(c, module, off, n, 0, n);

		if (!at)
			return c->status;
		memcpy(at, image + off, n);
		call_part(c);
		off += n;
	}
	return 0;
}

static int send_staged(struct rgpu_call *c, uint64_t module, const uint8_t *image, size_t bytes)
{
	for (size_t off = 0; off < bytes;) {
		uint64_t n = bytes - off < STAGING_SLOT ? bytes - off : STAGING_SLOT;
		struct rgpu_lane *l;
		struct slot *slot;
		int r;

		l = session_lane(c->session, &r);
		slot = l ? staging_slot(l, &r) : NULL;
		if (!slot)
			return r;
		memcpy(slot->mem, image + off, n);
		if (!begin_data(c, module, off, n, 1, 0))
			return c->status;
		*rgpu_segs(c) = (struct rgpu_seg){.bo = slot->bo, .dir = RGPU_SEG_SEND, .off = slot->off, .len = n};
		slot->seq = l->seq + 1;
		call_part(c);
		off += n;
	}
	return 0;
}

static int append(struct table *t, const void *bytes, uint64_t n)
{
	uint8_t *p;

	if (n > t->room - t->len || !n)
		return n ? CUDA_ERROR_UNKNOWN : 0;
	p = t->bytes + t->len;
	memcpy(p, bytes, n);
	t->len += n;
	return 0;
}

static int table_room(struct table *t, uint64_t bytes)
{
	/* 64 Ki kernels with long names and many parameters are some tens of MiB. */
	if (bytes > 1ull << 30)
		return CUDA_ERROR_UNKNOWN;
	t->bytes = malloc(bytes + 1);
	t->room = bytes;
	return t->bytes ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}

static int read_rest(struct rgpu_call *c, uint64_t module, struct table *t)
{
	while (t->len < t->room) {
		struct fence f = {0};
		struct rec_LOAD_TABLE *b;
		struct slot *slot;
		struct rgpu_lane *l;
		int r;

		l = session_lane(c->session, &r);
		slot = l ? staging_slot(l, &r) : NULL;
		if (!slot)
			return r;
		c->op = OP_LOAD_TABLE;
		c->mute = true;
		b = rgpu_begin(c, RGPU_REC_FENCE, 1, sizeof(*b));
		if (!b)
			return c->status;
		*b = (struct rec_LOAD_TABLE){.module = module, .off = t->len};
		*rgpu_segs(c) = (struct rgpu_seg){.bo = slot->bo, .dir = RGPU_SEG_RECV, .off = slot->off, .len = STAGING_SLOT};
		call_expect(c, &f);
		r = call_wait(c, &f);
		if (!r)
			r = f.bulk ? append(t, slot->mem, f.bulk) : CUDA_ERROR_UNKNOWN;
		if (r)
			return r;
	}
	return 0;
}

void log_put(const struct jit_log *l, const char *text, size_t len)
{
	if (!l->text || !l->room)
		len = 0;
	else if (len >= l->room)
		len = l->room - 1;
	if (l->text && l->room) {
		memcpy(l->text, text, len);
		l->text[len] = 0;
	}
	if (l->size)
		*(size_t *)l->size = len;
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

void wall_time_begin(struct load_options *o)
{
	o->begun = now_ms();
}

void wall_time_end(const struct load_options *o)
{
	float ms = now_ms() - o->begun;

	if (o->wall_time)
		memcpy(o->wall_time, &ms, sizeof(ms));
}

int log_fetch(struct rgpu_call *c, uint16_t op, uint64_t handle, uint32_t which, const struct jit_log *l)
{
	struct rec_LINK_LOG *b;
	struct fence f = {.room = RGPU_REP_MAX};
	int r;

	if (!l->text && !l->size)
		return 0;
	c->op = op;
	c->mute = true;
	b = rgpu_begin(c, RGPU_REC_FENCE, 0, sizeof(*b));
	if (!b)
		return c->status;
	*b = (struct rec_LINK_LOG){.state = handle, .which = which};
	f.out = malloc(f.room);
	if (!f.out)
		f.room = 0;
	call_expect(c, &f);
	r = call_wait(c, &f);
	if (!r)
		log_put(l, f.out, f.got);
	free(f.out);
	return r;
}

/* The fence: status, logs and the table; @staged: part of it comes in bulk. */
static int finish(struct rgpu_call *c, uint64_t module, bool staged, const struct load_options *o, struct table *t)
{
	struct reply {
		struct rep_LOAD_END head;
		uint8_t bytes[RGPU_REP_MAX];
	} *reply = calloc(1, sizeof(*reply));
	struct fence f = {.out = reply, .room = sizeof(*reply)};
	struct rec_LOAD_END *b;
	struct slot *slot = NULL;
	int r = 0;

	if (!reply)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (staged) {
		struct rgpu_lane *l = session_lane(c->session, &r);

		slot = l ? staging_slot(l, &r) : NULL;
		if (!slot)
			goto out;
	}
	c->op = OP_LOAD_END;
	c->mute = true;
	b = rgpu_begin(c, RGPU_REC_FENCE, staged, sizeof(*b));
	if (!b) {
		r = c->status;
		goto out;
	}
	*b = (struct rec_LOAD_END){.ctx = c->ctx, .module = module};
	if (staged)
		*rgpu_segs(c) = (struct rgpu_seg){.bo = slot->bo, .dir = RGPU_SEG_RECV, .off = slot->off, .len = STAGING_SLOT};
	call_expect(c, &f);
	r = call_wait(c, &f);
	if (f.got < sizeof(reply->head)) {
		r = r ? r : CUDA_ERROR_UNKNOWN;
		goto out;
	}
	log_put(&o->log[LOG_ERROR], (const char *)reply->bytes, r ? f.got - sizeof(reply->head) : 0);
	log_put(&o->log[LOG_INFO], "", 0);
	if (r)
		goto out;
	t->functions = reply->head.functions;
	r = table_room(t, reply->head.table_bytes);
	if (!r && slot)
		r = append(t, slot->mem, f.bulk);
	if (!r)
		r = append(t, reply->bytes, f.got - sizeof(reply->head));
	if (!r)
		r = read_rest(c, module, t);
out:
	free(reply);
	return r;
}

static uint32_t hash_name(const char *s, size_t n)
{
	uint32_t h = 2166136261u;

	while (n--)
		h = (h ^ (uint8_t)*s++) * 16777619u;
	return h;
}

/* One entry of the table, checked: it may come from anywhere. The bytes that it takes, 0 when it is broken. */
static uint32_t entry_bytes(const uint8_t *at, uint64_t left, struct rgpu_func_entry *e)
{
	if (left < sizeof(*e))
		return 0;
	memcpy(e, at, sizeof(*e));
	if (e->bytes > left || e->bytes % 8 ||
	    (uint64_t)sizeof(*e) + (uint64_t)e->nparams * sizeof(struct rgpu_func_param) + e->name_bytes > e->bytes)
		return 0;
	return e->bytes;
}

static int build(struct module *m, const struct table *t)
{
	uint64_t at = 0, nparams = 0, names = 0;
	struct rgpu_func_entry e;
	struct rgpu_func_param *param;
	uint32_t n = 0, buckets = 16;
	char *name;

	for (; at < t->len; at += e.bytes, n++) {
		if (!entry_bytes(t->bytes + at, t->len - at, &e))
			return CUDA_ERROR_UNKNOWN;
		nparams += e.nparams;
		names += e.name_bytes + 1;
	}
	if (n != t->functions)
		return CUDA_ERROR_UNKNOWN;
	while (buckets < n * 2)
		buckets *= 2;
	m->funcs = calloc(n + 1, sizeof(*m->funcs));
	m->params = param = calloc(nparams + 1, sizeof(*m->params));
	m->names = name = malloc(names + 1);
	m->hash = calloc(buckets, sizeof(*m->hash));
	if (!m->funcs || !m->params || !m->names || !m->hash)
		return CUDA_ERROR_OUT_OF_MEMORY;
	m->hash_mask = buckets - 1;
	m->nfuncs = n;
	at = 0;
	for (uint32_t i = 0; i < n; i++, at += e.bytes) {
		const uint8_t *tail = t->bytes + at + sizeof(e);
		struct func *f = &m->funcs[i];
		uint32_t h;

		entry_bytes(t->bytes + at, t->len - at, &e);
		f->module = m;
		f->index = i;
		memcpy(f->attrs, e.attrs, sizeof(f->attrs));
		f->own_cluster = f->attrs[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] > 0;
		f->nparams = e.nparams;
		f->params = param;
		memcpy(param, tail, e.nparams * sizeof(*param));
		for (uint32_t k = 0; k < e.nparams; k++) {
			if (param[k].offset > 1u << 16 || param[k].bytes > 1u << 16)
				return CUDA_ERROR_UNKNOWN;
			f->holes |= param[k].offset != f->param_bytes;
			if (param[k].offset + param[k].bytes > f->param_bytes)
				f->param_bytes = param[k].offset + param[k].bytes;
		}
		param += e.nparams;
		memcpy(name, tail + e.nparams * sizeof(*param), e.name_bytes);
		name[e.name_bytes] = 0;
		f->name = name;
		h = hash_name(name, e.name_bytes) & m->hash_mask;
		f->hash_next = m->hash[h];
		m->hash[h] = i + 1;
		name += e.name_bytes + 1;
	}
	return 0;
}

struct func *module_func(struct module *m, const char *name)
{
	uint32_t i = m->nfuncs ? m->hash[hash_name(name, strlen(name)) & m->hash_mask] : 0;

	while (i && strcmp(m->funcs[i - 1].name, name))
		i = m->funcs[i - 1].hash_next;
	return i ? &m->funcs[i - 1] : NULL;
}

int image_send(struct rgpu_call *c, uint16_t op, uint64_t handle, const void *image, size_t bytes)
{
	c->op = op;
	return bytes <= INLINE_MAX ? send_inline(c, handle, image, bytes) : send_staged(c, handle, image, bytes);
}

static int send(struct rgpu_call *c, uint64_t module, bool library, const void *image, size_t bytes, const struct load_options *o)
{
	int r;

	c->op = OP_LOAD_BEGIN;
	r = rpc_LOAD_BEGIN(c, module, library, o->n, bytes);
	for (unsigned i = 0; i < o->n && !r; i++) {
		c->op = OP_LOAD_OPTION;
		r = rpc_LOAD_OPTION(c, module, o->list[i].option, o->list[i].value);
	}
	if (r)
		return r;
	return image_send(c, OP_LOAD_DATA, module, image, bytes);
}

int module_load(struct rgpu_call *c, bool library, const void *image, size_t bytes, struct load_options *options,
		struct module **out)
{
	struct module *m = calloc(1, sizeof(*m));
	struct table t = {0};
	int r = CUDA_ERROR_OUT_OF_MEMORY;

	if (!m)
		return r;
	pthread_mutex_init(&m->lock, NULL);
	m->library = library;
	m->session = c->session;
	m->context = library ? NULL : c->context;
	m->obj = handle_new(library ? KIND_library : KIND_module, m->context);
	if (m->obj) {
		m->obj->data = m;
		wall_time_begin(options);
		r = send(c, m->obj->handle, library, image, bytes, options);
		if (!r)
			r = finish(c, m->obj->handle, bytes > INLINE_MAX, options, &t);
		if (!r)
			r = build(m, &t);
		if (!r)
			r = log_fetch(c, OP_LOAD_LOG, m->obj->handle, LOG_INFO, &options->log[LOG_INFO]);
		wall_time_end(options);
		if (r) {
			struct rgpu_call end = {.op = OP_UNLOAD, .session = c->session, .context = c->context, .ctx = c->ctx};

			/* The server may have loaded what is of no use here. */
			rpc_UNLOAD(&end, m->obj->handle);
		}
	}
	free(t.bytes);
	if (r) {
		module_free(m);
		return r;
	}
	*out = m;
	return 0;
}

void module_free(struct module *m)
{
	for (uint32_t i = 0; m->funcs && i < m->nfuncs; i++) {
		if (m->funcs[i].function)
			handle_free(m->funcs[i].function);
		if (m->funcs[i].kernel)
			handle_free(m->funcs[i].kernel);
	}
	while (m->aliases) {
		struct alias *a = m->aliases;

		m->aliases = a->next;
		handle_free(a->obj);
		free(a);
	}
	while (m->globals) {
		struct global *g = m->globals;

		m->globals = g->next;
		shared_drop_variable(g->addr, g->bytes);
		heap_drop_global(g->addr);
		free(g);
	}
	if (m->obj)
		handle_free(m->obj);
	free(m->funcs);
	free(m->params);
	free(m->names);
	free(m->hash);
	free(m);
}
