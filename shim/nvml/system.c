// SPDX-License-Identifier: MIT
/* Start, end, errors, versions, and what the system as a whole has. */
#include "lib/log.h"
#include "shim/nvml/call.h"

/* Who asks for the genuine NVML finds out by this name that it has ours (server/nvml_ask.c). */
int rgpuNvml(void);
API int rgpuNvml(void)
{
	return 1;
}

static nvml_return begin(bool none_is_good)
{
	char why[RGPU_WHY_MAX];
	nvml_return r = nvml_open(none_is_good, why);

	/* Programs look for a GPU where there is none, and go on: only what somebody can mend is said. */
	if (r && r != NVML_NOT_FOUND && r != NVML_DRIVER_NOT_LOADED) {
		rgpu_log_init("rgpu", RGPU_LOG_NOTE);
		rgpu_err("nvmlInit: %s", why);
	}
	return r;
}

API nvml_return nvmlInit_v2(void)
{
	return begin(false);
}

API nvml_return nvmlInit(void)
{
	return begin(false);
}

API nvml_return nvmlInitWithFlags(unsigned flags)
{
	return begin(flags & 1); /* NVML_INIT_FLAG_NO_GPUS; NO_ATTACH changes nothing here */
}

API nvml_return nvmlShutdown(void)
{
	return nvml_close();
}

API const char *nvmlErrorString(nvml_return r)
{
	static const char *const text[] = {
		"Success",
		"Uninitialized",
		"Invalid Argument",
		"Not Supported",
		"Insufficient Permissions",
		"Already Initialized",
		"Not Found",
		"Insufficient Size",
		"Insufficient External Power",
		"Driver Not Loaded",
		"Timeout",
		"Interrupt Request Issue",
		"NVML Shared Library Not Found",
		"Function Not Found",
		"Corrupted infoROM",
		"GPU is lost",
		"GPU requires reset",
		"GPU access blocked by the operating system",
		"Driver/library version mismatch",
		"In use by another client",
		"Insufficient Memory",
		"No data",
		"The requested vgpu operation is not available on target device, because ECC is enabled",
		"Insufficient Resources",
		"Requested frequency is not supported",
		"Argument version mismatch",
		"Requested functionality has been deprecated",
		"System is not ready for the request",
		"No GPUs were found",
		"Resource is not in the expected state",
		"Reset type is not supported",
	};

	return r < sizeof(text) / sizeof(*text) ? text[r] : "Unknown Error";
}

/* NVIDIA's tables for its own tools: there are none here. */
API nvml_return nvmlInternalGetExportTable(const void **table, const void *id)
{
	(void)table;
	(void)id;
	return NVML_FUNCTION_NOT_FOUND;
}

static nvml_return version(enum nvml_fact id, const char *without, char *out, unsigned length)
{
	char text[FACT_TEXT_MAX];

	TRY(nvml_ready());
	NEED(out);
	if (nvml_count() && !nvml_text(nvml_gpu(0), id, text))
		return nvml_give(out, length, text);
	return without ? nvml_give(out, length, without) : NVML_NOT_SUPPORTED;
}

/* The driver beside the GPU. */
API nvml_return nvmlSystemGetDriverVersion(char *out, unsigned length)
{
	return version(FACT_DRIVER_VERSION, NULL, out, length);
}

/* Of this library: the one beside the GPU may be older or newer. Without nvmlInit, too. */
API nvml_return nvmlSystemGetNVMLVersion(char *out, unsigned length)
{
	return nvml_give(out, length, NVML_INTERFACE);
}

API nvml_return nvmlSystemGetCudaDriverVersion_v2(int *out)
{
	NEED(out);
	TRY(nvml_ready());
	*out = nvml_cuda_version();
	return *out ? NVML_SUCCESS : NVML_NOT_SUPPORTED;
}

API nvml_return nvmlSystemGetCudaDriverVersion(int *out)
{
	return nvmlSystemGetCudaDriverVersion_v2(out);
}

