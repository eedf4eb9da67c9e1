// SPDX-License-Identifier: MIT
/* The JIT linker: images are found in what the program hands over, travel one by one, and what is linked comes back. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/objfile.h"
#include "rgpu_rpc.h"
#include "shim/call_int.h"
#include "shim/handles.h"
#include "shim/module_int.h"
#include "shim/staging.h"

/* Kept by its handle. */
struct link {
	struct rgpu_obj *obj;
	pthread_mutex_t lock; /* one call at a time: an input's pieces are not to mix with another's */
	struct load_options options;
	uint8_t *image; /* what cuLinkComplete gave out, until the end */
	uint64_t bytes;
};

static int link_new(struct rgpu_call *c, const struct load_options *o, struct link **out)
{
	struct link *l = calloc(1, sizeof(*l));
	uint64_t option[24], value[24], wire;
	int r = l ? rgpu_mint(c, KIND_linkstate, &wire, &l->obj) : CUDA_ERROR_OUT_OF_MEMORY;

	if (r) {
		free(l);
		return r;
	}
	pthread_mutex_init(&l->lock, NULL);
	l->options = *o;
	for (unsigned i = 0; i < o->n; i++) {
		option[i] = o->list[i].option;
		value[i] = o->list[i].value;
	}
	c->op = OP_LINK_CREATE;
	r = rpc_LINK_CREATE(c, wire, o->n, option, o->n, value, o->n);
	if (r) {
		rgpu_retire(l->obj);
		free(l);
		return r;
	}
	log_put(&l->options.log[LOG_INFO], "", 0);
	log_put(&l->options.log[LOG_ERROR], "", 0);
	l->obj->data = l;
	*out = l;
	return 0;
}

static void link_free(struct link *l)
{
	rgpu_retire(l->obj);
	free(l->image);
	free(l);
}

void link_forget(struct rgpu_obj *obj)
{
	link_free(obj->data);
}

static void fetch_logs(struct rgpu_call *c, struct link *l, uint32_t logs)
{
	for (uint32_t which = LOG_INFO; which <= LOG_ERROR; which++)
		if (logs & 1u << which)
			log_fetch(c, OP_LINK_LOG, l->obj->handle, which, &l->options.log[which]);
}

/* One image, a text or a cubin. */
static int add_image(struct rgpu_call *c, struct link *l, CUjitInputType type, const void *image, size_t bytes, const char *name,
		     const struct load_options *o)
{
	size_t name_bytes = strlen(name) + 1;
	struct rep_LINK_ADD reply = {0};
	struct fence f = {.out = &reply, .room = sizeof(reply)};
	struct rec_LINK_ADD *b;
	uint8_t *at;
	int r;

	r = image_send(c, OP_LINK_DATA, l->obj->handle, image, bytes);
	if (r)
		return r;
	c->op = OP_LINK_ADD;
	b = rgpu_begin(c, RGPU_REC_FENCE, 0, sizeof(*b) + RGPU_ALIGN8(name_bytes) + sizeof(o->list));
	if (!b)
		return c->status;
	*b = (struct rec_LINK_ADD){.ctx = c->ctx, .state = l->obj->handle, .kind = type, .name_bytes = name_bytes, .n = o->n};
	at = (uint8_t *)(b + 1);
	memcpy(at, name, name_bytes);
	at += RGPU_ALIGN8(name_bytes);
	for (unsigned i = 0; i < o->n; i++) {
		uint64_t pair[2] = {o->list[i].option, o->list[i].value};

		memcpy(at + i * sizeof(pair), pair, sizeof(pair));
	}
	call_expect(c, &f);
	r = call_wait(c, &f);
	fetch_logs(c, l, reply.logs);
	return r;
}

struct input {
	struct rgpu_call *c;
	struct link *l;
	CUjitInputType type;
	const char *name;
	const struct load_options *o;
	unsigned added;
	int r;
};

static int add_container(void *arg, const void *data, size_t len)
{
	struct input *in = arg;
	const void *image;
	size_t bytes;
	void *owned;

	in->r = image_try_fatbin(ctx_of(in->c->context)->device, data, len, &image, &bytes, &owned);
	/* Of what a library has for other devices, the rest decides whether it is missed. */
	if (in->r == CUDA_ERROR_NO_BINARY_FOR_GPU)
		return in->r = 0;
	if (!in->r)
		in->r = add_image(in->c, in->l, in->type, image, bytes, in->name, in->o);
	free(owned);
	in->added += !in->r;
	return in->r;
}

