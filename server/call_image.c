// SPDX-License-Identifier: MIT
/* Images off the wire: which of them a driver may be given. */
#include <elf.h>
#include <string.h>
#include "server/call_module.h"

bool image_room(struct srv_session *s, uint64_t bytes)
{
	if (atomic_fetch_add(&s->image_bytes, bytes) + bytes <= IMAGES_MAX)
		return true;
	image_gone(s, bytes);
	return false;
}

void image_gone(struct srv_session *s, uint64_t bytes)
{
	atomic_fetch_sub(&s->image_bytes, bytes);
}

bool image_is_elf(const uint8_t *image, uint64_t bytes)
{
	return bytes >= SELFMAG && !memcmp(image, ELFMAG, SELFMAG);
}

static bool inside(uint64_t all, uint64_t off, uint64_t bytes)
{
	return off <= all && bytes <= all - off;
}

/* All that a cubin's headers point to lies in it: the driver is not told where it ends. */
static bool whole_elf(const uint8_t *image, uint64_t bytes)
{
	Elf64_Ehdr e;

	if (bytes < sizeof(e))
		return false;
	memcpy(&e, image, sizeof(e));
	if (e.e_ident[EI_CLASS] != ELFCLASS64 || (e.e_shnum && e.e_shentsize != sizeof(Elf64_Shdr)) ||
	    (e.e_phnum && e.e_phentsize != sizeof(Elf64_Phdr)) || !inside(bytes, e.e_shoff, e.e_shnum * sizeof(Elf64_Shdr)) ||
	    !inside(bytes, e.e_phoff, e.e_phnum * sizeof(Elf64_Phdr)))
		return false;
	for (unsigned i = 0; i < e.e_shnum; i++) {
		Elf64_Shdr s;

		memcpy(&s, image + e.e_shoff + i * sizeof(s), sizeof(s));
		if (s.sh_type != SHT_NOBITS && !inside(bytes, s.sh_offset, s.sh_size))
			return false;
	}
	for (unsigned i = 0; i < e.e_phnum; i++) {
		Elf64_Phdr p;

		memcpy(&p, image + e.e_phoff + i * sizeof(p), sizeof(p));
		if (!inside(bytes, p.p_offset, p.p_filesz))
			return false;
	}
	return true;
}

/*
 * The client sends one image, unpacked: a text or a cubin. Of what else a driver takes, it would follow the pointer in a wrapper
 * and believe the lengths in a container: of a client neither may be had. Both begin with bytes that no text begins with.
 */
CUresult image_check(const uint8_t *image, uint64_t bytes)
{
	if (image_is_elf(image, bytes)) {
		if (!driver_takes_elf())
			return CUDA_ERROR_NO_BINARY_FOR_GPU;
		return whole_elf(image, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
	}
	for (unsigned i = 0; i < 4 && image[i]; i++)
		if (image[i] & 0x80)
			return CUDA_ERROR_INVALID_IMAGE;
	return CUDA_SUCCESS;
}
