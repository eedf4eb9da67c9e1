// SPDX-License-Identifier: MIT
/* Kernels: handles, names, parameters and attributes, answered from the table; what is set travels. */
#include <string.h>
#include "rgpu_rpc.h"
#include "shim/handles.h"
#include "shim/module_int.h"

struct rgpu_obj *func_handle(struct func *f, enum rgpu_kind kind, struct rgpu_obj *context)
{
	struct rgpu_obj **slot = kind == KIND_kernel ? &f->kernel : &f->function;
	struct rgpu_obj *obj;

	/* A library's function runs in the context that is current at the launch, as its kernel does. */
	if (f->module->library)
		context = NULL;
	pthread_mutex_lock(&f->module->lock);
	if (!*slot) {
		*slot = handle_new(kind, context);
		if (*slot)
			(*slot)->data = f;
	}
	obj = *slot;
	pthread_mutex_unlock(&f->module->lock);
	return obj;
}

int func_use(const void *handle, struct func **f, uint64_t *wire, struct rgpu_obj **context)
{
	struct rgpu_obj *obj = handle_find(KIND_function, (uint64_t)handle);

	if (!obj)
		obj = handle_find(KIND_kernel, (uint64_t)handle);
	if (!obj)
		return CUDA_ERROR_INVALID_HANDLE;
	*f = obj->data;
	*wire = (*f)->module->obj->handle;
	*context = obj->context;
	return 0;
}

int kernel_use(CUkernel kernel, struct func **f, uint64_t *wire)
{
	struct rgpu_obj *obj = handle_find(KIND_kernel, (uint64_t)kernel);

	if (!obj)
		return CUDA_ERROR_INVALID_HANDLE;
	*f = obj->data;
	*wire = (*f)->module->obj->handle;
	return 0;
}

static int enter(const void *handle, struct func **f)
{
	struct rgpu_obj *context;
	uint64_t wire;
	int r = process_ready();

	return r ? r : func_use(handle, f, &wire, &context);
}

/* A library's kernel in the current context. */
CUresult cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
{
	struct rgpu_obj *obj;
	struct func *f;
	int r = enter(kernel, &f);

	if (r || !pFunc)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	obj = func_handle(f, KIND_function, NULL);
	if (!obj)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*pFunc = (CUfunction)obj->handle;
	return CUDA_SUCCESS;
}

CUresult cuKernelGetLibrary(CUlibrary *pLib, CUkernel kernel)
{
	struct func *f;
	int r = enter(kernel, &f);

	if (r || !pLib)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	if (!f->module->library)
		return CUDA_ERROR_INVALID_HANDLE;
	*pLib = (CUlibrary)f->module->obj->handle;
	return CUDA_SUCCESS;
}

CUresult cuFuncGetModule(CUmodule *hmod, CUfunction hfunc)
{
	struct func *f;
	int r = enter(hfunc, &f);

	if (r || !hmod)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	if (f->module->library)
		return cuLibraryGetModule(hmod, (CUlibrary)f->module->obj->handle);
	*hmod = (CUmodule)f->module->obj->handle;
	return CUDA_SUCCESS;
}

static int name_of(const char **name, const void *handle)
{
	struct func *f;
	int r = enter(handle, &f);

	if (r || !name)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	*name = f->name;
	return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char **name, CUfunction hfunc)
{
	return name_of(name, hfunc);
}

CUresult cuKernelGetName(const char **name, CUkernel hfunc)
{
	return name_of(name, hfunc);
}

