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

static int from_fatbin(const struct device *d, const void *data, const void **image, size_t *bytes, void **owned)
{
	unsigned major = d->props.attrs[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR];
	unsigned minor = d->props.attrs[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR];
	struct fatbin_entry best;
	int r = 0;

	if (d->session->images & RGPU_IMAGE_ELF)
		r = fatbin_pick(data, SIZE_MAX, FATBIN_ELF, major, minor, &best);
	if (!r)
		r = fatbin_pick(data, SIZE_MAX, FATBIN_PTX, major, minor, &best);
	if (r < 0)
		return CUDA_ERROR_INVALID_IMAGE;
	if (!r) {
		rgpu_err("the program's fat binary has no image for compute capability %u.%u%s; compile it with -gencode "
			 "arch=compute_75,code=compute_75 or newer",
			 major, minor, d->session->images & RGPU_IMAGE_ELF ? "" : " as PTX, which is all that the soft GPU runs");
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	}
	return unpack(&best, image, bytes, owned);
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
