// SPDX-License-Identifier: MIT
/* Virtual memory management: reserved address ranges, physical memory that can lie in several places, access. */
#include "softgpu/softgpu.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "softgpu/ranges.h"
#include "softgpu/shareable.h"

#define HOST	   SOFTGPU_DEVICES_MAX /* index of host memory below */
#define FILE_BYTES (1ull << 50)

/* Physical memory: a piece of its device's memory file, or a file of its own. */
struct phys {
	struct obj obj;
	CUmemAllocationProp prop;
	int where; /* device index, or HOST */
	int fd;	   /* its own file, which other processes may have, too; −1: none */
	bool imported;
	uint64_t offset, bytes;
	uint64_t id;
	unsigned int owners; /* cuMemCreate's and cuMemRetainAllocationHandle's, each with a cuMemRelease to come */
};

struct reservation {
	uint64_t base, bytes;
};

struct placed {
	uint64_t base, bytes;
	struct phys *phys; /* a reference */
	uint32_t devices;  /* bit i: device i may read and write */
	bool host;	   /* the host may, too: a question of cuMemGetAccess only */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* all below; the arena's lock is taken inside */
static struct reservation *reserved;
static size_t nreserved, reserved_room;
static struct placed *placed; /* sorted by base */
static size_t nplaced, placed_room;
static struct {
	int fd;
	struct ranges space; /* free offsets */
} file[SOFTGPU_DEVICES_MAX + 1];

/* ---- Memory files ---- */

/* With the lock. Offset 0 is never given out, so that it can stand for none. */
static bool file_open(int where)
{
	int fd;

	if (file[where].fd)
		return true;
	fd = memfd_create("softgpu", MFD_CLOEXEC);
	if (fd <= 0 || ftruncate(fd, FILE_BYTES) || !ranges_give(&file[where].space, SOFTGPU_GRANULE, FILE_BYTES)) {
		log_line("cannot make a file for device memory: %s", strerror(errno));
		if (fd > 0)
			close(fd);
		return false;
	}
	file[where].fd = fd;
	return true;
}

static void phys_release(struct obj *o)
{
	struct phys *p = container_of(o, struct phys, obj);

	if (p->fd >= 0)
		close(p->fd);
	if (p->offset) {
		fallocate(file[p->where].fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)p->offset, (off_t)p->bytes);
		pthread_mutex_lock(&lock);
		ranges_give(&file[p->where].space, p->offset, p->offset + p->bytes);
		pthread_mutex_unlock(&lock);
	}
	/* Imported memory is on the account of the process that made it. */
	if (p->where != HOST && !p->imported)
		device_uncharge(&softgpu_device[p->where], p->bytes);
	free(p);
}

