// SPDX-License-Identifier: MIT
/* Kernel launches: the checks at the call, the parameters' copy, and the run on a stream's thread. */
#include "softgpu/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct launch_op {
	struct op op;
	struct function *f; /* a reference */
	struct ptx_launch l;
	unsigned char params[]; /* as the kernel sees them */
};

static CUresult report(const struct launch_op *o, enum ptx_status status, const struct ptx_fault *fault)
{
	static const struct {
		CUresult error;
		const char *what;
	} table[] = {
		[PTX_NOMEM] = {CUDA_ERROR_OUT_OF_MEMORY, "out of host memory"},
		[PTX_SYNTAX] = {CUDA_ERROR_LAUNCH_FAILED, "bad code"},
		[PTX_UNSUPPORTED] = {CUDA_ERROR_LAUNCH_FAILED, "unsupported instruction"},
		[PTX_ILLEGAL_ADDRESS] = {CUDA_ERROR_ILLEGAL_ADDRESS, "illegal address"},
		[PTX_MISALIGNED] = {CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address"},
		[PTX_ILLEGAL_INSTRUCTION] = {CUDA_ERROR_ILLEGAL_INSTRUCTION, "illegal instruction"},
		[PTX_ASSERT] = {CUDA_ERROR_ASSERT, "assertion failed"},
		[PTX_DEADLOCK] = {CUDA_ERROR_LAUNCH_FAILED, "deadlock: every thread waits at a barrier that cannot complete"},
		[PTX_OUT_OF_RESOURCES] = {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "out of resources"},
		[PTX_STACK] = {CUDA_ERROR_HARDWARE_STACK_ERROR, "stack overflow"},
		[PTX_TIMEOUT] = {CUDA_ERROR_LAUNCH_TIMEOUT, "timed out"},
		[PTX_CANCELLED] = {CUDA_ERROR_LAUNCH_FAILED, "cancelled"},
	};
	bool address = status == PTX_ILLEGAL_ADDRESS || status == PTX_MISALIGNED;
	char addr[32] = "";

	/* The context is being destroyed: nobody is left to tell. */
	if (status == PTX_CANCELLED)
		return CUDA_SUCCESS;
	if (address)
		snprintf(addr, sizeof(addr), " 0x%llx", (unsigned long long)fault->addr);
	log_line("kernel %s: %s%s block (%u,%u,%u) thread (%u,%u,%u) PTX line %u%s%s",
		 fault->kernel ? fault->kernel : o->f->info->name, table[status].what, addr, fault->block[0], fault->block[1],
		 fault->block[2], fault->thread[0], fault->thread[1], fault->thread[2], fault->line, fault->text[0] ? ": " : "",
		 fault->text);
	return table[status].error;
}

/* RGPU_SOFTGPU_LAUNCH_TIMEOUT_MS: how long one launch may run, as a display's watchdog has it; 0 or unset: for ever. */
static uint64_t deadline(void)
{
	const char *limit = getenv("RGPU_SOFTGPU_LAUNCH_TIMEOUT_MS");
	unsigned long long ms = limit ? strtoull(limit, NULL, 10) : 0;
	struct timespec t;

	if (!ms || ms > 1ull << 40)
		return 0;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec + ms * 1000000u;
}

static CUresult launch_run(struct op *op, struct stream *s)
{
	struct launch_op *o = container_of(op, struct launch_op, op);
	struct ptx_fault fault = {0};
	enum ptx_status status;

	o->l.cancel = &s->ctx->cancel;
	o->l.deadline = deadline();
	status = ptx_launch(o->f->ptx, &o->l, &fault);
	return status == PTX_OK ? CUDA_SUCCESS : report(o, status, &fault);
}

static void launch_drop(struct op *op)
{
	struct launch_op *o = container_of(op, struct launch_op, op);

	obj_put(&o->f->obj);
	free(o);
}

/* ---- The checks ---- */

static CUresult check_shape(const CUlaunchConfig *c, const struct function *f, bool cooperative, const struct device *d)
{
	uint64_t threads = (uint64_t)c->blockDimX * c->blockDimY;
	int most;

	if (!c->gridDimX || !c->gridDimY || !c->gridDimZ || !c->blockDimX || !c->blockDimY || !c->blockDimZ)
		return CUDA_ERROR_INVALID_VALUE;
	if (c->gridDimX > INT32_MAX || c->gridDimY > 65535 || c->gridDimZ > 65535)
		return CUDA_ERROR_INVALID_VALUE;
	if (c->blockDimX > 1024 || c->blockDimY > 1024 || c->blockDimZ > 64 || threads * c->blockDimZ > THREADS_BLOCK)
		return CUDA_ERROR_INVALID_VALUE;
	threads *= c->blockDimZ;
	if (c->sharedMemBytes > (unsigned int)atomic_load(&f->max_dyn_shared))
		return CUDA_ERROR_INVALID_VALUE;
	if (f->info->shared_bytes > SMEM_BLOCK_OPTIN)
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	if (threads > f->info->max_threads)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(function_attribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
	if (threads > (unsigned int)most)
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	if (cooperative) {
		uint64_t room = (uint64_t)occupancy_blocks(f, (unsigned int)threads, c->sharedMemBytes) * d->threads;

		if ((uint64_t)c->gridDimX * c->gridDimY > room || (uint64_t)c->gridDimX * c->gridDimY * c->gridDimZ > room)
			return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
	}
	return CUDA_SUCCESS;
}

/* Copies the parameters out of either form; the values are the call's, not those at the time of the run. */
static CUresult copy_params(struct launch_op *o, void **params, void **extra)
{
	const struct ptx_func_info *info = o->f->info;
	const void *buffer = NULL;
	const size_t *bytes = NULL;

	if (params && extra)
		return CUDA_ERROR_INVALID_VALUE;
	if (params) {
		for (uint32_t i = 0; i < info->nparams; i++) {
			if (!params[i])
				return CUDA_ERROR_INVALID_VALUE;
			memcpy(o->params + info->params[i].offset, params[i], info->params[i].size);
		}
		return CUDA_SUCCESS;
	}
	for (; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
		if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
			buffer = extra[1];
		else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
			bytes = extra[1];
		else
			return CUDA_ERROR_INVALID_VALUE;
	}
	if (!info->param_bytes)
		return CUDA_SUCCESS;
	/* Trailing padding may be there or not. */
	if (!buffer || !bytes || *bytes > ((info->param_bytes + 15u) & ~15u))
		return CUDA_ERROR_INVALID_VALUE;
	for (uint32_t i = 0; i < info->nparams; i++)
		if (info->params[i].offset + info->params[i].size > *bytes)
			return CUDA_ERROR_INVALID_VALUE;
	memcpy(o->params, buffer, *bytes < info->param_bytes ? *bytes : info->param_bytes);
	return CUDA_SUCCESS;
}

struct wishes {
	bool cooperative;
	uint32_t cluster[3]; /* 0: none asked for */
	CUevent after[2];    /* recorded behind the kernel: later than they might be, never too early */
	unsigned int nafter;
};

static CUresult read_attributes(const CUlaunchConfig *c, struct wishes *w)
{
	if (c->numAttrs && !c->attrs)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < c->numAttrs; i++) {
		const CUlaunchAttributeValue *v = &c->attrs[i].value;

		switch (c->attrs[i].id) {
		case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
			w->cooperative = v->cooperative;
			break;
		case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
		case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
			if (!v->clusterDim.x || !v->clusterDim.y || !v->clusterDim.z)
				return CUDA_ERROR_INVALID_VALUE;
			if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION)
				break; /* a wish: the cluster's dimension holds */
			w->cluster[0] = v->clusterDim.x;
			w->cluster[1] = v->clusterDim.y;
			w->cluster[2] = v->clusterDim.z;
			break;
		case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
		case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
			if (w->nafter == ARRAY_SIZE(w->after))
				return CUDA_ERROR_INVALID_VALUE;
			w->after[w->nafter++] = c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT
							? v->programmaticEvent.event
							: v->launchCompletionEvent.event;
			break;
		case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
			return CUDA_ERROR_NOT_SUPPORTED;
		/* Permissions and preferences. */
		case CU_LAUNCH_ATTRIBUTE_IGNORE:
		case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
		case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
		case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
		case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
		case CU_LAUNCH_ATTRIBUTE_PRIORITY:
		case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
		case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
		case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
			break;
		default:
			return CUDA_ERROR_INVALID_VALUE;
		}
	}
	return CUDA_SUCCESS;
}

