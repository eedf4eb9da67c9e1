// SPDX-License-Identifier: MIT
/* The runtime: last errors, devices, memory, copies, streams, events and launches. */
#include "tests/fidelity/fidelity.h"
#include <sys/wait.h>

static void errors(void)
{
	void *p;

	/* Runtime API, cudaGetLastError: gives the last error and resets it */
	cudaGetLastError();
	cudaMalloc(NULL, 16);
	same(cudaPeekAtLastError(), cudaErrorInvalidValue, "cudaPeekAtLastError tells the error");
	same(cudaPeekAtLastError(), cudaErrorInvalidValue, "and leaves it");
	/* Runtime API, cudaGetLastError: a call that succeeds does not reset it */
	must(cudaMalloc(&p, 16));
	must(cudaFree(p));
	same(cudaGetLastError(), cudaErrorInvalidValue, "a success does not reset it");
	same(cudaGetLastError(), cudaSuccess, "cudaGetLastError does");
	/* Runtime API, cudaGetErrorName, cudaGetErrorString */
	probe(!strcmp(cudaGetErrorName(cudaErrorInvalidValue), "cudaErrorInvalidValue"), "an error's name");
	probe(!strcmp(cudaGetErrorString(cudaErrorInvalidValue), "invalid argument"), "an error's text");
	probe(!strcmp(cudaGetErrorName((cudaError_t)98765), "unrecognized error code"), "the name of an unknown error");
	probe(!strcmp(cudaGetErrorString((cudaError_t)98765), "unrecognized error code"), "the text of an unknown error");
}

static void *other_thread(void *arg)
{
	*(cudaError_t *)arg = cudaPeekAtLastError();
	return NULL;
}

static void devices(void)
{
	struct cudaDeviceProp prop;
	cudaError_t other = 99;
	pthread_t t;
	int n = 0, v;

	/* Runtime API, cudaGetLastError: of this host thread */
	cudaMalloc(NULL, 16);
	pthread_create(&t, NULL, other_thread, &other);
	pthread_join(t, NULL);
	same(other, cudaSuccess, "another thread has another last error");
	cudaGetLastError();
	must(cudaGetDeviceCount(&n));
	/* Runtime API, cudaSetDevice: a device that is not there */
	rt(cudaErrorInvalidDevice, cudaSetDevice(n));
	rt(cudaErrorInvalidDevice, cudaSetDevice(-1));
	/* Runtime API, cudaGetDeviceProperties: a device that is not there */
	rt(cudaErrorInvalidDevice, cudaGetDeviceProperties(&prop, n));
	/* Runtime API, cudaDeviceGetAttribute: an attribute that is not known, a device that is not there */
	rt(cudaErrorInvalidValue, cudaDeviceGetAttribute(&v, (enum cudaDeviceAttr)99999, 0));
	rt(cudaErrorInvalidDevice, cudaDeviceGetAttribute(&v, cudaDevAttrWarpSize, n));
	/* Runtime API, cudaGetDevice: 0 unless set */
	must(cudaGetDevice(&v));
	same(v, 0, "a thread's first device");
	/* Runtime API, cudaDeviceEnablePeerAccess: the current device itself */
	rt(cudaErrorInvalidDevice, cudaDeviceEnablePeerAccess(0, 0));
	/* Runtime API, cudaRuntimeGetVersion: 1000 * major + 10 * minor */
	must(cudaRuntimeGetVersion(&v));
	same(v / 1000, 13, "the runtime is of CUDA 13");
}

