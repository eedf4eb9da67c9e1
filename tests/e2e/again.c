/* SPDX-License-Identifier: MIT */
/* A program that starts again and again: a module of some MiB, weights from pageable and page-locked memory, all read back.
 * Usage: again [SEED [MIB [TIMES]]]; after each time it waits for a line, or for the end of its input */
#include <cuda.h>
#include <stdbool.h>
#include "tests/e2e/e2e.h"

#define TABLE (256 << 10) /* words in the module */

static uint64_t state;

static uint64_t next(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static void fill(uint64_t *to, size_t bytes)
{
	for (size_t i = 0; i < bytes / 8; i++)
		to[i] = next();
}

/* PTX of nearly three MiB, most of it a table that cannot be guessed. */
static void module(void)
{
	static uint32_t want[TABLE], have[TABLE];
	char *text = malloc(TABLE * 12 + 1000), *at = text;
	CUdeviceptr addr;
	CUmodule mod;
	size_t bytes;

	at += sprintf(at, ".version 7.0\n.target sm_50\n.address_size 64\n.visible .global .align 4 .b32 table[%d] = {", TABLE);
	for (int i = 0; i < TABLE; i++) {
		want[i] = next();
		at += sprintf(at, i ? ",%u" : "%u", want[i]);
	}
	sprintf(at, "};\n.visible .entry nothing()\n{\n\tret;\n}\n");
	DR(cuModuleLoadData(&mod, text));
	DR(cuModuleGetGlobal(&addr, &bytes, mod, "table"));
	if (bytes != sizeof(want))
		die("the module's table has %zu bytes", bytes);
	DR(cuMemcpyDtoH(have, addr, bytes));
	if (memcmp(have, want, bytes))
		die("the module's table is not what was loaded");
	DR(cuModuleUnload(mod));
	free(text);
}

static void weights(size_t bytes, bool pinned)
{
	uint8_t *data = NULL, *back = malloc(bytes);
	CUdeviceptr addr;

	if (pinned)
		DR(cuMemHostAlloc((void **)&data, bytes, 0));
	else
		data = malloc(bytes);
	fill((uint64_t *)data, bytes);
	DR(cuMemAlloc(&addr, bytes));
	if (pinned)
		DR(cuMemcpyHtoDAsync(addr, data, bytes, NULL));
	else
		DR(cuMemcpyHtoD(addr, data, bytes));
	DR(cuCtxSynchronize());
	DR(cuMemcpyDtoH(back, addr, bytes));
	if (memcmp(back, data, bytes))
		die("%zu bytes from %s memory are not what was sent", bytes, pinned ? "page-locked" : "pageable");
	DR(cuMemFree(addr));
	if (pinned)
		DR(cuMemFreeHost(data));
	else
		free(data);
	free(back);
}

int main(int argc, char **argv)
{
	long seed = e2e_arg(argc, argv, 1, 1), mib = e2e_arg(argc, argv, 2, 16), times = e2e_arg(argc, argv, 3, 1);
	CUcontext ctx;
	CUdevice dev;

	DR(cuInit(0));
	DR(cuDeviceGet(&dev, 0));
	DR(cuDevicePrimaryCtxRetain(&ctx, dev));
	DR(cuCtxSetCurrent(ctx));
	for (long i = 0; i < times; i++) {
		state = seed;
		module();
		weights((size_t)mib << 20, false);
		weights((size_t)mib << 19, true);
		printf("again: all is as it was sent\n");
		fflush(stdout);
		for (int c = 0; c != EOF && c != '\n';)
			c = getchar();
	}
	DR(cuDevicePrimaryCtxRelease(dev));
	return 0;
}
