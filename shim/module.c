// SPDX-License-Identifier: MIT
/* cuModule… and cuLibrary…: loading, names, variables; what is asked about a kernel is in func.c. */
#include "shim/module.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "rgpu_rpc.h"
#include "shim/handles.h"
#include "shim/module_int.h"
#include "shim/shared.h"

static int enter(struct rgpu_call *c)
{
	int r = rgpu_enter(c, RGPU_NO_OP);

	return r ? r : ctx_use(c, NULL);
}

/* A library belongs to no context: without a current one the first device's server takes it. */
static int enter_library(struct rgpu_call *c)
{
	int r = rgpu_enter(c, RGPU_NO_OP);

	if (r || c->session)
		return r;
	c->session = process_get()->devices[0]->session;
	return session_start(c->session);
}

static int load(struct rgpu_call *c, bool library, const void *code, struct load_options *o, struct module **m)
{
	const struct device *d = c->context ? ctx_of(c->context)->device : process_get()->devices[0];
	const void *image;
	size_t bytes;
	void *owned;
	const void *const *list = image_prelinked(d, code);
	int r = list ? image_link(c, d, list, &image, &bytes, &owned) : image_choose(d, code, &image, &bytes, &owned);

	if (!r)
		r = module_load(c, library, image, bytes, o, m);
	free(owned);
	return r;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions, CUjit_option *options,
			    void **optionValues)
{
	struct load_options o;
	struct rgpu_call c;
	struct module *m;
	int r = enter(&c);

	if (!r && (!module || !image))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = load_options_read(&o, numOptions, options, optionValues);
	if (!r)
		r = load(&c, false, image, &o, &m);
	if (!r)
		*module = (CUmodule)m->obj->handle;
	return r;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin)
{
	return cuModuleLoadDataEx(module, fatCubin, 0, NULL, NULL);
}

int file_read(const char *name, char **out, size_t *bytes)
{
	FILE *f = fopen(name, "rb");
	long n = 0;

	if (!f)
		return errno == ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_FILE_NOT_FOUND;
	*out = NULL;
	if (!fseek(f, 0, SEEK_END) && (n = ftell(f)) >= 0 && !fseek(f, 0, SEEK_SET))
		*out = calloc(1, n + 1);
	if (*out && fread(*out, 1, n, f) != (size_t)n) {
		free(*out);
		*out = NULL;
	}
	fclose(f);
	*bytes = n;
	return *out ? 0 : CUDA_ERROR_OPERATING_SYSTEM;
}

CUresult cuModuleLoad(CUmodule *module, const char *fname)
{
	struct rgpu_call c;
	size_t bytes;
	char *image;
	int r = enter(&c);

	if (!r && (!module || !fname))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = file_read(fname, &image, &bytes);
	if (r)
		return r;
	r = cuModuleLoadData(module, image);
	free(image);
	return r;
}

static int module_use(CUmodule h, struct module **m, struct rgpu_obj **obj)
{
	int r = process_ready();

	if (r)
		return r;
	*obj = handle_find(KIND_module, (uint64_t)h);
	if (!*obj)
		return CUDA_ERROR_INVALID_HANDLE;
	*m = (*obj)->data;
	return 0;
}

static int library_use(CUlibrary h, struct module **m)
{
	struct rgpu_obj *obj;
	int r = process_ready();

	if (r)
		return r;
	obj = handle_find(KIND_library, (uint64_t)h);
	if (!obj)
		return CUDA_ERROR_INVALID_HANDLE;
	*m = obj->data;
	return 0;
}

static int unload(struct module *m)
{
	struct rgpu_call c = {.op = OP_UNLOAD, .session = m->session, .context = m->context};
	int r;

	c.ctx = c.context ? c.context->handle : 0;
	r = rpc_UNLOAD(&c, m->obj->handle);
	module_free(m);
	return r;
}

CUresult cuModuleUnload(CUmodule hmod)
{
	struct rgpu_obj *obj;
	struct module *m;
	int r = module_use(hmod, &m, &obj);

	if (r)
		return r;
	return m->library ? CUDA_ERROR_INVALID_HANDLE : unload(m);
}

struct dying {
	struct rgpu_obj *context;
	struct module *list[128];
	unsigned n;
};

static void collect(struct rgpu_obj *obj, void *arg)
{
	struct dying *d = arg;
	struct module *m = obj->data;

	if (obj->context == d->context && m && !m->library && d->n < sizeof(d->list) / sizeof(*d->list))
		d->list[d->n++] = m;
}