static nvml_return zero(unsigned *count)
{
	NEED(count);
	*count = 0;
	return NVML_SUCCESS;
}

/* There are no S-class units, and no host interface cards for them; no GPU was taken out. */
API nvml_return nvmlUnitGetCount(unsigned *count)
{
	TRY(nvml_ready());
	return zero(count);
}

API nvml_return nvmlSystemGetHicVersion(unsigned *count, void *entries)
{
	(void)entries;
	TRY(nvml_ready());
	return zero(count);
}

API nvml_return nvmlGetExcludedDeviceCount(unsigned *count)
{
	return zero(count);
}

API nvml_return nvmlGetBlacklistDeviceCount(unsigned *count)
{
	return zero(count);
}

/* Every CPU sees every device alike. */
API nvml_return nvmlSystemGetTopologyGpuSet(unsigned cpu, unsigned *count, void **devices)
{
	unsigned room;

	(void)cpu;
	TRY(nvml_ready());
	NEED(count);
	room = devices ? *count : 0;
	*count = nvml_count();
	for (unsigned i = 0; i < room && i < nvml_count(); i++)
		devices[i] = nvml_gpu(i);
	return NVML_SUCCESS;
}

/* Confidential computing ends where the network begins: it is off. */
API nvml_return nvmlSystemGetConfComputeState(struct nvml_conf_state *out)
{
	TRY(nvml_ready());
	NEED(out);
	*out = (struct nvml_conf_state){0};
	return NVML_SUCCESS;
}

API nvml_return nvmlSystemGetConfComputeSettings(struct nvml_conf_settings *out)
{
	TRY(nvml_ready());
	NEED(out);
	if (out->version != NVML_VERSIONED(*out, 1))
		return NVML_ARGUMENT_VERSION_MISMATCH;
	*out = (struct nvml_conf_settings){.version = out->version};
	return NVML_SUCCESS;
}

API nvml_return nvmlDeviceGetConfComputeMemSizeInfo(void *device, struct nvml_conf_mem *out)
{
	uint64_t total;
	struct gpu *g;

	TRY(nvml_enter(device, &g));
	NEED(out);
	TRY(nvml_fact(g, FACT_MEM_TOTAL, &total));
	*out = (struct nvml_conf_mem){0, total >> 10};
	return NVML_SUCCESS;
}

/* A slice of a GPU is a device like others here: NVML's own handles for slices there are none. */
API nvml_return nvmlDeviceIsMigDeviceHandle(void *device, unsigned *is)
{
	struct gpu *g;

	TRY(nvml_enter(device, &g));
	return zero(is);
}

API nvml_return nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned *count)
{
	struct gpu *g;

	TRY(nvml_enter(device, &g));
	return zero(count);
}

API nvml_return nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned index, void **mig)
{
	struct gpu *g;

	(void)index;
	TRY(nvml_enter(device, &g));
	NEED(mig);
	return NVML_NOT_FOUND;
}

/* Of a fabric between GPUs nothing is forwarded: state 0 is "not supported". */
API nvml_return nvmlDeviceGetGpuFabricInfo(void *device, struct nvml_fabric *out)
{
	struct gpu *g;

	TRY(nvml_enter(device, &g));
	NEED(out);
	*out = (struct nvml_fabric){0};
	return NVML_SUCCESS;
}

API nvml_return nvmlDeviceGetGpuFabricInfoV(void *device, struct nvml_fabric2 *out)
{
	unsigned version;
	struct gpu *g;

	TRY(nvml_enter(device, &g));
	NEED(out);
	version = out->version;
	if (version == NVML_VERSIONED(struct nvml_fabric3, 3))
		memset(out, 0, sizeof(struct nvml_fabric3));
	else if (version == NVML_VERSIONED(struct nvml_fabric2, 2))
		memset(out, 0, sizeof(*out));
	else
		return NVML_ARGUMENT_VERSION_MISMATCH;
	out->version = version;
	return NVML_SUCCESS;
}
