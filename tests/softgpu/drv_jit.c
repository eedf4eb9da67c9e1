// SPDX-License-Identifier: MIT
/* What programs that compile at run time rely on: limits of registers, sizes, the unit of shared memory, the grid barrier. */
#include "tests/softgpu/drv.h"

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"

/* A kernel that needs more than 64 registers: all are loaded before the first is stored. */
static const char *many(char *text, size_t size, const char *directive)
{
	size_t n = (size_t)snprintf(text, size,
				    HEAD ".visible .entry k(.param .u64 p)\n%s\n{ .reg .b32 %%r<80>; .reg .b64 %%p; "
					 "ld.param.u64 %%p, [p];\n",
				    directive);

	for (int i = 0; i < 70; i++)
		n += (size_t)snprintf(text + n, size - n, "ld.volatile.global.u32 %%r%d, [%%p+%d];\n", i, 4 * i);
	for (int i = 0; i < 70; i++)
		n += (size_t)snprintf(text + n, size - n, "st.volatile.global.u32 [%%p+%d], %%r%d;\n", 4 * i, i);
	snprintf(text + n, size - n, "ret; }\n");
	return text;
}

static int registers(CUmodule m)
{
	CUfunction f;
	int v = -1;

	must(cuModuleGetFunction(&f, m, "k"));
	must(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_NUM_REGS, f));
	must(cuModuleUnload(m));
	return v;
}

static void limits(void)
{
	CUjit_option option = CU_JIT_MAX_REGISTERS;
	void *value = (void *)32, *image;
	static char text[16384];
	CUlinkState link;
	CUlibrary lib;
	CUkernel k;
	CUmodule m;
	size_t n;
	int v;

	must(cuModuleLoadData(&m, many(text, sizeof(text), "")));
	v = registers(m);
	is_int(v, 64, "a kernel with 70 live values, and room for 1,024 threads");
	must(cuModuleLoadDataEx(&m, text, 1, &option, &value));
	is_int(registers(m), 32, "CU_JIT_MAX_REGISTERS at the load");
	must(cuLibraryLoadData(&lib, text, &option, &value, 1, NULL, NULL, 0));
	must(cuLibraryGetKernel(&k, lib, "k"));
	must(cuKernelGetAttribute(&v, CU_FUNC_ATTRIBUTE_NUM_REGS, k, 0));
	is_int(v, 32, "of a library");
	must(cuLibraryUnload(lib));
	must(cuLinkCreate(1, &option, &value, &link));
	must(cuLinkAddData(link, CU_JIT_INPUT_PTX, text, strlen(text) + 1, "k", 0, NULL, NULL));
	must(cuLinkComplete(link, &image, &n));
	must(cuModuleLoadData(&m, image));
	is_int(registers(m), 32, "at the link");
	must(cuLinkDestroy(link));
	must(cuModuleLoadData(&m, many(text, sizeof(text), ".maxnreg 40")));
	is_int(registers(m), 40, ".maxnreg in the text");
	must(cuLinkCreate(1, &option, &value, &link));
	must(cuLinkAddData(link, CU_JIT_INPUT_PTX, text, strlen(text) + 1, "k", 0, NULL, NULL));
	must(cuLinkComplete(link, &image, &n));
	must(cuModuleLoadData(&m, image));
	is_int(registers(m), 40, "the text's own holds at the link");
	must(cuLinkDestroy(link));
}

/* 40 bytes of static shared memory and 84 of constants; reads the 16 bytes at the offset that it is given. */
static const char sizes[] = HEAD
	".const .align 4 .b8 c[84];\n"
	".extern .shared .align 16 .b8 dyn[];\n"
	".visible .entry k(.param .u32 at) { .shared .align 16 .b8 s[40]; .reg .b32 %a, %b; .reg .b32 %v<4>; ld.param.u32 %a, "
	"[at]; mov.u32 %b, s; add.u32 %a, %a, %b; ld.volatile.shared.v4.u32 {%v0, %v1, %v2, %v3}, [%a]; ret; }\n"
	".visible .entry dynamic(.param .u32 at) { .reg .b32 %a, %b; .reg .b32 %v<4>; ld.param.u32 %a, [at]; mov.u32 %b, dyn; "
	"add.u32 %a, %a, %b; ld.volatile.shared.v4.u32 {%v0, %v1, %v2, %v3}, [%a]; ret; }\n";

