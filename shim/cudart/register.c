/* SPDX-License-Identifier: MIT */
/* What nvcc's constructors register: fat binaries, kernels and variables by their host addresses, loaded when first used. */
#include "shim/cudart/cudart.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fatbinary {
	const void *wrapper;
	CUlibrary lib;	    /* NULL until something in it is used */
	cudaError_t failed; /* why loading failed: told again without asking the driver again */
	bool started;	    /* its managed variables are where the program was told */
	struct entry *entries;
};

/* A host address and what it stands for on the device. */
struct entry {
	const void *host; /* hash key: the stub function, or the variable */
	const char *name; /* lies in the program */
	struct fatbinary *fatbin;
	struct entry *next_hash, *next_fatbin;
	enum { KERNEL, VARIABLE, MANAGED } kind;
	void **managed;	 /* the program's pointer, filled when the module starts */
	CUkernel kernel; /* KERNEL, once asked for */
};

/* A kernel handle that the program holds: tells a cudaKernel_t from a stub's address where both may come. */
struct handle {
	CUkernel kernel;
	struct handle *next;
};

#define BUCKETS 4096

/*
 * Guards both tables and all that hangs off them. Look-ups take it too: launches from <<<>>> come
 * with a handle that the stub keeps, so they only pass through here to check the handle.
 */
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct entry *entries[BUCKETS];
static struct handle *handles[BUCKETS];

static unsigned int bucket(const void *p)
{
	uint64_t x = (uint64_t)(uintptr_t)p * 0x9e3779b97f4a7c15ull;

	return x >> 52;
}

static struct entry *find(const void *host)
{
	struct entry *e = entries[bucket(host)];

	while (e && e->host != host)
		e = e->next_hash;
	return e;
}

static bool known(CUkernel k)
{
	struct handle *h = handles[bucket(k)];

	while (h && h->kernel != k)
		h = h->next;
	return h;
}

/* With the lock held for writing. */
static void know(CUkernel k)
{
	struct handle *h;

	if (known(k))
		return;
	h = malloc(sizeof(*h));
	if (!h)
		return; /* then the handle isn't taken as one: an error at the launch, nothing worse */
	h->kernel = k;
	h->next = handles[bucket(k)];
	handles[bucket(k)] = h;
}

static void forget(CUkernel k)
{
	struct handle **at = &handles[bucket(k)];

	while (*at && (*at)->kernel != k)
		at = &(*at)->next;
	if (*at) {
		struct handle *h = *at;

		*at = h->next;
		free(h);
	}
}

void cudart_know_kernel(CUkernel k)
{
	pthread_rwlock_wrlock(&lock);
	know(k);
	pthread_rwlock_unlock(&lock);
}

void cudart_forget_kernel(CUkernel k)
{
	pthread_rwlock_wrlock(&lock);
	forget(k);
	pthread_rwlock_unlock(&lock);
}

CUDART_API void **__cudaRegisterFatBinary(void *wrapper)
{
	struct fatbinary *f = calloc(1, sizeof(*f));

	if (!f) {
		fprintf(stderr, "libcudart (rgpu): out of memory while the program starts\n");
		abort(); /* the interface has no way to say so */
	}
	f->wrapper = wrapper;
	return (void **)f;
}

CUDART_API void __cudaRegisterFatBinaryEnd(void **handle)
{
	(void)handle; /* loading is lazy: nothing to do until a kernel or variable of it is used */
}

static void add(void **fatbin, const void *host, const char *name, int kind, void **managed)
{
	struct entry *e = calloc(1, sizeof(*e));

	if (!e) {
		fprintf(stderr, "libcudart (rgpu): out of memory while the program starts\n");
		abort();
	}
	e->host = host;
	e->name = name;
	e->kind = kind;
	e->managed = managed;
	e->fatbin = (struct fatbinary *)fatbin;
	pthread_rwlock_wrlock(&lock);
	e->next_hash = entries[bucket(host)];
	entries[bucket(host)] = e;
	e->next_fatbin = e->fatbin->entries;
	e->fatbin->entries = e;
	pthread_rwlock_unlock(&lock);
}