/* A library outlives contexts, its variables in one do not. */
static void drop_globals(struct rgpu_obj *obj, void *context)
{
	struct module *m = obj->data;

	if (!m)
		return;
	pthread_mutex_lock(&m->lock);
	for (struct global **at = &m->globals; *at;) {
		struct global *g = *at;

		if (g->context != context) {
			at = &g->next;
			continue;
		}
		*at = g->next;
		shared_drop_variable(g->addr, g->bytes);
		heap_drop_global(g->addr);
		free(g);
	}
	pthread_mutex_unlock(&m->lock);
}

/* The server drops its half when the context dies. Handles of libraries in the context stay with their library. */
void module_drop_context(struct rgpu_obj *context)
{
	struct dying d;

	handle_each(KIND_library, drop_globals, context);

	do {
		d.context = context;
		d.n = 0;
		handle_each(KIND_module, collect, &d);
		for (unsigned i = 0; i < d.n; i++)
			module_free(d.list[i]);
	} while (d.n);
}

CUresult cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
	struct rgpu_obj *obj, *h;
	struct module *m;
	struct func *f;
	int r = module_use(hmod, &m, &obj);

	if (r)
		return r;
	if (!hfunc || !name)
		return CUDA_ERROR_INVALID_VALUE;
	f = module_func(m, name);
	if (!f)
		return CUDA_ERROR_NOT_FOUND;
	h = func_handle(f, KIND_function, obj->context);
	if (!h)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*hfunc = (CUfunction)h->handle;
	return CUDA_SUCCESS;
}

CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule mod)
{
	struct rgpu_obj *obj;
	struct module *m;
	int r = module_use(mod, &m, &obj);

	if (r || !count)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	*count = m->nfuncs;
	return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned int numFunctions, CUmodule mod)
{
	struct rgpu_obj *obj, *h;
	struct module *m;
	int r = module_use(mod, &m, &obj);

	if (r || !functions)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < numFunctions && i < m->nfuncs; i++) {
		h = func_handle(&m->funcs[i], KIND_function, obj->context);
		if (!h)
			return CUDA_ERROR_OUT_OF_MEMORY;
		functions[i] = (CUfunction)h->handle;
	}
	return CUDA_SUCCESS;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
	int r = process_ready();

	if (r || !mode)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	*mode = CU_MODULE_EAGER_LOADING; /* the image and its tables are loaded at the call */
	return CUDA_SUCCESS;
}

int module_global(struct rgpu_call *c, struct module *m, const char *name, uint64_t *addr, uint64_t *bytes)
{
	struct global *g;
	int r = 0;

	pthread_mutex_lock(&m->lock);
	for (g = m->globals; g; g = g->next)
		if (g->context == c->context && !strcmp(g->name, name))
			goto found;
	c->op = OP_GLOBAL;
	r = rpc_GLOBAL(c, m->obj->handle, name, addr, bytes);
	if (r)
		goto out;
	g = calloc(1, sizeof(*g) + strlen(name) + 1);
	if (g)
		r = heap_add_global(ctx_of(c->context)->device, c->context, *addr, *bytes);
	if (!g || r) {
		free(g);
		r = CUDA_ERROR_OUT_OF_MEMORY;
		goto out;
	}
	strcpy(g->name, name);
	g->context = c->context;
	g->addr = *addr;
	g->bytes = *bytes;
	g->next = m->globals;
	m->globals = g;
found:
	*addr = g->addr;
	*bytes = g->bytes;
out:
	pthread_mutex_unlock(&m->lock);
	return r;
}

/* Asks once for each. */
static int module_managed(struct rgpu_call *c, struct module *m, const char *name, uint64_t *addr, uint64_t *bytes)
{
	struct global *g;
	int r = module_global(c, m, name, addr, bytes);

	if (r)
		return r;
	pthread_mutex_lock(&m->lock);
	for (g = m->globals; g && (g->context != c->context || strcmp(g->name, name)); g = g->next)
		;
	if (!g || !g->managed) {
		c->op = OP_MANAGED;
		r = rpc_MANAGED(c, m->obj->handle, name);
		if (g)
			g->managed = !r;
	}
	pthread_mutex_unlock(&m->lock);
	return r;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name)
{
	struct rgpu_obj *obj;
	struct rgpu_call c;
	struct module *m;
	uint64_t addr, n;
	int r = enter(&c);

	if (!r)
		r = module_use(hmod, &m, &obj);
	if (!r && !name)
		r = CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	c.context = obj->context;
	c.ctx = obj->context->handle;
	r = module_global(&c, m, name, &addr, &n);
	if (r)
		return r;
	if (dptr)
		*dptr = addr;
	if (bytes)
		*bytes = n;
	return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions, void **jitOptionsValues,
			   unsigned int numJitOptions, CUlibraryOption *libraryOptions, void **libraryOptionValues,
			   unsigned int numLibraryOptions)
{
	struct load_options o;
	struct rgpu_call c;
	struct module *m;
	int r = enter_library(&c);

	if (!r && (!library || !code || (numLibraryOptions && (!libraryOptions || !libraryOptionValues))))
		r = CUDA_ERROR_INVALID_VALUE;
	/* BINARY_IS_PRESERVED is a promise that we don't need; HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE is managed memory's. */
	for (unsigned i = 0; !r && i < numLibraryOptions; i++)
		if (libraryOptions[i] != CU_LIBRARY_BINARY_IS_PRESERVED)
			r = CUDA_ERROR_NOT_SUPPORTED;
	if (!r)
		r = load_options_read(&o, numJitOptions, jitOptions, jitOptionsValues);
	if (!r)
		r = load(&c, true, code, &o, &m);
	if (!r)
		*library = (CUlibrary)m->obj->handle;
	return r;
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *fileName, CUjit_option *jitOptions, void **jitOptionsValues,
			       unsigned int numJitOptions, CUlibraryOption *libraryOptions, void **libraryOptionValues,
			       unsigned int numLibraryOptions)
{
	size_t bytes;
	char *image;
	int r = process_ready();

	if (!r && (!library || !fileName))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = file_read(fileName, &image, &bytes);
	if (r)
		return r;
	r = cuLibraryLoadData(library, image, jitOptions, jitOptionsValues, numJitOptions, libraryOptions, libraryOptionValues,
			      numLibraryOptions);
	free(image);
	return r;
}

