/* SPDX-License-Identifier: MIT */
/*
 * What the fidelity programs share. Each probe holds one documented rule of the Driver API or the runtime against whatever
 * libcuda.so.1 and libcudart.so.13 are found when it runs, NVIDIA's or ours.
 */
#ifndef TESTS_FIDELITY_H
#define TESTS_FIDELITY_H

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>
#include "tests/tap.h"

static const char *todo_reason;

/* The next probe is known to fail before ours; @reason is also in docs/limits.md. It counts where it passes. */
#define todo(reason) (todo_reason = (reason))

/* One probe; like ok(), but it knows todo(). */
__attribute__((format(printf, 2, 3), unused)) static bool probe(bool pass, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (!todo_reason || pass) {
		ok(pass, "%s", text);
	} else {
		printf("not ok %d - %s # TODO %s\n", ++tap_run, text, todo_reason);
		fflush(stdout);
	}
	todo_reason = NULL;
	return pass;
}

__attribute__((unused)) static const char *cu_name(int r)
{
	const char *s = NULL;

	cuGetErrorName((CUresult)r, &s);
	return s ? s : "no error's number";
}

/* The driver's call gives exactly this. */
#define cu(want, call)                                                                                                           \
	({                                                                                                                       \
		int got_ = (int)(call);                                                                                          \
		if (!probe(got_ == (int)(want), "%s: %s", #call, #want))                                                         \
			printf("# %s:%d: got %d, %s\n", __FILE__, __LINE__, got_, cu_name(got_));                                \
		got_ == (int)(want);                                                                                             \
	})

/* The runtime's call gives exactly this; what it leaves as last error is cleared. */
#define rt(want, call)                                                                                                           \
	({                                                                                                                       \
		int got_ = (int)(call);                                                                                          \
		if (!probe(got_ == (int)(want), "%s: %s", #call, #want))                                                         \
			printf("# %s:%d: got %d, %s\n", __FILE__, __LINE__, got_, cudaGetErrorName((cudaError_t)got_));          \
		cudaGetLastError();                                                                                              \
		got_ == (int)(want);                                                                                             \
	})

/* One number against another. */
#define same(got, want, ...)                                                                                                     \
	({                                                                                                                       \
		long long got_ = (long long)(got), want_ = (long long)(want);                                                    \
		if (!probe(got_ == want_, __VA_ARGS__))                                                                          \
			printf("# %s:%d: got %lld, want %lld\n", __FILE__, __LINE__, got_, want_);                               \
		got_ == want_;                                                                                                   \
	})

/* Of no interest itself: what comes after it has no meaning without it. */
#define must(call)                                                                                                               \
	do {                                                                                                                     \
		int got_ = (int)(call);                                                                                          \
		if (got_) {                                                                                                      \
			printf("Bail out! %s:%d: %s: %d, %s\n", __FILE__, __LINE__, #call, got_, cu_name(got_));                 \
			exit(255);                                                                                               \
		}                                                                                                                \
	} while (0)

/* cuInit, and device 0's primary context made current. */
__attribute__((unused)) static CUcontext primary(void)
{
	CUcontext c;

	must(cuInit(0));
	must(cuDevicePrimaryCtxRetain(&c, 0));
	must(cuCtxSetCurrent(c));
	return c;
}

/* A gate holds a stream: a host function that waits until the gate is open, a minute at most. */
struct gate {
	atomic_int open, reached;
};

__attribute__((unused)) static void gate_wait(void *arg)
{
	struct gate *g = arg;

	atomic_store(&g->reached, 1);
	for (int i = 0; i < 60000 && !atomic_load(&g->open); i++)
		usleep(1000);
}

__attribute__((unused)) static void gate_open(struct gate *g)
{
	atomic_store(&g->open, 1);
}

/* store(p, v): *p = v. limited: launch bounds of 64 threads. static: 1024 bytes of shared memory. wild: an illegal address. */
__attribute__((unused)) static const char kernels_ptx[] =
	".version 7.5\n.target sm_75\n.address_size 64\n"
	".visible .global .align 4 .u32 word = 7;\n"
	".visible .const .align 4 .b8 constants[16];\n"
	".visible .entry store(.param .u64 p, .param .u32 v)\n{\n"
	"	.reg .b32 %r<2>;\n	.reg .b64 %rd<3>;\n"
	"	ld.param.u64 %rd1, [p];\n	ld.param.u32 %r1, [v];\n"
	"	cvta.to.global.u64 %rd2, %rd1;\n	st.global.u32 [%rd2], %r1;\n	ret;\n}\n"
	".visible .entry limited() .maxntid 64, 1, 1\n{\n	ret;\n}\n"
	".visible .entry fixed()\n{\n	.shared .align 4 .b8 room[1024];\n	.reg .b32 %r<2>;\n"
	"	mov.u32 %r1, 1;\n	st.volatile.shared.u32 [room], %r1;\n	ret;\n}\n"
	".visible .entry wild()\n{\n	.reg .b32 %r<2>;\n	.reg .b64 %rd<2>;\n"
	"	mov.u32 %r1, 1;\n	mov.u64 %rd1, 64;\n	st.global.u32 [%rd1], %r1;\n	ret;\n}\n";

#endif
