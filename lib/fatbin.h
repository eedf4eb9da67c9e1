/* SPDX-License-Identifier: MIT */
/* Reads CUDA's fat binaries (the images of several targets in one container) without ever reading outside of them. */
#ifndef RGPU_LIB_FATBIN_H
#define RGPU_LIB_FATBIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an image handed to cuModuleLoadData can be, told by its first bytes. */
enum image_kind {
	IMAGE_UNKNOWN,
	IMAGE_PTX,     /* NUL-terminated text */
	IMAGE_ELF,     /* a cubin */
	IMAGE_FATBIN,  /* a container: fatbin_open() takes it */
	IMAGE_WRAPPER, /* .nvFatBinSegment: fatbin_unwrap() leads to the container */
};

enum fatbin_kind {
	FATBIN_PTX = 1,
	FATBIN_ELF = 2,
};

enum fatbin_packing {
	FATBIN_PLAIN,
	FATBIN_LZ4, /* one LZ4 block */
	FATBIN_ZSTD,
};

/* One image as it lies in the container; everything points into the container. */
struct fatbin_entry {
	uint16_t kind; /* enum fatbin_kind, or a number that we don't know */
	uint16_t ptx_major, ptx_minor;
	uint32_t arch; /* 75 for sm_75 and compute_75 */
	uint64_t flags;
	enum fatbin_packing packing;
	const uint8_t *payload;
	size_t payload_bytes; /* as stored, padding included when not packed */
	size_t bytes;	      /* after unpacking */
	const char *name;     /* not terminated; NULL when there is none */
	size_t name_bytes;
};

struct fatbin {
	const uint8_t *at, *end;
};

/* Both look at the first 16 bytes at most, and at a PTX text up to its first directive. */
enum image_kind image_kind(const void *image, size_t len);

/*
 * The container that a wrapper points at, or NULL when @wrapper is none. For images of this
 * process only: the pointer is followed.
 */
const void *fatbin_unwrap(const void *wrapper);

/* The containers to be linked that a wrapper lists, the last one followed by NULL; NULL when it lists none. As above. */
const void *const *fatbin_prelinked(const void *wrapper);

/*
 * Bytes of the container at @data, header included, as its header says; 0 when it is no container
 * or says more than @len. Use SIZE_MAX for @len when the caller knows no bound (cuModuleLoadData).
 */
size_t fatbin_bytes(const void *data, size_t len);

/* 0, or -EINVAL when @data is no container or one that doesn't fit in @len bytes. */
int fatbin_open(struct fatbin *fb, const void *data, size_t len);

/* 1 and the next entry; 0 at the end; -EINVAL when an entry leaves the container. */
int fatbin_next(struct fatbin *fb, struct fatbin_entry *e);

/*
 * Unpacks @e into a buffer that the caller frees, with a NUL behind the image; for PTX *len ends at the text's first NUL. 0,
 * -EINVAL (corrupt), -ENOMEM, or -EFBIG (claims more than 1 GiB).
 */
int fatbin_unpack(const struct fatbin_entry *e, char **image, size_t *len);

/*
 * The best entry of @kind for a device of compute capability @major.@minor: of ELF images the
 * newest of the same major and not above the minor, of PTX the newest not above. 1 and *best; 0
 * when there is none; -EINVAL as above.
 */
int fatbin_pick(const void *data, size_t len, enum fatbin_kind kind, unsigned int major, unsigned int minor,
		struct fatbin_entry *best);

#endif
