/* SPDX-License-Identifier: MIT */
/* The table of handlers: the rows of this CPU's level, their brace forms expanded, found by name. */
#include <stdlib.h>
#include <string.h>

#include "softgpu/ptx/whole_build.h"

#define TABLES(X) X(int) X(bits) X(float) X(half) X(compare) X(convert) X(memory) X(warp) X(tensor) X(wmma)

#define DECLARE(t) extern const struct op_row ptx_ops_##t##_v2[], ptx_ops_##t##_v3[], ptx_ops_##t##_v4[];
TABLES(DECLARE)
extern const struct op_row ptx_ops_device[], ptx_ops_video[], ptx_ops_atomic[], ptx_ops_call[], ptx_ops_special[],
	ptx_ops_general[], ptx_ops_async[], ptx_ops_bulk[], ptx_ops_minifloat[], ptx_ops_tex[];

#define ROW(t) {ptx_ops_##t##_v2, ptx_ops_##t##_v3, ptx_ops_##t##_v4},
static const struct op_row *const by_level[][3] = {TABLES(ROW)};
static const struct op_row *const common[] = {ptx_ops_device,  ptx_ops_video, ptx_ops_atomic, ptx_ops_call,	 ptx_ops_special,
					      ptx_ops_general, ptx_ops_async, ptx_ops_bulk,   ptx_ops_minifloat, ptx_ops_tex};

struct entry {
	const char *name;
	u32 len, hash;
	const struct op_row *row;
};

static struct entry *table;
static u32 mask, count;
static char *names;
static size_t names_used, names_cap;
static u32 level;
static bool failed;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static u32 hash_name(const char *s, size_t len)
{
	u32 h = 2166136261u;

	for (size_t k = 0; k < len; k++)
		h = (h ^ (u8)s[k]) * 16777619u;
	return h;
}

static struct entry *lookup(const char *s, size_t len)
{
	u32 h = hash_name(s, len);

	for (u32 k = h & mask;; k = (k + 1) & mask) {
		struct entry *e = &table[k];

		if (!e->row || (e->hash == h && e->len == len && !memcmp(e->name, s, len)))
			return e;
	}
}

/* The first row with a name wins: a fast handler precedes the general one. */
static void enter(const struct op_row *row, const char *name, size_t len)
{
	struct entry *e = lookup(name, len);

	if (e->row)
		return;
	if (count > mask / 2 || names_used + len > names_cap) {
		failed = true;
		return;
	}
	memcpy(names + names_used, name, len);
	*e = (struct entry){names + names_used, (u32)len, hash_name(name, len), row};
	names_used += len;
	count++;
}

static void expand(const struct op_row *row, char *buf, size_t at, const char *f)
{
	const char *open = strchr(f, '{'), *close;

	if (!open) {
		size_t n = strlen(f);

		memcpy(buf + at, f, n);
		enter(row, buf, at + n);
		return;
	}
	memcpy(buf + at, f, (size_t)(open - f));
	at += (size_t)(open - f);
	close = strchr(open, '}');
	for (const char *s = open + 1; s <= close;) {
		size_t n = strcspn(s, ",}");

		memcpy(buf + at, s, n);
		expand(row, buf, at + n, close + 1);
		s += n + 1;
	}
}

static void enter_all(const struct op_row *rows)
{
	char buf[256];

	for (; rows->forms; rows++)
		expand(rows, buf, 0, rows->forms);
}

/* clang 14 (the fuzzers' compiler) knows features by name, not levels. */
#ifdef __clang__
#define CPU_V3 (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma"))
#define CPU_V4 (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
#else
#define CPU_V3 __builtin_cpu_supports("x86-64-v3")
#define CPU_V4 __builtin_cpu_supports("x86-64-v4")
#endif

static u32 cpu_level(void)
{
	const char *force = getenv("SOFTGPU_ISA"); /* v2, v3 or v4: for tests of the lower levels */
	u32 best = 0;

#ifdef __x86_64__
	__builtin_cpu_init();
	if (CPU_V3)
		best = 1;
	if (best && CPU_V4)
		best = 2;
#endif
	if (force && force[0] == 'v' && force[1] >= '2' && force[1] <= '4' && (u32)(force[1] - '2') <= best)
		best = (u32)(force[1] - '2');
	return best;
}

static void build(void)
{
	mask = (1u << 15) - 1;
	names_cap = 512u << 10;
	table = calloc(mask + 1, sizeof(*table));
	names = malloc(names_cap);
	if (!table || !names) {
		failed = true;
		return;
	}
	level = cpu_level();
	for (size_t k = 0; k < sizeof(by_level) / sizeof(by_level[0]); k++)
		enter_all(by_level[k][level]);
	for (size_t k = 0; k < sizeof(common) / sizeof(common[0]); k++)
		enter_all(common[k]);
}

const struct op_row *ptx_op_row(const char *name, size_t len)
{
	pthread_once(&once, build);
	return failed ? NULL : lookup(name, len)->row;
}

const struct op_row *ptx_op_find(const char *name, size_t len)
{
	return ptx_op_row(name, len);
}

void ptx_op_each(void (*fn)(void *arg, const char *name, size_t len), void *arg)
{
	pthread_once(&once, build);
	for (u32 k = 0; !failed && k <= mask; k++)
		if (table[k].row)
			fn(arg, table[k].name, table[k].len);
}

const char *ptx_op_level(void)
{
	static const char *const names_of[] = {"x86-64-v2", "x86-64-v3", "x86-64-v4"};

	pthread_once(&once, build);
	return names_of[level];
}

u32 ptx_op_level_index(void)
{
	pthread_once(&once, build);
	return level;
}
