// SPDX-License-Identifier: MIT
/* Tests of the fat binary reader: what nvcc makes, every packing, and no byte outside for any corruption. */
#include "lib/fatbin.h"

#include <errno.h>
#include <lz4.h>
#include <string.h>
#include <sys/mman.h>
#include <zstd.h>
#include "tests/tap.h"

static uint8_t box[1 << 16];
static size_t box_bytes;

static void put(size_t at, const void *p, size_t n)
{
	memcpy(box + at, p, n);
}

static void put16(size_t at, uint16_t v)
{
	put(at, &v, 2);
}

static void put32(size_t at, uint32_t v)
{
	put(at, &v, 4);
}

static void put64(size_t at, uint64_t v)
{
	put(at, &v, 8);
}

static void begin(void)
{
	memset(box, 0, sizeof(box));
	put32(0, 0xBA55ED50);
	put16(4, 1);
	put16(6, 16);
	box_bytes = 16;
}

static void add(uint16_t kind, uint32_t arch, enum fatbin_packing packing, const void *image, size_t n)
{
	static char buf[1 << 14];
	size_t at = box_bytes, stored = n, header = kind == FATBIN_PTX ? 80 : 64;

	memcpy(buf, image, n);
	if (packing == FATBIN_LZ4)
		stored = (size_t)LZ4_compress_default(image, buf, (int)n, sizeof(buf));
	else if (packing == FATBIN_ZSTD)
		stored = ZSTD_compress(buf, sizeof(buf), image, n, 3);
	put16(at, kind);
	put16(at + 2, 0x101);
	put32(at + 4, (uint32_t)header);
	put64(at + 8, (stored + 7) & ~7ull);
	put32(at + 16, packing ? (uint32_t)stored : 0);
	put16(at + 24, 0);
	put16(at + 26, 9);
	put32(at + 28, arch);
	put64(at + 40, packing == FATBIN_LZ4 ? 0x2000 : packing == FATBIN_ZSTD ? 0x8000 : 0);
	put64(at + 56, packing ? n : 0);
	put(at + header, buf, stored);
	box_bytes = at + header + ((stored + 7) & ~7ull);
	put64(8, box_bytes - 16);
}

static const char text52[] = "// for 52\n.version 7.0\n.target sm_52\n.address_size 64\n";
static const char text75[] = "//\n// for 75\n//\n.version 9.0\n.target sm_75\n.address_size 64\n.visible .entry f() { ret; }\n";
static const char text90[] = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry f() { ret; }\n";
static const char elf[] = "\177ELF and the rest of it";

static void whole(void)
{
	begin();
	add(FATBIN_ELF, 75, FATBIN_PLAIN, elf, sizeof(elf));
	add(FATBIN_ELF, 80, FATBIN_ZSTD, elf, sizeof(elf));
	add(FATBIN_PTX, 52, FATBIN_PLAIN, text52, sizeof(text52));
	add(FATBIN_PTX, 75, FATBIN_ZSTD, text75, sizeof(text75));
	add(FATBIN_PTX, 90, FATBIN_LZ4, text90, sizeof(text90));
	add(64, 90, FATBIN_PLAIN, "?", 1);
}

static void kinds(void)
{
	struct {
		uint32_t magic, version;
		const void *data, *aux;
	} wrapper = {0x466243B1, 1, box, NULL};

	is_int(image_kind(text75, SIZE_MAX), IMAGE_PTX, "PTX behind comments");
	is_int(image_kind("/* a */ \n/* b */.version 9.0", SIZE_MAX), IMAGE_PTX, "PTX behind other comments");
	is_int(image_kind("/* never closed", SIZE_MAX), IMAGE_UNKNOWN, "a comment that does not end");
	is_int(image_kind("", SIZE_MAX), IMAGE_UNKNOWN, "nothing");
	is_int(image_kind("P", SIZE_MAX), IMAGE_UNKNOWN, "a letter");
	is_int(image_kind("hello", SIZE_MAX), IMAGE_UNKNOWN, "text");
	is_int(image_kind(text75, 4), IMAGE_UNKNOWN, "PTX cut before its first directive");
	is_int(image_kind(elf, SIZE_MAX), IMAGE_ELF, "a cubin");
	is_int(image_kind(box, SIZE_MAX), IMAGE_FATBIN, "a container");
	is_int(image_kind(&wrapper, SIZE_MAX), IMAGE_WRAPPER, "a wrapper");
	ok(fatbin_unwrap(&wrapper) == box, "a wrapper leads to its container");
	ok(!fatbin_unwrap(box), "a container is no wrapper");
}

