/* SPDX-License-Identifier: MIT */
/* Our libnvrtc and libnvJitLink hand most calls on to NVIDIA's library of the same name, which is found when it is first needed.
 */
#ifndef RGPU_SHIM_JIT_GENUINE_H
#define RGPU_SHIM_JIT_GENUINE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define JIT_API __attribute__((visibility("default")))

struct genuine {
	const char *soname; /* its, and ours */
	pthread_once_t once;
	void *handle; /* NULL: there is none, and a line said so */
};

extern struct genuine genuine; /* each library defines its own */

/* NULL: the library, or this function in it, is not there; a line said so. */
void *genuine_function(const char *name);

/* The program's GPU is a soft one, which runs PTX and no machine code. Starts the session. Without a GPU of ours: false. */
bool jit_wants_ptx(void);

/* A function that is handed on as it is: its arguments, six at most, are all integers or pointers. */
#define FORWARD(name, otherwise)                                                                                                 \
	JIT_API uintptr_t name(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f);                    \
	uintptr_t name(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f)                             \
	{                                                                                                                        \
		static uintptr_t (*_Atomic real)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);              \
		if (!real)                                                                                                       \
			real = (__typeof__(real))genuine_function(#name);                                                        \
		return real ? real(a, b, c, d, e, f) : (uintptr_t)(otherwise);                                                   \
	}

#endif
