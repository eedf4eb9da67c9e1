// SPDX-License-Identifier: MIT
/* Our libnvrtc and libnvJitLink before a soft GPU: machine code that a program asks for comes as PTX. */
#include "tests/api/serve.h"

const char *nvrtcGetErrorString(int r);
int nvrtcCreateProgram(void **prog, const char *src, const char *name, int n, const char *const *h, const char *const *in);
int nvrtcCompileProgram(void *prog, int n, const char *const *options);
int nvrtcGetProgramLog(void *prog, char *out);
int nvrtcGetCUBINSize(void *prog, size_t *n);
int nvrtcGetCUBIN(void *prog, char *out);
int nvrtcGetLTOIRSize(void *prog, size_t *n);
int nvrtcGetLTOIR(void *prog, char *out);
int nvrtcGetLoweredName(void *prog, const char *expr, const char **name);

int nvJitLinkCreate(void **l, uint32_t n, const char **options);
int __nvJitLinkAddData_13_0(void *l, int type, const void *data, size_t size, const char *name);
int nvJitLinkAddFile(void *l, int type, const char *path);
int nvJitLinkComplete(void *l);
int nvJitLinkGetLinkedCubinSize(void *l, size_t *size);
int nvJitLinkGetLinkedCubin(void *l, void *out);
int nvJitLinkGetErrorLogSize(void *l, size_t *size);
int nvJitLinkGetErrorLog(void *l, char *out);
int nvJitLinkDestroy(void **l);

