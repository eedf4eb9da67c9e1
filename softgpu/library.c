// SPDX-License-Identifier: MIT
/* Libraries and kernels: images that belong to no context until one asks for them. */
#include "softgpu/library.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* One context's module of a library. */
struct instance {
	struct instance *next;
	struct module *module;	 /* a reference */
	uintptr_t ctx;		 /* handle; 0: nobody's yet */
	int device;		 /* the context's */
	unsigned long long born; /* the context's life: a primary context's handle has several */
};

struct library {
	struct obj obj;
	char *text; /* PTX, for the contexts after the first */
	size_t bytes;
	uintptr_t max_regs;
	size_t nkernels;
	struct kernel **kernels; /* one reference each */
	pthread_mutex_t lock;	 /* instances */
	struct instance *instances;
};

static void library_release(struct obj *o)
{
	struct library *l = container_of(o, struct library, obj);

	while (l->instances) {
		struct instance *i = l->instances;

		l->instances = i->next;
		module_retire(i->module);
		obj_put(&i->module->obj);
		free(i);
	}
	pthread_mutex_destroy(&l->lock);
	free(l->kernels);
	free(l->text);
	free(l);
}

static void kernel_release(struct obj *o)
{
	struct kernel *k = container_of(o, struct kernel, obj);

	obj_put(&k->library->obj);
	free(k->attr);
	free(k->name);
	free(k->params);
	free(k);
}

/* The kernels outlive any one instance, so they keep what is asked about them. */
static struct kernel *kernel_new(struct library *l, const struct ptx_func_info *info)
{
	struct kernel *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	obj_init(&k->obj, OBJ_KERNEL, NULL, kernel_release);
	obj_ref(&l->obj);
	k->library = l;
	k->name = strdup(info->name);
	k->params = calloc(info->nparams + 1, sizeof(*k->params));
	if (!k->name || !k->params || !obj_publish(&k->obj)) {
		obj_put(&k->obj);
		return NULL;
	}
	memcpy(k->params, info->params, info->nparams * sizeof(*k->params));
	k->info = *info;
	k->info.name = k->name;
	k->info.params = k->params;
	return k;
}

static struct instance *instance_new(struct library *l, const struct jit_options *jit, struct device *d, CUresult *r)
{
	struct instance *i = calloc(1, sizeof(*i));

	*r = i ? module_load(l->text, l->bytes, jit, d, &i->module) : CUDA_ERROR_OUT_OF_MEMORY;
	if (*r != CUDA_SUCCESS) {
		free(i);
		return NULL;
	}
	i->next = l->instances;
	l->instances = i;
	return i;
}

/* The module of @l in @c, without a reference of its own; the library's lock is held. */
static CUresult instance_of(struct library *l, struct ctx *c, struct module **out)
{
	struct instance **p, *i;
	CUresult r;

	for (p = &l->instances; (i = *p);) {
		if (i->ctx == c->obj.handle && i->born == c->lives) {
			*out = i->module;
			return CUDA_SUCCESS;
		}
		/* The context's earlier life took the module along. */
		if (i->ctx == c->obj.handle) {
			*p = i->next;
			obj_put(&i->module->obj);
			free(i);
			continue;
		}
		p = &i->next;
	}
	for (i = l->instances; i; i = i->next)
		if (!i->ctx)
			break;
	if (!i) {
		const CUjit_option limit = CU_JIT_MAX_REGISTERS;
		void *value = (void *)l->max_regs;
		const struct jit_options jit = {.n = 1, .option = &limit, .value = &value};

		i = instance_new(l, &jit, c->dev, &r);
	}
	if (!i)
		return r;
	TRY(module_bind(i->module, c));
	i->ctx = c->obj.handle;
	i->born = c->lives;
	i->device = c->dev->index;
	/* What was set on a kernel for this device holds for the new functions. */
	for (size_t k = 0; k < l->nkernels; k++)
		for (size_t a = 0; a < l->kernels[k]->nattr; a++)
			if (l->kernels[k]->attr[a].device == c->dev->index)
				function_set_attribute(i->module->funcs[k], l->kernels[k]->attr[a].attr,
						       l->kernels[k]->attr[a].value);
	*out = i->module;
	return CUDA_SUCCESS;
}

