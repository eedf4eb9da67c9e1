// SPDX-License-Identifier: MIT
/* Copies of all sizes between all kinds of memory, and fills: every byte is compared. */
#include <pthread.h>
#include <stdatomic.h>
#include "tests/api/serve.h"

#define MAX (9u << 20)

static uint8_t *src, *dst;

static void pattern(uint8_t *p, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (i * 2654435761u + seed * 40503u) >> 13;
}

static const size_t sizes[] = {1,     3,      4095,	      8192,	8193,		32768,	 32769,
			       65536, 300001, (2u << 20) - 1, 2u << 20, (2u << 20) + 5, 5000001, MAX};

static const unsigned places[] = {1, 16, 63, 64, 2048, 4033, 4095};

static void pageable(void)
{
	unsigned bad = 0, seed = 0;
	CUdeviceptr d;

	must(cuMemAlloc(&d, MAX));
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		pattern(src, sizes[i], ++seed);
		memset(dst, 0, sizes[i]);
		must(cuMemcpyHtoD(d, src, sizes[i]));
		memset(src, 0xee, sizes[i]); /* it may be overwritten at once */
		must(cuMemcpyDtoH(dst, d, sizes[i]));
		pattern(src, sizes[i], seed);
		bad += !!memcmp(src, dst, sizes[i]);
	}
	is_int(bad, 0, "pageable memory, %zu sizes there and back", sizeof(sizes) / sizeof(*sizes));
	/* Wherever they are to be within a page, and nothing beside them. */
	bad = 0;
	pattern(src, MAX, 98);
	must(cuMemcpyHtoD(d, src, MAX));
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes) - 1; i++)
		for (unsigned k = 0; k < sizeof(places) / sizeof(*places); k++) {
			uint8_t *to = (uint8_t *)(((uintptr_t)dst + 4095) & ~4095ul) + places[k];

			memset(to - 1, 0xcc, sizes[i] + 2);
			must(cuMemcpyDtoH(to, d + k, sizes[i]));
			bad += memcmp(to, src + k, sizes[i]) || to[-1] != 0xcc || to[sizes[i]] != 0xcc;
		}
	is_int(bad, 0, "… and down to all places within a page");
	pattern(src, MAX, 99);
	must(cuMemcpyHtoD(d, src, MAX));
	must(cuMemcpyDtoH(dst, d + 1234567, 2345678));
	ok(!memcmp(dst, src + 1234567, 2345678), "from the middle");
	is_cu(cuMemcpyHtoD(d + 1, src, MAX), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemcpyDtoH(dst, d + MAX, 1), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemcpyDtoH(dst, 0x1000, 1), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemcpyHtoD(d, NULL, 1), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemcpyHtoD(d, src, 0), CUDA_SUCCESS);
	must(cuMemFree(d));
}

