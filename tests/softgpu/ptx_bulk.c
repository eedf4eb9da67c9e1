/* SPDX-License-Identifier: MIT */
/* Bulk copies and reductions, and tensor copies, against plain C (kernels: ptx_bulk.cu). */
#include "softgpu/ptx/tensormap.h"
#include "tests/softgpu/test_arena.h"
#include "tests/softgpu/ptx_forms.h"
#include "tests/tap.h"

static struct ptx_module *m;

static enum ptx_status run(const char *name, uint32_t grid, uint32_t cluster, uint32_t shared, const void *params)
{
	enum ptx_status st;

	test_cluster[0] = cluster;
	test_cluster[1] = test_cluster[2] = cluster ? 1 : 0;
	st = test_launch_dim(ptx_module_kernel(m, name), (const uint32_t[3]){grid, 1, 1}, (const uint32_t[3]){32, 1, 1}, shared,
			     params, false);
	if (st != PTX_OK)
		printf("# %s: status %d, %s\n", name, st, test_fault.text);
	return st;
}

#define EACH(n, got, want, what)                                                                                                 \
	do {                                                                                                                     \
		int bad_ = 0;                                                                                                    \
		for (int t = 0; t < (int)(n); t++)                                                                               \
			if ((got) != (want) && bad_++ < 3)                                                                       \
				printf("# %s: at %d got %lld want %lld\n", what, t, (long long)(got), (long long)(want));        \
		ok(!bad_, what);                                                                                                 \
	} while (0)

static void test_plain(void)
{
	int *from = test_alloc(4096), *to = test_alloc(4096), *out = test_alloc(4096);
	struct {
		int *to, *from;
		unsigned bytes;
	} p = {to, from, 1600};
	struct {
		int *out, *from;
	} s = {out, from};

	for (int i = 0; i < 1024; i++)
		from[i] = i * 7919;
	is_int(run("plain", 1, 0, 0, &p), PTX_OK, "cp.async.bulk to shared memory and back");
	EACH(1024, to[t], t < 400 ? from[t] + (t == 1) : 0, "1600 bytes, no more");
	p.bytes = 20;
	is_int(run("plain", 1, 0, 0, &p), PTX_ILLEGAL_INSTRUCTION, "20 bytes are no multiple of 16");
	p.bytes = 32;
	p.from = from + 1;
	is_int(run("plain", 1, 0, 0, &p), PTX_MISALIGNED, "an address that is no multiple of 16");
	p.from = from;
	p.bytes = 8192;
	is_int(run("plain", 1, 0, 0, &p), PTX_ILLEGAL_ADDRESS, "more than there is of shared memory");
	is_int(run("spread", 4, 4, 0, &s), PTX_OK, "multicast, and from block to block");
	EACH(4 * 64, out[t],
	     from[t % 32] + (t % 32	   ? 0
			     : t % 64 < 32 ? t / 64
					   : (t / 64 + 3) % 4),
	     "each has the line, and its neighbour's");
}