static CUresult prop_check(const CUmemAllocationProp *prop, int *where)
{
	if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (prop->requestedHandleTypes & ~(unsigned int)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	switch (prop->location.type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		*where = prop->location.id;
		return device_get(prop->location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
		*where = HOST;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static struct phys *phys_new(int where, uint64_t bytes, const CUmemAllocationProp *prop)
{
	static atomic_ullong next_id = 1ull << 40; /* apart from those of plain allocations */
	struct phys *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	obj_init(&p->obj, OBJ_PHYS, NULL, phys_release);
	p->prop = *prop;
	p->where = where;
	p->fd = -1;
	p->bytes = bytes;
	p->id = atomic_fetch_add(&next_id, 1);
	p->owners = 1;
	return p;
}

/* Takes our reference. */
static CUresult phys_publish(struct phys *p, CUmemGenericAllocationHandle *handle)
{
	bool good = (p->offset || p->fd >= 0) && obj_publish(&p->obj);

	if (good)
		*handle = p->obj.handle;
	obj_put(&p->obj);
	return good ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *prop,
		     unsigned long long flags)
{
	struct phys *p;
	int where;

	TRY(api_enter());
	if (!handle || flags || !bytes || bytes % SOFTGPU_GRANULE)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(prop_check(prop, &where));
	if (where != HOST && !device_charge(&softgpu_device[where], bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	p = phys_new(where, bytes, prop);
	if (!p) {
		if (where != HOST)
			device_uncharge(&softgpu_device[where], bytes);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (prop->requestedHandleTypes) {
		p->fd = shareable_create(where, bytes);
	} else {
		pthread_mutex_lock(&lock);
		if (file_open(where))
			p->offset = ranges_take_low(&file[where].space, bytes, SOFTGPU_GRANULE);
		pthread_mutex_unlock(&lock);
	}
	return phys_publish(p, handle);
}

CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
				      unsigned long long flags)
{
	AUTO_PUT struct phys *p = NULL;
	int fd;

	TRY(api_enter());
	p = obj_get((void *)(uintptr_t)handle, OBJ_PHYS);
	if (!p || !out || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || p->fd < 0)
		return CUDA_ERROR_INVALID_VALUE;
	fd = fcntl(p->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	*(int *)out = fd;
	return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *from, CUmemAllocationHandleType type)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	};
	struct phys *p;
	uint64_t bytes;
	int where, fd;

	TRY(api_enter());
	if (!handle || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	fd = shareable_open((int)(intptr_t)from, &where, &bytes);
	if (fd < 0)
		return CUDA_ERROR_INVALID_VALUE;
	prop.location = (CUmemLocation){where == HOST ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE,
					where == HOST ? 0 : where};
	p = where == HOST || device_get(where) ? phys_new(where, bytes, &prop) : NULL;
	if (!p) {
		close(fd);
		return where == HOST || device_get(where) ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_DEVICE;
	}
	p->imported = true;
	p->fd = fd;
	return phys_publish(p, handle);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	AUTO_PUT struct phys *p = NULL;

	TRY(api_enter());
	p = obj_get((void *)(uintptr_t)handle, OBJ_PHYS);
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	/* With the lock, so that nobody retains in between; our own reference keeps it from going now. */
	pthread_mutex_lock(&lock);
	if (p->owners && !--p->owners)
		obj_retire(&p->obj);
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)
{
	AUTO_PUT struct phys *p = NULL;

	TRY(api_enter());
	p = obj_get((void *)(uintptr_t)handle, OBJ_PHYS);
	if (!p || !prop)
		return CUDA_ERROR_INVALID_VALUE;
	*prop = p->prop;
	return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
				       CUmemAllocationGranularity_flags option)
{
	int where;

	TRY(api_enter());
	if (!granularity || option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(prop_check(prop, &where));
	*granularity = SOFTGPU_GRANULE;
	return CUDA_SUCCESS;
}

/* ---- Address ranges ---- */

CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t bytes, size_t align, CUdeviceptr addr, unsigned long long flags)
{
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;
	uint64_t base = 0;

	TRY(api_enter());
	if (!ptr || !bytes || bytes % SOFTGPU_GRANULE || flags || align & (align - 1))
		return CUDA_ERROR_INVALID_VALUE;
	/* A hint that can't be granted is no error, in CUDA neither. */
	if (addr % (align > SOFTGPU_GRANULE ? align : SOFTGPU_GRANULE))
		addr = 0;
	TRY(arena_init(addr, bytes));
	if (addr)
		base = arena_take(bytes, align, addr);
	if (!base)
		base = arena_take(bytes, align, 0);
	if (!base)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&lock);
	if (nreserved == reserved_room) {
		size_t room = reserved_room ? reserved_room * 2 : 16;
		struct reservation *p = realloc(reserved, room * sizeof(*p));

		if (p) {
			reserved = p;
			reserved_room = room;
		}
	}
	if (nreserved < reserved_room) {
		reserved[nreserved++] = (struct reservation){base, bytes};
		r = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&lock);
	if (r == CUDA_SUCCESS)
		*ptr = base;
	else
		arena_give(base, bytes);
	return r;
}

/* Index of the first mapping that begins above @addr. */
static size_t above(uint64_t addr)
{
	size_t lo = 0, hi = nplaced;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (placed[mid].base > addr)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

/* True when a mapping touches [base, base + bytes). */
static bool touched(uint64_t base, uint64_t bytes)
{
	size_t i = above(base + bytes - 1);

	return i && placed[i - 1].base + placed[i - 1].bytes > base;
}

static struct reservation *reservation_of(uint64_t base, uint64_t bytes)
{
	for (size_t i = 0; i < nreserved; i++)
		if (base - reserved[i].base < reserved[i].bytes && bytes <= reserved[i].bytes - (base - reserved[i].base))
			return &reserved[i];
	return NULL;
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t bytes)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct reservation *v;

	TRY(api_enter());
	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	v = reservation_of(ptr, bytes);
	if (v && v->base == ptr && v->bytes == bytes && !touched(ptr, bytes)) {
		*v = reserved[--nreserved];
		arena_give(ptr, bytes);
		r = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

CUresult cuMemMap(CUdeviceptr ptr, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	AUTO_PUT struct phys *p = NULL;
	CUresult r = CUDA_ERROR_INVALID_VALUE;

	TRY(api_enter());
	p = obj_get((void *)(uintptr_t)handle, OBJ_PHYS);
	/* CUDA wants the offset to be 0 as yet. */
	if (!p || flags || offset || !bytes || ptr % SOFTGPU_GRANULE || bytes % SOFTGPU_GRANULE || bytes > p->bytes)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	if (nplaced == placed_room) {
		size_t room = placed_room ? placed_room * 2 : 64;
		struct placed *q = realloc(placed, room * sizeof(*q));

		if (q) {
			placed = q;
			placed_room = room;
		}
	}
	if (!reservation_of(ptr, bytes) || touched(ptr, bytes)) {
		r = CUDA_ERROR_INVALID_VALUE;
	} else if (nplaced == placed_room ||
		   !arena_map_file(ptr, bytes, p->fd < 0 ? file[p->where].fd : p->fd, p->offset, false)) {
		r = CUDA_ERROR_OUT_OF_MEMORY;
	} else {
		size_t at = above(ptr);

		memmove(&placed[at + 1], &placed[at], (nplaced - at) * sizeof(*placed));
		placed[at] = (struct placed){.base = ptr, .bytes = bytes, .phys = p};
		nplaced++;
		obj_ref(&p->obj);
		r = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

/* The mappings [*first, *last) that [ptr, ptr + bytes) consists of, without holes; whole ones only if so asked. */
static bool span(uint64_t ptr, uint64_t bytes, bool whole, size_t *first, size_t *last)
{
	size_t i = above(ptr);
	uint64_t at, end = ptr + bytes;

	if (!i || end < ptr)
		return false;
	*first = --i;
	if (ptr - placed[i].base >= placed[i].bytes || (whole && placed[i].base != ptr))
		return false;
	for (at = ptr; i < nplaced && at < end; i++) {
		if (placed[i].base > at)
			return false;
		at = placed[i].base + placed[i].bytes;
	}
	*last = i;
	return whole ? at == end : at >= end;
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t bytes)
{
	size_t first, last;

	TRY(api_enter());
	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	for (;;) {
		struct phys *gone;

		/* One at a time: dropping the memory's reference needs the lock released. */
		pthread_mutex_lock(&lock);
		if (!span(ptr, bytes, true, &first, &last)) {
			pthread_mutex_unlock(&lock);
			return CUDA_ERROR_INVALID_VALUE;
		}
		gone = placed[last - 1].phys;
		bytes = placed[last - 1].base - ptr;
		arena_unmap(placed[last - 1].base, placed[last - 1].bytes);
		nplaced--;
		memmove(&placed[last - 1], &placed[last], (nplaced - (last - 1)) * sizeof(*placed));
		pthread_mutex_unlock(&lock);
		obj_put(&gone->obj);
		if (!bytes)
			return CUDA_SUCCESS;
	}
}

CUresult cuMemSetAccess(CUdeviceptr ptr, size_t bytes, const CUmemAccessDesc *desc, size_t count)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	size_t first, last;

	TRY(api_enter());
	if (!bytes || !desc || !count || ptr % SOFTGPU_GRANULE || bytes % SOFTGPU_GRANULE)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		if (desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
		    desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			return CUDA_ERROR_INVALID_VALUE;
		/* A granule is accessible or not: there is no third state (docs/limits.md). */
		if (desc[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READ)
			return CUDA_ERROR_NOT_SUPPORTED;
		if (desc[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE ? !device_get(desc[i].location.id)
									 : desc[i].location.type == CU_MEM_LOCATION_TYPE_INVALID)
			return CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_lock(&lock);
	/* Access is a mapping's as a whole. */
	if (span(ptr, bytes, true, &first, &last)) {
		for (size_t k = first; k < last; k++) {
			for (size_t i = 0; i < count; i++) {
				bool on = desc[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;

				if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
					placed[k].host = on;
				else if (on)
					placed[k].devices |= 1u << desc[i].location.id;
				else
					placed[k].devices &= ~(1u << desc[i].location.id);
			}
			arena_set_access(placed[k].base, placed[k].bytes, placed[k].devices);
		}
		r = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr)
{
	size_t i;
	bool on = false, found;

	TRY(api_enter());
	if (!flags || !location)
		return CUDA_ERROR_INVALID_VALUE;
	if (location->type == CU_MEM_LOCATION_TYPE_DEVICE && !device_get(location->id))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	i = above(ptr);
	found = i && ptr - placed[i - 1].base < placed[i - 1].bytes;
	if (found)
		on = location->type == CU_MEM_LOCATION_TYPE_DEVICE ? placed[i - 1].devices >> location->id & 1
								   : placed[i - 1].host;
	pthread_mutex_unlock(&lock);
	if (!found)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = on ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
	return CUDA_SUCCESS;
}

/* A mapping whose handle was released before gets a new one. */
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	uint64_t ptr = (uintptr_t)addr;
	size_t i;

	TRY(api_enter());
	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	i = above(ptr);
	if (i && ptr - placed[i - 1].base < placed[i - 1].bytes) {
		struct phys *p = placed[i - 1].phys;

		r = p->owners || obj_publish(&p->obj) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
		if (r == CUDA_SUCCESS) {
			p->owners++;
			*handle = p->obj.handle;
		}
	}
	pthread_mutex_unlock(&lock);
	return r;
}

bool vmm_find(uint64_t addr, struct mapping *out)
{
	bool found;
	size_t i;

	pthread_mutex_lock(&lock);
	i = above(addr);
	found = i && addr - placed[i - 1].base < placed[i - 1].bytes;
	if (found) {
		const struct reservation *v = reservation_of(addr, 1);

		*out = (struct mapping){
			.base = placed[i - 1].base,
			.bytes = placed[i - 1].bytes,
			.id = placed[i - 1].phys->id,
			.device = placed[i - 1].phys->where == HOST ? -1 : placed[i - 1].phys->where,
			.reserved_base = v->base,
			.reserved_bytes = v->bytes,
		};
	}
	pthread_mutex_unlock(&lock);
	return found;
}