/* Several streams' copies down pend in one piece of page-locked memory, or those of a context that is gone. */
static void pending(CUcontext ctx)
{
	CUcontext other;
	CUstream a, b;
	CUdeviceptr d, e;
	uint8_t *p;

	must(cuMemAlloc(&d, MAX));
	must(cuMemsetD8(d, 0x5a, MAX / 2));
	must(cuMemsetD8(d + MAX / 2, 0, MAX / 2));
	must(cuMemHostAlloc((void **)&p, MAX, 0));
	memset(p, 0, MAX);
	must(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
	must(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
	must(cuCtxSynchronize());
	must(cuMemcpyDtoHAsync(p, d, MAX / 2, a));
	must(cuMemcpyDtoHAsync(p + MAX / 2, d, 4096, b));
	/* In a's order behind the copy down; b's was issued later. */
	must(cuMemcpyHtoDAsync(d + MAX / 2, p, MAX / 2, a));
	must(cuStreamSynchronize(a));
	must(cuMemcpyDtoH(dst, d + MAX / 2, MAX / 2));
	memset(src, 0x5a, MAX / 2);
	ok(!memcmp(dst, src, MAX / 2), "a copy up waits for its own stream's copy down, another stream's behind it");

	must(cuCtxCreate(&other, NULL, 0, 0));
	must(cuMemAlloc(&e, MAX));
	must(cuMemcpyDtoHAsync(p, e, MAX, NULL));
	must(cuCtxDestroy(other));
	must(cuCtxSetCurrent(ctx));
	is_cu(cuMemcpyHtoD(d, p, MAX), CUDA_SUCCESS);
	must(cuMemFreeHost(p));
	must(cuStreamDestroy(a));
	must(cuStreamDestroy(b));
	must(cuMemFree(d));
}

static CUcontext context;
static CUdeviceptr gate;

static void *release(void *arg)
{
	CUstream s;

	(void)arg;
	must(cuCtxSetCurrent(context));
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuStreamWriteValue32(s, gate, 1, 0));
	must(cuStreamSynchronize(s));
	must(cuStreamDestroy(s));
	return NULL;
}

/* A copy down behind a wait does not hold the thread that ends the wait, which begins its calls when the copy's has returned. */
static void released_by_another(CUdeviceptr d, uint8_t *q, CUstream s)
{
	pthread_t t;

	must(cuCtxGetCurrent(&context));
	must(cuMemAlloc(&gate, 4));
	must(cuMemsetD32(gate, 0, 1));
	must(cuMemsetD8(d, 0x5c, 3 << 20));
	must(cuCtxSynchronize());
	memset(q, 0, 3 << 20);
	must(cuStreamWaitValue32(s, gate, 1, CU_STREAM_WAIT_VALUE_EQ));
	must(cuMemcpyDtoHAsync(q, d, 3 << 20, s));
	pthread_create(&t, NULL, release, NULL);
	pthread_join(t, NULL);
	must(cuStreamSynchronize(s));
	ok(q[0] == 0x5c && q[(3 << 20) - 1] == 0x5c, "a copy down behind a wait that another thread ends");
	must(cuMemFree(gate));
}

static atomic_bool opened;

static void *open_late(void *arg)
{
	for (int i = 0; i < 1000 && !atomic_load((atomic_bool *)arg); i++)
		usleep(10000);
	atomic_store(&opened, true);
	return release(NULL);
}

/* A copy up from where a copy down will put its bytes does not hold the thread, which may be the one that lets that run. */
static void up_behind_down(void)
{
	atomic_bool done = false;
	uint32_t *p, got[2] = {0};
	CUdeviceptr d;
	CUstream s, t;
	pthread_t th;

	must(cuCtxGetCurrent(&context));
	must(cuMemAlloc(&gate, 4));
	must(cuMemAlloc(&d, 4096));
	must(cuMemHostAlloc((void **)&p, 8192, 0));
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
	must(cuMemsetD32(gate, 0, 1));
	must(cuMemsetD32(d, 4711, 1));
	must(cuMemsetD32(d + 4, 0, 2));
	must(cuCtxSynchronize());
	p[0] = 1;
	p[1024] = 815;
	pthread_create(&th, NULL, open_late, &done);
	must(cuStreamWaitValue32(s, gate, 1, CU_STREAM_WAIT_VALUE_EQ));
	must(cuMemcpyDtoHAsync(p, d, 4, s));
	must(cuMemcpyHtoDAsync(d + 4, p, 4, s));
	must(cuMemcpyHtoDAsync(d + 8, p + 1024, 4, t));
	must(cuStreamSynchronize(t));
	ok(!atomic_load(&opened), "neither a copy up from there nor one from beside it waits for a copy down");
	must(cuMemcpyDtoHAsync(p + 1025, d + 8, 4, t));
	must(cuStreamSynchronize(t));
	is_int(p[1025], 815, "what lies beside it goes up at once");
	atomic_store(&done, true);
	pthread_join(th, NULL);
	must(cuStreamSynchronize(s));
	must(cuMemcpyDtoH(got, d, 8));
	ok(got[1] == 4711, "what came down went up: %u", got[1]);
	must(cuStreamDestroy(s));
	must(cuStreamDestroy(t));
	must(cuMemFreeHost(p));
	must(cuMemFree(d));
	must(cuMemFree(gate));
}

static void pinned(void)
{
	unsigned bad = 0, seed = 500;
	uint8_t *p, *q;
	CUdeviceptr d;
	CUstream s;

	must(cuMemAlloc(&d, MAX));
	must(cuMemHostAlloc((void **)&p, MAX, 0));
	must(cuMemHostAlloc((void **)&q, MAX, 0));
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		pattern(p, sizes[i], ++seed);
		memset(q, 0, sizes[i]);
		must(cuMemcpyHtoDAsync(d, p, sizes[i], s));
		must(cuMemcpyDtoHAsync(q, d, sizes[i], s));
		must(cuStreamSynchronize(s));
		bad += !!memcmp(p, q, sizes[i]);
		/* Synchronous: overwritten at once. */
		must(cuMemcpyHtoD(d, p, sizes[i]));
		memset(p, 0xee, sizes[i]);
		memset(q, 0, sizes[i]);
		must(cuMemcpyDtoH(q, d, sizes[i]));
		pattern(p, sizes[i], seed);
		bad += !!memcmp(p, q, sizes[i]);
	}
	is_int(bad, 0, "page-locked memory, asynchronous and not");
	/* What arrives in q is read by the next copy up, without a wait of the program. */
	pattern(p, MAX, 7);
	memset(q, 0, MAX);
	must(cuMemcpyHtoD(d, p, MAX));
	must(cuMemcpyDtoHAsync(q, d, MAX, s));
	must(cuMemcpyHtoDAsync(d, q + MAX / 2, MAX / 2, s));
	must(cuStreamSynchronize(s));
	must(cuMemcpyDtoH(dst, d, MAX / 2));
	ok(!memcmp(dst, p + MAX / 2, MAX / 2), "a copy up from where a copy down still arrives");
	must(cuMemcpyHtoDAsync(d, p, MAX, s));
	must(cuMemFreeHost(p)); /* waits for the copy, whatever its stream */
	must(cuMemcpyDtoH(dst, d, MAX));
	pattern(src, MAX, 7);
	ok(!memcmp(dst, src, MAX), "freed behind an asynchronous copy: it was whole");
	/* There for every stream once the call has returned: this one is in no order with the legacy stream. */
	bad = 0;
	for (uint32_t i = 1; i <= 500; i++) {
		must(cuMemcpyHtoD(d, &i, sizeof(i)));
		must(cuMemcpyDtoHAsync(q, d, sizeof(i), s));
		must(cuStreamSynchronize(s));
		bad += memcmp(q, &i, sizeof(i)) != 0;
	}
	is_int(bad, 0, "a synchronous copy up is there for a non-blocking stream, 500 times");
	released_by_another(d, q, s);
	must(cuMemFreeHost(q));
	must(cuStreamDestroy(s));
	must(cuMemFree(d));
}

