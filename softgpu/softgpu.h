/* SPDX-License-Identifier: MIT */
/* The driver's inside: objects behind handles, devices, contexts, streams and their operations, memory. */
#ifndef SOFTGPU_H
#define SOFTGPU_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All ABI versions of every name, exported. */
#define __CUDA_API_VERSION_INTERNAL
#pragma GCC visibility push(default)
#include <cuda.h>
/* Theirs is a header that not every toolkit has. */
CUresult cuProfilerStart(void);
CUresult cuProfilerStop(void);
#include "softgpu/softgpu_api.h"
#pragma GCC visibility pop

#include "softgpu/arena.h"
#include "softgpu/list.h"
#include "softgpu/ptx/ptx.h"

#define SOFTGPU_DEVICES_MAX    16
#define SOFTGPU_DRIVER_VERSION 13000
#define SOFTGPU_CC_MAJOR       12
#define SOFTGPU_CC_MINOR       1

#define ARRAY_SIZE(a)		      (sizeof(a) / sizeof((a)[0]))
#define container_of(p, type, member) ((type *)((char *)(p)-offsetof(type, member)))

/* Returns from the calling function when @call gives an error. */
#define TRY(call)                                                                                                                \
	do {                                                                                                                     \
		CUresult try_ = (call);                                                                                          \
		if (try_ != CUDA_SUCCESS)                                                                                        \
			return try_;                                                                                             \
	} while (0)

/* ---- Objects and handles (handles.c) ---- */

enum obj_kind {
	OBJ_CTX = 1,
	OBJ_STREAM,
	OBJ_EVENT,
	OBJ_MODULE,
	OBJ_FUNCTION,
	OBJ_LIBRARY,
	OBJ_KERNEL,
	OBJ_PHYS,
	OBJ_POOL,
	OBJ_LINK,
	OBJ_ARRAY,
	OBJ_MIPMAP,
};

struct ctx;

/*
 * The head of everything that a handle names. Handles are slots of one table, never pointers, so
 * garbage can't be followed. The table holds one reference from obj_publish() to obj_retire().
 */
struct obj {
	atomic_uint refs;
	enum obj_kind kind;
	uintptr_t handle;	       /* 0 until published */
	struct ctx *ctx;	       /* the context that it dies with, or NULL; not a reference */
	void (*release)(struct obj *); /* frees the memory; called with no lock held */
};

void obj_init(struct obj *o, enum obj_kind kind, struct ctx *ctx, void (*release)(struct obj *));
bool obj_publish(struct obj *o);
/* A reference, or NULL when @handle names no living object of @kind. */
void *obj_get(const void *handle, enum obj_kind kind);
void obj_ref(struct obj *o);
void obj_put(struct obj *o);
/* Takes @o out of the table; true for the one caller that did it. */
bool obj_retire(struct obj *o);
/* A reference to some living object of @kind that belongs to @ctx, or NULL: for tearing a context down. */
struct obj *obj_first_of(struct ctx *ctx, enum obj_kind kind);

/* Declares a pointer to an object (whose struct begins with a struct obj) and drops the reference at the end of scope. */
#define AUTO_PUT __attribute__((cleanup(obj_auto_put)))
static inline void obj_auto_put(void *pp)
{
	struct obj *o = *(struct obj **)pp;

	if (o)
		obj_put(o);
}

/* ---- Devices (device.c) ---- */

struct device {
	int index;
	char name[64];
	CUuuid uuid;
	uint64_t total;	      /* bytes of memory */
	atomic_ullong used;   /* bytes charged; device_charge() and device_uncharge() only */
	unsigned int threads; /* host threads that one kernel may use = multiprocessors */
	pthread_mutex_t lock; /* primary context's fields */
	struct ctx *primary;  /* made at cuInit, never freed: its handle outlives release and retain */
	unsigned int retained;
	unsigned int primary_flags;
	atomic_size_t heap_bytes;	  /* of device malloc in modules loaded from now on; 0: the default */
	atomic_uint heaps;		  /* modules loaded that have one */
	struct pool *pool, *current_pool; /* the default one; the one that cuMemAllocAsync takes from */
};

extern struct device softgpu_device[SOFTGPU_DEVICES_MAX];
extern int softgpu_devices;

