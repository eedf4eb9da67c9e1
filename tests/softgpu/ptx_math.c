/* SPDX-License-Identifier: MIT */
/* nvcc's math functions on the PTX engine (ptx_math.cu) against libm, within the errors that CUDA documents. */
#include <float.h>
#include <math.h>

#include "tests/softgpu/test_arena.h"
#include "tests/tap.h"

enum { N = 2000 };

static struct ptx_module *m;

static const double edges[] = {0,	 -0.0,	1,    -1,    0.5,   2,	      3.14159265358979, 100000,
			       -77777.7, 1e-10, 1e30, -1e30, 1e-40, INFINITY, -INFINITY,	NAN};

static double argument(int i)
{
	if (i < 256)
		return i < 16 ? edges[i] : edges[i / 16];
	return (i % 997 - 400) * 0.0317 * (i % 3 ? 1 : 37);
}

static double second(int i)
{
	return i < 256 ? edges[i % 16] : (i % 89 - 40) * 0.21;
}

static void launch(const char *name, void *x, void *y, void *o)
{
	struct {
		void *x, *y, *o;
		int n;
	} p = {x, y, o, N};
	struct ptx_func *f = ptx_module_kernel(m, name);

	if (!f || test_launch(f, (N + 127) / 128, 128, &p) != PTX_OK) {
		printf("# %s: %s\n", name, f ? test_fault.text : "no such kernel");
		memset(o, 0x55, N * sizeof(float));
	}
}

/* Within @tolerance relative, absolute near zero; NaN and infinities where C has them. */
static bool close_to(double got, double want, double tolerance, double tiny)
{
	if (isnan(want) || isinf(want))
		return isnan(want) ? isnan(got) : got == want;
	return fabs(got - want) <= tolerance * fabs(want) + tiny;
}

#define CHECK(T, name, tolerance, tiny, expr)                                                                                    \
	do {                                                                                                                     \
		int bad_ = 0;                                                                                                    \
		launch(#T "_" #name, x_##T, y_##T, o_##T);                                                                       \
		for (int i = 0; i < N; i++) {                                                                                    \
			T x = x_##T[i], y = y_##T[i], want = (expr);                                                             \
			(void)x, (void)y;                                                                                        \
			if (!close_to((double)o_##T[i], (double)want, tolerance, tiny) && bad_++ < 3)                            \
				printf("# " #name "(%g, %g) = %.17g, want %.17g\n", (double)x, (double)y, (double)o_##T[i],      \
				       (double)want);                                                                            \
		}                                                                                                                \
		ok(!bad_, #name);                                                                                                \
	} while (0);

int main(int argc, char **argv)
{
	float *x_float, *y_float, *o_float;
	double *x_double, *y_double, *o_double;
	char *text;
	int bad = 0;

	(void)argc;
	m = test_module_beside(argv[0], &text);
	x_float = test_alloc(N * 4);
	y_float = test_alloc(N * 4);
	o_float = test_alloc(N * 4);
	x_double = test_alloc(N * 8);
	y_double = test_alloc(N * 8);
	o_double = test_alloc(N * 8);
	for (int i = 0; i < N; i++) {
		x_float[i] = (float)(x_double[i] = argument(i));
		y_float[i] = (float)(y_double[i] = second(i));
	}
	/* CUDA documents up to 9 ulp for pow and tgamma, 1 to 4 for most; libm itself has one or two. */
#define TOLERANCE_float	 12 * FLT_EPSILON
#define TOLERANCE_double 12 * DBL_EPSILON
#define TINY_float	 3e-7
#define TINY_double	 1e-15
#define F1(T, name)	 CHECK(T, name, TOLERANCE_##T, TINY_##T, name(x))
#define F2(T, name)	 CHECK(T, name, TOLERANCE_##T, TINY_##T, name(x, y))
#include "tests/softgpu/ptx_math.def"
	launch("half_exp", x_float, y_float, o_float);
	for (int i = 256; i < N; i++) {
		double want = exp((double)x_float[i]) + 2 * (double)y_float[i];

		bad += fabs(x_float[i]) < 8 && !close_to((double)o_float[i], want, 0.01, 0.02);
	}
	ok(!bad, "half precision exp");
	ptx_module_free(m);
	free(text);
	return tap_done();
}
