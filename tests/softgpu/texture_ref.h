/* SPDX-License-Identifier: MIT */
/* Texture fetching once more, written from the programming guide's appendix, and the comparison with it. */
#ifndef TESTS_SOFTGPU_TEXTURE_REF_H
#define TESTS_SOFTGPU_TEXTURE_REF_H

#include "tests/softgpu/texture.h"

/* One axis is a list of texels with weights. */

struct taps {
	int index[2]; /* −1: the border */
	double weight[2];
};

static int clampi(int v, int lo, int hi)
{
	return v < lo ? lo : v > hi ? hi : v;
}

static struct taps axis(double x, int size, CUaddress_mode mode, bool normalized, bool linear)
{
	struct taps t = {{0, 0}, {1, 0}};
	int i;

	if (isnan(x))
		x = 0;
	if (!normalized && (mode == CU_TR_ADDRESS_MODE_WRAP || mode == CU_TR_ADDRESS_MODE_MIRROR))
		mode = CU_TR_ADDRESS_MODE_CLAMP;
	if (mode == CU_TR_ADDRESS_MODE_WRAP)
		x = isinf(x) ? 0 : x - floor(x);
	else if (mode == CU_TR_ADDRESS_MODE_MIRROR)
		x = isinf(x) ? 0 : fmod(floor(x), 2) != 0 ? 1 - (x - floor(x)) : x - floor(x);
	if (normalized)
		x *= size;
	if (mode == CU_TR_ADDRESS_MODE_CLAMP)
		x = x < 0 ? 0 : x > size ? size : x;
	else
		x = x < -10 ? -10 : x > size + 10 ? size + 10 : x;
	if (linear) {
		double b = floor((x - 0.5) * 256 + 0.5) / 256;

		i = (int)floor(b);
		t.weight[1] = b - i;
		t.weight[0] = 1 - t.weight[1];
	} else {
		i = (int)floor(x);
	}
	for (int k = 0; k < 2; k++) {
		int j = i + k;

		if (mode == CU_TR_ADDRESS_MODE_BORDER)
			j = j < 0 || j >= size ? -1 : j;
		else if (mode == CU_TR_ADDRESS_MODE_WRAP)
			j = (j + size) % size;
		else
			j = clampi(j, 0, size - 1); /* mirrored neighbours of the edge are the edge */
		t.index[k] = j;
	}
	return t;
}

struct image {
	int w, h, d;	     /* 1 where there is none */
	const float *texels; /* 4 channels */
	float border[4];
};

static void reference(const struct image *im, const CUDA_TEXTURE_DESC *d, const double x[3], int dims, float out[4])
{
	const int size[3] = {im->w, im->h, im->d};
	struct taps t[3] = {{{0, 0}, {1, 0}}, {{0, 0}, {1, 0}}, {{0, 0}, {1, 0}}};
	bool norm = d->flags & CU_TRSF_NORMALIZED_COORDINATES, linear = d->filterMode == CU_TR_FILTER_MODE_LINEAR;

	for (int k = 0; k < dims; k++)
		t[k] = axis(x[k], size[k], d->addressMode[k], norm, linear);
	for (int ch = 0; ch < 4; ch++) {
		double sum = 0;

		for (int c = 0; c < 8; c++) {
			int i = t[0].index[c & 1], j = t[1].index[c >> 1 & 1], k = t[2].index[c >> 2];
			double w = t[0].weight[c & 1] * t[1].weight[c >> 1 & 1] * t[2].weight[c >> 2];

			if (w != 0)
				sum += w * (i < 0 || j < 0 || k < 0
						    ? (double)im->border[ch]
						    : (double)im->texels[(((size_t)k * im->h + j) * im->w + i) * 4 + ch]);
		}
		out[ch] = (float)sum;
	}
}

/* One test: all fetches of at[] through @kernel are the reference's. */
static void compare(const char *kernel, CUtexObject t, const struct image *im, const CUDA_TEXTURE_DESC *d, int dims,
		    const char *what)
{
	int bad = 0;

	launch(kernel, t);
	for (int i = 0; i < n; i++) {
		float want[4];

		reference(im, d, (double[3]){at[i].x, at[i].y, at[i].z}, dims, want);
		for (int ch = 0; ch < 4; ch++)
			if (!near(got[i][ch], want[ch]) && bad++ < 3)
				printf("# at (%g, %g, %g) channel %d: got %.9g, want %.9g\n", at[i].x, at[i].y, at[i].z, ch,
				       got[i][ch], want[ch]);
	}
	is_int(bad, 0, "%s", what);
}

/* Inside, on texels' borders and centres, at the weights' steps, outside, far outside, and what is no number. */
static void choose(int w, int h, int d, bool normalized)
{
	static const float part[] = {0, 0.25f, 0.5f, 0.501f, 0.5019f, 0.5021f, 0.998f, 0.9999f};
	static const float odd[] = {-0.001f, -0.5f, -1, -1.25f, -3.75f, 1e6f, -1e6f, 1e30f, INFINITY, -INFINITY, NAN};
	float sx = normalized ? 1.0f / (float)w : 1, sy = normalized ? 1.0f / (float)h : 1, sz = normalized ? 1.0f / (float)d : 1;

	n = 0;
	for (int i = -2 * w; i < 3 * w; i++)
		for (size_t p = 0; p < sizeof(part) / sizeof(part[0]); p++)
			add(((float)i + part[p]) * sx, ((float)(i * 3 % (2 * h)) + part[7 - p]) * sy,
			    ((float)(i % (2 * d)) + part[(p + 3) % 8]) * sz);
	for (size_t k = 0; k < sizeof(odd) / sizeof(odd[0]); k++) {
		add(odd[k], 0.5f, 0.5f);
		add(0.5f, odd[k], 0.5f);
		add(0.5f, 0.5f, odd[k]);
	}
}

#endif