static int param_of(const void *handle, size_t index, size_t *offset, size_t *size)
{
	struct func *f;
	int r = enter(handle, &f);

	if (r || !offset || index >= f->nparams)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	*offset = f->params[index].offset;
	if (size)
		*size = f->params[index].bytes;
	return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
{
	return param_of(func, paramIndex, paramOffset, paramSize);
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
{
	return param_of(kernel, paramIndex, paramOffset, paramSize);
}

static int attribute_of(int *pi, CUfunction_attribute attrib, const void *handle)
{
	struct func *f;
	int r = enter(handle, &f);

	if (r)
		return r;
	if (!pi || (unsigned)attrib >= RGPU_FUNC_ATTRS || f->attrs[attrib] == INT32_MIN)
		return CUDA_ERROR_INVALID_VALUE;
	*pi = f->attrs[attrib];
	return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc)
{
	return attribute_of(pi, attrib, hfunc);
}

CUresult cuKernelGetAttribute(int *pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev)
{
	int r = process_ready();

	if (!r && !device_find(dev))
		r = CUDA_ERROR_INVALID_DEVICE;
	return r ? r : attribute_of(pi, attrib, kernel);
}

/* What a device allows to set: decided here, with the error at the call. */
static int may_set(const struct device *d, const struct func *f, CUfunction_attribute attrib, int value)
{
	int room;

	switch (attrib) {
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		room = device_attribute(d, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
		if (room <= 0)
			room = device_attribute(d, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
		return value >= 0 && value <= room - f->attrs[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES];
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		return value >= -1 && value <= 100;
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
		return value >= 0;
	case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
		return value == 0 || value == 1;
	case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
		return value >= 0 && value <= 2;
	default:
		return false;
	}
}

static int set_attribute(struct rgpu_call *c, CUfunction_attribute attrib, int value, const void *handle)
{
	struct rgpu_obj *context;
	struct func *f;
	uint64_t wire;
	int r = func_use(handle, &f, &wire, &context);

	if (r)
		return r;
	if (f->own_cluster && attrib >= CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH &&
	    attrib <= CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH)
		return CUDA_ERROR_NOT_PERMITTED;
	if (!may_set(ctx_of(c->context)->device, f, attrib, value))
		return CUDA_ERROR_INVALID_VALUE;
	c->op = OP_FUNC_SET;
	r = rpc_FUNC_SET(c, wire, f->index, attrib, value);
	if (c->sent)
		f->attrs[attrib] = value;
	return r;
}

CUresult cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value)
{
	struct rgpu_call c;
	int r = rgpu_enter(&c, OP_FUNC_SET);

	if (!r)
		r = ctx_use(&c, NULL);
	return r ? r : set_attribute(&c, attrib, value, hfunc);
}

CUresult cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev)
{
	struct rgpu_call c;
	int r = rgpu_enter(&c, OP_FUNC_SET);
	struct device *d;

	if (r)
		return r;
	d = device_find(dev);
	if (!d)
		return CUDA_ERROR_INVALID_DEVICE;
	/* It holds for a device, current or not: said through that device's primary context. */
	if (!c.context || ctx_of(c.context)->device != d) {
		if (!d->primary || !ctx_of(d->primary)->alive)
			return CUDA_ERROR_INVALID_CONTEXT;
		c.context = d->primary;
		c.ctx = d->primary->handle;
		c.session = d->session;
	}
	return set_attribute(&c, attrib, val, kernel);
}

static int set_cache(const void *handle, CUfunc_cache config)
{
	struct rgpu_obj *context;
	struct rgpu_call c;
	struct func *f;
	uint64_t wire;
	int r = rgpu_enter(&c, OP_FUNC_CACHE);

	if (!r)
		r = ctx_use(&c, NULL);
	if (!r)
		r = func_use(handle, &f, &wire, &context);
	if (!r && (unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
		r = CUDA_ERROR_INVALID_VALUE;
	return r ? r : rpc_FUNC_CACHE(&c, wire, f->index, config);
}

CUresult cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config)
{
	return set_cache(hfunc, config);
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev)
{
	int r = process_ready();

	if (!r && !device_find(dev))
		r = CUDA_ERROR_INVALID_DEVICE;
	return r ? r : set_cache(kernel, config);
}

/* Deprecated, and without effect on the devices of today. */
CUresult cuFuncSetSharedMemConfig(CUfunction hfunc, CUsharedconfig config)
{
	struct func *f;
	int r = enter(hfunc, &f);

	if (r || (unsigned)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

/* Modules are loaded whole. */
CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function)
{
	struct func *f;
	int r = enter(function, &f);

	if (r || !state)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	*state = CU_FUNCTION_LOADING_STATE_LOADED;
	return CUDA_SUCCESS;
}

CUresult cuFuncLoad(CUfunction function)
{
	struct func *f;

	return enter(function, &f);
}

/* @potential: the largest cluster, else how many clusters of the configuration's shape are active at once. */
static int clusters(int *n, CUfunction func, const CUlaunchConfig *config, bool potential)
{
	struct rgpu_obj *context;
	unsigned shape[3] = {0};
	struct rgpu_call c;
	struct func *f;
	uint64_t wire;
	int r = rgpu_enter(&c, OP_CLUSTERS);

	if (!r)
		r = ctx_use(&c, NULL);
	if (!r)
		r = func_use(func, &f, &wire, &context);
	if (!r && (!n || !config || (config->numAttrs && !config->attrs)))
		r = CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; !r && i < config->numAttrs; i++) {
		const CUlaunchAttributeValue *v = &config->attrs[i].value;

		if (config->attrs[i].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
			continue;
		if (!v->clusterDim.x || !v->clusterDim.y || !v->clusterDim.z)
			r = CUDA_ERROR_INVALID_VALUE;
		shape[0] = v->clusterDim.x;
		shape[1] = v->clusterDim.y;
		shape[2] = v->clusterDim.z;
	}
	return r ? r
		 : rpc_CLUSTERS(&c, wire, f->index, potential, config->blockDimX, config->blockDimY, config->blockDimZ,
				config->sharedMemBytes, shape[0], shape[1], shape[2], n);
}

CUresult cuOccupancyMaxPotentialClusterSize(int *clusterSize, CUfunction func, const CUlaunchConfig *config)
{
	return clusters(clusterSize, func, config, true);
}

CUresult cuOccupancyMaxActiveClusters(int *numClusters, CUfunction func, const CUlaunchConfig *config)
{
	return clusters(numClusters, func, config, false);
}