static void reading(void)
{
	struct fatbin_entry e;
	struct fatbin fb;
	char *image;
	size_t len;
	int n = 0, r;

	is_int(fatbin_bytes(box, SIZE_MAX), box_bytes, "the container knows its size");
	is_int(fatbin_open(&fb, box, box_bytes), 0, "open");
	while ((r = fatbin_next(&fb, &e)) > 0)
		n++;
	ok(r == 0 && n == 6, "six entries");
	is_int(fatbin_pick(box, box_bytes, FATBIN_PTX, 12, 1, &e), 1, "PTX for 12.1");
	is_int(e.arch, 90, "is the newest");
	is_int(e.ptx_major, 9, "its version");
	is_int(fatbin_unpack(&e, &image, &len), 0, "LZ4 unpacks");
	ok(len == strlen(text90) && !strcmp(image, text90), "to the text");
	free(image);
	is_int(fatbin_pick(box, box_bytes, FATBIN_PTX, 8, 6, &e), 1, "PTX for 8.6");
	is_int(e.arch, 75, "is the newest that isn't above");
	is_int(fatbin_unpack(&e, &image, &len), 0, "zstd unpacks");
	ok(len == strlen(text75) && !strcmp(image, text75), "to the text");
	free(image);
	is_int(fatbin_pick(box, box_bytes, FATBIN_PTX, 6, 1, &e), 1, "PTX for 6.1");
	is_int(fatbin_unpack(&e, &image, &len), 0, "plain text");
	ok(len == strlen(text52) && !strcmp(image, text52), "without the padding");
	free(image);
	is_int(fatbin_pick(box, box_bytes, FATBIN_PTX, 5, 0, &e), 0, "none for 5.0");
	is_int(fatbin_pick(box, box_bytes, FATBIN_ELF, 8, 9, &e), 1, "a cubin for 8.9");
	is_int(e.arch, 80, "of the same major");
	is_int(fatbin_unpack(&e, &image, &len), 0, "a packed cubin");
	ok(len == sizeof(elf) && !memcmp(image, elf, len), "keeps its length");
	free(image);
	is_int(fatbin_pick(box, box_bytes, FATBIN_ELF, 9, 0, &e), 0, "no cubin for 9.0");
}

/* Does everything with a copy that ends where a forbidden page begins; faults would end the program. */
static int use(const uint8_t *p, size_t n)
{
	struct fatbin_entry e;
	struct fatbin fb;
	char *image;
	size_t len;
	int r = fatbin_open(&fb, p, n);

	if (!r)
		while ((r = fatbin_next(&fb, &e)) > 0) {
			if (e.name && e.name_bytes && !e.name[0] && e.name[e.name_bytes - 1] == 1)
				return 1;
			if (e.bytes < 1 << 20 && !fatbin_unpack(&e, &image, &len))
				free(image);
		}
	return r;
}

static void corruption(void)
{
	size_t page = 4096, room = (box_bytes + page - 1) / page * page;
	uint8_t *map = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *p = map + room - box_bytes;
	unsigned int refused = 0, cut = 0, seed = 1;

	mprotect(map + room, page, PROT_NONE);
	memcpy(p, box, box_bytes);
	is_int(use(p, box_bytes), 0, "the whole container reads at the edge");
	for (size_t n = 0; n < box_bytes; n++) {
		uint8_t *q = map + room - n;

		memcpy(q, box, n);
		cut += use(q, n) == -EINVAL;
	}
	is_int(cut, box_bytes, "every truncated container is refused");
	for (int i = 0; i < 60000; i++) {
		size_t at;

		memcpy(p, box, box_bytes);
		for (int k = 0; k < 1 + i % 3; k++) {
			static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};

			seed = seed * 1103515245 + 12345;
			at = (seed >> 8) % box_bytes;
			p[at] = i % 2 ? values[seed % 5] : p[at] ^ (uint8_t)(1 << (seed >> 28 & 7));
		}
		refused += use(p, box_bytes) < 0;
	}
	ok(refused > 100, "60,000 corruptions read no byte outside (%u refused)", refused);
	munmap(map, room + page);
}

static void bad_packing(void)
{
	struct fatbin_entry e;
	char *image;
	size_t len;

	begin();
	add(FATBIN_PTX, 75, FATBIN_ZSTD, text75, sizeof(text75));
	box[16 + 80 + 10] ^= 0x55;
	is_int(fatbin_pick(box, box_bytes, FATBIN_PTX, 7, 5, &e), 1, "a damaged payload is found");
	is_int(fatbin_unpack(&e, &image, &len), -EINVAL, "and does not unpack");
	begin();
	add(FATBIN_PTX, 75, FATBIN_LZ4, text75, sizeof(text75));
	put64(16 + 56, sizeof(text75) - 5);
	is_int(fatbin_pick(box, box_bytes, FATBIN_PTX, 7, 5, &e), 1, "a wrong unpacked size");
	is_int(fatbin_unpack(&e, &image, &len), -EINVAL, "is noticed");
	put64(16 + 56, 1ull << 40);
	is_int(fatbin_pick(box, box_bytes, FATBIN_PTX, 7, 5, &e), 1, "a terabyte");
	is_int(fatbin_unpack(&e, &image, &len), -EFBIG, "is not believed");
	begin();
	add(FATBIN_PTX, 75, FATBIN_PLAIN, text75, sizeof(text75));
	put64(16 + 8, UINT64_MAX);
	is_int(fatbin_pick(box, box_bytes, FATBIN_PTX, 7, 5, &e), -EINVAL, "an entry beyond the end");
	put64(8, UINT64_MAX);
	is_int(fatbin_bytes(box, SIZE_MAX), 0, "a container beyond the address space");
}

int main(void)
{
	whole();
	kinds();
	reading();
	corruption();
	bad_packing();
	return tap_done();
}
