// SPDX-License-Identifier: MIT
/* cuGetProcAddress: name, version and flags decide, for every look-up that a stock runtime was seen to make. */
#include <dlfcn.h>
#include "tests/api/serve.h"

/* The names are looked up in the library itself: the test's own symbols could be others. */
static void *lib;

static void table(const char *path)
{
	FILE *f = fopen(path, "r");
	char line[256], name[96], symbol[96];
	unsigned rows = 0, bad = 0;
	int version, flags;

	if (!ok(f, "the table of look-ups is there"))
		return;
	while (fgets(line, sizeof(line), f)) {
		CUdriverProcAddressQueryResult q;
		void *fn = NULL;
		CUresult r;

		if (sscanf(line, "%95s %d %d %95s", name, &version, &flags, symbol) != 4)
			continue;
		rows++;
		r = cuGetProcAddress_v2(name, &fn, version, flags, &q);
		if (r || fn != (symbol[0] == '-' ? NULL : dlsym(lib, symbol))) {
			printf("# %s at %d, flags %d: want %s\n", name, version, flags, symbol);
			bad++;
		}
	}
	fclose(f);
	ok(rows > 400, "%u look-ups", rows);
	is_int(bad, 0, "each gives its symbol");
}

#define gives(name, version, flags, symbol)                                                                                      \
	({                                                                                                                       \
		void *fn_ = NULL;                                                                                                \
		CUresult r_ = cuGetProcAddress_v2(name, &fn_, version, flags, NULL);                                             \
		ok(!r_ && fn_ && fn_ == dlsym(lib, symbol), "%s of %d with flags %d is %s", name, version, flags, symbol);       \
	})

int main(void)
{
	static const CUuuid stock = {{0x6b, (char)0xd5, (char)0xfb, 0x6c, 0x5b, (char)0xf4, (char)0xe7, 0x4a, (char)0x89,
				      (char)0x87, (char)0xd9, 0x39, 0x12, (char)0xfd, (char)0x9d, (char)0xf9}};
	static const CUuuid other = {{1}};
	CUdriverProcAddressQueryResult q;
	const void *t = &stock;
	void *fn = &fn;

	lib = dlopen("libcuda.so.1", RTLD_NOW);
	ok(lib, "libcuda.so.1");
	table("tests/api/getprocaddress.tsv");
	gives("cuMemAlloc", 2000, 0, "cuMemAlloc");
	gives("cuMemAlloc", 3020, 0, "cuMemAlloc_v2");
	gives("cuMemAlloc", 13000, 0, "cuMemAlloc_v2");
	gives("cuMemcpyHtoD", 3020, 0, "cuMemcpyHtoD_v2");
	gives("cuMemcpyHtoD", 12000, 2, "cuMemcpyHtoD_v2_ptds");
	gives("cuMemcpyHtoD", 3020, 2, "cuMemcpyHtoD_v2"); /* older than the per-thread one */
	gives("cuLaunchKernel", 12000, 2, "cuLaunchKernel_ptsz");
	gives("cuLaunchKernel", 12000, 1, "cuLaunchKernel");
	gives("cuCtxCreate", 13000, 0, "cuCtxCreate_v4");
	gives("cuCtxCreate", 12000, 0, "cuCtxCreate_v3");
	gives("cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2");
	is_cu(cuGetProcAddress_v2("cuNothing", &fn, 13000, 0, &q), CUDA_SUCCESS);
	ok(!fn && q == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, "an unknown name is not found");
	is_cu(cuGetProcAddress_v2("cuNothing", &fn, 13000, 0, NULL), CUDA_ERROR_NOT_FOUND);
	is_cu(cuGetProcAddress_v2("cuMemAllocAsync", &fn, 11000, 0, &q), CUDA_SUCCESS);
	ok(!fn && q == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT, "a name that came later is told apart");
	is_cu(cuGetProcAddress_v2("cuInit", &fn, 13000, 3, &q), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuGetProcAddress_v2("cuInit", &fn, 13000, 4, &q), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuGetProcAddress_v2(NULL, &fn, 13000, 0, &q), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuGetExportTable(&t, &other), CUDA_ERROR_NOT_FOUND);
	ok(!t, "there are no private tables");
	is_cu(cuGetExportTable(&t, &stock), CUDA_ERROR_NOT_FOUND);
	/* A stub: any arguments, one line on stderr, one code. */
	is_int(((int (*)(void *, int))dlsym(lib, "cuGraphicsUnregisterResource"))(NULL, 0), CUDA_ERROR_NOT_SUPPORTED,
	       "a name that is not there yet says so");
	return tap_done();
}
