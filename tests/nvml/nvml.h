/* SPDX-License-Identifier: MIT */
/* The functions of NVML that the tests call, with our own names for its structures. */
#ifndef RGPU_TESTS_NVML_NVML_H
#define RGPU_TESTS_NVML_NVML_H

#include "api/nvml_abi.h"

unsigned nvmlInit_v2(void);
unsigned nvmlInitWithFlags(unsigned flags);
unsigned nvmlShutdown(void);
const char *nvmlErrorString(unsigned r);
unsigned nvmlInternalGetExportTable(const void **table, const void *id);
unsigned nvmlSystemGetDriverVersion(char *out, unsigned n);
unsigned nvmlSystemGetNVMLVersion(char *out, unsigned n);
unsigned nvmlSystemGetCudaDriverVersion(int *out);
unsigned nvmlSystemGetProcessName(unsigned pid, char *out, unsigned n);
unsigned nvmlDeviceGetCount_v2(unsigned *n);
unsigned nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d);
unsigned nvmlDeviceGetHandleByUUID(const char *uuid, void **d);
unsigned nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **d);
unsigned nvmlDeviceGetIndex(void *d, unsigned *i);
unsigned nvmlDeviceGetName(void *d, char *out, unsigned n);
unsigned nvmlDeviceGetUUID(void *d, char *out, unsigned n);
unsigned nvmlDeviceGetSerial(void *d, char *out, unsigned n);
unsigned nvmlDeviceGetPciInfo_v3(void *d, struct nvml_pci *out);
unsigned nvmlDeviceGetPciInfo_v2(void *d, struct nvml_pci2 *out);
unsigned nvmlDeviceGetMemoryInfo(void *d, struct nvml_memory *out);
unsigned nvmlDeviceGetMemoryInfo_v2(void *d, struct nvml_memory2 *out);
unsigned nvmlDeviceGetUtilizationRates(void *d, struct nvml_utilization *out);
unsigned nvmlDeviceGetTemperature(void *d, unsigned sensor, unsigned *out);
unsigned nvmlDeviceGetTemperatureV(void *d, struct nvml_temperature *out);
unsigned nvmlDeviceGetPowerUsage(void *d, unsigned *out);
unsigned nvmlDeviceGetPowerManagementLimitConstraints(void *d, unsigned *low, unsigned *high);
unsigned nvmlDeviceGetClockInfo(void *d, unsigned which, unsigned *out);
unsigned nvmlDeviceGetApplicationsClock(void *d, unsigned which, unsigned *out);
unsigned nvmlDeviceGetMigMode(void *d, unsigned *now, unsigned *then);
unsigned nvmlDeviceGetTotalEnergyConsumption(void *d, unsigned long long *out);
unsigned nvmlDeviceGetFieldValues(void *d, int n, struct nvml_field *f);
unsigned nvmlDeviceGetTotalEccErrors(void *d, unsigned kind, unsigned counter, unsigned long long *out);
unsigned nvmlDeviceGetMemoryErrorCounter(void *d, unsigned kind, unsigned counter, unsigned place, unsigned long long *out);
unsigned nvmlDeviceGetPcieThroughput(void *d, unsigned which, unsigned *out);
unsigned nvmlDeviceGetMarginTemperature(void *d, struct nvml_margin *out);
unsigned nvmlDeviceGetRowRemapperHistogram(void *d, struct nvml_histogram *out);
unsigned nvmlDeviceGetInforomVersion(void *d, unsigned object, char *out, unsigned n);
unsigned nvmlDeviceGetCudaComputeCapability(void *d, int *major, int *minor);
unsigned nvmlDeviceGetCpuAffinity(void *d, unsigned words, unsigned long *set);
unsigned nvmlDeviceGetP2PStatus(void *a, void *b, unsigned what, unsigned *status);
unsigned nvmlDeviceGetComputeRunningProcesses(void *d, unsigned *n, struct nvml_process1 *out);
unsigned nvmlDeviceGetComputeRunningProcesses_v3(void *d, unsigned *n, struct nvml_process *out);
unsigned nvmlDeviceGetGraphicsRunningProcesses_v3(void *d, unsigned *n, struct nvml_process *out);
unsigned nvmlDeviceGetProcessUtilization(void *d, struct nvml_process_sample *out, unsigned *n, unsigned long long since);
unsigned nvmlDeviceGetRunningProcessDetailList(void *d, struct nvml_process_detail_list *l);
unsigned nvmlEventSetCreate(void **set);
unsigned nvmlEventSetFree(void *set);
unsigned nvmlEventSetWait_v2(void *set, struct nvml_event *e, unsigned ms);
unsigned nvmlDeviceRegisterEvents(void *d, unsigned long long types, void *set);

#define is_nvml(call, want) is_int((call), (want), "%s gives %s", #call, #want)

#endif
