// SPDX-License-Identifier: MIT
// Arrays, textures and surfaces with the runtime: each kind of resource once, filled, fetched or written, and compared.
#include <math.h>
#include "tests/e2e/e2e.h"

#define W 32
#define H 16
#define D 4

static float *dout;

template <class F> __global__ void each(float *out, F f)
{
	int x = threadIdx.x, y = blockIdx.x, z = blockIdx.y;

	out[(z * gridDim.x + y) * W + x] = f(x, y, z);
}

/* Runs f for each x, y, z and compares it with want. */
template <class F, class G> static void check(const char *what, int h, int d, F f, G want)
{
	static float out[W * H * D];

	each<<<dim3(h, d), W>>>(dout, f);
	RT(cudaMemcpy(out, dout, sizeof(float) * W * h * d, cudaMemcpyDeviceToHost));
	for (int z = 0; z < d; z++)
		for (int y = 0; y < h; y++)
			for (int x = 0; x < W; x++) {
				float w = want(x, y, z), g = out[(z * h + y) * W + x];

				if (!(fabsf(g - w) <= 1e-5f))
					die("%s at (%d, %d, %d): %g instead of %g", what, x, y, z, g, w);
			}
}

static float value(int x, int y, int z)
{
	return (float)((x * 7 + y * 13 + z * 29) % 64);
}

static cudaTextureObject_t texture_of(const cudaResourceDesc &r, cudaTextureFilterMode filter, bool norm,
				      cudaTextureReadMode mode)
{
	cudaTextureObject_t t;
	cudaTextureDesc d = {};

	d.addressMode[0] = d.addressMode[1] = d.addressMode[2] = norm ? cudaAddressModeWrap : cudaAddressModeClamp;
	d.filterMode = filter;
	d.readMode = mode;
	d.normalizedCoords = norm;
	d.maxMipmapLevelClamp = 16;
	RT(cudaCreateTextureObject(&t, &r, &d, NULL));
	return t;
}

static cudaResourceDesc of_array(cudaArray_t a)
{
	cudaResourceDesc r = {};

	r.resType = cudaResourceTypeArray;
	r.res.array.array = a;
	return r;
}

static void two_dimensions(const float *host)
{
	cudaChannelFormatDesc f = cudaCreateChannelDesc<float>(), g;
	cudaArray_t a, b;
	cudaExtent e;
	unsigned int flags;
	float back[W * H], line[W * 2];
	cudaTextureDesc d;
	cudaResourceDesc r;

	RT(cudaMallocArray(&a, &f, W, H));
	RT(cudaMallocArray(&b, &f, W, H));
	RT(cudaMemcpy2DToArray(a, 0, 0, host, W * 4, W * 4, H, cudaMemcpyHostToDevice));
	RT(cudaArrayGetInfo(&g, &e, &flags, a));
	if (g.x != 32 || g.y || g.f != cudaChannelFormatKindFloat || e.width != W || e.height != H || e.depth || flags)
		die("cudaArrayGetInfo tells another array");
	cudaTextureObject_t t = texture_of(of_array(a), cudaFilterModeLinear, false, cudaReadModeElementType);
	check(
		"a quarter between texels", H - 1, 1,
		[t] __device__(int x, int y, int z) { return tex2D<float>(t, x + 0.75f, y + 1.0f); },
		[](int x, int y, int z) {
			int x1 = x + 1 < W ? x + 1 : x;

			return 0.375f * (value(x, y, 0) + value(x, y + 1, 0)) + 0.125f * (value(x1, y, 0) + value(x1, y + 1, 0));
		});
	RT(cudaGetTextureObjectResourceDesc(&r, t));
	if (r.resType != cudaResourceTypeArray || r.res.array.array != a)
		die("the texture's array is another one");
	RT(cudaGetTextureObjectTextureDesc(&d, t));
	if (d.filterMode != cudaFilterModeLinear || d.addressMode[1] != cudaAddressModeClamp || d.normalizedCoords ||
	    d.readMode != cudaReadModeElementType || d.maxMipmapLevelClamp != 16)
		die("the texture's sampler is another one");
	RT(cudaDestroyTextureObject(t));
	if (cudaGetTextureObjectResourceDesc(&r, t) != cudaErrorInvalidValue ||
	    cudaArrayGetPlane(&b, a, 0) != cudaErrorInvalidValue)
		die("a texture that is gone, or a plane of none, was found");
	cudaGetLastError();
	t = texture_of(of_array(a), cudaFilterModePoint, true, cudaReadModeElementType);
	check(
		"wrapping", H, 1,
		[t] __device__(int x, int y, int z) { return tex2D<float>(t, (x + 0.5f) / W + 3, (y + 0.5f) / H - 2); }, value);
	RT(cudaDestroyTextureObject(t));
	RT(cudaMemcpy2DArrayToArray(b, 0, 0, a, 0, 0, W * 4, H));
	RT(cudaMemcpy2DFromArray(back, W * 4, b, 0, 0, W * 4, H, cudaMemcpyDefault));
	if (memcmp(back, host, sizeof(back)))
		die("what came back from the array is something else");
	/* A line that goes on in the next row. */
	RT(cudaMemcpyToArray(b, 16, 1, host, sizeof(line), cudaMemcpyHostToDevice));
	RT(cudaMemcpyFromArray(line, b, 16, 1, sizeof(line), cudaMemcpyDeviceToHost));
	RT(cudaMemcpy2DFromArray(back, W * 4, b, 0, 0, W * 4, H, cudaMemcpyDeviceToHost));
	if (memcmp(line, host, sizeof(line)) || memcmp(back + W + 4, host, sizeof(line)) || back[W + 3] != host[W + 3])
		die("lines over the end of a row");
	if (cudaMemcpy2DToArray(a, 4, 0, host, W * 4, W * 4, H, cudaMemcpyHostToDevice) != cudaErrorInvalidValue ||
	    cudaMemcpy2DToArray(a, 0, 0, host, W * 4, W * 4, H, cudaMemcpyDeviceToHost) != cudaErrorInvalidMemcpyDirection)
		die("a copy beyond the array, or in no direction, was not refused");
	cudaGetLastError();
	RT(cudaFreeArray(a));
	RT(cudaFreeArray(b));
}

