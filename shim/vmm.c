// SPDX-License-Identifier: MIT
/*
 * Virtual memory by the program: it reserves addresses of the session's window and maps physical memory there. The tables are the
 * client's, so that mistakes are told at the call; the server keeps its own.
 */
#include <stdlib.h>
#include <string.h>
#include "rgpu_rpc.h"
#include "shim/handles.h"
#include "shim/ordered.h"
#include "shim/session.h"
#include "shim/token.h"
#include "shim/unsupported.h"

struct phys {
	struct device *device;
	uint64_t bytes;
	CUmemAllocationProp prop;
	uint64_t handle;	   /* its living one */
	unsigned owners, mappings; /* cuMemRelease calls to come; it lives while one of the two is not 0 */
};

struct mapping {
	struct block block; /* first */
	struct phys *phys;
	uint32_t readwrite, read; /* devices by their index in the session */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* all below, and the mappings' fields */
static struct range *reserved;

static struct rgpu_session *the_session(void)
{
	return process_get()->session;
}

static int ready(void)
{
	int r = process_ready();

	return r ? r : session_start(the_session());
}

static uint64_t granularity(void)
{
	return process_get()->devices[0]->props.granularity;
}

unsigned vmm_handle_types(uint64_t addr)
{
	struct block *b;
	unsigned types;

	pthread_mutex_lock(&lock);
	b = allocs_at(addr, BLOCK_VMM);
	types = b ? (unsigned)((struct mapping *)b)->phys->prop.requestedHandleTypes : 0;
	pthread_mutex_unlock(&lock);
	return types;
}

bool vmm_reserved(uint64_t addr, uint64_t *start, uint64_t *bytes)
{
	struct range *r;

	pthread_mutex_lock(&lock);
	r = ranges_find(reserved, addr);
	if (r) {
		*start = r->start;
		*bytes = r->bytes;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr, unsigned long long flags)
{
	struct window *w;
	struct range *v;
	int r = ready();

	if (r)
		return r;
	if (!ptr || !size || size % granularity() || flags || (alignment & (alignment - 1)))
		return CUDA_ERROR_INVALID_VALUE;
	v = calloc(1, sizeof(*v));
	if (!v)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (alignment < granularity())
		alignment = granularity();
	w = &the_session()->window;
	v->bytes = size;
	pthread_mutex_lock(&w->lock);
	/* The address is a wish. */
	if (addr && addr % alignment == 0 && size <= w->size && space_take_at(w->space, addr, size))
		v->start = addr;
	else
		v->start = size <= w->size ? space_take(w->space, size, alignment) : 0;
	pthread_mutex_unlock(&w->lock);
	if (!v->start) {
		free(v);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ptr = v->start;
	pthread_mutex_lock(&lock);
	ranges_insert(&reserved, v);
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
	struct window *w;
	struct range *v;
	int r = ready();

	if (r)
		return r;
	pthread_mutex_lock(&lock);
	v = ranges_find(reserved, ptr);
	if (!v || v->start != ptr || v->bytes != size || allocs_touch(ptr, size)) {
		pthread_mutex_unlock(&lock);
		return CUDA_ERROR_INVALID_VALUE;
	}
	ranges_remove(&reserved, v);
	pthread_mutex_unlock(&lock);
	w = &the_session()->window;
	pthread_mutex_lock(&w->lock);
	space_give(w->space, ptr, size);
	pthread_mutex_unlock(&w->lock);
	free(v);
	return CUDA_SUCCESS;
}

static int check_prop(const CUmemAllocationProp *prop, struct device **d)
{
	if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if ((unsigned)prop->requestedHandleTypes & ~TOKEN_TYPES)
		return rgpu_unsupported("physical memory with handles of another system", NULL);
	if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return rgpu_unsupported("cuMemCreate of host memory", NULL);
	*d = device_find(prop->location.id);
	if (!*d)
		return CUDA_ERROR_INVALID_DEVICE;
	return !prop->requestedHandleTypes || device_attribute(*d, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED)
		       ? 0
		       : CUDA_ERROR_NOT_SUPPORTED;
}

static int create(struct device *d, uint64_t wire, uint64_t bytes)
{
	struct rgpu_call c = {.op = OP_MEM_CREATE, .session = d->session};

	return rpc_MEM_CREATE(&c, wire, d->index, bytes);
}

static void own(struct rgpu_obj *obj, struct phys *p, struct device *d, uint64_t bytes)
{
	p->device = d;
	p->bytes = bytes;
	p->handle = obj->handle;
	p->owners = 1;
	obj->data = p;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop, unsigned long long flags)
{
	struct rgpu_obj *obj;
	struct device *d;
	struct phys *p;
	int r = ready();

	if (r)
		return r;
	if (!handle || !size || flags || size % granularity())
		return CUDA_ERROR_INVALID_VALUE;
	r = check_prop(prop, &d);
	if (r)
		return r;
	obj = handle_new(KIND_memhandle, NULL);
	p = calloc(1, sizeof(*p));
	r = obj && p ? create(d, obj->handle, size) : CUDA_ERROR_OUT_OF_MEMORY;
	/* What we keep leased for later allocations must not stand in the way. */
	if (r == CUDA_ERROR_OUT_OF_MEMORY && obj && p && (r = heap_make_room(d)) == 0)
		r = create(d, obj->handle, size);
	if (r) {
		if (obj)
			handle_free(obj);
		free(p);
		return r;
	}
	own(obj, p, d, size);
	p->prop = *prop;
	p->prop.allocFlags.compressionType = 0;
	*handle = obj->handle;
	return CUDA_SUCCESS;
}

/* With the lock. */
static struct phys *find(CUmemGenericAllocationHandle handle, struct rgpu_obj **obj)
{
	*obj = handle_find(KIND_memhandle, handle);
	return *obj ? (*obj)->data : NULL;
}

static void put(struct phys *p)
{
	if (!p->owners && !p->mappings)
		free(p);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	struct rgpu_obj *obj;
	struct phys *p;
	int r = ready();

	if (r)
		return r;
	pthread_mutex_lock(&lock);
	p = find(handle, &obj);
	if (!p) {
		r = CUDA_ERROR_INVALID_VALUE;
	} else if (!--p->owners) {
		struct rgpu_call c = {.op = OP_MEM_RELEASE, .session = p->device->session};

		r = rpc_MEM_RELEASE(&c, handle);
		handle_free(obj);
		put(p);
	}
	pthread_mutex_unlock(&lock);
	return r;
}

/* The offset must be 0, as CUDA has it. */
CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	struct rgpu_obj *obj;
	struct mapping *m;
	struct range *v;
	struct phys *p;
	int r = ready();

	if (r)
		return r;
	if (!size || offset || flags || ptr % granularity() || size % granularity())
		return CUDA_ERROR_INVALID_VALUE;
	m = calloc(1, sizeof(*m));
	if (!m)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&lock);
	p = find(handle, &obj);
	v = ranges_find(reserved, ptr);
	if (!p || size > p->bytes || !v || size > v->bytes - (ptr - v->start) || allocs_touch(ptr, size)) {
		r = CUDA_ERROR_INVALID_VALUE;
	} else {
		struct rgpu_call c = {.op = OP_MEM_MAP, .session = p->device->session};

		r = rpc_MEM_MAP(&c, ptr, size, handle);
	}
	if (!r) {
		m->block.kind = BLOCK_VMM;
		m->block.range.start = ptr;
		m->block.range.bytes = m->block.asked = size;
		m->block.device = p->device;
		m->block.closed = true;
		m->phys = p;
		p->mappings++;
		allocs_enter(&m->block);
		m = NULL;
	}
	pthread_mutex_unlock(&lock);
	free(m);
	return r;
}

/* The mapping that begins at @addr and fits into @bytes. */
static struct mapping *mapping_at(uint64_t addr, uint64_t bytes)
{
	struct block *b = allocs_at(addr, BLOCK_VMM);

