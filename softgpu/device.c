// SPDX-License-Identifier: MIT
/* The soft devices: how many, what they are called, how large they are, what they say about themselves. */
#include "softgpu/softgpu.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MEM_MIB_DEFAULT 4096
#define MEM_MIB_MAX	(1u << 24)
#define THREADS_MAX	1024

struct device softgpu_device[SOFTGPU_DEVICES_MAX];
int softgpu_devices;

/* A number from the environment; a bad one is an error, not a default. */
static bool number(const char *name, long fallback, long lo, long hi, long *out)
{
	const char *s = getenv(name);
	char *end;

	*out = fallback;
	if (!s || !*s)
		return true;
	errno = 0;
	*out = strtol(s, &end, 10);
	if (!errno && !*end && *out >= lo && *out <= hi)
		return true;
	log_line("%s=%s: want a number from %ld to %ld", name, s, lo, hi);
	return false;
}

static unsigned int host_threads(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return 1;
	return CPU_COUNT(&set);
}

/* FNV-1a of the machine's id and the index: the same in every process of this host, another on the next. */
static void make_uuid(CUuuid *uuid, int index)
{
	char id[128] = "";
	FILE *f = fopen("/etc/machine-id", "r");
	uint64_t h[2] = {0xcbf29ce484222325ull, 0x84222325cbf29ce4ull};

	if (f) {
		if (!fgets(id, 64, f))
			id[0] = 0;
		fclose(f);
	}
	if (!id[0])
		gethostname(id, 64);
	snprintf(id + strnlen(id, 64), 32, "softgpu%d", index);
	for (int k = 0; k < 2; k++)
		for (const char *p = id; *p; p++)
			h[k] = (h[k] ^ (uint8_t)*p) * 0x100000001b3ull;
	memcpy(uuid->bytes, h, sizeof(uuid->bytes));
	uuid->bytes[6] = (char)((uuid->bytes[6] & 0x0f) | 0x80); /* version 8, custom */
	uuid->bytes[8] = (char)((uuid->bytes[8] & 0x3f) | 0x80);
}

CUresult devices_init(void)
{
	long n, mib, threads;

	if (!number("RGPU_SOFTGPU_DEVICES", 1, 0, SOFTGPU_DEVICES_MAX, &n) ||
	    !number("RGPU_SOFTGPU_MEM_MIB", MEM_MIB_DEFAULT, 1, MEM_MIB_MAX, &mib) ||
	    !number("RGPU_SOFTGPU_THREADS", host_threads(), 1, THREADS_MAX, &threads))
		return CUDA_ERROR_INVALID_VALUE;
	if (!n)
		return CUDA_ERROR_NO_DEVICE;
	for (int i = 0; i < n; i++) {
		struct device *d = &softgpu_device[i];

		d->index = i;
		d->total = (uint64_t)mib << 20;
		d->threads = (unsigned int)threads;
		snprintf(d->name, sizeof(d->name), "rgpu softgpu (%ld thread%s)", threads, threads == 1 ? "" : "s");
		make_uuid(&d->uuid, i);
		TRY(primary_init(d));
		TRY(pool_init(d));
	}
	softgpu_devices = (int)n;
	return CUDA_SUCCESS;
}

struct device *device_get(CUdevice dev)
{
	return dev >= 0 && dev < softgpu_devices ? &softgpu_device[dev] : NULL;
}

bool device_charge(struct device *d, uint64_t bytes)
{
	unsigned long long used = atomic_load(&d->used);

	do {
		if (bytes > d->total || used > d->total - bytes)
			return false;
	} while (!atomic_compare_exchange_weak(&d->used, &used, used + bytes));
	return true;
}

void device_uncharge(struct device *d, uint64_t bytes)
{
	atomic_fetch_sub(&d->used, bytes);
}

