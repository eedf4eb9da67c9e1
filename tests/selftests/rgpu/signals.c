// SPDX-License-Identifier: GPL-2.0
/* Every call of a program but WAIT, entered with a signal pending that has a handler: it does what it does without one. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/selftests/rgpu/stub.h"

enum { START, JOIN, INFO, CHANNEL, BO, MAP, TRACK, DIRTY, CONTROL, KICK, BO_DESTROY, CHANNEL_DESTROY, CALLS };

static const char *const names[CALLS] = {
	"SESSION_START", "SESSION_JOIN", "INFO",    "CHANNEL_CREATE", "BO_CREATE",  "mmap",
	"tracked mmap",	 "BO_DIRTY",	 "CONTROL", "KICK",	      "BO_DESTROY", "CHANNEL_DESTROY",
};

/* What parent and child share. */
static struct seen {
	int ret[CALLS], handled[CALLS], dirty;
	volatile int call; /* that is made now, or CALLS */
} * seen;

static void on_signal(int sig)
{
	(void)sig;
	if (seen->call < CALLS)
		seen->handled[seen->call]++;
}

/* With data, which a call that begins anew sends anew. */
static int start(int fd)
{
	char data[8] = "hello";
	struct rgpu_session_start s = {
		.size = sizeof(s), .data_len = 5, .data_room = sizeof(data), .data = (unsigned long)data
	};

	return ioctl(fd, RGPU_IOC_SESSION_START, &s) ? -errno : 0;
}

static int info(int fd)
{
	struct rgpu_info i = { .size = sizeof(i) };

	return ioctl(fd, RGPU_IOC_INFO, &i) ? -errno : 0;
}

static int dirty(int fd, __u32 bo)
{
	__u64 bits = 0;
	struct rgpu_bo_dirty d = { .size = sizeof(d), .handle = bo, .pages = 1, .bitmap = (unsigned long)&bits };

	if (ioctl(fd, RGPU_IOC_BO_DIRTY, &d))
		return -errno;
	seen->dirty = bits;
	return 0;
}

static int map_page(int fd, __u64 off, char **m)
{
	*m = map(fd, off, 4096, PROT_READ | PROT_WRITE, MAP_SHARED);
	return MAP_BAD(*m) ? (int)(long)*m : 0;
}

#define CALL(which, expr)                                                                                                        \
	do {                                                                                                                     \
		seen->call = which;                                                                                              \
		seen->ret[which] = expr;                                                                                         \
		seen->call = CALLS;                                                                                              \
	} while (0)

static void program(void)
{
	/* No SA_RESTART: what goes on all the same does so because the module has it so. */
	struct sigaction plain = { .sa_handler = on_signal };
	int f0 = app_open(0), f1 = app_open(1);
	__u32 ch = 0, bo = 0, len = 5;
	char data[5] = "abcde", *m;

	sigaction(SIGUSR1, &plain, NULL);
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
	CALL(START, start(f0));
	CALL(JOIN, app_join(f1, f0, NULL));
	CALL(INFO, info(f0));
	CALL(CHANNEL, app_channel(f0, 4096, &ch));
	CALL(BO, app_bo(f0, 4096, &bo));
	CALL(MAP, map_page(f0, RGPU_MMAP_BO(bo), &m));
	CALL(TRACK, map_page(f0, RGPU_MMAP_TRACKED(bo), &m));
	if (!MAP_BAD(m))
		*m = 1;
	CALL(DIRTY, dirty(f0, bo));
	CALL(CONTROL, app_control(f0, 1, data, &len, sizeof(data)));
	CALL(KICK, app_kick(f0, ch));
	CALL(BO_DESTROY, app_bo_destroy(f0, bo));
	CALL(CHANNEL_DESTROY, app_channel_destroy(f0, ch));
	_exit(0);
}

/* Stops @pid at each system call; each of ours finds a signal pending, but not when it begins anew after that signal. Its status.
 */
static int trace(pid_t pid)
{
	bool inside = false;
	int status, sig = 0, last = CALLS;

	waitpid(pid, &status, 0);
	ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
	for (;;) {
		ptrace(PTRACE_SYSCALL, pid, 0, sig);
		waitpid(pid, &status, 0);
		if (!WIFSTOPPED(status))
			return status;
		sig = WSTOPSIG(status) == (SIGTRAP | 0x80) ? 0 : WSTOPSIG(status);
		if (sig)
			continue;
		inside = !inside;
		if (inside && seen->call < CALLS && seen->call != last) {
			last = seen->call;
			syscall(SYS_tgkill, pid, pid, SIGUSR1);
		}
	}
}

int main(void)
{
	pid_t proxy, pid;
	int i;

	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	seen->call = CALLS;
	memset(seen->ret, 1, sizeof(seen->ret));
	fflush(stdout);
	proxy = proxy_fork();
	pid = fork();
	if (!pid)
		program();
	is_int(trace(pid), 0, "a program whose every call finds a signal pending runs to its end");
	for (i = 0; i < CALLS; i++) {
		is_int(seen->ret[i], 0, "%s", names[i]);
		is_int(seen->handled[i], 1, "%s: the signal is handled once", names[i]);
	}
	is_int(seen->dirty, 1, "BO_DIRTY tells the page");
	/* The proxy keeps its maps of the rings until it goes. */
	is_int(counter_becomes("gone", 0), 0, "the proxy hears of its end");
	proxy_kill(proxy);
	nothing_left();
	return tap_done();
}