static void device(CUcontext ctx)
{
	CUdeviceptr a, b;
	unsigned *w = (unsigned *)dst, bad = 0;
	int x = 5, y = 0;

	must(cuMemAlloc(&a, 1 << 20));
	must(cuMemAlloc(&b, 1 << 20));
	pattern(src, 1 << 20, 3);
	must(cuMemcpyHtoD(a, src, 1 << 20));
	is_cu(cuMemcpyDtoD(b + 100, a, 1000000), CUDA_SUCCESS);
	must(cuMemcpyDtoH(dst, b + 100, 1000000));
	ok(!memcmp(dst, src, 1000000), "on the device");
	is_cu(cuMemcpyDtoD(b + 100, a, 1 << 20), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemcpy(b, a, 1000), CUDA_SUCCESS);
	is_cu(cuMemcpy((CUdeviceptr)dst, b, 1000), CUDA_SUCCESS);
	ok(!memcmp(dst, src, 1000), "cuMemcpy finds out what its pointers are");
	is_cu(cuMemcpy((CUdeviceptr)&y, (CUdeviceptr)&x, sizeof(x)), CUDA_SUCCESS);
	is_int(y, 5, "from host to host, too");
	is_cu(cuMemcpy(a + (64 << 20), (CUdeviceptr)&x, 4), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemcpyAsync(b, (CUdeviceptr)src, 4096, NULL), CUDA_SUCCESS);
	is_cu(cuMemcpyAsync((CUdeviceptr)dst, b, 4096, NULL), CUDA_SUCCESS);
	ok(!memcmp(dst, src, 4096), "asynchronous to pageable memory: there on return");

	must(cuMemsetD8(a, 0x11, 1 << 20));
	must(cuMemsetD16(a + 1000, 0x2222, 500));
	must(cuMemsetD32(a + 4000, 0x33333333, 100));
	must(cuMemsetD2D8(a + 8192, 256, 0x44, 10, 3));
	must(cuMemsetD2D16(a + 16384, 256, 0x5555, 10, 3));
	must(cuMemsetD2D32(a + 32768, 256, 0x66666666, 10, 3));
	must(cuMemcpyDtoH(dst, a, 1 << 20));
	for (int i = 0; i < 1 << 20; i++) {
		uint8_t want = 0x11;

		if (i >= 1000 && i < 2000)
			want = 0x22;
		if (i >= 4000 && i < 4400)
			want = 0x33;
		if (i >= 8192 && i < 8192 + 768 && i % 256 < 10)
			want = 0x44;
		if (i >= 16384 && i < 16384 + 768 && i % 256 < 20)
			want = 0x55;
		if (i >= 32768 && i < 32768 + 768 && i % 256 < 40)
			want = 0x66;
		bad += dst[i] != want;
	}
	is_int(bad, 0, "fills, in one dimension and two");
	is_cu(cuMemsetD32(a, 0, (1 << 18) + 1), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemsetD2D8(a, 4, 0, 10, 3), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemsetD16(a + 1, 0, 4), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemsetD32(a + 2, 0, 4), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemsetD2D32(a, 42, 0, 10, 3), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuStreamQuery(NULL), CUDA_SUCCESS); /* and not once more with a later call */
	is_cu(cuMemsetD8Async(a, 0, SIZE_MAX, NULL), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemsetD8Async(a, 0, 0, NULL), CUDA_SUCCESS);
	is_cu(cuMemsetD32Async(a, 0x77777777, 4, (CUstream)0xdead), CUDA_ERROR_INVALID_HANDLE);
	is_cu(cuMemsetD32Async(a, 0x77777777, 4, CU_STREAM_PER_THREAD), CUDA_SUCCESS);
	must(cuStreamSynchronize(CU_STREAM_PER_THREAD));
	must(cuMemcpyDtoH(dst, a, 16));
	is_int(w[3], 0x77777777, "on the per-thread stream");
	/* Asynchronously, of every width, and to the same device by its context. */
	is_cu(cuMemsetD8Async(a, 0, 1024, NULL), CUDA_SUCCESS);
	is_cu(cuMemsetD16Async(a, 0x1234, 8, NULL), CUDA_SUCCESS);
	is_cu(cuMemsetD2D8Async(a + 256, 64, 0x21, 3, 2, NULL), CUDA_SUCCESS);
	is_cu(cuMemsetD2D16Async(a + 512, 64, 0x4321, 3, 2, NULL), CUDA_SUCCESS);
	is_cu(cuMemsetD2D32Async(a + 768, 64, 0x87654321, 3, 2, NULL), CUDA_SUCCESS);
	is_cu(cuMemcpyPeerAsync(b, ctx, a, ctx, 1024, NULL), CUDA_SUCCESS);
	must(cuMemcpyDtoH(dst, b, 1024));
	ok(dst[14] == 0x34 && dst[15] == 0x12 && !dst[16], "eight times two bytes");
	ok(dst[256 + 64 + 2] == 0x21 && !dst[256 + 64 + 3] && !dst[256 + 128], "two rows of three bytes");
	ok(dst[512 + 64 + 5] == 0x43 && !dst[512 + 64 + 6] && !dst[512 + 128], "two rows of three times two bytes");
	ok(dst[768 + 64 + 11] == 0x87 && !dst[768 + 64 + 12] && !dst[768 + 128], "two rows of three times four bytes");
	must(cuMemFree(a));
	must(cuMemFree(b));
}

