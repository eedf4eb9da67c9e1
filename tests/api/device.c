// SPDX-License-Identifier: MIT
/* Devices: every answer comes without a round trip and is the server's, but for what we say we cannot do. */
#include "tests/api/serve.h"

/* cudaProfiler.h need not be installed. */
CUresult cuProfilerStart(void);
CUresult cuProfilerStop(void);
CUresult cuProfilerInitialize(const char *config, const char *output, int mode);

/* Runs the rest in a child that has not called cuInit yet; 0 when all in it was well. */
static int child(const char *visible, int (*fn)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		setenv("CUDA_VISIBLE_DEVICES", visible, 1);
		_exit(fn());
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

static int count(void)
{
	int n = -1;

	if (cuInit(0))
		return 50;
	cuDeviceGetCount(&n);
	return n;
}

static CUuuid uuid1;

static int init_status(void)
{
	return cuInit(0);
}

int main(void)
{
	char name[64], bus[32], uuid[48] = "GPU-", *p = uuid + 4;
	int n = -1, v = -1, a, b;
	CUdevice dev;
	CUuuid u;
	size_t mem;

	serve(NULL, 2);
	is_cu(cuDeviceGetCount(&n), CUDA_ERROR_NOT_INITIALIZED);
	is_cu(cuInit(1), CUDA_ERROR_INVALID_VALUE);
	is_int(child("1", count), 1, "CUDA_VISIBLE_DEVICES=1 shows one");
	is_int(child("1,0", count), 2, "1,0 shows both");
	is_int(child("0,-1,1", count), 1, "it ends where it names none");
	is_int(child("0,0", init_status), CUDA_ERROR_NO_DEVICE, "one named twice shows none");
	is_int(child("", init_status), CUDA_ERROR_NO_DEVICE, "an empty one shows none: cuInit says NO_DEVICE");
	is_cu(cuInit(0), CUDA_SUCCESS);
	is_cu(cuInit(0), CUDA_SUCCESS);
	is_cu(cuDriverGetVersion(&v), CUDA_SUCCESS);
	ok(v >= 13000, "the driver's version is %d", v);
	is_cu(cuDriverGetVersion(NULL), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuDeviceGetCount(&n), CUDA_SUCCESS);
	is_int(n, 2, "two devices");
	is_cu(cuDeviceGet(&dev, 1), CUDA_SUCCESS);
	is_int(dev, 1, "the second one");
	is_cu(cuDeviceGet(&dev, 2), CUDA_ERROR_INVALID_DEVICE);
	is_cu(cuDeviceGet(&dev, -1), CUDA_ERROR_INVALID_DEVICE);
	is_cu(cuDeviceGetName(name, sizeof(name), 0), CUDA_SUCCESS);
	ok(strstr(name, "softgpu"), "its name is %s", name);
	is_cu(cuDeviceGetName(name, 5, 0), CUDA_SUCCESS);
	is_int(strlen(name), 4, "cut to what there is room for");
	is_cu(cuDeviceTotalMem_v2(&mem, 0), CUDA_SUCCESS);
	ok(mem >= 1 << 20, "memory: %zu", mem);
	is_cu(cuDeviceGetUuid_v2(&u, 0), CUDA_SUCCESS);
	is_cu(cuDeviceGetUuid_v2(&uuid1, 1), CUDA_SUCCESS);
	ok(memcmp(&u, &uuid1, sizeof(u)), "each has its uuid");
	is_cu(cuDeviceGetPCIBusId(bus, sizeof(bus), 1), CUDA_SUCCESS);
	is_cu(cuDeviceGetByPCIBusId(&dev, bus), CUDA_SUCCESS);
	is_int(dev, 1, "a bus id leads back to its device");
	is_cu(cuDeviceGetByPCIBusId(&dev, "ffff:ff:ff.0"), CUDA_ERROR_INVALID_DEVICE);
	is_cu(cuDeviceGetByPCIBusId(&dev, "rubbish"), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0), CUDA_SUCCESS);
	is_int(v, 32, "warp size");
	is_cu(cuDeviceGetAttribute(&v, 100000, 0), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuDeviceGetAttribute(NULL, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 0), CUDA_SUCCESS);
	is_int(v, 0, "what is not there is not claimed");
	is_cu(cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 0), CUDA_SUCCESS);
	is_int(v, 1, "addresses are unified");
	is_cu(cuDeviceComputeCapability(&a, &b, 0), CUDA_SUCCESS);
	cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
	is_int(a, v, "compute capability %d.%d", a, b);
	is_cu(cuDeviceCanAccessPeer(&v, 0, 1), CUDA_SUCCESS);
	is_int(v, 1, "the soft ones reach each other");
	is_cu(cuDeviceCanAccessPeer(&v, 0, 0), CUDA_SUCCESS);
	is_int(v, 0, "not themselves");
	is_cu(cuDeviceGetP2PAttribute(&v, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1), CUDA_SUCCESS);
	is_int(v, 1, "as the attribute says");
	is_cu(cuDeviceGetP2PAttribute(&v, 0, 0, 1), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuProfilerStart(), CUDA_SUCCESS);
	is_cu(cuProfilerStop(), CUDA_SUCCESS);
	is_cu(cuProfilerInitialize("a", "b", 0), CUDA_ERROR_NOT_SUPPORTED);
	for (int i = 0; i < 2; i++)
		for (int at = 0; at < 150; at++)
			cuDeviceGetAttribute(&v, at, i);
	is_int(rgpuRoundTrips(NULL), 0, "all of this took no round trip");
	is_int(rgpuRoundTrips("no such record"), -1, "a name that no record has");

	for (int i = 0; i < 16; i++)
		p += sprintf(p, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", (uint8_t)uuid1.bytes[i]);
	is_cu(cuDeviceGetCount(&n), CUDA_SUCCESS);
	/* The child of an initialised process gets an error: another program is needed for the uuid. */
	is_int(child(uuid, init_status), CUDA_ERROR_NOT_INITIALIZED, "a forked child is told that CUDA is not there");
	{
		/* Before cuInit in this process there is no way to the uuid: a fresh one, by exec. */
		char self[PATH_MAX];
		ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
		int status = -1;

		self[len] = 0;
		if (!fork()) {
			setenv("CUDA_VISIBLE_DEVICES", uuid, 1);
			execl(self, self, uuid, NULL);
			_exit(99);
		}
		wait(&status);
		is_int(WEXITSTATUS(status), 0, "CUDA_VISIBLE_DEVICES=%s shows that one", uuid);
	}
	v = 9;
	is_cu(cuDeviceGetExecAffinitySupport(&v, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0), CUDA_SUCCESS);
	is_int(v, 0, "multiprocessors are not shared out");
	is_cu(cuDeviceGetExecAffinitySupport(&v, CU_EXEC_AFFINITY_TYPE_MAX, 0), CUDA_ERROR_INVALID_VALUE);
	{
		CUatomicOperation op[2] = {CU_ATOMIC_OPERATION_INTEGER_ADD, CU_ATOMIC_OPERATION_INTEGER_MAX};
		unsigned int can[2] = {9, 9};

		is_cu(cuDeviceGetHostAtomicCapabilities(can, op, 2, 0), CUDA_SUCCESS);
		ok(!can[0] && !can[1], "no atomics on this host's memory");
		is_cu(cuDeviceGetP2PAtomicCapabilities(can, op, 2, 0, 7), CUDA_ERROR_INVALID_DEVICE);
		is_cu(cuDeviceGetP2PAtomicCapabilities(can, op, 0, 0, 1), CUDA_ERROR_INVALID_VALUE);
	}
	return tap_done();
}

/* Run again with a uuid as argument: is it the only device? */
__attribute__((constructor)) static void again(int argc, char **argv)
{
	char text[48] = "GPU-", *p = text + 4;
	int n = 0;

	if (argc < 2)
		return;
	if (cuInit(0) || cuDeviceGetCount(&n) || n != 1 || cuDeviceGetUuid_v2(&uuid1, 0))
		_exit(1);
	for (int i = 0; i < 16; i++)
		p += sprintf(p, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", (uint8_t)uuid1.bytes[i]);
	_exit(strcmp(text, argv[1]) != 0);
}
