// SPDX-License-Identifier: MIT
/* Tests of two soft devices in one program: peer copies, waits across them, each with memory and errors of its own. */
#include "tests/softgpu/drv.h"

static int failing(void *arg)
{
	(void)arg;
	return CUDA_ERROR_LAUNCH_FAILED;
}

int main(void)
{
	uint32_t host[256], back[256];
	CUcontext c[2], made;
	CUdeviceptr p[2], gate, big;
	CUstream s[2];
	CUevent e;
	size_t free_bytes, total;
	CUdevice d;
	int v;

	setenv("RGPU_SOFTGPU_DEVICES", "2", 1);
	setenv("RGPU_SOFTGPU_MEM_MIB", "64", 1);
	must(cuInit(0));
	for (int i = 0; i < 2; i++) {
		must(cuDevicePrimaryCtxRetain(&c[i], i));
		must(cuCtxSetCurrent(c[i]));
		must(cuMemAlloc(&p[i], sizeof(host)));
		must(cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING));
		must(cuEventCreate(&e, 0));
		must(cuEventDestroy(e));
	}
	for (unsigned int i = 0; i < 256; i++)
		host[i] = i * i;

	works(cuPointerGetAttribute(&v, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p[1]));
	is_int(v, 1, "memory knows its device");
	works(cuStreamGetDevice(s[0], &d));
	is_int(d, 0, "a stream knows its device, whatever is current");
	works(cuMemAlloc(&big, 60ull << 20));
	works(cuMemGetInfo(&free_bytes, &total));
	ok(free_bytes < 4ull << 20, "one device is nearly full");
	must(cuCtxSetCurrent(c[0]));
	works(cuMemGetInfo(&free_bytes, &total));
	ok(free_bytes > 60ull << 20, "the other is not");
	must(cuCtxSetCurrent(c[1]));
	works(cuMemFree(big));

	must(cuCtxSetCurrent(c[0]));
	works(cuCtxEnablePeerAccess(c[1], 0));
	gives(cuCtxEnablePeerAccess(c[1], 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
	gives(cuCtxEnablePeerAccess(c[0], 0), CUDA_ERROR_INVALID_CONTEXT);
	gives(cuCtxEnablePeerAccess(c[1], 1), CUDA_ERROR_INVALID_VALUE);
	works(cuCtxDisablePeerAccess(c[1]));
	gives(cuCtxDisablePeerAccess(c[1]), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);

	/* Upload to 0, copy to 1 there, read from 1. */
	must(cuMemcpyHtoD(p[0], host, sizeof(host)));
	works(cuMemcpyPeer(p[1], c[1], p[0], c[0], sizeof(host)));
	must(cuMemcpyDtoH(back, p[1], sizeof(host)));
	ok(!memcmp(host, back, sizeof(host)), "a peer copy brings the bytes over");
	gives(cuMemcpyPeer(p[1], NULL, p[0], c[0], 4), CUDA_ERROR_INVALID_CONTEXT);

	/* A stream of 1 waits for an event of 0, behind a gate. */
	must(cuMemHostAlloc((void **)&gate, 64, 0));
	*(volatile uint32_t *)(uintptr_t)gate = 0;
	must(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	must(cuStreamWaitValue32(s[0], gate, 1, 0));
	must(cuMemsetD32Async(p[0], 0xfeed, 256, s[0]));
	works(cuEventRecord(e, s[0]));
	must(cuCtxSetCurrent(c[1]));
	gives(cuEventRecord(e, s[1]), CUDA_ERROR_INVALID_HANDLE);
	works(cuStreamWaitEvent(s[1], e, 0));
	works(cuMemcpyPeerAsync(p[1], c[1], p[0], c[0], sizeof(host), s[1]));
	gives(cuStreamQuery(s[1]), CUDA_ERROR_NOT_READY);
	nap_ms(2);
	__atomic_store_n((uint32_t *)(uintptr_t)gate, 1, __ATOMIC_RELEASE);
	works(cuStreamSynchronize(s[1]));
	must(cuMemcpyDtoH(back, p[1], sizeof(host)));
	ok(back[0] == 0xfeed && back[255] == 0xfeed, "the copy came after the other device's work");

	/* A fault on one device leaves the other alone. */
	must(cuCtxCreate(&made, NULL, 0, 1));
	works(softgpu_enqueue(NULL, failing, NULL, NULL));
	gives(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
	must(cuCtxSetCurrent(c[0]));
	works(cuCtxSynchronize());
	must(cuCtxSetCurrent(c[1]));
	works(cuCtxSynchronize());
	works(cuCtxDestroy(made));
	for (int i = 0; i < 2; i++)
		works(cuDevicePrimaryCtxRelease(i));
	return tap_done();
}