/* A box of w × h × d bytes at (3, 2, 1) of pitched memory, up, across and down, against a loop. */
static void boxes(void)
{
	enum { P = 512, H = 20, D = 6, W = 100, HH = 7, DD = 3, HP = 130 };
	uint8_t *host = calloc(1, HP * HH * DD), *back = calloc(1, P * H * D), *want = calloc(1, P * H * D);
	CUDA_MEMCPY3D up = {.srcMemoryType = CU_MEMORYTYPE_HOST,
			    .srcHost = host,
			    .srcPitch = HP,
			    .srcHeight = HH,
			    .dstMemoryType = CU_MEMORYTYPE_DEVICE,
			    .dstPitch = P,
			    .dstHeight = H,
			    .dstXInBytes = 3,
			    .dstY = 2,
			    .dstZ = 1,
			    .WidthInBytes = W,
			    .Height = HH,
			    .Depth = DD};
	CUDA_MEMCPY3D across, down;
	CUDA_MEMCPY2D flat = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
			      .srcPitch = P,
			      .srcXInBytes = 3,
			      .srcY = 2 + H,
			      .dstMemoryType = CU_MEMORYTYPE_HOST,
			      .dstHost = back,
			      .dstPitch = W + 1,
			      .WidthInBytes = W,
			      .Height = HH};
	CUdeviceptr a, b;
	long before;
	int bad = 0;

	pattern(host, HP * HH * DD, 77);
	must(cuMemAlloc(&a, P * H * D));
	must(cuMemAlloc(&b, P * H * D));
	must(cuMemsetD8(a, 0, P * H * D));
	must(cuMemsetD8(b, 0, P * H * D));
	up.dstDevice = a;
	is_cu(cuMemcpy3D(&up), CUDA_SUCCESS);
	across = up;
	across.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
	across.srcHost = NULL;
	across.srcDevice = a;
	across.srcPitch = P;
	across.srcHeight = H;
	across.srcXInBytes = 3;
	across.srcY = 2;
	across.srcZ = 1;
	across.dstDevice = b;
	is_cu(cuMemcpy3DAsync(&across, NULL), CUDA_SUCCESS);
	must(cuMemcpyDtoH(back, b, P * H * D));
	for (int z = 0; z < DD; z++)
		for (int y = 0; y < HH; y++)
			memcpy(want + ((z + 1) * H + y + 2) * P + 3, host + (z * HH + y) * HP, W);
	ok(!memcmp(back, want, P * H * D), "a box goes up and across, and nothing beside it changes");
	down = across;
	down.srcDevice = b;
	down.dstMemoryType = CU_MEMORYTYPE_HOST;
	down.dstHost = back;
	memset(back, 0, P * H * D);
	is_cu(cuMemcpy3D(&down), CUDA_SUCCESS);
	ok(!memcmp(back, want, P * H * D), "and down");
	flat.srcDevice = b;
	before = rgpuRoundTrips(NULL);
	is_cu(cuMemcpy2D(&flat), CUDA_SUCCESS);
	is_int(rgpuRoundTrips(NULL), before + 1, "rows come down in one round trip");
	for (int y = 0; y < HH; y++)
		bad += !!memcmp(back + y * (W + 1), host + y * HP, W);
	is_int(bad, 0, "each where it belongs");
	flat.Height = H * D;
	is_cu(cuMemcpy2DUnaligned(&flat), CUDA_ERROR_INVALID_VALUE);
	flat.Height = 2;
	flat.srcPitch = W - 1;
	is_cu(cuMemcpy2DAsync(&flat, NULL), CUDA_ERROR_INVALID_VALUE);
	flat.srcMemoryType = CU_MEMORYTYPE_ARRAY;
	is_cu(cuMemcpy2D(&flat), CUDA_ERROR_INVALID_HANDLE);
	flat.Height = 0;
	flat.srcMemoryType = CU_MEMORYTYPE_DEVICE;
	is_cu(cuMemcpy2D(&flat), CUDA_SUCCESS);
	must(cuMemFree(a));
	must(cuMemFree(b));
	free(host);
	free(back);
	free(want);
}

