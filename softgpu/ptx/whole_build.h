/* SPDX-License-Identifier: MIT */
/* What the parts of the whole-warp form's builder share: facts about registers, and the choice for an instruction. */
#ifndef SOFTGPU_PTX_WHOLE_BUILD_H
#define SOFTGPU_PTX_WHOLE_BUILD_H

#include "softgpu/ptx/whole.h"

/* ops.c: as ptx_op_find, but not what lowering asks for, which tests count */
const struct op_row *ptx_op_row(const char *name, size_t len);

enum fact_kind { UNSET, STEP, MANY };

struct fact {
	u8 kind;
	u8 align; /* lane 0 is a multiple of 2^align */
	s32 step;
	u32 hoisted; /* 1 + the instruction that computed it, which is hoisted; 0: it is in its register */
};

struct wblock {
	u32 first, end;
	bool entry; /* may be entered from the general form */
	struct fact *in;
	u32 at;	   /* its first whole-warp instruction */
	u64 *live; /* at its start: the sets of registers of whole_emit.c */
};

struct build {
	const struct ptx_func *f;
	u32 shape;
	u32 first[RC_COUNT], nslots, words;
	const struct whole_op **ops; /* by instruction */
	struct wblock *blocks;
	u32 nblocks;
	u32 *block_of;
};

enum form {
	FORM_NONE,
	FORM_GENERAL,
	FORM_LANE0,
	FORM_SPECIAL,
	FORM_GUARDED,
	FORM_FAST,   /* fn, which always succeeds */
	FORM_LEAVES, /* fn, which may leave for the general form */
	FORM_BRANCH,
	FORM_CONTROL,
	FORM_SLOW,
};

struct choice {
	u8 form;
	u8 wide;    /* registers in r[] that it reads in all lanes */
	u8 narrow;  /* r[], constants too, that fn reads in lane 0 only */
	u8 hoisted; /* r[] that fn reads from where hoisted values are */
	u8 no_wrap; /* a WS_NO_WRAP check before it, of r[checked] and step */
	u8 checked;
	u8 special; /* FORM_SPECIAL: the handler, and its imm */
	u32 imm;
	whole_fn fn;
	s32 step, step2;
	struct fact result; /* of r[] defined; lists are MANY */
};

/* A register's number among all of the frame, and its class. */
u32 wb_slot(const struct build *b, s32 off, u32 *cls);
struct choice wb_choose(const struct build *b, u32 at, const struct fact *facts);
void wb_apply(const struct build *b, u32 at, const struct choice *c, struct fact *facts);
bool wb_meet(struct fact *to, const struct fact *from, u32 n);

#endif
