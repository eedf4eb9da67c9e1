/* SPDX-License-Identifier: MIT */
/* What the parts of the whole-warp form's builder share: facts about registers, and the choice for an instruction. */
#ifndef SOFTGPU_PTX_WHOLE_BUILD_H
#define SOFTGPU_PTX_WHOLE_BUILD_H

#include "softgpu/ptx/mem.h"
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

/* Handlers that the fusing looks for, and those that it puts in their place. */
struct known {
	const whole_fn *special, *fused;
	const struct whole_pair *branches;
	whole_fn load_one, load_run; /* of 32 bits in shared memory */
	whole_fn fma_mixed, mad, mul_wide_s, mul_wide_u, add64;
	whole_fn access[4]; /* of all lanes, in global memory */
};

/* Kernels beyond this run in the general form only: the build must stay short. */
#define MAX_CELLS (4u << 20)
#define MAX_WORK  (64u << 20) /* instructions looked at */

/* The sets of registers at a place, one behind the other, and what of a register has a reader that comes later. */
enum {
	SET_LIVE, /* anything */
	SET_WIDE, /* all 32 elements */
	SET_OWN,  /* the register itself, if only lane 0: not where its hoisted value is */
	SETS
};

struct emit {
	struct build b;
	struct bump mem; /* everything but the result */
	struct choice *choice;
	u8 *spread;	    /* by instruction: r[] whose value is spread behind it */
	u8 *dies;	    /* by instruction: r[] that it reads last */
	u64 **live, **wide; /* by instruction, before it; NULL where nothing leaves */
	u32 ncode, nregs, cregs;
	u32 *const_at[2];   /* by place in the pool: the copy in the frame, of lane 0 and of all lanes, 0: none yet */
	u32 *hoisted_at[2]; /* by instruction: the same for a hoisted value */
	u32 nhoisted;
	struct whole *out;
	struct known known;
	u64 work;
	bool failed;
};

/* A register's number among all of the frame, and its class. */
u32 wb_slot(const struct build *b, s32 off, u32 *cls);
struct choice wb_choose(const struct build *b, u32 at, const struct fact *facts);
void wb_apply(const struct build *b, u32 at, const struct choice *c, struct fact *facts);
bool wb_meet(struct fact *to, const struct fact *from, u32 n);

/* whole_emit.c */
/* Memory until the end of the build; NULL: e->failed. */
void *wb_take(struct emit *e, size_t bytes);
/* Once more over the whole kernel; fails when that has been too often. */
bool wb_again(struct emit *e);

/* whole_place.c */
/* Leads the operands of @w, which are constants or hoisted, to their places. */
void wb_place_operands(struct emit *e, struct wins *w, u32 at, const struct fact *facts);
/* Where the hoisted value of instruction @by is, for readers of lane 0 or all lanes. */
s32 wb_hoisted_at(struct emit *e, u32 by, bool wide);
/* The code that computes all hoisted values, each behind those that it needs; wb_hoisted_end when no more are asked for. */
void wb_hoisted(struct emit *e);
void wb_hoisted_end(struct emit *e);

/* whole_fuse.c */
void wb_known(struct known *k);
/* Fuses the last instructions of the code, if they are of a known kind: those from @block_at on, of which @at gave the last. */
void wb_fuse(struct emit *e, u32 block_at, u32 at);

#endif
