// SPDX-License-Identifier: MIT
/* Says which driver and runtime the fidelity programs get here: their files, versions and the device. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdio.h>

static const char *file_of(void *f)
{
	Dl_info i;

	return dladdr(f, &i) && i.dli_fname ? i.dli_fname : "?";
}

int main(void)
{
	int driver = 0, runtime = 0, major = 0, minor = 0;
	char name[256] = "no device";
	CUresult r = cuInit(0);

	cuDriverGetVersion(&driver);
	cudaRuntimeGetVersion(&runtime);
	if (!r) {
		cuDeviceGetName(name, sizeof(name), 0);
		cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
		cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0);
	}
	printf("%s, driver %d (%s), runtime %d (%s), compute capability %d.%d\n", name, driver, file_of(cuInit), runtime,
	       file_of(cudaRuntimeGetVersion), major, minor);
	return r;
}
