// SPDX-License-Identifier: MIT
/*
 * Big things: parameters up to the last byte, ten thousand streams and events at once, threads that each have a lane. With
 * RGPU_BIG=1 also what takes gigabytes and minutes: a module of 272 MiB and 64 Ki kernels, copies of more than 4 GiB.
 */
#include <pthread.h>
#include <sys/mman.h>
#include "tests/api/serve.h"

#define MIB ((size_t)1 << 20)

/* A kernel with @bytes of parameters: an address, and bytes whose last word is stored there. */
static CUresult with_parameters(unsigned bytes)
{
	static uint8_t all[40000];
	char text[600];
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, all, CU_LAUNCH_PARAM_BUFFER_SIZE, &(size_t){bytes}, CU_LAUNCH_PARAM_END};
	void *list[] = {all, all + 8};
	CUdeviceptr d;
	CUfunction f;
	unsigned got;
	CUmodule m;
	CUresult r;

	snprintf(text, sizeof(text),
		 ".version 8.1\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 to, .param .align 4 .b8 "
		 "all[%u])\n{\n"
		 ".reg .u64 %%d<2>;\n.reg .u32 %%r<2>;\nld.param.u64 %%d1, [to];\nld.param.u32 %%r1, [all+%u];\n"
		 "st.global.u32 [%%d1], %%r1;\nret;\n}\n",
		 bytes - 8, bytes - 12);
	r = cuModuleLoadData(&m, text);
	if (r)
		return r;
	must(cuModuleGetFunction(&f, m, "k"));
	must(cuMemAlloc(&d, 4));
	memcpy(all, &d, 8);
	for (int way = 0; way < 2; way++) {
		unsigned want = bytes * 2 + way;

		memcpy(all + bytes - 4, &want, 4);
		must(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, way ? list : NULL, way ? NULL : extra));
		must(cuMemcpyDtoH(&got, d, 4));
		is_int(got, want, "%u bytes of parameters, %s: the last word", bytes, way ? "one by one" : "as one buffer");
	}
	must(cuMemFree(d));
	must(cuModuleUnload(m));
	return CUDA_SUCCESS;
}

static void parameters(void)
{
	is_cu(with_parameters(4096), CUDA_SUCCESS);
	is_cu(with_parameters(4100), CUDA_SUCCESS);
	is_cu(with_parameters(32764), CUDA_SUCCESS);
	ok(with_parameters(32768) != CUDA_SUCCESS, "more than 32,764 are refused");
}

static void live_objects(void)
{
	enum { N = 10000 };
	static CUstream s[N];
	static CUevent e[N];
	static uint32_t got[N];
	unsigned bad = 0;
	CUdeviceptr d;

	must(cuMemAlloc(&d, N * 4));
	must(cuMemsetD8(d, 0, N * 4));
	for (int i = 0; i < N; i++)
		bad += cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING) || cuEventCreate(&e[i], CU_EVENT_DISABLE_TIMING);
	is_int(bad, 0, "ten thousand streams and events");
	/* A chain through all of them: each waits for the one before. */
	for (int i = 0; i < N; i++) {
		if (i)
			bad += cuStreamWaitEvent(s[i], e[i - 1], 0) || cuMemcpyDtoDAsync(d + i * 4, d + (i - 1) * 4, 4, s[i]);
		else
			bad += cuMemsetD32Async(d, 12345, 1, s[0]);
		bad += cuEventRecord(e[i], s[i]) != 0;
	}
	is_cu(cuEventSynchronize(e[N - 1]), CUDA_SUCCESS);
	for (int i = 0; i < N; i++)
		bad += cuEventQuery(e[i]) != CUDA_SUCCESS;
	must(cuMemcpyDtoH(got, d, sizeof(got)));
	for (int i = 0; i < N; i++)
		bad += got[i] != 12345;
	is_int(bad, 0, "a value goes through all of them in order");
	must(cuCtxSynchronize());
	for (int i = 0; i < N; i++)
		bad += cuStreamQuery(s[i]) || cuStreamDestroy(s[i]) || cuEventDestroy(e[i]);
	is_int(bad, 0, "each is idle, and ended");
	must(cuMemFree(d));
}

struct worker {
	CUcontext ctx;
	CUfunction f;
	int number, bad;
	pthread_barrier_t *all;
};

static void *work(void *arg)
{
	struct worker *w = arg;
	unsigned k = w->number, want = 1, got = 0;
	CUdeviceptr d;
	void *p[] = {&d, &k};
	CUstream s;

	w->bad += cuCtxSetCurrent(w->ctx) || cuStreamCreate(&s, CU_STREAM_NON_BLOCKING) || cuMemAlloc(&d, 4);
	/* Here each of them has its lane. */
	pthread_barrier_wait(w->all);
	w->bad += cuMemsetD32Async(d, 1, 1, s) != 0;
	for (int i = 0; i < 50; i++, want = want * 3 + k)
		w->bad += cuLaunchKernel(w->f, 1, 1, 1, 1, 1, 1, 0, s, p, NULL) != 0;
	w->bad += cuStreamSynchronize(s) || cuMemcpyDtoH(&got, d, 4) || got != want;
	w->bad += cuStreamDestroy(s) || cuMemFree(d);
	return NULL;
}

static void lanes(CUcontext ctx)
{
	enum { N = 64 };
	static struct worker w[N];
	pthread_barrier_t all;
	pthread_t t[N];
	CUfunction f;
	CUmodule m;
	int bad = 0;

	must(cuModuleLoad(&m, built("tests/api/kernels.fatbin")));
	must(cuModuleGetFunction(&f, m, "times3"));
	pthread_barrier_init(&all, NULL, N);
	for (int i = 0; i < N; i++) {
		w[i] = (struct worker){.ctx = ctx, .f = f, .number = i, .all = &all};
		pthread_create(&t[i], NULL, work, &w[i]);
	}
	for (int i = 0; i < N; i++) {
		pthread_join(t[i], NULL);
		bad += w[i].bad;
	}
	is_int(bad, 0, "64 threads with work of their own at once");
	must(cuModuleUnload(m));
}

