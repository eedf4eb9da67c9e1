/* SPDX-License-Identifier: MIT */
/* Link-time-optimised code for a soft GPU: NVIDIA's linker makes one PTX text of it. */
#ifndef RGPU_SHIM_JIT_LTO_H
#define RGPU_SHIM_JIT_LTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lto;

/* NVIDIA's format: NVVM's intermediate code, in a wrapping of four known bytes. */
bool lto_is(const void *data, size_t bytes);

/* With the options of the link as the program gave them, to which -lto and -ptx come. 0 or nvJitLink's error. */
int lto_new(struct lto **lto, uint32_t n, const char *const *options);
void lto_free(struct lto *lto);

int lto_add(struct lto *lto, const void *data, size_t bytes, const char *name);

/* The PTX of all that was added, ended with a NUL, for the caller to free. What others define stays declared in it. */
int lto_ptx(struct lto *lto, char **text);

/* What NVIDIA's linker had to say about its last error. */
void lto_log(struct lto *lto, char *log, size_t bytes);

#endif