/* What the sixteen bytes at 16·k must be, for each operation of the kernel. */
static void test_reduce(void)
{
	static const char *const ops[] = {"add.u32",	    "add.s32", "add.u64", "add.f32", "add.f64", "add.noftz.f16",
					  "add.noftz.bf16", "min.u32", "max.s32", "min.s64", "max.u64", "min.f16",
					  "max.bf16",	    "inc.u32", "dec.u32", "and.b32", "or.b64",	"xor.b32"};
	/* f16 and bf16: 1.5 + 2 = 3.5, −0.5 and 0.25 */
	static const uint16_t halves[2][3][4] = {
		{{0x3e00, 0xb800, 0x8000, 0x7e00}, {0x4000, 0x3400, 0x0000, 0x3c00}, {0x4300, 0xb400, 0, 0x7fff}},
		{{0x3fc0, 0xbf00, 0x8000, 0x7fc0}, {0x4000, 0x3e80, 0x0000, 0x3f80}, {0x4060, 0xbe80, 0, 0x7fff}}};
	uint8_t *from = test_alloc(1024), *to = test_alloc(1024), want[18 * 16];
	struct {
		void *to, *from;
	} p = {to, from};
	uint32_t seed = 1;

	for (int i = 0; i < 1024; i++) {
		seed = seed * 1664525 + 1013904223;
		from[i] = (uint8_t)(seed >> 24);
		to[i] = (uint8_t)(seed >> 16);
	}
	for (int i = 0; i < 4; i++) { /* numbers for the floats */
		((float *)(to + 48))[i] = (float)i * 1.25f;
		((float *)(from + 48))[i] = 0.1f;
	}
	((uint32_t *)(to + 48))[3] = 0x00000001; /* a subnormal counts as zero */
	((uint32_t *)(from + 48))[3] = 0x80000001;
	for (int i = 0; i < 2; i++) {
		((double *)(to + 64))[i] = i + 0.5;
		((double *)(from + 64))[i] = 1e-9;
	}
	for (int k = 0; k < 8; k++) {
		((uint16_t *)(to + 80))[k] = halves[0][0][k % 4];
		((uint16_t *)(from + 80))[k] = halves[0][1][k % 4];
		((uint16_t *)(to + 96))[k] = halves[1][0][k % 4];
		((uint16_t *)(from + 96))[k] = halves[1][1][k % 4];
		((uint16_t *)(to + 176))[k] = halves[0][0][k % 4];
		((uint16_t *)(from + 176))[k] = halves[0][1][k % 4];
		((uint16_t *)(to + 192))[k] = halves[1][0][k % 4];
		((uint16_t *)(from + 192))[k] = halves[1][1][k % 4];
	}
	((uint32_t *)(to + 208))[0] = ((uint32_t *)(from + 208))[0]; /* inc wraps, dec comes from above */
	((uint32_t *)(to + 224))[0] = 0;
	for (int k = 0; k < 18; k++) {
		const uint8_t *x = to + 16 * k, *y = from + 16 * k;
		uint8_t *w = want + 16 * k;

#define WORDS(T, EXPR)                                                                                                           \
	for (unsigned q = 0; q < 16 / sizeof(T); q++) {                                                                          \
		T a, b, r;                                                                                                       \
		memcpy(&a, x + q * sizeof(T), sizeof(T));                                                                        \
		memcpy(&b, y + q * sizeof(T), sizeof(T));                                                                        \
		r = (T)(EXPR);                                                                                                   \
		memcpy(w + q * sizeof(T), &r, sizeof(T));                                                                        \
	}                                                                                                                        \
	break
		switch (k) {
		case 0:
		case 1:
			WORDS(uint32_t, a + b);
		case 2:
			WORDS(uint64_t, a + b);
		case 3:
			WORDS(float, q == 3 ? 0 : a + b);
		case 4:
			WORDS(double, a + b);
		case 5:
			WORDS(uint16_t, halves[0][2][q % 4] + 0 * (a + b));
		case 6:
			WORDS(uint16_t, halves[1][2][q % 4] + 0 * (a + b));
		case 7:
			WORDS(uint32_t, a < b ? a : b);
		case 8:
			WORDS(int32_t, a > b ? a : b);
		case 9:
			WORDS(int64_t, a < b ? a : b);
		case 10:
			WORDS(uint64_t, a > b ? a : b);
		case 11: /* the smaller; −0; the number beside a NaN */
			WORDS(uint16_t, q % 4 == 3 ? b : a + 0 * b);
		case 12:
			WORDS(uint16_t, q % 4 == 3 ? b : q % 4 == 0 ? b : q % 4 == 1 ? b : 0 * (a + b));
		case 13:
			WORDS(uint32_t, a >= b ? 0 : a + 1);
		case 14:
			WORDS(uint32_t, !a || a > b ? b : a - 1);
		case 15:
			WORDS(uint32_t, a & b);
		case 16:
			WORDS(uint64_t, a | b);
		default:
			WORDS(uint32_t, a ^ b);
		}
	}
	is_int(run("reduce", 1, 0, 0, &p), PTX_OK, "cp.reduce.async.bulk");
	for (int k = 0; k < 18; k++)
		ok(!memcmp(to + 16 * k, want + 16 * k, 16), "%s", ops[k]);
	if (((float *)(to + 48))[3] != 0)
		printf("# subnormals\n");
}

struct params {
	uint8_t *out;
	unsigned bytes;
	_Alignas(64) union {
		struct tensormap map;
		uint8_t bytes128[128];
	};
	int c[4], c4, pad[3], to[4], to4;
};