/* NVIDIA's library keeps what it allocates, which is not ours to mend. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libnvJitLink\nleak:libnvrtc\n";
}

static char code[4096];

static void has_kernel(const void *image, const char *name)
{
	CUfunction f;
	CUmodule m;

	is_cu(cuModuleLoadData(&m, image), CUDA_SUCCESS);
	is_cu(cuModuleGetFunction(&f, m, name), CUDA_SUCCESS);
	is_cu(cuModuleUnload(m), CUDA_SUCCESS);
}

static void compiler(void)
{
	const char *options[] = {"--gpu-architecture=sm_80", "-DX=1", "-lineinfo"}, *lto[] = {"-arch=sm_80", "-dlto"};
	char log[256];
	void *prog;
	size_t n;

	is_str(nvrtcGetErrorString(0), "no error", "a function that returns a pointer is handed on");
	is_int(nvrtcCreateProgram(&prog, "", "", 3, NULL, NULL), 0, "one with six arguments, too");
	is_int(nvrtcCompileProgram(prog, 3, options), 0, "compiled");
	is_int(nvrtcGetProgramLog(prog, log), 0, "its log");
	is_str(log, "--gpu-architecture=compute_80 -DX=1 -lineinfo ", "the soft GPU's PTX is asked for");
	is_int(nvrtcCompileProgram(prog, 1, (const char *[]){"-arch=sm_121a"}), 0, "compiled");
	nvrtcGetProgramLog(prog, log);
	is_str(log, "--gpu-architecture=compute_121a ", "by its other name");
	is_int(nvrtcCompileProgram(prog, 1, (const char *[]){"-arch=compute_90"}), 0, "compiled");
	nvrtcGetProgramLog(prog, log);
	is_str(log, "-arch=compute_90 ", "what asks for PTX stays as it is");
	is_int(nvrtcGetCUBINSize(prog, &n), 0, "the cubin's size");
	ok(n > 0 && n < sizeof(code), "%zu bytes", n);
	is_int(nvrtcGetCUBIN(prog, code), 0, "the cubin");
	has_kernel(code, "compiled");
	is_int(nvrtcCompileProgram(prog, 2, lto), 0, "compiled");
	nvrtcGetProgramLog(prog, log);
	is_str(log, "-arch=sm_80 -dlto ", "LTO code is asked for as it is");
	is_int(nvrtcGetLTOIRSize(prog, &n), 0, "its size");
	is_int(nvrtcGetLTOIR(prog, code), 0, "and it comes");
	ok(n == 4 && !memcmp(code, "\355CN\177", 4), "as NVIDIA's library made it");
	is_int(nvrtcGetLoweredName(prog, "x", NULL), 11, "what NVIDIA's library lacks is an error, and a line said so");
}

#define HEAD ".version 7.0\n.target sm_75\n.address_size 64\n"

static void linker(void)
{
	static const char a[] = HEAD ".extern .func f();\n.visible .entry k()\n{\n	call f;\n	ret;\n}\n";
	static const char b[] = HEAD ".visible .func f()\n{\n	ret;\n}\n";
	const char *options[] = {"-arch=sm_80", "-lto"};
	size_t n;
	void *l;

	is_int(nvJitLinkCreate(&l, 1, options + 1), 2, "no -arch");
	is_int(nvJitLinkCreate(&l, 2, options), 0, "nvJitLinkCreate");
	is_int(nvJitLinkGetLinkedCubinSize(l, &n), 3, "nothing is linked yet");
	is_int(__nvJitLinkAddData_13_0(l, 3, "\177ELF....................", 20, "c"), 3, "machine code is refused");
	is_int(nvJitLinkGetErrorLogSize(l, &n), 0, "there is a log");
	is_int(nvJitLinkGetErrorLog(l, code), 0, "this one");
	ok(strlen(code) + 1 == n && strstr(code, "c: "), "it names the input: %s", code);
	is_int(__nvJitLinkAddData_13_0(l, 3, a, sizeof(a), "a"), 0, "a text as LTO code");
	is_int(__nvJitLinkAddData_13_0(l, 2, b, sizeof(b), "b"), 0, "a text as PTX");
	is_int(nvJitLinkAddFile(l, 2, "/no/such/file"), 3, "a file that is not there");
	is_int(nvJitLinkComplete(l), 0, "linked");
	is_int(nvJitLinkGetLinkedCubinSize(l, &n), 0, "its size");
	ok(n > 0 && n < sizeof(code), "%zu bytes", n);
	is_int(nvJitLinkGetLinkedCubin(l, code), 0, "the linked code");
	has_kernel(code, "k");
	is_int(nvJitLinkDestroy(&l), 0, "nvJitLinkDestroy");
	is_int(nvJitLinkDestroy(&l), 10, "once only");
}

/* LTO code and PTX in one link: NVIDIA's linker makes PTX of the one, ours joins it with the other. */
static void optimiser(void)
{
	static const char a[] = "\355CN\177" HEAD ".extern .func f();\n.visible .entry k()\n{\n	call f;\n	ret;\n}\n";
	static const char b[] = HEAD ".visible .func f()\n{\n	ret;\n}\n";
	const char *options[] = {"-arch=sm_80", "-lto", "-maxrregcount=24"};
	size_t n;
	void *l;

	is_int(nvJitLinkCreate(&l, 3, options), 0, "nvJitLinkCreate");
	is_int(__nvJitLinkAddData_13_0(l, 3, "\355CN\177what is this", 16, "x"), 4, "what its linker refuses");
	is_int(nvJitLinkGetErrorLog(l, code), 0, "has a log");
	is_str(code, "x is broken", "which is its linker's");
	is_int(nvJitLinkDestroy(&l), 0, "nvJitLinkDestroy");
	is_int(nvJitLinkCreate(&l, 3, options), 0, "nvJitLinkCreate");
	is_int(__nvJitLinkAddData_13_0(l, 3, a, sizeof(a), "a"), 0, "LTO code");
	is_int(__nvJitLinkAddData_13_0(l, 2, b, sizeof(b), "b"), 0, "PTX");
	is_int(nvJitLinkComplete(l), 0, "linked");
	is_int(nvJitLinkGetLinkedCubinSize(l, &n), 0, "its size");
	ok(n > 0 && n < sizeof(code), "%zu bytes", n);
	is_int(nvJitLinkGetLinkedCubin(l, code), 0, "the linked code");
	has_kernel(code, "k");
	ok(strstr(code, ".maxnreg 24\n"), "the limit of registers goes along");
	is_int(nvJitLinkDestroy(&l), 0, "nvJitLinkDestroy");
}

int main(void)
{
	serve(NULL, 1);
	primary();
	compiler();
	linker();
	optimiser();
	return tap_done();
}
