// SPDX-License-Identifier: MIT
/* The driver and its libraries: loaded by name into tables, and the only way to CUDA in the server. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "api/props.h"
#include "lib/log.h"
#include "server/session.h"

struct driver_cuda drv_cuda;
struct driver_cublas drv_cublas;

struct name {
	const char *name;
	bool required;
	void **at;
};

#define X(n, required) {#n, required, (void **)&drv_cuda.n},
static const struct name cuda_names[] = {
#include "driver_cuda.inc"
};
#undef X
#define X(n, required) {#n, required, (void **)&drv_cublas.n},
static const struct name cublas_names[] = {
#include "driver_cublas.inc"
};
#undef X

static void *driver_lib;
static void (*set_print)(void (*)(void *, const char *, size_t), void *); /* the soft GPU's */
static char blas_path[512];

static const char *fill(void *lib, const struct name *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		*names[i].at = dlsym(lib, names[i].name);
		if (!*names[i].at && names[i].required)
			return names[i].name;
	}
	return NULL;
}

int srv_driver_load(const char *lib, const char *blas_lib, char *why, size_t why_size)
{
	const char *missing;
	CUresult r;

	driver_lib = dlopen(lib, RTLD_NOW | RTLD_LOCAL);
	if (!driver_lib) {
		const char *e = dlerror();

		snprintf(why, why_size, "cannot load the driver: %s", e ? e : lib);
		return -ENOENT;
	}
	missing = fill(driver_lib, cuda_names, sizeof(cuda_names) / sizeof(*cuda_names));
	if (missing) {
		snprintf(why, why_size, "%s lacks %s; a driver of CUDA 12.4 or newer is needed", lib, missing);
		return -ENOSYS;
	}
	set_print = (void (*)(void (*)(void *, const char *, size_t), void *))dlsym(driver_lib, "softgpu_set_print");
	if (blas_lib)
		snprintf(blas_path, sizeof(blas_path), "%s", blas_lib);
	r = drv_cuda.cuInit(0);
	if (r) {
		snprintf(why, why_size, "%s: cuInit fails with error %d; look with nvidia-smi whether its GPU works", lib, r);
		return r == CUDA_ERROR_NO_DEVICE ? -ENODEV : -EIO;
	}
	return 0;
}

static void load_cublas(void)
{
	void *lib = *blas_path ? dlopen(blas_path, RTLD_NOW | RTLD_LOCAL) : NULL;
	const char *e = *blas_path ? dlerror() : "none was named";

	if (lib)
		fill(lib, cublas_names, sizeof(cublas_names) / sizeof(*cublas_names));
	else
		rgpu_err("no cuBLAS: %s; install the one that belongs to the driver", e ? e : "unknown");
}

bool srv_need_cublas(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load_cublas);
	return drv_cublas.cublasCreate_v2;
}

bool driver_takes_elf(void)
{
	return !set_print;
}

void driver_set_print(void (*print)(void *, const char *, size_t), void *arg)
{
	if (set_print)
		set_print(print, arg);
}

static void fill_p2p(struct rgpu_props *p, CUdevice dev, int n)
{
	for (int other = 0; other < n && other < RGPU_PROPS_DEVICES; other++) {
		if (other == dev)
			continue;
		for (int a = 1; a < RGPU_PROPS_P2P; a++) {
			int v = 0;

			if (drv_cuda.cuDeviceGetP2PAttribute && !drv_cuda.cuDeviceGetP2PAttribute(&v, a, dev, other))
				p->p2p[a][other] = v > INT8_MAX ? INT8_MAX : v;
		}
	}
}

/* A device that cannot reserve addresses gives no granularity, and is of no use here. */
static int fill_props(struct rgpu_props *p, int i, int n, int version)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = i}};
	size_t total, granularity;
	CUdevice dev;
	CUuuid uuid;

	memset(p, 0, sizeof(*p));
	p->magic = RGPU_PROPS_MAGIC;
	p->size = sizeof(*p);
	p->driver_version = version;
	p->index = i;
	p->nattrs = RGPU_PROPS_ATTRS;
	if (drv_cuda.cuDeviceGet(&dev, i) || drv_cuda.cuDeviceGetUuid_v2(&uuid, dev) ||
	    drv_cuda.cuDeviceGetName(p->name, sizeof(p->name), dev) || drv_cuda.cuDeviceTotalMem_v2(&total, dev) ||
	    drv_cuda.cuMemGetAllocationGranularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM))
		return -EIO;
	if (drv_cuda.cuDeviceGetPCIBusId(p->pci_bus_id, sizeof(p->pci_bus_id), dev))
		p->pci_bus_id[0] = 0;
	memcpy(p->uuid, uuid.bytes, sizeof(p->uuid));
	p->mem_total = total;
	p->granularity = granularity;
	for (int a = 0; a < RGPU_PROPS_ATTRS; a++)
		if (drv_cuda.cuDeviceGetAttribute(&p->attrs[a], a, dev))
			p->attrs[a] = RGPU_PROPS_NONE;
	fill_p2p(p, dev, n);
	return 0;
}

int srv_driver_devices(void *buf, size_t room, uint32_t *driver_version, char *name, size_t name_size)
{
	uint8_t *at = buf;
	int n, version, r;

	if (drv_cuda.cuDriverGetVersion(&version) || drv_cuda.cuDeviceGetCount(&n))
		return -EIO;
	*driver_version = version;
	if (set_print)
		snprintf(name, name_size, "softgpu");
	else
		snprintf(name, name_size, "CUDA %d.%d", version / 1000, version % 1000 / 10);
	for (int i = 0; i < n; i++) {
		struct rgpu_device_entry e = {.props_len = sizeof(struct rgpu_props)};
		struct rgpu_props p;

		if (sizeof(e) + sizeof(p) > room - (at - (uint8_t *)buf))
			return -EMSGSIZE;
		r = fill_props(&p, i, n, version);
		if (r)
			return r;
		memcpy(e.uuid, p.uuid, sizeof(e.uuid));
		memcpy(e.name, p.name, sizeof(e.name));
		e.mem_total = p.mem_total;
		memcpy(at, &e, sizeof(e));
		memcpy(at + sizeof(e), &p, sizeof(p));
		at += (sizeof(e) + sizeof(p) + 7) & ~(size_t)7;
	}
	return at - (uint8_t *)buf;
}
