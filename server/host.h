/* SPDX-License-Identifier: MIT */
/* Host functions: a stream (or a graph) is held in a function of ours until the client's program has run its own. */
#ifndef RGPU_SERVER_HOST_H
#define RGPU_SERVER_HOST_H

#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct srv_call;
struct srv_session;
struct host_run;

struct srv_hosts {
	pthread_mutex_t lock;  /* a leaf */
	pthread_cond_t ended;  /* some run has */
	struct host_run *due;  /* the driver has come to these, and the client does not know; in that order */
	struct host_run *told; /* the client runs them */
	uint64_t number;       /* of the last run */
	unsigned refused;      /* of those, that no thread of the driver's waits in */
	struct worker *asked;  /* calls of the client's may wait here for one that is due */
};

/* What the driver is given as the user's data. */
struct host_fn {
	struct srv_session *session;
	uint64_t id;   /* the client's name of its function */
	bool once;     /* freed when it was called */
	uint8_t *into; /* the client's answer may bring bytes for here */
	uint64_t bytes;
};

struct host_fn *host_fn_new(struct srv_session *s, uint64_t id, bool once); /* NULL: no memory; free() it */
void CUDA_CB host_fn_call(void *fn);					    /* a CUhostFn */
void CUDA_CB host_fn_callback(CUstream stream, CUresult status, void *fn);  /* a CUstreamCallback */

void hosts_init(struct srv_hosts *h);

/* The client expects this function to be called, and it will not be: that is told in its turn (RGPU_HOST_REFUSED). */
void host_refused(struct srv_session *s, uint64_t id);

#endif
