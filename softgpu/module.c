// SPDX-License-Identifier: MIT
/* Modules: loading an image into a context, its functions and globals, the JIT's options and logs. */
#include "softgpu/library.h"
#include "softgpu/ptx/regs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOG_BYTES 1024

/* ---- Objects ---- */

/* A function in use keeps its module's code: the module's memory goes with the last function. */
static void module_release(struct obj *o)
{
	struct module *m = container_of(o, struct module, obj);

	if (m->dev && ptx_module_has_heap(m->ptx))
		atomic_fetch_sub(&m->dev->heaps, 1);
	ptx_module_free(m->ptx);
	free(m->funcs);
	free(m);
}

static void function_release(struct obj *o)
{
	struct function *f = container_of(o, struct function, obj);

	obj_put(&f->module->obj);
	free(f);
}

void module_retire(struct module *m)
{
	size_t n = m->nfuncs;

	/* Queued launches have references of their own. */
	obj_retire(&m->obj);
	m->nfuncs = 0;
	for (size_t i = 0; i < n; i++) {
		obj_retire(&m->funcs[i]->obj);
		obj_put(&m->funcs[i]->obj);
	}
}

void function_defaults(struct function *f)
{
	unsigned int fixed = f->info->shared_bytes;

	atomic_store(&f->max_dyn_shared, fixed < SMEM_BLOCK_DEFAULT ? (int)(SMEM_BLOCK_DEFAULT - fixed) : 0);
	atomic_store(&f->carveout, -1);
	for (int d = 0; d < 3; d++)
		atomic_store(&f->cluster[d], (int)f->info->cluster[d]);
}

static CUresult add_functions(struct module *m)
{
	struct ptx_func *p;
	size_t n = 0;

	while (ptx_module_kernel_at(m->ptx, n))
		n++;
	m->funcs = calloc(n ? n : 1, sizeof(*m->funcs));
	if (!m->funcs)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < n; i++) {
		struct function *f = calloc(1, sizeof(*f));

		if (!f)
			return CUDA_ERROR_OUT_OF_MEMORY;
		p = ptx_module_kernel_at(m->ptx, i);
		obj_init(&f->obj, OBJ_FUNCTION, NULL, function_release);
		f->module = m;
		obj_ref(&m->obj);
		f->ptx = p;
		f->info = ptx_func_info(p);
		function_defaults(f);
		m->funcs[m->nfuncs++] = f;
	}
	return CUDA_SUCCESS;
}