static void memory(void)
{
	struct cudaPointerAttributes at;
	unsigned int flags = 0;
	int local = 0;
	size_t pitch;
	void *p, *h, *m;

	/* Runtime API, cudaFree: NULL is no error */
	rt(cudaSuccess, cudaFree(NULL));
	/* Runtime API, cudaFreeHost: NULL is no error */
	rt(cudaSuccess, cudaFreeHost(NULL));
	/* Runtime API, cudaMalloc: more than there is */
	rt(cudaErrorMemoryAllocation, cudaMalloc(&p, (size_t)1 << 50));
	must(cudaMalloc(&p, 256));
	/* Runtime API, cudaPointerGetAttributes: device memory */
	must(cudaPointerGetAttributes(&at, p));
	probe(at.type == cudaMemoryTypeDevice && at.devicePointer == p && !at.hostPointer && at.device == 0, "device memory");
	/* Runtime API, cudaFree: freed once, and only what was allocated */
	rt(cudaErrorInvalidValue, cudaFree((char *)p + 4));
	rt(cudaSuccess, cudaFree(p));
	rt(cudaErrorInvalidValue, cudaFree(p));
	rt(cudaErrorInvalidValue, cudaFree(&local));
	/* Runtime API, cudaPointerGetAttributes: an unknown address is no error, and unregistered */
	rt(cudaSuccess, cudaPointerGetAttributes(&at, &local));
	probe(at.type == cudaMemoryTypeUnregistered && !at.devicePointer && at.hostPointer == &local, "unregistered memory");
	/* Runtime API, cudaPointerGetAttributes: pinned memory */
	must(cudaMallocHost(&h, 256));
	must(cudaPointerGetAttributes(&at, h));
	probe(at.type == cudaMemoryTypeHost && at.hostPointer == h, "pinned memory");
	/* Runtime API, cudaHostGetFlags: cudaMallocHost makes it with default flags, perhaps mapped */
	rt(cudaSuccess, cudaHostGetFlags(&flags, h));
	rt(cudaErrorInvalidValue, cudaHostGetFlags(&flags, &local));
	must(cudaFreeHost(h));
	/* Runtime API, cudaPointerGetAttributes: managed memory */
	must(cudaMallocManaged(&m, 256, cudaMemAttachGlobal));
	must(cudaPointerGetAttributes(&at, m));
	probe(at.type == cudaMemoryTypeManaged && at.devicePointer == m && at.hostPointer == m, "managed memory");
	must(cudaFree(m));
	/* Runtime API, cudaHostAlloc: flags that are not known */
	rt(cudaErrorInvalidValue, cudaHostAlloc(&h, 256, 1u << 20));
	/* Runtime API, cudaMallocManaged: no flags, no size */
	rt(cudaErrorInvalidValue, cudaMallocManaged(&m, 256, 0));
	/* Runtime API, cudaMallocPitch: a pitch of at least the width */
	must(cudaMallocPitch(&p, &pitch, 100, 4));
	probe(pitch >= 100, "a pitch of %zu for 100 bytes", pitch);
	must(cudaFree(p));
	/* Runtime API, cudaHostUnregister: what was not registered */
	rt(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(&local));
}

static void copies(void)
{
	char a[64] = "", b[64] = "x";
	char *p;

	must(cudaMalloc((void **)&p, 4096));
	/* Runtime API, cudaMemcpy: a kind that is not known */
	rt(cudaErrorInvalidMemcpyDirection, cudaMemcpy(a, b, 16, (enum cudaMemcpyKind)77));
	/* Runtime API, cudaMemcpy: host to host */
	rt(cudaSuccess, cudaMemcpy(a, b, 16, cudaMemcpyHostToHost));
	same(a[0], 'x', "copied on the host");
	/* Runtime API, cudaMemcpy: nothing to copy is no error */
	rt(cudaSuccess, cudaMemcpy(p, a, 0, cudaMemcpyHostToDevice));
	/* Runtime API, cudaMemcpyDefault: the kind follows from the addresses */
	rt(cudaSuccess, cudaMemcpy(p, b, 16, cudaMemcpyDefault));
	memset(a, 0, 16);
	rt(cudaSuccess, cudaMemcpy(a, p, 16, cudaMemcpyDefault));
	same(a[0], 'x', "copied up and down");
	/* Runtime API, cudaMemcpy2D: a width beyond a pitch */
	rt(cudaErrorInvalidPitchValue, cudaMemcpy2D(p, 8, a, 16, 16, 2, cudaMemcpyHostToDevice));
	rt(cudaErrorInvalidPitchValue, cudaMemcpy2D(p, 16, a, 8, 16, 2, cudaMemcpyHostToDevice));
	/* Runtime API, cudaMemcpy2D: a kind that is not known */
	rt(cudaErrorInvalidMemcpyDirection, cudaMemcpy2D(p, 16, a, 16, 16, 2, (enum cudaMemcpyKind)77));
	/* Runtime API, cudaMemset: nothing to set; only the low byte counts */
	rt(cudaSuccess, cudaMemset(p, 1, 0));
	rt(cudaSuccess, cudaMemset(p, 0x1234, 4));
	must(cudaMemcpy(a, p, 4, cudaMemcpyDeviceToHost));
	same(a[3], 0x34, "the value's low byte");
	/* Runtime API, cudaMemset: an address that is no device memory */
	rt(cudaErrorInvalidValue, cudaMemset((void *)64, 1, 4));
	must(cudaFree(p));
}

