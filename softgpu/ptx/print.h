/* SPDX-License-Identifier: MIT */
/* Device printf. */
#ifndef SOFTGPU_PTX_PRINT_H
#define SOFTGPU_PTX_PRINT_H

#include "softgpu/ptx/exec.h"

/*
 * Formats one lane's vprintf(@fmt, @args), both device addresses, and hands the text to the launch's print
 * callback. Returns the number of arguments as CUDA does, −1 for a bad format; a bad address is a fault.
 */
s32 ptx_print(struct warp *w, const struct ins *i, u32 lane, u64 fmt, u64 args);

#endif
