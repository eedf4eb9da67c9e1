/* SPDX-License-Identifier: MIT */
/*
 * Our CUDA runtime: memory, errors, registration, launches, streams and events. Over softgpu in this process,
 * or over rgpu's libcuda.
 */
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>
#include "tests/tap.h"

/* What nvcc's generated code calls; no public header declares these. */
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *dev, const char *name, int limit, uint3 *tid, uint3 *bid,
			    dim3 *block, dim3 *grid, int *warp);
void __cudaRegisterVar(void **handle, char *host, char *dev, const char *name, int ext, size_t size, int constant, int global);
unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream);
cudaError_t cudaMemcpyAsync_ptsz(void *dst, const void *src, size_t n, enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaGLSetGLDevice(int device); /* cuda_gl_interop.h needs OpenGL */
cudaError_t cudaMemcpy_ptds(void *dst, const void *src, size_t n, enum cudaMemcpyKind kind);

/* p[tid] = v + table[tid & 3] */
static const char ptx[] = ".version 7.5\n.target sm_75\n.address_size 64\n"
			  ".visible .global .align 4 .b8 table[16];\n"
			  ".visible .entry put(.param .u64 p, .param .u32 v)\n{\n"
			  "	.reg .b32 %r<6>;\n	.reg .b64 %rd<8>;\n"
			  "	ld.param.u64 %rd1, [p];\n	ld.param.u32 %r1, [v];\n"
			  "	cvta.to.global.u64 %rd2, %rd1;\n	mov.u32 %r2, %tid.x;\n"
			  "	mul.wide.u32 %rd3, %r2, 4;\n	add.s64 %rd4, %rd2, %rd3;\n"
			  "	and.b32 %r3, %r2, 3;\n	mul.wide.u32 %rd5, %r3, 4;\n"
			  "	mov.u64 %rd6, table;\n	add.s64 %rd7, %rd6, %rd5;\n"
			  "	ld.global.u32 %r4, [%rd7];\n	add.s32 %r5, %r1, %r4;\n"
			  "	st.global.u32 [%rd4], %r5;\n	ret;\n}\n";

static bool all(const int *x, int n, int want)
{
	for (int i = 0; i < n; i++)
		if (x[i] != want) {
			printf("# x[%d] = %d, want %d\n", i, x[i], want);
			return false;
		}
	return true;
}

static void devices(void)
{
	struct cudaDeviceProp p;
	int n = 0, v = 0, d = -1, major, minor, threads;
	size_t free_, total;

	is_int(cudaGetDeviceCount(&n), cudaSuccess, "cudaGetDeviceCount");
	ok(n >= 1, "there is a device");
	is_int(cudaRuntimeGetVersion(&v), cudaSuccess, "cudaRuntimeGetVersion");
	is_int(v, CUDART_VERSION, "the runtime's version is its header's");
	is_int(cudaDriverGetVersion(&v), cudaSuccess, "cudaDriverGetVersion");
	ok(v >= CUDART_VERSION, "the driver is not older than the runtime");
	is_int(cudaGetDevice(&d), cudaSuccess, "cudaGetDevice");
	is_int(d, 0, "a thread begins on device 0");
	is_int(cudaGetDeviceProperties(&p, 0), cudaSuccess, "cudaGetDeviceProperties");
	ok(p.name[0] && !p.name[255], "the device has a name: %s", p.name);
	is_int(p.warpSize, 32, "warps have 32 threads");
	cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
	cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0);
	cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerBlock, 0);
	ok(p.major == major && p.minor == minor && major >= 7, "compute capability %d.%d, as its attributes say", p.major,
	   p.minor);
	is_int(p.maxThreadsPerBlock, threads, "threads a block, as the attribute says");
	is_int(p.maxThreadsDim[0], 1024, "threads of a block in x");
	is_int(cudaMemGetInfo(&free_, &total), cudaSuccess, "cudaMemGetInfo");
	is_int(total, p.totalGlobalMem, "total memory, as the properties say");
	ok(free_ > 0 && free_ <= total, "free memory is at most that");
	is_int(cudaGetDeviceProperties(&p, n), cudaErrorInvalidDevice, "properties of a device too many");
	is_int(cudaSetDevice(-1), cudaErrorInvalidDevice, "device −1");
	cudaGetLastError();
}