static void three_dimensions(const float *host, unsigned int flags)
{
	cudaChannelFormatDesc f = cudaCreateChannelDesc<float>();
	cudaMemcpy3DParms p = {};
	cudaStream_t s;
	cudaArray_t a;

	RT(cudaStreamCreate(&s));
	RT(cudaMalloc3DArray(&a, &f, make_cudaExtent(W, H, D), flags));
	p.srcPtr = make_cudaPitchedPtr((void *)host, W * 4, W, H);
	p.dstArray = a;
	p.extent = make_cudaExtent(W, H, D);
	p.kind = cudaMemcpyHostToDevice;
	RT(cudaMemcpy3DAsync(&p, s));
	RT(cudaStreamSynchronize(s));
	cudaTextureObject_t t = texture_of(of_array(a), cudaFilterModePoint, false, cudaReadModeElementType);
	if (flags)
		check(
			"layers", H, D,
			[t] __device__(int x, int y, int z) { return tex2DLayered<float>(t, x + 0.5f, y + 0.5f, z); }, value);
	else
		check(
			"three dimensions", H, D,
			[t] __device__(int x, int y, int z) { return tex3D<float>(t, x + 0.5f, y + 0.5f, z + 0.5f); }, value);
	RT(cudaDestroyTextureObject(t));
	// From the array's middle into pitched memory, as between devices.
	cudaMemcpy3DPeerParms q = {};
	float part[8 * 4 * 2], *mem;
	size_t pitch;

	RT(cudaMallocPitch(&mem, &pitch, 8 * 4, 4 * 2));
	q.srcArray = a;
	q.srcPos = make_cudaPos(5, 6, 1);
	q.dstPtr = make_cudaPitchedPtr(mem, pitch, 8 * 4, 4);
	q.extent = make_cudaExtent(8, 4, 2);
	RT(cudaMemcpy3DPeer(&q));
	RT(cudaMemcpy2D(part, 8 * 4, mem, pitch, 8 * 4, 4 * 2, cudaMemcpyDeviceToHost));
	for (int i = 0; i < 8 * 4 * 2; i++)
		if (part[i] != value(5 + i % 8, 6 + i / 8 % 4, 1 + i / 32))
			die("element %d of a box from the middle: %g", i, part[i]);
	RT(cudaFree(mem));
	RT(cudaFreeArray(a));
	RT(cudaStreamDestroy(s));
}

static void bytes(void)
{
	cudaChannelFormatDesc f = cudaCreateChannelDesc<uchar4>();
	uchar4 host[W * H];
	cudaArray_t a;

	for (int i = 0; i < W * H; i++)
		host[i] = make_uchar4(i, 2 * i, 3 * i, 255 - i);
	RT(cudaMallocArray(&a, &f, W, H));
	RT(cudaMemcpy2DToArray(a, 0, 0, host, W * 4, W * 4, H, cudaMemcpyHostToDevice));
	cudaTextureObject_t t = texture_of(of_array(a), cudaFilterModePoint, false, cudaReadModeNormalizedFloat);
	check(
		"bytes as floats", H, 1,
		[t] __device__(int x, int y, int z) {
			float4 v = tex2D<float4>(t, x, y);

			return v.x + v.w;
		},
		[](int x, int y, int z) { return 1.0f; });
	RT(cudaDestroyTextureObject(t));
	t = texture_of(of_array(a), cudaFilterModePoint, false, cudaReadModeElementType);
	check(
		"bytes", H, 1, [t] __device__(int x, int y, int z) { return (float)tex2D<uchar4>(t, x, y).y; },
		[](int x, int y, int z) { return (float)(2 * (y * W + x) % 256); });
	RT(cudaDestroyTextureObject(t));
	RT(cudaFreeArray(a));
}