static int add(struct rgpu_call *c, struct link *l, CUjitInputType type, const void *data, size_t bytes, const char *name,
	       const struct load_options *o)
{
	struct input in = {.c = c, .l = l, .type = type, .name = name, .o = o};
	const void *image;
	size_t len;
	void *owned;
	char *text;
	int r;

	if (type == CU_JIT_INPUT_OBJECT || type == CU_JIT_INPUT_LIBRARY) {
		if (!objfile_is(data, bytes) || objfile_each(data, bytes, add_container, &in) < 0)
			return in.r ? in.r : CUDA_ERROR_INVALID_IMAGE;
		return in.r ? in.r : in.added ? 0 : CUDA_ERROR_NO_BINARY_FOR_GPU;
	}
	if (type == CU_JIT_INPUT_PTX) {
		/* The text need not end where its bytes do. */
		text = strndup(data, bytes);
		r = text ? add_image(c, l, type, text, strlen(text) + 1, name, o) : CUDA_ERROR_OUT_OF_MEMORY;
		free(text);
		return r;
	}
	if (type != CU_JIT_INPUT_CUBIN && type != CU_JIT_INPUT_FATBINARY)
		return type < CU_JIT_NUM_INPUT_TYPES ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
	r = image_choose(ctx_of(c->context)->device, data, &image, &len, &owned);
	if (!r)
		r = add_image(c, l, type, image, len, name, o);
	free(owned);
	return r;
}

static int fetch_image(struct rgpu_call *c, struct link *l)
{
	uint64_t at = 0;

	while (at < l->bytes) {
		struct rec_LINK_IMAGE *b;
		struct fence f = {0};
		struct rgpu_lane *lane;
		struct slot *slot;
		int r;

		lane = session_lane(c->session, &r);
		slot = lane ? staging_slot(lane, &r) : NULL;
		if (!slot)
			return r;
		c->op = OP_LINK_IMAGE;
		b = rgpu_begin(c, RGPU_REC_FENCE, 1, sizeof(*b));
		if (!b)
			return c->status;
		*b = (struct rec_LINK_IMAGE){.state = l->obj->handle, .off = at};
		*rgpu_segs(c) = (struct rgpu_seg){.bo = slot->bo, .dir = RGPU_SEG_RECV, .off = slot->off, .len = STAGING_SLOT};
		call_expect(c, &f);
		r = call_wait(c, &f);
		if (!r && (!f.bulk || f.bulk > l->bytes - at))
			r = CUDA_ERROR_UNKNOWN;
		if (r)
			return r;
		memcpy(l->image + at, slot->mem, f.bulk);
		at += f.bulk;
	}
	return 0;
}

static int complete(struct rgpu_call *c, struct link *l)
{
	struct rep_LINK_COMPLETE reply = {0};
	struct fence f = {.out = &reply, .room = sizeof(reply)};
	struct rec_LINK_COMPLETE *b;
	int r;

	if (l->image)
		return 0;
	c->op = OP_LINK_COMPLETE;
	b = rgpu_begin(c, RGPU_REC_FENCE, 0, sizeof(*b));
	if (!b)
		return c->status;
	*b = (struct rec_LINK_COMPLETE){.ctx = c->ctx, .state = l->obj->handle};
	call_expect(c, &f);
	r = call_wait(c, &f);
	fetch_logs(c, l, reply.logs);
	if (r)
		return r;
	l->bytes = reply.bytes;
	l->image = l->bytes && l->bytes <= 2ull << 30 ? malloc(l->bytes) : NULL;
	r = l->image ? fetch_image(c, l) : CUDA_ERROR_OUT_OF_MEMORY;
	if (r) {
		free(l->image);
		l->image = NULL;
	}
	return r;
}

static int destroy(struct rgpu_call *c, struct link *l)
{
	int r;

	c->op = OP_LINK_DESTROY;
	r = rpc_LINK_DESTROY(c, l->obj->handle);
	link_free(l);
	return r;
}