static void streams(void)
{
	unsigned int flags = 99;
	cudaEvent_t e, f, plain;
	cudaStream_t s;
	int v = 99;
	float ms;

	/* Runtime API, cudaStreamCreateWithFlags: flags that are not known */
	rt(cudaErrorInvalidValue, cudaStreamCreateWithFlags(&s, 1u << 20));
	must(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	/* Runtime API, cudaStreamGetFlags, cudaStreamGetPriority */
	must(cudaStreamGetFlags(s, &flags));
	same(flags, cudaStreamNonBlocking, "a stream's flags");
	must(cudaStreamGetPriority(s, &v));
	same(v, 0, "a stream's priority");
	/* Runtime API, cudaEventCreateWithFlags: flags that are not known */
	rt(cudaErrorInvalidValue, cudaEventCreateWithFlags(&e, 1u << 20));
	must(cudaEventCreate(&e));
	must(cudaEventCreate(&f));
	must(cudaEventCreateWithFlags(&plain, cudaEventDisableTiming));
	/* Runtime API, cudaEventQuery: never recorded counts as done */
	rt(cudaSuccess, cudaEventQuery(e));
	/* Runtime API, cudaEventElapsedTime: never recorded, or without timing */
	must(cudaEventRecord(f, s));
	must(cudaEventRecord(plain, s));
	must(cudaStreamSynchronize(s));
	rt(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, e, f));
	rt(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, plain, f));
	/* Runtime API, cudaEventQuery, cudaStreamQuery: not done gives NotReady, which is no last error */
	struct gate g = {};
	must(cudaLaunchHostFunc(s, gate_wait, &g));
	must(cudaEventRecord(e, s));
	cudaGetLastError();
	same(cudaEventQuery(e), cudaErrorNotReady, "an event that is not done");
	same(cudaStreamQuery(s), cudaErrorNotReady, "a stream that is not done");
	same(cudaPeekAtLastError(), cudaSuccess, "NotReady is not kept as the last error");
	gate_open(&g);
	must(cudaStreamSynchronize(s));
	/* Runtime API, cudaStreamDestroy, cudaEventDestroy */
	rt(cudaSuccess, cudaStreamDestroy(s));
	rt(cudaSuccess, cudaEventDestroy(e));
	must(cudaEventDestroy(f));
	must(cudaEventDestroy(plain));
}

static void launches(void)
{
	const dim3 one = {1, 1, 1};
	struct cudaFuncAttributes fa;
	cudaLibrary_t lib;
	cudaKernel_t k;
	const void *f;

	must(cudaLibraryLoadData(&lib, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
	/* Runtime API, cudaLibraryGetKernel: a name that is not there */
	rt(cudaErrorSymbolNotFound, cudaLibraryGetKernel(&k, lib, "nothing"));
	must(cudaLibraryGetKernel(&k, lib, "fixed"));
	f = (const void *)k;
	/* Runtime API, cudaError, InvalidConfiguration: more threads or blocks than can be */
	rt(cudaErrorInvalidConfiguration, cudaLaunchKernel(f, one, (dim3){1025, 1, 1}, NULL, 0, NULL));
	rt(cudaErrorInvalidConfiguration, cudaLaunchKernel(f, one, (dim3){0, 1, 1}, NULL, 0, NULL));
	rt(cudaErrorInvalidConfiguration, cudaLaunchKernel(f, (dim3){0, 1, 1}, one, NULL, 0, NULL));
	rt(cudaErrorInvalidConfiguration, cudaLaunchKernel(f, (dim3){1, 65536, 1}, one, NULL, 0, NULL));
	/* Programming Guide, Asynchronous execution: a launch that succeeds leaves no error */
	rt(cudaSuccess, cudaLaunchKernel(f, one, one, NULL, 0, NULL));
	rt(cudaSuccess, cudaDeviceSynchronize());
	/* Runtime API, cudaFuncGetAttributes: what the function itself has */
	must(cudaFuncGetAttributes(&fa, f));
	probe(fa.sharedSizeBytes == 1024 && fa.maxThreadsPerBlock >= 64, "the function's attributes");
	/* Runtime API, cudaLaunchKernel: no function */
	rt(cudaErrorInvalidDeviceFunction, cudaLaunchKernel(&fa, one, one, NULL, 0, NULL));
	must(cudaLibraryUnload(lib));
}

/* Which of its first calls the child of a fork is told that there is no CUDA for it. */
static int refused_in_child(void)
{
	int status = 0, n;
	pid_t pid;
	void *p;

	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit((cudaGetDeviceCount(&n) == cudaErrorInitializationError) |
		      (cudaGetDevice(&n) == cudaErrorInitializationError) << 1 |
		      (cudaMalloc(&p, 16) == cudaErrorInitializationError) << 2 |
		      (cudaGetLastError() == cudaErrorInitializationError) << 3);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(void)
{
	errors();
	devices();
	memory();
	copies();
	streams();
	launches();
	/* Programming Guide: CUDA that was initialised before fork() is not to be used in the child */
	same(refused_in_child(), 15, "a child of fork is told by the first call");
	/* Runtime API, cudaDeviceReset: everything of the device is gone, and it can be used again */
	void *p;
	rt(cudaSuccess, cudaDeviceReset());
	rt(cudaSuccess, cudaMalloc(&p, 16));
	return tap_done();
}
