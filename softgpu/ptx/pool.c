/* SPDX-License-Identifier: MIT */
/* The engine's host threads, started when first wanted and shared by all launches. */
#include <signal.h>
#include <stdlib.h>

#include "softgpu/ptx/exec.h"

struct job {
	struct job *next;
	void (*fn)(void *arg);
	void *arg;
	unsigned want, active;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* everything below and the jobs' counters */
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, finished = PTHREAD_COND_INITIALIZER;
static struct job *jobs;
static unsigned idle, wanted;

static void *pool_thread(void *unused)
{
	pthread_mutex_lock(&lock);
	for (;;) {
		struct job *j = jobs;

		while (j && !j->want)
			j = j->next;
		if (!j) {
			idle++;
			pthread_cond_wait(&work, &lock);
			idle--;
			continue;
		}
		j->want--;
		wanted--;
		j->active++;
		pthread_mutex_unlock(&lock);
		j->fn(j->arg);
		pthread_mutex_lock(&lock);
		if (!--j->active)
			pthread_cond_broadcast(&finished);
	}
	return unused;
}

static bool start_thread(void)
{
	sigset_t all, old;
	pthread_attr_t attr;
	pthread_t t;
	bool ok;

	/* The program's signals are not ours to handle. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	ok = !pthread_create(&t, &attr, pool_thread, NULL);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return ok;
}

void ptx_pool_run(unsigned extra, void (*fn)(void *arg), void *arg)
{
	struct job j = {.fn = fn, .arg = arg, .want = extra};
	struct job **p;

	if (!extra) {
		fn(arg);
		return;
	}
	pthread_mutex_lock(&lock);
	j.next = jobs;
	jobs = &j;
	wanted += extra;
	/* Without the host's leave to start threads the caller does all the work. */
	for (unsigned n = idle; n < wanted && start_thread(); n++)
		;
	for (unsigned n = 0; n < extra; n++)
		pthread_cond_signal(&work);
	pthread_mutex_unlock(&lock);
	fn(arg);
	pthread_mutex_lock(&lock);
	wanted -= j.want;
	j.want = 0;
	while (j.active)
		pthread_cond_wait(&finished, &lock);
	for (p = &jobs; *p != &j; p = &(*p)->next)
		;
	*p = j.next;
	pthread_mutex_unlock(&lock);
}
