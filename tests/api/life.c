// SPDX-License-Identifier: MIT
/* How programs end, and what happens to them before: each way is a process of its own, many times over (RGPU_LIFE_ROUNDS). */
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/time.h>
#include "tests/api/serve.h"

#define LIMIT_S 120 /* what takes longer hangs */

/* Threads that are cut off in their calls hold what they hold: an end like that is no leak. */
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

/* In the processes under test: a call that must succeed. The line tells which one did not. */
#define CALL(call)                                                                                                               \
	do {                                                                                                                     \
		int got_ = (int)(call);                                                                                          \
		if (got_) {                                                                                                      \
			fprintf(stderr, "# %s:%d: %s: %s\n", __FILE__, __LINE__, #call, error_name(got_));                       \
			return 1;                                                                                                \
		}                                                                                                                \
	} while (0)

#define WANT(is)                                                                                                                 \
	do {                                                                                                                     \
		if (!(is)) {                                                                                                     \
			fprintf(stderr, "# %s:%d: not so: %s\n", __FILE__, __LINE__, #is);                                       \
			return 1;                                                                                                \
		}                                                                                                                \
	} while (0)

static CUcontext ctx;

static int begin(void)
{
	CALL(cuInit(0));
	CALL(cuDevicePrimaryCtxRetain(&ctx, 0));
	CALL(cuCtxSetCurrent(ctx));
	return 0;
}

/* What a program does, once: memory that holds what was put there, a stream, an event. */
static int work(int value)
{
	CUdeviceptr d;
	CUstream s;
	CUevent e;
	int got[64];

	CALL(cuMemAlloc(&d, sizeof(got)));
	CALL(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	CALL(cuEventCreate(&e, 0));
	CALL(cuMemsetD32Async(d, value, 64, s));
	CALL(cuEventRecord(e, s));
	while (cuEventQuery(e) == CUDA_ERROR_NOT_READY || cuStreamQuery(s) == CUDA_ERROR_NOT_READY)
		sched_yield();
	CALL(cuEventSynchronize(e));
	CALL(cuMemcpyDtoH(got, d, sizeof(got)));
	WANT(got[0] == value && got[63] == value);
	CALL(cuEventDestroy(e));
	CALL(cuStreamDestroy(s));
	CALL(cuMemFree(d));
	return 0;
}

static void *worker(void *arg)
{
	intptr_t bad = cuCtxSetCurrent(ctx) != CUDA_SUCCESS;

	for (int i = 0; i < 10 && !bad; i++)
		bad = work((int)(intptr_t)arg * 100 + i);
	return (void *)bad;
}

/* Works until a call fails, and returns that call's status. */
static void *busy(void *arg)
{
	CUdeviceptr d;
	int v, r;

	(void)arg;
	r = cuCtxSetCurrent(ctx);
	if (!r)
		r = cuMemAlloc(&d, 4096);
	while (!r) {
		r = cuMemsetD8(d, 1, 4096);
		if (!r)
			r = cuMemcpyDtoH(&v, d, sizeof(v));
	}
	return (void *)(intptr_t)r;
}

static int start_busy(pthread_t *t, int n)
{
	for (int i = 0; i < n; i++)
		WANT(!pthread_create(&t[i], NULL, busy, NULL));
	return work(1); /* they are at it by now */
}

static int threads(void)
{
	pthread_t t[16];
	void *bad;

	CALL(begin());
	for (intptr_t round = 0; round < 2; round++) {
		for (intptr_t i = 0; i < 16; i++)
			WANT(!pthread_create(&t[i], NULL, worker, (void *)i));
		for (int i = 0; i < 16; i++) {
			pthread_join(t[i], &bad);
			WANT(!bad);
		}
	}
	return 0;
}

static int exit_in_calls(void)
{
	pthread_t t[8];

	CALL(begin());
	return start_busy(t, 8);
}

static CUdeviceptr left;
static CUstream left_stream;

/* It may come too late for CUDA, which then says so. */
static void late(void)
{
	int r = cuMemsetD8Async(left, 0, 16, left_stream);

	if (!r)
		r = cuStreamSynchronize(left_stream);
	if (!r)
		r = cuMemFree(left);
	if (r && r != CUDA_ERROR_DEINITIALIZED)
		_exit(2);
	cuStreamDestroy(left_stream);
	cuDevicePrimaryCtxRelease(0);
}

static void late_again(void)
{
	int r = cuCtxSynchronize();

	if (r && r != CUDA_ERROR_DEINITIALIZED && r != CUDA_ERROR_INVALID_CONTEXT && r != CUDA_ERROR_CONTEXT_IS_DESTROYED)
		_exit(3);
}

__attribute__((destructor)) static void last(void)
{
	if (left)
		late_again();
}

static void of_thread(void *arg)
{
	(void)arg;
	cuMemsetD8(left, 1, 16);
}

static void *ends_with_calls(void *key)
{
	cuCtxSetCurrent(ctx);
	pthread_setspecific(*(pthread_key_t *)key, key);
	return NULL;
}

static int exit_handlers(void)
{
	pthread_key_t key;
	pthread_t t;

	atexit(late_again); /* runs after CUDA's own */
	CALL(begin());
	CALL(cuMemAlloc(&left, 16));
	CALL(cuStreamCreate(&left_stream, 0));
	WANT(!pthread_key_create(&key, of_thread));
	WANT(!pthread_create(&t, NULL, ends_with_calls, &key));
	pthread_join(t, NULL);
	atexit(late);
	return 0;
}

static int forks(void)
{
	pthread_t t[4];
	int status;

	CALL(begin());
	CALL(start_busy(t, 4));
	for (int i = 0; i < 8; i++) {
		pid_t pid = fork();

		if (!pid) {
			CUdeviceptr d;
			int r = cuMemAlloc(&d, 4);

			/* With the handlers of the library that it inherited, and without. */
			if (i & 1)
				_exit(r != CUDA_ERROR_NOT_INITIALIZED);
			exit(r != CUDA_ERROR_NOT_INITIALIZED);
		}
		WANT(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status));
		CALL(work(i));
	}
	return 0;
}

static atomic_int seen;

static void interrupted(int sig)
{
	(void)sig;
	atomic_fetch_add(&seen, 1);
}

static int signals(void)
{
	struct sigaction a = {.sa_handler = interrupted}; /* no SA_RESTART */
	const struct itimerval often = {{0, 500}, {0, 500}}, off = {{0, 0}, {0, 0}};
	pthread_t t[4];
	void *bad;

	sigaction(SIGALRM, &a, NULL);
	sigaction(SIGUSR1, &a, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	CALL(begin());
	for (intptr_t i = 0; i < 4; i++)
		WANT(!pthread_create(&t[i], NULL, worker, (void *)i));
	for (int i = 0; i < 40; i++) {
		for (int k = 0; k < 4; k++)
			pthread_kill(t[k], SIGUSR1);
		CALL(work(i));
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(t[i], &bad);
		WANT(!bad);
	}
	setitimer(ITIMER_REAL, &off, NULL);
	WANT(atomic_load(&seen) > 0);
	return 0;
}

/* The worker of our session: the one child of the server's. */
static pid_t child_of(pid_t parent)
{
	char dir[64], path[384];
	struct dirent *e;
	long pid = -1;
	DIR *d;

	snprintf(dir, sizeof(dir), "/proc/%d/task", (int)parent);
	d = opendir(dir);
	while (d && pid < 0 && (e = readdir(d))) {
		FILE *f;

		snprintf(path, sizeof(path), "%s/%s/children", dir, e->d_name);
		f = fopen(path, "r");
		if (f && fscanf(f, "%ld", &pid) != 1)
			pid = -1;
		if (f)
			fclose(f);
	}
	if (d)
		closedir(d);
	return (pid_t)pid;
}

/* Listener and worker go at once, under @n threads in calls. */
static int kill_under_work(pthread_t *t, int n)
{
	pid_t pid;

	serve_grace = "2";
	serve(NULL, 1);
	CALL(begin());
	CALL(start_busy(t, n));
	pid = child_of(serve_pid);
	WANT(pid > 0);
	kill(serve_pid, SIGKILL);
	kill(pid, SIGKILL);
	return 0;
}

static int server_killed(void)
{
	pthread_t t[8];
	void *r;

	CALL(kill_under_work(t, 8));
	for (int i = 0; i < 8; i++) {
		pthread_join(t[i], &r);
		WANT((intptr_t)r == CUDA_ERROR_DEVICE_UNAVAILABLE);
	}
	WANT(cuCtxSynchronize() == CUDA_ERROR_DEVICE_UNAVAILABLE);
	return 0;
}

/* As above, and nobody is left to hear of it: the program is on its way out. */
static int server_killed_at_exit(void)
{
	pthread_t t[8];

	CALL(kill_under_work(t, 8));
	return 0;
}

static const struct {
	const char *name;
	int (*run)(void); /* NULL: the program life-dl */
} ways[] = {
	{"threads", threads},
	{"exit while threads are in calls", exit_in_calls},
	{"exit handlers, destructors, and a thread's", exit_handlers},
	{"fork while threads are in calls", forks},
	{"dlclose while threads are in calls", NULL},
	{"signals", signals},
	{"a killed server", server_killed},
	{"a killed server, and exit", server_killed_at_exit},
};

#define WAYS (sizeof(ways) / sizeof(*ways))

/* 0, or what waitpid() said. A process of its own, so that nothing is inherited but the environment. */
static int run(unsigned i)
{
	char n[16], dl[PATH_MAX + 64], lib[PATH_MAX + 64];
	int status = -1;
	pid_t pid;

	snprintf(n, sizeof(n), "%u", i);
	snprintf(dl, sizeof(dl), "%s", built("tests/life-dl"));
	snprintf(lib, sizeof(lib), "%s", built("lib/libcuda.so.1"));
	pid = fork();
	if (!pid) {
		if (ways[i].run)
			execl("/proc/self/exe", "life", n, NULL);
		else
			execl(dl, "life-dl", lib, NULL);
		_exit(127);
	}
	for (int ms = 0; ms < LIMIT_S * 1000; ms++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return status;
		usleep(1000);
	}
	printf("# hangs: process %d\n", (int)pid);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return status ? status : -1;
}

int main(int argc, char **argv)
{
	const char *rounds = getenv("RGPU_LIFE_ROUNDS");
	int n = rounds ? atoi(rounds) : 1;

	if (argc > 1)
		return ways[atoi(argv[1]) % WAYS].run();
	serve(NULL, 1);
	for (unsigned i = 0; i < WAYS; i++) {
		int bad = 0;

		for (int k = 0; k < n; k++) {
			int status = run(i);

			if (status)
				printf("# run %d: status %#x\n", k, status);
			bad += status != 0;
		}
		is_int(bad, 0, ways[i].name);
	}
	return tap_done();
}