CUresult devices_init(void);
struct device *device_get(CUdevice dev); /* NULL when there is none */
bool device_charge(struct device *d, uint64_t bytes);
void device_uncharge(struct device *d, uint64_t bytes);
CUresult device_attribute(int *value, CUdevice_attribute attr, const struct device *d);

#define SMEM_BLOCK_DEFAULT (48u << 10)
#define SMEM_BLOCK_OPTIN   (99u << 10)
#define SMEM_SM		   (100u << 10)
#define SMEM_RESERVED	   1024u
#define THREADS_BLOCK	   1024u
#define CLUSTER_PORTABLE   8u
#define CLUSTER_MOST	   16u
#define THREADS_SM	   1536u
#define BLOCKS_SM	   24u
#define REGS_SM		   65536u

/* ---- Contexts (context.c, primary.c) ---- */

struct ctx {
	struct obj obj;
	struct device *dev;
	bool primary;
	atomic_bool alive;   /* false: destroyed, or a primary context that nobody retains */
	atomic_int error;    /* sticky CUresult; 0 while it works */
	volatile int cancel; /* stops running kernels when the context fails or goes */
	unsigned int flags, api_version;
	unsigned long long id;
	unsigned long long lives; /* a number for each activation, unique in the process */
	struct list streams;	  /* struct stream.of_ctx, under the scheduler's lock */
	struct stream *legacy;	  /* the NULL stream; under the scheduler's lock, see sched_legacy() */
	pthread_mutex_t lock;	  /* the fields below */
	size_t limit[CU_LIMIT_MAX];
	CUfunc_cache cache;
	CUsharedconfig shared_config;
	uint32_t peers; /* bit i: access to device i enabled */
};

/* Checks that every entry point makes: initialised, not in a forked child, not inside a host function. */
CUresult api_enter(void);
/* api_enter, and the calling thread's current context with a reference; its sticky error when it has one. */
/* Flags of a context: known ones, and at most one way of waiting. */
static inline bool ctx_flags_ok(unsigned int flags)
{
	unsigned int sched = flags & CU_CTX_SCHED_MASK;

	return !(flags & ~CU_CTX_FLAGS_MASK) && !(sched & (sched - 1));
}

CUresult ctx_enter(struct ctx **out);
/* The context that @handle names, or for NULL the current one, with a reference. */
CUresult ctx_resolve(CUcontext handle, struct ctx **out);
CUresult ctx_create(struct device *d, unsigned int flags, bool primary, struct ctx **out);
CUresult ctx_activate(struct ctx *c); /* makes the legacy stream and resets what a new context starts with */
void ctx_teardown(struct ctx *c);     /* ends all work, destroys all that belongs to it */
void ctx_fail(struct ctx *c, CUresult error);
CUresult ctx_push(CUcontext handle);
void ctx_forget(CUcontext handle); /* pops @handle when it is on the calling thread's top */
CUresult primary_init(struct device *d);
CUresult pool_init(struct device *d);

/* ---- Streams and their operations (sched.c) ---- */

struct stream {
	struct obj obj;
	struct ctx *ctx; /* a reference */
	unsigned int flags;
	int priority;
	unsigned long long id;
	bool blocking; /* orders with the legacy stream */
	struct {       /* under the context's lock */
		CUsynchronizationPolicy sync;
		CUlaunchMemSyncDomainMap domain_map;
		CUlaunchMemSyncDomain domain;
	} attr;
	/* The rest is under the scheduler's lock. */
	struct list of_ctx;
	struct op *head, *tail;
	uint64_t issued, done; /* sequence numbers of the last operation queued and ended */
	bool running;	       /* a thread has taken the head */
	bool ready;	       /* in the ready queue */
	struct list link;      /* in the ready queue, in another stream's waiters, or in the poll list */
	struct list waiters;   /* streams whose head waits for this one */
	pthread_cond_t ended;
	unsigned int sleepers; /* threads in ended */
};

/* "Everything that @stream was given up to @seq." */
struct dep {
	struct stream *stream; /* a reference */
	uint64_t seq;
};

/*
 * One piece of work. run is called on a stream thread (or on the caller's own, when it waits
 * anyway), with no lock held; what it returns other than 0 fails the context. ready, when there, is asked under the
 * scheduler's lock until it says true. drop frees the operation, run or not, with no lock held.
 */
