/* SPDX-License-Identifier: MIT */
/* Stands for the genuine NVML beside a GPU: an H200 under load, with the values of a public capture. Every device is one. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "api/nvml_abi.h"

#define API __attribute__((visibility("default")))
#define OK(...)                                                                                                                  \
	do {                                                                                                                     \
		__VA_ARGS__;                                                                                                     \
		return NVML_SUCCESS;                                                                                             \
	} while (0)

static int device;

API unsigned nvmlInit_v2(void)
{
	return NVML_SUCCESS;
}

API unsigned nvmlDeviceGetHandleByUUID(const char *uuid, void **out)
{
	if (strncmp(uuid, "GPU-", 4) || strlen(uuid) != 40)
		return NVML_NOT_FOUND;
	OK(*out = &device);
}

#define TEXT(name, value)                                                                                                        \
	API unsigned name(void *d, char *out, unsigned n)                                                                        \
	{                                                                                                                        \
		(void)d;                                                                                                         \
		OK(strncpy(out, value, n));                                                                                      \
	}
TEXT(nvmlDeviceGetSerial, "1650123000042")
TEXT(nvmlDeviceGetVbiosVersion, "96.00.A5.00.03")
TEXT(nvmlDeviceGetBoardPartNumber, "695-2G520-0280-001")
TEXT(nvmlDeviceGetInforomImageVersion, "G520.0280.02.02")

API unsigned nvmlDeviceGetInforomVersion(void *d, int object, char *out, unsigned n)
{
	(void)d;
	if (object == 2)
		return NVML_NOT_SUPPORTED;
	OK(strncpy(out, object ? "7.16" : "2.1", n));
}

API unsigned nvmlDeviceGetGspFirmwareVersion(void *d, char *out)
{
	(void)d;
	OK(strcpy(out, "590.48.01"));
}

API unsigned nvmlSystemGetDriverVersion(char *out, unsigned n)
{
	OK(strncpy(out, "590.48.01", n));
}

#define U32(name, value)                                                                                                         \
	API unsigned name(void *d, unsigned *out)                                                                                \
	{                                                                                                                        \
		(void)d;                                                                                                         \
		OK(*out = (value));                                                                                              \
	}
U32(nvmlDeviceGetBrand, 14)
U32(nvmlDeviceGetArchitecture, 9)
U32(nvmlDeviceGetBoardId, 0x8300)
U32(nvmlDeviceGetMultiGpuBoard, 0)
U32(nvmlDeviceGetMaxPcieLinkGeneration, 5)
U32(nvmlDeviceGetMaxPcieLinkWidth, 16)
U32(nvmlDeviceGetGpuMaxPcieLinkGeneration, 5)
U32(nvmlDeviceGetCurrPcieLinkGeneration, 5)
U32(nvmlDeviceGetCurrPcieLinkWidth, 16)
U32(nvmlDeviceGetPcieReplayCounter, 0)
U32(nvmlDeviceGetPowerUsage, 627400)
U32(nvmlDeviceGetPowerManagementLimit, 700000)
U32(nvmlDeviceGetPowerManagementDefaultLimit, 700000)
U32(nvmlDeviceGetEnforcedPowerLimit, 700000)
U32(nvmlDeviceGetPerformanceState, 0)
U32(nvmlDeviceGetPersistenceMode, 1)
U32(nvmlDeviceGetComputeMode, 0)
U32(nvmlDeviceGetDisplayMode, 1)
U32(nvmlDeviceGetDisplayActive, 0)
U32(nvmlDeviceGetAccountingMode, 0)
U32(nvmlDeviceGetAccountingBufferSize, 4000)
U32(nvmlDeviceGetVirtualizationMode, 1)
U32(nvmlDeviceGetModuleId, 1)

#define PAIR(name, a, b)                                                                                                         \
	API unsigned name(void *d, unsigned *x, unsigned *y)                                                                     \
	{                                                                                                                        \
		(void)d;                                                                                                         \
		OK(*x = (a), *y = (b));                                                                                          \
	}
PAIR(nvmlDeviceGetEncoderUtilization, 0, 167000)
PAIR(nvmlDeviceGetDecoderUtilization, 0, 167000)
PAIR(nvmlDeviceGetJpgUtilization, 0, 167000)
PAIR(nvmlDeviceGetOfaUtilization, 0, 167000)
PAIR(nvmlDeviceGetPowerManagementLimitConstraints, 200000, 700000)
PAIR(nvmlDeviceGetEccMode, 1, 1)
PAIR(nvmlDeviceGetMigMode, 0, 0)
PAIR(nvmlDeviceGetGspFirmwareMode, 1, 1)

#define CHOSEN(name, ...)                                                                                                        \
	API unsigned name(void *d, unsigned which, unsigned *out)                                                                \
	{                                                                                                                        \
		static const unsigned v[] = {__VA_ARGS__};                                                                       \
		(void)d;                                                                                                         \
		if (which >= sizeof(v) / sizeof(*v))                                                                             \
			return NVML_INVALID_ARGUMENT;                                                                            \
		OK(*out = v[which]);                                                                                             \
	}
CHOSEN(nvmlDeviceGetClockInfo, 1980, 1980, 3201, 1545)
CHOSEN(nvmlDeviceGetMaxClockInfo, 1980, 1980, 3201, 1545)
CHOSEN(nvmlDeviceGetMaxCustomerBoostClock, 1980)
CHOSEN(nvmlDeviceGetTemperature, 52)
CHOSEN(nvmlDeviceGetTemperatureThreshold, 95, 89, 95, 87)
CHOSEN(nvmlDeviceGetPcieThroughput, 4217, 8691)

/* As this driver has it. */
API unsigned nvmlDeviceGetApplicationsClock(void *d, unsigned clock, unsigned *out)
{
	(void)d;
	(void)clock;
	(void)out;
	return NVML_DEPRECATED;
}

