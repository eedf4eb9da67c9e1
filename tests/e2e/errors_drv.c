/* SPDX-License-Identifier: MIT */
/* The driver's errors, each at the call where CUDA gives it. Usage: errors_drv CASE; init prints what cuInit says */
#include <cuda.h>
#include "tests/e2e/e2e.h"

static const char *name(CUresult r)
{
	const char *s = NULL;

	cuGetErrorName(r, &s);
	return s ? s : "?";
}

#define EXPECT(call, want)                                                                                                       \
	do {                                                                                                                     \
		CUresult r_ = (call);                                                                                            \
		if (r_ != want)                                                                                                  \
			die("%s: %s, want %s", #call, name(r_), name(want));                                                     \
	} while (0)

static char *ptx;
static size_t ptx_len;

static void truncated_ptx(void)
{
	CUmodule mod;

	ptx[ptx_len / 2] = 0;
	EXPECT(cuModuleLoadData(&mod, ptx), CUDA_ERROR_INVALID_PTX);
}

static void no_image(void)
{
	static const char zeros[4096];
	CUmodule mod;

	EXPECT(cuModuleLoadData(&mod, zeros), CUDA_ERROR_INVALID_IMAGE);
}

static void unknown_kernel(void)
{
	CUmodule mod;
	CUfunction f;

	DR(cuModuleLoadData(&mod, ptx));
	EXPECT(cuModuleGetFunction(&f, mod, "no_such_kernel"), CUDA_ERROR_NOT_FOUND);
	EXPECT(cuModuleGetFunction(&f, mod, "step"), CUDA_SUCCESS);
}

static void dimensions(void)
{
	CUdeviceptr x;
	CUfunction f;
	CUmodule mod;
	uint32_t k = 5, got;
	int n = 1;
	void *args[] = {&x, &k, &n};

	DR(cuModuleLoadData(&mod, ptx));
	DR(cuModuleGetFunction(&f, mod, "step"));
	DR(cuMemAlloc(&x, 4));
	DR(cuMemsetD32(x, 2, 1));
	EXPECT(cuLaunchKernel(f, 1, 1, 1, 1025, 1, 1, 0, NULL, args, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuLaunchKernel(f, 0, 1, 1, 32, 1, 1, 0, NULL, args, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuLaunchKernel(f, 1, 65536, 1, 32, 1, 1, 0, NULL, args, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuLaunchKernel(NULL, 1, 1, 1, 32, 1, 1, 0, NULL, args, NULL), CUDA_ERROR_INVALID_HANDLE);
	EXPECT(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL), CUDA_SUCCESS);
	DR(cuMemcpyDtoH(&got, x, 4));
	if (got != 2 * 3 + 5)
		die("x = %u, want 11: a refused launch ran, or the good one didn't", got);
}

static void wild_access(void)
{
	CUdeviceptr x;
	CUfunction f;
	CUmodule mod;
	void *args[] = {&x};

	DR(cuModuleLoadData(&mod, ptx));
	DR(cuModuleGetFunction(&f, mod, "wild"));
	DR(cuMemAlloc(&x, 4));
	EXPECT(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL), CUDA_SUCCESS);
	EXPECT(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	EXPECT(cuMemsetD32(x, 0, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
	EXPECT(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {
		{"truncated-ptx", truncated_ptx}, {"no-image", no_image}, {"unknown-kernel", unknown_kernel},
		{"dimensions", dimensions},	  {"wild", wild_access},
	};
	const char *which = argc > 1 ? argv[1] : "";
	CUdevice dev;
	CUcontext ctx;

	if (!strcmp(which, "init")) {
		CUresult r = cuInit(0);

		printf("cuInit: %s\n", name(r));
		return r != CUDA_SUCCESS;
	}
	DR(cuInit(0));
	DR(cuDeviceGet(&dev, 0));
	DR(cuDevicePrimaryCtxRetain(&ctx, dev));
	DR(cuCtxSetCurrent(ctx));
	ptx = e2e_read(e2e_beside(argv[0], "kernels.ptx"), &ptx_len);
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!strcmp(which, cases[i].name)) {
			cases[i].run();
			printf("errors_drv: %s as CUDA has it\n", which);
			return 0;
		}
	die("no case '%s'", which);
}
