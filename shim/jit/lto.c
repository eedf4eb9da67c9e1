// SPDX-License-Identifier: MIT
/* Link-time-optimised code for a soft GPU: NVIDIA's linker makes one PTX text of it. */
#include "shim/jit/lto.h"
#include "shim/jit/genuine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS, INTERNAL = 6, INPUT_LTOIR = 3 };

struct lto {
	void *link; /* NVIDIA's handle */
};

/* NVIDIA's function of that name, called; where there is none, a line has said so. */
#define REAL(name, params, args)                                                                                                 \
	({                                                                                                                       \
		int(*real) params = genuine_function(#name);                                                                     \
		real ? real args : INTERNAL;                                                                                     \
	})

bool lto_is(const void *data, size_t bytes)
{
	static const unsigned char magic[] = {0xed, 'C', 'N', 0x7f};

	return bytes > sizeof(magic) && !memcmp(data, magic, sizeof(magic));
}

int lto_new(struct lto **out, uint32_t n, const char *const *options)
{
	struct lto *lto = calloc(1, sizeof(*lto));
	const char **list = calloc(n + 2, sizeof(*list));
	uint32_t k = 0;
	int r = INTERNAL;

	if (lto && list) {
		for (uint32_t i = 0; i < n; i++)
			if (strcmp(options[i], "-lto") && strcmp(options[i], "-ptx"))
				list[k++] = options[i];
		list[k++] = "-lto";
		list[k++] = "-ptx";
		r = REAL(nvJitLinkCreate, (void **, uint32_t, const char *const *), (&lto->link, k, list));
	}
	free(list);
	if (r) {
		free(lto);
		return r;
	}
	*out = lto;
	return SUCCESS;
}

void lto_free(struct lto *lto)
{
	if (lto)
		REAL(nvJitLinkDestroy, (void **), (&lto->link));
	free(lto);
}

int lto_add(struct lto *lto, const void *data, size_t bytes, const char *name)
{
	return REAL(nvJitLinkAddData, (void *, int, const void *, size_t, const char *),
		    (lto->link, INPUT_LTOIR, data, bytes, name));
}

int lto_ptx(struct lto *lto, char **text)
{
	size_t n = 0;
	int r = REAL(nvJitLinkComplete, (void *), (lto->link));

	if (!r)
		r = REAL(nvJitLinkGetLinkedPtxSize, (void *, size_t *), (lto->link, &n));
	if (r)
		return r;
	*text = calloc(1, n + 1);
	if (!*text)
		return INTERNAL;
	r = REAL(nvJitLinkGetLinkedPtx, (void *, char *), (lto->link, *text));
	if (r)
		free(*text);
	return r;
}

void lto_log(struct lto *lto, char *log, size_t bytes)
{
	char *text;
	size_t n = 0;

	if (REAL(nvJitLinkGetErrorLogSize, (void *, size_t *), (lto->link, &n)) || !n || !(text = calloc(1, n + 1)))
		return;
	if (!REAL(nvJitLinkGetErrorLog, (void *, char *), (lto->link, text)))
		snprintf(log, bytes, "%s", text);
	free(text);
}