API unsigned nvmlDeviceGetDefaultApplicationsClock(void *d, unsigned clock, unsigned *out)
{
	return nvmlDeviceGetApplicationsClock(d, clock, out);
}

API unsigned nvmlDeviceGetSupportedClocksThrottleReasons(void *d, unsigned long long *out)
{
	(void)d;
	OK(*out = 0x1ff);
}

API unsigned nvmlDeviceGetCurrentClocksThrottleReasons(void *d, unsigned long long *out)
{
	(void)d;
	OK(*out = 4);
}

API unsigned nvmlDeviceGetTotalEnergyConsumption(void *d, unsigned long long *out)
{
	(void)d;
	OK(*out = 123456789012ull);
}

API unsigned nvmlDeviceGetUtilizationRates(void *d, struct nvml_utilization *out)
{
	(void)d;
	OK(*out = ((struct nvml_utilization){100, 7}));
}

API unsigned nvmlDeviceGetMemoryInfo_v2(void *d, struct nvml_memory2 *out)
{
	(void)d;
	if (out->version != NVML_VERSIONED(*out, 2))
		return NVML_ARGUMENT_VERSION_MISMATCH;
	out->total = 143771ull << 20;
	out->reserved = 614ull << 20;
	out->used = 32362ull << 20;
	OK(out->free = 110796ull << 20);
}

API unsigned nvmlDeviceGetBAR1MemoryInfo(void *d, struct nvml_memory *out)
{
	(void)d;
	OK(*out = ((struct nvml_memory){262144ull << 20, 229781ull << 20, 32363ull << 20}));
}

API unsigned nvmlDeviceGetPciInfo_v3(void *d, struct nvml_pci *out)
{
	(void)d;
	memset(out, 0, sizeof(*out));
	OK(out->device_id = 0x233510de, out->subsystem_id = 0x18be10de);
}

API unsigned nvmlDeviceGetMarginTemperature(void *d, struct nvml_margin *out)
{
	(void)d;
	OK(out->celsius = -2);
}

API unsigned nvmlDeviceGetFieldValues(void *d, int n, struct nvml_field *f)
{
	(void)d;
	for (int i = 0; i < n; i++) {
		f[i].type = NVML_TYPE_UINT;
		f[i].result = f[i].id == 82 || f[i].id == 185 || f[i].id == 186 ? NVML_SUCCESS : NVML_NOT_SUPPORTED;
		f[i].value.ui = f[i].id == 82 ? 41 : f[i].id == 185 ? 627320 : 625240;
	}
	return NVML_SUCCESS;
}

API unsigned nvmlDeviceGetTotalEccErrors(void *d, int kind, int counter, unsigned long long *out)
{
	(void)d;
	OK(*out = 10 * kind + counter);
}

API unsigned nvmlDeviceGetMemoryErrorCounter(void *d, int kind, int counter, int place, unsigned long long *out)
{
	(void)d;
	OK(*out = 100 * place + 10 * kind + counter);
}

API unsigned nvmlDeviceGetRemappedRows(void *d, unsigned *a, unsigned *b, unsigned *c, unsigned *e)
{
	(void)d;
	OK(*a = 3, *b = 1, *c = 1, *e = 0);
}

API unsigned nvmlDeviceGetRowRemapperHistogram(void *d, struct nvml_histogram *h)
{
	(void)d;
	OK(*h = ((struct nvml_histogram){3072, 1, 2, 3, 4}));
}

/* The server's children, for they have the device open: this process's brothers. */
API unsigned nvmlDeviceGetComputeRunningProcesses_v3(void *d, unsigned *n, struct nvml_process *out)
{
	char path[300], buf[4096];
	unsigned found = 0;
	struct dirent *t;
	DIR *tasks;

	(void)d;
	snprintf(path, sizeof(path), "/proc/%d/task", getppid());
	tasks = opendir(path);
	while (tasks && (t = readdir(tasks))) {
		char *at = buf, *end;
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%d/task/%s/children", getppid(), t->d_name);
		f = fopen(path, "r");
		if (!f)
			continue;
		buf[fread(buf, 1, sizeof(buf) - 1, f)] = 0;
		fclose(f);
		for (long pid; (pid = strtol(at, &end, 10)) > 0 && found < *n; at = end)
			out[found++] = (struct nvml_process){pid, 2566ull << 20, ~0u, ~0u};
	}
	if (tasks)
		closedir(tasks);
	OK(*n = found);
}

API unsigned nvmlDeviceGetProcessUtilization(void *d, struct nvml_process_sample *s, unsigned *n, unsigned long long since)
{
	struct nvml_process p[16];
	unsigned count = 16;

	nvmlDeviceGetComputeRunningProcesses_v3(d, &count, p);
	if (count > *n)
		count = *n;
	for (unsigned i = 0; i < count; i++)
		s[i] = (struct nvml_process_sample){p[i].pid, since + 1000, 79, 5, 0, 0};
	OK(*n = count);
}
