/* SPDX-License-Identifier: MIT */
/* NVML before a driver: every shape of a fact arrives with the value that the NVML beside the GPU had. */
#include "tests/api/serve.h"
#include "tests/nvml/nvml.h"

static void values(void *d)
{
	struct nvml_utilization u = {0};
	struct nvml_memory m;
	struct nvml_memory2 m2 = {.version = NVML_VERSIONED(m2, 2)};
	struct nvml_pci pci;
	struct nvml_margin margin = {.version = NVML_VERSIONED(margin, 1)};
	struct nvml_temperature t = {.version = NVML_VERSIONED(t, 1)};
	struct nvml_histogram h = {0};
	struct nvml_field f[3] = {{.id = 82}, {.id = 185}, {.id = 83}};
	unsigned long long wide;
	unsigned v, w;
	char text[96];

	is_nvml(nvmlSystemGetDriverVersion(text, sizeof(text)), NVML_SUCCESS);
	is_str(text, "590.48.01", "the driver's version");
	is_nvml(nvmlDeviceGetSerial(d, text, sizeof(text)), NVML_SUCCESS);
	is_str(text, "1650123000042", "a text");
	is_nvml(nvmlDeviceGetInforomVersion(d, 1, text, sizeof(text)), NVML_SUCCESS);
	is_str(text, "7.16", "a text that an argument chooses");
	is_nvml(nvmlDeviceGetInforomVersion(d, 2, text, sizeof(text)), NVML_NOT_SUPPORTED);
	is_nvml(nvmlDeviceGetPowerUsage(d, &v), NVML_SUCCESS);
	is_int(v, 627400, "a number");
	is_nvml(nvmlDeviceGetTotalEnergyConsumption(d, &wide), NVML_SUCCESS);
	is_int(wide, 123456789012ll, "a wide one");
	is_nvml(nvmlDeviceGetPowerManagementLimitConstraints(d, &v, &w), NVML_SUCCESS);
	ok(v == 200000 && w == 700000, "a pair");
	is_nvml(nvmlDeviceGetClockInfo(d, 3, &v), NVML_SUCCESS);
	is_int(v, 1545, "a number that an argument chooses");
	is_nvml(nvmlDeviceGetApplicationsClock(d, 0, &v), NVML_DEPRECATED);
	is_nvml(nvmlDeviceGetPcieThroughput(d, 1, &v), NVML_SUCCESS);
	is_int(v, 8691, "a number that takes time to measure");
	is_nvml(nvmlDeviceGetTemperature(d, 0, &v), NVML_SUCCESS);
	is_int(v, 52, "the temperature");
	is_nvml(nvmlDeviceGetTemperatureV(d, &t), NVML_SUCCESS);
	is_int(t.celsius, 52, "and by the newer function");
	is_nvml(nvmlDeviceGetMarginTemperature(d, &margin), NVML_SUCCESS);
	is_int(margin.celsius, -2, "a negative number");
	is_nvml(nvmlDeviceGetUtilizationRates(d, &u), NVML_SUCCESS);
	ok(u.gpu == 100 && u.memory == 7, "rates");
	is_nvml(nvmlDeviceGetMemoryInfo_v2(d, &m2), NVML_SUCCESS);
	ok(m2.total == 143771ull << 20 && m2.reserved == 614ull << 20 && m2.used == 32362ull << 20 && m2.free == 110796ull << 20,
	   "memory");
	is_nvml(nvmlDeviceGetMemoryInfo(d, &m), NVML_SUCCESS);
	ok(m.used == (143771ull - 110796) << 20, "which the first release counts with what is reserved");
	is_nvml(nvmlDeviceGetPciInfo_v3(d, &pci), NVML_SUCCESS);
	ok(pci.device_id == 0x233510de && pci.subsystem_id == 0x18be10de, "PCI ids");
	is_nvml(nvmlDeviceGetRowRemapperHistogram(d, &h), NVML_SUCCESS);
	ok(h.max == 3072 && h.high == 1 && h.partial == 2 && h.low == 3 && h.none == 4, "a histogram");
	is_nvml(nvmlDeviceGetTotalEccErrors(d, 1, 0, &wide), NVML_SUCCESS);
	is_int(wide, 10, "uncorrected, volatile errors");
	is_nvml(nvmlDeviceGetTotalEccErrors(d, 0, 1, &wide), NVML_SUCCESS);
	is_int(wide, 1, "corrected, aggregate ones");
	is_nvml(nvmlDeviceGetMemoryErrorCounter(d, 1, 1, 7, &wide), NVML_SUCCESS);
	is_int(wide, 711, "errors by place");
	is_nvml(nvmlDeviceGetMemoryErrorCounter(d, 0, 1, 2, &wide), NVML_SUCCESS);
	is_int(wide, 201, "and in the memory");
	is_nvml(nvmlDeviceGetFieldValues(d, 3, f), NVML_SUCCESS);
	ok(!f[0].result && f[0].value.ui == 41 && !f[1].result && f[1].value.ui == 627320, "fields");
	ok(!f[2].result && f[2].type == NVML_TYPE_ULONGLONG && f[2].value.ull == 123456789012ull, "and a wide one");
}

static void processes(void *d)
{
	struct nvml_process p[4];
	struct nvml_process_sample s[4];
	unsigned n = 4;
	CUcontext c;

	cuInit(0);
	ok(!cuDevicePrimaryCtxRetain(&c, 0) && !cuCtxSetCurrent(c) && !cuCtxSynchronize(), "this process has a context");
	is_nvml(nvmlDeviceGetComputeRunningProcesses_v3(d, &n, p), NVML_SUCCESS);
	is_int(n, 1, "one process");
	is_int(p[0].pid, getpid(), "by its own pid, not its worker's");
	is_int(p[0].memory >> 20, 2566, "with the memory that the driver counts");
	n = 4;
	is_nvml(nvmlDeviceGetProcessUtilization(d, s, &n, 0), NVML_SUCCESS);
	ok(n == 1 && s[0].sm == 79 && s[0].memory == 5, "and the use that it sampled");
}

int main(void)
{
	void *d;

	serve_nvml = "tests/libfake-nvml.so";
	serve("tests/libnulldrv.so", 1);
	is_nvml(nvmlInit_v2(), NVML_SUCCESS);
	is_nvml(nvmlDeviceGetHandleByIndex_v2(0, &d), NVML_SUCCESS);
	values(d);
	processes(d);
	is_nvml(nvmlShutdown(), NVML_SUCCESS);
	return tap_done();
}
