/* SPDX-License-Identifier: MIT */
/* The PTX engine's public face: load PTX text into a module, look its functions up, run a grid. */
#ifndef SOFTGPU_PTX_H
#define SOFTGPU_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ptx_module;
struct ptx_func;

enum ptx_status {
	PTX_OK = 0,
	PTX_NOMEM,	 /* host memory */
	PTX_VERSION,	 /* of a newer ISA (CUDA_ERROR_UNSUPPORTED_PTX_VERSION) */
	PTX_SYNTAX,	 /* the text is not PTX (CUDA_ERROR_INVALID_PTX) */
	PTX_UNSUPPORTED, /* a form the engine does not run (CUDA_ERROR_INVALID_PTX) */
	PTX_ILLEGAL_ADDRESS,
	PTX_MISALIGNED,
	PTX_ILLEGAL_INSTRUCTION, /* also trap */
	PTX_ASSERT,
	PTX_DEADLOCK, /* every split is blocked and no barrier can complete */
	PTX_OUT_OF_RESOURCES,
	PTX_CANCELLED,
	PTX_TIMEOUT,
	PTX_STACK, /* calls or alloca beyond the stack */
};

/*
 * Memory for module globals (.global, .const) comes from the caller, so that they lie in the arena
 * and cuModuleGetGlobal's address works in copies and kernels alike. alloc returns 0 when there is
 * none. Both are called from ptx_module_load and ptx_module_free only.
 */
struct ptx_mem {
	uint64_t (*alloc)(void *arg, size_t bytes, size_t align);
	void (*free)(void *arg, uint64_t addr);
	void *arg;
	size_t heap_bytes; /* for device malloc, in modules that use it; 0: CUDA's default */
};

/*
 * Parses and lowers all of @text (@len bytes, a trailing NUL not required). Every function is lowered at load, so what cannot
 * run is refused here with the line of PTX. @log gets at most @log_size bytes, always terminated:
 * "FUNCTION: line N: cause", without the function where it is none's. Thread-safe.
 */
enum ptx_status ptx_module_load(const char *text, size_t len, const struct ptx_mem *mem, struct ptx_module **out, char *log,
				size_t log_size);
/* The same, but each function that is refused is told, with its own first cause, as a line like the log's. */
enum ptx_status ptx_module_check(const char *text, size_t len, const struct ptx_mem *mem, struct ptx_module **out,
				 void (*refuse)(void *arg, const char *cause), void *arg);
void ptx_module_free(struct ptx_module *m);
/* Whether kernels of it allocate: it has a heap of its own then. */
bool ptx_module_has_heap(const struct ptx_module *m);

/* Kernels (.entry) in the order of the text; NULL when there is no such. */
struct ptx_func *ptx_module_kernel(struct ptx_module *m, const char *name);
struct ptx_func *ptx_module_kernel_at(struct ptx_module *m, size_t index);

/* Finds a .global or .const variable by name: address and size in bytes. */
bool ptx_module_global(struct ptx_module *m, const char *name, uint64_t *addr, size_t *bytes);
bool ptx_module_managed(struct ptx_module *m, const char *name); /* there is such a variable, and it is managed */

struct ptx_param {
	uint32_t offset, size; /* bytes, in the kernel's packed parameter block */
};

struct ptx_func_info {
	const char *name;
	uint32_t nparams, param_bytes;
	const struct ptx_param *params;
	uint32_t shared_bytes; /* static */
	uint32_t const_bytes;
	uint32_t local_bytes;	  /* per thread */
	uint32_t regs;		  /* an estimate for attribute queries and occupancy: 32-bit registers a thread */
	uint32_t max_threads;	  /* .maxntid/.reqntid product, else 1024 */
	uint32_t cluster[3];	  /* .reqnctapercluster, else 0 */
	uint32_t max_cluster;	  /* .maxclusterrank, else 0 */
	bool explicit_cluster;	  /* .explicitcluster: a launch must have clusters */
	bool blocks_are_clusters; /* .blocksareclusters: a launch's grid counts clusters */
	uint32_t target;	  /* 75 for sm_75 … */
	uint32_t version;	  /* 90 for PTX 9.0 … */
};
const struct ptx_func_info *ptx_func_info(const struct ptx_func *f);

struct ptx_launch {
	uint32_t grid[3], block[3];
	uint32_t cluster[3]; /* blocks; 0: what the kernel says, which must be equal else */
	uint32_t dyn_shared; /* bytes */
	const void *params;  /* info.param_bytes bytes */
	unsigned threads;    /* host threads to use, ≥ 1; the caller's own is one of them */
	bool cooperative;
	bool plain; /* only the general form of the code, without the analysis of whole.c: for tests */
	/* Device printf's finished bytes, in order within one call; NULL discards. Called under a lock. */
	void (*print)(void *arg, const char *text, size_t len);
	void *print_arg;
	void (*condition)(uint64_t handle, uint32_t value); /* cudaGraphSetConditional; any thread; may be NULL */
	const volatile int *cancel; /* checked at back-edges; non-zero ends the launch with PTX_CANCELLED; may be NULL */
	uint64_t deadline;	    /* of CLOCK_MONOTONIC, in ns, for the grid and its children: PTX_TIMEOUT; 0: none */
};

struct ptx_fault {
	uint32_t block[3], thread[3]; /* who */
	uint64_t addr;		      /* what, for the two address faults */
	uint32_t line;		      /* of PTX */
	const char *kernel;	      /* the child grid's, when it was not the launched kernel; the module's memory */
	char text[256];		      /* one line for the log */
};

/* The clusters' shape for a launch that asks for @asked (0: nothing); false: the kernel cannot have that one. */
bool ptx_cluster_shape(const struct ptx_func_info *info, const uint32_t asked[3], uint32_t out[3]);

/*
 * Runs the grid to its end, in the caller's thread and @threads − 1 of the engine's pool. Reentrant:
 * several launches may run at once. On a fault the other blocks stop soon after and *@fault is
 * filled in.
 */
enum ptx_status ptx_launch(struct ptx_func *f, const struct ptx_launch *l, struct ptx_fault *fault);

#endif
