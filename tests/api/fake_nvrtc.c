// SPDX-License-Identifier: MIT
/* Stands for NVIDIA's libnvrtc: "compiles" to a given PTX, and shows the options that it got as the program's log. */
#include <stddef.h>
#include <string.h>

#define API __attribute__((visibility("default")))

static char log_text[1024];
static const char ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry compiled()\n{\n	ret;\n}\n";

API const char *nvrtcGetErrorString(int r)
{
	return r ? "an error" : "no error";
}

API int nvrtcCreateProgram(void **prog, const char *src, const char *name, int n, const char *const *h, const char *const *in)
{
	(void)src, (void)name, (void)h, (void)in;
	*prog = log_text;
	return n == 3 ? 0 : 4; /* all six arguments arrive */
}

API int nvrtcCompileProgram(void *prog, int n, const char *const *options)
{
	*log_text = 0;
	for (int i = 0; i < n; i++) {
		strcat(log_text, options[i]);
		strcat(log_text, " ");
	}
	return prog == log_text ? 0 : 4;
}

API int nvrtcGetProgramLog(void *prog, char *out)
{
	strcpy(out, prog);
	return 0;
}

API int nvrtcGetPTXSize(void *prog, size_t *n)
{
	*n = sizeof(ptx);
	return prog == log_text ? 0 : 4;
}

API int nvrtcGetPTX(void *prog, char *out)
{
	memcpy(out, ptx, sizeof(ptx));
	return prog == log_text ? 0 : 4;
}

API int nvrtcGetLTOIRSize(void *prog, size_t *n)
{
	*n = 4;
	return prog == log_text ? 0 : 4;
}

API int nvrtcGetLTOIR(void *prog, char *out)
{
	memcpy(out, "\355CN\177", 4);
	return prog == log_text ? 0 : 4;
}

API int nvrtcGetCUBINSize(void *prog, size_t *n)
{
	(void)prog;
	*n = 0;
	return 0;
}