CUDART_API void __cudaRegisterFunction(void **handle, const char *host, char *dev, const char *name, int limit, uint3 *tid,
				       uint3 *bid, dim3 *block, dim3 *grid, int *warp)
{
	(void)dev, (void)limit, (void)tid, (void)bid, (void)block, (void)grid, (void)warp; /* from long ago, always empty */
	add(handle, host, name, KERNEL, NULL);
}

CUDART_API void __cudaRegisterVar(void **handle, char *host, char *dev, const char *name, int ext, size_t size, int constant,
				  int global)
{
	(void)dev, (void)ext, (void)size, (void)constant, (void)global;
	add(handle, host, name, VARIABLE, NULL);
}

CUDART_API void __cudaRegisterManagedVar(void **handle, void **host, char *dev, const char *name, int ext, size_t size,
					 int constant, int global)
{
	(void)dev, (void)ext, (void)size, (void)constant, (void)global;
	add(handle, host, name, MANAGED, host);
}

/* With the lock held for writing and a context current. */
static cudaError_t load(struct fatbinary *f)
{
	/* The image lies in the program for as long as the library is loaded: the driver needs no copy. */
	CUlibraryOption option = CU_LIBRARY_BINARY_IS_PRESERVED;
	void *yes = (void *)1;

	if (!f->lib && !f->failed) {
		f->failed = cudart_error(drv.cuLibraryLoadData(&f->lib, f->wrapper, NULL, NULL, 0, &option, &yes, 1));
		if (f->failed)
			f->lib = NULL;
	}
	return f->failed;
}

static atomic_bool managed;	 /* the program was given managed variables */
static _Atomic uint64_t without; /* bit per device that was reset since */

/* With the lock held for writing: makes a managed variable, and tells the program where it is. */
static cudaError_t place(const struct entry *e)
{
	size_t size;

	atomic_store(&managed, true);
	return cudart_error(drv.cuLibraryGetManaged((CUdeviceptr *)e->managed, &size, e->fatbin->lib, e->name));
}

void cudart_managed_gone(int device)
{
	if (atomic_load(&managed))
		atomic_fetch_or(&without, 1ull << device);
}

cudaError_t cudart_managed_again(void)
{
	cudaError_t err = cudaSuccess;
	CUdevice dev;
	uint64_t bit;

	if (__builtin_expect(!atomic_load_explicit(&without, memory_order_relaxed), 1))
		return cudaSuccess;
	err = cudart_error(drv.cuCtxGetDevice(&dev));
	if (err)
		return err;
	bit = 1ull << dev;
	if (!(atomic_fetch_and(&without, ~bit) & bit))
		return cudaSuccess;
	pthread_rwlock_wrlock(&lock);
	for (unsigned int i = 0; i < BUCKETS && !err; i++)
		for (struct entry *e = entries[i]; e && !err; e = e->next_hash)
			if (e->kind == MANAGED && e->fatbin->started)
				err = place(e);
	pthread_rwlock_unlock(&lock);
	return err;
}

CUDART_API char __cudaInitModule(void **handle)
{
	struct fatbinary *f = (struct fatbinary *)handle;
	cudaError_t err = cudart_context();

	if (err) {
		cudart_fail(err);
		return 0;
	}
	pthread_rwlock_wrlock(&lock);
	err = load(f);
	for (struct entry *e = f->entries; e && !err; e = e->next_fatbin)
		if (e->kind == MANAGED)
			err = place(e);
	f->started = !err;
	pthread_rwlock_unlock(&lock);
	cudart_fail(err);
	return !err;
}

CUDART_API void __cudaUnregisterFatBinary(void **handle)
{
	struct fatbinary *f = (struct fatbinary *)handle;
	struct entry *e, **at;

	pthread_rwlock_wrlock(&lock);
	while ((e = f->entries)) {
		f->entries = e->next_fatbin;
		for (at = &entries[bucket(e->host)]; *at != e;)
			at = &(*at)->next_hash;
		*at = e->next_hash;
		if (e->kernel)
			forget(e->kernel);
		free(e);
	}
	pthread_rwlock_unlock(&lock);
	if (f->lib)
		drv.cuLibraryUnload(f->lib); /* at exit the driver may be gone already: nobody to tell */
	free(f);
}

