// SPDX-License-Identifier: MIT
/* Tests of modules, libraries, functions and launches, with a small PTX module of their own. */
#include "tests/softgpu/drv.h"

#include <fcntl.h>

static const char ptx[] =
	".version 7.5\n"
	".target sm_75\n"
	".address_size 64\n"
	".visible .global .align 4 .u32 counter = 5;\n"
	".visible .const .align 8 .b8 table[16] = {1, 2, 3, 4};\n"
	".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n"
	".global .align 1 .b8 hello[14] = {104, 101, 108, 108, 111, 32, 119, 111, 114, 108, 100, 10, 0};\n"
	/* fill(p, n, v): p[i] = v + i */
	".visible .entry fill(.param .u64 p, .param .u32 n, .param .u32 v)\n"
	"{\n"
	"	.reg .pred %c; .reg .b32 %r<8>; .reg .b64 %d<4>;\n"
	"	ld.param.u64 %d0, [p];\n"
	"	ld.param.u32 %r0, [n];\n"
	"	ld.param.u32 %r1, [v];\n"
	"	mov.u32 %r2, %ctaid.x;\n"
	"	mov.u32 %r3, %ntid.x;\n"
	"	mov.u32 %r4, %tid.x;\n"
	"	mad.lo.s32 %r5, %r2, %r3, %r4;\n"
	"	setp.ge.u32 %c, %r5, %r0;\n"
	"	@%c bra DONE;\n"
	"	add.u32 %r1, %r1, %r5;\n"
	"	mul.wide.u32 %d1, %r5, 4;\n"
	"	add.u64 %d0, %d0, %d1;\n"
	"	st.global.u32 [%d0], %r1;\n"
	"DONE:\n"
	"	ret;\n"
	"}\n"
	/* big(struct of 24 bytes, align 8; u8; u16; struct of 12 bytes, align 4; out): *out = last word of the last struct */
	".visible .entry big(.param .align 8 .b8 s[24], .param .u8 a, .param .u16 b, .param .align 4 .b8 t[12], .param .u64 "
	"out)\n"
	"{\n"
	"	.reg .b32 %r<3>; .reg .b64 %d<2>;\n"
	"	ld.param.u32 %r0, [t+8];\n"
	"	ld.param.u16 %r1, [b];\n"
	"	add.u32 %r0, %r0, %r1;\n"
	"	ld.param.u64 %d0, [out];\n"
	"	st.global.u32 [%d0], %r0;\n"
	"	ret;\n"
	"}\n"
	".visible .entry bump()\n"
	"{\n"
	"	.reg .b32 %r<2>;\n"
	"	ld.global.u32 %r0, [counter];\n"
	"	add.u32 %r0, %r0, 1;\n"
	"	st.global.u32 [counter], %r0;\n"
	"	ret;\n"
	"}\n"
	/* spin(p): until *p is not 0 */
	".visible .entry spin(.param .u64 p)\n"
	"{\n"
	"	.reg .pred %c; .reg .b32 %r<2>; .reg .b64 %d<2>;\n"
	"	ld.param.u64 %d0, [p];\n"
	"AGAIN:\n"
	"	ld.volatile.global.u32 %r0, [%d0];\n"
	"	setp.eq.u32 %c, %r0, 0;\n"
	"	@%c bra AGAIN;\n"
	"	ret;\n"
	"}\n"
	".visible .entry wild(.param .u64 p)\n"
	"{\n"
	"	.reg .b32 %r<2>; .reg .b64 %d<2>;\n"
	"	ld.param.u64 %d0, [p];\n"
	"	mov.u32 %r0, 1;\n"
	"	st.global.u32 [%d0], %r0;\n"
	"	ret;\n"
	"}\n"
	".visible .entry stop_it()\n{\n	brkpt;\n	ret;\n}\n"
	".func bottomless() {\n	.local .b8 l[1024];\n	call bottomless;\n	ret;\n}\n"
	".visible .entry deep()\n{\n	call bottomless;\n	ret;\n}\n"
	".visible .entry trap_it()\n"
	"{\n"
	"	trap;\n"
	"	ret;\n"
	"}\n"
	".visible .entry say()\n"
	"{\n"
	"	.reg .b32 %r<2>; .reg .b64 %d<3>;\n"
	"	mov.u64 %d0, hello;\n"
	"	cvta.global.u64 %d1, %d0;\n"
	"	mov.u64 %d2, 0;\n"
	"	{\n"
	"	.param .b64 p0; .param .b64 p1; .param .b32 ret0;\n"
	"	st.param.b64 [p0], %d1;\n"
	"	st.param.b64 [p1], %d2;\n"
	"	call.uni (ret0), vprintf, (p0, p1);\n"
	"	ld.param.b32 %r0, [ret0];\n"
	"	}\n"
	"	ret;\n"
	"}\n"
	".visible .entry narrow() .maxntid 64, 1, 1\n"
	"{\n"
	"	.shared .align 4 .b8 room[1024];\n"
	"	.reg .b32 %r<2>;\n"
	"	mov.u32 %r0, 0;\n"
	"	st.shared.u32 [room], %r0;\n"
	"	ret;\n"
	"}\n";

