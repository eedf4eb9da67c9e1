/* SPDX-License-Identifier: MIT */
/* What of single precision is left that travelled as half: half exact|rounded; it copies up, from pageable and page-locked
 * memory. */
#include <cuda.h>
#include <math.h>
#include <stdbool.h>
#include "tests/e2e/e2e.h"

#define N (300 << 10)

/* To nearest, ties to even, by the definition: no conversion of the compiler's or the processor's. */
static float as_half(float f)
{
	double a = fabs((double)f), unit, r;
	int e;

	if (isnan(f) || isinf(f) || f == 0)
		return f;
	frexp(a, &e); /* a = m × 2^e, ½ ≤ m < 1 */
	unit = ldexp(1, (e < -13 ? -13 : e) - 11);
	r = nearbyint(a / unit) * unit; /* the default mode is to nearest, ties to even */
	if (r >= 65520)
		r = INFINITY;
	return copysign(r, f);
}

static float number(uint32_t i)
{
	static const float edges[] = {0,
				      -0.0f,
				      1,
				      -1,
				      65504,
				      65519.996f,
				      65520,
				      -65520,
				      70000,
				      -1e30f,
				      INFINITY,
				      -INFINITY,
				      NAN,
				      1e-8f,
				      2.9802322e-8f,
				      2.9802326e-8f,
				      5.9604645e-8f,
				      6.1035156e-5f,
				      6.097e-5f,
				      2049,
				      2051,
				      1.00048828125f,
				      1.00146484375f,
				      0.1f,
				      3.14159265f,
				      -2.71828f};
	uint32_t seed = i, bits;
	float f;

	if (i % 64 < sizeof(edges) / sizeof(*edges))
		return edges[i % 64];
	bits = e2e_next(&seed) * 2654435761u;
	bits = (bits & 0x807fffff) | (100 + bits % 50) << 23; /* 2^-27 to 2^22 */
	memcpy(&f, &bits, sizeof(f));
	return f;
}

static bool same(float a, float b)
{
	return (isnan(a) && isnan(b)) || !memcmp(&a, &b, sizeof(a));
}

static void copy(const float *data, size_t n, bool rounded, bool async, const char *what)
{
	float *back = malloc(n * sizeof(*back));
	CUdeviceptr addr;

	DR(cuMemAlloc(&addr, n * sizeof(*data)));
	if (async)
		DR(cuMemcpyHtoDAsync(addr, data, n * sizeof(*data), NULL));
	else
		DR(cuMemcpyHtoD(addr, data, n * sizeof(*data)));
	DR(cuMemcpyDtoH(back, addr, n * sizeof(*data)));
	for (size_t i = 0; i < n; i++)
		if (!same(back[i], rounded ? as_half(data[i]) : data[i]))
			die("%s: number %zu, %.9g, is %.9g there and not %.9g", what, i, data[i], back[i],
			    rounded ? as_half(data[i]) : data[i]);
	DR(cuMemFree(addr));
	free(back);
}

int main(int argc, char **argv)
{
	bool rounded = argc > 1 && !strcmp(argv[1], "rounded");
	float *data, *pinned;
	CUcontext ctx;
	CUdevice dev;

	DR(cuInit(0));
	DR(cuDeviceGet(&dev, 0));
	DR(cuDevicePrimaryCtxRetain(&ctx, dev));
	DR(cuCtxSetCurrent(ctx));
	data = malloc(N * sizeof(*data));
	DR(cuMemHostAlloc((void **)&pinned, N * sizeof(*data), 0));
	for (uint32_t i = 0; i < N; i++)
		pinned[i] = data[i] = number(i);
	copy(data, N, rounded, false, "pageable");
	copy(data, N - 3, rounded, true, "pageable, asynchronous");
	copy(pinned, N, rounded, true, "page-locked");
	/* 32 KiB are as they are, whoever asks. */
	copy(data, 8192, false, false, "a short copy");
	DR(cuMemFreeHost(pinned));
	DR(cuDevicePrimaryCtxRelease(dev));
	printf("half: %d numbers are %s\n", N, rounded ? "rounded" : "as they were");
	return 0;
}