/* The grid is whole clusters; a kernel may count it in those. */
static CUresult shape_clusters(CUlaunchConfig *c, const struct function *f, struct wishes *w)
{
	unsigned int *const grid[3] = {&c->gridDimX, &c->gridDimY, &c->gridDimZ};
	uint32_t shape[3];

	TRY(function_cluster(f, w->cluster, shape));
	for (int d = 0; d < 3; d++) {
		if (f->info->blocks_are_clusters && *grid[d] <= UINT32_MAX / shape[d])
			*grid[d] *= shape[d];
		if (*grid[d] % shape[d])
			return CUDA_ERROR_INVALID_CLUSTER_SIZE;
	}
	if (w->cluster[0] || shape[0] * shape[1] * shape[2] > 1)
		memcpy(w->cluster, shape, sizeof(w->cluster));
	return CUDA_SUCCESS;
}

static struct op *queueable(struct launch_op *o, const CUlaunchConfig *c, struct function *f, const struct wishes *w,
			    struct device *d)
{
	obj_ref(&f->obj);
	o->f = f;
	o->l = (struct ptx_launch){
		.grid = {c->gridDimX, c->gridDimY, c->gridDimZ},
		.block = {c->blockDimX, c->blockDimY, c->blockDimZ},
		.cluster = {w->cluster[0], w->cluster[1], w->cluster[2]},
		.dyn_shared = c->sharedMemBytes,
		.params = o->params,
		.threads = d->threads,
		.cooperative = w->cooperative,
		.print = print_device_text,
		.condition = cond_set,
	};
	return &o->op;
}

/* ---- In graphs ---- */