/* A field of what is no tensor map yet. */
static const char field[] = ".version 8.3\n.target sm_90a\n.address_size 64\n"
			    ".visible .entry k() { .shared .align 64 .b8 s[4]; .reg .b32 %a; mov.u32 %a, s; "
			    "tensormap.replace.tile.rank.shared::cta.b1024.b32 [%a], 2; ret; }\n";

static void shared(void)
{
	void *param[1];
	CUfunction f;
	CUmodule m;
	int v, at;

	param[0] = &at;
	must(cuModuleLoadData(&m, field));
	must(cuModuleGetFunction(&f, m, "k"));
	must(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	works(cuCtxSynchronize());
	must(cuModuleLoadData(&m, sizes));
	must(cuModuleGetFunction(&f, m, "k"));
	must(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, f));
	is_int(v, 40, "static shared memory is told to the byte");
	must(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, f));
	is_int(v, 84, "constants, too");
	at = 112;
	must(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, param, NULL));
	works(cuCtxSynchronize());
	must(cuModuleGetFunction(&f, m, "dynamic"));
	at = 16;
	must(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 28, NULL, param, NULL));
	works(cuCtxSynchronize());
	at = 128;
	must(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 28, NULL, param, NULL));
	gives(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* Each block counts itself, twice, and after the barrier each must see all of them. libcudadevrt's body is not ours to run. */
static const char barrier[] = HEAD
	".extern .func (.param .b64 r) __cuda_syscall_CGS_get_intrinsic_handle(.param .b32 scope);\n"
	".visible .func (.param .b64 r) cudaCGGetIntrinsicHandle(.param .b32 scope) { .reg .b64 %h; .param .b64 x; call.uni (x), "
	"__cuda_syscall_CGS_get_intrinsic_handle, (scope); ret; }\n"
	".extern .func (.param .b32 r) cudaCGSynchronize(.param .b64 handle, .param .b32 flags);\n"
	".visible .entry k(.param .u64 p) {\n"
	".reg .b64 %p, %h; .reg .b32 %t, %n, %v, %e, %i; .reg .pred %q, %z;\n"
	"ld.param.u64 %p, [p]; mov.u32 %t, %tid.x; setp.eq.u32 %z, %t, 0; mov.u32 %n, %nctaid.x; mov.u32 %i, 0;\n"
	"{ .param .b32 s; .param .b64 r; st.param.b32 [s], 1; call.uni (r), cudaCGGetIntrinsicHandle, (s); ld.param.b64 %h, [r]; "
	"}\n"
	"AGAIN:\n"
	"@%z red.global.add.u32 [%p], 1;\n"
	"{ .param .b64 h; .param .b32 f; .param .b32 r; st.param.b64 [h], %h; st.param.b32 [f], 0;\n"
	"call.uni (r), cudaCGSynchronize, (h, f); ld.param.b32 %e, [r]; }\n"
	"add.u32 %i, %i, 1; mul.lo.u32 %t, %n, %i; ld.volatile.global.u32 %v, [%p]; setp.lt.u32 %q, %v, %t;\n"
	"@%q red.global.add.u32 [%p+4], 1;\n"
	"red.global.add.u32 [%p+8], %e;\n"
	"setp.lt.u32 %q, %i, 8; @%q bra AGAIN; ret; }\n";

static void grid(void)
{
	unsigned int got[3];
	void *param[1];
	CUdeviceptr d;
	CUfunction f;
	CUmodule m;

	must(cuMemAlloc(&d, sizeof(got)));
	param[0] = &d;
	must(cuModuleLoadData(&m, barrier));
	must(cuModuleGetFunction(&f, m, "k"));
	must(cuMemsetD32(d, 0, 3));
	must(cuLaunchCooperativeKernel(f, 6, 1, 1, 64, 1, 1, 0, NULL, param));
	must(cuMemcpyDtoH(got, d, sizeof(got)));
	is_int(got[0], 48, "six blocks, eight times");
	is_int(got[1], 0, "after the barrier all have come");
	is_int(got[2], 0, "it gives no error");
	must(cuMemsetD32(d, 0, 3));
	must(cuLaunchKernel(f, 6, 1, 1, 64, 1, 1, 0, NULL, param, NULL));
	must(cuMemcpyDtoH(got, d, sizeof(got)));
	is_int(got[2], 6 * 64 * 8, "in a launch that is not cooperative it gives cudaErrorInvalidValue");
	must(cuMemFree(d));
	must(cuModuleUnload(m));
}

int main(void)
{
	drv_start();
	limits();
	grid();
	shared(); /* ends with a fault */
	return tap_done();
}
