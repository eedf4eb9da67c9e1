/* SPDX-License-Identifier: MIT */
/* Bytes up and down again, that can be made smaller or not. Usage: packed text|noise [MIB [TIMES]] */
#include <cuda.h>
#include <stdbool.h>
#include "tests/e2e/e2e.h"

int main(int argc, char **argv)
{
	static const char *const words[] = {"weight ", "bias ", "layer ", "0.0000 ", "1.0000 ", "attention ", "\n", "head "};
	bool text = argc > 1 && !strcmp(argv[1], "text");
	long mib = e2e_arg(argc, argv, 2, 16), times = e2e_arg(argc, argv, 3, 1);
	size_t bytes = (size_t)mib << 20;
	uint8_t *data = malloc(bytes + 16), *back = malloc(bytes);
	uint32_t seed = 1;
	CUdeviceptr addr;
	CUcontext ctx;
	CUdevice dev;

	if (!data || !back)
		die("no %ld MiB of memory", mib);
	DR(cuInit(0));
	DR(cuDeviceGet(&dev, 0));
	DR(cuDevicePrimaryCtxRetain(&ctx, dev));
	DR(cuCtxSetCurrent(ctx));
	DR(cuMemAlloc(&addr, bytes));
	for (long k = 0; k < times; k++) {
		for (size_t i = 0; i < bytes;) {
			uint32_t r = e2e_next(&seed);

			if (text)
				i += strlen(strcpy((char *)data + i, words[r >> 8 & 7]));
			else
				data[i++] = r >> 12;
		}
		DR(cuMemcpyHtoD(addr, data, bytes));
		DR(cuMemcpyDtoH(back, addr, bytes));
		if (memcmp(back, data, bytes))
			die("what came back is not what was sent");
	}
	DR(cuDevicePrimaryCtxRelease(dev));
	printf("packed: %ld MiB, as they were\n", mib);
	return 0;
}
