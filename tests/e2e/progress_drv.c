/* SPDX-License-Identifier: MIT */
/* One upload between two words on standard output, that is not looked at before it is over. Usage: progress_drv MIB [pinned] */
#include <cuda.h>
#include "tests/e2e/e2e.h"

int main(int argc, char **argv)
{
	size_t bytes = (size_t)e2e_arg(argc, argv, 1, 64) << 20;
	uint32_t last = 0, *data;
	CUdeviceptr to;
	CUcontext ctx;
	CUdevice dev;

	DR(cuInit(0));
	DR(cuDeviceGet(&dev, 0));
	DR(cuDevicePrimaryCtxRetain(&ctx, dev));
	DR(cuCtxSetCurrent(ctx));
	DR(cuMemAlloc(&to, bytes));
	if (argc > 2)
		DR(cuMemHostAlloc((void **)&data, bytes, 0));
	else if (!(data = malloc(bytes)))
		die("no memory");
	for (size_t i = 0; i < bytes / 4; i++)
		data[i] = i * 2654435761u;
	printf("before ");
	fflush(stdout);
	DR(cuMemcpyHtoD(to, data, bytes));
	printf("after\n");
	DR(cuMemcpyDtoH(&last, to + bytes - 4, 4));
	if (last != data[bytes / 4 - 1])
		die("the last word is %08x", last);
	return 0;
}
