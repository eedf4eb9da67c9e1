/* SPDX-License-Identifier: MIT */
/* The generated stubs' way out, kept apart from the CUDA headers, whose prototypes they don't follow. */
#ifndef RGPU_CUDART_UNSUPPORTED_H
#define RGPU_CUDART_UNSUPPORTED_H

/* Says once (*told) that @name is not there yet, or @why it never is; remembers and returns cudaErrorNotSupported. */
int cudart_unsupported(const char *name, const char *why, _Atomic char *told);

#endif
