/* SPDX-License-Identifier: MIT */
/* NVML before softgpu: errors before and without a device, handles, a CPU's figures, this process among the others, forks, and
 * what every name gives that does nothing. */
#include <dlfcn.h>
#include <pthread.h>
#include <time.h>
#include "tests/api/serve.h"
#include "tests/nvml/nvml.h"

#define BYTES (64u << 20)

static void before(void)
{
	struct nvml_memory m;
	unsigned n;
	void *d;

	is_nvml(nvmlDeviceGetCount_v2(&n), NVML_UNINITIALIZED);
	is_nvml(nvmlDeviceGetMemoryInfo(&n, &m), NVML_UNINITIALIZED);
	is_nvml(nvmlShutdown(), NVML_UNINITIALIZED);
	is_nvml(nvmlInternalGetExportTable((const void **)&d, &n), NVML_FUNCTION_NOT_FOUND);
	is_str(nvmlErrorString(NVML_GPU_IS_LOST), "GPU is lost", "errors have texts");
	is_str(nvmlErrorString(12345), "Unknown Error", "and others have one");
	setenv("RGPU_SERVER", "127.0.0.1:1", 1);
	setenv("RGPU_KEY", "/nowhere", 1);
	is_nvml(nvmlInit_v2(), NVML_INVALID_ARGUMENT);
}

static void handles(void **d0, void **d1)
{
	char uuid[96], name[96];
	struct nvml_pci pci;
	struct nvml_pci2 old;
	unsigned n, i;
	void *d;

	is_nvml(nvmlDeviceGetCount_v2(&n), NVML_SUCCESS);
	is_int(n, 2, "two devices");
	is_nvml(nvmlDeviceGetHandleByIndex_v2(0, d0), NVML_SUCCESS);
	is_nvml(nvmlDeviceGetHandleByIndex_v2(1, d1), NVML_SUCCESS);
	is_nvml(nvmlDeviceGetHandleByIndex_v2(2, &d), NVML_INVALID_ARGUMENT);
	is_nvml(nvmlDeviceGetHandleByIndex_v2(0, NULL), NVML_INVALID_ARGUMENT);
	is_nvml(nvmlDeviceGetIndex(&n, &i), NVML_INVALID_ARGUMENT);
	is_nvml(nvmlDeviceGetIndex(NULL, &i), NVML_INVALID_ARGUMENT);
	is_nvml(nvmlDeviceGetUUID(*d1, uuid, sizeof(uuid)), NVML_SUCCESS);
	is_int(strlen(uuid), 40, "a UUID");
	is_nvml(nvmlDeviceGetUUID(*d1, uuid, 40), NVML_INSUFFICIENT_SIZE);
	is_nvml(nvmlDeviceGetHandleByUUID(uuid, &d), NVML_SUCCESS);
	ok(d == *d1, "it leads back to the device");
	is_nvml(nvmlDeviceGetHandleByUUID("GPU-0", &d), NVML_NOT_FOUND);
	is_nvml(nvmlDeviceGetPciInfo_v3(*d1, &pci), NVML_SUCCESS);
	is_nvml(nvmlDeviceGetHandleByPciBusId_v2(pci.bus_id, &d), NVML_SUCCESS);
	ok(d == *d1, "so does its bus id, %s", pci.bus_id);
	is_nvml(nvmlDeviceGetHandleByPciBusId_v2(pci.bus_id_legacy, &d), NVML_SUCCESS);
	ok(d == *d1, "and the old form of it, %s", pci.bus_id_legacy);
	is_nvml(nvmlDeviceGetPciInfo_v2(*d1, &old), NVML_SUCCESS);
	is_str(old.bus_id, pci.bus_id_legacy, "which the older structure has");
	is_nvml(nvmlDeviceGetName(*d0, name, sizeof(name)), NVML_SUCCESS);
	ok(strstr(name, "softgpu"), "its name, %s", name);
}

/* A program of ours on device 0, and what is told of it. */
static void *holds(void *arg)
{
	CUdeviceptr p;
	CUcontext c;

	(void)arg;
	cuInit(0);
	cuDevicePrimaryCtxRetain(&c, 0);
	cuCtxSetCurrent(c);
	return cuMemAlloc(&p, BYTES) ? NULL : c;
}

