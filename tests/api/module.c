// SPDX-License-Identifier: MIT
/* Modules and libraries: loading costs one round trip, and then all about their kernels is known here. */
#include "tests/api/serve.h"

static char *ptx, *fatbin;
static size_t ptx_len;

static char *read_all(const char *name, size_t *len)
{
	FILE *f = fopen(built(name), "rb");
	char *p = calloc(1, 1 << 20);
	size_t n = f ? fread(p, 1, (1 << 20) - 1, f) : 0;

	if (f)
		fclose(f);
	if (!n)
		ok(false, "%s is there", name);
	if (len)
		*len = n;
	return p;
}

static void kernels(CUmodule m)
{
	static const struct {
		size_t off, size;
	} want[] = {{0, 8}, {8, 1}, {16, 8}, {24, 24}, {48, 4}};
	long before = rgpuRoundTrips(NULL);
	CUfunction f, list[32];
	size_t off, size;
	const char *name;
	unsigned n = 0, found = 0;
	CUmodule back;
	int v = -1;

	is_cu(cuModuleGetFunction(&f, m, "nothing"), CUDA_ERROR_NOT_FOUND);
	is_cu(cuModuleGetFunction(NULL, m, "params"), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuModuleGetFunction(&f, m, "params"), CUDA_SUCCESS);
	is_cu(cuFuncGetName(&name, f), CUDA_SUCCESS);
	is_str(name, "params", "its name");
	for (int i = 0; i < 5; i++) {
		must(cuFuncGetParamInfo(f, i, &off, &size));
		ok(off == want[i].off && size == want[i].size, "parameter %d: %zu bytes at %zu", i, size, off);
	}
	is_cu(cuFuncGetParamInfo(f, 5, &off, &size), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuFuncGetModule(&back, f), CUDA_SUCCESS);
	ok(back == m, "its module");
	is_cu(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f), CUDA_SUCCESS);
	ok(v >= 256 && v <= 1024, "threads a block: %d", v);
	is_cu(cuFuncGetAttribute(&v, 99, f), CUDA_ERROR_INVALID_VALUE);
	must(cuModuleGetFunction(&f, m, "small"));
	must(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
	is_int(v, 64, "launch bounds are known");
	is_cu(cuModuleGetFunctionCount(&n, m), CUDA_SUCCESS);
	is_cu(cuModuleEnumerateFunctions(list, n, m), CUDA_SUCCESS);
	for (unsigned i = 0; i < n; i++) {
		must(cuFuncGetName(&name, list[i]));
		found += !strcmp(name, "fill") || !strcmp(name, "wild");
	}
	ok(n == 10 && found == 2, "%u kernels", n);
	is_cu(cuFuncLoad(f), CUDA_SUCCESS);
	is_cu(cuFuncIsLoaded(&(CUfunctionLoadingState){0}, f), CUDA_SUCCESS);
	is_int(rgpuRoundTrips(NULL), before, "no round trip for any of this");
}

static void globals(CUmodule m)
{
	CUdeviceptr p, q;
	size_t n = 0;
	int v = 0;

	is_cu(cuModuleGetGlobal(&p, &n, m, "counter"), CUDA_SUCCESS);
	is_int(n, 4, "a variable of four bytes");
	is_cu(cuMemcpyDtoH(&v, p, 4), CUDA_SUCCESS);
	is_int(v, 7, "with its value");
	v = 11;
	is_cu(cuMemcpyHtoD(p, &v, 4), CUDA_SUCCESS);
	is_cu(cuMemcpyHtoD(p, &v, 5), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuModuleGetGlobal(&q, NULL, m, "counter"), CUDA_SUCCESS);
	ok(q == p, "asked again, it is where it was");
	is_cu(cuMemGetAddressRange(&q, &n, p + 2), CUDA_SUCCESS);
	ok(q == p && n == 4, "its range");
	is_cu(cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuModuleGetGlobal(&p, &n, m, "no_such_variable"), CUDA_ERROR_NOT_FOUND);
	is_cu(cuModuleGetGlobal(&p, &n, m, "table"), CUDA_SUCCESS);
	is_int(n, 16, "a constant array");
}