static void *other_thread(void *arg)
{
	*(cudaError_t *)arg = cudaPeekAtLastError();
	return NULL;
}

static void errors(void)
{
	cudaError_t there = cudaErrorUnknown;
	pthread_t t;

	is_str(cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress", "an error's name");
	is_str(cudaGetErrorString(cudaErrorInvalidConfiguration), "invalid configuration argument", "an error's text");
	is_str(cudaGetErrorName(cudaSuccess), "cudaSuccess", "success has a name");
	is_str(cudaGetErrorName((cudaError_t)12345), "unrecognized error code", "a number that is none");

	is_int(cudaSetDevice(12345), cudaErrorInvalidDevice, "an error");
	pthread_create(&t, NULL, other_thread, &there);
	pthread_join(t, NULL);
	is_int(there, cudaSuccess, "is not another thread's last error");
	is_int(cudaPeekAtLastError(), cudaErrorInvalidDevice, "peek leaves it");
	is_int(cudaMalloc(NULL, 4), cudaErrorInvalidValue, "a later one replaces it");
	is_int(cudaGetLastError(), cudaErrorInvalidValue, "get returns it");
	is_int(cudaGetLastError(), cudaSuccess, "and clears it");
}

static void memory(void)
{
	enum { W = 100, H = 7, N = 1000 };
	int h[N], back[N], *d, *d2, *pinned;
	unsigned char *p2, line[W * H];
	struct cudaPointerAttributes a;
	size_t pitch = 0;
	bool right = true;

	for (int i = 0; i < N; i++)
		h[i] = i * 3 - 7;
	is_int(cudaMalloc((void **)&d, sizeof(h)), cudaSuccess, "cudaMalloc");
	is_int(cudaMalloc((void **)&d2, sizeof(h)), cudaSuccess, "cudaMalloc");
	is_int(cudaMemcpy(d, h, sizeof(h), cudaMemcpyDefault), cudaSuccess, "up, by the pointers");
	is_int(cudaMemcpy(d2, d, sizeof(h), cudaMemcpyDefault), cudaSuccess, "across, by the pointers");
	is_int(cudaMemcpy(back, d2, sizeof(h), cudaMemcpyDefault), cudaSuccess, "down, by the pointers");
	ok(!memcmp(h, back, sizeof(h)), "the bytes are the same");
	is_int(cudaMemset(d, 0x11, 400), cudaSuccess, "cudaMemset");
	memset(back, 0, sizeof(back));
	is_int(cudaMemcpy_ptds(back, d, sizeof(h), cudaMemcpyDeviceToHost), cudaSuccess, "cudaMemcpy_ptds");
	ok(all(back, 100, 0x11111111) && back[100] == h[100], "the first 400 bytes are set, no more");
	memset(back, 0, sizeof(back));
	is_int(cudaMemcpy(back, h, sizeof(h), cudaMemcpyHostToHost), cudaSuccess, "from host to host");
	ok(!memcmp(h, back, sizeof(h)), "the bytes are the same");
	is_int(cudaMemcpy(d, h, 4, (enum cudaMemcpyKind)7), cudaErrorInvalidMemcpyDirection, "a direction that is none");

	is_int(cudaMallocPitch((void **)&p2, &pitch, W, H), cudaSuccess, "cudaMallocPitch");
	ok(pitch >= W, "a pitch of %zu", pitch);
	is_int(cudaMemset2D(p2, pitch, 5, W, H), cudaSuccess, "cudaMemset2D");
	is_int(cudaMemset2D(p2, pitch, 9, 3, 2), cudaSuccess, "a corner of it");
	is_int(cudaMemcpy2D(line, W, p2, pitch, W, H, cudaMemcpyDeviceToHost), cudaSuccess, "cudaMemcpy2D");
	for (int y = 0; y < H; y++)
		for (int x = 0; x < W; x++)
			right = right && line[y * W + x] == (x < 3 && y < 2 ? 9 : 5);
	ok(right, "every byte is where it belongs");
	is_int(cudaMemcpy2D(line, W - 1, p2, pitch, W, H, cudaMemcpyDeviceToHost), cudaErrorInvalidPitchValue,
	       "rows that overlap");

	is_int(cudaMallocHost((void **)&pinned, sizeof(h)), cudaSuccess, "cudaMallocHost");
	is_int(cudaPointerGetAttributes(&a, d + 5), cudaSuccess, "attributes of device memory");
	ok(a.type == cudaMemoryTypeDevice && a.device == 0 && a.devicePointer == d + 5, "say device 0 and the same address");
	is_int(cudaPointerGetAttributes(&a, pinned), cudaSuccess, "attributes of pinned memory");
	ok(a.type == cudaMemoryTypeHost && a.hostPointer == pinned, "say host");
	is_int(cudaPointerGetAttributes(&a, h), cudaSuccess, "attributes of the stack");
	ok(a.type == cudaMemoryTypeUnregistered && a.hostPointer == h, "say that nobody knows it");
	is_int(cudaFree(NULL), cudaSuccess, "cudaFree(NULL)");
	is_int(cudaFree(d + 1), cudaErrorInvalidValue, "cudaFree inside of an allocation");
	is_int(cudaFree(d), cudaSuccess, "cudaFree");
	is_int(cudaFree(d2), cudaSuccess, "cudaFree");
	is_int(cudaFree(p2), cudaSuccess, "cudaFree");
	is_int(cudaFreeHost(pinned), cudaSuccess, "cudaFreeHost");
	is_int(cudaMalloc((void **)&d, 0), cudaSuccess, "no bytes");
	ok(!d, "are NULL");
	is_int(cudaMalloc((void **)&d, (size_t)1 << 52), cudaErrorMemoryAllocation, "too many bytes");
	is_int(cudaGetLastError(), cudaErrorMemoryAllocation, "are remembered");
}

/* A box of 5 × 4 × 3 bytes in the midst of one of 9 × 6 × 5, up and down, filled before. */
static void boxes(void)
{
	enum { W = 9, H = 6, D = 5 };
	unsigned char up[W * H * D], down[W * H * D];
	struct cudaPitchedPtr d;
	struct cudaExtent all = {W, H, D}, box = {5, 4, 3};
	struct cudaMemcpy3DParms p = {
		.srcPtr = {up, W, W, H}, .srcPos = {2, 1, 1}, .dstPos = {1, 2, 2}, .extent = box, .kind = cudaMemcpyHostToDevice};
	bool right = true;

	for (unsigned int i = 0; i < sizeof(up); i++)
		up[i] = i;
	is_int(cudaMalloc3D(&d, all), cudaSuccess, "cudaMalloc3D");
	is_int(cudaMemset3D(d, 7, all), cudaSuccess, "cudaMemset3D");
	is_int(cudaMemset3D(d, 8, (struct cudaExtent){2, 2, 2}), cudaSuccess, "a corner of it");
	p.dstPtr = d;
	is_int(cudaMemcpy3D(&p), cudaSuccess, "cudaMemcpy3D up");
	p = (struct cudaMemcpy3DParms){.srcPtr = d, .dstPtr = {down, W, W, H}, .extent = all, .kind = cudaMemcpyDefault};
	is_int(cudaMemcpy3D(&p), cudaSuccess, "cudaMemcpy3D down");
	for (int z = 0; z < D; z++)
		for (int y = 0; y < H; y++)
			for (int x = 0; x < W; x++) {
				bool in = x >= 1 && x < 6 && y >= 2 && y < 6 && z >= 2;
				int want = in ? up[((z - 1) * H + y - 1) * W + x + 1] : x < 2 && y < 2 && z < 2 ? 8 : 7;

				right = right && down[(z * H + y) * W + x] == want;
			}
	ok(right, "every byte is where it belongs");
	p.extent.width = W + 1;
	is_int(cudaMemcpy3D(&p), cudaErrorInvalidPitchValue, "rows that overlap");
	is_int(cudaGetLastError(), cudaErrorInvalidPitchValue, "are remembered");
	is_int(cudaFree(d.ptr), cudaSuccess, "cudaFree");
}

/* As nvcc lays it out: a wrapper, a container with one entry, uncompressed PTX. */
static struct {
	struct {
		uint32_t magic;
		uint16_t version, header;
		uint64_t size;
	} container;
	struct {
		uint16_t kind, version;
		uint32_t header;
		uint64_t size;
		uint32_t compressed, options;
		uint16_t minor, major;
		uint32_t arch, name_at, name_len;
		uint64_t flags, zero, unpacked;
	} entry;
	char text[(sizeof(ptx) + 7) & ~7];
} fatbin;

static struct {
	uint32_t magic, version;
	void *data, *aux;
} wrapper = {0x466243b1, 1, &fatbin, NULL};

static char table_var[16]; /* the host's shadow of a __device__ variable */

static void stub(void)
{
}

static void other_stub(void)
{
}

static void **handle;

static void register_all(void)
{
	memcpy(fatbin.text, ptx, sizeof(ptx));
	fatbin.container.magic = 0xba55ed50;
	fatbin.container.version = 1;
	fatbin.container.header = sizeof(fatbin.container);
	fatbin.container.size = sizeof(fatbin) - sizeof(fatbin.container);
	fatbin.entry.kind = 1;
	fatbin.entry.version = 0x101;
	fatbin.entry.header = sizeof(fatbin.entry);
	fatbin.entry.size = sizeof(fatbin.text);
	fatbin.entry.major = 7;
	fatbin.entry.minor = 5;
	fatbin.entry.arch = 75;
	handle = __cudaRegisterFatBinary(&wrapper);
	__cudaRegisterFunction(handle, (const char *)stub, (char *)"put", "put", -1, NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterFunction(handle, (const char *)other_stub, (char *)"gone", "gone", -1, NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterVar(handle, table_var, (char *)"table", "table", 0, 16, 0, 0);
	__cudaRegisterFatBinaryEnd(handle);
}

static void configuration(void)
{
	dim3 g, b, one = {1, 2, 3}, two = {4, 5, 6};
	cudaStream_t s;
	size_t shared;

	__cudaPushCallConfiguration(one, two, 11, NULL);
	__cudaPushCallConfiguration(two, one, 22, cudaStreamPerThread);
	is_int(__cudaPopCallConfiguration(&g, &b, &shared, &s), cudaSuccess, "the inner launch's configuration");
	ok(g.x == 4 && b.z == 3 && shared == 22 && s == cudaStreamPerThread, "comes first");
	is_int(__cudaPopCallConfiguration(&g, &b, &shared, &s), cudaSuccess, "the outer one's");
	ok(g.x == 1 && b.z == 6 && shared == 11 && !s, "second");
	is_int(__cudaPopCallConfiguration(&g, &b, &shared, &s), cudaErrorMissingConfiguration, "and then there is none");
	cudaGetLastError();
}

static void launches(void)
{
	int *p, back[32], v = 40, table[4] = {2, 2, 2, 2};
	void *args[] = {&p, &v};
	struct cudaFuncAttributes attr;
	cudaKernel_t k = NULL;
	dim3 one = {1, 1, 1}, warp = {32, 1, 1}, many = {2048, 1, 1}, none = {0, 1, 1};
	size_t size = 0;
	void *at = NULL;
	int blocks = 0;

	is_int(cudaMalloc((void **)&p, sizeof(back)), cudaSuccess, "memory for the kernel");
	is_int(cudaMemcpyToSymbol(table_var, table, sizeof(table), 0, cudaMemcpyHostToDevice), cudaSuccess, "cudaMemcpyToSymbol");
	is_int(cudaMemcpyToSymbol(table_var, table, 8, 12, cudaMemcpyHostToDevice), cudaErrorInvalidValue,
	       "past the symbol's end");
	is_int(cudaMemcpyToSymbol(&v, table, 4, 0, cudaMemcpyHostToDevice), cudaErrorInvalidSymbol, "a symbol that is none");
	is_int(cudaGetSymbolSize(&size, table_var), cudaSuccess, "cudaGetSymbolSize");
	is_int(size, 16, "is 16");
	is_int(cudaGetSymbolAddress(&at, table_var), cudaSuccess, "cudaGetSymbolAddress");
	cudaGetLastError();

	is_int(__cudaGetKernel(&k, stub), cudaSuccess, "__cudaGetKernel");
	is_int(__cudaLaunchKernel(k, one, warp, args, 0, NULL), cudaSuccess, "__cudaLaunchKernel");
	is_int(cudaMemcpy(back, p, sizeof(back), cudaMemcpyDeviceToHost), cudaSuccess, "its results");
	ok(all(back, 32, 42), "are right");
	v = 50;
	is_int(cudaLaunchKernel(stub, one, warp, args, 0, NULL), cudaSuccess, "cudaLaunchKernel by the stub's address");
	is_int(cudaDeviceSynchronize(), cudaSuccess, "cudaDeviceSynchronize");
	is_int(cudaMemcpy(back, p, sizeof(back), cudaMemcpyDeviceToHost), cudaSuccess, "its results");
	ok(all(back, 32, 52), "are right");
	v = 60;
	is_int(cudaLaunchKernel((const void *)k, one, warp, args, 0, cudaStreamPerThread), cudaSuccess,
	       "cudaLaunchKernel by the kernel's handle");
	is_int(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess, "its stream");
	is_int(cudaMemcpy(back, p, sizeof(back), cudaMemcpyDeviceToHost), cudaSuccess, "its results");
	ok(all(back, 32, 62), "are right");

	is_int(cudaLaunchKernel(stub, one, many, args, 0, NULL), cudaErrorInvalidConfiguration, "2048 threads a block");
	is_int(cudaLaunchKernel(stub, none, warp, args, 0, NULL), cudaErrorInvalidConfiguration, "no block");
	is_int(cudaLaunchKernel(stub, one, warp, args, 1 << 30, NULL), cudaErrorInvalidValue, "a gigabyte of shared memory");
	is_int(cudaLaunchKernel(&v, one, warp, args, 0, NULL), cudaErrorInvalidDeviceFunction, "an address that is no kernel");
	is_int(cudaLaunchKernel(other_stub, one, warp, args, 0, NULL), cudaErrorInvalidDeviceFunction,
	       "a kernel that its image lacks");
	is_int(__cudaGetKernel(&k, other_stub), cudaErrorInvalidDeviceFunction, "the same by __cudaGetKernel");
	is_int(__cudaLaunchKernel(NULL, one, warp, args, 0, NULL), cudaErrorInvalidDeviceFunction,
	       "and the launch with what it gave");
	is_int(cudaGetLastError(), cudaErrorInvalidDeviceFunction, "the last error is the last one");

	is_int(cudaFuncGetAttributes(&attr, stub), cudaSuccess, "cudaFuncGetAttributes");
	ok(attr.maxThreadsPerBlock >= 32 && attr.maxThreadsPerBlock <= 1024, "%d threads a block at most",
	   attr.maxThreadsPerBlock);
	is_int(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, stub, 128, 0), cudaSuccess, "occupancy");
	ok(blocks >= 1, "%d blocks a multiprocessor", blocks);
	cudaFree(p);
}

static void library(void)
{
	cudaLibrary_t lib;
	cudaKernel_t k;
	unsigned int n = 0;
	int *p, back[32], v = 7;
	void *args[] = {&p, &v};
	dim3 one = {1, 1, 1}, warp = {32, 1, 1};

	is_int(cudaLibraryLoadData(&lib, ptx, NULL, NULL, 0, NULL, NULL, 0), cudaSuccess, "cudaLibraryLoadData of PTX");
	is_int(cudaLibraryGetKernel(&k, lib, "put"), cudaSuccess, "cudaLibraryGetKernel");
	is_int(cudaLibraryGetKernelCount(&n, lib), cudaSuccess, "cudaLibraryGetKernelCount");
	is_int(n, 1, "is 1");
	is_int(cudaMalloc((void **)&p, sizeof(back)), cudaSuccess, "memory for the kernel");
	is_int(cudaLaunchKernel((const void *)k, one, warp, args, 0, NULL), cudaSuccess, "a launch");
	is_int(cudaMemcpy(back, p, sizeof(back), cudaMemcpyDeviceToHost), cudaSuccess, "its results");
	ok(all(back, 32, 7), "are right: the table is this library's own, and zero");
	is_int(cudaLibraryUnload(lib), cudaSuccess, "cudaLibraryUnload");
	is_int(cudaLaunchKernel((const void *)k, one, warp, args, 0, NULL), cudaErrorInvalidDeviceFunction,
	       "its kernel is gone with it");
	cudaGetLastError();
	cudaFree(p);
}

static void count_up(void *arg)
{
	++*(int *)arg;
}

static cudaStream_t told;

static void stream_told(cudaStream_t s, cudaError_t e, void *arg)
{
	(void)e, (void)arg;
	told = s;
}

static void stream_called(cudaStream_t s, cudaError_t e, void *arg)
{
	(void)s;
	*(int *)arg = *(int *)arg * 10 + (e == cudaSuccess);
}

static void streams(void)
{
	cudaStream_t s;
	cudaEvent_t a, b;
	float ms = -1;
	int n = 0, x = 5, back = 0, *d;
	unsigned int flags = 99;
	unsigned long long id1 = 0, id2 = 0;

	is_int(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), cudaSuccess, "cudaStreamCreateWithFlags");
	is_int(cudaStreamGetFlags(s, &flags), cudaSuccess, "cudaStreamGetFlags");
	is_int(flags, cudaStreamNonBlocking, "says the same");
	is_int(cudaStreamGetId(s, &id1), cudaSuccess, "cudaStreamGetId");
	is_int(cudaStreamGetId(cudaStreamLegacy, &id2), cudaSuccess, "cudaStreamGetId");
	ok(id1 != id2, "two streams, two ids");
	is_int(cudaEventCreate(&a), cudaSuccess, "cudaEventCreate");
	is_int(cudaEventCreate(&b), cudaSuccess, "cudaEventCreate");
	is_int(cudaMalloc((void **)&d, 4), cudaSuccess, "cudaMalloc");
	is_int(cudaEventRecord(a, s), cudaSuccess, "cudaEventRecord");
	is_int(cudaMemcpyAsync(d, &x, 4, cudaMemcpyHostToDevice, s), cudaSuccess, "cudaMemcpyAsync");
	is_int(cudaLaunchHostFunc(s, count_up, &n), cudaSuccess, "cudaLaunchHostFunc");
	is_int(cudaStreamAddCallback(s, stream_called, &n, 0), cudaSuccess, "cudaStreamAddCallback");
	is_int(cudaEventRecord(b, s), cudaSuccess, "cudaEventRecord");
	is_int(cudaStreamWaitEvent(cudaStreamPerThread, b, 0), cudaSuccess, "cudaStreamWaitEvent");
	is_int(cudaMemcpyAsync_ptsz(&back, d, 4, cudaMemcpyDeviceToHost, NULL), cudaSuccess,
	       "cudaMemcpyAsync_ptsz on the thread's stream");
	is_int(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess, "cudaStreamSynchronize");
	is_int(back, 5, "the copy waited for the event");
	is_int(n, 11, "host functions ran before it, in order");
	is_int(cudaEventQuery(b), cudaSuccess, "the event is done");
	is_int(cudaStreamAddCallback(s, stream_told, NULL, 0), cudaSuccess, "cudaStreamAddCallback");
	is_int(cudaStreamSynchronize(s), cudaSuccess, "cudaStreamSynchronize");
	ok(told == s, "it is told its stream");
	is_int(cudaStreamAddCallback(NULL, stream_told, NULL, 0), cudaSuccess, "cudaStreamAddCallback");
	is_int(cudaStreamSynchronize(NULL), cudaSuccess, "cudaStreamSynchronize");
	ok(!told, "as the program called it: %p", told);
	is_int(cudaEventElapsedTime(&ms, a, b), cudaSuccess, "cudaEventElapsedTime");
	ok(ms >= 0 && ms < 60000, "%g ms", ms);
	is_int(cudaEventDestroy(a), cudaSuccess, "cudaEventDestroy");
	is_int(cudaEventDestroy(b), cudaSuccess, "cudaEventDestroy");
	is_int(cudaStreamDestroy(s), cudaSuccess, "cudaStreamDestroy");
	cudaFree(d);
}

/* Batches of copies, and what is kept of a stream. */
static void batches(void)
{
	struct cudaMemcpyAttributes attr = {.srcAccessOrder = cudaMemcpySrcAccessOrderStream};
	cudaStreamAttrValue v = {.priority = -2}, got = {0};
	int up = 21, down = 0, *d;
	size_t sizes[2] = {4, 4}, first = 0;
	cudaStream_t s;

	is_int(cudaMalloc((void **)&d, 4), cudaSuccess, "cudaMalloc");
	is_int(cudaStreamCreate(&s), cudaSuccess, "cudaStreamCreate");
	{
		void *dsts[2] = {d, &down};
		const void *srcs[2] = {&up, d};

		is_int(cudaMemcpyBatchAsync(dsts, srcs, sizes, 2, &attr, &first, 1, s), cudaSuccess, "cudaMemcpyBatchAsync");
		is_int(cudaMemcpyBatchAsync(dsts, srcs, sizes, 2, &attr, &first, 1, cudaStreamLegacy), cudaErrorInvalidValue,
		       "not for the legacy stream");
	}
	is_int(cudaStreamSynchronize(s), cudaSuccess, "cudaStreamSynchronize");
	is_int(down, 21, "up and down in one batch");
	{
		struct cudaMemLocation where = {cudaMemLocationTypeDevice, 0};
		void *ptrs[1] = {d};

		/* The attribute that they require is 0. */
		is_int(cudaMemPrefetchBatchAsync(ptrs, sizes, 1, &where, &first, 1, 0, s), cudaErrorNotSupported,
		       "cudaMemPrefetchBatchAsync");
		is_int(cudaMemDiscardBatchAsync(ptrs, sizes, 1, 0, s), cudaErrorNotSupported, "cudaMemDiscardBatchAsync");
		is_int(cudaMemDiscardAndPrefetchBatchAsync(ptrs, sizes, 1, &where, &first, 1, 0, s), cudaErrorNotSupported,
		       "cudaMemDiscardAndPrefetchBatchAsync");
	}
	cudaGetLastError();
	is_int(cudaStreamSetAttribute(s, cudaStreamAttributePriority, &v), cudaSuccess, "cudaStreamSetAttribute");
	is_int(cudaStreamGetAttribute(s, cudaStreamAttributePriority, &got), cudaSuccess, "cudaStreamGetAttribute");
	is_int(got.priority, -2, "the priority is what was set");
	is_int(cudaStreamCopyAttributes(cudaStreamPerThread, s), cudaSuccess, "cudaStreamCopyAttributes");
	is_int(cudaStreamDestroy(s), cudaSuccess, "cudaStreamDestroy");
	cudaFree(d);
}

/* A name that is not done yet says so once. */
cudaError_t cudaMemset_ptds(void *p, int value, size_t n);
cudaError_t cudaMemset2D_ptds(void *p, size_t pitch, int value, size_t width, size_t height);
cudaError_t cudaMemset3D_ptds(struct cudaPitchedPtr at, int value, struct cudaExtent e);

static void late(void *arg)
{
	(void)arg;
	usleep(30000);
}

/* A fill of memory at which the program may look is done when it returns, whatever came before it. */
static void filled(unsigned char *p, const char *what)
{
	static const char *const name[] = {"cudaMemset", "cudaMemset2D", "cudaMemset3D"};
	struct cudaPitchedPtr box = {p, 64, 64, 8};
	struct cudaExtent e = {64, 8, 8};

	for (int i = 0; i < 6; i++) {
		bool own = i % 2;
		cudaError_t r = cudaLaunchHostFunc(own ? cudaStreamPerThread : cudaStreamLegacy, late, NULL);
		int bad = 0;

		if (!r && i < 2)
			r = own ? cudaMemset_ptds(p, i + 1, 4096) : cudaMemset(p, i + 1, 4096);
		else if (!r && i < 4)
			r = own ? cudaMemset2D_ptds(p, 64, i + 1, 64, 64) : cudaMemset2D(p, 64, i + 1, 64, 64);
		else if (!r)
			r = own ? cudaMemset3D_ptds(box, i + 1, e) : cudaMemset3D(box, i + 1, e);
		for (int k = 0; k < 4096; k++)
			bad += p[k] != i + 1;
		ok(!r && !bad, "%s%s of %s memory is done when it returns: %s, %d bytes are old", name[i / 2], own ? "_ptds" : "",
		   what, cudaGetErrorName(r), bad);
	}
}

static void fills(void)
{
	unsigned char *p;

	is_int(cudaMallocManaged((void **)&p, 4096, cudaMemAttachGlobal), cudaSuccess, "cudaMallocManaged");
	filled(p, "managed");
	cudaFree(p);
	is_int(cudaMallocHost((void **)&p, 4096), cudaSuccess, "cudaMallocHost");
	filled(p, "page-locked");
	cudaFreeHost(p);
}

static void unsupported(void)
{
	char said[1024];
	int fd[2], old = dup(2);
	ssize_t n;
	cudaError_t first, second;

	if (pipe(fd)) {
		ok(false, "pipe");
		return;
	}
	dup2(fd[1], 2);
	first = cudaGLSetGLDevice(0);
	second = cudaGLSetGLDevice(0);
	dup2(old, 2);
	close(fd[1]);
	n = read(fd[0], said, sizeof(said) - 1);
	close(fd[0]);
	close(old);
	said[n > 0 ? n : 0] = 0;
	is_int(first, cudaErrorNotSupported, "a call that cannot be had");
	is_int(second, cudaErrorNotSupported, "the same again");
	ok(strstr(said, "cudaGLSetGLDevice cannot be had from a GPU in another machine") &&
		   strchr(said, '\n') == strrchr(said, '\n'),
	   "is told once, by name: %.40s…", said);
	is_int(cudaGetLastError(), cudaErrorNotSupported, "and remembered");
}

int main(void)
{
	register_all();
	devices();
	errors();
	memory();
	boxes();
	configuration();
	launches();
	library();
	streams();
	batches();
	fills();
	unsupported();
	is_int(cudaDeviceReset(), cudaSuccess, "cudaDeviceReset");
	is_int(cudaFree(0), cudaSuccess, "and the runtime starts again");
	launches();
	__cudaUnregisterFatBinary(handle);
	return tap_done();
}
