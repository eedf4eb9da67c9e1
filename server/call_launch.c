// SPDX-License-Identifier: MIT
/* Launches, and what is set on and asked about kernels. */
#include <string.h>
#include "server/call_launch.h"
#include "server/call_module.h"
#include "lib/launch_attr.h"

#define ATTRS_MAX 64u

/* Events in attributes come under their wire names. Attributes are known ones: a new client may know more than we do. */
bool launch_attrs(struct srv_call *c, CUlaunchAttribute *attr, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		CUevent *event;
		void *real;

		if (!launch_attr_travels(&attr[i], &event)) {
			srv_fail(c, CUDA_ERROR_NOT_SUPPORTED);
			return false;
		}
		if (!event)
			continue;
		if (!srv_use(c, KIND_event, (uint64_t)*event, &real))
			return false;
		*event = real;
	}
	return true;
}

static CUresult launch(const struct rec_LAUNCH *a, CUfunction f, CUstream stream, CUlaunchAttribute *attr, unsigned n,
		       void **params)
{
	CUlaunchConfig cfg = {
		.gridDimX = a->grid_x,
		.gridDimY = a->grid_y,
		.gridDimZ = a->grid_z,
		.blockDimX = a->block_x,
		.blockDimY = a->block_y,
		.blockDimZ = a->block_z,
		.sharedMemBytes = a->shared,
		.hStream = stream,
		.attrs = attr,
	};

	if (a->cooperative)
		attr[n++] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};
	cfg.numAttrs = n;
	if (!n)
		return drv_cuda.cuLaunchKernel(f, a->grid_x, a->grid_y, a->grid_z, a->block_x, a->block_y, a->block_z, a->shared,
					       stream, params, NULL);
	if (!drv_cuda.cuLaunchKernelEx)
		return CUDA_ERROR_NOT_SUPPORTED;
	return drv_cuda.cuLaunchKernelEx(&cfg, f, params, NULL);
}

void srv_LAUNCH(struct srv_call *c)
{
	CUlaunchAttribute attr[ATTRS_MAX + 1];
	uint32_t at = sizeof(struct rec_LAUNCH);
	const void *attrs, *packed;
	MODULE_REF *m = NULL;
	struct srv_func *f;
	struct rec_LAUNCH a;
	CUfunction real;
	void *stream;

	if (!srv_body(c, &a, sizeof(a)) || !srv_use(c, KIND_stream, a.hStream, &stream) || !srv_enter(c, a.ctx))
		return;
	f = srv_function(c, a.module, a.index, &m, &real);
	if (!f)
		return;
	if (a.nattrs > ATTRS_MAX || a.param_bytes != f->param_bytes || f->nparams > LAUNCH_PARAMS_MAX) {
		srv_fail(c, CUDA_ERROR_INVALID_VALUE);
		return;
	}
	attrs = srv_bytes(c, &at, a.nattrs * sizeof(*attr));
	packed = attrs ? srv_bytes(c, &at, a.param_bytes) : NULL;
	if (!packed)
		return;
	memcpy(attr, attrs, a.nattrs * sizeof(*attr));
	if (!launch_attrs(c, attr, a.nattrs))
		return;
	{
		void *params[f->nparams + 1];

		for (uint32_t i = 0; i < f->nparams; i++)
			params[i] = (uint8_t *)packed + m->param[f->first_param + i].offset;
		srv_fail(c, launch(&a, real, stream, attr, a.nattrs, f->nparams ? params : NULL));
	}
}

void srv_FUNC_SET(struct srv_call *c)
{
	struct rec_FUNC_SET a;
	MODULE_REF *m = NULL;
	CUfunction real;

	if (!srv_body(c, &a, sizeof(a)) || !srv_enter(c, a.ctx) || !srv_function(c, a.module, a.index, &m, &real))
		return;
	if (!drv_cuda.cuFuncSetAttribute)
		srv_fail(c, CUDA_ERROR_NOT_SUPPORTED);
	else
		srv_fail(c, drv_cuda.cuFuncSetAttribute(real, a.attribute, a.value));
}

void srv_FUNC_CACHE(struct srv_call *c)
{
	struct rec_FUNC_CACHE a;
	MODULE_REF *m = NULL;
	CUfunction real;

	if (!srv_body(c, &a, sizeof(a)) || !srv_enter(c, a.ctx) || !srv_function(c, a.module, a.index, &m, &real))
		return;
	if (!drv_cuda.cuFuncSetCacheConfig)
		srv_fail(c, CUDA_ERROR_NOT_SUPPORTED);
	else
		srv_fail(c, drv_cuda.cuFuncSetCacheConfig(real, a.config));
}

void srv_OCCUPANCY(struct srv_call *c)
{
	struct rep_OCCUPANCY r = {0};
	struct rec_OCCUPANCY a;
	MODULE_REF *m = NULL;
	CUfunction real;

	if (!srv_body(c, &a, sizeof(a)) || !srv_enter(c, a.ctx) || !srv_function(c, a.module, a.index, &m, &real))
		return;
	if (!drv_cuda.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags) {
		srv_fail(c, CUDA_ERROR_NOT_SUPPORTED);
		return;
	}
	srv_fail(c, drv_cuda.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&r.blocks, real, a.block, a.shared, a.flags));
	srv_answer(c, &r, sizeof(r));
}

void srv_CLUSTERS(struct srv_call *c)
{
	CUlaunchAttribute attr = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
	struct rep_CLUSTERS r = {0};
	struct rec_CLUSTERS a;
	MODULE_REF *m = NULL;
	CUlaunchConfig cfg = {.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .attrs = &attr};
	CUfunction real;

	if (!srv_body(c, &a, sizeof(a)) || !srv_enter(c, a.ctx) || !srv_function(c, a.module, a.index, &m, &real))
		return;
	if (!drv_cuda.cuOccupancyMaxPotentialClusterSize || !drv_cuda.cuOccupancyMaxActiveClusters) {
		srv_fail(c, CUDA_ERROR_NOT_SUPPORTED);
		return;
	}
	cfg.blockDimX = a.block_x;
	cfg.blockDimY = a.block_y;
	cfg.blockDimZ = a.block_z;
	cfg.sharedMemBytes = a.shared;
	if (a.cluster_x) {
		attr.value.clusterDim.x = cfg.gridDimX = a.cluster_x;
		attr.value.clusterDim.y = cfg.gridDimY = a.cluster_y;
		attr.value.clusterDim.z = cfg.gridDimZ = a.cluster_z;
		cfg.numAttrs = 1;
	}
	srv_fail(c, a.potential ? drv_cuda.cuOccupancyMaxPotentialClusterSize(&r.clusters, real, &cfg)
				: drv_cuda.cuOccupancyMaxActiveClusters(&r.clusters, real, &cfg));
	srv_answer(c, &r, sizeof(r));
}