struct op {
	struct op *next;
	CUresult (*run)(struct op *op, struct stream *s);
	bool (*ready)(struct op *op);
	void (*drop)(struct op *op);
	bool always;	       /* runs even after the context failed */
	bool quick;	       /* takes next to no time and never blocks: may run in the thread that submits it */
	struct stream *stream; /* a reference, from submission on */
	uint64_t seq;
	unsigned int ndeps, deps_room;
	struct dep *deps;
};

/* True on a stream thread, where host functions and callbacks run. */
extern _Thread_local bool softgpu_in_host_function;

CUresult stream_create(struct ctx *c, unsigned int flags, int priority, struct stream **out);
/* The stream that @handle names with a reference (NULL, 1: legacy; 2: the thread's), and its context's sticky error. */
CUresult stream_resolve(CUstream handle, struct stream **out);
void stream_close(struct stream *s); /* retires it; queued work still runs */

/* Zeroed memory for an operation that begins with a struct op. */
void *op_new(size_t bytes, CUresult (*run)(struct op *, struct stream *), void (*drop)(struct op *));
void op_free(struct op *op); /* the plain drop */
bool op_depends(struct op *op, struct stream *s, uint64_t seq);
/* Makes @op wait for all work given so far to all streams of @c. */
bool op_depends_on_ctx(struct op *op, struct ctx *c);

/* Queues @op, which the stream then owns, also on failure; *seq is its number when wanted. */
CUresult stream_submit(struct stream *s, struct op *op, uint64_t *seq);
/* Queues @op and waits until it has run; the context's status afterwards. */
CUresult stream_submit_wait(struct stream *s, struct op *op);
void stream_wait_seq(struct stream *s, uint64_t seq);
bool stream_reached(struct stream *s, uint64_t seq);
CUresult stream_synchronize(struct stream *s);
void ctx_drain(struct ctx *c);	    /* waits for all work of all its streams */
void sched_wake_ctx(struct ctx *c); /* after ctx_fail: nothing of @c waits any longer */
bool sched_idle(struct stream *s);
/* Operations with a ready need it: whether somebody will ask them. */
bool sched_can_poll(void);
struct stream *sched_legacy(struct ctx *c);
struct stream *sched_set_legacy(struct ctx *c, struct stream *s);

/* Operations that run at this moment: while it is not 0, pages are never taken away, only replaced. */
extern atomic_uint softgpu_running;

/* ---- Memory (arena.c, memory.c, vmm.c) ---- */

enum alloc_kind {
	ALLOC_DEVICE,
	ALLOC_HOST, /* page-locked host memory: in the arena too, so kernels reach it */
	ALLOC_MANAGED,
	ALLOC_REGISTERED, /* the program's own memory */
};

struct alloc {
	uint64_t base, bytes; /* bytes as asked */
	uint64_t room;	      /* bytes taken in the arena; 0 for registered memory */
	enum alloc_kind kind;
	struct device *dev;
	struct ctx *ctx; /* only to compare: not a reference; NULL for module memory */
	uintptr_t ctx_handle;
	bool hidden;	/* module globals: no cuMemFree */
	uintptr_t pool; /* handle; 0 when it is from none */
	unsigned int flags;
	unsigned long long id;
	bool sync_memops;
};

CUresult arena_init(uint64_t hint, uint64_t bytes); /* the first call reserves; later ones do nothing */
/* Address space in granules, unmapped. at ≠ 0 asks for that address. 0 when there is none. */
uint64_t arena_take(uint64_t bytes, uint64_t align, uint64_t at);
void arena_give(uint64_t addr, uint64_t bytes);
bool arena_map(uint64_t addr, uint64_t bytes); /* fresh zero pages */
bool arena_map_file(uint64_t addr, uint64_t bytes, int fd, uint64_t offset, bool accessible);
void arena_set_access(uint64_t addr, uint64_t bytes, bool accessible);
void arena_unmap(uint64_t addr, uint64_t bytes);

