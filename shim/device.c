// SPDX-License-Identifier: MIT
/* Questions about devices, answered from the properties that came with the list: no round trip. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "shim/cuda_api.h"
#include "shim/session.h"
#include "shim/token.h"

static int enter(CUdevice dev, struct device **d)
{
	int r = process_ready();

	if (r)
		return r;
	*d = device_find(dev);
	return *d ? 0 : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuInit(unsigned int Flags)
{
	return Flags ? CUDA_ERROR_INVALID_VALUE : process_init();
}

CUresult cuDriverGetVersion(int *driverVersion)
{
	if (!driverVersion)
		return CUDA_ERROR_INVALID_VALUE;
	/* CUDA answers this before cuInit, too; the answer is the server's, so the devices must be known. */
	if (process_init())
		*driverVersion = CUDA_VERSION;
	else
		*driverVersion = process_get()->devices[0]->props.driver_version;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	struct device *d;
	int r = enter(ordinal, &d);

	if (r || !device)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	*device = ordinal;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
	int r = process_ready();

	if (r || !count)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	*count = process_get()->ndevices;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
	struct device *d;
	int r = enter(dev, &d);

	if (r || !name || len <= 0)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	snprintf(name, len, "%.*s", RGPU_NAME_LEN, d->props.name);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
	struct device *d;
	int r = enter(dev, &d);

	if (r || !uuid)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	memcpy(uuid->bytes, d->props.uuid, sizeof(uuid->bytes));
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
	return cuDeviceGetUuid_v2(uuid, dev);
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
	struct device *d;
	int r = enter(dev, &d);

	if (r || !bytes)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	*bytes = d->props.mem_total;
	return CUDA_SUCCESS;
}

/* The 32-bit answer of old. */
CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice dev)
{
	size_t all;
	CUresult r = cuDeviceTotalMem_v2(&all, dev);

	if (r || !bytes)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	*bytes = all > UINT32_MAX ? UINT32_MAX : all;
	return CUDA_SUCCESS;
}

/*
 * What we do not do yet is not there, whatever the device could: a program that asks finds another way, one that does not
 * ask gets NOT_SUPPORTED. Each line goes when its feature comes.
 */
static const int absent[] = {
	CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS,
	CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS,
	CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES,
	CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST,
	CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM,
	CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_HANDLE_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS,
	CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS,
	CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES,
	CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1,
	CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1,
	CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1,
	CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH,
	CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK,
};

static int answer(const struct device *d, CUdevice_attribute attrib)
{
	for (size_t i = 0; i < sizeof(absent) / sizeof(*absent); i++)
		if (absent[i] == (int)attrib)
			return 0;
	/*
	 * Device and host addresses never overlap, and copies tell them apart. Registered memory is staged. Pools are ours.
	 */
	if (attrib == CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING || attrib == CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED ||
	    attrib == CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)
		return 1;
	/* Both are host memory at the server, mapped by the driver's virtual memory calls. */
	if (attrib == CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY || attrib == CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY)
		return d->props.attrs[CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED] > 0;
	/* Handles are ours, of whatever type (token.h); the server's driver must be able to share between its processes. */
	if (attrib == CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED ||
	    attrib == CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES) {
		bool can = d->props.attrs[CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED] > 0;

		return !can ? 0 : attrib == CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED ? 1 : (int)TOKEN_TYPES;
	}
	return d->props.attrs[attrib];
}

static unsigned limit(const struct device *d, CUdevice_attribute a, unsigned otherwise)
{
	int v = device_attribute(d, a);

	return v > 0 ? (unsigned)v : otherwise;
}

void device_answer(struct device *d)
{
	for (int i = 0; i < RGPU_PROPS_ATTRS; i++)
		d->attrs[i] = answer(d, i);
	d->launch = (struct launch_limits){
		.grid = {limit(d, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, INT32_MAX),
			 limit(d, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535),
			 limit(d, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535)},
		.block = {limit(d, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024),
			  limit(d, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024), limit(d, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64)},
		.threads = limit(d, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024),
		.shared = limit(d, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 48 << 10),
		.registers = limit(d, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, INT32_MAX),
	};
}

CUresult cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
{
	struct device *d;
	int r = enter(dev, &d), v;

	if (r || !pi)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	v = device_attribute(d, attrib);
	if (v == RGPU_PROPS_NONE)
		return CUDA_ERROR_INVALID_VALUE;
	*pi = v;
	return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
	CUresult r = cuDeviceGetAttribute(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, dev);

	return r ? r : cuDeviceGetAttribute(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, dev);
}

