// SPDX-License-Identifier: MIT
/* The JIT linker: one PTX input, which comes out as it went in, since softgpu's machine code is PTX. */
#include "softgpu/library.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct link {
	struct obj obj;
	pthread_mutex_t lock; /* the fields below */
	char *text;
	size_t bytes;
	bool complete;
	/* The options' buffers are the caller's until cuLinkDestroy. */
	char *log;
	size_t log_bytes;
};

static void link_release(struct obj *o)
{
	struct link *l = container_of(o, struct link, obj);

	pthread_mutex_destroy(&l->lock);
	free(l->text);
	free(l);
}

static void say(struct link *l, const char *text)
{
	log_line("link: %s", text);
	if (l->log && l->log_bytes)
		snprintf(l->log, l->log_bytes, "%s", text);
}

CUresult cuLinkCreate_v2(unsigned int n, CUjit_option *option, void **value, CUlinkState *state)
{
	AUTO_PUT struct ctx *c = NULL;
	struct link *l;

	TRY(ctx_enter(&c));
	if (!state || (n && (!option || !value)))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < n; i++)
		if ((unsigned int)option[i] >= CU_JIT_NUM_OPTIONS)
			return CUDA_ERROR_INVALID_VALUE;
	l = calloc(1, sizeof(*l));
	if (!l)
		return CUDA_ERROR_OUT_OF_MEMORY;
	obj_init(&l->obj, OBJ_LINK, c, link_release);
	pthread_mutex_init(&l->lock, NULL);
	for (unsigned int i = 0; i < n; i++) {
		if (option[i] == CU_JIT_ERROR_LOG_BUFFER)
			l->log = value[i];
		else if (option[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
			l->log_bytes = (size_t)value[i] & UINT32_MAX;
	}
	if (l->log && l->log_bytes)
		l->log[0] = 0;
	if (!obj_publish(&l->obj)) {
		obj_put(&l->obj);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*state = (CUlinkState)l->obj.handle;
	obj_put(&l->obj);
	return CUDA_SUCCESS;
}

static CUresult add(struct link *l, CUjitInputType type, const void *data, size_t bytes)
{
	char log[256] = "";
	CUresult r;

	if (l->complete)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_JIT_INPUT_PTX && type != CU_JIT_INPUT_FATBINARY) {
		say(l, "inputs other than PTX and fat binaries with PTX are not supported");
		return type < CU_JIT_NUM_INPUT_TYPES ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
	}
	if (l->text) {
		say(l, "a second input is not supported yet: link the device code with nvcc");
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	r = image_text(data, bytes, &l->text, &l->bytes, log, sizeof(log));
	if (r != CUDA_SUCCESS)
		say(l, log);
	return r == CUDA_ERROR_INVALID_IMAGE && type == CU_JIT_INPUT_PTX ? CUDA_ERROR_INVALID_PTX : r;
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t bytes, const char *name, unsigned int n,
			  CUjit_option *option, void **value)
{
	AUTO_PUT struct link *l = NULL;
	CUresult r;

	TRY(api_enter());
	(void)name;
	(void)value;
	l = obj_get(state, OBJ_LINK);
	if (!l)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!data || !bytes || (n && !option))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&l->lock);
	r = add(l, type, data, bytes);
	pthread_mutex_unlock(&l->lock);
	return r;
}

CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path, unsigned int n, CUjit_option *option,
			  void **value)
{
	CUresult r;
	char *data;
	size_t len;

	TRY(api_enter());
	if (!path)
		return CUDA_ERROR_INVALID_VALUE;
	data = file_read(path, &len);
	if (!data)
		return errno == ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_FILE_NOT_FOUND;
	r = cuLinkAddData_v2(state, type, data, len, path, n, option, value);
	free(data);
	return r;
}

/* The image belongs to the link state. It is loaded, to no avail but its errors, so that they come here. */
CUresult cuLinkComplete(CUlinkState state, void **cubin, size_t *bytes)
{
	AUTO_PUT struct ctx *c = NULL;
	AUTO_PUT struct link *l = NULL;
	struct module *m;
	CUresult r;

	TRY(ctx_enter(&c));
	l = obj_get(state, OBJ_LINK);
	if (!l)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!cubin)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&l->lock);
	r = l->text ? module_load(l->text, l->bytes, NULL, c->dev, &m) : CUDA_ERROR_INVALID_VALUE;
	if (r == CUDA_SUCCESS) {
		module_retire(m);
		obj_put(&m->obj);
		l->complete = true;
		*cubin = l->text;
		if (bytes)
			*bytes = l->bytes + 1;
	} else {
		say(l, "the input cannot be loaded");
	}
	pthread_mutex_unlock(&l->lock);
	return r;
}

CUresult cuLinkDestroy(CUlinkState state)
{
	AUTO_PUT struct link *l = NULL;

	TRY(api_enter());
	l = obj_get(state, OBJ_LINK);
	return l && obj_retire(&l->obj) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuLinkCreate(unsigned int n, CUjit_option *option, void **value, CUlinkState *state)
{
	return cuLinkCreate_v2(n, option, value, state);
}

CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void *data, size_t bytes, const char *name, unsigned int n,
		       CUjit_option *option, void **value)
{
	return cuLinkAddData_v2(state, type, data, bytes, name, n, option, value);
}

CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char *path, unsigned int n, CUjit_option *option,
		       void **value)
{
	return cuLinkAddFile_v2(state, type, path, n, option, value);
}
