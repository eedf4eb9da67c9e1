/* SPDX-License-Identifier: MIT */
/* Code for whole warps: a second form of a kernel, valid while all 32 lanes run together. See whole.c. */
#ifndef SOFTGPU_PTX_WHOLE_H
#define SOFTGPU_PTX_WHOLE_H

#include "softgpu/ptx/exec.h"

struct wins;

/*
 * Runs one instruction and what follows it: handlers call each other at their ends. NULL: whole-warp code was left,
 * w->whole_exit says why. Where calls at the end are real calls (sanitizers), it returns the next instruction instead.
 */
typedef const struct wins *(*whole_fn)(struct warp *w, const struct wins *i, u8 *regs);

enum whole_exit {
	WHOLE_SLOW,    /* the instruction must run in the general form, after fixing the registers */
	WHOLE_CONTROL, /* the same, but the registers stay and whole-warp code goes on behind it */
	WHOLE_EDGE,    /* a back-edge was taken: time to look around; the split's pc says where to go on */
	WHOLE_FAULT,
};

/* Operands are offsets into the frame, also constants: whole-warp code brings copies of those it uses. */
struct wins {
	whole_fn fn;
	s32 r[NREGS];
	u64 imm;
	const struct ins *i;
	s32 step, step2; /* of operands that are kept as a base and a step */
};
_Static_assert(sizeof(struct wins) == 64, "an instruction fills a cache line");

/* A register of which just lane 0 is up to date, at @from: lane l has that value plus l steps. */
struct whole_reg {
	s32 off, from; /* from is another place than off for a value that is hoisted */
	u8 cls;
	s32 step;
};

/* A constant's place in the frame. */
struct whole_const {
	s32 from; /* in the function's pool */
	u32 to, bytes;
};

struct whole_list {
	u32 first, count;
};

struct whole {
	struct wins *code;
	u32 *at;		  /* by instruction of the general form */
	struct whole_list *slow;  /* by whole-warp instruction: registers to fix when it is left there */
	struct whole_list *entry; /* by instruction: the registers that must be as described for entering there */
	u8 *may_enter;		  /* by instruction */
	struct whole_reg *regs;
	struct whole_const *consts;
	u32 nconsts, frame_size; /* of a frame with the constants and the hoisted values */
	struct wins *hoisted;	 /* computes what is the same in all warps of a launch; ends with WS_END */
	u64 id;			 /* tells which constants a frame holds; never given out again */
};

/* The handlers of one opcode; NULL where there is none of the kind. */
struct whole_row {
	const char *forms; /* as in struct op_row: the first alternative is looked up */
	whole_fn scalar;   /* all sources and the result in lane 0; loads and stores: one address for all lanes */
	whole_fn vector;   /* all lanes of all operands; loads and stores: consecutive addresses */
	whole_fn step;	   /* setp: sources in lane 0, with a step each */
	whole_fn mixed;	   /* source 1 in lane 0, the others in all lanes */
};

/* The handlers that belong to no opcode. */
enum whole_special {
	WS_GENERAL, /* the general handler, all lanes */
	WS_LANE0,   /* the general handler, lane 0 only */
	WS_GUARDED, /* the general handler, the lanes whose guard holds */
	WS_SPREAD16,
	WS_SPREAD32, /* lane 0 of r[1] to all lanes of r[0], with steps */
	WS_SPREAD64,
	WS_NO_WRAP_S, /* leaves when base and steps of r[1] wrap as a signed or unsigned 32-bit number */
	WS_NO_WRAP_U,
	WS_TID, /* imm: which of x, y, z */
	WS_CTAID,
	WS_NTID,
	WS_NCTAID,
	WS_PARAM32, /* imm: offset in the launch's parameters */
	WS_PARAM64,
	WS_JUMP, /* r[6]: relative target */
	WS_JUMP_BACK,
	WS_BRANCH,
	WS_BRANCH_BACK,
	WS_CONTROL,
	WS_SLOW,
	WS_END,
	WS_COUNT
};
extern const whole_fn ptx_whole_special_v2[], ptx_whole_special_v3[], ptx_whole_special_v4[];

/* Several in one: see whole_fuse.c. */
enum whole_fused {
	WF_FMA_SHARED,
	WF_THREAD_NUMBER,
	WF_WIDEN_MUL_S,
	WF_WIDEN_MUL_U,
	WF_SUM_LOAD32, /* these four in the order of known.access */
	WF_SUM_LOAD64,
	WF_SUM_STORE32,
	WF_SUM_STORE64,
};
extern const whole_fn ptx_whole_fused_v2[], ptx_whole_fused_v3[], ptx_whole_fused_v4[];

/* A comparison, and it with the branch on its result; the last has no first. */
struct whole_pair {
	whole_fn first, fused;
};
extern const struct whole_pair ptx_whole_branches_v2[], ptx_whole_branches_v3[], ptx_whole_branches_v4[];

/* whole_emit.c: the whole-warp form of a kernel for a shape of blocks, built when first asked for; NULL: it has none. */
const struct whole *ptx_whole_get(struct ptx_func *f, u32 shape);
void ptx_whole_free(struct ptx_func *f);

/* whole_run.c */
/* A warp that splits again and again stays in the general form; a loop that goes on without splitting earns it new tries. */
#define WHOLE_TRIES 8
/* Runs from the only split's pc until whole-warp code is left. Registers are general again after WHOLE_SLOW. */
enum whole_exit ptx_whole_run(struct warp *w);
/* Makes a frame of the kernel ready for whole-warp code: constants, and what is hoisted out of the warps of this launch. */
void ptx_whole_fill(struct warp *w, struct frame *fr);
/* True when the only split may go on in whole-warp code from where it is. */
bool ptx_whole_enter(struct warp *w);

/* whole_ops.c: what is known about a handler of the general form */
struct whole_op {
	ptx_handler fn;
	const struct whole_row *row;  /* NULL: only the general handler */
	const struct op_row *general; /* NULL: not an operation of the lanes' own operands alone */
	u8 transfer;
	u8 bytes; /* loads and stores: of an element */
};
enum transfer {
	TR_PLAIN,
	TR_MOV,
	TR_ADD,
	TR_SUB,
	TR_MUL,
	TR_MAD,
	TR_SHL,
	TR_SHR,
	TR_AND,
	TR_TRUNC,
	TR_WIDE_S, /* sign extension, perhaps with a product and a sum */
	TR_WIDE_U,
	TR_SETP,
	TR_LOAD,
	TR_STORE,
	TR_SREG,
	TR_PARAM,
	TR_SAME, /* reads what else is the same for all lanes */
};
const struct whole_op *ptx_whole_op(ptx_handler fn);

#endif