int image_link(struct rgpu_call *c, const struct device *d, const void *const *list, const void **image, size_t *bytes,
	       void **owned)
{
	struct load_options none = {0};
	struct input in = {.c = c, .type = CU_JIT_INPUT_LIBRARY, .name = "device code of the program", .o = &none};
	int r = c->context ? link_new(c, &none, &in.l) : CUDA_ERROR_INVALID_CONTEXT;

	(void)d;
	*owned = NULL;
	if (r)
		return r;
	for (; *list && !r; list++)
		r = add_container(&in, *list, SIZE_MAX);
	if (!r)
		r = in.added ? complete(c, in.l) : CUDA_ERROR_NO_BINARY_FOR_GPU;
	if (!r) {
		*image = *owned = in.l->image;
		*bytes = in.l->bytes;
		in.l->image = NULL;
	}
	destroy(c, in.l);
	return r;
}

CUresult cuLinkCreate_v2(unsigned int numOptions, CUjit_option *options, void **optionValues, CUlinkState *stateOut)
{
	struct load_options o;
	struct rgpu_call c;
	struct link *l;
	int r = rgpu_enter(&c, RGPU_NO_OP);

	if (!r)
		r = ctx_use(&c, NULL);
	if (!r && !stateOut)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = load_options_read(&o, numOptions, options, optionValues);
	if (!r)
		r = link_new(&c, &o, &l);
	if (!r)
		*stateOut = (CUlinkState)l->obj->handle;
	return r;
}

static int link_use(struct rgpu_call *c, CUlinkState state, struct link **l)
{
	struct rgpu_obj *obj;
	uint64_t wire;
	int r = rgpu_enter(c, RGPU_NO_OP);

	if (!r)
		r = rgpu_use(c, KIND_linkstate, state, true, &wire, &obj);
	if (!r)
		*l = obj->data;
	return r;
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name,
			  unsigned int numOptions, CUjit_option *options, void **optionValues)
{
	struct load_options o;
	struct rgpu_call c;
	struct link *l;
	int r = link_use(&c, state, &l);

	if (!r && (!data || !size))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = load_options_read(&o, numOptions, options, optionValues);
	if (r)
		return r;
	pthread_mutex_lock(&l->lock);
	r = l->image ? CUDA_ERROR_INVALID_VALUE : add(&c, l, type, data, size, name ? name : "input", &o);
	pthread_mutex_unlock(&l->lock);
	return r;
}

CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path, unsigned int numOptions,
			  CUjit_option *options, void **optionValues)
{
	size_t bytes;
	char *data;
	int r = process_ready();

	if (!r && !path)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = file_read(path, &data, &bytes);
	if (r)
		return r;
	r = cuLinkAddData_v2(state, type, data, bytes, path, numOptions, options, optionValues);
	free(data);
	return r;
}

CUresult cuLinkComplete(CUlinkState state, void **cubinOut, size_t *sizeOut)
{
	struct rgpu_call c;
	struct link *l;
	int r = link_use(&c, state, &l);

	if (!r && !cubinOut)
		r = CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	pthread_mutex_lock(&l->lock);
	wall_time_begin(&l->options);
	r = complete(&c, l);
	wall_time_end(&l->options);
	if (!r) {
		*cubinOut = l->image;
		if (sizeOut)
			*sizeOut = l->bytes;
	}
	pthread_mutex_unlock(&l->lock);
	return r;
}

CUresult cuLinkDestroy(CUlinkState state)
{
	struct rgpu_call c;
	struct link *l;
	int r = link_use(&c, state, &l);

	return r ? r : destroy(&c, l);
}

CUresult cuLinkCreate(unsigned int numOptions, CUjit_option *options, void **optionValues, CUlinkState *stateOut)
{
	return cuLinkCreate_v2(numOptions, options, optionValues, stateOut);
}

CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name, unsigned int numOptions,
		       CUjit_option *options, void **optionValues)
{
	return cuLinkAddData_v2(state, type, data, size, name, numOptions, options, optionValues);
}

CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char *path, unsigned int numOptions, CUjit_option *options,
		       void **optionValues)
{
	return cuLinkAddFile_v2(state, type, path, numOptions, options, optionValues);
}
