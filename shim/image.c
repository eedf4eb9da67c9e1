// SPDX-License-Identifier: MIT
/* Chooses, of all the images in a fat binary, the one that the target will use, so that only that one travels. */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/fatbin.h"
#include "lib/log.h"
#include "shim/module.h"
#include "shim/session.h"

/* A cubin says its size only by what its headers point to. It is the program's own memory: believed, as the driver does. */
static size_t elf_bytes(const void *image)
{
	const Elf64_Ehdr *e = image;
	const Elf64_Shdr *s = (const void *)((const uint8_t *)image + e->e_shoff);
	const Elf64_Phdr *p = (const void *)((const uint8_t *)image + e->e_phoff);
	size_t end = sizeof(*e);

	if (e->e_ident[EI_CLASS] != ELFCLASS64)
		return 0;
	if (e->e_shoff && e->e_shoff + (size_t)e->e_shnum * sizeof(*s) > end)
		end = e->e_shoff + (size_t)e->e_shnum * sizeof(*s);
	for (int i = 0; e->e_shoff && i < e->e_shnum; i++)
		if (s[i].sh_type != SHT_NOBITS && s[i].sh_offset + s[i].sh_size > end)
			end = s[i].sh_offset + s[i].sh_size;
	if (e->e_phoff && e->e_phoff + (size_t)e->e_phnum * sizeof(*p) > end)
		end = e->e_phoff + (size_t)e->e_phnum * sizeof(*p);
	for (int i = 0; e->e_phoff && i < e->e_phnum; i++)
		if (p[i].p_offset + p[i].p_filesz > end)
			end = p[i].p_offset + p[i].p_filesz;
	return end;
}

static int unpack(const struct fatbin_entry *e, const void **image, size_t *bytes, void **owned)
{
	char *text;
	int r = fatbin_unpack(e, &text, bytes);

	if (r)
		return r == -ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_IMAGE;
	if (e->kind == FATBIN_PTX)
		++*bytes; /* the NUL that ends a text belongs to it */
	*image = *owned = text;
	return 0;
}

/* As fatbin_pick(): the best image that the device takes. */
static int pick(const struct device *d, const void *data, size_t len, struct fatbin_entry *best)
{
	unsigned major = d->props.attrs[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR];
	unsigned minor = d->props.attrs[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR];
	int r = 0;

	if (d->session->images & RGPU_IMAGE_ELF)
		r = fatbin_pick(data, len, FATBIN_ELF, major, minor, best);
	return r ? r : fatbin_pick(data, len, FATBIN_PTX, major, minor, best);
}

const void *const *image_prelinked(const struct device *d, const void *code)
{
	const void *const *list;
	struct fatbin_entry e;

	if (image_kind(code, SIZE_MAX) != IMAGE_WRAPPER || !(list = fatbin_prelinked(code)))
		return NULL;
	return pick(d, fatbin_unwrap(code), SIZE_MAX, &e) ? NULL : list;
}

int image_try_fatbin(const struct device *d, const void *data, size_t len, const void **image, size_t *bytes, void **owned)
{
	struct fatbin_entry best;
	int r = pick(d, data, len, &best);

	*owned = NULL;
	return r > 0 ? unpack(&best, image, bytes, owned) : r < 0 ? CUDA_ERROR_INVALID_IMAGE : CUDA_ERROR_NO_BINARY_FOR_GPU;
}

static int from_fatbin(const struct device *d, const void *data, const void **image, size_t *bytes, void **owned)
{
	unsigned major = d->props.attrs[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR];
	unsigned minor = d->props.attrs[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR];
	int r = image_try_fatbin(d, data, SIZE_MAX, image, bytes, owned);

	if (r == CUDA_ERROR_NO_BINARY_FOR_GPU)
		rgpu_err("the program's fat binary has no image for compute capability %u.%u%s; compile it with -gencode "
			 "arch=compute_75,code=compute_75 or newer",
			 major, minor, d->session->images & RGPU_IMAGE_ELF ? "" : " as PTX, which is all that the soft GPU runs");
	return r;
}

int image_choose(const struct device *d, const void *code, const void **image, size_t *bytes, void **owned)
{
	const void *data = code;

	*owned = NULL;
	switch (image_kind(code, SIZE_MAX)) {
	case IMAGE_WRAPPER:
		data = fatbin_unwrap(code);
		if (!data)
			return CUDA_ERROR_INVALID_IMAGE;
		/* fall through */
	case IMAGE_FATBIN:
		return from_fatbin(d, data, image, bytes, owned);
	case IMAGE_ELF:
		if (!(d->session->images & RGPU_IMAGE_ELF)) {
			rgpu_err("a cubin was loaded, and the soft GPU runs PTX only; compile to PTX (nvcc -ptx, NVRTC's "
				 "nvrtcGetPTX)");
			return CUDA_ERROR_NO_BINARY_FOR_GPU;
		}
		*image = code;
		*bytes = elf_bytes(code);
		return *bytes ? 0 : CUDA_ERROR_INVALID_IMAGE;
	case IMAGE_PTX:
		*image = code;
		*bytes = strlen(code) + 1;
		return 0;
	default:
		return CUDA_ERROR_INVALID_IMAGE;
	}
}