static void linear_memory(const float *host)
{
	cudaResourceDesc r = {};
	float *p;
	size_t pitch;

	RT(cudaMallocPitch(&p, &pitch, W * 4, H));
	RT(cudaMemcpy2D(p, pitch, host, W * 4, W * 4, H, cudaMemcpyHostToDevice));
	r.resType = cudaResourceTypePitch2D;
	r.res.pitch2D.devPtr = p;
	r.res.pitch2D.desc = cudaCreateChannelDesc<float>();
	r.res.pitch2D.width = W;
	r.res.pitch2D.height = H;
	r.res.pitch2D.pitchInBytes = pitch;
	cudaTextureObject_t t = texture_of(r, cudaFilterModePoint, false, cudaReadModeElementType);
	check(
		"pitched memory", H, 1, [t] __device__(int x, int y, int z) { return tex2D<float>(t, x + 0.5f, y + 0.5f); },
		value);
	RT(cudaDestroyTextureObject(t));
	r = {};
	r.resType = cudaResourceTypeLinear;
	r.res.linear.devPtr = p;
	r.res.linear.desc = cudaCreateChannelDesc<float>();
	r.res.linear.sizeInBytes = (W - 1) * 4;
	t = texture_of(r, cudaFilterModePoint, false, cudaReadModeElementType);
	check(
		"linear memory", 1, 1, [t] __device__(int x, int y, int z) { return tex1Dfetch<float>(t, x); },
		[](int x, int y, int z) { return x < W - 1 ? value(x, 0, 0) : 0; });
	RT(cudaDestroyTextureObject(t));
	RT(cudaFree(p));
}

static void mipmap(const float *host)
{
	cudaChannelFormatDesc f = cudaCreateChannelDesc<float>();
	cudaResourceDesc r = {};
	cudaMipmappedArray_t m;

	RT(cudaMallocMipmappedArray(&m, &f, make_cudaExtent(W, H, 0), 3));
	for (int l = 0; l < 3; l++) {
		float level[W * H];
		cudaArray_t a;

		for (int i = 0; i < W * H; i++)
			level[i] = 8 * l;
		RT(cudaGetMipmappedArrayLevel(&a, m, l));
		RT(cudaMemcpy2DToArray(a, 0, 0, level, (W >> l) * 4, (W >> l) * 4, H >> l, cudaMemcpyHostToDevice));
	}
	r.resType = cudaResourceTypeMipmappedArray;
	r.res.mipmap.mipmap = m;
	cudaTextureObject_t t = texture_of(r, cudaFilterModePoint, true, cudaReadModeElementType);
	check(
		"levels", 1, 1, [t] __device__(int x, int y, int z) { return tex2DLod<float>(t, 0.5f, 0.5f, x % 3); },
		[](int x, int y, int z) { return 8.0f * (x % 3); });
	RT(cudaDestroyTextureObject(t));
	RT(cudaFreeMipmappedArray(m));
}

__global__ void paint(cudaSurfaceObject_t s)
{
	surf2Dwrite((float)(threadIdx.x * 100 + blockIdx.x), s, threadIdx.x * 4, blockIdx.x);
}

static void surface(void)
{
	cudaChannelFormatDesc f = cudaCreateChannelDesc<float>();
	cudaSurfaceObject_t s;
	cudaArray_t a;

	RT(cudaMallocArray(&a, &f, W, H, cudaArraySurfaceLoadStore));
	cudaResourceDesc r = of_array(a);
	RT(cudaCreateSurfaceObject(&s, &r));
	paint<<<H, W>>>(s);
	RT(cudaDestroySurfaceObject(s));
	cudaTextureObject_t t = texture_of(r, cudaFilterModePoint, false, cudaReadModeElementType);
	check(
		"what a surface was given", H, 1, [t] __device__(int x, int y, int z) { return tex2D<float>(t, x, y); },
		[](int x, int y, int z) { return (float)(x * 100 + y); });
	RT(cudaDestroyTextureObject(t));
	RT(cudaFreeArray(a));
}

int main(void)
{
	static float host[W * H * D];

	for (int i = 0; i < W * H * D; i++)
		host[i] = value(i % W, i / W % H, i / (W * H));
	RT(cudaMalloc(&dout, sizeof(host)));
	two_dimensions(host);
	three_dimensions(host, 0);
	three_dimensions(host, cudaArrayLayered);
	bytes();
	linear_memory(host);
	mipmap(host);
	surface();
	RT(cudaFree(dout));
	puts("texture: ok");
	return 0;
}
