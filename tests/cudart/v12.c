/* SPDX-License-Identifier: MIT */
/*
 * libcudart.so.12 as a program sees it that was compiled with CUDA 12's headers: those are not at hand, so the declarations are
 * here. Over softgpu in this process.
 */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "tests/tap.h"

enum { SUCCESS = 0, INVALID_VALUE = 1, NOT_SUPPORTED = 801 };

typedef void *stream;

struct attributes { /* cudaMemcpyAttributes */
	int order;
	int src[2], dst[2];
	unsigned int flags;
};

struct resource { /* cudaResourceDesc: nothing behind the union */
	int kind;
	union {
		void *array;
		struct {
			void *ptr;
			int desc[5];
			size_t bytes;
		} linear;
		struct {
			void *ptr;
			int desc[5];
			size_t width, height, pitch;
		} pitch;
	};
};

int cudaRuntimeGetVersion(int *);
int cudaDriverGetVersion(int *);
int cudaGetDeviceProperties_v2(void *, int);
int cudaGetDeviceProperties(void *, int);
int cudaDeviceGetAttribute(int *, int, int);
int cudaMalloc(void **, size_t);
int cudaFree(void *);
int cudaMemcpy(void *, const void *, size_t, int);
int cudaMemset(void *, int, size_t);
int cudaPointerGetAttributes(void *, const void *);
int cudaStreamCreate(stream *);
int cudaStreamSynchronize(stream);
int cudaStreamDestroy(stream);
int cudaMemcpyBatchAsync(void **, void **, size_t *, size_t, struct attributes *, size_t *, size_t, size_t *, stream);
int cudaGetDriverEntryPoint(const char *, void **, unsigned long long, int *);
int cudaThreadSynchronize(void);
int cudaThreadGetLimit(size_t *, int);
int cudaSetDoubleForDevice(double *);
int cudaLaunchCooperativeKernelMultiDevice(void *, unsigned int, unsigned int);
int cudaCreateTextureObject(unsigned long long *, const struct resource *, const void *, const void *);
int cudaGetTextureObjectResourceDesc(struct resource *, unsigned long long);
int cudaDestroyTextureObject(unsigned long long);
int cudaMallocManaged(void **, size_t, unsigned int);
int cudaMemAdvise(const void *, size_t, int, int);
int cudaMemPrefetchAsync(const void *, size_t, int, stream);
int cudaGraphCreate(void **, unsigned int);
int cudaGraphDestroy(void *);
int cudaGraphAddEmptyNode(void **, void *, void *const *, size_t);
int cudaGraphAddDependencies(void *, void *const *, void *const *, size_t);
int cudaGraphGetEdges(void *, void **, void **, size_t *);
int cudaStreamGetCaptureInfo_v2(stream, int *, unsigned long long *, void **, void *const **, size_t *);

static void properties(void)
{
	/* Where CUDA 12 has them; 0xee behind the end must stay. */
	unsigned char p[1032 + 16], older[728 + 16];
	int sms = -1, threads = -1, version = 0, clock = -1;

	memset(p, 0xee, sizeof(p));
	memset(older, 0xee, sizeof(older));
	is_int(cudaRuntimeGetVersion(&version), SUCCESS, "cudaRuntimeGetVersion");
	is_int(version, 12090, "of CUDA 12");
	is_int(cudaGetDeviceProperties_v2(p, 0), SUCCESS, "cudaGetDeviceProperties_v2");
	is_int(cudaDeviceGetAttribute(&sms, 16, 0), SUCCESS, "cudaDeviceGetAttribute");
	is_int(cudaDeviceGetAttribute(&threads, 1, 0), SUCCESS, "cudaDeviceGetAttribute");
	is_int(cudaDeviceGetAttribute(&clock, 13, 0), SUCCESS, "cudaDeviceGetAttribute");
	is_int(*(int *)(p + 388), sms, "multiprocessors, where that structure has them");
	is_int(*(int *)(p + 320), threads, "threads of a block");
	is_int(*(int *)(p + 348), clock, "the clock, which 13 dropped");
	ok(p[1032] == 0xee, "not a byte behind it");
	is_int(cudaGetDeviceProperties(older, 0), SUCCESS, "the older structure");
	ok(!memcmp(older, p, 728) && older[728] == 0xee, "is the beginning of this one");
}

static void pointers(void)
{
	unsigned char a[24 + 8];
	void *d;

	memset(a, 0xee, sizeof(a));
	is_int(cudaMalloc(&d, 64), SUCCESS, "cudaMalloc");
	is_int(cudaPointerGetAttributes(a, d), SUCCESS, "cudaPointerGetAttributes");
	is_int(*(int *)a, 2, "device memory");
	ok(*(void **)(a + 8) == d && a[24] == 0xee, "its address, and not a byte behind the structure");
	cudaFree(d);
}