static void processes(void *d0, void *d1)
{
	struct nvml_process p[8] = {0};
	struct nvml_process1 old[8] = {0};
	struct nvml_process_detail detail[8];
	struct nvml_process_detail_list list = {.version = NVML_VERSIONED(list, 1), .n = 8, .list = detail};
	struct nvml_process_sample s[8];
	struct nvml_memory m;
	struct nvml_memory2 m2 = {.version = NVML_VERSIONED(m2, 2)};
	struct timespec stale = {.tv_nsec = 150000000};
	char name[256], exe[256] = "";
	unsigned n = 8;

	is_nvml(nvmlDeviceGetComputeRunningProcesses_v3(d0, &n, p), NVML_SUCCESS);
	is_int(n, 0, "nobody, for nothing was started");
	ok(holds(NULL), "this process takes memory on device 0");
	n = 0;
	is_nvml(nvmlDeviceGetComputeRunningProcesses_v3(d0, &n, NULL), NVML_INSUFFICIENT_SIZE);
	is_int(n, 1, "the number is told without room for it");
	is_nvml(nvmlDeviceGetComputeRunningProcesses_v3(d0, &n, p), NVML_SUCCESS);
	is_int(p[0].pid, getpid(), "it is this process");
	ok(p[0].memory >= BYTES, "with its memory: %llu bytes", p[0].memory);
	n = 8;
	is_nvml(nvmlDeviceGetComputeRunningProcesses(d0, &n, old), NVML_SUCCESS);
	ok(n == 1 && old[0].pid == p[0].pid && old[0].memory == p[0].memory, "the same in the first release's structure");
	is_nvml(nvmlDeviceGetRunningProcessDetailList(d0, &list), NVML_SUCCESS);
	ok(list.n == 1 && detail[0].pid == p[0].pid, "and in the newest");
	n = 8;
	is_nvml(nvmlDeviceGetComputeRunningProcesses_v3(d1, &n, p), NVML_SUCCESS);
	is_int(n, 0, "it is not on device 1");
	n = 8;
	is_nvml(nvmlDeviceGetGraphicsRunningProcesses_v3(d0, &n, p), NVML_SUCCESS);
	is_int(n, 0, "it does not draw");
	n = 8;
	is_nvml(nvmlDeviceGetProcessUtilization(d0, s, &n, 0), NVML_SUCCESS);
	ok(n == 1 && (int)s[0].pid == getpid() && s[0].sm <= 100, "its use: %u %%", s[0].sm);
	nanosleep(&stale, NULL); /* facts are kept for a tenth of a second */
	is_nvml(nvmlDeviceGetMemoryInfo(d0, &m), NVML_SUCCESS);
	ok(m.used >= BYTES && m.used + m.free == m.total, "the device's memory: %llu of %llu", m.used, m.total);
	is_nvml(nvmlDeviceGetMemoryInfo_v2(d0, &m2), NVML_SUCCESS);
	ok(m2.used == m.used && m2.total == m.total && !m2.reserved, "the same of the second release");
	m2.version = 1;
	is_nvml(nvmlDeviceGetMemoryInfo_v2(d0, &m2), NVML_ARGUMENT_VERSION_MISMATCH);
	is_nvml(nvmlSystemGetProcessName(getpid(), name, sizeof(name)), NVML_SUCCESS);
	is_int(readlink("/proc/self/exe", exe, sizeof(exe) - 1), strlen(name), "its program's name");
	is_str(name, exe, "is this one's");
	is_nvml(nvmlSystemGetProcessName(0x7fffffff, name, sizeof(name)), NVML_NOT_FOUND);
}

