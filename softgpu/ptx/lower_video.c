/* SPDX-License-Identifier: MIT */
/* Lowering of the video instructions: types, part selectors, saturation, secondary operations. */
#include <string.h>

#include "softgpu/ptx/lower.h"
#include "softgpu/ptx/video.h"

static enum video_op video_op(struct lower *lo, u32 *lanes)
{
	static const char *const names[] = {"vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vmad", "vset", "vavrg"};
	u32 len = lo->mod[0].len;
	char last = lo->mod[0].s[len - 1];

	*lanes = last == '2' ? 2 : last == '4' ? 4 : 1;
	len -= *lanes > 1;
	for (u32 k = 0; k < sizeof(names) / sizeof(names[0]); k++)
		if (strlen(names[k]) == len && !memcmp(names[k], lo->mod[0].s, len))
			return (enum video_op)k;
	lower_unsupported(lo, NULL);
}

/* ".b2", ".h1": 0 when there is none. */
static u8 part_of(struct lower *lo, const char *sel)
{
	if (!sel[0])
		return 0;
	if (!sel[2] && sel[0] == 'b' && sel[1] >= '0' && sel[1] <= '3')
		return (u8)(V_BYTE + sel[1] - '0');
	if (!sel[2] && sel[0] == 'h' && (sel[1] == '0' || sel[1] == '1'))
		return (u8)(V_HALF + sel[1] - '0');
	lower_unsupported(lo, "no such part of a register");
}

/* ".h32", ".b7654": the highest lane's element first; @none when there is no selector. */
static u16 elements_of(struct lower *lo, const char *sel, u32 lanes, u16 none)
{
	u16 r = 0;

	if (!sel[0])
		return none;
	if (strlen(sel) != lanes + 1 || sel[0] != (lanes == 2 ? 'h' : 'b'))
		lower_unsupported(lo, "no such selection of elements");
	for (u32 k = 0; k < lanes; k++) {
		u32 e = (u32)(sel[lanes - k] - '0');

		if (e >= 2 * lanes)
			lower_unsupported(lo, "no such selection of elements");
		r |= (u16)(e << (4 * k));
	}
	return r;
}

static u8 mask_of(struct lower *lo, const char *sel, u32 lanes)
{
	u8 r = 0;

	if (!sel[0])
		return (u8)((1u << lanes) - 1);
	if (sel[0] != (lanes == 2 ? 'h' : 'b') || !sel[1])
		lower_unsupported(lo, "no such mask");
	for (const char *s = sel + 1; *s; s++) {
		if (*s < '0' || *s >= (char)('0' + lanes) || r >> (*s - '0') & 1)
			r = 0x80;
		else
			r |= (u8)(1u << (*s - '0'));
	}
	return r;
}

static bool is_signed(struct lower *lo, u32 n)
{
	enum type t = mod_type(lo, n);

	if (t != TY_U32 && t != TY_S32)
		lower_unsupported(lo, NULL);
	return t == TY_S32;
}

static s32 source(struct lower *lo, const struct opnd *o)
{
	struct opnd bare = *o;

	bare.sel[0] = 0;
	bare.negated = false;
	return src(lo, &bare, 'w');
}

static void compare(struct lower *lo, struct video *v)
{
	static const char *const names[] = {"eq", "ne", "lt", "le", "gt", "ge"};

	for (u8 k = 0; k < 6; k++)
		if (mod(lo, names[k])) {
			v->cmp = k;
			return;
		}
	lower_unsupported(lo, NULL);
}

void lower_video(struct lower *lo)
{
	const struct opnd *o = lo->p->ops;
	struct opnd d;
	struct video v = {0};
	bool more, negated = false;
	u32 lanes, types;
	struct ins *i;
	s32 a, b, c;

	need_ops(lo, 3, 4);
	d = o[0];
	v.op = video_op(lo, &lanes) & 15;
	v.lanes = lanes & 7;
	types = v.op == V_SET ? 2 : 3;
	v.dsigned = types == 3 && is_signed(lo, 0);
	v.asigned = is_signed(lo, types - 2);
	v.bsigned = is_signed(lo, types - 1);
	v.sat = v.op != V_SET && mod(lo, "sat");
	if (v.op == V_SET)
		compare(lo, &v);
	if (v.op == V_SHL || v.op == V_SHR) {
		v.wrap = mod(lo, "wrap");
		if (v.wrap == mod(lo, "clamp") || v.bsigned)
			lower_unsupported(lo, NULL);
	}
	if (v.op == V_MAD) {
		v.scale = mod(lo, "shr7") ? 1 : mod(lo, "shr15") ? 2 : 0;
		v.plus_one = mod(lo, "po");
		v.minus_ab = o[1].negated != o[2].negated;
		v.minus_c = lo->p->nops > 3 && o[3].negated;
	} else if (mod(lo, "add")) {
		v.second = V_PLUS;
	} else if (lanes == 1 && mod(lo, "min")) {
		v.second = V_LEAST;
	} else if (lanes == 1 && mod(lo, "max")) {
		v.second = V_MOST;
	}
	mods_done(lo);
	more = lanes > 1 || v.op == V_MAD || v.second || o[0].sel[0];
	need_ops(lo, more ? 4 : 3, more ? 4 : 3);
	for (u32 k = 0; k < lo->p->nops; k++)
		negated |= o[k].negated;
	if (lanes == 1) {
		v.asel = part_of(lo, o[1].sel);
		v.bsel = part_of(lo, o[2].sel);
		v.dsel = part_of(lo, o[0].sel);
		v.merge = v.dsel != 0;
	} else {
		v.asel = elements_of(lo, o[1].sel, lanes, lanes == 2 ? 0x10 : 0x3210);
		v.bsel = elements_of(lo, o[2].sel, lanes, lanes == 2 ? 0x32 : 0x7654);
		v.dsel = mask_of(lo, o[0].sel, lanes);
	}
	if ((negated && (v.op != V_MAD || o[0].negated || v.plus_one)) || (more && o[3].sel[0]) || (v.merge && v.second) ||
	    (v.op == V_MAD && (v.merge || (v.minus_ab && v.minus_c))) || v.dsel & 0x80)
		lower_unsupported(lo, NULL);
	a = source(lo, &o[1]);
	b = source(lo, &o[2]);
	c = more ? source(lo, &o[3]) : const_reg(lo, RC_32, 0);
	d.sel[0] = 0;
	i = emit_op(lo, "video:");
	memcpy(&i->imm, &v, sizeof(v));
	set_use(lo, i, 1, a);
	set_use(lo, i, 2, b);
	set_use(lo, i, 3, c);
	set_def(lo, i, 0, dst(lo, &d, 'w'));
}
