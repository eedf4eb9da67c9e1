// SPDX-License-Identifier: MIT
/* The JIT linker: PTX goes in and PTX comes out, since softgpu's machine code is PTX. */
#include "softgpu/library.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "lib/fatbin.h"
#include "lib/ptxlink.h"

#define LOG_BYTES 1024

struct link {
	struct obj obj;
	pthread_mutex_t lock; /* the fields below */
	struct ptxlink *units;
	char *text; /* when it is complete */
	size_t bytes;
	/* The options' buffers are the caller's until cuLinkDestroy; what went into them is counted where their size was. */
	char *log[2];
	size_t room[2], used[2];
	void **told[2];
};

enum { LOG_INFO, LOG_ERROR };

static void link_release(struct obj *o)
{
	struct link *l = container_of(o, struct link, obj);

	pthread_mutex_destroy(&l->lock);
	if (l->units)
		ptxlink_free(l->units);
	free(l->text);
	free(l);
}

static void say(struct link *l, int which, const char *text)
{
	size_t n = strlen(text), left = l->room[which] - l->used[which];

	if (which == LOG_ERROR)
		log_line("link: %s", text);
	if (l->log[which] && left > 1) {
		n = n < left - 1 ? n : left - 1;
		memcpy(l->log[which] + l->used[which], text, n);
		l->used[which] += n;
		l->log[which][l->used[which]] = 0;
	}
	if (l->told[which])
		*l->told[which] = (void *)l->used[which];
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
	l->units = ptxlink_new();
	for (unsigned int i = 0; i < n; i++) {
		if (option[i] == CU_JIT_ERROR_LOG_BUFFER || option[i] == CU_JIT_INFO_LOG_BUFFER)
			l->log[option[i] == CU_JIT_ERROR_LOG_BUFFER] = value[i];
		if (option[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES || option[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES) {
			l->room[option[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES] = (size_t)value[i] & UINT32_MAX;
			l->told[option[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES] = &value[i];
		}
	}
	for (unsigned int i = 0; l->units && i < n; i++)
		if (option[i] == CU_JIT_MAX_REGISTERS)
			ptxlink_limit_registers(l->units, (unsigned int)(uintptr_t)value[i]);
	for (int which = 0; which < 2; which++)
		if (l->log[which] && l->room[which])
			l->log[which][0] = 0;
	if (!l->units) {
		obj_put(&l->obj);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (!obj_publish(&l->obj)) {
		obj_put(&l->obj);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*state = (CUlinkState)l->obj.handle;
	obj_put(&l->obj);
	return CUDA_SUCCESS;
}

static CUresult from_errno(int r)
{
	return r == -ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : r ? CUDA_ERROR_INVALID_PTX : CUDA_SUCCESS;
}

/* A text that needs no other is loaded, to no avail but its errors, so that they come here. */
static CUresult try(struct link *l, struct ctx *c, const char *text, size_t bytes, char *log)
{
	struct module *m;
	CUjit_option option[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *value[] = {log, (void *)LOG_BYTES};
	struct jit_options jit = {.n = 2, .option = option, .value = value};
	CUresult r = module_load(text, bytes, &jit, c->dev, &m);

	if (r == CUDA_SUCCESS) {
		module_retire(m);
		obj_put(&m->obj);
	} else {
		say(l, LOG_ERROR, log);
	}
	return r;
}

static CUresult add(struct link *l, struct ctx *c, CUjitInputType type, const void *data, size_t bytes, const char *name)
{
	bool library = type == CU_JIT_INPUT_LIBRARY;
	char log[LOG_BYTES] = "", line[LOG_BYTES + 256];
	size_t len;
	char *text;
	CUresult r;

	if (l->text)
		return CUDA_ERROR_INVALID_VALUE;
	if (type >= CU_JIT_NUM_INPUT_TYPES)
		return CUDA_ERROR_INVALID_VALUE;
	r = image_text(data, bytes, &text, &len, log, sizeof(log));
	/* Of a library's members that are of no use here the others know nothing, until they miss it. */
	if (r == CUDA_ERROR_NO_BINARY_FOR_GPU && library)
		return CUDA_SUCCESS;
	if (r == CUDA_SUCCESS)
		r = from_errno(ptxlink_add(l->units, text, library, log, sizeof(log)));
	if (r == CUDA_SUCCESS && !library && ptxlink_last_is_whole(l->units))
		return try(l, c, text, len, log);
	if (r != CUDA_SUCCESS) {
		snprintf(line, sizeof(line), "%s: %s", name ? name : "input", log);
		say(l, LOG_ERROR, line);
	}
	return r == CUDA_ERROR_INVALID_IMAGE && type == CU_JIT_INPUT_PTX ? CUDA_ERROR_INVALID_PTX : r;
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t bytes, const char *name, unsigned int n,
			  CUjit_option *option, void **value)
{
	AUTO_PUT struct ctx *c = NULL;
	AUTO_PUT struct link *l = NULL;
	CUresult r;

	TRY(ctx_enter(&c));
	(void)value;
	l = obj_get(state, OBJ_LINK);
	if (!l)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!data || !bytes || (n && !option))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&l->lock);
	r = add(l, c, type, data, bytes, name);
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

/* The image belongs to the link state. */
static CUresult complete(struct link *l, struct ctx *c)
{
	char log[LOG_BYTES] = "", line[128];
	struct timespec t0, t1;
	CUresult r;
	int err;

	clock_gettime(CLOCK_MONOTONIC, &t0);
	err = ptxlink_join(l->units, &l->text, &l->bytes, log, sizeof(log));
	if (err) {
		say(l, LOG_ERROR, *log ? log : "there is nothing to link");
		return err == -ENOMEM	? CUDA_ERROR_OUT_OF_MEMORY
		       : err == -EEXIST ? CUDA_ERROR_INVALID_SOURCE
					: CUDA_ERROR_INVALID_VALUE;
	}
	r = try(l, c, l->text, l->bytes, log);
	if (r != CUDA_SUCCESS) {
		free(l->text);
		l->text = NULL;
		return r;
	}
	clock_gettime(CLOCK_MONOTONIC, &t1);
	snprintf(line, sizeof(line), "softgpu: %zu bytes of PTX, linked and checked in %.1f ms\n", l->bytes,
		 (t1.tv_sec - t0.tv_sec) * 1e3 + (t1.tv_nsec - t0.tv_nsec) / 1e6);
	say(l, LOG_INFO, line);
	return CUDA_SUCCESS;
}

CUresult cuLinkComplete(CUlinkState state, void **cubin, size_t *bytes)
{
	AUTO_PUT struct ctx *c = NULL;
	AUTO_PUT struct link *l = NULL;
	CUresult r = CUDA_SUCCESS;

	TRY(ctx_enter(&c));
	l = obj_get(state, OBJ_LINK);
	if (!l)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!cubin)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&l->lock);
	if (!l->text)
		r = complete(l, c);
	if (r == CUDA_SUCCESS) {
		*cubin = l->text;
		if (bytes)
			*bytes = l->bytes + 1;
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