/* The tables of the manual: which chunk of 16 bytes lies where in a line of 128 bytes. */
static uint32_t swizzled(uint32_t at, uint32_t mode)
{
	uint32_t line = at / 128, chunk = at / 16 % 8, low = at % 16;

	if (mode == 1)
		chunk = line % 2 ? chunk ^ 1 : chunk;
	else if (mode == 2)
		chunk ^= line % 4;
	else if (mode == 3)
		chunk ^= line % 8;
	else if (mode == 4 || mode == 5)
		chunk = (chunk / 2 ^ line % 4) * 2 + chunk % 2;
	else if (mode == 6)
		chunk = (chunk / 4 ^ line % 2) * 4 + chunk % 4;
	if (mode == 5 && line % 2)
		low ^= 8;
	return line * 128 + chunk * 16 + low;
}

/* A tensor of @rank dimensions: all coordinates that matter, some of them outside. */
static void test_tensor(uint32_t rank, uint32_t type, const uint32_t dim[5], const uint32_t box[5], const uint32_t step[5],
			const int at[5], uint32_t mode, bool nan)
{
	uint32_t size = tensormap_type_size(type), count[5] = {1, 1, 1, 1, 1}, total = 1, bad = 0;
	uint64_t bytes = size, stride[5];
	struct params p = {.bytes = 0};
	uint8_t *tensor, *before;
	uint64_t fill = !nan ? 0 : type == 6 || type == 9 ? 0x7fff : type == 8 ? 0x7fffffffffffffff : 0x7fffffff;
	char name[16];

	p.map = (struct tensormap){.magic = TENSORMAP_MAGIC,
				   .rank = (uint8_t)rank,
				   .type = (uint8_t)type,
				   .swizzle = (uint8_t)mode,
				   .fill_nan = nan};
	for (uint32_t d = 0; d < rank; d++) {
		stride[d] = bytes;
		bytes = ((bytes * dim[d] + 15) & ~15ull) + (d ? 0 : 32); /* with a gap behind each row */
		p.map.last[d] = dim[d] - 1;
		p.map.box[d] = (uint16_t)box[d];
		p.map.step[d] = (uint8_t)(d ? step[d] : 1);
		if (d)
			p.map.stride[d - 1] = stride[d];
		count[d] = (box[d] + p.map.step[d] - 1) / p.map.step[d];
		total *= count[d];
		p.c[d < 4 ? d : 0] = d < 4 ? at[d] : p.c[0];
		p.to[d < 4 ? d : 0] = d < 4 ? at[d] + 1 : p.to[0];
	}
	p.c4 = at[4];
	p.to4 = at[4] + 1;
	p.bytes = total * size;
	p.out = test_alloc(p.bytes + 128);
	tensor = test_alloc(bytes);
	before = malloc(bytes);
	for (uint64_t k = 0; k < bytes; k++)
		before[k] = tensor[k] = (uint8_t)(k * 31 + k / 256);
	p.map.address = (uint64_t)(uintptr_t)tensor;
	snprintf(name, sizeof(name), "tensor%u", rank);
	if (run(name, 1, 0, (p.bytes + 127) & ~127u, &p) != PTX_OK)
		bad++;
	/* First the stores' effect on a copy, from what the loads should have brought. */
	for (uint32_t pass = 0; pass < 2 && !bad; pass++)
		for (uint32_t n = 0; n < total; n++) {
			uint32_t q = n, lies = swizzled(n * size, mode);
			uint64_t a = 0, b = 0, v = fill;
			bool in = true, to_in = true;

			for (uint32_t d = 0; d < rank; d++) {
				int k = at[d] + (int)(q % count[d] * (d ? step[d] : 1));

				q /= count[d];
				in = in && k >= 0 && k < (int)dim[d];
				to_in = to_in && k + 1 >= 0 && k + 1 < (int)dim[d];
				a += (uint64_t)k * stride[d];
				b += (uint64_t)(k + 1) * stride[d];
			}
			if (!pass) {
				if (in)
					memcpy(&v, &before[a], size);
				if (lies + size <= p.bytes && memcmp(&v, p.out + lies, size) && bad++ < 3)
					printf("# element %u is not as it should be\n", n);
			} else if (to_in && lies + size <= p.bytes) {
				if (memcmp(tensor + b, p.out + lies, size) && bad++ < 3)
					printf("# element %u was not stored\n", n);
				memcpy(tensor + b, before + b, size);
			}
		}
	/* Everything else is as it was. */
	if (!bad && memcmp(tensor, before, bytes))
		bad++;
	free(before);
	ok(!bad, "rank %u, type %u, swizzle %u%s", rank, type, mode, nan ? ", NaN outside" : "");
}

