/* SPDX-License-Identifier: MIT */
/* The process's devices, and the session at each server that stands behind them. */
#ifndef RGPU_SHIM_SESSION_H
#define RGPU_SHIM_SESSION_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "api/props.h"
#include "shim/cuda_api.h"
#include "shim/heap.h"
#include "shim/lane.h"
#include "shim/thread.h"
#include "shim/transport.h"

#define RGPU_DEVICES_MAX 64
#define RGPU_LIBRARIES	 16

struct rgpu_session {
	struct rgpu_transport *transport;
	const struct rgpu_kpage *kpage;
	_Atomic uint64_t counter; /* stamps */
	_Atomic uint64_t waited;  /* work up to this stamp may have been seen done: known.h */
	_Atomic uint64_t changes; /* records that may have changed how much memory is free */
	pthread_mutex_t lock;	  /* started, pool, dead_told */
	bool started;
	atomic_bool failed;
	bool dead_told;
	struct rgpu_lane *pool;		     /* lanes of threads that ended */
	struct rgpu_lane *_Atomic lost;	     /* of those that ended when the session or the process already had */
	_Atomic int pending[RGPU_LIBRARIES]; /* per library: first failing status of quiet calls that nobody was told */
	uint32_t images;		     /* RGPU_IMAGE_…: what the server's driver takes */
	unsigned ndevices;
	struct device *devices[RGPU_DEVICES_MAX]; /* by their index in the session */
	struct window window;
};

/* What cuMemGetInfo said last, while a watch says that it is so; memory.c. */
struct meminfo {
	pthread_mutex_t lock;
	uint64_t watch, changes, free, total;
};

#define RGPU_IMAGE_PTX 1u
#define RGPU_IMAGE_ELF 2u

/* What a launch may have, each thing by itself. */
struct launch_limits {
	unsigned grid[3], block[3];
	unsigned threads, shared, registers; /* of a block */
};

/* A CUdevice. Never freed. */
struct device {
	int ordinal; /* the program's, after CUDA_VISIBLE_DEVICES */
	struct rgpu_session *session;
	unsigned index;	       /* in the session */
	unsigned server_index; /* in the server's list: column of P2P tables */
	struct rgpu_props props;
	int attrs[RGPU_PROPS_ATTRS]; /* what programs are told of it */
	struct launch_limits launch;
	struct heap heap;
	struct meminfo meminfo;
	pthread_mutex_t lock;	  /* the primary context: primary, retained, flags */
	struct rgpu_obj *primary; /* its handle lives for good, so that programs may keep it */
	unsigned retained;
	unsigned primary_flags;
	struct rgpu_obj *pool, *current_pool; /* the default one, once somebody asked; the one of cuMemAllocAsync. lock, too */
};

struct process {
	unsigned ndevices;
	struct device *devices[RGPU_DEVICES_MAX];
	struct rgpu_session *session; /* one server so far */
};

/* cuInit's work, once: finds the devices. A CUresult. */
int process_init(void);

/* 1 in a process that called cuInit with success: a page of its own, which fork() gives the child as zeroes. NULL before. */
extern uint32_t *process_alive;

/* NOT_INITIALIZED before cuInit and in a forked child; else 0. */
static inline int process_ready(void)
{
	uint32_t *word = __atomic_load_n(&process_alive, __ATOMIC_ACQUIRE);

	return word && *word ? 0 : CUDA_ERROR_NOT_INITIALIZED;
}

bool process_exiting(void);		 /* exit() was called */
struct process *process_get(void);	 /* after process_ready() */
struct device *device_find(int ordinal); /* NULL: none */
void device_answer(struct device *d);	 /* fills in attrs and launch, from props */

/* RGPU_PROPS_NONE: the driver does not know it. */
static inline int device_attribute(const struct device *d, CUdevice_attribute attrib)
{
	return (unsigned)attrib < RGPU_PROPS_ATTRS ? d->attrs[attrib] : RGPU_PROPS_NONE;
}

/* Starts the session when it has none yet and opens its window. A CUresult. */
int session_start(struct rgpu_session *s);
struct rgpu_lane *session_lane_first(struct rgpu_session *s, int *err);
/* This thread's lane. NULL: *err. */
static inline struct rgpu_lane *session_lane(struct rgpu_session *s, int *err)
{
	struct rgpu_lane *l = thread_get()->lane;

	return __builtin_expect(l != NULL, 1) ? l : session_lane_first(s, err);
}

void session_lane_back(struct rgpu_lane *l); /* its thread ended */

/* For our libnvrtc and libnvJitLink: whether the server's driver runs PTX and no machine code. Starts the session. */
RGPU_PRIVATE_API int rgpuTakesPtxOnly(void);

static inline bool session_dead(const struct rgpu_session *s)
{
	return atomic_load_explicit(&s->failed, memory_order_relaxed) ||
	       (s->kpage && __atomic_load_n(&s->kpage->state, __ATOMIC_ACQUIRE) == RGPU_SESSION_FAILED);
}

/* The session is over for good: says why once (@why, or what the transport knows), and gives the CUresult for it. */
int session_fail(struct rgpu_session *s, const char *why);
/* One line with what failed and the transport's reason; gives @status back. */
int session_error(struct rgpu_session *s, int status, const char *what);
/* The library whose enum an op's status is in; ours between the two sides are the driver's. */
static inline unsigned op_library(uint16_t op)
{
	return op >> 12 == 15 ? 0 : op >> 12;
}
/* A quiet call failed: the next call of that library gives it. */
void session_pending(struct rgpu_session *s, uint16_t op, int status);
int session_take_pending(struct rgpu_session *s, uint16_t op);

#endif
