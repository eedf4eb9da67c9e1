// SPDX-License-Identifier: MIT
/* libnvrtc.so.13: NVIDIA's compiler, which is asked for PTX where the program asks for machine code and the GPU is a soft one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "shim/jit/genuine.h"

#define NVRTC_ERROR_OUT_OF_MEMORY  1
#define NVRTC_ERROR_INTERNAL_ERROR 11

struct genuine genuine = {.soname = "libnvrtc.so.13", .once = PTHREAD_ONCE_INIT};

typedef void *nvrtcProgram;

#define FAILS NVRTC_ERROR_INTERNAL_ERROR
FORWARD(nvrtcGetErrorString, "NVRTC_ERROR (rgpu: NVIDIA's libnvrtc was not found)")
FORWARD(nvrtcVersion, FAILS)
FORWARD(nvrtcGetNumSupportedArchs, FAILS)
FORWARD(nvrtcGetSupportedArchs, FAILS)
FORWARD(nvrtcCreateProgram, FAILS)
FORWARD(nvrtcDestroyProgram, FAILS)
FORWARD(nvrtcGetPTXSize, FAILS)
FORWARD(nvrtcGetPTX, FAILS)
FORWARD(nvrtcGetLTOIRSize, FAILS)
FORWARD(nvrtcGetLTOIR, FAILS)
FORWARD(nvrtcGetOptiXIRSize, FAILS)
FORWARD(nvrtcGetOptiXIR, FAILS)
FORWARD(nvrtcGetProgramLogSize, FAILS)
FORWARD(nvrtcGetProgramLog, FAILS)
FORWARD(nvrtcAddNameExpression, FAILS)
FORWARD(nvrtcGetLoweredName, FAILS)
FORWARD(nvrtcGetPCHHeapSize, FAILS)
FORWARD(nvrtcSetPCHHeapSize, FAILS)
FORWARD(nvrtcGetPCHCreateStatus, FAILS)
FORWARD(nvrtcGetPCHHeapSizeRequired, FAILS)
FORWARD(nvrtcSetFlowCallback, FAILS)
FORWARD(__nvrtcCPEx, FAILS)

/* Machine code is PTX there. LTO code stays what it is: nvjitlink.c makes PTX of it. */
#define AS_PTX(name, ptx)                                                                                                        \
	JIT_API int name(nvrtcProgram prog, void *out);                                                                          \
	int name(nvrtcProgram prog, void *out)                                                                                   \
	{                                                                                                                        \
		int (*real)(nvrtcProgram, void *) = genuine_function(jit_wants_ptx() ? ptx : #name);                             \
		return real ? real(prog, out) : FAILS;                                                                           \
	}

AS_PTX(nvrtcGetCUBINSize, "nvrtcGetPTXSize")
AS_PTX(nvrtcGetCUBIN, "nvrtcGetPTX")

static const char *value_of(const char *option, const char *name)
{
	size_t n = strlen(name);

	return !strncmp(option, name, n) && option[n] == '=' ? option + n + 1 : NULL;
}

/* sm_XX becomes compute_XX; *owned is to be freed. */
static const char *translate(const char *option, char **owned)
{
	const char *arch = value_of(option, "--gpu-architecture");

	if (!arch)
		arch = value_of(option, "-arch");
	if (!arch || strncmp(arch, "sm_", 3) || asprintf(owned, "--gpu-architecture=compute_%s", arch + 3) < 0)
		return option;
	return *owned;
}

static bool asks_lto(int n, const char *const *options)
{
	for (int i = 0; i < n; i++)
		if (options[i] &&
		    (!strcmp(options[i], "-dlto") || !strcmp(options[i], "--dlto") || !strcmp(options[i], "--dlink-time-opt")))
			return true;
	return false;
}

JIT_API int nvrtcCompileProgram(nvrtcProgram prog, int n, const char *const *options);

int nvrtcCompileProgram(nvrtcProgram prog, int n, const char *const *options)
{
	int (*real)(nvrtcProgram, int, const char *const *) = genuine_function("nvrtcCompileProgram");
	const char **list;
	char **owned;
	int r;

	if (!real)
		return FAILS;
	if (n <= 0 || !options || asks_lto(n, options) || !jit_wants_ptx())
		return real(prog, n, options);
	list = calloc(n, sizeof(*list));
	owned = calloc(n, sizeof(*owned));
	if (list && owned) {
		for (int i = 0; i < n; i++)
			list[i] = options[i] ? translate(options[i], &owned[i]) : NULL;
		r = real(prog, n, list);
		for (int i = 0; i < n; i++)
			free(owned[i]);
	} else {
		r = NVRTC_ERROR_OUT_OF_MEMORY;
	}
	free(list);
	free(owned);
	return r;
}