	return b && b->range.start == addr && b->range.bytes <= bytes ? (struct mapping *)b : NULL;
}

/* [ptr, ptr + size) is whole mappings side by side. */
static bool is_mapped(uint64_t ptr, uint64_t size)
{
	struct mapping *m;

	while (size && (m = mapping_at(ptr, size))) {
		ptr += m->block.range.bytes;
		size -= m->block.range.bytes;
	}
	return !size;
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	int r = ready();

	if (r)
		return r;
	pthread_mutex_lock(&lock);
	if (!size || !is_mapped(ptr, size))
		r = CUDA_ERROR_INVALID_VALUE;
	while (!r && size) {
		struct mapping *m = mapping_at(ptr, size);
		struct rgpu_call c = {.op = OP_MEM_UNMAP, .session = m->block.device->session};
		uint64_t bytes = m->block.range.bytes;

		r = rpc_MEM_UNMAP(&c, ptr, bytes);
		allocs_leave(ptr, BLOCK_VMM);
		m->phys->mappings--;
		put(m->phys);
		free(m);
		ptr += bytes;
		size -= bytes;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	uint32_t readwrite = 0, read = 0, none = 0;
	int r = ready();

	if (r)
		return r;
	if (!size || !desc || !count)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		struct device *d = device_find(desc[i].location.id);

		if (desc[i].location.type == CU_MEM_LOCATION_TYPE_HOST || desc[i].location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA)
			return rgpu_unsupported("cuMemSetAccess for the host", NULL);
		if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || !d)
			return CUDA_ERROR_INVALID_VALUE;
		switch (desc[i].flags) {
		case CU_MEM_ACCESS_FLAGS_PROT_NONE:
			none |= 1u << d->index;
			break;
		case CU_MEM_ACCESS_FLAGS_PROT_READ:
			read |= 1u << d->index;
			break;
		case CU_MEM_ACCESS_FLAGS_PROT_READWRITE:
			readwrite |= 1u << d->index;
			break;
		default:
			return CUDA_ERROR_INVALID_VALUE;
		}
	}
	pthread_mutex_lock(&lock);
	if (!is_mapped(ptr, size)) {
		r = CUDA_ERROR_INVALID_VALUE;
	} else {
		struct rgpu_call c = {.op = OP_MEM_ACCESS, .session = the_session()};

		r = rpc_MEM_ACCESS(&c, ptr, size, readwrite, read, none);
	}
	while (!r && size) {
		struct mapping *m = mapping_at(ptr, size);

		m->readwrite = (m->readwrite | readwrite) & ~(read | none);
		m->read = (m->read | read) & ~(readwrite | none);
		__atomic_store_n(&m->block.closed, !(m->readwrite | m->read), __ATOMIC_RELAXED);
		ptr += m->block.range.bytes;
		size -= m->block.range.bytes;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr)
{
	struct device *d;
	struct block *b;
	int r = ready();

	if (r)
		return r;
	if (!flags || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE || !(d = device_find(location->id)))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	b = allocs_at(ptr, BLOCK_VMM);
	if (b) {
		const struct mapping *m = (struct mapping *)b;

		*flags = m->readwrite >> d->index & 1 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
			 : m->read >> d->index & 1    ? CU_MEM_ACCESS_FLAGS_PROT_READ
						      : CU_MEM_ACCESS_FLAGS_PROT_NONE;
	} else {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
				       CUmemAllocationGranularity_flags option)
{
	struct device *d;
	int r = process_ready();

	if (r)
		return r;
	if (!granularity || (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM && option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED))
		return CUDA_ERROR_INVALID_VALUE;
	r = check_prop(prop, &d);
	if (!r)
		*granularity = d->props.granularity;
	return r;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)
{
	struct rgpu_obj *obj;
	struct phys *p;
	int r = ready();

	if (r || !prop)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	p = find(handle, &obj);
	if (p)
		*prop = p->prop;
	pthread_mutex_unlock(&lock);
	return p ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* A mapping whose handle was released gets a new one. */
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
	struct block *b;
	int r = ready();

	if (r || !handle)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	b = allocs_at((uint64_t)addr, BLOCK_VMM);
	if (b) {
		struct phys *p = ((struct mapping *)b)->phys;

		if (!p->owners) {
			struct rgpu_call c = {.op = OP_MEM_RETAIN, .session = p->device->session};
			struct rgpu_obj *obj = handle_new(KIND_memhandle, NULL);

			r = obj ? rpc_MEM_RETAIN(&c, obj->handle, (uint64_t)addr) : CUDA_ERROR_OUT_OF_MEMORY;
			if (!r) {
				obj->data = p;
				p->handle = obj->handle;
			} else if (obj) {
				handle_free(obj);
			}
		}
		if (!r) {
			p->owners++;
			*handle = p->handle;
		}
	} else {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

/* ---- Between processes ---- */

CUresult cuMemExportToShareableHandle(void *shareableHandle, CUmemGenericAllocationHandle handle,
				      CUmemAllocationHandleType handleType, unsigned long long flags)
{
	struct token t = token_new(TOKEN_MEMORY);
	struct rgpu_obj *obj;
	struct phys *p;
	uint64_t start;
	int r = ready();

	if (r)
		return r;
	pthread_mutex_lock(&lock);
	p = find(handle, &obj);
	if (!p || !shareableHandle || flags || !((unsigned)p->prop.requestedHandleTypes & (unsigned)handleType)) {
		r = CUDA_ERROR_INVALID_VALUE;
	} else {
		struct rgpu_call c = {.op = OP_MEM_EXPORT, .session = p->device->session};

		r = rpc_MEM_EXPORT(&c, handle, 0, &start, t.words);
		t.bytes = p->bytes;
		t.types = (unsigned)p->prop.requestedHandleTypes;
	}
	pthread_mutex_unlock(&lock);
	return r ? r : token_out(&t, handleType, shareableHandle);
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *osHandle,
					CUmemAllocationHandleType shHandleType)
{
	struct rgpu_call c = {.op = OP_MEM_IMPORT};
	struct rgpu_obj *obj;
	struct phys *p;
	struct token t;
	uint64_t bytes;
	uint32_t device;
	int r = ready();

	if (r)
		return r;
	if (!handle || token_in(TOKEN_MEMORY, osHandle, shHandleType, &t))
		return CUDA_ERROR_INVALID_VALUE;
	c.session = the_session();
	obj = handle_new(KIND_memhandle, NULL);
	p = calloc(1, sizeof(*p));
	r = obj && p ? rpc_MEM_IMPORT(&c, obj->handle, t.name, TOKEN_NAME, &bytes, &device) : CUDA_ERROR_OUT_OF_MEMORY;
	if (!r && device >= c.session->ndevices)
		r = CUDA_ERROR_INVALID_DEVICE;
	if (r) {
		if (obj)
			handle_free(obj);
		free(p);
		return r == CUDA_ERROR_INVALID_HANDLE ? CUDA_ERROR_INVALID_VALUE : r;
	}
	own(obj, p, c.session->devices[device], bytes);
	p->prop = (CUmemAllocationProp){
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = t.types,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, p->device->ordinal},
	};
	*handle = obj->handle;
	return CUDA_SUCCESS;
}