static CUdeviceptr out;

static CUresult run(CUfunction f, unsigned int grid, unsigned int block, void **params)
{
	CUresult r = cuLaunchKernel(f, grid, 1, 1, block, 1, 1, 0, NULL, params, NULL);

	return r == CUDA_SUCCESS ? cuCtxSynchronize() : r;
}

static void images(void)
{
	static uint8_t box[16 + 80 + sizeof(ptx) + 8];
	struct {
		uint32_t magic, version;
		const void *data, *aux;
	} wrapper = {0x466243B1, 1, box, NULL};
	uint64_t padded = (sizeof(ptx) + 7) & ~7ull, v64;
	char log[512] = "", info[64] = "x";
	CUjit_option option[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
				 CU_JIT_INFO_LOG_BUFFER,  CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
				 CU_JIT_WALL_TIME,	  CU_JIT_MAX_REGISTERS};
	void *value[] = {log, (void *)sizeof(log), info, (void *)sizeof(info), NULL, (void *)32};
	static char half[sizeof(ptx)];
	CUfunction f;
	CUmodule m;

	memcpy(box, "\x50\xed\x55\xba\x01\x00\x10\x00", 8);
	v64 = 80 + padded;
	memcpy(box + 8, &v64, 8);
	memcpy(box + 16, "\x01\x00\x01\x01\x50\x00\x00\x00", 8);
	memcpy(box + 24, &padded, 8);
	box[16 + 28] = 75;
	memcpy(box + 96, ptx, sizeof(ptx));
	works(cuModuleLoadData(&m, box));
	works(cuModuleGetFunction(&f, m, "bump"));
	works(cuModuleUnload(m));
	works(cuModuleLoadData(&m, &wrapper));
	works(cuModuleUnload(m));
	works(cuModuleLoadFatBinary(&m, box));
	works(cuModuleUnload(m));
	box[16 + 28] = 130;
	gives(cuModuleLoadData(&m, box), CUDA_ERROR_NO_BINARY_FOR_GPU);
	box[16 + 28] = 75;
	box[16] = 2;
	gives(cuModuleLoadData(&m, box), CUDA_ERROR_NO_BINARY_FOR_GPU);
	box[16] = 1;
	box[24 + 7] = 0xff;
	gives(cuModuleLoadData(&m, box), CUDA_ERROR_INVALID_IMAGE);
	gives(cuModuleLoadData(&m, "\177ELF...."), CUDA_ERROR_NO_BINARY_FOR_GPU);
	gives(cuModuleLoadData(&m, "what is this"), CUDA_ERROR_INVALID_IMAGE);
	gives(cuModuleLoadData(&m, NULL), CUDA_ERROR_INVALID_VALUE);
	gives(cuModuleLoadData(NULL, ptx), CUDA_ERROR_INVALID_VALUE);
	memcpy(half, ptx, sizeof(ptx) / 2);
	gives(cuModuleLoadDataEx(&m, half, 6, option, value), CUDA_ERROR_INVALID_PTX);
	ok(strstr(log, "line ") && (size_t)value[1] == strlen(log), "the log names the line: %s", log);
	value[1] = (void *)sizeof(log);
	works(cuModuleLoadDataEx(&m, ptx, 6, option, value));
	ok(!log[0] && !info[0] && !value[1], "a good module has nothing in the log");
	works(cuModuleUnload(m));
	gives(cuModuleUnload(m), CUDA_ERROR_INVALID_HANDLE);
	gives(cuModuleGetFunction(&f, m, "bump"), CUDA_ERROR_INVALID_HANDLE);
	gives(cuModuleLoad(&m, "/nonexistent/file"), CUDA_ERROR_FILE_NOT_FOUND);
	option[5] = 9999;
	gives(cuModuleLoadDataEx(&m, ptx, 6, option, value), CUDA_ERROR_INVALID_VALUE);
}

