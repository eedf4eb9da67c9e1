/* SPDX-License-Identifier: MIT */
/* The parsed module: symbols resolved, instructions as opcode text, modifiers and operands. */
#ifndef SOFTGPU_PTX_AST_H
#define SOFTGPU_PTX_AST_H

#include <setjmp.h>

#include "softgpu/ptx/lex.h"
#include "softgpu/ptx/mem.h"
#include "softgpu/ptx/ptx.h"

enum sym_kind { SYM_REG, SYM_VAR, SYM_FUNC, SYM_LABEL, SYM_TARGETS, SYM_PROTO };

struct func_ast;

/* One relocation of a variable's initialiser: (address of @sym + add) & mask, shifted down to the mask's low bit. */
struct init_reloc {
	struct init_reloc *next;
	struct sym *sym;
	u64 add, mask;
	u32 offset, size;
	u32 line;
};

struct sym {
	struct sym *chain; /* hash bucket */
	struct sym *next;  /* declaration order within its scope */
	const char *name;
	u32 len, hash, scope, line;
	u8 kind, space, type;
	u8 is_extern, is_const, is_weak;
	/* SYM_REG: the first register's number and, for %r<n>, how many (0: a single name). */
	u32 reg, nregs;
	u8 lanes; /* of a vector register, else 1 */
	/* SYM_VAR */
	u64 size;
	u32 align;
	u64 addr; /* .global/.const: address; .shared, .local, .param: offset */
	u8 *init;
	struct init_reloc *relocs;
	bool used_in_func, placed, unsized, managed;
	bool in_reg; /* a parameter declared .reg: lives in register @reg */
	/* SYM_FUNC, SYM_PROTO, and SYM_TARGETS of calls */
	struct func_ast *func;
	/* SYM_LABEL */
	struct sym *fwd; /* the same label, found in an outer scope */
	bool defined;
	u32 ins;
	/* SYM_TARGETS */
	struct sym **targets;
	u32 ntargets;
};

enum opnd_kind { O_REG, O_INT, O_FLOAT, O_SYM, O_SREG, O_VEC, O_MEM, O_SINK, O_LIST };

struct opnd {
	u8 kind;
	bool inverted; /* !%p */
	bool negated;  /* -%r, of the video instructions */
	u8 fbits;
	u8 sreg;       /* O_SREG */
	bool has_base; /* O_MEM: reg holds the base register */
	char sel[6];   /* O_REG: what follows the dot in "%r1.b0", for the video instructions */
	s32 reg;       /* O_REG, O_MEM base */
	u32 nlist;
	u64 val;	     /* O_INT, O_FLOAT bits, O_SYM/O_MEM offset */
	struct sym *sym;     /* O_SYM, O_MEM base */
	struct opnd *list;   /* O_VEC, O_LIST */
	struct opnd *second; /* what follows '|' */
};

#define MAX_OPNDS 8

struct pins {
	const char *op; /* whole opcode text */
	u32 len, line;
	s32 guard; /* register, −1 none */
	bool guard_inverted;
	u32 nops;
	struct opnd *ops;
};

struct func_ast {
	struct func_ast *next;
	struct sym *sym;
	const char *name; /* NUL-terminated, in the scratch memory */
	bool is_entry, has_body, is_extern;
	u32 line;
	struct sym *params, *rets; /* by next; addr = offset in the parameter block */
	u32 nparams, nrets, param_bytes, ret_bytes;
	struct sym *locals; /* .local and .shared variables, and .param variables of call sequences */
	u8 *regs;	    /* enum type of each register */
	u32 nregs, cregs;
	struct pins *ins;
	u32 nins, cins;
	u32 max_threads, max_regs, line_end; /* max_regs 0: as many as there are */
	u32 cluster[3], max_cluster;
	bool explicit_cluster, blocks_are_clusters;
	bool calls; /* contains a call */
	/* Set by lowering. */
	struct ptx_func *out;
};

#define SYM_BUCKETS 4096

struct load {
	struct ptx_module *m;
	struct bump mem;
	struct lexer lx;
	struct token t;
	jmp_buf *fail;
	enum ptx_status status;
	const char *where; /* the function being parsed or lowered */
	/* A check goes on behind a function that does not load and tells each one's first cause. */
	void (*refuse)(void *arg, const char *cause);
	void *refuse_arg;
	char *log;
	size_t log_size;
	struct sym *bucket[SYM_BUCKETS];
	struct sym **stack; /* open symbols in order, for leaving a scope */
	u32 nstack, cstack, scope;
	struct func_ast *funcs, **funcs_tail;
	struct sym *vars, **vars_tail; /* module scope, text order */
	struct func_ast *cur;
	u32 depth; /* nesting of operands or initialisers: recursion has an end */
	u32 version, target;
	bool uses_heap, uses_envreg;
};

/* Ends the load with "FUNCTION: line N: cause". */
__attribute__((noreturn, format(printf, 4, 5))) void load_fail(struct load *ld, enum ptx_status st, u32 line, const char *fmt,
							       ...);
void *load_alloc(struct load *ld, size_t bytes);
char *load_strndup(struct load *ld, const char *s, size_t len);
/* Counts one level of nesting; refuses text that nests without sense. */
void nest(struct load *ld);
/* Doubles a scratch array when @n has reached *@cap. */
void *load_grow(struct load *ld, void *p, u32 n, u32 *cap, size_t elem);

/* symbols.c */
struct sym *sym_find(struct load *ld, const char *name, u32 len);
struct sym *sym_find_reg(struct load *ld, const char *name, u32 len, u32 *reg);
struct sym *sym_add_regs(struct load *ld, const char *name, u32 len, enum type type, u64 n, u32 lanes);
struct sym *sym_add(struct load *ld, enum sym_kind kind, const char *name, u32 len);
struct sym *sym_label(struct load *ld, const char *name, u32 len, u32 line);
void scope_enter(struct load *ld);
void scope_leave(struct load *ld);

/* parse.c and parse_func.c: the token helpers and the two levels of the grammar */
void next(struct load *ld);
bool is_punct(struct load *ld, char c);
bool accept(struct load *ld, char c);
void expect(struct load *ld, char c);
bool is_word(struct load *ld, const char *w);
bool accept_word(struct load *ld, const char *w);
u64 parse_u64(struct load *ld);
struct sym *parse_var(struct load *ld, enum space space, bool param_list);
void parse_module(struct load *ld);
/* After parse_module(): cudaCGSynchronize and what goes with it, where the text names them. */
void coop_functions(struct load *ld);
void parse_func(struct load *ld, bool entry, bool is_extern, bool weak);
void parse_body(struct load *ld);
void parse_proto(struct load *ld, const char *name, u32 len);

/* sreg.c: special registers by name; −1 when @name is none */
int sreg_by_name(const char *name, u32 len);

#endif