static void test_tensors(void)
{
	static const uint32_t one[5] = {1, 1, 1, 1, 1}, two[5] = {1, 2, 1, 3, 2};
	const int inside[5] = {0, 1, 0, 1, 0}, low[5] = {-3, -2, -1, 0, -1}, high[5] = {13, 5, 2, 1, 1};

	for (uint32_t type = 0; type < 10; type++) {
		uint32_t wide = 64 / tensormap_type_size(type);

		test_tensor(2, type, (uint32_t[5]){40, 9}, (uint32_t[5]){wide, 6}, one, low, type % 4, type > 5 && type % 2);
	}
	for (uint32_t mode = 0; mode < 7; mode++)
		test_tensor(2, 6, (uint32_t[5]){80, 32},
			    (uint32_t[5]){mode == 1   ? 16
					  : mode == 2 ? 32
						      : 64,
					  24},
			    one, inside, mode, false);
	test_tensor(1, 7, (uint32_t[5]){100}, (uint32_t[5]){64}, one, high, 0, true);
	test_tensor(3, 7, (uint32_t[5]){20, 8, 5}, (uint32_t[5]){8, 4, 3}, one, high, 0, true);
	test_tensor(3, 2, (uint32_t[5]){20, 8, 5}, (uint32_t[5]){8, 5, 3}, two, low, 1, false);
	test_tensor(4, 0, (uint32_t[5]){40, 5, 4, 3}, (uint32_t[5]){32, 3, 3, 3}, two, high, 0, false);
	test_tensor(5, 9, (uint32_t[5]){17, 6, 4, 3, 3}, (uint32_t[5]){16, 3, 2, 2, 3}, two, low, 0, true);
	test_tensor(5, 1, (uint32_t[5]){17, 6, 4, 3, 3}, (uint32_t[5]){8, 2, 2, 2, 2}, one, inside, 0, false);
}

static void test_replace(void)
{
	float *a = test_alloc(4096), *b = test_alloc(4096);
	struct {
		void *own;
		_Alignas(64) union {
			struct tensormap map;
			uint8_t bytes[128];
		};
		float *base;
		int x, y;
	} p = {.own = test_alloc(128), .base = b, .x = 10, .y = 2};
	struct params t = {.bytes = 64};

	p.map = (struct tensormap){.magic = TENSORMAP_MAGIC,
				   .rank = 2,
				   .type = 7,
				   .swizzle = 3,
				   .address = (uint64_t)(uintptr_t)a,
				   .stride = {64},
				   .last = {15, 15},
				   .box = {16, 8},
				   .step = {1, 1}};
	is_int(run("replaced", 1, 0, 0, &p), PTX_OK, "tensormap.replace, cp_fenceproxy, cp.reduce.async.bulk.tensor");
	EACH(256, b[t], t % 16 >= 10 && t / 16 >= 2 && t / 16 < 6 ? 1 : 0, "a box of 8 × 8 that is cut at 16 × 6");
	EACH(256, a[t], 0, "the map's first address is not touched");
	t.out = test_alloc(128);
	is_int(run("tensor2", 1, 0, 128, &t), PTX_ILLEGAL_INSTRUCTION, "128 bytes that are no tensor map");
}

static void test_ignore(void)
{
	int *in = test_alloc(64), *out = test_alloc(64);
	int *p[2] = {out, in};

	for (int k = 0; k < 16; k++)
		in[k] = k + 5;
	is_int(run("ignore", 1, 0, 0, p), PTX_OK, "cp.async with ignore-src and a short source");
	EACH(12, out[t], t < 4 ? 0 : t < 8 ? t + 1 : t == 8 ? 5 : 0, "ignored bytes are zeros");
}

int main(int argc, char **argv)
{
	char *text;

	(void)argc;
	m = test_module_beside(argv[0], &text);
	test_plain();
	test_reduce();
	test_tensors();
	test_replace();
	test_ignore();
	ptx_module_free(m);
	free(text);
	forms_done("bulk");
	return tap_done();
}
