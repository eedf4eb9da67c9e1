// SPDX-License-Identifier: MIT
/* Managed memory: shared memory that belongs to the program while the devices are idle. Advice is kept for who asks. */
#include <string.h>
#include "shim/ctx.h"
#include "shim/module.h"
#include "shim/session.h"
#include "shim/shared.h"
#include "shim/unsupported.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* what is kept of advice */

static int enter(struct rgpu_call *c)
{
	int r = rgpu_enter(c, RGPU_NO_OP);

	if (!r)
		r = ctx_use(c, NULL);
	return r ? r : ctx_of(c->context)->fault;
}

CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
	struct rgpu_call c;
	uint64_t addr;
	int r = enter(&c);

	if (!r && (!dptr || !bytesize || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = shared_alloc(ctx_of(c.context)->device, c.context, bytesize, true, flags, &addr);
	if (r)
		return r;
	if (flags == CU_MEM_ATTACH_HOST)
		shared_attached((struct shared *)allocs_at(addr, BLOCK_MANAGED));
	*dptr = addr;
	return CUDA_SUCCESS;
}

/* A variable's address is the server's choice: what is at that address here must be ours to make. */
CUresult cuLibraryGetManaged(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
	struct rgpu_call c;
	CUdeviceptr addr;
	size_t n;
	int r = enter(&c);

	if (!r)
		r = library_managed(&addr, &n, library, name);
	if (!r)
		r = shared_variable(ctx_of(c.context)->device, addr, n);
	if (r == CUDA_ERROR_NOT_SUPPORTED)
		rgpu_unsupported("a __managed__ variable whose address at the server is in use here", NULL);
	if (!r)
		r = shared_pull(c.session, false);
	if (r)
		return r;
	if (dptr)
		*dptr = addr;
	if (bytes)
		*bytes = n;
	return CUDA_SUCCESS;
}

/* The block that contains the range. */
static struct shared *managed(uint64_t ptr, size_t bytes)
{
	struct shared *m = (struct shared *)allocs_at(ptr, BLOCK_MANAGED);

	return m && bytes && bytes <= m->block.asked - (ptr - m->block.range.start) ? m : NULL;
}

static int check_location(CUmemLocation where)
{
	switch (where.type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		return device_find(where.id) ? 0 : CUDA_ERROR_INVALID_DEVICE;
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
		return 0;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUmemLocation location_of(CUdevice dev)
{
	return (CUmemLocation){.type = dev == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE, .id = dev};
}

/* Only what was said of the whole block is kept; of a part, the answer for the whole is that there is no common one. */
static bool is_whole(const struct shared *m, uint64_t ptr, size_t bytes)
{
	return ptr == m->block.range.start && bytes == m->block.asked;
}

/* To a device: what the program wrote goes up now, rather than before the next launch. */
static int prefetch(CUdeviceptr ptr, size_t bytes, CUmemLocation where, unsigned flags, CUstream hStream)
{
	struct rgpu_obj *stream;
	struct rgpu_call c;
	struct shared *m;
	uint64_t wire;
	int r = rgpu_enter(&c, RGPU_NO_OP);

	if (!r)
		r = rgpu_use(&c, KIND_stream, hStream, true, &wire, &stream);
	if (!r)
		r = flags ? CUDA_ERROR_INVALID_VALUE : check_location(where);
	if (r)
		return r;
	m = managed(ptr, bytes);
	if (!m)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	m->prefetched = is_whole(m, ptr, bytes) ? where : (CUmemLocation){0};
	pthread_mutex_unlock(&lock);
	return where.type == CU_MEM_LOCATION_TYPE_DEVICE ? shared_push(c.session, false) : 0;
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count, CUmemLocation location, unsigned int flags, CUstream hStream)
{
	return prefetch(devPtr, count, location, flags, hStream);
}

CUresult cuMemPrefetchAsync_v2_ptsz(CUdeviceptr devPtr, size_t count, CUmemLocation location, unsigned int flags,
				    CUstream hStream)
{
	return prefetch(devPtr, count, location, flags, hStream ? hStream : CU_STREAM_PER_THREAD);
}

CUresult cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count, CUdevice dstDevice, CUstream hStream)
{
	return prefetch(devPtr, count, location_of(dstDevice), 0, hStream);
}

CUresult cuMemPrefetchAsync_ptsz(CUdeviceptr devPtr, size_t count, CUdevice dstDevice, CUstream hStream)
{
	return prefetch(devPtr, count, location_of(dstDevice), 0, hStream ? hStream : CU_STREAM_PER_THREAD);
}

static uint64_t bit_of(CUmemLocation where)
{
	return 1ull << (where.type == CU_MEM_LOCATION_TYPE_DEVICE ? where.id : 63);
}

CUresult cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUmemLocation location)
{
	struct rgpu_call c;
	struct shared *m;
	bool whole;
	int r = enter(&c);

	if (!r && (advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r && (advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION || advice == CU_MEM_ADVISE_SET_ACCESSED_BY ||
		   advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY))
		r = check_location(location);
	if (r)
		return r;
	m = managed(devPtr, count);
	if (!m)
		return CUDA_ERROR_INVALID_VALUE;
	whole = is_whole(m, devPtr, count);
	pthread_mutex_lock(&lock);
	switch (advice) {
	case CU_MEM_ADVISE_SET_READ_MOSTLY:
		m->read_mostly |= whole;
		break;
	case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
		m->read_mostly = false;
		break;
	case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
		m->preferred = whole ? location : (CUmemLocation){0};
		break;
	case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
		m->preferred = (CUmemLocation){0};
		break;
	case CU_MEM_ADVISE_SET_ACCESSED_BY:
		m->accessed_by |= whole ? bit_of(location) : 0;
		break;
	default:
		m->accessed_by &= ~bit_of(location);
	}
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

CUresult cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device)
{
	return cuMemAdvise_v2(devPtr, count, advice, location_of(device));
}

/* As one number: −1 is the host, −2 none. */
static int number_of(CUmemLocation where)
{
	switch (where.type) {
	case CU_MEM_LOCATION_TYPE_INVALID:
		return CU_DEVICE_INVALID;
	case CU_MEM_LOCATION_TYPE_DEVICE:
		return where.id;
	default:
		return CU_DEVICE_CPU;
	}
}

static int answer(const struct shared *m, CUmem_range_attribute attribute, void *data, size_t bytes)
{
	int *out = data;
	size_t n = 0;

	if (!data || bytes < sizeof(int) || (attribute != CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY && bytes != sizeof(int)) ||
	    bytes % sizeof(int))
		return CUDA_ERROR_INVALID_VALUE;
	switch (attribute) {
	case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
		*out = m->read_mostly;
		return 0;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
		*out = number_of(m->preferred);
		return 0;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
		*out = number_of(m->prefetched);
		return 0;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
		*out = m->preferred.type;
		return 0;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
		*out = m->preferred.id;
		return 0;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
		*out = m->prefetched.type;
		return 0;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
		*out = m->prefetched.id;
		return 0;
	case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY:
		for (unsigned i = 0; i < 64 && n < bytes / sizeof(int); i++)
			if (m->accessed_by >> i & 1)
				out[n++] = i == 63 ? CU_DEVICE_CPU : (int)i;
		while (n < bytes / sizeof(int))
			out[n++] = CU_DEVICE_INVALID;
		return 0;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult cuMemRangeGetAttributes(void **data, size_t *dataSizes, CUmem_range_attribute *attributes, size_t numAttributes,
				 CUdeviceptr devPtr, size_t count)
{
	struct rgpu_call c;
	struct shared *m;
	int r = enter(&c);

	if (r)
		return r;
	m = managed(devPtr, count);
	if (!m || !data || !dataSizes || !attributes || !numAttributes)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < numAttributes && !r; i++)
		r = answer(m, attributes[i], data[i], dataSizes[i]);
	pthread_mutex_unlock(&lock);
	return r;
}

CUresult cuMemRangeGetAttribute(void *data, size_t dataSize, CUmem_range_attribute attribute, CUdeviceptr devPtr, size_t count)
{
	return cuMemRangeGetAttributes(&data, &dataSize, &attribute, 1, devPtr, count);
}

/* Attached to the host or to one stream, it is the program's while other streams work. */
static int attach(CUstream hStream, CUdeviceptr dptr, size_t length, unsigned flags)
{
	struct rgpu_obj *stream;
	struct rgpu_call c;
	struct shared *m;
	uint64_t wire;
	int r = rgpu_enter(&c, RGPU_NO_OP);

	if (!r)
		r = rgpu_use(&c, KIND_stream, hStream, true, &wire, &stream);
	if (r)
		return r;
	m = (struct shared *)allocs_at(dptr, BLOCK_MANAGED);
	if (!m || m->block.range.start != dptr || (length && length != m->block.asked))
		return CUDA_ERROR_INVALID_VALUE;
	if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST && flags != CU_MEM_ATTACH_SINGLE)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags == CU_MEM_ATTACH_SINGLE && wire < (uint64_t)CU_STREAM_PER_THREAD)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags != CU_MEM_ATTACH_GLOBAL)
		shared_attached(m);
	return CUDA_SUCCESS;
}

CUresult cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr, size_t length, unsigned int flags)
{
	return attach(hStream, dptr, length, flags);
}

CUresult cuStreamAttachMemAsync_ptsz(CUstream hStream, CUdeviceptr dptr, size_t length, unsigned int flags)
{
	return attach(hStream ? hStream : CU_STREAM_PER_THREAD, dptr, length, flags);
}