/* The slow way of cudart_kernel: loads the fat binary and asks for the kernel. */
static cudaError_t resolve(const void *host, CUkernel *k)
{
	struct entry *e;
	cudaError_t err = cudaErrorInvalidDeviceFunction;

	pthread_rwlock_wrlock(&lock);
	e = find(host);
	if (e && e->kind == KERNEL) {
		err = load(e->fatbin);
		if (!err && !e->kernel) {
			err = cudart_error(drv.cuLibraryGetKernel(&e->kernel, e->fatbin->lib, e->name));
			if (err)
				e->kernel = NULL;
			else
				know(e->kernel);
		}
		*k = e->kernel;
		if (err == cudaErrorSymbolNotFound)
			err = cudaErrorInvalidDeviceFunction;
	}
	pthread_rwlock_unlock(&lock);
	return err;
}

cudaError_t cudart_kernel(const void *func, CUkernel *k)
{
	struct entry *e;
	bool found;

	*k = NULL;
	pthread_rwlock_rdlock(&lock);
	e = find(func);
	if (e)
		*k = e->kernel;
	else if (known((CUkernel)func))
		*k = (CUkernel)func;
	found = *k;
	pthread_rwlock_unlock(&lock);
	return found ? cudaSuccess : resolve(func, k);
}

const void *cudart_kernel_host(CUkernel k)
{
	const void *host = k;

	pthread_rwlock_rdlock(&lock);
	for (unsigned int i = 0; i < BUCKETS && host == (const void *)k; i++)
		for (struct entry *e = entries[i]; e; e = e->next_hash)
			if (e->kernel == k) {
				host = e->host;
				break;
			}
	pthread_rwlock_unlock(&lock);
	return host;
}

/* The program's name of a managed variable is where it lies, not the pointer that was registered. */
static struct entry *find_managed(const void *at)
{
	for (unsigned int i = 0; i < BUCKETS; i++)
		for (struct entry *e = entries[i]; e; e = e->next_hash)
			if (e->kind == MANAGED && *e->managed == at)
				return e;
	return NULL;
}

cudaError_t cudart_symbol(const void *host, CUdeviceptr *ptr, size_t *size)
{
	struct entry *e;
	cudaError_t err = cudaErrorInvalidSymbol;

	pthread_rwlock_wrlock(&lock);
	e = find(host);
	if (!e && host)
		e = find_managed(host);
	if (e && e->kind != KERNEL) {
		err = load(e->fatbin);
		if (!err && e->kind == MANAGED)
			err = cudart_error(drv.cuLibraryGetManaged(ptr, size, e->fatbin->lib, e->name));
		else if (!err)
			err = cudart_error(drv.cuLibraryGetGlobal(ptr, size, e->fatbin->lib, e->name));
		if (err == cudaErrorSymbolNotFound)
			err = cudaErrorInvalidSymbol;
	}
	pthread_rwlock_unlock(&lock);
	return err;
}

/*
 * A stub asks for its kernel once, ignores the outcome, and launches with what it got: NULL after a
 * failure. The launch then says why, with the last such failure of the process.
 */
static _Atomic cudaError_t why_null = cudaErrorInvalidDeviceFunction;

CUDART_API cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host)
{
	cudaError_t e = cudart_context();

	if (!e)
		e = cudart_kernel(host, kernel);
	if (e)
		why_null = e;
	return cudart_fail(e);
}

cudaError_t cudart_why_null(void)
{
	return why_null;
}

cudaError_t cudaGetKernel(cudaKernel_t *kernel, const void *host)
{
	if (!kernel)
		return cudart_fail(cudaErrorInvalidValue);
	return __cudaGetKernel(kernel, host);
}
