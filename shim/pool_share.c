// SPDX-License-Identifier: MIT
/* Memory pools that processes share: a pool has no memory of its own to hand over, its allocations go one by one. */
#include <stdlib.h>
#include <string.h>
#include "shim/ctx.h"
#include "shim/ipc.h"
#include "shim/ordered.h"
#include "shim/session.h"

CUresult cuMemPoolExportToShareableHandle(void *handle_out, CUmemoryPool pool, CUmemAllocationHandleType handleType,
					  unsigned long long flags)
{
	struct token t = token_new(TOKEN_POOL);
	struct pool *p;
	int r = pool_find(pool, &p);

	if (r)
		return r;
	if (!handle_out || flags || p->imported || !((unsigned)p->props.handleTypes & (unsigned)handleType))
		return CUDA_ERROR_INVALID_VALUE;
	_Static_assert(RGPU_UUID_LEN == 16, "half a name");
	memcpy(t.name, p->device->props.uuid, RGPU_UUID_LEN);
	t.words[2] = p->number;
	return token_out(&t, handleType, handle_out);
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool_out, void *handle, CUmemAllocationHandleType handleType,
					    unsigned long long flags)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	struct process *all = process_get();
	struct device *d = NULL;
	struct rgpu_obj *obj;
	struct pool *p;
	struct token t;
	int r = process_ready();

	if (r)
		return r;
	if (!pool_out || flags || token_in(TOKEN_POOL, handle, handleType, &t))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < all->ndevices && !d; i++)
		if (!memcmp(all->devices[i]->props.uuid, t.name, RGPU_UUID_LEN))
			d = all->devices[i];
	if (!d)
		return CUDA_ERROR_INVALID_DEVICE;
	props.location.id = d->ordinal;
	obj = pool_new(d, &props);
	if (!obj)
		return CUDA_ERROR_OUT_OF_MEMORY;
	p = obj->data;
	p->imported = true;
	p->number = t.words[2];
	*pool_out = (CUmemoryPool)obj->handle;
	return CUDA_SUCCESS;
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *shareData_out, CUdeviceptr ptr)
{
	struct block b;
	struct pool *p;
	struct token t;
	int r = process_ready();

	if (r)
		return r;
	if (!shareData_out || !heap_find(ptr, &b) || b.kind != BLOCK_HEAP || !b.pool || pool_find((CUmemoryPool)b.pool, &p) ||
	    !p->props.handleTypes)
		return CUDA_ERROR_INVALID_VALUE;
	r = ipc_export(&b, &t);
	if (r)
		return r;
	t.types = (unsigned)p->props.handleTypes;
	t.serial = p->number;
	memcpy(shareData_out, &t, sizeof(t));
	return CUDA_SUCCESS;
}

/* Its pieces belong to a context, as all addresses: to the current one. */
CUresult cuMemPoolImportPointer(CUdeviceptr *ptr_out, CUmemoryPool pool, CUmemPoolPtrExportData *shareData)
{
	struct rgpu_call c;
	struct token t;
	struct pool *p;
	int r = rgpu_enter(&c, RGPU_NO_OP);

	if (!r)
		r = ctx_use(&c, NULL);
	if (!r)
		r = pool_find(pool, &p);
	if (r)
		return r;
	if (!ptr_out || !shareData || !p->imported || token_take(TOKEN_PIECE, shareData, &t) || !t.types || t.serial != p->number)
		return CUDA_ERROR_INVALID_VALUE;
	return ipc_open(&c, &t, (uint64_t)pool, pool_access(p), ptr_out);
}
