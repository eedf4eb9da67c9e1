/* SPDX-License-Identifier: MIT */
/* The lowered program and the state of a running warp: plain data, complete in memory at each block boundary. */
#ifndef SOFTGPU_PTX_EXEC_H
#define SOFTGPU_PTX_EXEC_H

#include <pthread.h>
#include <stdatomic.h>

#include "softgpu/ptx/ptx.h"
#include "softgpu/ptx/types.h"

struct ins;
struct warp;
struct whole;
struct wins;

/* Runs one instruction for the lanes in @em, which is never 0. */
typedef void (*ptx_handler)(struct warp *w, const struct ins *i, u32 em);

enum ins_kind {
	K_PLAIN,
	K_GUARD, /* fn for all lanes, or those whose guard holds */
	K_BRA,	 /* to target; with a guard when guard ≠ NO_GUARD */
	K_BRX,	 /* indexed: r[0] the index, ops[target …] the table of imm entries */
	K_NEXT,	 /* the end of a block that falls through: a place to merge */
	K_CALL,	 /* imm: index into the function's calls */
	K_RET,
	K_EXIT,
	K_SYNC,	    /* fn once the lanes named by r[7] (member mask) are all here */
	K_WARPSYNC, /* the same for bar.warp.sync, where different places meet */
	K_BAR,	    /* barrier: see struct bar_op in imm */
	K_YIELD,    /* let other warps run */
	K_CLUSTER,  /* barrier.cluster: imm is 0 to arrive, 1 to wait */
};

#define NO_GUARD INT32_MIN
#define NREGS	 8
/* After so many back-edges a warp looks around: others may need a turn, the launch may have been cancelled. */
#define EDGES_ROTATE 64u

/*
 * Operands are byte offsets: ≥ 0 into the frame's registers, < 0 into the function's pool of splatted
 * constants. While lowering they hold register numbers.
 */
struct ins {
	ptx_handler fn;
	s32 r[NREGS]; /* r[0] is the result of most */
	u64 imm;
	s32 guard;
	u8 kind, guard_inverted, size, sub;
	u32 target; /* instruction index in the function */
	u32 line;
};
_Static_assert(sizeof(struct ins) == 64, "an instruction fills a cache line");

/* What an instruction reads and writes: which r[], and its operand list in ops. */
struct ins_info {
	u8 def, use;		/* bit k: r[k] */
	u32 list;		/* first entry in ops */
	u16 list_def, list_use; /* written ones first */
};

/* imm of K_BAR */
enum bar_mode { BAR_SYNC, BAR_ARRIVE, BAR_RED_POPC, BAR_RED_AND, BAR_RED_OR };

/* sub of a K_SYNC that lanes may come to at different places (see meet.c): which registers it has */
enum {
	MEET = 0x80,
	MEET_SOURCE = 0x40, /* r[1], of MEET_CLASS */
	MEET_SHFL = 0x20,   /* r[2] and r[3], 32 bits */
	MEET_PRED = 0x10,   /* a predicate result in r[4] */
};
#define MEET_SHAPE(result, source) ((result) << 2 | (source))
#define MEET_RESULT(sub)	   ((enum rclass)((sub) >> 2 & 3))
#define MEET_CLASS(sub)		   ((enum rclass)((sub)&3))

struct copy_arg {
	u32 from, to, bytes; /* offsets in the lane's parameter area */
};

struct call_site {
	struct ptx_func *callee; /* NULL: indirect, r[0] holds the address */
	u32 nargs, nrets;
	struct copy_arg *args, *rets;
	u32 param_bytes, ret_bytes; /* what the call passes, compared with the callee's */
};

/* The shapes of blocks that code for whole warps is made for: is %tid.x consecutive in a warp, and %tid.y, %tid.z one value? */
enum { SHAPE_ROWS, SHAPE_ANY, WHOLE_SHAPES };

struct ptx_func {
	struct ptx_func_info info;
	struct ptx_module *m;
	char *name;
	struct ptx_param *params;
	bool is_entry;
	u32 index; /* in m->funcs; its address is FUNC window | (index + 1) * 16 */
	struct ins *code;
	u32 ncode;
	u32 *order; /* scheduling order of each instruction */
	s32 *ops;   /* operand lists of instructions with more than NREGS operands, branch tables */
	u32 nops;
	u8 *pool_mem;
	const u8 *pool;				   /* end of the constant pool: offsets are negative */
	u32 frame_regs;				   /* bytes of registers */
	u32 reg_base[RC_COUNT + 1];		   /* where the registers of each class begin, and their end */
	struct ins_info *ins_info;		   /* by instruction; its registers are the frame's offsets in r[] and ops */
	struct whole *_Atomic whole[WHOLE_SHAPES]; /* built at the first launch with blocks of such a shape: see whole.h */
	u32 area;				   /* bytes a lane of parameter area: own params, returns, call sequences */
	u32 frame_size;				   /* registers + 32 areas */
	u32 frame_cls;				   /* size class of its frames */
	u32 param_bytes, ret_at, ret_bytes;
	u32 local_own;	 /* bytes a thread, this function alone */
	u32 local_total; /* with callees */
	struct call_site *calls;
	u32 ncalls;
	bool indirect, recursive, allocas;
	u32 shared_static;
};