/* 8 threads copy up and down, each its own pattern. */
static void *worker(void *arg)
{
	size_t n = 3000000, id = (size_t)arg;
	uint8_t *a = malloc(n), *b = malloc(n);
	CUcontext c;
	CUdeviceptr d;
	size_t bad = 0;

	bad += cuDevicePrimaryCtxRetain(&c, 0) || cuCtxSetCurrent(c) || cuMemAlloc(&d, n);
	for (int i = 0; i < 5 && !bad; i++) {
		pattern(a, n, id * 16 + i);
		bad += cuMemcpyHtoD(d, a, n) || cuMemcpyDtoH(b, d, n) || memcmp(a, b, n);
	}
	bad += cuMemFree(d) != 0;
	free(a);
	free(b);
	return (void *)bad;
}

static void threads(void)
{
	pthread_t t[8];
	size_t bad = 0;
	void *r;

	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < 8; i++)
			pthread_create(&t[i], NULL, worker, (void *)i);
		for (int i = 0; i < 8; i++) {
			pthread_join(t[i], &r);
			bad += (size_t)r;
		}
	}
	is_int(bad, 0, "eight threads at once, twice");
}

/* Page-locked memory is copied to when the stream comes there: nobody waits for what only later calls let go on. */
static void held_boxes(void)
{
	CUDA_MEMCPY2D rows = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
			      .srcPitch = 256,
			      .dstMemoryType = CU_MEMORYTYPE_HOST,
			      .dstPitch = 128,
			      .WidthInBytes = 100,
			      .Height = 50};
	CUstream s, other;
	CUdeviceptr flag;
	uint8_t *to;
	int bad = 0;

	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	must(cuMemAlloc(&flag, 16));
	must(cuMemAlloc(&rows.srcDevice, 256 * 50));
	must(cuMemAllocHost((void **)&to, 128 * 50));
	rows.dstHost = to;
	memset(to, 1, 128 * 50);
	must(cuMemsetD8(rows.srcDevice, 2, 256 * 50));
	must(cuMemsetD32(flag, 0, 1));
	must(cuCtxSynchronize());
	must(cuStreamWaitValue32(s, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
	must(cuMemsetD8Async(rows.srcDevice, 3, 256 * 50, s));
	alarm(60);
	is_cu(cuMemcpy2DAsync(&rows, s), CUDA_SUCCESS);
	is_cu(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
	must(cuStreamWriteValue32(other, flag, 1, 0));
	must(cuStreamSynchronize(s));
	alarm(0);
	for (int i = 0; i < 128 * 50; i++)
		bad += to[i] != (i % 128 < 100 ? 3 : 1);
	is_int(bad, 0, "rows come down into page-locked memory when their stream has come to them");
	must(cuMemFreeHost(to));
	must(cuMemFree(rows.srcDevice));
	must(cuMemFree(flag));
	must(cuStreamDestroy(s));
	must(cuStreamDestroy(other));
}

/* In a program that asked for half precision on the way, which is decided before it begins: a child. */
static void halves(void)
{
	enum { N = 64 << 10 };
	pid_t pid = fork();
	int status = -1;

	if (!pid) {
		float *f = malloc(N * sizeof(*f));
		unsigned bad = 0;
		CUdeviceptr d;

		setenv("RGPU_FP16_UPLOADS", "1", 1);
		for (int i = 0; i < N; i++)
			f[i] = 1 + (i % 1000) / 1024.f + 1e-5f; /* the last part has no room in eleven bits */
		primary();
		bad = cuMemAlloc(&d, N * sizeof(*f)) || cuMemsetD8(d, 0xff, N * sizeof(*f)) ||
		      cuMemcpyHtoD(d, f, N * sizeof(*f)) || cuMemcpyDtoH(f, d, N * sizeof(*f));
		for (int i = 0; i < N; i++)
			bad += f[i] != 1 + (i % 1000) / 1024.f;
		_exit(bad ? 1 : 0);
	}
	waitpid(pid, &status, 0);
	is_int(status, 0, "numbers that travelled as half precision are rounded to it");
}

int main(void)
{
	CUcontext ctx;
	long before;
	CUdeviceptr d;

	src = malloc(MAX);
	dst = malloc(MAX);
	serve(NULL, 1);
	halves();
	ctx = primary();
	pageable();
	pinned();
	pending(ctx);
	up_behind_down();
	device(ctx);
	boxes();
	held_boxes();
	threads();
	must(cuMemAlloc(&d, 4096));
	before = rgpuRoundTrips(NULL);
	for (int i = 0; i < 100; i++)
		must(cuMemcpyHtoD(d, src, 4096));
	is_int(rgpuRoundTrips(NULL), before, "a hundred small copies up: no round trip");
	is_cu(cuCtxSynchronize(), CUDA_SUCCESS);
	return tap_done();
}
