/* SPDX-License-Identifier: MIT */
/* The registers that kernels say they need, which are an estimate and can be limited. */
#ifndef SOFTGPU_PTX_REGS_H
#define SOFTGPU_PTX_REGS_H

#include <stdint.h>

struct ptx_module;

/* No kernel of it says more than @n 32-bit registers a thread from here on; 0: any. */
void ptx_module_limit_registers(struct ptx_module *m, uint32_t n);

#endif