static CUresult enter(CUdevice dev, const void *out, struct device **d)
{
	TRY(api_enter());
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*d = device_get(dev);
	return *d ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetCount(int *count)
{
	TRY(api_enter());
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = softgpu_devices;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	struct device *d;

	TRY(enter(ordinal, device, &d));
	*device = ordinal;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
	struct device *d;

	TRY(enter(dev, name, &d));
	if (len <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(name, (size_t)len, "%s", d->name);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
	struct device *d;

	TRY(enter(dev, uuid, &d));
	*uuid = d->uuid;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
	return cuDeviceGetUuid_v2(uuid, dev);
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
	struct device *d;

	TRY(enter(dev, bytes, &d));
	*bytes = d->total;
	return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice dev)
{
	struct device *d;

	TRY(enter(dev, bytes, &d));
	*bytes = d->total > UINT32_MAX ? UINT32_MAX : (unsigned int)d->total;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attr, CUdevice dev)
{
	struct device *d;

	TRY(enter(dev, value, &d));
	return device_attribute(value, attr, d);
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
	struct device *d;

	TRY(enter(dev, major, &d));
	if (!minor)
		return CUDA_ERROR_INVALID_VALUE;
	*major = SOFTGPU_CC_MAJOR;
	*minor = SOFTGPU_CC_MINOR;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetProperties(CUdevprop *prop, CUdevice dev)
{
	struct device *d;

	TRY(enter(dev, prop, &d));
	*prop = (CUdevprop){
		.maxThreadsPerBlock = THREADS_BLOCK,
		.maxThreadsDim = {1024, 1024, 64},
		.maxGridSize = {INT32_MAX, 65535, 65535},
		.sharedMemPerBlock = SMEM_BLOCK_DEFAULT,
		.totalConstantMemory = 65536,
		.SIMDWidth = 32,
		.memPitch = INT32_MAX,
		.regsPerBlock = REGS_SM,
		.clockRate = 1000000,
		.textureAlign = 512,
	};
	return CUDA_SUCCESS;
}

/* A made-up place on a PCI bus that no real device has: domain 0x5f67 ("_g"), bus index + 1. */
#define PCI_DOMAIN 0x5f67

CUresult cuDeviceGetPCIBusId(char *id, int len, CUdevice dev)
{
	struct device *d;

	TRY(enter(dev, id, &d));
	if (len <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(id, (size_t)len, "%04x:%02x:00.0", PCI_DOMAIN, d->index + 1);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *id)
{
	unsigned int domain = 0, bus, slot, function = 0;

	TRY(api_enter());
	if (!dev || !id)
		return CUDA_ERROR_INVALID_VALUE;
	if (sscanf(id, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3)
		return CUDA_ERROR_INVALID_VALUE;
	if (domain != PCI_DOMAIN || slot || function || !bus || bus > (unsigned int)softgpu_devices)
		return CUDA_ERROR_INVALID_DEVICE;
	*dev = (CUdevice)bus - 1;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetLuid(char *luid, unsigned int *mask, CUdevice dev)
{
	struct device *d;

	TRY(enter(dev, luid, &d));
	(void)mask;
	return CUDA_ERROR_NOT_SUPPORTED; /* as everywhere but on Windows */
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice dev, CUdevice peer)
{
	struct device *d, *p;

	TRY(enter(dev, can, &d));
	TRY(enter(peer, can, &p));
	*can = d != p;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attr, CUdevice src, CUdevice dst)
{
	struct device *a, *b;

	TRY(enter(src, value, &a));
	TRY(enter(dst, value, &b));
	if (a == b)
		return CUDA_ERROR_INVALID_DEVICE;
	switch (attr) {
	case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
		*value = 0;
		return CUDA_SUCCESS;
	case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
	case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
		*value = 1;
		return CUDA_SUCCESS;
	case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
	case CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED:
		*value = 0;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult cuDeviceGetExecAffinitySupport(int *pi, CUexecAffinityType type, CUdevice dev)
{
	struct device *d;

	TRY(enter(dev, pi, &d));
	if (type >= CU_EXEC_AFFINITY_TYPE_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	*pi = 0;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetTexture1DLinearMaxWidth(size_t *width, CUarray_format format, unsigned int channels, CUdevice dev)
{
	struct device *d;

	TRY(enter(dev, width, &d));
	(void)format;
	if (!channels || channels > 4)
		return CUDA_ERROR_INVALID_VALUE;
	*width = 1 << 28;
	return CUDA_SUCCESS;
}
