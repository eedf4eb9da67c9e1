// SPDX-License-Identifier: MIT
/* libnvJitLink.so.13: NVIDIA's linker; for a soft GPU, PTX is linked here and stays PTX. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/fatbin.h"
#include "lib/objfile.h"
#include "lib/ptxlink.h"
#include "shim/jit/genuine.h"
#include "shim/jit/lto.h"

struct genuine genuine = {.soname = "libnvJitLink.so.13", .once = PTHREAD_ONCE_INIT};

/* NVIDIA's numbers. */
enum { SUCCESS, UNRECOGNIZED_OPTION, MISSING_ARCH, INVALID_INPUT, PTX_COMPILE, NVVM_COMPILE, INTERNAL, NULL_INPUT = 10 };
enum { INPUT_OBJECT = 5, INPUT_LIBRARY, INPUT_INDEX, INPUT_ANY = 10 };

struct nvJitLink {
	struct ptxlink *units;
	struct lto *lto; /* from the first input of that kind on */
	char **options;
	uint32_t n_options;
	unsigned arch; /* 80 for sm_80 */
	char *text;    /* linked */
	size_t bytes;  /* with its NUL */
	char log[1024];
};

/* A function, and the name that it has in programs compiled with the header. */
#define BOTH(ret, name, params, args)                                                                                            \
	JIT_API ret name params;                                                                                                 \
	JIT_API ret __##name##_13_0 params;                                                                                      \
	ret __##name##_13_0 params                                                                                               \
	{                                                                                                                        \
		return name args;                                                                                                \
	}