CUresult cuLibraryUnload(CUlibrary library)
{
	struct module *m;
	int r = library_use(library, &m);

	return r ? r : unload(m);
}

CUresult cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name)
{
	struct rgpu_obj *h;
	struct module *m;
	struct func *f;
	int r = library_use(library, &m);

	if (r)
		return r;
	if (!pKernel || !name)
		return CUDA_ERROR_INVALID_VALUE;
	f = module_func(m, name);
	if (!f)
		return CUDA_ERROR_NOT_FOUND;
	h = func_handle(f, KIND_kernel, NULL);
	if (!h)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*pKernel = (CUkernel)h->handle;
	return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary lib)
{
	struct module *m;
	int r = library_use(lib, &m);

	if (r || !count)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	*count = m->nfuncs;
	return CUDA_SUCCESS;
}

CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int numKernels, CUlibrary lib)
{
	struct rgpu_obj *h;
	struct module *m;
	int r = library_use(lib, &m);

	if (r || !kernels)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < numKernels && i < m->nfuncs; i++) {
		h = func_handle(&m->funcs[i], KIND_kernel, NULL);
		if (!h)
			return CUDA_ERROR_OUT_OF_MEMORY;
		kernels[i] = (CUkernel)h->handle;
	}
	return CUDA_SUCCESS;
}

/* The library as a module of the current context: one handle for each context. */
CUresult cuLibraryGetModule(CUmodule *pMod, CUlibrary library)
{
	struct rgpu_call c;
	struct module *m;
	struct alias *a;
	int r = enter(&c);

	if (!r)
		r = library_use(library, &m);
	if (r || !pMod)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&m->lock);
	for (a = m->aliases; a && a->obj->context != c.context; a = a->next)
		;
	if (!a) {
		a = calloc(1, sizeof(*a));
		if (a)
			a->obj = handle_new(KIND_module, c.context);
		if (a && a->obj) {
			a->obj->data = m;
			a->next = m->aliases;
			m->aliases = a;
		} else {
			free(a);
			r = CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	if (!r)
		*pMod = (CUmodule)a->obj->handle;
	pthread_mutex_unlock(&m->lock);
	return r;
}

/* @find: any, or a managed one. */
static int library_variable(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name,
			    int (*find)(struct rgpu_call *, struct module *, const char *, uint64_t *, uint64_t *))
{
	struct rgpu_call c;
	struct module *m;
	uint64_t addr, n;
	int r = enter(&c);

	if (!r)
		r = library_use(library, &m);
	if (!r && !name)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = find(&c, m, name, &addr, &n);
	if (r)
		return r;
	if (dptr)
		*dptr = addr;
	if (bytes)
		*bytes = n;
	return CUDA_SUCCESS;
}

CUresult cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
	return library_variable(dptr, bytes, library, name, module_global);
}

int library_managed(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
	return library_variable(dptr, bytes, library, name, module_managed);
}

/* UNIFIED_FUNCTION_POINTERS is 0: no function has an address that host and device share. */
CUresult cuLibraryGetUnifiedFunction(void **fptr, CUlibrary library, const char *symbol)
{
	struct module *m;
	int r = library_use(library, &m);

	if (!r && (!fptr || !symbol))
		r = CUDA_ERROR_INVALID_VALUE;
	return r ? r : CUDA_ERROR_NOT_FOUND;
}