static void bad_images(void)
{
	char log[256] = "untouched";
	CUjit_option opt[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *val[] = {log, (void *)sizeof(log)};
	CUjit_option strange = CU_JIT_GLOBAL_SYMBOL_NAMES;
	char *copy = malloc(ptx_len + 1), zeroes[256] = {0};
	CUmodule m;

	memcpy(copy, ptx, ptx_len + 1);
	copy[ptx_len / 2] = 0;
	is_cu(cuModuleLoadData(&m, copy), CUDA_ERROR_INVALID_PTX);
	is_cu(cuModuleLoadDataEx(&m, copy, 2, opt, val), CUDA_ERROR_INVALID_PTX);
	ok(strcmp(log, "untouched") && (size_t)val[1] == strlen(log), "the error log says why: %.60s", log);
	is_cu(cuModuleLoadData(&m, zeroes), CUDA_ERROR_INVALID_IMAGE);
	is_cu(cuModuleLoadData(&m, NULL), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuModuleLoad(&m, "/nonexistent"), CUDA_ERROR_FILE_NOT_FOUND);
	is_cu(cuModuleLoadDataEx(&m, ptx, 1, &strange, val), CUDA_ERROR_NOT_SUPPORTED);
	is_cu(cuModuleUnload((CUmodule)0x77), CUDA_ERROR_INVALID_HANDLE);
	is_cu(cuCtxSynchronize(), CUDA_SUCCESS); /* nothing of it is left for a later call */
	free(copy);
}

static void library(void)
{
	void *fptr = NULL;
	CUlibrary l, back;
	CUkernel k, list[32];
	CUmodule m, m2;
	CUfunction f, g;
	CUdeviceptr p;
	const char *name;
	unsigned n;
	size_t bytes;
	long before;
	int v;

	before = rgpuRoundTrips(NULL);
	is_cu(cuLibraryLoadData(&l, fatbin, NULL, NULL, 0, NULL, NULL, 0), CUDA_SUCCESS);
	is_int(rgpuRoundTrips(NULL), before + 1, "a library from a fat binary: one round trip");
	is_cu(cuLibraryGetKernel(&k, l, "nothing"), CUDA_ERROR_NOT_FOUND);
	is_cu(cuLibraryGetKernel(&k, l, "times3"), CUDA_SUCCESS);
	is_cu(cuLibraryGetKernelCount(&n, l), CUDA_SUCCESS);
	is_cu(cuLibraryEnumerateKernels(list, n, l), CUDA_SUCCESS);
	is_int(n, 10, "its kernels");
	is_cu(cuKernelGetName(&name, k), CUDA_SUCCESS);
	is_str(name, "times3", "a kernel's name");
	is_cu(cuKernelGetLibrary(&back, k), CUDA_SUCCESS);
	ok(back == l, "its library");
	is_cu(cuKernelGetParamInfo(k, 1, &bytes, NULL), CUDA_SUCCESS);
	is_int(bytes, 8, "its second parameter lies at 8");
	is_cu(cuKernelGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, k, 0), CUDA_SUCCESS);
	is_cu(cuKernelGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, k, 5), CUDA_ERROR_INVALID_DEVICE);
	is_cu(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000, k, 0), CUDA_SUCCESS);
	must(cuKernelGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, k, 0));
	is_int(v, 60000, "how much shared memory it may ask for");
	is_cu(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 30, k, 0), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_NUM_REGS, 8, k, 0), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 0, k, 5), CUDA_ERROR_INVALID_DEVICE);
	is_cu(cuKernelSetCacheConfig(k, CU_FUNC_CACHE_PREFER_L1, 0), CUDA_SUCCESS);
	is_cu(cuKernelSetCacheConfig(k, 99, 0), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuKernelSetCacheConfig(k, CU_FUNC_CACHE_PREFER_L1, 5), CUDA_ERROR_INVALID_DEVICE);
	is_cu(cuKernelGetFunction(&f, k), CUDA_SUCCESS);
	is_cu(cuLibraryGetUnifiedFunction(&fptr, l, "k"), CUDA_ERROR_NOT_FOUND);
	is_cu(cuLibraryGetUnifiedFunction(NULL, l, "k"), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuLibraryGetModule(&m, l), CUDA_SUCCESS);
	is_cu(cuLibraryGetModule(&m2, l), CUDA_SUCCESS);
	ok(m == m2, "one module a context");
	is_cu(cuModuleGetFunction(&g, m, "times3"), CUDA_SUCCESS);
	ok(f == g, "the same function both ways");
	is_cu(cuModuleUnload(m), CUDA_ERROR_INVALID_HANDLE);
	is_cu(cuLibraryGetGlobal(&p, &bytes, l, "counter"), CUDA_SUCCESS);
	must(cuMemcpyDtoH(&v, p, 4));
	is_int(v, 7, "its own copy of the variable");
	is_cu(cuLibraryUnload(l), CUDA_SUCCESS);
	is_cu(cuLibraryUnload(l), CUDA_ERROR_INVALID_HANDLE);
	is_cu(cuKernelGetName(&name, k), CUDA_ERROR_INVALID_HANDLE);
	is_cu(cuMemcpyDtoH(&v, p, 4), CUDA_ERROR_INVALID_VALUE);
}

