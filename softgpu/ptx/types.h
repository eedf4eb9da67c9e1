/* SPDX-License-Identifier: MIT */
/* Scalar names and PTX's fundamental types, shared by every part of the engine. */
#ifndef SOFTGPU_PTX_TYPES_H
#define SOFTGPU_PTX_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef float f32;
typedef double f64;

#define WARP 32u
#define FULL 0xffffffffu

enum type {
	TY_NONE,
	TY_B8,
	TY_B16,
	TY_B32,
	TY_B64,
	TY_B128,
	TY_U8,
	TY_U16,
	TY_U32,
	TY_U64,
	TY_S8,
	TY_S16,
	TY_S32,
	TY_S64,
	TY_F16,
	TY_F32,
	TY_F64,
	TY_BF16,
	TY_F16X2,
	TY_BF16X2,
	TY_U16X2,
	TY_S16X2,
	TY_PRED,
	TY_TF32,
	TY_E4M3,
	TY_E5M2,
	TY_E4M3X2,
	TY_E5M2X2,
	TY_E3M2,
	TY_E2M3,
	TY_E2M1,
	TY_E3M2X2,
	TY_E2M3X2,
	TY_E2M1X2,
	TY_UE8M0X2,
	TY_S4, /* elements of matrices only, eight or 32 to a register */
	TY_U4,
	TY_B1,
	TY_COUNT,
};

/* Bytes of a value in memory; 0 for TY_NONE and TY_PRED. */
u32 type_size(enum type t);
/* The type whose PTX name (without the dot) is @s, TY_NONE when there is none. */
enum type type_by_name(const char *s, size_t len);
bool type_is_float(enum type t);
bool type_is_signed(enum type t);

/* How a register is stored: one element a lane, so that lanes at different places never share bytes. */
enum rclass { RC_PRED, RC_16, RC_32, RC_64, RC_COUNT };

enum space { SP_GENERIC, SP_GLOBAL, SP_SHARED, SP_LOCAL, SP_CONST, SP_PARAM };

/*
 * Generic addresses: arena addresses are host addresses (below 2^48); the windows below have tags in bits
 * 48..63 that no user address has. A function's address is a tagged index, checked at each indirect call.
 */
#define WINDOW_SHIFT  48
#define WINDOW_MASK   ((1ull << WINDOW_SHIFT) - 1)
#define WINDOW_SHARED 0x0101ull
#define WINDOW_LOCAL  0x0102ull
#define WINDOW_PARAM  0x0103ull
#define WINDOW_FUNC   0x0104ull

#endif
