/* SPDX-License-Identifier: MIT */
/* What whole-warp code knows about each handler of the general form, found by the handler's address. */
#include <stdlib.h>
#include <string.h>

#include "softgpu/ptx/whole_build.h"

#define TABLES(X)  X(int) X(bits) X(float) X(compare) X(convert) X(memory)
#define DECLARE(t) extern const struct whole_row ptx_ops_whole_##t##_v2[], ptx_ops_whole_##t##_v3[], ptx_ops_whole_##t##_v4[];
TABLES(DECLARE)
#define ROW(t) {ptx_ops_whole_##t##_v2, ptx_ops_whole_##t##_v3, ptx_ops_whole_##t##_v4},
static const struct whole_row *const by_level[][3] = {TABLES(ROW)};

#define BUCKETS 8192u

static struct whole_op *ops;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static struct whole_op *slot(ptx_handler fn)
{
	u32 k = (u32)(((uintptr_t)fn >> 4) * 2654435761u >> 7) % BUCKETS;

	while (ops[k].fn && ops[k].fn != fn)
		k = (k + 1) % BUCKETS;
	return &ops[k];
}

/* The first of the names that @forms stands for. */
static size_t first_name(const char *forms, char *to)
{
	size_t n = 0;

	while (*forms) {
		if (*forms == '{') {
			size_t len = strcspn(++forms, ",}");

			memcpy(to + n, forms, len);
			n += len;
			forms = strchr(forms, '}') + 1;
		} else {
			to[n++] = *forms++;
		}
	}
	to[n] = 0;
	return n;
}

static const struct {
	const char *name;
	enum transfer transfer;
} transfers[] = {
	{"mov:w", TR_MOV},	     {"mov:d", TR_MOV},		  {"add.u32", TR_ADD},	       {"add.u64", TR_ADD},
	{"sub.u32", TR_SUB},	     {"sub.u64", TR_SUB},	  {"mul.lo.u32", TR_MUL},      {"mul.lo.u64", TR_MUL},
	{"mad.lo.u32", TR_MAD},	     {"mad.lo.u64", TR_MAD},	  {"shl.b32", TR_SHL},	       {"shl.b64", TR_SHL},
	{"shr.u32", TR_SHR},	     {"and.b32", TR_AND},	  {"cvt.u32.u64", TR_TRUNC},   {"trunc:wd", TR_TRUNC},
	{"cvt.u64.s32", TR_WIDE_S},  {"cvt.u64.u32", TR_WIDE_U},  {"mul.wide.s32", TR_WIDE_S}, {"mul.wide.u32", TR_WIDE_U},
	{"mad.wide.s32", TR_WIDE_S}, {"mad.wide.u32", TR_WIDE_U},
};

static void enter(const struct whole_row *row)
{
	char name[128];
	size_t len = first_name(row->forms, name);
	const struct op_row *general = ptx_op_row(name, len);
	struct whole_op *o;

	if (!general)
		return;
	o = slot(general->fn);
	if (o->fn)
		return;
	*o = (struct whole_op){.fn = general->fn, .row = row, .general = general};
	for (size_t k = 0; k < sizeof(transfers) / sizeof(transfers[0]); k++)
		if (!strcmp(transfers[k].name, name))
			o->transfer = (u8)transfers[k].transfer;
	if (!strncmp(name, "setp.", 5))
		o->transfer = TR_SETP;
	if (!strncmp(name, "ld", 2) || !strncmp(name, "st", 2)) {
		const char *type = strchr(strchr(name, ':') + 1, ':') + 1;

		o->general = NULL;
		o->transfer = name[0] == 'l' ? TR_LOAD : TR_STORE;
		o->bytes = (u8)(atoi(type + (*type == 'u' || *type == 's')) / 8);
	}
}

/*
 * Instructions whose whole opcode is a row of the table compute a lane's result from the lane's own operands: see
 * lower_form. Names with a colon are the engine's own and may do more (call:malloc).
 */
static void enter_general(void *arg __attribute__((unused)), const char *name, size_t len)
{
	const struct op_row *row = ptx_op_row(name, len);
	struct whole_op *o = row->sig[0] && !memchr(name, ':', len) ? slot(row->fn) : NULL;

	if (o && !o->fn)
		*o = (struct whole_op){.fn = row->fn, .general = row};
}

/* Handlers of the general form that read what is the same for all lanes, or what depends on the lane alone. */
static void enter_special(const char *name, enum transfer t)
{
	const struct op_row *general = ptx_op_row(name, strlen(name));

	if (general)
		*slot(general->fn) = (struct whole_op){.fn = general->fn, .transfer = (u8)t};
}

static void build(void)
{
	static const char *const params[] = {"u8:h", "s8:h", "u16:h", "u8:w",  "s8:w",	"u16:w", "s16:w",
					     "u8:d", "s8:d", "u16:d", "s16:d", "u32:d", "s32:d"};
	char name[32] = "ldp:";

	ops = calloc(BUCKETS, sizeof(*ops));
	if (!ops)
		return;
	for (size_t k = 0; k < sizeof(by_level) / sizeof(by_level[0]); k++)
		for (const struct whole_row *r = by_level[k][ptx_op_level_index()]; r->forms; r++)
			enter(r);
	ptx_op_each(enter_general, NULL);
	enter_special("sreg:w", TR_SREG);
	enter_special("sreg:d", TR_SREG);
	enter_special("localaddr", TR_SAME);
	enter_special("ldp:u32:w", TR_PARAM);
	enter_special("ldp:u64:d", TR_PARAM);
	for (size_t k = 0; k < sizeof(params) / sizeof(params[0]); k++) {
		strcpy(name + 4, params[k]);
		enter_special(name, TR_SAME);
	}
}

const struct whole_op *ptx_whole_op(ptx_handler fn)
{
	const struct whole_op *o;

	pthread_once(&once, build);
	o = ops && fn ? slot(fn) : NULL;
	return o && o->fn ? o : NULL;
}
