// SPDX-License-Identifier: MIT
/* Fat binaries in object files: the sections .nv_fatbin and __nv_relfatbin; and the members of an archive. */
#include "lib/objfile.h"

#include <ar.h>
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "lib/fatbin.h"

static bool is_object(const void *data, size_t bytes)
{
	Elf64_Ehdr e;

	if (bytes < sizeof(e))
		return false;
	memcpy(&e, data, sizeof(e));
	return !memcmp(e.e_ident, ELFMAG, SELFMAG) && e.e_ident[EI_CLASS] == ELFCLASS64 &&
	       (e.e_machine == EM_X86_64 || e.e_machine == EM_AARCH64);
}

static bool is_archive(const void *data, size_t bytes)
{
	return bytes >= SARMAG && !memcmp(data, ARMAG, SARMAG);
}

bool objfile_is(const void *data, size_t bytes)
{
	return is_object(data, bytes) || is_archive(data, bytes);
}

/* The containers of a section lie one behind the other, each at a multiple of 8. */
static int containers(const uint8_t *p, size_t bytes, int (*fn)(void *, const void *, size_t), void *arg)
{
	size_t at = 0;

	while (at < bytes) {
		size_t n = fatbin_bytes(p + at, bytes - at);
		int r = n ? fn(arg, p + at, n) : 0;

		if (r)
			return r;
		at += n ? (n + 7) & ~(size_t)7 : 8;
	}
	return 0;
}

static int object(const uint8_t *p, size_t bytes, int (*fn)(void *, const void *, size_t), void *arg)
{
	Elf64_Shdr names, s;
	Elf64_Ehdr e;
	int r;

	memcpy(&e, p, sizeof(e));
	if (e.e_shentsize != sizeof(s) || e.e_shoff > bytes || e.e_shnum > (bytes - e.e_shoff) / sizeof(s) ||
	    e.e_shstrndx >= e.e_shnum)
		return -1;
	memcpy(&names, p + e.e_shoff + e.e_shstrndx * sizeof(s), sizeof(names));
	if (names.sh_offset > bytes || names.sh_size > bytes - names.sh_offset)
		return -1;
	for (unsigned i = 0; i < e.e_shnum; i++) {
		const char *name;

		memcpy(&s, p + e.e_shoff + i * sizeof(s), sizeof(s));
		name = (const char *)p + names.sh_offset + s.sh_name;
		if (s.sh_type == SHT_NOBITS || s.sh_name >= names.sh_size || !memchr(name, 0, names.sh_size - s.sh_name) ||
		    (strcmp(name, ".nv_fatbin") && strcmp(name, "__nv_relfatbin")))
			continue;
		if (s.sh_offset > bytes || s.sh_size > bytes - s.sh_offset)
			return -1;
		r = containers(p + s.sh_offset, s.sh_size, fn, arg);
		if (r)
			return r;
	}
	return 0;
}

int objfile_each(const void *data, size_t bytes, int (*fn)(void *arg, const void *fatbin, size_t bytes), void *arg)
{
	const uint8_t *p = data;
	size_t at = SARMAG;

	if (!is_archive(data, bytes))
		return object(data, bytes, fn, arg);
	while (bytes - at >= sizeof(struct ar_hdr)) {
		char digits[sizeof(((struct ar_hdr *)0)->ar_size) + 1] = "";
		struct ar_hdr h;
		size_t n;
		int r = 0;

		memcpy(&h, p + at, sizeof(h));
		memcpy(digits, h.ar_size, sizeof(h.ar_size));
		n = strtoul(digits, NULL, 10);
		at += sizeof(h);
		if (memcmp(h.ar_fmag, ARFMAG, sizeof(h.ar_fmag)) || n > bytes - at)
			return -1;
		if (is_object(p + at, n))
			r = object(p + at, n, fn, arg);
		if (r)
			return r;
		at += n + (n & 1);
		if (at > bytes)
			break;
	}
	return 0;
}
