/* SPDX-License-Identifier: MIT */
/* rgpu bench's measuring, by the calls that a program makes: the driver interface of our libcuda. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "shim/transport.h"
#include "tools/rgpu/bench.h"

#define SAMPLES_MAX   2000
#define BATCH	      1000
#define STEP_BYTES    (4ull << 20)
#define STEP_LAUNCHES 60

/* Writes its argument where it is told: what the last launch did is seen. */
static const char ptx[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
			  ".visible .entry rgpu_bench(.param .u64 to, .param .u32 what)\n"
			  "{\n\t.reg .u64 %a;\n\t.reg .u32 %v;\n"
			  "\tld.param.u64 %a, [to];\n\tld.param.u32 %v, [what];\n"
			  "\tcvta.to.global.u64 %a, %a;\n\tst.global.u32 [%a], %v;\n\tret;\n}\n";

/* The calls, by the names under which the library has them. */
#define CALLS(X)                                                                                                                 \
	X(cuInit, (unsigned))                                                                                                    \
	X(cuDeviceGet, (int *, int))                                                                                             \
	X(cuDeviceGetName, (char *, int, int))                                                                                   \
	X(cuDevicePrimaryCtxRetain, (void **, int))                                                                              \
	X(cuDevicePrimaryCtxRelease_v2, (int))                                                                                   \
	X(cuCtxSetCurrent, (void *))                                                                                             \
	X(cuCtxSynchronize, (void))                                                                                              \
	X(cuGetErrorString, (int, const char **))                                                                                \
	X(cuMemAlloc_v2, (uint64_t *, size_t))                                                                                   \
	X(cuMemFree_v2, (uint64_t))                                                                                              \
	X(cuMemHostAlloc, (void **, size_t, unsigned))                                                                           \
	X(cuMemFreeHost, (void *))                                                                                               \
	X(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t))                                                                     \
	X(cuMemcpyDtoH_v2, (void *, uint64_t, size_t))                                                                           \
	X(cuModuleLoadData, (void **, const void *))                                                                             \
	X(cuModuleGetFunction, (void **, void *, const char *))                                                                  \
	X(cuLaunchKernel,                                                                                                        \
	  (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **))

static struct {
#define MEMBER(name, args) int(*name) args;
	CALLS(MEMBER)
#undef MEMBER
} cu;

/* What the measured calls work on. */
static struct {
	uint64_t dev;
	void *kernel;
	uint8_t *out, *in; /* of the copy that is measured: pageable or page-locked */
	uint64_t bytes;
	uint32_t count;
	int failed; /* the first call's error */
} w;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static void did(int r)
{
	if (r && !w.failed)
		w.failed = r;
}