struct module_var {
	char *name;
	u64 addr, bytes;
	bool managed;
	bool visible;
};

struct ptx_module {
	struct ptx_mem mem;
	struct ptx_func **funcs; /* kernels first in text order, then device functions */
	u32 nfuncs, nkernels;
	struct module_var *vars;
	u32 nvars;
	u64 data;	       /* one allocation for all .global and .const variables */
	u64 const_end;	       /* the .const ones lie from data up to here */
	struct ptx_heap *heap; /* device malloc; NULL when the module does not use it */
	u64 coop; /* COOP_SLOTS grid barriers of COOP_BYTES for cooperative launches, 0 when %envreg1/2 is not read */
	atomic_uint coop_used; /* bit per slot */
};

#define COOP_SLOTS 32u
#define COOP_BYTES 256u

/* A call's registers and parameters. Lanes leave one by one; the last frees it. */
struct frame {
	struct frame *parent;
	const struct ptx_func *f;
	const struct call_site *site;
	const struct ins *ret;
	u32 lanes, depth;
	u32 local;     /* this frame's .local variables begin here in each lane's stack */
	u32 allocated; /* bytes behind them that alloca gave: the same for all lanes */
	u32 cls;       /* size class in the worker's cache */
	u64 filled;    /* the id of the whole-warp form whose constants are in mem, 0: of none */
	u64 grid_id;   /* of the launch whose hoisted values are in mem, 0: of none */
	_Alignas(64) u8 mem[];
};

enum split_state { ST_READY, ST_BAR, ST_SYNC };

struct split {
	const struct ins *pc;
	struct frame *frame;
	u32 mask;
	u8 state, bar;
};

struct block;

struct warp {
	u8 *regs; /* of the running split's frame */
	const u8 *pool;
	struct frame *frame;
	struct block *blk;
	u8 *shared;
	u32 shared_size;
	u32 live; /* lanes not yet exited */
	u32 index;
	u32 lane_mask_for; /* which mask lane_mask[] holds */
	u32 nsplit, cur;
	u32 edges;	     /* back-edges in this turn */
	u32 cluster_arrived; /* lanes that arrived in the cluster barrier's present phase */
	u32 hold;	     /* control transfers for which the current split keeps its turn */
	bool stop;	     /* a fault: leave at the next control instruction */
	bool progress;
	bool whole;		     /* runs whole-warp code, and its registers are as that leaves them */
	u8 whole_exit;		     /* enum whole_exit */
	u8 whole_tries;		     /* how often it may still come back to whole-warp code */
	const struct wins *whole_at; /* where it left whole-warp code */
	u8 *local;		     /* lane l's stack is local + l * local_stride */
	u32 local_stride;
	u32 device_error[WARP];		  /* the device runtime's last error, of each thread */
	const u32 (*tid)[WARP];		  /* x, y, z of each lane, from the launch */
	_Alignas(64) s32 lane_mask[WARP]; /* −1 or 0 for each lane */
	struct split split[WARP];
};

#define BARRIERS	16u
#define CLUSTER_BARRIER 16u /* what split.bar says of lanes that wait at barrier.cluster */

struct barrier {
	u32 waiting; /* lanes */
	u32 arrived; /* lanes of bar.arrive */
	u32 count;   /* expected; 0: all live threads */
	u32 popc;
	bool all, any;
};

/*
 * Blocks that are resident together on one worker, so one host thread runs them, and reach each other's shared
 * memory. Each block has one; without a cluster in the launch it is alone there. A shared address has the rank
 * plus one in bits 24 and up, 0 for the block's own memory.
 */
#define MAX_CLUSTER   16u
#define CLUSTER_SHIFT 24u

struct cluster {
	u32 size, blocks;  /* of the launch, and not finished yet */
	u32 live, arrived; /* threads: not exited, and of these at barrier.cluster */
	u32 idle;	   /* turns of its blocks in a row that brought nothing */
	u32 stride;	   /* bytes from a rank's shared memory to the next one's */
	u8 *shared;
	struct warp *warps[MAX_CLUSTER]; /* by rank, NULL once the block has finished */
};

struct launch;
struct worker;

struct block {
	struct launch *l;
	struct worker *worker;
	u8 *shared;
	u8 *mem, *local;
	size_t mem_size;
	struct warp *warps;
	u32 nwarps, live_threads, yields;
	u32 started; /* warps that have begun; the others have no splits yet */
	struct cluster *cluster;
	u32 rank; /* in the cluster */
	u32 id[3];
	u32 waiting;   /* lanes at all barriers, and arrivals */
	u32 bars_used; /* bit per barrier that may not be as new */
	struct barrier bar[BARRIERS];
	bool busy;
};

