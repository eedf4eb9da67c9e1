/* SPDX-License-Identifier: MIT */
/* Loads and stores of whole warps whose addresses are known to be one or consecutive: one check for 32 lanes. */
#include "softgpu/ptx/ops_memory.h"
#include "softgpu/ptx/whole_handlers.h"

/*
 * Lane 0 holds the address. What the quick check does not clear runs again in the general form, which also knows
 * the windows of generic addresses and raises the faults.
 */
#define WHOLE_ADDRESS(AT, MT, RUN_OK, count)                                                                                     \
	const AT at = *WARG(const AT, 4) + (AT)i->imm;                                                                           \
	if (!RUN_OK(at, (count) * sizeof(MT), sizeof(MT)))                                                                       \
	LEAVE(WHOLE_SLOW)

/* An element is as aligned as its vector: the check of elements is not enough for vectors. */
#define WHOLE_VECTOR(AT, MT, RUN_OK, lanes)                                                                                      \
	const AT at = *WARG(const AT, 4) + (AT)i->imm;                                                                           \
	if (!RUN_OK(at, (lanes)*n * sizeof(MT), n * sizeof(MT)))                                                                 \
	LEAVE(WHOLE_SLOW)

#define WHOLE_LOAD(nm, AT, MT, RT, SPACE, RUN_OK, ALL_OK, BASE)                                                                  \
	WHOLE(one_##nm)                                                                                                          \
	{                                                                                                                        \
		WHOLE_ADDRESS(AT, MT, RUN_OK, 1);                                                                                \
		*WARG(RT, 0) = (RT) * (const MT *)(BASE + at);                                                                   \
		NEXT;                                                                                                            \
	}                                                                                                                        \
	WHOLE(run_##nm)                                                                                                          \
	{                                                                                                                        \
		WHOLE_ADDRESS(AT, MT, RUN_OK, WARP);                                                                             \
		const MT *p = (const MT *)(BASE + at);                                                                           \
		RT *D = VARG(RT, 0);                                                                                             \
		IVDEP LANES D[l] = (RT)p[l];                                                                                     \
		NEXT;                                                                                                            \
	}                                                                                                                        \
	WHOLE(vone_##nm)                                                                                                         \
	{                                                                                                                        \
		const u32 n = i->i->size;                                                                                        \
		WHOLE_VECTOR(AT, MT, RUN_OK, 1);                                                                                 \
		const MT *p = (const MT *)(BASE + at);                                                                           \
		const MT t0 = p[0], t1 = p[1];                                                                                   \
		if (n == 4) {                                                                                                    \
			const MT t2 = p[2], t3 = p[3];                                                                           \
			*WARG(RT, 2) = (RT)t2;                                                                                   \
			*WARG(RT, 3) = (RT)t3;                                                                                   \
		}                                                                                                                \
		*WARG(RT, 0) = (RT)t0;                                                                                           \
		*WARG(RT, 1) = (RT)t1;                                                                                           \
		NEXT;                                                                                                            \
	}                                                                                                                        \
	WHOLE(vrun_##nm)                                                                                                         \
	{                                                                                                                        \
		const u32 n = i->i->size;                                                                                        \
		WHOLE_VECTOR(AT, MT, RUN_OK, WARP);                                                                              \
		const MT *p = (const MT *)(BASE + at);                                                                           \
		if (n == 2) {                                                                                                    \
			RT *D0 = VARG(RT, 0), *D1 = VARG(RT, 1);                                                                 \
			IVDEP LANES D0[l] = (RT)p[2 * l], D1[l] = (RT)p[2 * l + 1];                                              \
		} else {                                                                                                         \
			RT *D0 = VARG(RT, 0), *D1 = VARG(RT, 1), *D2 = VARG(RT, 2), *D3 = VARG(RT, 3);                           \
			IVDEP LANES                                                                                              \
			{                                                                                                        \
				D0[l] = (RT)p[4 * l];                                                                            \
				D1[l] = (RT)p[4 * l + 1];                                                                        \
				D2[l] = (RT)p[4 * l + 2];                                                                        \
				D3[l] = (RT)p[4 * l + 3];                                                                        \
			}                                                                                                        \
		}                                                                                                                \
		NEXT;                                                                                                            \
	}

#define WHOLE_STORE(nm, AT, MT, RT, SPACE, RUN_OK, ALL_OK, BASE)                                                                 \
	WHOLE(one_##nm)                                                                                                          \
	{                                                                                                                        \
		WHOLE_ADDRESS(AT, MT, RUN_OK, 1);                                                                                \
		*(MT *)(BASE + at) = (MT)*WARG(const RT, 0);                                                                     \
		NEXT;                                                                                                            \
	}                                                                                                                        \
	WHOLE(run_##nm)                                                                                                          \
	{                                                                                                                        \
		WHOLE_ADDRESS(AT, MT, RUN_OK, WARP);                                                                             \
		MT *p = (MT *)(BASE + at);                                                                                       \
		const RT *V = VARG(const RT, 0);                                                                                 \
		IVDEP LANES p[l] = (MT)V[l];                                                                                     \
		NEXT;                                                                                                            \
	}                                                                                                                        \
	WHOLE(vrun_##nm)                                                                                                         \
	{                                                                                                                        \
		const u32 n = i->i->size;                                                                                        \
		WHOLE_VECTOR(AT, MT, RUN_OK, WARP);                                                                              \
		MT *p = (MT *)(BASE + at);                                                                                       \
		if (n == 2) {                                                                                                    \
			const RT *V0 = VARG(const RT, 0), *V1 = VARG(const RT, 1);                                               \
			IVDEP LANES p[2 * l] = (MT)V0[l], p[2 * l + 1] = (MT)V1[l];                                              \
		} else {                                                                                                         \
			const RT *V0 = VARG(const RT, 0), *V1 = VARG(const RT, 1), *V2 = VARG(const RT, 2),                      \
				 *V3 = VARG(const RT, 3);                                                                        \
			IVDEP LANES                                                                                              \
			{                                                                                                        \
				p[4 * l] = (MT)V0[l];                                                                            \
				p[4 * l + 1] = (MT)V1[l];                                                                        \
				p[4 * l + 2] = (MT)V2[l];                                                                        \
				p[4 * l + 3] = (MT)V3[l];                                                                        \
			}                                                                                                        \
		}                                                                                                                \
		NEXT;                                                                                                            \
	}

#define LOAD_FUNCS(MT, RT, name, c)  FOR_SPACES(WHOLE_LOAD, MT, RT, ld_##name##_##c)
#define STORE_FUNCS(MT, RT, name, c) FOR_SPACES(WHOLE_STORE, MT, RT, st_##name##_##c)
LOADS(LOAD_FUNCS)
STORES(STORE_FUNCS)

#define LOAD_ROW(s, name, c)                                                                                                     \
	{"ld:" #s ":" #name ":" #c, one_##s##_ld_##name##_##c, run_##s##_ld_##name##_##c, NULL, NULL},                           \
		{"ldv:" #s ":" #name ":" #c, vone_##s##_ld_##name##_##c, vrun_##s##_ld_##name##_##c, NULL, NULL},
#define STORE_ROW(s, name, c)                                                                                                    \
	{"st:" #s ":" #name ":" #c, one_##s##_st_##name##_##c, run_##s##_st_##name##_##c, NULL, NULL},                           \
		{"stv:" #s ":" #name ":" #c, NULL, vrun_##s##_st_##name##_##c, NULL, NULL},
#define LOAD_ROWS(MT, RT, name, c)  LOAD_ROW(g, name, c) LOAD_ROW(s, name, c) LOAD_ROW(S, name, c)
#define STORE_ROWS(MT, RT, name, c) STORE_ROW(g, name, c) STORE_ROW(s, name, c) STORE_ROW(S, name, c)

WHOLE_TABLE(memory) = {
	LOADS(LOAD_ROWS) STORES(STORE_ROWS){NULL, NULL, NULL, NULL, NULL},
};