CUresult cuDeviceGetProperties(CUdevprop *prop, CUdevice dev)
{
	struct device *d;
	int r = enter(dev, &d);

	if (r || !prop)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	*prop = (CUdevprop){
		.maxThreadsPerBlock = device_attribute(d, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
		.maxThreadsDim = {device_attribute(d, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X),
				  device_attribute(d, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y),
				  device_attribute(d, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)},
		.maxGridSize = {device_attribute(d, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X),
				device_attribute(d, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
				device_attribute(d, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)},
		.sharedMemPerBlock = device_attribute(d, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK),
		.totalConstantMemory = device_attribute(d, CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY),
		.SIMDWidth = device_attribute(d, CU_DEVICE_ATTRIBUTE_WARP_SIZE),
		.memPitch = device_attribute(d, CU_DEVICE_ATTRIBUTE_MAX_PITCH),
		.regsPerBlock = device_attribute(d, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK),
		.clockRate = device_attribute(d, CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
		.textureAlign = device_attribute(d, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT),
	};
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev)
{
	struct device *d;
	int r = enter(dev, &d);

	if (r || !pciBusId || len <= 0)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	if (snprintf(pciBusId, len, "%.*s", (int)sizeof(d->props.pci_bus_id), d->props.pci_bus_id) >= len)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

/* [domain:]bus:device[.function], in hexadecimal. */
static bool parse_bus_id(const char *s, unsigned id[4])
{
	char tail;

	if (sscanf(s, "%x:%x:%x.%x%c", &id[0], &id[1], &id[2], &id[3], &tail) == 4)
		return true;
	id[3] = 0;
	if (sscanf(s, "%x:%x:%x%c", &id[0], &id[1], &id[2], &tail) == 3)
		return true;
	id[0] = 0;
	if (sscanf(s, "%x:%x.%x%c", &id[1], &id[2], &id[3], &tail) == 3)
		return true;
	id[3] = 0;
	return sscanf(s, "%x:%x%c", &id[1], &id[2], &tail) == 2;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *pciBusId)
{
	unsigned want[4], have[4];
	int r = process_ready();

	if (r || !dev || !pciBusId || !parse_bus_id(pciBusId, want))
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < process_get()->ndevices; i++) {
		char id[17] = "";

		memcpy(id, process_get()->devices[i]->props.pci_bus_id, 16);
		if (!parse_bus_id(id, have) || memcmp(want, have, sizeof(want)))
			continue;
		*dev = i;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_DEVICE;
}

static int p2p(const struct device *a, const struct device *b, CUdevice_P2PAttribute attrib)
{
	/* Devices of different servers reach each other through here only. */
	if (a->session != b->session || b->server_index >= RGPU_PROPS_DEVICES || (unsigned)attrib >= RGPU_PROPS_P2P)
		return 0;
	return a->props.p2p[attrib][b->server_index];
}

CUresult cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev)
{
	struct device *a, *b;
	int r = enter(dev, &a);

	if (!r)
		r = enter(peerDev, &b);
	if (r || !canAccessPeer)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	*canAccessPeer = a != b && p2p(a, b, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED) > 0;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attrib, CUdevice srcDevice, CUdevice dstDevice)
{
	struct device *a, *b;
	int r = enter(srcDevice, &a);

	if (!r)
		r = enter(dstDevice, &b);
	if (r)
		return r;
	if (!value || attrib < 1 || attrib >= RGPU_PROPS_P2P)
		return CUDA_ERROR_INVALID_VALUE;
	if (a == b)
		return CUDA_ERROR_INVALID_DEVICE;
	*value = p2p(a, b, attrib);
	return CUDA_SUCCESS;
}

/*
 * Profilers attach to the driver, which is elsewhere: starting and stopping one here is without effect, as without a
 * profiler. cudaProfiler.h, which declares these, need not be installed.
 */
#pragma GCC visibility push(default)
CUresult cuProfilerStart(void);
CUresult cuProfilerStop(void);
CUresult cuProfilerInitialize(const char *configFile, const char *outputFile, int outputMode);
#pragma GCC visibility pop

CUresult cuProfilerStart(void)
{
	return process_ready();
}

CUresult cuProfilerStop(void)
{
	return process_ready();
}

CUresult cuProfilerInitialize(const char *configFile, const char *outputFile, int outputMode)
{
	(void)configFile;
	(void)outputFile;
	(void)outputMode;
	return CUDA_ERROR_NOT_SUPPORTED; /* deprecated: what a driver of release 13 answers, too */
}

CUresult cuDeviceGetExecAffinitySupport(int *pi, CUexecAffinityType type, CUdevice dev)
{
	struct device *d;
	int r = enter(dev, &d);

	if (r || !pi || (unsigned)type >= CU_EXEC_AFFINITY_TYPE_MAX)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	*pi = 0; /* multiprocessors are not shared out */
	return CUDA_SUCCESS;
}

/* Atomics of one end are none for the other, across a network. */
static int no_atomics(unsigned int *capabilities, const CUatomicOperation *operations, unsigned int count)
{
	if (!capabilities || !operations || !count)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count; i++)
		capabilities[i] = 0;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetHostAtomicCapabilities(unsigned int *capabilities, const CUatomicOperation *operations, unsigned int count,
					   CUdevice dev)
{
	struct device *d;
	int r = enter(dev, &d);

	return r ? r : no_atomics(capabilities, operations, count);
}

CUresult cuDeviceGetP2PAtomicCapabilities(unsigned int *capabilities, const CUatomicOperation *operations, unsigned int count,
					  CUdevice srcDevice, CUdevice dstDevice)
{
	struct device *d;
	int r = enter(srcDevice, &d);

	if (!r)
		r = enter(dstDevice, &d);
	return r ? r : no_atomics(capabilities, operations, count);
}