/* 64 Ki kernels, and comments that make 272 MiB of it. */
static void large_module(void)
{
	enum { KERNELS = 1 << 16, EACH = 272 * 16 };
	char *text = malloc((size_t)KERNELS * EACH + 4096), *at = text, name[32];
	unsigned n = 0, bad = 0;
	CUdeviceptr d;
	CUfunction f;
	CUmodule m;
	int got;

	at += sprintf(at, ".version 7.0\n.target sm_75\n.address_size 64\n");
	for (int i = 0; i < KERNELS; i++) {
		char *end = at + EACH - 1;

		at += sprintf(at,
			      ".visible .entry k%d(.param .u64 to)\n{\n.reg .u64 %%d<2>;\nld.param.u64 %%d1, [to];\n"
			      "st.global.u32 [%%d1], %d;\nret;\n}\n//",
			      i, i + 7);
		memset(at, 'x', end - at);
		*end = '\n';
		at = end + 1;
	}
	*at = 0;
	ok(at - text > (long)(271 * MIB), "a module of %zu MiB", (at - text) / MIB);
	is_cu(cuModuleLoadData(&m, text), CUDA_SUCCESS);
	must(cuModuleGetFunctionCount(&n, m));
	is_int(n, KERNELS, "all of its kernels are there");
	must(cuMemAlloc(&d, 4));
	for (int i = 0; i < KERNELS; i += i % 97 ? 1 : 641) {
		void *p[] = {&d};

		snprintf(name, sizeof(name), "k%d", i);
		bad += cuModuleGetFunction(&f, m, name) != 0;
		if (i % 1000 && i != KERNELS - 1)
			continue;
		bad += cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, p, NULL) || cuMemcpyDtoH(&got, d, 4) || got != i + 7;
	}
	is_int(bad, 0, "found by their names, and run");
	must(cuMemFree(d));
	must(cuModuleUnload(m));
	free(text);
}

/*
 * Five GiB of addresses that show 61 MiB of memory again and again: what lies at an offset tells a copy that lost its upper
 * bits, for no power of two is a multiple of 61 MiB.
 */
#define FOLD	(61 * MIB)
#define LARGE	(5 * 1024 * MIB + 4097)
#define WORD(o) ((uint32_t)((o) / 4 * 2654435761u))

static uint8_t *folded(void)
{
	size_t all = (LARGE + FOLD - 1) / FOLD * FOLD;
	uint8_t *base = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int fd = memfd_create("folded", 0);

	if (base == MAP_FAILED || ftruncate(fd, FOLD))
		return NULL;
	for (size_t at = 0; at < all; at += FOLD)
		if (mmap(base + at, FOLD, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
			return NULL;
	close(fd);
	return base;
}

static unsigned differs(CUdeviceptr d, size_t shift)
{
	unsigned bad = 0;

	for (size_t at = 0; at < LARGE - 8; at += 37 * MIB + 4) {
		uint32_t got;

		must(cuMemcpyDtoH(&got, d + at, 4));
		bad += got != WORD((at + shift) % FOLD);
	}
	return bad;
}

static void large_copies(void)
{
	uint8_t *host = folded();
	uint32_t *words = (uint32_t *)host;
	CUDA_MEMCPY2D rows = {.srcMemoryType = CU_MEMORYTYPE_HOST,
			      .srcHost = host,
			      .srcPitch = MIB,
			      .dstMemoryType = CU_MEMORYTYPE_DEVICE,
			      .dstPitch = MIB,
			      .WidthInBytes = MIB,
			      .Height = LARGE / MIB};
	unsigned bad = 0;
	CUdeviceptr d;

	if (!ok(host, "addresses for %zu MiB", LARGE / MIB))
		return;
	for (size_t i = 0; i < FOLD / 4; i++)
		words[i] = WORD(i * 4);
	is_cu(cuMemAlloc(&d, LARGE), CUDA_SUCCESS);
	is_cu(cuMemcpyHtoD(d, host, LARGE), CUDA_SUCCESS);
	is_int(differs(d, 0), 0, "%zu bytes in one copy to the device", LARGE);
	memset(host, 0, FOLD);
	is_cu(cuMemcpyDtoH(host, d, LARGE), CUDA_SUCCESS);
	for (size_t i = 0; i < FOLD / 4; i++)
		bad += words[i] != WORD(i * 4);
	is_int(bad, 0, "and back");
	is_cu(cuMemsetD8(d, 0xa5, LARGE), CUDA_SUCCESS);
	for (size_t at = 0; at < LARGE; at += 61 * MIB) {
		uint8_t got;

		must(cuMemcpyDtoH(&got, d + at, 1));
		bad += got != 0xa5;
	}
	is_int(bad, 0, "filled at once");
	rows.dstDevice = d;
	is_cu(cuMemcpy2D(&rows), CUDA_SUCCESS);
	is_int(differs(d, 0), 0, "in rows");
	must(cuMemFree(d));
}

int main(void)
{
	const char *all = getenv("RGPU_BIG");
	CUcontext ctx;

	setenv("RGPU_SOFTGPU_MEM_MIB", "8192", 0);
	serve(NULL, 1);
	ctx = primary();
	parameters();
	live_objects();
	lanes(ctx);
	if (all && !strcmp(all, "1")) {
		large_module();
		large_copies();
	}
	return tap_done();
}