static void figures(void *d0, void *d1)
{
	struct nvml_field f[2] = {{.id = 82}, {.id = 9999}};
	struct nvml_utilization u;
	unsigned long set[16];
	char text[96];
	int cuda, major, minor;
	unsigned v;

	is_nvml(nvmlDeviceGetUtilizationRates(d0, &u), NVML_SUCCESS);
	ok(u.gpu <= 100, "the use of the CPUs: %u %%", u.gpu);
	is_nvml(nvmlDeviceGetTemperature(d0, 0, &v), NVML_NOT_SUPPORTED);
	is_nvml(nvmlDeviceGetPowerUsage(d0, &v), NVML_NOT_SUPPORTED);
	is_nvml(nvmlDeviceGetSerial(d0, text, sizeof(text)), NVML_NOT_SUPPORTED);
	is_nvml(nvmlDeviceGetFieldValues(d0, 2, f), NVML_SUCCESS);
	ok(f[0].result == NVML_NOT_SUPPORTED && f[1].result == NVML_NOT_SUPPORTED, "fields that a CPU has not");
	is_nvml(nvmlSystemGetCudaDriverVersion(&cuda), NVML_SUCCESS);
	ok(cuda >= 13000, "CUDA %d", cuda);
	is_nvml(nvmlSystemGetDriverVersion(text, sizeof(text)), NVML_SUCCESS);
	ok(atoi(text) >= 580 && strchr(text, '.'), "a driver version that tools can compare: %s", text);
	is_nvml(nvmlDeviceGetCudaComputeCapability(d0, &major, &minor), NVML_SUCCESS);
	ok(major >= 7, "compute capability %d.%d", major, minor);
	is_nvml(nvmlDeviceGetCpuAffinity(d0, 16, set), NVML_SUCCESS);
	ok(set[0] & 3, "CPUs are near");
	is_nvml(nvmlDeviceGetP2PStatus(d0, d1, 0, &v), NVML_SUCCESS);
	is_int(v, 0, "the two devices reach each other");
}

static void events(void *d0)
{
	struct nvml_event e;
	struct timespec a, b;
	void *set;

	is_nvml(nvmlEventSetCreate(&set), NVML_SUCCESS);
	is_nvml(nvmlDeviceRegisterEvents(d0, 8, set), NVML_SUCCESS);
	is_nvml(nvmlDeviceRegisterEvents(d0, 1, set), NVML_NOT_SUPPORTED);
	clock_gettime(CLOCK_MONOTONIC, &a);
	is_nvml(nvmlEventSetWait_v2(set, &e, 200), NVML_TIMEOUT);
	clock_gettime(CLOCK_MONOTONIC, &b);
	ok((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 >= 199, "the wait waits");
	is_nvml(nvmlEventSetFree(set), NVML_SUCCESS);
}

/* What PyTorch does: NVML before a fork, and again in the child. */
static void forks(void *d0)
{
	struct nvml_memory m = {0};
	unsigned n = 0;
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(nvmlInit_v2() || nvmlDeviceGetCount_v2(&n) || n != 2 || nvmlDeviceGetMemoryInfo(d0, &m) || !m.total ||
		      nvmlShutdown());
	waitpid(pid, &status, 0);
	is_int(status, 0, "a forked child goes on, with the handles that it had");
	is_nvml(nvmlDeviceGetMemoryInfo(d0, &m), NVML_SUCCESS);
}

/* The generator's list: each name, what it returns. */
static void refused(void)
{
	void *lib = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_NOLOAD);
	FILE *f = fopen(built("shim/nvml/refused.c"), "r");
	char line[512], name[128], how[64];
	unsigned bad = 0, n = 0;

	while (f && fgets(line, sizeof(line), f)) {
		unsigned want;
		int (*call)(void);

		if (sscanf(line, "REFUSED(%127[^,], %63[A-Z_],", name, how) != 2)
			continue;
		want = !strcmp(how, "NOT_SUPPORTED")   ? NVML_NOT_SUPPORTED
		       : !strcmp(how, "NO_PERMISSION") ? NVML_NO_PERMISSION
						       : NVML_INVALID_ARGUMENT;
		call = (int (*)(void))dlsym(lib, name);
		if (!call || call() != (int)want)
			bad += 1 + 0 * printf("# %s: want %s\n", name, how);
		n++;
	}
	if (f)
		fclose(f);
	ok(n > 200, "%u names do nothing", n);
	is_int(bad, 0, "and return what their row says");
}

int main(void)
{
	void *d0, *d1;
	unsigned n;

	before();
	unsetenv("RGPU_SERVER");
	serve(NULL, 2);
	is_nvml(nvmlInit_v2(), NVML_SUCCESS);
	is_nvml(nvmlInit_v2(), NVML_SUCCESS);
	is_nvml(nvmlShutdown(), NVML_SUCCESS);
	handles(&d0, &d1);
	processes(d0, d1);
	figures(d0, d1);
	events(d0);
	forks(d0);
	refused();
	serve_stop();
	usleep(150000);
	is_nvml(nvmlDeviceGetUtilizationRates(d0, &(struct nvml_utilization){0}), NVML_GPU_IS_LOST);
	is_nvml(nvmlShutdown(), NVML_SUCCESS);
	is_nvml(nvmlDeviceGetCount_v2(&n), NVML_UNINITIALIZED);
	return tap_done();
}