static void launch(void)
{
	uint32_t what = ++w.count;
	void *args[] = {&w.dev, &what};

	did(cu.cuLaunchKernel(w.kernel, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
}

static void finish(void)
{
	did(cu.cuCtxSynchronize());
}

static void small_call(void)
{
	uint32_t word;

	did(cu.cuMemcpyDtoH_v2(&word, w.dev, sizeof(word)));
}

static void launches(void)
{
	for (int i = 0; i < BATCH; i++)
		launch();
}

static void launches_done(void)
{
	launches();
	finish();
}

static void launch_and_wait(void)
{
	launch();
	finish();
}

/* Bytes that the server has not seen: those that come again are not sent. */
static void fresh(uint64_t bytes)
{
	for (uint64_t i = 0; i < bytes / 4; i += RGPU_BLOCK_MIN / 4)
		((uint32_t *)w.out)[i]++;
}

static void step(void)
{
	fresh(STEP_BYTES);
	did(cu.cuMemcpyHtoD_v2(w.dev + 4096, w.out, STEP_BYTES));
	for (int i = 0; i < STEP_LAUNCHES; i++)
		launch();
	small_call();
}

static void up(void)
{
	fresh(w.bytes);
	did(cu.cuMemcpyHtoD_v2(w.dev, w.out, w.bytes));
	finish();
}

static void down(void)
{
	did(cu.cuMemcpyDtoH_v2(w.in, w.dev, w.bytes));
}

static int ascending(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* For so long, but three times at least; @rest is run after each sample and not counted. What one call takes: a sample makes
 * @calls of them. */
static struct bench_time sample(void (*call)(void), void (*rest)(void), unsigned calls, double seconds)
{
	static double t[SAMPLES_MAX];
	struct bench_time r = {0};
	double end;

	call(); /* the first also makes what later ones find made */
	if (rest)
		rest();
	end = now() + seconds;
	do {
		double begin = now();

		call();
		t[r.samples++] = (now() - begin) / calls;
		if (rest)
			rest();
	} while (!w.failed && (r.samples < 3 || (now() < end && r.samples < SAMPLES_MAX)));
	qsort(t, r.samples, sizeof(*t), ascending);
	r.median = t[r.samples / 2];
	r.p99 = t[r.samples * 99 / 100];
	r.best = t[0];
	return r;
}

static int damaged(const char *what, char why[RGPU_WHY_MAX])
{
	return rgpu_why(why, -1, "%s: what came back is not what was sent; please report it", what);
}

/* Up to the largest, or to one that would take too long on this link. */
static int copies(struct bench *b, bool pinned, double seconds, char why[RGPU_WHY_MAX])
{
	struct bench_time(*to)[BENCH_SIZES] = b->copy + (pinned ? BENCH_UP_PINNED : BENCH_UP);

	for (unsigned i = 0; i < BENCH_SIZES && !w.failed; i++) {
		double before = i ? to[0][i - 1].median + to[1][i - 1].median : 0;

		w.bytes = BENCH_SIZE_MIN << 2 * i;
		if (before * 4 > 10 * seconds)
			break;
		for (uint64_t k = 0; k < w.bytes / 4; k++)
			((uint32_t *)w.out)[k] = (k + i) * 2654435761u;
		to[0][i] = sample(up, NULL, 1, seconds);
		memset(w.in, 0, w.bytes);
		to[1][i] = sample(down, NULL, 1, seconds);
		if (!w.failed && memcmp(w.in, w.out, w.bytes))
			return damaged(bench_copy_names[pinned ? BENCH_UP_PINNED : BENCH_UP], why);
	}
	return 0;
}

static int calls(struct bench *b, double seconds, char why[RGPU_WHY_MAX])
{
	uint32_t word = 0;

	b->time[BENCH_CALL] = sample(small_call, NULL, 1, seconds);
	b->time[BENCH_ISSUE] = sample(launches, finish, BATCH, seconds);
	b->time[BENCH_LAUNCH] = sample(launches_done, NULL, BATCH, seconds);
	b->time[BENCH_WAIT] = sample(launch_and_wait, NULL, 1, seconds);
	b->time[BENCH_STEP] = sample(step, NULL, 1, seconds);
	did(cu.cuMemcpyDtoH_v2(&word, w.dev, sizeof(word)));
	return !w.failed && word != w.count ? damaged("the last launch's number", why) : 0;
}

static int all(struct bench *b, double seconds, char why[RGPU_WHY_MAX])
{
	uint64_t most = BENCH_SIZE_MIN << 2 * (BENCH_SIZES - 1);
	uint8_t *pageable[2] = {malloc(most), malloc(most)};
	void *pinned[2] = {NULL, NULL}, *module = NULL;
	int err;

	if (!pageable[0] || !pageable[1]) {
		free(pageable[0]);
		free(pageable[1]);
		return rgpu_why(why, -1, "no memory");
	}
	did(cu.cuMemAlloc_v2(&w.dev, most));
	did(cu.cuModuleLoadData(&module, ptx));
	if (!w.failed)
		did(cu.cuModuleGetFunction(&w.kernel, module, "rgpu_bench"));
	for (int i = 0; i < 2; i++)
		if (!w.failed)
			did(cu.cuMemHostAlloc(&pinned[i], most, 0));
	w.out = pageable[0];
	w.in = pageable[1];
	memset(w.out, 7, STEP_BYTES);
	err = w.failed ? 0 : calls(b, seconds, why);
	if (!err && !w.failed)
		err = copies(b, false, seconds / 2, why);
	w.out = pinned[0];
	w.in = pinned[1];
	if (!err && !w.failed)
		err = copies(b, true, seconds / 2, why);
	for (int i = 0; i < 2; i++) {
		if (pinned[i])
			cu.cuMemFreeHost(pinned[i]);
		free(pageable[i]);
	}
	if (w.dev)
		cu.cuMemFree_v2(w.dev);
	return err;
}

/* The connection of this process's own, or the proxy's to the server. */
static void look_at_link(struct bench *b)
{
	_Alignas(8) uint8_t buf[RGPU_CONTROL_MAX] = {RGPU_TELEMETRY_LINK};
	struct rgpu_telemetry_ask ask = {.what = RGPU_TELEMETRY_LINK};
	struct rgpu_transport *t;
	int n;

	if (rgpu_transport_open(&t))
		return; /* libcuda says why */
	memcpy(buf, &ask, sizeof(ask));
	n = rgpu_transport_control(t, RGPU_CONTROL_TELEMETRY, buf, sizeof(ask), sizeof(buf));
	b->through_module = !strcmp(rgpu_transport_name(t), "kmod");
	b->linked = n >= (int)sizeof(b->link);
	if (b->linked)
		memcpy(&b->link, buf, sizeof(b->link));
	b->link.server[sizeof(b->link.server) - 1] = b->link.agent[sizeof(b->link.agent) - 1] = 0;
	b->link.driver[sizeof(b->link.driver) - 1] = b->link.tls[sizeof(b->link.tls) - 1] = 0;
	if (b->linked && b->link.samples)
		b->time[BENCH_RTT] = (struct bench_time){b->link.rtt_p50 / 1e9, b->link.rtt_p99 / 1e9, 0, b->link.samples};
	rgpu_transport_close(t);
}

int bench_measure(struct bench *b, const char *lib, int n, double seconds, char why[RGPU_WHY_MAX])
{
	void *so = dlopen(lib, RTLD_NOW | RTLD_LOCAL), *ctx;
	const char *text = NULL;
	int dev = 0, err;

	if (!so)
		return rgpu_why(why, -1, "%.200s", dlerror());
#define FIND(name, args) *(void **)&cu.name = dlsym(so, #name);
	CALLS(FIND)
#undef FIND
#define MISSING(name, args)                                                                                                      \
	if (!cu.name)                                                                                                            \
		return rgpu_why(why, -1, "%.150s has no " #name, lib);
	CALLS(MISSING)
#undef MISSING
	look_at_link(b);
	w.failed = cu.cuInit(0);
	if (!w.failed)
		w.failed = cu.cuDeviceGet(&dev, n);
	if (!w.failed)
		w.failed = cu.cuDeviceGetName(b->device, sizeof(b->device), dev);
	if (!w.failed)
		w.failed = cu.cuDevicePrimaryCtxRetain(&ctx, dev);
	if (!w.failed) {
		did(cu.cuCtxSetCurrent(ctx));
		err = w.failed ? 0 : all(b, seconds, why);
		cu.cuDevicePrimaryCtxRelease_v2(dev);
		if (err)
			return err;
	}
	if (!w.failed)
		return 0;
	if (cu.cuGetErrorString(w.failed, &text) || !text)
		text = "an error without a name";
	return rgpu_why(why, -1, "device %d: %.150s (CUDA error %d); next: rgpu doctor", n, text, w.failed);
}
