/* SPDX-License-Identifier: MIT */
/* The state behind lib.h. */
#ifndef RGPU_SHIM_NVML_LIB_INT_H
#define RGPU_SHIM_NVML_LIB_INT_H

#include <pthread.h>
#include "shim/nvml/lib.h"

extern struct nvml_lib {
	pthread_mutex_t lock; /* of all but gpus[].dev and what describes a device, which stay as they are */
	unsigned users;	      /* nvmlInit calls without their nvmlShutdown */
	bool inherited;	      /* by fork: the transport is the parent's */
	struct rgpu_transport *transport;
	unsigned ngpus;
	struct gpu gpus[GPUS_MAX];
} nvml;

/* A TELEMETRY question; nvml.lock is held. Bytes of the answer, at most RGPU_CONTROL_MAX, or a negative errno. */
int nvml_ask(uint32_t what, uint32_t device, uint32_t first, void *buf);

/* What a process of this host's module is called by the reader: puts the reader's pid into each, and takes out those that are not
 * in the reader's pid namespace. @session: the module's names. The number that is left. */
unsigned nvml_translate(struct nvml_client *c, uint64_t *session, unsigned n);

#endif