/* The attributes are the node's; a cooperative launch is one of them. */
static CUresult capture(struct stream *s, const CUlaunchConfig *c, CUfunction function, const struct wishes *w, void **params,
			void **extra)
{
	CUlaunchAttribute attr[c->numAttrs + 1];
	struct gparams p = {
		.type = CU_GRAPH_NODE_TYPE_KERNEL,
		.kernel = {.func = function,
			   .ctx = (CUcontext)s->ctx->obj.handle,
			   .grid = {c->gridDimX, c->gridDimY, c->gridDimZ},
			   .block = {c->blockDimX, c->blockDimY, c->blockDimZ},
			   .shared = c->sharedMemBytes},
	};
	struct gstream gs = graph_stream(s);
	unsigned int n = c->numAttrs;
	CUresult r;

	if (w->nafter)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (n)
		memcpy(attr, c->attrs, n * sizeof(*attr));
	if (w->cooperative)
		attr[n++] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value = {.cooperative = 1}};
	r = gkernel_pack(&p.kernel, function, params, extra);
	if (r == CUDA_SUCCESS)
		r = gkernel_set_attrs(&p.kernel, attr, n);
	if (r != CUDA_SUCCESS) {
		gparams_free(&p);
		return r;
	}
	return graph_capture(&gs, &p);
}

static CUresult of_node(const struct gkernel *k, CUlaunchConfig *c, struct wishes *w)
{
	*c = (CUlaunchConfig){
		.gridDimX = k->grid[0],
		.gridDimY = k->grid[1],
		.gridDimZ = k->grid[2],
		.blockDimX = k->block[0],
		.blockDimY = k->block[1],
		.blockDimZ = k->block[2],
		.sharedMemBytes = k->shared,
		.attrs = k->attr,
		.numAttrs = k->nattrs,
	};
	TRY(read_attributes(c, w));
	return w->nafter ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

CUresult launch_check(const struct gkernel *k)
{
	AUTO_PUT struct ctx *ctx = NULL;
	AUTO_PUT struct function *f = NULL;
	struct wishes w = {0};
	CUlaunchConfig c;

	TRY(ctx_resolve(k->ctx, &ctx));
	TRY(function_resolve(k->func ? k->func : (CUfunction)k->kern, ctx, &f));
	TRY(of_node(k, &c, &w));
	TRY(shape_clusters(&c, f, &w));
	return check_shape(&c, f, w.cooperative, ctx->dev);
}

CUresult launch_op_of(const struct gkernel *k, struct ctx *ctx, struct op **op)
{
	AUTO_PUT struct function *f = NULL;
	struct wishes w = {0};
	struct launch_op *o;
	CUlaunchConfig c;

	TRY(function_resolve(k->func ? k->func : (CUfunction)k->kern, ctx, &f));
	TRY(of_node(k, &c, &w));
	TRY(shape_clusters(&c, f, &w));
	o = op_new(sizeof(*o) + k->param_bytes, launch_run, launch_drop);
	if (!o)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(o->params, k->packed, k->param_bytes);
	*op = queueable(o, &c, f, &w, ctx->dev);
	return CUDA_SUCCESS;
}

static CUresult launch(CUlaunchConfig *c, CUfunction function, struct wishes *w, void **params, void **extra)
{
	AUTO_PUT struct stream *s = NULL;
	AUTO_PUT struct function *f = NULL;
	struct launch_op *o;
	CUlaunchConfig given;
	bool capturing;
	CUresult r;

	TRY(stream_resolve(c->hStream, &s));
	TRY(function_resolve(function, s->ctx, &f));
	if (f->obj.ctx != s->ctx)
		return CUDA_ERROR_INVALID_HANDLE;
	given = *c;
	TRY(shape_clusters(c, f, w));
	TRY(check_shape(c, f, w->cooperative, s->ctx->dev));
	TRY(stream_capturing(s, &capturing));
	if (capturing)
		return capture(s, &given, function, w, params, extra);
	o = op_new(sizeof(*o) + f->info->param_bytes, launch_run, launch_drop);
	if (!o)
		return CUDA_ERROR_OUT_OF_MEMORY;
	queueable(o, c, f, w, s->ctx->dev);
	r = copy_params(o, params, extra);
	if (r != CUDA_SUCCESS) {
		launch_drop(&o->op);
		return r;
	}
	TRY(stream_submit(s, &o->op, NULL));
	for (unsigned int i = 0; i < w->nafter; i++)
		TRY(event_record(w->after[i], s, NULL));
	return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
			unsigned int bz, unsigned int shared, CUstream stream, void **params, void **extra)
{
	CUlaunchConfig c = {gx, gy, gz, bx, by, bz, shared, stream, NULL, 0};
	struct wishes w = {0};

	return launch(&c, f, &w, params, extra);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **params, void **extra)
{
	struct wishes w = {0};
	CUlaunchConfig c;

	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	c = *config;
	TRY(read_attributes(&c, &w));
	return launch(&c, f, &w, params, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
				   unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void **params)
{
	CUlaunchConfig c = {gx, gy, gz, bx, by, bz, shared, stream, NULL, 0};
	struct wishes w = {.cooperative = true};

	return launch(&c, f, &w, params, NULL);
}