CUresult module_bind(struct module *m, struct ctx *c)
{
	m->obj.ctx = c;
	if (!obj_publish(&m->obj))
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < m->nfuncs; i++) {
		m->funcs[i]->obj.ctx = c;
		if (!obj_publish(&m->funcs[i]->obj))
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

struct function *module_function(struct module *m, const char *name)
{
	for (size_t i = 0; i < m->nfuncs; i++)
		if (!strcmp(m->funcs[i]->info->name, name))
			return m->funcs[i];
	return NULL;
}

/* ---- Loading ---- */

static CUresult from_ptx_status(enum ptx_status s)
{
	switch (s) {
	case PTX_OK:
		return CUDA_SUCCESS;
	case PTX_NOMEM:
		return CUDA_ERROR_OUT_OF_MEMORY;
	case PTX_VERSION:
		return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
	case PTX_UNSUPPORTED:
	case PTX_SYNTAX:
	default:
		return CUDA_ERROR_INVALID_PTX;
	}
}

static void *jit_value(const struct jit_options *jit, CUjit_option option, unsigned int *index)
{
	for (unsigned int i = 0; jit && i < jit->n; i++)
		if (jit->option[i] == option) {
			*index = i;
			return jit->value[i];
		}
	*index = UINT32_MAX;
	return NULL;
}

/* Puts @text into a log buffer of the options and its length into the size option, as the JIT does. */
static void jit_log(const struct jit_options *jit, CUjit_option buffer, CUjit_option size, const char *text)
{
	unsigned int bi, si;
	char *buf = jit_value(jit, buffer, &bi);
	size_t room = (size_t)jit_value(jit, size, &si) & UINT32_MAX, n = strlen(text);

	if (si == UINT32_MAX)
		return;
	if (!buf || !room) {
		jit->value[si] = NULL;
		return;
	}
	if (n >= room)
		n = room - 1;
	memcpy(buf, text, n);
	buf[n] = 0;
	jit->value[si] = (void *)(uintptr_t)n;
}

static CUresult jit_check(const struct jit_options *jit)
{
	if (!jit || !jit->n)
		return CUDA_SUCCESS;
	if (!jit->option || !jit->value)
		return CUDA_ERROR_INVALID_VALUE;
	/* All that is known: optimisation and debug options are hints that an interpreter has no use for. */
	for (unsigned int i = 0; i < jit->n; i++)
		if ((unsigned int)jit->option[i] >= CU_JIT_NUM_OPTIONS)
			return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult module_load(const void *image, size_t len, const struct jit_options *jit, struct device *d, struct module **out)
{
	struct ptx_mem mem = module_memory(d);
	char log[LOG_BYTES] = "";
	struct timespec t0, t1;
	struct module *m;
	unsigned int at;
	size_t bytes;
	char *text;
	CUresult r;

	TRY(jit_check(jit));
	clock_gettime(CLOCK_MONOTONIC, &t0);
	m = calloc(1, sizeof(*m));
	if (!m)
		return CUDA_ERROR_OUT_OF_MEMORY;
	obj_init(&m->obj, OBJ_MODULE, NULL, module_release);
	r = image_text(image, len, &text, &bytes, log, sizeof(log));
	if (r == CUDA_SUCCESS) {
		r = from_ptx_status(ptx_module_load(text, bytes, &mem, &m->ptx, log, sizeof(log)));
		free(text);
	}
	if (r != CUDA_SUCCESS) {
		free(m);
	} else {
		m->dev = d;
		ptx_module_limit_registers(m->ptx, (uint32_t)(uintptr_t)jit_value(jit, CU_JIT_MAX_REGISTERS, &at));
		if (ptx_module_has_heap(m->ptx))
			atomic_fetch_add(&d->heaps, 1);
		r = add_functions(m);
		if (r != CUDA_SUCCESS) {
			module_retire(m);
			obj_put(&m->obj);
		}
	}
	clock_gettime(CLOCK_MONOTONIC, &t1);
	if (r != CUDA_SUCCESS && log[0])
		log_line("module: %s", log);
	jit_log(jit, CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, r == CUDA_SUCCESS ? "" : log);
	jit_log(jit, CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, "");
	jit_value(jit, CU_JIT_WALL_TIME, &at);
	if (at != UINT32_MAX) {
		float ms = (float)((double)(t1.tv_sec - t0.tv_sec) * 1e3 + (double)(t1.tv_nsec - t0.tv_nsec) / 1e6);

		jit->value[at] = NULL;
		memcpy(&jit->value[at], &ms, sizeof(ms));
	}
	if (r != CUDA_SUCCESS)
		return r;
	*out = m;
	return CUDA_SUCCESS;
}

static CUresult load(CUmodule *module, const void *image, size_t len, const struct jit_options *jit)
{
	AUTO_PUT struct ctx *c = NULL;
	struct module *m;
	CUresult r;

	TRY(ctx_enter(&c));
	if (!module || !image)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(module_load(image, len, jit, c->dev, &m));
	r = module_bind(m, c);
	if (r == CUDA_SUCCESS)
		*module = (CUmodule)m->obj.handle;
	else
		module_retire(m);
	obj_put(&m->obj);
	return r;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	return load(module, image, SIZE_MAX, NULL);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int n, CUjit_option *option, void **value)
{
	struct jit_options jit = {.n = n, .option = option, .value = value};

	return load(module, image, SIZE_MAX, &jit);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
	return load(module, image, SIZE_MAX, NULL);
}

/* A file with a NUL behind it; NULL with errno. */
char *file_read(const char *name, size_t *len)
{
	FILE *f = fopen(name, "rbe");
	char *buf = NULL;
	size_t n = 0, room = 0;

	if (!f)
		return NULL;
	do {
		char *p;

		room = room ? room * 2 : 65536;
		p = realloc(buf, room);
		if (!p) {
			free(buf);
			fclose(f);
			errno = ENOMEM;
			return NULL;
		}
		buf = p;
		n += fread(buf + n, 1, room - n - 1, f);
	} while (n == room - 1);
	if (ferror(f)) {
		free(buf);
		buf = NULL;
		errno = EIO;
	} else {
		buf[n] = 0;
	}
	fclose(f);
	*len = n;
	return buf;
}

CUresult cuModuleLoad(CUmodule *module, const char *name)
{
	CUresult r;
	char *image;
	size_t len;

	TRY(api_enter());
	if (!module || !name)
		return CUDA_ERROR_INVALID_VALUE;
	image = file_read(name, &len);
	if (!image)
		return errno == ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_FILE_NOT_FOUND;
	r = load(module, image, len, NULL);
	free(image);
	return r;
}

CUresult cuModuleUnload(CUmodule module)
{
	AUTO_PUT struct ctx *c = NULL;
	AUTO_PUT struct module *m = NULL;

	TRY(ctx_enter(&c));
	m = obj_get(module, OBJ_MODULE);
	if (!m)
		return CUDA_ERROR_INVALID_HANDLE;
	/* CUDA lets the work that uses it end first. */
	ctx_drain(c);
	module_retire(m);
	return CUDA_SUCCESS;
}

/* ---- Questions ---- */

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
	AUTO_PUT struct ctx *c = NULL;
	AUTO_PUT struct module *m = NULL;
	struct function *f;

	TRY(ctx_enter(&c));
	m = obj_get(module, OBJ_MODULE);
	if (!m)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!function || !name || !*name)
		return CUDA_ERROR_INVALID_VALUE;
	f = module_function(m, name);
	if (!f)
		return CUDA_ERROR_NOT_FOUND;
	*function = (CUfunction)f->obj.handle;
	return CUDA_SUCCESS;
}

CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule module)
{
	AUTO_PUT struct ctx *c = NULL;
	AUTO_PUT struct module *m = NULL;

	TRY(ctx_enter(&c));
	m = obj_get(module, OBJ_MODULE);
	if (!m)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = (unsigned int)m->nfuncs;
	return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned int n, CUmodule module)
{
	AUTO_PUT struct ctx *c = NULL;
	AUTO_PUT struct module *m = NULL;

	TRY(ctx_enter(&c));
	m = obj_get(module, OBJ_MODULE);
	if (!m)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!functions || !n)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < n && i < m->nfuncs; i++)
		functions[i] = (CUfunction)m->funcs[i]->obj.handle;
	return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *ptr, size_t *bytes, CUmodule module, const char *name)
{
	AUTO_PUT struct ctx *c = NULL;
	AUTO_PUT struct module *m = NULL;
	uint64_t addr;
	size_t n;

	TRY(ctx_enter(&c));
	m = obj_get(module, OBJ_MODULE);
	if (!m)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!name || (!ptr && !bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (!ptx_module_global(m->ptx, name, &addr, &n))
		return CUDA_ERROR_NOT_FOUND;
	if (ptr)
		*ptr = addr;
	if (bytes)
		*bytes = n;
	return CUDA_SUCCESS;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
	TRY(api_enter());
	if (!mode)
		return CUDA_ERROR_INVALID_VALUE;
	*mode = CU_MODULE_EAGER_LOADING;
	return CUDA_SUCCESS;
}