struct child;

struct child_queue {
	struct child *first, *last;
};

struct launch {
	struct child_queue children[2]; /* in order, and those for the end: see children.h */
	u32 depth;			/* 0: the host's launch */
	struct ptx_func *f;
	const struct ptx_launch *p;
	struct ptx_fault *fault;
	const u8 *params;
	u64 nblocks;
	u32 cluster[3], cluster_size;
	bool explicit_cluster;
	u32 width;	      /* workers */
	atomic_int stop;      /* a status, once one block failed */
	pthread_mutex_t lock; /* fault, print, children */
	u32 nthreads, nwarps, shared_bytes;
	u32 local_stride;	   /* bytes of local memory a thread */
	u32 (*tid)[3][WARP];	   /* by warp: every block has the same */
	u64 coop;		   /* grid barrier's address */
	const struct whole *whole; /* NULL: none for this kernel */
	u32 frame_cls;		   /* size class of the kernel's frames */
	u64 grid_id;
	/* Every worker writes these for every block; what is above they only read. */
	_Alignas(64) _Atomic u64 next_block;
	_Atomic u32 next_sm;
};

/* fault.c: records the first fault of a launch; @lane −1 when the whole warp is meant */
void ptx_raise(struct warp *w, const struct ins *i, int lane, enum ptx_status st, u64 addr, const char *fmt, ...)
	__attribute__((format(printf, 6, 7)));

/* addr.c: the slow, complete way from a lane's address to host memory; NULL after raising a fault */
void *ptx_lane_addr(struct warp *w, const struct ins *i, u32 lane, enum space sp, u64 addr, u32 size);
/* The same for @size bytes at a multiple of @align. */
void *ptx_lane_range(struct warp *w, const struct ins *i, u32 lane, enum space sp, u64 addr, u32 size, u32 align);
/* A device string for printf and assert: its host pointer and length up to @max, NULL when not readable. */
const char *ptx_lane_string(struct warp *w, u32 lane, u64 addr, size_t max, size_t *len);

/* cluster.c: the barrier of a cluster. Arriving twice in one phase is a fault: false. */
bool ptx_cluster_arrive(struct warp *w, const struct ins *i, u32 mask);
void ptx_cluster_exit(struct warp *w, u32 mask);

/* ops_async.c: @bytes that the mbarrier expects have come */
void ptx_mbar_complete(u64 *mbar, u32 bytes);

/* exec.c */
enum run { RUN_DONE, RUN_BLOCKED, RUN_YIELD, RUN_STOP };
enum run ptx_warp_run(struct warp *w);

/* meet.c: lets lanes that wait for each other in one operation at different places do it; false when none can */
bool ptx_meet(struct warp *w);

/* frame.c */
u32 ptx_frame_class(u32 size);
struct frame *ptx_frame_get(struct worker *wk, const struct ptx_func *f, u32 cls);
void ptx_frame_put(struct worker *wk, struct frame *fr);

/* launch.c, pool.c */
#define FRAME_CLASSES 24u

struct worker {
	struct frame *free_frames[FRAME_CLASSES]; /* by size, 256 bytes and up; linked by parent */
	struct block *blocks;			  /* array of cap */
	u32 nblocks, cap;
	u32 smid;
	size_t frame_bytes;
	struct worker *next;
};

struct worker *ptx_worker_get(void);
void ptx_worker_put(struct worker *wk);
/* Runs @fn(arg) in @extra pool threads beside the caller and returns when all have returned. */
void ptx_pool_run(unsigned extra, void (*fn)(void *arg), void *arg);

/* ops.c: handlers by name, of the best level this CPU has; NULL when there is none */
struct op_row {
	const char *forms; /* "add{,.rn}.f32": alternatives in braces */
	const char *sig;   /* operands: h 16, w 32, d 64 bits, f/F a float literal of 32/64, p predicate; the result first */
	ptx_handler fn;
	u8 flags;
};
enum { OP_MODS = 1 }; /* imm gets the modifiers: see enum mod_flags */

enum mod_flags { MF_RND = 7, MF_FTZ = 8, MF_SAT = 16, MF_APPROX = 32 };
enum rnd { RND_NONE, RND_N, RND_Z, RND_M, RND_P, RND_NA };

const struct op_row *ptx_op_find(const char *name, size_t len);
/* All names of the table, in no order. */
void ptx_op_each(void (*fn)(void *arg, const char *name, size_t len), void *arg);
const char *ptx_op_level(void);
u32 ptx_op_level_index(void); /* 0: v2, 1: v3, 2: v4 */

static inline void *opnd_ptr(const struct warp *w, s32 off)
{
	return (off < 0 ? (u8 *)(uintptr_t)w->pool : w->regs) + off;
}

static inline u32 *pred_ptr(const struct warp *w, s32 off)
{
	return opnd_ptr(w, off);
}

#endif