/* Variables of one module after the other, mostly where the last one's were: none is taken for a smaller, older one. */
static void reloaded(void)
{
	char text[256], buf[8192] = "";
	unsigned bad = 0;
	CUdeviceptr p;
	CUmodule one;
	size_t n;

	for (size_t size = 16; size <= sizeof(buf); size *= 2) {
		sprintf(text, ".version 7.0\n.target sm_75\n.address_size 64\n.visible .global .align 16 .b8 g[%zu];\n", size);
		must(cuModuleLoadData(&one, text));
		must(cuModuleGetGlobal(&p, &n, one, "g"));
		bad += n != size || cuMemcpyHtoD(p, buf, size) || cuMemcpyHtoD(p, buf, size + 1) != CUDA_ERROR_INVALID_VALUE;
		must(cuModuleUnload(one));
		bad += cuMemcpyHtoD(p, buf, 4) != CUDA_ERROR_INVALID_VALUE;
	}
	is_int(bad, 0, "variables of ten modules, one after the other");
	is_cu(cuCtxSynchronize(), CUDA_SUCCESS);
}

/* Larger than what travels in records: through buffer objects, the table behind it in bulk. */
static void many(void)
{
	enum { N = 6000 };
	char *text = malloc(N * 200), *at = text, name[32];
	unsigned n = 0, bad = 0;
	CUfunction f;
	CUmodule m;
	long before;
	size_t off, size;

	at += sprintf(at, ".version 7.0\n.target sm_75\n.address_size 64\n");
	for (int i = 0; i < N; i++)
		at += sprintf(at, ".visible .entry k%d(.param .u64 a, .param .u32 b%s)\n{\n\tret;\n}\n", i,
			      i % 2 ? "" : ", .param .u64 c");
	before = rgpuRoundTrips(NULL);
	is_cu(cuModuleLoadData(&m, text), CUDA_SUCCESS);
	is_int(rgpuRoundTrips(NULL), before + 1, "a module of %d kernels, %zu KiB: one round trip", N, (at - text) / 1024);
	must(cuModuleGetFunctionCount(&n, m));
	is_int(n, N, "all of them are there");
	for (int i = 0; i < N; i++) {
		sprintf(name, "k%d", i);
		bad += cuModuleGetFunction(&f, m, name) || cuFuncGetParamInfo(f, i % 2 ? 1 : 2, &off, &size) ||
		       off != (i % 2 ? 8 : 16) || size != (i % 2 ? 4 : 8) ||
		       cuFuncGetParamInfo(f, i % 2 ? 2 : 3, &off, &size) != CUDA_ERROR_INVALID_VALUE;
	}
	is_int(bad, 0, "each with its parameters");
	must(cuModuleUnload(m));
	free(text);
}

