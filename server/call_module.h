/* SPDX-License-Identifier: MIT */
/* Modules and libraries in the worker: the image as it comes in, then the driver's handles of its kernels. */
#ifndef RGPU_SERVER_CALL_MODULE_H
#define RGPU_SERVER_CALL_MODULE_H

#include "api/module_table.h"
#include "server/session.h"

struct srv_func {
	void *real; /* CUfunction, or a library's CUkernel */
	uint32_t nparams, first_param;
	uint32_t param_bytes;
};

/*
 * Lanes share modules, and one may unload what another is about to use. The table has a reference, and every call that works on
 * a module (MODULE_REF); the last one frees it. @life is held by such a call, for writing when it changes the module.
 */
struct srv_module {
	_Atomic unsigned refs;
	pthread_rwlock_t life; /* of all below, and over the driver's calls; inside it: handles_lock, ranges_lock */
	bool dead;	       /* unloaded, or gone with its context */
	bool library, ended;
	struct srv_session *session;
	uint8_t *image; /* until END */
	uint64_t bytes, got;
	unsigned noptions;
	CUjit_option option[24];
	void *value[24];
	char *info;	 /* log */
	CUresult status; /* of the parts before END */
	void *real;	 /* CUmodule or CUlibrary; NULL until END succeeded */
	uint32_t nfuncs, nparams;
	struct srv_func *func;
	struct rgpu_func_param *param;
	uint8_t *table; /* as the client gets it */
	uint64_t table_bytes;
};

#define IMAGE_MAX  (2ull << 30)
#define IMAGES_MAX (4ull << 30) /* of a session's, that are coming in */

/* call_image.c: what a driver may be given of what a client sent. */
CUresult image_check(const uint8_t *image, uint64_t bytes);
/* Memory for an image that is coming in. false: the session has as much of that as it may. */
bool image_room(struct srv_session *s, uint64_t bytes);
void image_gone(struct srv_session *s, uint64_t bytes);
bool image_is_elf(const uint8_t *image, uint64_t bytes);

/* A call's hold on a module, let go where the variable ends. */
#define MODULE_REF __attribute__((cleanup(module_put))) struct srv_module
void module_put(struct srv_module **m);

/* A handle of either kind, for a MODULE_REF; @change: alone. NULL: the status is set. */
struct srv_module *srv_module(struct srv_call *c, uint64_t handle, bool change);
/*
 * One that was loaded, and its @index'th kernel in the context that is current. *m, a MODULE_REF, holds it. NULL: the status is
 * set.
 */
struct srv_func *srv_function(struct srv_call *c, uint64_t module, uint32_t index, struct srv_module **m, CUfunction *real);
/* It is off the table: waits for the calls that use it, unloads it from the driver with @unload, and lets the reference go. */
void module_drop(struct srv_session *s, struct srv_module *m, bool unload);

#endif
