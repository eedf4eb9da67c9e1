// SPDX-License-Identifier: MIT
/* Reads CUDA's fat binaries (the images of several targets in one container) without ever reading outside of them. */
#include "lib/fatbin.h"

#include <ctype.h>
#include <errno.h>
#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define WRAPPER_MAGIC	0x466243B1u
#define CONTAINER_MAGIC 0xBA55ED50u
#define CONTAINER_BYTES 16
#define ENTRY_BYTES	64 /* of the header fields that we read; the header itself may be longer */
#define FLAG_LZ4	0x2000u
#define FLAG_ZSTD	0x8000u
#define UNPACKED_MAX	(1ull << 30)

/* Images need not be aligned in a network buffer. */
static uint16_t get16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint32_t get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint64_t get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* PTX begins with comments and white space, and then the .version directive. */
static bool looks_like_ptx(const char *s, size_t len)
{
	size_t i = 0;

	while (i < len && s[i]) {
		if (isspace((unsigned char)s[i])) {
			i++;
		} else if (s[i] == '/' && i + 1 < len && s[i + 1] == '/') {
			while (i < len && s[i] && s[i] != '\n')
				i++;
		} else if (s[i] == '/' && i + 1 < len && s[i + 1] == '*') {
			for (i += 2; i < len && s[i] && !(s[i] == '*' && i + 1 < len && s[i + 1] == '/'); i++)
				;
			if (i >= len || !s[i])
				return false;
			i += 2;
		} else {
			return s[i] == '.';
		}
	}
	return false;
}

enum image_kind image_kind(const void *image, size_t len)
{
	if (len >= 4) {
		const char *s = image;

		/* Byte by byte: the text may be shorter than a word. */
		if (s[0] == 0x7f && s[1] == 'E' && s[2] == 'L' && s[3] == 'F')
			return IMAGE_ELF;
		if ((uint8_t)s[0] == (CONTAINER_MAGIC & 0xff) && (uint8_t)s[1] == (CONTAINER_MAGIC >> 8 & 0xff) &&
		    get32(image) == CONTAINER_MAGIC)
			return IMAGE_FATBIN;
		if ((uint8_t)s[0] == (WRAPPER_MAGIC & 0xff) && s[1] == (char)(WRAPPER_MAGIC >> 8 & 0xff) &&
		    get32(image) == WRAPPER_MAGIC)
			return IMAGE_WRAPPER;
	}
	return looks_like_ptx(image, len) ? IMAGE_PTX : IMAGE_UNKNOWN;
}

const void *fatbin_unwrap(const void *wrapper)
{
	const uint8_t *p = wrapper;
	uint64_t data;

	if (get32(p) != WRAPPER_MAGIC)
		return NULL;
	data = get64(p + 8);
	return (const void *)(uintptr_t)data;
}

const void *const *fatbin_prelinked(const void *wrapper)
{
	const uint8_t *p = wrapper;

	/* Version 2 has the list behind the container. */
	if (get32(p) != WRAPPER_MAGIC || get32(p + 4) != 2)
		return NULL;
	return (const void *const *)(uintptr_t)get64(p + 16);
}

size_t fatbin_bytes(const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t body;
	uint16_t header;

	if (len < CONTAINER_BYTES || get32(p) != CONTAINER_MAGIC || get16(p + 4) != 1)
		return 0;
	header = get16(p + 6);
	body = get64(p + 8);
	if (header < CONTAINER_BYTES || header > len || body > len - header)
		return 0;
	return header + body;
}

int fatbin_open(struct fatbin *fb, const void *data, size_t len)
{
	size_t bytes = fatbin_bytes(data, len);

	if (!bytes || bytes > (size_t)(UINTPTR_MAX - (uintptr_t)data))
		return -EINVAL;
	fb->at = (const uint8_t *)data + get16((const uint8_t *)data + 6);
	fb->end = (const uint8_t *)data + bytes;
	return 0;
}

int fatbin_next(struct fatbin *fb, struct fatbin_entry *e)
{
	const uint8_t *p = fb->at;
	size_t left = fb->end - p, header, packed, name_at;
	uint64_t stored;

	/* nvcc pads a container with zeros. */
	while (left && left < ENTRY_BYTES && !*p)
		p++, left--;
	if (!left)
		return 0;
	if (left < ENTRY_BYTES)
		return -EINVAL;
	header = get32(p + 4);
	stored = get64(p + 8);
	if (header < ENTRY_BYTES || header > left || stored > left - header)
		return -EINVAL;
	memset(e, 0, sizeof(*e));
	e->kind = get16(p);
	e->ptx_minor = get16(p + 24);
	e->ptx_major = get16(p + 26);
	e->arch = get32(p + 28);
	e->flags = get64(p + 40);
	e->payload = p + header;
	e->payload_bytes = stored;
	e->bytes = stored;
	if (e->flags & (FLAG_LZ4 | FLAG_ZSTD)) {
		uint64_t bytes = get64(p + 56);

		packed = get32(p + 16);
		if (!packed || packed > stored || !bytes || bytes > SIZE_MAX - 1)
			return -EINVAL;
		e->packing = e->flags & FLAG_LZ4 ? FATBIN_LZ4 : FATBIN_ZSTD;
		e->payload_bytes = packed;
		e->bytes = bytes;
	}
	name_at = get32(p + 32);
	e->name_bytes = get32(p + 36);
	if (e->name_bytes && name_at <= header && e->name_bytes <= header - name_at)
		e->name = (const char *)p + name_at;
	else
		e->name_bytes = 0;
	fb->at = p + header + stored;
	return 1;
}

int fatbin_unpack(const struct fatbin_entry *e, char **image, size_t *len)
{
	char *buf;

	if (e->bytes > UNPACKED_MAX || e->payload_bytes > UNPACKED_MAX)
		return -EFBIG;
	buf = malloc(e->bytes + 1);
	if (!buf)
		return -ENOMEM;
	if (e->packing == FATBIN_PLAIN) {
		memcpy(buf, e->payload, e->bytes);
	} else if (e->packing == FATBIN_LZ4) {
		int n = LZ4_decompress_safe((const char *)e->payload, buf, (int)e->payload_bytes, (int)e->bytes);

		if (n < 0 || (size_t)n != e->bytes)
			goto corrupt;
	} else {
		size_t n = ZSTD_decompress(buf, e->bytes, e->payload, e->payload_bytes);

		if (ZSTD_isError(n) || n != e->bytes)
			goto corrupt;
	}
	buf[e->bytes] = 0;
	*image = buf;
	*len = e->kind == FATBIN_PTX ? strnlen(buf, e->bytes) : e->bytes;
	return 0;
corrupt:
	free(buf);
	return -EINVAL;
}

int fatbin_pick(const void *data, size_t len, enum fatbin_kind kind, unsigned int major, unsigned int minor,
		struct fatbin_entry *best)
{
	unsigned int want = major * 10 + minor;
	struct fatbin_entry e;
	struct fatbin fb;
	int found = 0, r;

	r = fatbin_open(&fb, data, len);
	if (r)
		return r;
	while ((r = fatbin_next(&fb, &e)) > 0) {
		if (e.kind != kind || e.arch > want || (kind == FATBIN_ELF && e.arch / 10 != major))
			continue;
		if (!found || e.arch > best->arch)
			*best = e;
		found = 1;
	}
	return r < 0 ? r : found;
}
