/* SPDX-License-Identifier: MIT */
/* A module from the inside, for the files that load it and that answer about it. */
#ifndef RGPU_SHIM_MODULE_INT_H
#define RGPU_SHIM_MODULE_INT_H

#include <pthread.h>
#include "shim/ctx.h"
#include "shim/module.h"
#include "shim/session.h"

/* A __device__ variable that was asked for. */
struct global {
	struct global *next;
	struct rgpu_obj *context;
	uint64_t addr, bytes;
	bool managed; /* the server said so */
	char name[];
};

/* A CUmodule that stands for a library in one context. */
struct alias {
	struct alias *next;
	struct rgpu_obj *obj;
};

struct module {
	struct rgpu_obj *obj; /* its own handle, and what the wire calls it */
	struct rgpu_session *session;
	struct rgpu_obj *context; /* NULL: a library */
	bool library;
	uint32_t nfuncs, hash_mask;
	struct func *funcs;
	uint32_t *hash; /* first index + 1 of each bucket */
	char *names;
	struct rgpu_func_param *params;
	pthread_mutex_t lock; /* globals, aliases, and the funcs' handles */
	struct global *globals;
	struct alias *aliases;
};

/* A log buffer of the program's. */
struct jit_log {
	char *text;
	size_t room;
	void **size; /* where the caller's option value is: the log's size is written there */
};

enum { LOG_INFO, LOG_ERROR };

/* Options that cuModuleLoadDataEx, cuLibraryLoadData and the linker understand: numbers travel, logs come back. */
struct load_options {
	unsigned n;
	struct {
		uint32_t option;
		uint64_t value;
	} list[24];
	struct jit_log log[2];
	void **wall_time;
	double begun;
};

int load_options_read(struct load_options *o, unsigned n, const CUjit_option *options, void **values);
void wall_time_begin(struct load_options *o);
void wall_time_end(const struct load_options *o);
void log_put(const struct jit_log *l, const char *text, size_t len);
/* Asks for a log (LOAD_LOG, LINK_LOG) if the program wants it. A CUresult. */
int log_fetch(struct rgpu_call *c, uint16_t op, uint64_t handle, uint32_t which, const struct jit_log *l);

/* An image's bytes in pieces: LOAD_DATA or LINK_DATA. A CUresult. */
int image_send(struct rgpu_call *c, uint16_t op, uint64_t handle, const void *image, size_t bytes);

/* What a wrapper lists that was compiled for linking, when it has no image for the device itself: linked. As image_choose(). */
int image_link(struct rgpu_call *c, const struct device *d, const void *const *list, const void **image, size_t *bytes,
	       void **owned);

/* The whole file, with a NUL behind it. A CUresult. */
int file_read(const char *name, char **out, size_t *bytes);

/* Sends an image, and builds the module from the table that comes back. The call has a session. A CUresult. */
int module_load(struct rgpu_call *c, bool library, const void *image, size_t bytes, struct load_options *options,
		struct module **out);
/* All that the client holds of it; the handle included. */
void module_free(struct module *m);

struct func *module_func(struct module *m, const char *name); /* NULL: none */
/* Index'th kernel's handle: KIND_function (in @context) or KIND_kernel. NULL: out of memory. */
struct rgpu_obj *func_handle(struct func *f, enum rgpu_kind kind, struct rgpu_obj *context);
/* A variable's address in the call's context; fetched once. A CUresult. */
int module_global(struct rgpu_call *c, struct module *m, const char *name, uint64_t *addr, uint64_t *bytes);

#endif
