// SPDX-License-Identifier: MIT
/* Initialization, error names, versions, devices and entry points. */
#include "tests/fidelity/fidelity.h"

static void before_init(void)
{
	CUcontext c;
	CUdeviceptr p;
	CUstream s;
	int n;

	/* Driver API, Initialization: before cuInit every function gives NOT_INITIALIZED */
	cu(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&n));
	cu(CUDA_ERROR_NOT_INITIALIZED, cuMemAlloc(&p, 4));
	cu(CUDA_ERROR_NOT_INITIALIZED, cuCtxGetCurrent(&c));
	cu(CUDA_ERROR_NOT_INITIALIZED, cuStreamCreate(&s, 0));
	/* Driver API, cuInit: Flags must be 0 */
	cu(CUDA_ERROR_INVALID_VALUE, cuInit(1));
}

static void errors(void)
{
	static const struct {
		CUresult r;
		const char *name, *text;
	} known[] = {
		{CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
		{CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
		{CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
		{CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
		{CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
	};
	const char *s = "unset";

	for (unsigned int i = 0; i < sizeof(known) / sizeof(*known); i++) {
		/* Driver API, cuGetErrorName: the enumerator's name */
		cuGetErrorName(known[i].r, &s);
		probe(s && !strcmp(s, known[i].name), "cuGetErrorName of %s", known[i].name);
		/* Driver API, cuGetErrorString: its description */
		cuGetErrorString(known[i].r, &s);
		probe(s && !strcmp(s, known[i].text), "cuGetErrorString of %s: %s", known[i].name, known[i].text);
	}
	/* Driver API, cuGetErrorName: an error that is not known gives INVALID_VALUE and a null string */
	cu(CUDA_ERROR_INVALID_VALUE, cuGetErrorName((CUresult)98765, &s));
	probe(!s, "the name of an unknown error is NULL");
	/* Driver API, cuGetErrorString: the same */
	cu(CUDA_ERROR_INVALID_VALUE, cuGetErrorString((CUresult)98765, &s));
	probe(!s, "the text of an unknown error is NULL");
}

static void devices(void)
{
	char name[256] = "", small[4] = "xxx", bus[32] = "";
	CUdevice d = -1, other = -1;
	CUuuid id;
	size_t bytes;
	int n = 0, v = 0;

	/* Driver API, cuDriverGetVersion: 1000 * major + 10 * minor; this suite is of CUDA 13 */
	must(cuDriverGetVersion(&v));
	probe(v >= 13000 && v % 10 == 0, "cuDriverGetVersion gives %d", v);
	/* Driver API, cuDriverGetVersion: NULL gives INVALID_VALUE */
	cu(CUDA_ERROR_INVALID_VALUE, cuDriverGetVersion(NULL));
	must(cuDeviceGetCount(&n));
	/* Driver API, cuDeviceGet: ordinals are 0 to cuDeviceGetCount - 1 */
	cu(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&d, n));
	cu(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&d, -1));
	/* Driver API, cuDeviceGet: no place for the result */
	cu(CUDA_ERROR_INVALID_VALUE, cuDeviceGet(NULL, 0));
	/* Driver API, cuDeviceGetAttribute: an attribute that is not known */
	cu(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(&v, (CUdevice_attribute)99999, 0));
	/* Driver API, cuDeviceGetAttribute: a device that is not there */
	cu(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_WARP_SIZE, n));
	/* Driver API, cuDeviceGetName: len is the most that may be written, a NUL included */
	cu(CUDA_SUCCESS, cuDeviceGetName(name, sizeof(name), 0));
	cuDeviceGetName(small, sizeof(small), 0);
	probe(!small[3] && !strncmp(small, name, 3), "cuDeviceGetName keeps to len");
	/* Driver API, cuDeviceTotalMem: a device that is not there */
	cu(CUDA_ERROR_INVALID_DEVICE, cuDeviceTotalMem(&bytes, n));
	/* Driver API, cuDeviceGetUuid: a device that is not there */
	cu(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetUuid(&id, n));
	/* Driver API, cuDeviceGetPCIBusId: the text is what cuDeviceGetByPCIBusId takes */
	cu(CUDA_SUCCESS, cuDeviceGetPCIBusId(bus, sizeof(bus), 0));
	cuDeviceGetByPCIBusId(&other, bus);
	same(other, 0, "cuDeviceGetByPCIBusId finds device 0 by its text");
	/* Driver API, cuDeviceGetP2PAttribute: both devices the same gives INVALID_DEVICE */
	cu(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetP2PAttribute(&v, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 0));
	/* Programming Guide, Compute Capabilities: a warp has 32 threads, a block at most 1024, a grid's y 65535 blocks */
	cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0);
	same(v, 32, "the warp's size");
	cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0);
	same(v, 1024, "threads of a block");
	cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 0);
	same(v, 65535, "blocks of a grid in y");
	cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 0);
	same(v, 2147483647, "blocks of a grid in x");
	cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 0);
	same(v, 64, "threads of a block in z");
	/* Programming Guide, Constant memory: 64 KiB */
	cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 0);
	same(v, 65536, "constant memory");
}

