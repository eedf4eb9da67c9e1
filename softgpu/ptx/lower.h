/* SPDX-License-Identifier: MIT */
/* Lowering: from parsed instructions to struct ins over virtual registers, which slots.c then places. */
#ifndef SOFTGPU_PTX_LOWER_H
#define SOFTGPU_PTX_LOWER_H

#include "softgpu/ptx/ast.h"
#include "softgpu/ptx/exec.h"
#include "softgpu/ptx/sreg.h"

#define CONST_BUCKETS 256

struct pool_const {
	struct pool_const *chain;
	u64 val;
	u8 cls;
	s32 off;
};

struct block_info {
	u32 first, end; /* instructions */
	u32 succ[2], nsucc;
	u32 table, ntable; /* further successors, from a K_BRX */
	u32 order;
};

struct lower {
	struct load *ld;
	struct func_ast *ast;
	struct ptx_func *f;
	const struct pins *p; /* being lowered */
	struct ins *code;
	struct ins_info *info;
	u32 n, cap, icap;
	s32 *ops;
	u32 nops, cops;
	u8 *cls;   /* register class of each virtual register; RC_COUNT: 128 bits, which are two others */
	s32 *pair; /* of a 128-bit register: its low half, and behind that its high half */
	u32 nregs, cregs;
	u32 *label_at; /* ins index of each parsed instruction, +1 for the end */
	struct call_site *calls;
	u32 ncalls, ccalls;
	struct pool_const *consts[CONST_BUCKETS];
	struct pool_const **const_list;
	u32 nconsts, cconsts, pool_bytes;
	struct block_info *blocks;
	u32 nblocks;
	u32 *block_of; /* by instruction */
	/* the current opcode, split at its dots */
	struct {
		const char *s;
		u32 len;
	} mod[16];
	u32 nmod, used_mods; /* used_mods: bit per mod that somebody understood */
	bool has_cc;
	s32 cc;	  /* the carry chains' condition code */
	u32 area; /* parameter bytes a lane */
};

__attribute__((noreturn)) void lower_unsupported(struct lower *lo, const char *why);

/* Modifiers: true (and marked as understood) when the opcode has it. */
bool mod(struct lower *lo, const char *name);
/* Understands and ignores: cache and eviction hints, scopes, .aligned … */
void mods_ignore(struct lower *lo, const char *const *names);
/* The @n-th type among the modifiers, TY_NONE when there are fewer. */
enum type mod_type(struct lower *lo, u32 n);
/* Refuses when a modifier was not understood. */
void mods_done(struct lower *lo);
u64 mod_flags(struct lower *lo);

/* Emission. */
struct ins *emit(struct lower *lo, ptx_handler fn, enum ins_kind kind);
/* Emits with the handler of that name; refuses the instruction when there is none. */
struct ins *emit_op(struct lower *lo, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
s32 temp(struct lower *lo, enum rclass cls);
/* The low half of the 128-bit register @o; the high half is the next register. */
s32 half128(struct lower *lo, const struct opnd *o, bool result);
void set_def(struct lower *lo, struct ins *i, u32 k, s32 reg);
void set_use(struct lower *lo, struct ins *i, u32 k, s32 reg);
enum rclass reg_class(struct lower *lo, s32 reg);
s32 const_reg(struct lower *lo, enum rclass cls, u64 val);
/* Operand as something to read: a register, a pool constant, or a temporary that it first fills. */
s32 src(struct lower *lo, const struct opnd *o, char sig);
s32 dst(struct lower *lo, const struct opnd *o, char sig);
s32 pred_src(struct lower *lo, const struct opnd *o);
/* Any register or constant of whatever class; *cls tells which. Immediates take @want. */
s32 src_any(struct lower *lo, const struct opnd *o, enum rclass want, enum rclass *cls);
s32 dst_any(struct lower *lo, const struct opnd *o, enum rclass want, enum rclass *cls);
/* Moves @reg (of its own class) to 64 bits by zero extension. */
s32 widen64(struct lower *lo, s32 reg);
void emit_mov(struct lower *lo, s32 to, s32 from);
u32 list_begin(struct lower *lo);
void list_add(struct lower *lo, s32 reg);
void list_end(struct lower *lo, struct ins *i, u32 first, u32 ndef);
void need_ops(struct lower *lo, u32 min, u32 max);
u64 sym_address(struct lower *lo, const struct sym *s);
char class_char(enum rclass c);
enum rclass type_class(enum type t);

struct address {
	enum space space;
	s32 reg;   /* base register or constant */
	bool wide; /* 64 bits */
	u64 off;
	bool fixed; /* no base: a parameter variable's offset or a known address in off */
	struct sym *sym;
};
struct address lower_address(struct lower *lo, const struct opnd *o, enum space space);
enum space mod_space(struct lower *lo);

typedef void (*lower_fn)(struct lower *lo);
lower_fn lower_special(const char *op, u32 len);
void lower_form(struct lower *lo);
void lower_function(struct load *ld, struct func_ast *f);

/* The families. */
void lower_mov(struct lower *lo);
void lower_cvta(struct lower *lo);
void lower_isspacep(struct lower *lo);
void lower_mapa(struct lower *lo);
void lower_getctarank(struct lower *lo);
void lower_cvt(struct lower *lo);
void lower_setp(struct lower *lo);
void lower_set(struct lower *lo);
void lower_lop3(struct lower *lo);
void lower_ld(struct lower *lo);
void lower_st(struct lower *lo);
void lower_atom(struct lower *lo);
void lower_red(struct lower *lo);
void lower_fence(struct lower *lo);
void lower_prefetch(struct lower *lo);
void lower_createpolicy(struct lower *lo);
void lower_alloca(struct lower *lo);
void lower_stacksave(struct lower *lo);
/* Forms that are made of others; false when it is none of them. */
bool lower_rare(struct lower *lo);
void lower_video(struct lower *lo);
void lower_bra(struct lower *lo);
void lower_brx(struct lower *lo);
void lower_call(struct lower *lo);
void lower_ret(struct lower *lo);
void lower_return(struct lower *lo);
void lower_area_load(struct lower *lo, s32 reg, u32 offset);
void lower_area_store(struct lower *lo, s32 reg, u32 bytes, u32 offset);
void lower_exit(struct lower *lo);
void lower_trap(struct lower *lo);
void lower_nanosleep(struct lower *lo);
void lower_bar(struct lower *lo);
void lower_shfl(struct lower *lo);
void lower_vote(struct lower *lo);
void lower_match(struct lower *lo);
void lower_redux(struct lower *lo);
void lower_activemask(struct lower *lo);
void lower_elect(struct lower *lo);
void lower_cp_async(struct lower *lo);
void lower_cp_bulk(struct lower *lo, bool reduce);
void lower_tensormap(struct lower *lo);
void lower_mbarrier(struct lower *lo);
void lower_st_async(struct lower *lo);
void lower_red_async(struct lower *lo);
void lower_nop(struct lower *lo);
void lower_mma(struct lower *lo);
void lower_wmma(struct lower *lo);
void lower_ldmatrix(struct lower *lo);
void lower_movmatrix(struct lower *lo);
void lower_tex(struct lower *lo);
void lower_txq(struct lower *lo);
void lower_surface(struct lower *lo);

/* cfg.c, slots.c */
void lower_cfg(struct lower *lo);
void lower_slots(struct lower *lo);

#endif