static void batch(void)
{
	struct attributes attr = {.order = 1};
	size_t sizes[2] = {4, 0}, first = 0, fail = 9;
	int up = 77, down = 0;
	void *d, *dst[2], *src[2];
	stream s;

	is_int(cudaMalloc(&d, 64), SUCCESS, "cudaMalloc");
	is_int(cudaStreamCreate(&s), SUCCESS, "cudaStreamCreate");
	dst[0] = d;
	src[0] = &up;
	dst[1] = &down;
	src[1] = d;
	is_int(cudaMemcpyBatchAsync(dst, src, sizes, 2, &attr, &first, 1, &fail, s), INVALID_VALUE, "a copy of nothing");
	is_int(fail, 1, "is told by its number");
	sizes[1] = 4;
	is_int(cudaMemcpyBatchAsync(dst, src, sizes, 2, &attr, &first, 1, &fail, s), SUCCESS, "cudaMemcpyBatchAsync");
	is_int(cudaStreamSynchronize(s), SUCCESS, "cudaStreamSynchronize");
	is_int(down, 77, "up and down");
	cudaStreamDestroy(s);
	cudaFree(d);
}

static void textures(void)
{
	struct resource r = {.kind = 2}, back;
	unsigned char desc[128] = {0};
	unsigned long long tex;
	void *d;

	is_int(cudaMalloc(&d, 256), SUCCESS, "cudaMalloc");
	r.linear.ptr = d;
	r.linear.desc[0] = 32; /* one channel of 32 bits, a float */
	r.linear.desc[4] = 2;
	r.linear.bytes = 256;
	is_int(cudaCreateTextureObject(&tex, &r, desc, NULL), SUCCESS, "cudaCreateTextureObject");
	is_int(cudaGetTextureObjectResourceDesc(&back, tex), SUCCESS, "cudaGetTextureObjectResourceDesc");
	ok(back.kind == 2 && back.linear.ptr == d && back.linear.bytes == 256, "it is what it was made of");
	is_int(cudaDestroyTextureObject(tex), SUCCESS, "cudaDestroyTextureObject");
	cudaFree(d);
}

static void old_calls(void)
{
	void *managed, *fn = NULL, *g, *node[2], *from[1], *to[1];
	int found = -1, capturing = 9;
	size_t n = 0, limit = 0;
	unsigned long long id;
	double one = 1;

	is_int(cudaThreadSynchronize(), SUCCESS, "cudaThreadSynchronize");
	is_int(cudaThreadGetLimit(&limit, 0), SUCCESS, "cudaThreadGetLimit");
	ok(limit > 0, "the stack has %zu bytes", limit);
	is_int(cudaSetDoubleForDevice(&one), SUCCESS, "cudaSetDoubleForDevice");
	is_int(cudaLaunchCooperativeKernelMultiDevice(NULL, 0, 0), NOT_SUPPORTED, "no launch over several devices");
	is_int(cudaMallocManaged(&managed, 4096, 1), SUCCESS, "cudaMallocManaged");
	is_int(cudaMemAdvise(managed, 4096, 1, 0), SUCCESS, "cudaMemAdvise with a device's number");
	is_int(cudaMemPrefetchAsync(managed, 4096, -1, NULL), SUCCESS, "cudaMemPrefetchAsync to the host, which is −1");
	cudaFree(managed);
	is_int(cudaGetDriverEntryPoint("cuMemAlloc", &fn, 0, &found), SUCCESS, "cudaGetDriverEntryPoint");
	ok(fn && !found, "finds it");
	is_int(cudaGraphCreate(&g, 0), SUCCESS, "cudaGraphCreate");
	is_int(cudaGraphAddEmptyNode(&node[0], g, NULL, 0), SUCCESS, "cudaGraphAddEmptyNode");
	is_int(cudaGraphAddEmptyNode(&node[1], g, NULL, 0), SUCCESS, "cudaGraphAddEmptyNode");
	is_int(cudaGraphAddDependencies(g, &node[0], &node[1], 1), SUCCESS, "an edge without data");
	n = 1;
	is_int(cudaGraphGetEdges(g, from, to, &n), SUCCESS, "cudaGraphGetEdges");
	ok(n == 1 && from[0] == node[0] && to[0] == node[1], "this one");
	is_int(cudaGraphDestroy(g), SUCCESS, "cudaGraphDestroy");
	is_int(cudaStreamGetCaptureInfo_v2((stream)2, &capturing, &id, NULL, NULL, NULL), SUCCESS, "cudaStreamGetCaptureInfo_v2");
	is_int(capturing, 0, "nothing is captured");
}

int main(void)
{
	properties();
	pointers();
	batch();
	textures();
	old_calls();
	return tap_done();
}