static void linking(void)
{
	static char copy[sizeof(ptx)];
	CUlinkState l;
	CUfunction f;
	void *image;
	size_t bytes;
	CUmodule m;

	memcpy(copy, ptx, sizeof(ptx));
	works(cuLinkCreate(0, NULL, NULL, &l));
	gives(cuLinkComplete(l, &image, &bytes), CUDA_ERROR_INVALID_VALUE);
	works(cuLinkAddData(l, CU_JIT_INPUT_PTX, copy, sizeof(copy), "x", 0, NULL, NULL));
	memset(copy, 0, sizeof(copy));
	gives(cuLinkAddData(l, CU_JIT_INPUT_PTX, copy, sizeof(copy), "y", 0, NULL, NULL), CUDA_ERROR_INVALID_PTX);
	works(cuLinkComplete(l, &image, &bytes));
	is_int(bytes, strlen(image) + 1, "a linked image is a text");
	works(cuModuleLoadData(&m, image));
	works(cuModuleGetFunction(&f, m, "fill"));
	works(cuModuleUnload(m));
	works(cuLinkDestroy(l));
	gives(cuLinkDestroy(l), CUDA_ERROR_INVALID_HANDLE);
}

static void questions(CUmodule m)
{
	static const size_t offsets[] = {0, 24, 26, 28, 40}, sizes[] = {24, 1, 2, 12, 8};
	CUfunction f, g, all[16];
	const char *name;
	CUdeviceptr p;
	CUmodule back;
	size_t n, o;
	unsigned int count;
	int v, right = 0;

	works(cuModuleGetFunctionCount(&count, m));
	is_int(count, 10, "ten kernels");
	works(cuModuleEnumerateFunctions(all, 16, m));
	works(cuFuncGetName(&name, all[1]));
	is_str(name, "big", "in the order of the text");
	works(cuModuleGetFunction(&f, m, "big"));
	works(cuModuleGetFunction(&g, m, "big"));
	ok(f == g && f == all[1], "a function has one handle");
	works(cuFuncGetModule(&back, f));
	ok(back == m, "and knows its module");
	for (int i = 0; i < 5; i++)
		right += cuFuncGetParamInfo(f, i, &o, &n) == CUDA_SUCCESS && o == offsets[i] && n == sizes[i];
	is_int(right, 5, "parameters lie where the host puts them");
	gives(cuFuncGetParamInfo(f, 5, &o, &n), CUDA_ERROR_INVALID_VALUE);
	gives(cuModuleGetFunction(&f, m, "nobody"), CUDA_ERROR_NOT_FOUND);
	gives(cuModuleGetFunction(&f, m, ""), CUDA_ERROR_INVALID_VALUE);
	gives(cuModuleGetFunction(&f, m, NULL), CUDA_ERROR_INVALID_VALUE);
	works(cuModuleGetGlobal(&p, &n, m, "counter"));
	is_int(n, 4, "a global's size");
	works(cuMemcpyDtoH(&v, p, 4));
	is_int(v, 5, "and its first value");
	works(cuModuleGetGlobal(&p, &n, m, "table"));
	ok(n == 16 && cuMemcpyDtoH(&v, p, 4) == CUDA_SUCCESS && v == 0x04030201, "a constant");
	gives(cuModuleGetGlobal(&p, &n, m, "nobody"), CUDA_ERROR_NOT_FOUND);
	gives(cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
	works(cuModuleGetFunction(&f, m, "narrow"));
	works(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, f));
	is_int(v, 1024, "static shared memory");
	works(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
	is_int(v, 64, "the launch bound");
	works(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_PTX_VERSION, f));
	is_int(v, 75, "compiled for 7.5");
	works(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, f));
	is_int(v, 48 * 1024 - 1024, "what is left of 48 KiB");
	works(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 98 * 1024));
	gives(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 99 * 1024), CUDA_ERROR_INVALID_VALUE);
	gives(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_NUM_REGS, 1), CUDA_ERROR_INVALID_VALUE);
	works(cuOccupancyMaxActiveBlocksPerMultiprocessor(&v, f, 64, 40 * 1024));
	is_int(v, 2, "two blocks of 41 KiB fit");
	works(cuOccupancyMaxActiveBlocksPerMultiprocessor(&v, f, 128, 0));
	is_int(v, 0, "a block above the launch bound fits nowhere");
	works(cuOccupancyMaxPotentialBlockSize(&v, &right, f, NULL, 0, 0));
	is_int(right, 64, "the best block is the launch bound");
}

