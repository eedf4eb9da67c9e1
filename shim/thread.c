// SPDX-License-Identifier: MIT
/* Thread-local state, and what becomes of it when a thread ends. */
#include "shim/thread.h"

#include <pthread.h>
#include <stdlib.h>
#include "shim/session.h"

static __thread struct thread self;
__thread struct thread *thread_known __attribute__((tls_model("initial-exec")));
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void ended(void *arg)
{
	struct thread *t = arg;

	/* A later destructor of the program may call CUDA again: then all of this begins anew. */
	thread_known = NULL;
	if (t->lane)
		session_lane_back(t->lane);
	t->lane = NULL;
	/* A child of fork finds the lock as it was then. */
	if (!process_ready())
		known_forget(&t->own);
	free(t->stack);
	t->stack = NULL;
	t->depth = t->room = 0;
}

static void make_key(void)
{
	pthread_key_create(&key, ended);
}

struct thread *thread_begin(void)
{
	pthread_once(&once, make_key);
	pthread_setspecific(key, &self);
	thread_known = &self;
	return &self;
}
