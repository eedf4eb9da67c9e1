// SPDX-License-Identifier: MIT
// Every call of the device runtime, by the names that nvcc gives them with either kind of default stream.
#include <stdint.h>

// Declared by the header that nvcc includes, which then hides them.
#undef __cudaCDP2EventCreateWithFlags
#undef __cudaCDP2EventDestroy
#undef __cudaCDP2EventRecord
#undef __cudaCDP2EventRecordWithFlags
#undef __cudaCDP2EventRecordWithFlags_ptsz
#undef __cudaCDP2EventRecord_ptsz
#undef __cudaCDP2Free
#undef __cudaCDP2GetLastError
#undef __cudaCDP2GetParameterBufferV2
#undef __cudaCDP2LaunchDeviceV2
#undef __cudaCDP2LaunchDeviceV2_ptsz
#undef __cudaCDP2Malloc
#undef __cudaCDP2Memcpy2DAsync
#undef __cudaCDP2Memcpy2DAsync_ptsz
#undef __cudaCDP2MemcpyAsync
#undef __cudaCDP2MemcpyAsync_ptsz
#undef __cudaCDP2Memset2DAsync
#undef __cudaCDP2Memset2DAsync_ptsz
#undef __cudaCDP2MemsetAsync
#undef __cudaCDP2MemsetAsync_ptsz
#undef __cudaCDP2PeekAtLastError
#undef __cudaCDP2RuntimeGetVersion
#undef __cudaCDP2StreamCreateWithFlags
#undef __cudaCDP2StreamDestroy
#undef __cudaCDP2StreamWaitEvent
#undef __cudaCDP2StreamWaitEvent_ptsz

// Kernels of conditional nodes set their condition.
extern "C" __global__ void set_condition(uint64_t handle)
{
	cudaGraphSetConditional((cudaGraphConditionalHandle)handle, 7 + threadIdx.x);
}

extern "C" __global__ void child(int *o, int v)
{
	o[threadIdx.x] += v;
}

__device__ static void *prepare(int *o, int v, unsigned threads)
{
	void *p = __cudaCDP2GetParameterBufferV2((void *)child, dim3(1), dim3(threads), 0);

	if (p) {
		*(int **)p = o;
		((int *)p)[2] = v;
	}
	return p;
}

// r: what each call answers; o: memory that the work leaves. The host has set both to a byte of its own.
extern "C" __global__ void device_calls(int *r, int *o)
{
	cudaStream_t s = 0;
	cudaEvent_t e = 0;
	void *p = nullptr;

	*r++ = __cudaCDP2StreamCreateWithFlags(&s, 1);
	*r++ = __cudaCDP2EventCreateWithFlags(&e, 2);
	*r++ = __cudaCDP2MemsetAsync(o, 0, 64, s);
	*r++ = __cudaCDP2MemsetAsync_ptsz(o + 16, 0x11, 4, s);
	*r++ = __cudaCDP2Memset2DAsync(o + 20, 16, 0x22, 4, 2, s); // o[20] and o[24]
	*r++ = __cudaCDP2Memset2DAsync_ptsz(o + 21, 16, 0x33, 4, 2, s);
	*r++ = __cudaCDP2LaunchDeviceV2(prepare(o, 5, 2), s);
	*r++ = __cudaCDP2LaunchDeviceV2_ptsz(prepare(o + 1, 7, 2), s);
	*r++ = __cudaCDP2EventRecord(e, s);
	*r++ = __cudaCDP2EventRecord_ptsz(e, s);
	*r++ = __cudaCDP2EventRecordWithFlags(e, s, 0);
	*r++ = __cudaCDP2EventRecordWithFlags_ptsz(e, s, 0);
	*r++ = __cudaCDP2StreamWaitEvent(s, e, 0);
	*r++ = __cudaCDP2StreamWaitEvent_ptsz(s, e, 0);
	*r++ = __cudaCDP2MemcpyAsync(o + 4, o, 8, cudaMemcpyDeviceToDevice, s); // behind the children
	*r++ = __cudaCDP2MemcpyAsync_ptsz(o + 6, o + 2, 4, cudaMemcpyDeviceToDevice, s);
	*r++ = __cudaCDP2Memcpy2DAsync(o + 8, 8, o, 4, 4, 2, cudaMemcpyDeviceToDevice, s); // o[8] and o[10]
	*r++ = __cudaCDP2Memcpy2DAsync_ptsz(o + 9, 8, o + 1, 4, 4, 2, cudaMemcpyDeviceToDevice, s);
	*r++ = __cudaCDP2EventDestroy(e);
	*r++ = __cudaCDP2StreamDestroy(s);
	*r++ = __cudaCDP2Malloc(&p, 100);
	*r++ = p ? 0 : 1;
	*r++ = __cudaCDP2Free(p);
	*r++ = __cudaCDP2RuntimeGetVersion(r + 8);
	// and errors
	*r++ = __cudaCDP2StreamDestroy((cudaStream_t)e); // 400: no stream
	*r++ = __cudaCDP2PeekAtLastError();
	*r++ = __cudaCDP2GetLastError();
	*r++ = __cudaCDP2GetLastError();
	*r++ = __cudaCDP2Memcpy2DAsync(o, 2, o, 4, 4, 2, cudaMemcpyDeviceToDevice, 0); // 1: a pitch less than the width
	*r++ = prepare(o, 1, 2000) ? 1 : 0;					       // too many threads: no buffer
	*r++ = __cudaCDP2GetLastError();					       // 9: a configuration that cannot be
}
