/* SPDX-License-Identifier: MIT */
/* A session as the API code sees it: devices, contexts, handles, the address window and what is leased in it. */
#ifndef RGPU_SERVER_SESSION_H
#define RGPU_SERVER_SESSION_H

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>
#include "driver_table.h"
#include "rgpu_ops.h"
#include "server/call.h"
#include "server/host.h"
#include "server/locked.h"

/* A session's twins, and its graphs' host memory, of the memory that this machine has: their pages may all be in use. */
#define SRV_HOST_MAX ((uint64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / 2)

#define SRV_DEVICES_MAX	 32
#define SRV_HANDLE_CHUNK 1024u
#define SRV_HANDLE_MAX	 (1u << 20) /* of one kind */

/* See shim/handles.h: the client chose these numbers. */
#define SRV_HANDLE_TAG	    0x5247ull
#define SRV_HANDLE_KIND(h)  ((unsigned)((h) >> 43 & 0x1f))
#define SRV_HANDLE_INDEX(h) ((uint32_t)((h)&0xffffff))

struct srv_slot {
	uint64_t handle; /* 0: free */
	uint64_t ctx;	 /* handle of the context that it dies with, 0 none */
	void *real;	 /* the driver's pointer; struct srv_ctx, struct srv_module */
};

struct srv_table {
	struct srv_slot *chunk[SRV_HANDLE_MAX / SRV_HANDLE_CHUNK];
};

/* An event of ours that marks a point in a stream. */
struct srv_mark {
	CUevent event;
	struct srv_mark *next;
};

struct srv_ctx {
	CUcontext real;
	unsigned device; /* index in the session */
	bool primary;
	/* Held for writing while the driver destroys the context; who asks about its streams from another thread only tries. */
	pthread_rwlock_t life;
	bool dead;		/* life */
	pthread_mutex_t lock;	/* marks; inside streams_lock */
	struct srv_mark *marks; /* free ones */
	/* Of the list. Held while the driver is asked about its streams, too: one leaves the list before it is destroyed. */
	pthread_mutex_t streams_lock;
	CUstream *stream;
	unsigned nstreams, room;
	unsigned changes;   /* of the list that moved one in it */
	unsigned capturing; /* streams: a question of ours about one, or about the legacy one, would end that */
	struct srv_locked locked;
	bool unlisted; /* there was no memory to list one */
};

enum srv_range_what {
	SRV_RANGE_LEASE,
	SRV_RANGE_PHYS,	  /* the program mapped it itself */
	SRV_RANGE_SHARED, /* a twin of the program's memory */
};

struct srv_range_entry {
	uint64_t addr, bytes;
	unsigned device;
	enum srv_range_what what;
	void *owner;  /* globals: the module; SRV_RANGE_PHYS: the physical memory */
	uint64_t ctx; /* globals: the context that it is of */
	bool managed; /* globals: the driver says that it is */
};

/* Sorted by address. */
struct srv_ranges {
	struct srv_range_entry *list;
	unsigned n, room;
};

/* Physical memory under a handle of the client's: lives while that does or something is mapped from it. lock guards refs and
 * handle. */
struct srv_phys {
	CUmemGenericAllocationHandle real;
	uint64_t bytes;
	unsigned device, refs;
	bool imported; /* another session's memory, in whose figures it is; limits count it here, too */
};

struct srv_device {
	CUdevice dev;
	CUmemAllocationHandleType handle_type; /* what its memory is made with, so that other sessions may have it, too */
	unsigned list_index;		       /* in DEVICE_LIST */
	_Atomic uint64_t used;		       /* bytes leased */
	uint32_t visible_to;		       /* devices of the session, by bit, that access this one's memory */
};

struct srv_session {
	pthread_mutex_t handles_lock; /* table; a leaf */
	pthread_mutex_t events_lock;  /* an event is asked about by another thread than its lane's: it does not go meanwhile */
	struct srv_table table[KIND_MAX];
	pthread_rwlock_t ranges_lock; /* leases, globals */
	struct srv_ranges leases, globals;
	pthread_mutex_t lock; /* window, devices' visible_to; held over driver calls that change mappings */
	uint64_t window, window_bytes;
	unsigned ndevices;
	struct srv_device device[SRV_DEVICES_MAX];
	pthread_mutex_t shared_lock; /* shared; inside lock and ranges_lock */
	struct srv_shared *shared;
	struct srv_early *early; /* EARLY_LINES of them; shared_lock */
	uint64_t early_stamp;	 /* the latest in there */
	unsigned early_next;
	uint64_t shared_bytes;	      /* lock */
	_Atomic uint64_t graph_bytes; /* of graphs' host memory */
	_Atomic uint64_t image_bytes; /* of images that are coming in */
	pthread_mutex_t print_lock;   /* text */
	char *text;
	size_t text_len, text_room;
	bool text_lost;
	struct srv_hosts hosts;
};

/* session.c: handles without a call. NULL: none. The slot's content is copied under the lock. */
bool session_find(struct srv_session *s, enum rgpu_kind kind, uint64_t handle, struct srv_slot *out);
/* The same, and @hold is told of the object while it cannot go. */
bool session_hold(struct srv_session *s, enum rgpu_kind kind, uint64_t handle, struct srv_slot *out, void (*hold)(void *real));
/* Kills all handles that die with a context, and gives each to @fn. */
void session_drop_context(struct srv_session *s, uint64_t ctx,
			  void (*fn)(struct srv_session *s, enum rgpu_kind kind, void *real));

struct srv_ctx *srv_context(struct srv_call *c, uint64_t ctx); /* NULL and the status set */
/* Makes it current on this thread, whichever that is. */
CUresult ctx_enter(struct srv_ctx *x);
/* With it current: what is free of its device and how large that is, as this session may see it. */
CUresult ctx_memory(struct srv_session *s, struct srv_ctx *x, uint64_t *free_bytes, uint64_t *total);
/* After a context was destroyed: no thread may believe that it is still current. */
void ctx_forget_current(void);

bool ranges_add(struct srv_ranges *r, const struct srv_range_entry *e); /* false: it overlaps another, or no memory */
/* All of a module, or of a context. */
void ranges_drop_of(struct srv_ranges *r, const void *owner, uint64_t ctx);
/* That very entry. */
bool ranges_drop(struct srv_ranges *r, uint64_t addr, uint64_t bytes, enum srv_range_what what, struct srv_range_entry *out);
bool session_in_window(const struct srv_session *s, uint64_t addr, uint64_t bytes);

/* call_vmm.c. With one reference; NULL: no memory. The last one is put back with s->lock held, if it was ever mapped. */
struct srv_phys *phys_new(unsigned device, uint64_t bytes, bool imported);
void phys_put(struct srv_session *s, struct srv_phys *p);

/* call_shared.c: the address is the program's page-locked memory's, whose twin this process reaches as well. */
bool shared_is_host(struct srv_session *s, uint64_t addr);
/* The variables of a module, or of a context, have no twins any more. Before they go. */
void shared_drop_of(struct srv_session *s, const void *owner, uint64_t ctx);

bool session_has_text(struct srv_session *s);
void session_print(void *session, const char *text, size_t len);

/* driver.c */
bool driver_takes_elf(void);
void driver_set_print(void (*print)(void *, const char *, size_t), void *arg);

#endif