static void launches(CUmodule m)
{
	uint32_t n = 1000, v = 7, back[1000], bad = 0;
	void *params[] = {&out, &n, &v};
	unsigned char block[16];
	size_t bytes = sizeof(block);
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, block, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
	CUlaunchAttribute attr[2] = {{.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION}};
	CUlaunchConfig c = {1, 1, 1, 32, 1, 1, 0, NULL, attr, 1};
	CUfunction f, narrow;
	CUevent e;

	must(cuModuleGetFunction(&f, m, "fill"));
	must(cuModuleGetFunction(&narrow, m, "narrow"));
	works(cuLaunchKernel(f, 8, 1, 1, 128, 1, 1, 0, NULL, params, NULL));
	n = v = 0; /* the call has taken them */
	works(cuMemcpyDtoH(back, out, sizeof(back)));
	for (uint32_t i = 0; i < 1000; i++)
		bad += back[i] != 7 + i;
	is_int(bad, 0, "a kernel fills a thousand words");

	n = 10;
	v = 100;
	memcpy(block, &out, 8);
	memcpy(block + 8, &n, 4);
	memcpy(block + 12, &v, 4);
	works(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, extra));
	works(cuMemcpyDtoH(back, out, 44));
	ok(back[9] == 109 && back[10] == 17, "the packed form");
	bytes = 12;
	gives(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, extra), CUDA_ERROR_INVALID_VALUE);
	bytes = 16;
	gives(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, params, extra), CUDA_ERROR_INVALID_VALUE);
	gives(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);

	gives(cuLaunchKernel(f, 0, 1, 1, 32, 1, 1, 0, NULL, params, NULL), CUDA_ERROR_INVALID_VALUE);
	gives(cuLaunchKernel(f, 1, 1, 1, 0, 1, 1, 0, NULL, params, NULL), CUDA_ERROR_INVALID_VALUE);
	gives(cuLaunchKernel(f, 1, 1, 1, 1025, 1, 1, 0, NULL, params, NULL), CUDA_ERROR_INVALID_VALUE);
	gives(cuLaunchKernel(f, 1, 1, 1, 64, 64, 1, 0, NULL, params, NULL), CUDA_ERROR_INVALID_VALUE);
	gives(cuLaunchKernel(f, 1, 1, 1, 1, 1, 65, 0, NULL, params, NULL), CUDA_ERROR_INVALID_VALUE);
	gives(cuLaunchKernel(f, 1, 65536, 1, 1, 1, 1, 0, NULL, params, NULL), CUDA_ERROR_INVALID_VALUE);
	gives(cuLaunchKernel(f, 0x80000000u, 1, 1, 1, 1, 1, 0, NULL, params, NULL), CUDA_ERROR_INVALID_VALUE);
	gives(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 50000, NULL, params, NULL), CUDA_ERROR_INVALID_VALUE);
	gives(cuLaunchKernel(narrow, 1, 1, 1, 65, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	gives(cuLaunchCooperativeKernel(narrow, 100000, 1, 1, 64, 1, 1, 0, NULL, NULL), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	works(cuLaunchCooperativeKernel(narrow, 2, 1, 1, 64, 1, 1, 0, NULL, NULL));
	works(cuLaunchKernel(narrow, 1, 1, 1, 64, 1, 1, 90 * 1024, NULL, NULL, NULL));

	must(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	works(cuLaunchKernelEx(&c, f, params, NULL));
	attr[1].id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
	attr[1].value.launchCompletionEvent.event = e;
	c.numAttrs = 2;
	works(cuLaunchKernelEx(&c, f, params, NULL));
	works(cuEventSynchronize(e));
	attr[1].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
	attr[1].value.clusterDim.x = 2;
	attr[1].value.clusterDim.y = attr[1].value.clusterDim.z = 1;
	gives(cuLaunchKernelEx(&c, f, params, NULL), CUDA_ERROR_INVALID_CLUSTER_SIZE);
	attr[1].id = 77;
	gives(cuLaunchKernelEx(&c, f, params, NULL), CUDA_ERROR_INVALID_VALUE);
	gives(cuLaunchKernelEx(NULL, f, params, NULL), CUDA_ERROR_INVALID_VALUE);
	works(cuCtxSynchronize());
	must(cuEventDestroy(e));
}

static void layouts(CUmodule m)
{
	struct {
		double d[3];
	} s = {{1, 2, 3}};
	struct {
		int x[3];
	} t = {{4, 5, 600}};
	unsigned char a = 1;
	unsigned short b = 30;
	void *params[] = {&s, &a, &b, &t, &out};
	CUfunction f;
	int v;

	must(cuModuleGetFunction(&f, m, "big"));
	works(run(f, 1, 1, params));
	must(cuMemcpyDtoH(&v, out, 4));
	is_int(v, 630, "structures and small integers arrive");
}

/* Module memory is a copy per load, and lives in global memory. */
static void globals(void)
{
	CUmodule a, b;
	CUdeviceptr pa, pb;
	CUfunction f;
	uint32_t v = 41;
	size_t n;

	must(cuModuleLoadData(&a, ptx));
	must(cuModuleLoadData(&b, ptx));
	must(cuModuleGetGlobal(&pa, &n, a, "counter"));
	must(cuModuleGetGlobal(&pb, &n, b, "counter"));
	ok(pa != pb, "two loads, two globals");
	must(cuMemcpyHtoD(pa, &v, 4));
	must(cuModuleGetFunction(&f, a, "bump"));
	works(run(f, 1, 1, NULL));
	must(cuMemcpyDtoH(&v, pa, 4));
	is_int(v, 42, "a kernel sees what was copied to its global");
	must(cuMemcpyDtoH(&v, pb, 4));
	is_int(v, 5, "the other is untouched");
	works(cuModuleUnload(a));
	gives(cuMemcpyDtoH(&v, pa, 4), CUDA_ERROR_INVALID_VALUE);
	gives(run(f, 1, 1, NULL), CUDA_ERROR_INVALID_HANDLE);
	works(cuModuleUnload(b));
}

/* Device malloc has what the limit says, in modules that are loaded after it was set. */
static void mallocs(void)
{
	static const char text[] = ".version 8.0\n.target sm_75\n.address_size 64\n"
				   ".extern .func (.param .b64 r) malloc (.param .b64 n);\n"
				   ".visible .entry grab(.param .u64 o)\n{\n.reg .b64 %a, %n, %p;\n"
				   "{ .param .b64 n; .param .b64 r; mov.u64 %n, 33554432; st.param.b64 [n], %n;\n"
				   "call (r), malloc, (n); ld.param.b64 %p, [r]; }\n"
				   "ld.param.u64 %a, [o]; st.global.u64 [%a], %p; ret;\n}\n";
	size_t before, now;
	uint64_t got[2];
	CUfunction f;
	CUmodule m;
	void *params[] = {&out};

	must(cuCtxGetLimit(&before, CU_LIMIT_MALLOC_HEAP_SIZE));
	for (int i = 0; i < 2; i++) {
		must(cuModuleLoadData(&m, text));
		must(cuModuleGetFunction(&f, m, "grab"));
		works(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
		works(cuMemcpyDtoH(&got[i], out, 8));
		gives(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 128 << 20), CUDA_ERROR_INVALID_VALUE);
		works(cuModuleUnload(m));
		works(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 64 << 20));
	}
	ok(!got[0] && got[1], "32 MiB are too much for a heap of 8, and not for one of 64");
	works(cuCtxGetLimit(&now, CU_LIMIT_MALLOC_HEAP_SIZE));
	ok(before == 8 << 20 && now == 64 << 20, "the limit is told");
	works(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, before));
}

static void libraries(CUcontext primary)
{
	uint32_t n = 4, v = 11, back[4];
	void *params[] = {&out, &n, &v};
	CUlibraryOption keep = CU_LIBRARY_BINARY_IS_PRESERVED;
	CUkernel k, kernels[16];
	CUdeviceptr pa, pb;
	CUfunction f, g;
	CUcontext other;
	CUlibrary lib, l2;
	const char *name;
	unsigned int count;
	size_t off, size;
	CUmodule m;
	int value;

	works(cuLibraryLoadData(&lib, ptx, NULL, NULL, 0, &keep, NULL, 1));
	gives(cuLibraryLoadData(&l2, "junk", NULL, NULL, 0, NULL, NULL, 0), CUDA_ERROR_INVALID_IMAGE);
	works(cuLibraryGetKernelCount(&count, lib));
	is_int(count, 10, "a library knows its kernels");
	works(cuLibraryEnumerateKernels(kernels, 16, lib));
	works(cuLibraryGetKernel(&k, lib, "fill"));
	ok(k == kernels[0], "by name and by number");
	gives(cuLibraryGetKernel(&k, lib, "nobody"), CUDA_ERROR_NOT_FOUND);
	works(cuKernelGetName(&name, k));
	is_str(name, "fill", "a kernel's name");
	works(cuKernelGetLibrary(&l2, k));
	ok(l2 == lib, "a kernel's library");
	works(cuKernelGetParamInfo(k, 2, &off, &size));
	ok(off == 12 && size == 4, "a kernel's parameters");
	works(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, k, 0));
	is_int(value, 48 * 1024, "an attribute before any use");
	works(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000, k, 0));

	works(cuLaunchKernel((CUfunction)k, 1, 1, 1, 32, 1, 1, 60000, NULL, params, NULL));
	works(cuMemcpyDtoH(back, out, 16));
	is_int(back[3], 14, "a kernel handle launches");
	works(cuKernelGetFunction(&f, k));
	works(cuLibraryGetGlobal(&pa, &size, lib, "counter"));
	works(cuCtxCreate(&other, NULL, 0, 0));
	works(cuKernelGetFunction(&g, k));
	ok(f != g, "each context has a function of its own");
	works(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, g));
	is_int(value, 60000, "with the attribute set before");
	works(cuLibraryGetGlobal(&pb, &size, lib, "counter"));
	ok(pa != pb, "and globals of its own");
	gives(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL), CUDA_ERROR_INVALID_HANDLE);
	works(cuLaunchKernel((CUfunction)k, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
	works(cuCtxSynchronize());
	works(cuCtxDestroy(other));
	must(cuCtxSetCurrent(primary));
	works(cuLibraryGetModule(&m, lib));
	works(cuLibraryUnload(lib));
	gives(cuLibraryUnload(lib), CUDA_ERROR_INVALID_HANDLE);
	gives(cuModuleGetFunction(&f, m, "fill"), CUDA_ERROR_INVALID_HANDLE);
	gives(cuLaunchKernel((CUfunction)k, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL), CUDA_ERROR_INVALID_HANDLE);
}

/* A kernel that waits for memory is no obstacle to the stream that writes it, and unloading waits for the kernel. */
static void concurrency(void)
{
	CUstream a, b;
	CUmodule m;
	CUfunction spin;
	CUdeviceptr flag;
	void *params[] = {&flag};

	must(cuMemAlloc(&flag, 4));
	must(cuMemsetD32(flag, 0, 1));
	must(cuModuleLoadData(&m, ptx));
	must(cuModuleGetFunction(&spin, m, "spin"));
	must(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
	must(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
	must(cuCtxSynchronize());
	for (int i = 0; i < 2000; i++)
		must(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, a, params, NULL));
	gives(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
	works(cuMemsetD32Async(flag, 1, 1, b));
	works(cuStreamSynchronize(b));
	works(cuModuleUnload(m));
	works(cuStreamQuery(a));
	must(cuStreamDestroy(a));
	must(cuStreamDestroy(b));
	must(cuMemFree(flag));
}

static char said[256];

static void hear(void *arg, const char *text, size_t len)
{
	strncat(arg, text, len);
}

static void printing(CUmodule m)
{
	CUfunction f;

	must(cuModuleGetFunction(&f, m, "say"));
	softgpu_set_print(hear, said);
	works(run(f, 1, 2, NULL));
	softgpu_set_print(NULL, NULL);
	is_str(said, "hello world\nhello world\n", "device printf goes where it was sent");
}

/* Runs @name in a context of its own on the address @p; what stderr got is in *line. */
static CUresult fault(const char *name, uint64_t p, char *line, size_t room)
{
	char file[] = "/tmp/softgpu-test-XXXXXX";
	int keep = dup(2), fd = mkstemp(file);
	void *params[] = {&p};
	CUdeviceptr q;
	CUcontext c;
	CUmodule m;
	CUfunction f;
	CUresult r;
	ssize_t n;

	unlink(file);
	must(cuCtxCreate(&c, NULL, 0, 0));
	must(cuModuleLoadData(&m, ptx));
	must(cuModuleGetFunction(&f, m, name));
	fflush(stderr);
	dup2(fd, 2);
	must(cuLaunchKernel(f, 3, 1, 1, 40, 1, 1, 0, NULL, params, NULL));
	r = cuCtxSynchronize();
	dup2(keep, 2);
	close(keep);
	n = pread(fd, line, room - 1, 0);
	line[n < 0 ? 0 : n] = 0;
	close(fd);
	ok(n > 0 && line[n - 1] == '\n' && strchr(line, '\n') == line + n - 1, "a fault is one line on stderr");
	line[strcspn(line, "\n")] = 0;
	is_int(cuMemAlloc(&q, 4), r, "later calls give the same error");
	is_int(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL), r, "launches too");
	must(cuCtxDestroy(c));
	return r;
}

static void faults(void)
{
	char line[512];

	is_int(fault("wild", 0x123450, line, sizeof(line)), CUDA_ERROR_ILLEGAL_ADDRESS, "a wild store");
	ok(strstr(line, "softgpu: kernel wild: illegal address 0x123450 block (") && strstr(line, " PTX line "),
	   "that says who and where: %s", line);
	is_int(fault("wild", out + 2, line, sizeof(line)), CUDA_ERROR_MISALIGNED_ADDRESS, "a misaligned store");
	is_int(fault("trap_it", 0, line, sizeof(line)), CUDA_ERROR_ILLEGAL_INSTRUCTION, "a trap");
	ok(strstr(line, "softgpu: kernel trap_it: illegal instruction"), "and its line: %s", line);
	is_int(fault("stop_it", 0, line, sizeof(line)), CUDA_ERROR_ILLEGAL_INSTRUCTION, "a breakpoint without a debugger");
	is_int(fault("deep", 0, line, sizeof(line)), CUDA_ERROR_HARDWARE_STACK_ERROR, "recursion without end");
	ok(strstr(line, "softgpu: kernel deep: stack overflow"), "and its function: %s", line);
}

/* With a limit for launches a kernel that would never end is an error, and the context is lost. */
static void timed_out(CUcontext primary)
{
	char line[512];
	CUdeviceptr zero;

	must(cuMemAlloc(&zero, 4));
	must(cuMemsetD32(zero, 0, 1));
	setenv("RGPU_SOFTGPU_LAUNCH_TIMEOUT_MS", "30", 1);
	is_int(fault("spin", zero, line, sizeof(line)), CUDA_ERROR_LAUNCH_TIMEOUT, "a launch beyond its time");
	ok(strstr(line, "softgpu: kernel spin: timed out"), "is told: %s", line);
	unsetenv("RGPU_SOFTGPU_LAUNCH_TIMEOUT_MS");
	must(cuCtxSetCurrent(primary));
	must(cuMemFree(zero));
}

/* A kernel that would never end goes with its context. */
static void endless(CUcontext primary)
{
	CUdeviceptr zero;
	void *params[] = {&zero};
	CUfunction f;
	CUcontext c;
	CUmodule m;

	must(cuCtxCreate(&c, NULL, 0, 0));
	must(cuMemAlloc(&zero, 4));
	must(cuMemsetD32(zero, 0, 1));
	must(cuModuleLoadData(&m, ptx));
	must(cuModuleGetFunction(&f, m, "spin"));
	must(cuLaunchKernel(f, 4, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
	nap_ms(5);
	works(cuCtxDestroy(c));
	must(cuCtxSetCurrent(primary));
	works(cuCtxSynchronize());
}

/* A fault ends the context's other kernels, too. */
static void fault_beside(CUcontext primary)
{
	uint64_t bad = 0x123450;
	CUdeviceptr zero;
	void *spin_params[] = {&zero}, *wild_params[] = {&bad};
	CUfunction spin, wild;
	CUstream a, b;
	CUcontext c;
	CUmodule m;

	must(cuCtxCreate(&c, NULL, 0, 0));
	must(cuMemAlloc(&zero, 4));
	must(cuMemsetD32(zero, 0, 1));
	must(cuModuleLoadData(&m, ptx));
	must(cuModuleGetFunction(&spin, m, "spin"));
	must(cuModuleGetFunction(&wild, m, "wild"));
	must(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
	must(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
	must(cuCtxSynchronize());
	must(cuLaunchKernel(spin, 2, 1, 1, 64, 1, 1, 0, a, spin_params, NULL));
	must(cuLaunchKernel(wild, 1, 1, 1, 1, 1, 1, 0, b, wild_params, NULL));
	gives(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	works(cuCtxDestroy(c));
	must(cuCtxSetCurrent(primary));
}

int main(void)
{
	CUcontext ctx = drv_start();
	CUmodule m;

	must(cuMemAlloc(&out, 4096));
	images();
	linking();
	must(cuModuleLoadData(&m, ptx));
	questions(m);
	launches(m);
	layouts(m);
	globals();
	mallocs();
	libraries(ctx);
	concurrency();
	printing(m);
	faults();
	timed_out(ctx);
	endless(ctx);
	fault_beside(ctx);
	works(cuModuleUnload(m));
	works(cuMemFree(out));
	works(cuDevicePrimaryCtxRelease(0));
	return tap_done();
}
