/* SPDX-License-Identifier: MIT */
/* Driver API: many launches in a row, then five seconds of nothing, each between two marks that a trace of its system calls
 * shows. */
#include <cuda.h>
#include <unistd.h>
#include "tests/e2e/e2e.h"

static void mark(const char *text)
{
	if (write(STDOUT_FILENO, text, strlen(text)) < 0)
		die("cannot write");
}

int main(int argc, char **argv)
{
	int launches = argc > 1 ? atoi(argv[1]) : 20000, n = 1;
	unsigned int k = 1, value, want = 0;
	CUdeviceptr d;
	CUdevice dev;
	CUcontext ctx;
	CUmodule mod;
	CUfunction f;
	void *args[] = {&d, &k, &n};

	DR(cuInit(0));
	DR(cuDeviceGet(&dev, 0));
	DR(cuDevicePrimaryCtxRetain(&ctx, dev));
	DR(cuCtxSetCurrent(ctx));
	DR(cuModuleLoadData(&mod, e2e_read(e2e_beside(argv[0], "kernels.ptx"), NULL)));
	DR(cuModuleGetFunction(&f, mod, "step"));
	DR(cuMemAlloc(&d, sizeof(value)));
	DR(cuMemsetD32(d, 0, 1));
	DR(cuCtxSynchronize());
	mark("steady begins\n");
	for (int i = 0; i < launches; i++)
		DR(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
	DR(cuCtxSynchronize());
	mark("steady ends\n");
	DR(cuMemcpyDtoH(&value, d, sizeof(value)));
	for (int i = 0; i < launches; i++)
		want = want * 3 + k;
	if (value != want)
		die("%d launches made %u, not %u", launches, value, want);
	sleep(1); /* acknowledgements of what was */
	mark("idle begins\n");
	sleep(5);
	mark("idle ends\n");
	printf("PASS\n");
	return 0;
}
