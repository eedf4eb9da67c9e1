// SPDX-License-Identifier: MIT
// Kernels of drv_texture.c: each lane fetches at coordinates that the test chose.
struct at {
	float x, y, z, lod;
	int layer;
};

#define EACH(name, T, expr)                                                                                                      \
	extern "C" __global__ void name(cudaTextureObject_t t, const at *c, T *out, int n)                                       \
	{                                                                                                                        \
		int i = blockIdx.x * blockDim.x + threadIdx.x;                                                                   \
		if (i < n)                                                                                                       \
			out[i] = expr;                                                                                           \
	}

EACH(fetch_1d, float4, tex1D<float4>(t, c[i].x))
EACH(fetch_1d_int, float4, tex1Dfetch<float4>(t, (int)c[i].x))
EACH(fetch_1d_layer, float4, tex1DLayered<float4>(t, c[i].x, c[i].layer))
EACH(fetch_2d, float4, tex2D<float4>(t, c[i].x, c[i].y))
EACH(fetch_2d_raw, int4, tex2D<int4>(t, c[i].x, c[i].y))
EACH(fetch_2d_lod, float4, tex2DLod<float4>(t, c[i].x, c[i].y, c[i].lod))
EACH(fetch_2d_grad, float4, tex2DGrad<float4>(t, c[i].x, c[i].y, make_float2(c[i].z, 0), make_float2(0, c[i].lod)))
EACH(fetch_2d_layer, float4, tex2DLayered<float4>(t, c[i].x, c[i].y, c[i].layer))
EACH(fetch_3d, float4, tex3D<float4>(t, c[i].x, c[i].y, c[i].z))
EACH(fetch_cube, float4, texCubemap<float4>(t, c[i].x, c[i].y, c[i].z))
EACH(fetch_cube_layer, float4, texCubemapLayered<float4>(t, c[i].x, c[i].y, c[i].z, c[i].layer))
EACH(gather, float4, tex2Dgather<float4>(t, c[i].x, c[i].y, 1))

// The lanes of a warp with objects, levels and branches of their own.
extern "C" __global__ void fetch_mixed(cudaTextureObject_t t, cudaTextureObject_t u, const at *c, float4 *out, int n)
{
	int i = threadIdx.x;

	if (i >= n || i % 3 == 2)
		return;
	out[i] = tex2DLod<float4>(i & 1 ? u : t, c[i].x, c[i].y, c[i].lod);
}

// Forms that CUDA C++ has no name for.
extern "C" __global__ void fetch_2d_offset(cudaTextureObject_t t, const at *c, float4 *out, int n)
{
	int i = threadIdx.x;
	float4 v;

	if (i >= n)
		return;
	asm("tex.2d.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5, %6}], {%7, %8};"
	    : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
	    : "l"(t), "f"(c[i].x), "f"(c[i].y), "r"(1), "r"(c[i].layer));
	out[i] = v;
}

extern "C" __global__ void fetch_2d_half(cudaTextureObject_t t, const at *c, uint2 *out, int n)
{
	int i = threadIdx.x;

	if (i < n)
		asm("tex.2d.v2.f16x2.f32 {%0, %1}, [%2, {%3, %4}];"
		    : "=r"(out[i].x), "=r"(out[i].y)
		    : "l"(t), "f"(c[i].x), "f"(c[i].y));
}

extern "C" __global__ void query(cudaTextureObject_t t, unsigned int *out)
{
	asm("txq.width.b32 %0, [%1];" : "=r"(out[0]) : "l"(t));
	asm("txq.height.b32 %0, [%1];" : "=r"(out[1]) : "l"(t));
	asm("txq.depth.b32 %0, [%1];" : "=r"(out[2]) : "l"(t));
	asm("txq.array_size.b32 %0, [%1];" : "=r"(out[3]) : "l"(t));
	asm("txq.num_mipmap_levels.b32 %0, [%1];" : "=r"(out[4]) : "l"(t));
	asm("txq.level.width.b32 %0, [%1], 1;" : "=r"(out[5]) : "l"(t));
	asm("suq.width.b32 %0, [%1];" : "=r"(out[6]) : "l"(t));
}

// Reads (x, y) in bytes and writes it one row further down, in each mode.
extern "C" __global__ void surf_modes(cudaSurfaceObject_t s, const int2 *at, unsigned int *out, int n)
{
	int i = threadIdx.x;

	if (i >= n)
		return;
	out[i] = surf2Dread<unsigned int>(s, at[i].x, at[i].y, cudaBoundaryModeClamp);
	out[i + n] = surf2Dread<unsigned int>(s, at[i].x, at[i].y, cudaBoundaryModeZero);
	surf2Dwrite(0xabcd0000u + i, s, at[i].x, at[i].y + 100, cudaBoundaryModeZero);
}

extern "C" __global__ void surf_trap(cudaSurfaceObject_t s, int x, int y, unsigned int *out)
{
	*out = surf2Dread<unsigned int>(s, x, y);
}

extern "C" __global__ void surf_3d(cudaSurfaceObject_t s, int w, int h)
{
	int x = threadIdx.x, y = threadIdx.y, z = threadIdx.z;
	ushort2 v;

	if (x < w && y < h) {
		surf3Dread(&v, s, x * 4, y, z);
		v.x += 1, v.y = (unsigned short)(x + 10 * y + 100 * z);
		surf3Dwrite(v, s, x * 4, y, z);
	}
}

extern "C" __global__ void surf_layer(cudaSurfaceObject_t s, int layer)
{
	surf2DLayeredwrite((unsigned char)(threadIdx.x + 10 * threadIdx.y), s, threadIdx.x, threadIdx.y, layer);
}

extern "C" __global__ void surf_add(cudaSurfaceObject_t s)
{
	asm volatile("sured.b.add.2d.u32.trap [%0, {%1, %2}], %3;" ::"l"(s), "r"(4), "r"(1), "r"(threadIdx.x) : "memory");
	asm volatile("sured.b.max.2d.s32.trap [%0, {%1, %2}], %3;" ::"l"(s), "r"(8), "r"(1), "r"((int)threadIdx.x - 5) : "memory");
}

extern "C" __global__ void surf_format(cudaSurfaceObject_t s)
{
	asm volatile("sust.p.2d.v4.f32.trap [%0, {%1, %2}], {%3, %4, %5, %6};" ::"l"(s), "r"(1), "r"(0), "f"(0.5f), "f"(2.0f), "f"(-1.0f),
		     "f"(1.0f)
		     : "memory");
}