/* A table of kernels that no one answer holds. */
static void long_names(void)
{
	enum { N = 3000, LENGTH = 1000 };
	char *text = malloc(N * (LENGTH + 100)), *at = text, *name = malloc(LENGTH + 1);
	unsigned bad = 0;
	const char *got;
	CUfunction f;
	CUmodule m;
	long before;
	size_t off, size;

	memset(name, 'k', LENGTH);
	name[LENGTH] = 0;
	at += sprintf(at, ".version 7.0\n.target sm_75\n.address_size 64\n");
	for (int i = 0; i < N; i++)
		at += sprintf(at, ".visible .entry %.*s%06d(.param .u64 a, .param .b8 b[%d])\n{\n\tret;\n}\n", LENGTH - 6, name,
			      i, i + 1);
	before = rgpuRoundTrips("LOAD_TABLE");
	is_cu(cuModuleLoadData(&m, text), CUDA_SUCCESS);
	ok(rgpuRoundTrips("LOAD_TABLE") > before, "names of 3 MB come in several answers");
	for (int i = 0; i < N; i++) {
		sprintf(name + LENGTH - 6, "%06d", i);
		bad += cuModuleGetFunction(&f, m, name) || cuFuncGetName(&got, f) || strcmp(got, name) ||
		       cuFuncGetParamInfo(f, 1, &off, &size) || off != 8 || size != (size_t)i + 1;
	}
	is_int(bad, 0, "each has its name and its parameters");
	must(cuModuleUnload(m));
	free(text);
	free(name);
}

/* What is asked of the linker at a load. */
static void options(void)
{
	CUjit_option option = CU_JIT_MAX_REGISTERS;
	char text[8192], *at = text;
	void *value = (void *)32;
	CUfunction f;
	CUmodule m;

	at += sprintf(at,
		      ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n\t.reg .u32 r<70>;\n"
		      "\t.reg .u64 a;\n\tld.param.u64 a, [p];\n");
	for (int i = 0; i < 70; i++)
		at += sprintf(at, "\tld.global.u32 r%d, [a+%d];\n", i, 4 * i);
	for (int i = 70; i--;)
		at += sprintf(at, "\tst.global.u32 [a+%d], r%d;\n", 4 * (69 - i), i);
	strcpy(at, "\tret;\n}\n");
	for (int limited = 0; limited < 2; limited++) {
		int v = -1;

		is_cu(cuModuleLoadDataEx(&m, text, limited, &option, &value), CUDA_SUCCESS);
		must(cuModuleGetFunction(&f, m, "k"));
		is_cu(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_NUM_REGS, f), CUDA_SUCCESS);
		ok(limited ? v == 32 : v > 32, "%d registers", v);
		must(cuModuleUnload(m));
	}
}

int main(void)
{
	CUmodule m;
	CUmoduleLoadingMode mode;
	long before;

	serve(NULL, 1);
	ptx = read_all("tests/api/kernels.ptx", &ptx_len);
	fatbin = read_all("tests/api/kernels.fatbin", NULL);
	primary();
	before = rgpuRoundTrips(NULL);
	is_cu(cuModuleLoadData(&m, ptx), CUDA_SUCCESS);
	is_int(rgpuRoundTrips(NULL), before + 1, "a module from PTX: one round trip");
	is_cu(cuModuleGetLoadingMode(&mode), CUDA_SUCCESS);
	kernels(m);
	globals(m);
	is_cu(cuModuleUnload(m), CUDA_SUCCESS);
	is_cu(cuModuleUnload(m), CUDA_ERROR_INVALID_HANDLE);
	is_cu(cuModuleGetFunction(&(CUfunction){0}, m, "fill"), CUDA_ERROR_INVALID_HANDLE);
	is_cu(cuModuleLoad(&m, built("tests/api/kernels.fatbin")), CUDA_SUCCESS);
	is_cu(cuModuleUnload(m), CUDA_SUCCESS);
	is_cu(cuModuleLoadFatBinary(&m, fatbin), CUDA_SUCCESS);
	is_cu(cuModuleUnload(m), CUDA_SUCCESS);
	bad_images();
	library();
	reloaded();
	many();
	long_names();
	options();
	return tap_done();
}
