// SPDX-License-Identifier: MIT
// CUDA's own conversions on the host, as references for ptx_small.c.
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>
#include <cstring>

static float as_float(unsigned u)
{
	float f;

	memcpy(&f, &u, 4);
	return f;
}

static __nv_fp8_interpretation_t fp8(int kind)
{
	return kind ? __NV_E5M2 : __NV_E4M3;
}

static __nv_fp6_interpretation_t fp6(int kind)
{
	return kind == 2 ? __NV_E3M2 : __NV_E2M3;
}

// kind: e4m3, e5m2, e3m2, e2m3, e2m1
extern "C" unsigned ref_encode(int kind, unsigned u)
{
	float f = as_float(u);

	if (kind < 2)
		return __nv_cvt_float_to_fp8(f, __NV_SATFINITE, fp8(kind));
	if (kind < 4)
		return __nv_cvt_float_to_fp6(f, fp6(kind), cudaRoundNearest);
	return __nv_cvt_float_to_fp4(f, __NV_E2M1, cudaRoundNearest);
}

// to the bits of f16
extern "C" unsigned ref_decode(int kind, unsigned v)
{
	if (kind < 2)
		return __nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)v, fp8(kind)).x;
	if (kind < 4)
		return __nv_cvt_fp6_to_halfraw((__nv_fp6_storage_t)v, fp6(kind)).x;
	return __nv_cvt_fp4_to_halfraw((__nv_fp4_storage_t)v, __NV_E2M1).x;
}

extern "C" unsigned ref_e8m0(unsigned u, int up, int saturate)
{
	return __nv_cvt_float_to_e8m0(as_float(u), saturate ? __NV_SATFINITE : __NV_NOSAT, up ? cudaRoundPosInf : cudaRoundZero);
}

extern "C" unsigned host_from_e8m0(unsigned v)
{
	return __nv_cvt_e8m0_to_bf16raw((__nv_fp8_storage_t)v).x;
}
