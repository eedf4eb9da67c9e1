// SPDX-License-Identifier: MIT
/* Preloaded into tests on a kernel with KCOV: writes which of the module's instrumented places each thread of the program ran,
 * as addresses relative to the module's text, to $RGPU_KCOV/PID.TID at the thread's end. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* linux/kcov.h of the kernel's uapi is not among Debian's userspace headers of every release. */
#define KCOV_INIT_TRACE _IOR('c', 1, unsigned long)
#define KCOV_ENABLE	_IO('c', 100)
#define KCOV_TRACE_PC	0

/* Words of a thread's buffer: the kernel stops recording when it is full, so it is folded into the table before. */
#define WORDS (64u << 10)
#define TABLE (1u << 18) /* bytes of module text that can be told apart, one bit each would do: a byte is simpler */

static unsigned char *seen; /* shared by all threads, and with forked children */
static unsigned long text;
static __thread uint64_t *trace;

static void fold(void)
{
	uint64_t n, i;

	if (!trace)
		return;
	n = __atomic_exchange_n(&trace[0], 0, __ATOMIC_RELAXED);
	for (i = 1; i <= n && i < WORDS; i++)
		if (trace[i] - text < TABLE)
			seen[trace[i] - text] = 1;
}

static void begin(void)
{
	int fd = open("/sys/kernel/debug/kcov", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return;
	if (ioctl(fd, KCOV_INIT_TRACE, (unsigned long)WORDS) == 0) {
		trace = mmap(NULL, WORDS * sizeof(*trace), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (trace == MAP_FAILED || ioctl(fd, KCOV_ENABLE, KCOV_TRACE_PC))
			trace = NULL;
	}
	/* The descriptor stays open: closing it ends the recording. */
}

static void save(void)
{
	const char *dir = getenv("RGPU_KCOV");
	char path[256];
	unsigned int i;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%d", dir, getpid());
	f = fopen(path, "w");
	if (!f)
		return;
	for (i = 0; i < TABLE; i++)
		if (seen[i])
			fprintf(f, "%x\n", i);
	fclose(f);
}

struct start {
	void *(*f)(void *);
	void *arg;
};

static void ended(void *arg)
{
	(void)arg;
	fold();
}

static void *run(void *arg)
{
	struct start s = *(struct start *)arg;
	void *ret;

	free(arg);
	begin();
	pthread_cleanup_push(ended, NULL);
	ret = s.f(s.arg);
	pthread_cleanup_pop(1);
	return ret;
}

__attribute__((visibility("default"))) int pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*f)(void *), void *arg)
{
	int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(RTLD_NEXT, "pthread_create");
	struct start *s = malloc(sizeof(*s));

	if (!s)
		return 11;
	*s = (struct start){f, arg};
	return real(t, attr, run, s);
}

/* What tests call most: the buffer is folded before it can fill, and before its process is killed. */
__attribute__((visibility("default"))) int ioctl(int fd, unsigned long cmd, ...)
{
	unsigned long arg;
	__builtin_va_list ap;

	__builtin_va_start(ap, cmd);
	arg = __builtin_va_arg(ap, unsigned long);
	__builtin_va_end(ap);
	if (trace && trace[0] > 256)
		fold();
	return syscall(SYS_ioctl, fd, cmd, arg);
}

/* A child begins anew: the kernel records the parent's thread alone. It dies by a signal more often than it exits. */
static void child(void)
{
	trace = NULL;
	begin();
}

__attribute__((constructor)) static void load(void)
{
	char exe[256] = "";
	FILE *f;

	/* Not in a shell or timeout(1) on the way: recording outlives exec, and the program could not begin its own. */
	if (!getenv("RGPU_KCOV") || readlink("/proc/self/exe", exe, sizeof(exe) - 1) < 0 || !strstr(exe, "/tests/kmod/"))
		return;
	f = fopen("/sys/module/rgpu/sections/.text", "r");
	if (!f)
		return;
	if (fscanf(f, "%lx", &text) != 1)
		text = 0;
	fclose(f);
	seen = mmap(NULL, TABLE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (seen == MAP_FAILED || !text)
		return;
	begin();
	pthread_atfork(NULL, NULL, child);
}

__attribute__((destructor)) static void unload(void)
{
	if (!seen)
		return;
	fold();
	save();
}