static void entry_points(void)
{
	CUdriverProcAddressQueryResult st;
	void *f = &f, *g = NULL;
	int v = 0;

	must(cuDriverGetVersion(&v));
	/* Driver API, cuGetProcAddress: a known name */
	cu(CUDA_SUCCESS, cuGetProcAddress("cuMemAlloc", &f, 13000, CU_GET_PROC_ADDRESS_DEFAULT, &st));
	probe(f && st == CU_GET_PROC_ADDRESS_SUCCESS, "cuMemAlloc is found");
	/* Driver API, cuGetProcAddress: a name newer than the version asked for */
	f = &f;
	cuGetProcAddress("cuGraphCreate", &f, 7000, CU_GET_PROC_ADDRESS_DEFAULT, &st);
	probe(!f && st == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT, "cuGraphCreate is not of CUDA 7.0");
	/* Driver API, cuGetProcAddress: a name that is not there */
	f = &f;
	cu(CUDA_SUCCESS, cuGetProcAddress("cuNoSuchThing", &f, 13000, CU_GET_PROC_ADDRESS_DEFAULT, &st));
	probe(!f && st == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, "cuNoSuchThing is not found");
	/* Driver API, cuGetProcAddress: a version above the driver's */
	cu(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress("cuMemAlloc", &f, v + 1000, CU_GET_PROC_ADDRESS_DEFAULT, &st));
	/* Driver API, cuGetProcAddress: symbolStatus is optional */
	cu(CUDA_SUCCESS, cuGetProcAddress("cuMemFree", &f, 13000, CU_GET_PROC_ADDRESS_DEFAULT, NULL));
	/* Driver API, cuGetProcAddress: no place for the result, no name */
	cu(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress("cuMemAlloc", NULL, 13000, 0, &st));
	cu(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress(NULL, &f, 13000, 0, &st));
	/* Driver API, cuGetProcAddress: flags that are not known */
	cu(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress("cuMemAlloc", &f, 13000, 1u << 30, &st));
	/* Driver API, cuGetProcAddress: per-thread streams have functions of their own */
	must(cuGetProcAddress("cuLaunchKernel", &f, 13000, CU_GET_PROC_ADDRESS_LEGACY_STREAM, NULL));
	must(cuGetProcAddress("cuLaunchKernel", &g, 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, NULL));
	probe(f != g, "cuLaunchKernel of per-thread streams is another function");
	/* Driver API, cuGetProcAddress: where there is no per-thread version, the legacy one is given */
	must(cuGetProcAddress("cuMemAlloc", &f, 13000, CU_GET_PROC_ADDRESS_LEGACY_STREAM, NULL));
	must(cuGetProcAddress("cuMemAlloc", &g, 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, NULL));
	probe(f == g, "cuMemAlloc is one function for both");
}

int main(void)
{
	before_init();
	must(cuInit(0));
	errors();
	devices();
	entry_points();
	return tap_done();
}
