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

/* Options that cuModuleLoadDataEx and cuLibraryLoadData understand: numbers travel, logs come back. */
struct load_options {
	unsigned n;
	struct {
		uint32_t option;
		uint64_t value;
	} list[32];
	char *error_log;
	size_t error_room;
	void **error_size; /* where the caller's option value is: the log's size is written there */
	char *info_log;
	void **info_size;
};

int load_options_read(struct load_options *o, unsigned n, const CUjit_option *options, void **values);

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
