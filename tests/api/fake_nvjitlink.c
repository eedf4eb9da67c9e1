// SPDX-License-Identifier: MIT
/* Stands for NVIDIA's libnvJitLink: its LTO code is a PTX text behind the four bytes that the format begins with. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define API __attribute__((visibility("default")))

static char text[4096], said[64];
static int lto, ptx;

API int nvJitLinkCreate(void **l, uint32_t n, const char *const *options)
{
	*l = text;
	*text = *said = 0;
	lto = ptx = 0;
	for (uint32_t i = 0; i < n; i++) {
		lto += !strcmp(options[i], "-lto");
		ptx += !strcmp(options[i], "-ptx");
	}
	return lto == 1 && ptx == 1 ? 0 : 11;
}

API int nvJitLinkDestroy(void **l)
{
	*l = NULL;
	return 0;
}

API int nvJitLinkAddData(void *l, int type, const void *data, size_t size, const char *name)
{
	if (l != text || type != 3 || size < 4 + 8 || memcmp((const char *)data + 4, ".version", 8)) {
		strcpy(said, name);
		strcat(said, " is broken");
		return 4;
	}
	strncat(text, (const char *)data + 4, size - 4);
	return 0;
}

API int nvJitLinkComplete(void *l)
{
	return l == text ? 0 : 10;
}

API int nvJitLinkGetLinkedPtxSize(void *l, size_t *n)
{
	(void)l;
	*n = strlen(text);
	return 0;
}

API int nvJitLinkGetLinkedPtx(void *l, char *out)
{
	memcpy(out, l, strlen(text));
	return 0;
}

API int nvJitLinkGetErrorLogSize(void *l, size_t *n)
{
	(void)l;
	*n = *said ? strlen(said) + 1 : 0;
	return 0;
}

API int nvJitLinkGetErrorLog(void *l, char *out)
{
	(void)l;
	strcpy(out, said);
	return 0;
}