/* Allocates and enters a new allocation; charged to @d unless it is host memory. */
CUresult mem_alloc(struct ctx *c, struct device *d, enum alloc_kind kind, uint64_t bytes, struct alloc *out);
CUresult mem_alloc_host(struct ctx *c, uint64_t bytes, unsigned int flags, struct alloc *out);
CUresult mem_alloc_pool(struct ctx *c, struct device *d, uint64_t bytes, uintptr_t pool, struct alloc *out);
/* Zeroed memory that no pointer of the program names. */
CUresult mem_alloc_array(struct device *d, uint64_t bytes, struct alloc *out);
void mem_free_array(const struct alloc *a);
CUresult mem_enter(const struct alloc *a); /* enters memory that was got elsewhere (registered) */
/* The allocation that contains @addr, copied; false when none does. */
bool mem_find(uint64_t addr, struct alloc *out);
bool mem_remove(uint64_t base, struct alloc *out);
/* After mem_remove; @uncharge unless the device's and the pool's accounts have been settled already. */
void mem_release(const struct alloc *a, bool uncharge);
void pool_uncharge(const struct alloc *a);
bool mem_set_sync_memops(uint64_t base, bool on);
void mem_free_of_ctx(struct ctx *c);
/* INVALID_VALUE unless all of [addr, addr + bytes) is one allocation's, or mapped memory. */
CUresult mem_check(uint64_t addr, uint64_t bytes);

struct mapping {
	uint64_t base, bytes;
	uint64_t id; /* of the physical memory */
	int device;  /* -1: host */
	uint64_t reserved_base, reserved_bytes;
};
bool vmm_find(uint64_t addr, struct mapping *out);

struct ptx_mem module_memory(struct device *d);

/* ---- Modules and functions (image.c, module.c, library.c, function.c) ---- */

/* One image loaded for one context; a library's instance before any context asks for it has obj.ctx NULL. */
struct module {
	struct obj obj;
	struct device *dev;
	struct ptx_module *ptx;
	size_t nfuncs;
	struct function **funcs; /* one reference each */
};

struct function {
	struct obj obj;
	struct module *module; /* a reference while the module is loaded; see module_retire() */
	struct ptx_func *ptx;
	const struct ptx_func_info *info;
	atomic_int max_dyn_shared, carveout, cluster_policy, nonportable;
	atomic_int cluster[3]; /* what each launch must have, 0: what it likes */
};

/*
 * PTX text for our devices out of any @image that cuModuleLoadData takes: malloc'd in *text. @len
 * is SIZE_MAX when unknown. On failure a line for people in @log.
 */
CUresult image_text(const void *image, size_t len, char **text, size_t *bytes, char *log, size_t log_bytes);

struct jit_options {
	unsigned int n;
	const CUjit_option *option;
	void **value;
};

/* Loads @image for device @d; not published yet, of no context. Fills the logs of @jit. */
CUresult module_load(const void *image, size_t len, const struct jit_options *jit, struct device *d, struct module **out);
CUresult module_bind(struct module *m, struct ctx *c);		      /* makes it @c's and publishes it and its functions */
void module_retire(struct module *m);				      /* unloads it; launches that are queued still run */
struct function *module_function(struct module *m, const char *name); /* no reference */

/* The function of @handle, which may be a CUkernel: that one's function in @c. With a reference. */
CUresult function_resolve(CUfunction handle, struct ctx *c, struct function **out);
void function_defaults(struct function *f); /* the settable attributes of a function that has its info */
CUresult function_attribute(int *value, CUfunction_attribute attr, const struct function *f);
CUresult function_set_attribute(struct function *f, CUfunction_attribute attr, int value);
CUresult function_param(const struct ptx_func_info *info, size_t index, size_t *offset, size_t *bytes);

/* The clusters' shape for a launch of @f that asks for @asked (0: nothing), in @out; CUDA_ERROR_INVALID_CLUSTER_SIZE. */
CUresult function_cluster(const struct function *f, const uint32_t asked[3], uint32_t out[3]);

/* Blocks of @f that fit on a multiprocessor; 0 when none does. */
unsigned int occupancy_blocks(const struct function *f, unsigned int threads, size_t dyn_shared);

/* ---- Events (event.c) ---- */

/* Queues a record of the event behind what @s was given. */
CUresult event_record(CUevent handle, struct stream *s, uint64_t *seq); /* seq may be NULL */

void log_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void print_device_text(void *arg, const char *text, size_t len);

#endif