/* Calls NVIDIA's and returns, unless the GPU is a soft one. */
#define UNLESS_SOFT(name, params, args)                                                                                          \
	do {                                                                                                                     \
		if (!jit_wants_ptx()) {                                                                                          \
			int(*real) params = genuine_function(#name);                                                             \
			return real ? real args : INTERNAL;                                                                      \
		}                                                                                                                \
	} while (0)

FORWARD(__nvJitLinkAPI, INTERNAL)

static void release(struct nvJitLink *l)
{
	for (uint32_t i = 0; l->options && i < l->n_options; i++)
		free(l->options[i]);
	free(l->options);
	lto_free(l->lto);
	ptxlink_free(l->units);
	free(l->text);
	free(l);
}

static bool keep_options(struct nvJitLink *l, uint32_t n, const char *const *options)
{
	l->options = calloc(n + 1, sizeof(*l->options));
	for (; l->options && l->n_options < n; l->n_options++)
		if (!(l->options[l->n_options] = strdup(options[l->n_options])))
			return false;
	return l->options;
}

BOTH(int, nvJitLinkCreate, (struct nvJitLink * *handle, uint32_t n, const char *const *options), (handle, n, options))
int nvJitLinkCreate(struct nvJitLink **handle, uint32_t n, const char *const *options)
{
	struct nvJitLink *l;
	unsigned arch = 0, regs = 0;

	UNLESS_SOFT(nvJitLinkCreate, (struct nvJitLink **, uint32_t, const char *const *), (handle, n, options));
	if (!handle || (n && !options))
		return NULL_INPUT;
	for (uint32_t i = 0; i < n; i++)
		if (sscanf(options[i], "-arch=sm_%u", &arch) != 1 && sscanf(options[i], "-arch=compute_%u", &arch) != 1)
			sscanf(options[i], "-maxrregcount=%u", &regs);
	if (!arch)
		return MISSING_ARCH;
	l = calloc(1, sizeof(*l));
	if (!l)
		return INTERNAL;
	l->units = ptxlink_new();
	if (!l->units || !keep_options(l, n, options)) {
		release(l);
		return INTERNAL;
	}
	ptxlink_limit_registers(l->units, regs);
	l->arch = arch;
	*handle = l;
	return SUCCESS;
}

BOTH(int, nvJitLinkDestroy, (struct nvJitLink * *handle), (handle))
int nvJitLinkDestroy(struct nvJitLink **handle)
{
	UNLESS_SOFT(nvJitLinkDestroy, (struct nvJitLink **), (handle));
	if (!handle || !*handle)
		return NULL_INPUT;
	release(*handle);
	*handle = NULL;
	return SUCCESS;
}

struct input {
	struct nvJitLink *l;
	bool library;
	const char *name;
};

static int add_text(struct input *in, char *text)
{
	char why[512] = "";
	int r;

	if (!text)
		return INTERNAL;
	r = ptxlink_add(in->l->units, text, in->library, why, sizeof(why));
	if (r)
		snprintf(in->l->log, sizeof(in->l->log), "%s: %s", in->name, why);
	return r == -EINVAL ? PTX_COMPILE : r ? INTERNAL : SUCCESS;
}

static int add_fatbin(void *arg, const void *data, size_t bytes)
{
	struct input *in = arg;
	struct fatbin_entry e;
	size_t len;
	char *text;
	int r = fatbin_pick(data, bytes, FATBIN_PTX, in->l->arch / 10, in->l->arch % 10, &e);

	/* What a library lacks for this GPU, the rest may not miss. */
	if (!r && in->library)
		return SUCCESS;
	if (r <= 0 || fatbin_unpack(&e, &text, &len)) {
		snprintf(in->l->log, sizeof(in->l->log), "%s: no PTX for compute_%u, which is what a soft GPU runs", in->name,
			 in->l->arch);
		return INVALID_INPUT;
	}
	return add_text(in, text);
}

/* For a failure of NVIDIA's linker. */
static int lto_failed(struct nvJitLink *l, int r)
{
	if (r && l->lto)
		lto_log(l->lto, l->log, sizeof(l->log));
	return r;
}

static int add_lto(struct nvJitLink *l, const void *data, size_t bytes, const char *name)
{
	int r = l->lto ? SUCCESS : lto_new(&l->lto, l->n_options, (const char *const *)l->options);

	return lto_failed(l, r ? r : lto_add(l->lto, data, bytes, name));
}

/* All link-time-optimised code becomes one more text. */
static int finish_lto(struct nvJitLink *l)
{
	struct input in = {.l = l, .name = "link-time-optimised code"};
	char *text;
	int r = l->lto ? lto_failed(l, lto_ptx(l->lto, &text)) : SUCCESS;

	if (r || !l->lto)
		return r;
	lto_free(l->lto);
	l->lto = NULL;
	return add_text(&in, text);
}

BOTH(int, nvJitLinkAddData, (struct nvJitLink * l, int type, const void *data, size_t size, const char *name),
     (l, type, data, size, name))
int nvJitLinkAddData(struct nvJitLink *l, int type, const void *data, size_t size, const char *name)
{
	struct input in = {.l = l, .library = type == INPUT_LIBRARY, .name = name ? name : "input"};
	int r;

	UNLESS_SOFT(nvJitLinkAddData, (struct nvJitLink *, int, const void *, size_t, const char *), (l, type, data, size, name));
	if (!l || !data || !size)
		return NULL_INPUT;
	if (type < 1 || (type > INPUT_INDEX && type != INPUT_ANY) || l->text)
		return INVALID_INPUT;
	if (objfile_is(data, size)) {
		r = objfile_each(data, size, add_fatbin, &in);
		return r < 0 ? INVALID_INPUT : r;
	}
	switch (image_kind(data, size)) {
	case IMAGE_PTX:
		return add_text(&in, strndup(data, size));
	case IMAGE_FATBIN:
		return add_fatbin(&in, data, size);
	default:
		if (lto_is(data, size))
			return add_lto(l, data, size, in.name);
		snprintf(l->log, sizeof(l->log), "%s: this is not PTX, and a soft GPU runs nothing else", in.name);
		return INVALID_INPUT;
	}
}

BOTH(int, nvJitLinkAddFile, (struct nvJitLink * l, int type, const char *path), (l, type, path))
int nvJitLinkAddFile(struct nvJitLink *l, int type, const char *path)
{
	char *data = NULL;
	long n = -1;
	FILE *f;
	int r;

	UNLESS_SOFT(nvJitLinkAddFile, (struct nvJitLink *, int, const char *), (l, type, path));
	if (!l || !path)
		return NULL_INPUT;
	f = fopen(path, "rb");
	if (f && !fseek(f, 0, SEEK_END) && (n = ftell(f)) >= 0 && !fseek(f, 0, SEEK_SET))
		data = calloc(1, n + 1);
	if (!data || fread(data, 1, n, f) != (size_t)n) {
		snprintf(l->log, sizeof(l->log), "%s: %s", path, strerror(errno));
		r = INVALID_INPUT;
	} else {
		r = nvJitLinkAddData(l, type, data, n, path);
	}
	free(data);
	if (f)
		fclose(f);
	return r;
}

BOTH(int, nvJitLinkComplete, (struct nvJitLink * l), (l))
int nvJitLinkComplete(struct nvJitLink *l)
{
	int r;

	UNLESS_SOFT(nvJitLinkComplete, (struct nvJitLink *), (l));
	if (!l)
		return NULL_INPUT;
	if (l->text)
		return SUCCESS;
	r = finish_lto(l);
	if (r)
		return r;
	if (ptxlink_join(l->units, &l->text, &l->bytes, l->log, sizeof(l->log))) {
		l->text = NULL;
		if (!*l->log)
			snprintf(l->log, sizeof(l->log), "there is nothing to link");
		return INVALID_INPUT;
	}
	l->bytes++;
	return SUCCESS;
}

static int size_of(struct nvJitLink *l, size_t *size)
{
	if (!l || !size)
		return NULL_INPUT;
	*size = l->text ? l->bytes : 0;
	return l->text ? SUCCESS : INVALID_INPUT;
}

static int copy_out(struct nvJitLink *l, void *out)
{
	if (!l || !out)
		return NULL_INPUT;
	if (!l->text)
		return INVALID_INPUT;
	memcpy(out, l->text, l->bytes);
	return SUCCESS;
}

/* Machine code and PTX are one here. */
#define GETTER(name, type, fn)                                                                                                   \
	BOTH(int, name, (struct nvJitLink * l, type * out), (l, out))                                                            \
	int name(struct nvJitLink *l, type *out)                                                                                 \
	{                                                                                                                        \
		UNLESS_SOFT(name, (struct nvJitLink *, type *), (l, out));                                                       \
		return fn(l, out);                                                                                               \
	}

static int log_size(struct nvJitLink *l, size_t *size)
{
	if (!l || !size)
		return NULL_INPUT;
	*size = *l->log ? strlen(l->log) + 1 : 0;
	return SUCCESS;
}

static int log_out(struct nvJitLink *l, char *out)
{
	if (!l || !out)
		return NULL_INPUT;
	strcpy(out, l->log);
	return SUCCESS;
}

static int no_size(struct nvJitLink *l, size_t *size)
{
	if (!l || !size)
		return NULL_INPUT;
	*size = 0;
	return SUCCESS;
}

static int no_text(struct nvJitLink *l, char *out)
{
	(void)out;
	return l ? SUCCESS : NULL_INPUT;
}

GETTER(nvJitLinkGetLinkedCubinSize, size_t, size_of)
GETTER(nvJitLinkGetLinkedCubin, void, copy_out)
GETTER(nvJitLinkGetLinkedPtxSize, size_t, size_of)
GETTER(nvJitLinkGetLinkedPtx, char, copy_out)
GETTER(nvJitLinkGetErrorLogSize, size_t, log_size)
GETTER(nvJitLinkGetErrorLog, char, log_out)
GETTER(nvJitLinkGetInfoLogSize, size_t, no_size)
GETTER(nvJitLinkGetInfoLog, char, no_text)

JIT_API int nvJitLinkVersion(unsigned *major, unsigned *minor);

int nvJitLinkVersion(unsigned *major, unsigned *minor)
{
	UNLESS_SOFT(nvJitLinkVersion, (unsigned *, unsigned *), (major, minor));
	if (!major || !minor)
		return NULL_INPUT;
	*major = 13;
	*minor = 0;
	return SUCCESS;
}