CUresult kernel_function(struct kernel *k, struct ctx *c, struct function **out)
{
	struct module *m;
	CUresult r;

	pthread_mutex_lock(&k->library->lock);
	r = instance_of(k->library, c, &m);
	if (r == CUDA_SUCCESS) {
		*out = module_function(m, k->name);
		if (*out)
			obj_ref(&(*out)->obj);
		else
			r = CUDA_ERROR_CONTEXT_IS_DESTROYED;
	}
	pthread_mutex_unlock(&k->library->lock);
	return r;
}

static CUresult load(CUlibrary *library, const void *code, size_t len, const struct jit_options *jit)
{
	AUTO_PUT struct ctx *c = NULL;
	char log[512] = "";
	struct library *l;
	struct instance *i;
	CUresult r;

	l = calloc(1, sizeof(*l));
	if (!l)
		return CUDA_ERROR_OUT_OF_MEMORY;
	obj_init(&l->obj, OBJ_LIBRARY, NULL, library_release);
	pthread_mutex_init(&l->lock, NULL);
	r = image_text(code, len, &l->text, &l->bytes, log, sizeof(log));
	if (r != CUDA_SUCCESS) {
		log_line("library: %s", log);
		obj_put(&l->obj);
		return r;
	}
	for (unsigned int n = 0; n < jit->n; n++)
		if (jit->option && jit->value && jit->option[n] == CU_JIT_MAX_REGISTERS)
			l->max_regs = (uintptr_t)jit->value[n];
	/* The first instance tells what the library has; the first context that asks gets it. */
	ctx_resolve(NULL, &c);
	i = instance_new(l, jit, c ? c->dev : &softgpu_device[0], &r);
	if (i) {
		l->kernels = calloc(i->module->nfuncs + 1, sizeof(*l->kernels));
		for (size_t k = 0; l->kernels && k < i->module->nfuncs; k++) {
			l->kernels[k] = kernel_new(l, i->module->funcs[k]->info);
			if (!l->kernels[k])
				break;
			l->nkernels++;
		}
		if (l->nkernels < i->module->nfuncs || !obj_publish(&l->obj))
			r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (r == CUDA_SUCCESS)
		*library = (CUlibrary)l->obj.handle;
	else
		library_close(l);
	obj_put(&l->obj);
	return r;
}

void library_close(struct library *l)
{
	size_t n = l->nkernels;

	l->nkernels = 0;
	for (size_t k = 0; k < n; k++) {
		obj_retire(&l->kernels[k]->obj);
		obj_put(&l->kernels[k]->obj);
	}
	obj_retire(&l->obj);
}

/* Of the library's own options only "binary is preserved" exists beside the host table, and it permits, not asks. */
static CUresult lib_options(const CUlibraryOption *option, void *const *value, unsigned int n)
{
	if (n && !option)
		return CUDA_ERROR_INVALID_VALUE;
	(void)value;
	for (unsigned int i = 0; i < n; i++)
		if (option[i] != CU_LIBRARY_BINARY_IS_PRESERVED)
			return option[i] == CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE ? CUDA_ERROR_NOT_SUPPORTED
											      : CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jit_option, void **jit_value, unsigned int njit,
			   CUlibraryOption *option, void **value, unsigned int n)
{
	struct jit_options jit = {.n = njit, .option = jit_option, .value = jit_value};

	TRY(api_enter());
	if (!library || !code)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(lib_options(option, value, n));
	return load(library, code, SIZE_MAX, &jit);
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *name, CUjit_option *jit_option, void **jit_value,
			       unsigned int njit, CUlibraryOption *option, void **value, unsigned int n)
{
	struct jit_options jit = {.n = njit, .option = jit_option, .value = jit_value};
	CUresult r;
	char *image;
	size_t len;

	TRY(api_enter());
	if (!library || !name)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(lib_options(option, value, n));
	image = file_read(name, &len);
	if (!image)
		return errno == ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_FILE_NOT_FOUND;
	r = load(library, image, len, &jit);
	free(image);
	return r;
}

static CUresult library_get(CUlibrary handle, struct library **out)
{
	*out = NULL;
	TRY(api_enter());
	*out = obj_get(handle, OBJ_LIBRARY);
	return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuLibraryUnload(CUlibrary library)
{
	AUTO_PUT struct library *l = NULL;

	TRY(library_get(library, &l));
	/* Queued launches keep what they run. */
	library_close(l);
	return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
	AUTO_PUT struct library *l = NULL;

	TRY(library_get(library, &l));
	if (!kernel || !name)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t k = 0; k < l->nkernels; k++)
		if (!strcmp(l->kernels[k]->name, name)) {
			*kernel = (CUkernel)l->kernels[k]->obj.handle;
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_NOT_FOUND;
}

CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary library)
{
	AUTO_PUT struct library *l = NULL;

	TRY(library_get(library, &l));
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = (unsigned int)l->nkernels;
	return CUDA_SUCCESS;
}

CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int n, CUlibrary library)
{
	AUTO_PUT struct library *l = NULL;

	TRY(library_get(library, &l));
	if (!kernels || !n)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t k = 0; k < n && k < l->nkernels; k++)
		kernels[k] = (CUkernel)l->kernels[k]->obj.handle;
	return CUDA_SUCCESS;
}

CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
	AUTO_PUT struct library *l = NULL;
	AUTO_PUT struct ctx *c = NULL;
	struct module *m;
	CUresult r;

	TRY(ctx_enter(&c));
	TRY(library_get(library, &l));
	if (!module)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&l->lock);
	r = instance_of(l, c, &m);
	if (r == CUDA_SUCCESS)
		*module = (CUmodule)m->obj.handle;
	pthread_mutex_unlock(&l->lock);
	return r;
}

CUresult cuLibraryGetGlobal(CUdeviceptr *ptr, size_t *bytes, CUlibrary library, const char *name)
{
	CUmodule m;

	TRY(cuLibraryGetModule(&m, library));
	return cuModuleGetGlobal_v2(ptr, bytes, m, name);
}

/* Host and device see the same bytes of every global: a managed one is where others are. */
CUresult cuLibraryGetManaged(CUdeviceptr *ptr, size_t *bytes, CUlibrary library, const char *name)
{
	AUTO_PUT struct module *m = NULL;
	CUmodule handle;

	TRY(cuLibraryGetModule(&handle, library));
	TRY(cuModuleGetGlobal_v2(ptr, bytes, handle, name));
	m = obj_get(handle, OBJ_MODULE);
	return m && ptx_module_managed(m->ptx, name) ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuKernelGetLibrary(CUlibrary *library, CUkernel kernel)
{
	AUTO_PUT struct kernel *k = NULL;

	TRY(kernel_get(kernel, &k));
	if (!library)
		return CUDA_ERROR_INVALID_VALUE;
	*library = (CUlibrary)k->library->obj.handle;
	return CUDA_SUCCESS;
}

/* ---- Attributes, per device ---- */

CUresult kernel_set_attribute(struct kernel *k, CUfunction_attribute attr, int value, int device)
{
	struct library *l = k->library;
	CUresult r = CUDA_SUCCESS;
	size_t a;

	pthread_mutex_lock(&l->lock);
	for (a = 0; a < k->nattr; a++)
		if (k->attr[a].attr == attr && k->attr[a].device == device)
			break;
	if (a == k->nattr) {
		struct kernel_attr *p = realloc(k->attr, (a + 1) * sizeof(*p));

		if (p) {
			k->attr = p;
			k->nattr++;
		} else {
			r = CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	if (r == CUDA_SUCCESS) {
		k->attr[a] = (struct kernel_attr){.attr = attr, .device = device, .value = value};
		for (struct instance *i = l->instances; i; i = i->next) {
			struct function *f = module_function(i->module, k->name);

			if (f && i->ctx && i->device == device)
				function_set_attribute(f, attr, value);
		}
	}
	pthread_mutex_unlock(&l->lock);
	return r;
}

CUresult kernel_attribute(int *value, CUfunction_attribute attr, struct kernel *k, int device)
{
	struct library *l = k->library;
	CUresult r = CUDA_SUCCESS;
	size_t a;

	pthread_mutex_lock(&l->lock);
	for (a = 0; a < k->nattr; a++)
		if (k->attr[a].attr == attr && k->attr[a].device == device)
			break;
	if (a < k->nattr) {
		*value = k->attr[a].value;
	} else {
		/* What a fresh function says. */
		struct function f = {.info = &k->info};

		function_defaults(&f);
		r = function_attribute(value, attr, &f);
	}
	pthread_mutex_unlock(&l->lock);
	return r;
}
