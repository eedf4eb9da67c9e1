// SPDX-License-Identifier: MIT
/* A confined worker: what no driver needs is refused to it, what drivers do is not, in every thread. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "server/confine.h"
#include "tests/tap.h"

static void refused(long r, const char *what)
{
	ok(r == -1 && errno == EPERM, "%s is refused%s%s", what, r == -1 ? ": " : ": it was done",
	   r == -1 ? strerror(errno) : "");
}

static void ways_out(pid_t parent)
{
	char *argv[] = {"true", NULL};
	struct iovec v = {argv, sizeof(argv)};
	struct rlimit lim = {100, 100};

	refused(execv("/bin/true", argv), "exec");
	refused(syscall(SYS_execveat, AT_FDCWD, "/bin/true", argv, NULL, 0), "execveat");
	refused(ptrace(PTRACE_ATTACH, parent, 0, 0), "ptrace");
	refused(process_vm_readv(parent, &v, 1, &v, 1, 0), "reading another process");
	refused(kill(parent, 0), "a signal to another process");
	refused(syscall(SYS_tgkill, parent, parent, 0), "one to its thread");
	refused(prlimit(parent, RLIMIT_NOFILE, &lim, NULL), "another's limits");
	refused(mount("none", "/tmp", "tmpfs", 0, NULL), "mount");
	refused(umount2("/tmp", 0), "umount");
	refused(chroot("/"), "chroot");
	refused(syscall(SYS_init_module, NULL, 0, ""), "a module");
	refused(syscall(SYS_bpf, 0, NULL, 0), "bpf");
	refused(syscall(SYS_keyctl, 0, 0, 0, 0, 0), "keyctl");
	refused(syscall(SYS_userfaultfd, 0), "userfaultfd");
	refused(syscall(SYS_perf_event_open, NULL, 0, 0, 0, 0), "perf_event_open");
	refused(syscall(SYS_io_uring_setup, 1, NULL), "io_uring");
	refused(unshare(CLONE_NEWUSER), "a user name space");
	refused(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0), "one by clone");
	refused(setuid(0), "setuid");
	refused(setpgid(0, 0), "a process group of its own");
	refused(socket(AF_INET, SOCK_STREAM, 0), "a network socket");
	refused(socket(AF_INET6, SOCK_DGRAM, 0), "one of IPv6");
	refused(socket(AF_PACKET, SOCK_RAW, 0), "a packet socket");
	/* Where the kernel takes an int, a number is that of its lower half. */
	refused(syscall(SYS_socket, AF_INET | 1ul << 32, SOCK_STREAM, 0),
		"a network socket of a family with more bits than an int");
	refused(syscall(SYS_kill, parent | 1ul << 32, 0), "a signal to another process with such a number");
	refused(syscall(SYS_kill, 1ul << 32, 0), "one to the group, which is as well");
	refused(syscall(SYS_tgkill, parent | 1ul << 32, parent, 0), "one to a thread of such a process");
	refused(syscall(SYS_prlimit64, parent | 1ul << 32, RLIMIT_NOFILE, &lim, NULL), "the limits of such a process");
	refused(syscall(SYS_clone, (unsigned long)CLONE_NEWNET | 1ul << 40 | SIGCHLD, 0, 0, 0, 0),
		"a name space with such flags");
	ok(syscall(SYS_clone3, NULL, 0) == -1 && errno == ENOSYS, "clone3, whose flags nobody sees, is not there");
	ok(mknod("/tmp/rgpu-test-node", S_IFCHR, 0) == -1 && errno == EPERM, "a device node is refused");
}

static void *thread(void *arg)
{
	*(int *)arg = socket(AF_INET, SOCK_STREAM, 0);
	return NULL;
}

static void *waits_then_tries(void *arg)
{
	int *p = arg;

	(void)!read(p[0], &p[2], sizeof(int));
	p[2] = execv("/bin/true", (char *[]){"true", NULL});
	return NULL;
}

static void daily_work(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd, sv[2], child = 0;
	struct rlimit r;
	pthread_t t;

	fd = memfd_create("worker", MFD_CLOEXEC);
	ok(fd >= 0 && !ftruncate(fd, 4096) && mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED,
	   "memory by descriptor");
	ok(mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED,
	   "memory for code");
	fd = open("/dev/null", O_RDWR);
	ok(fd >= 0 && ioctl(fd, 0, 0) == -1 && errno != EPERM, "devices are opened and have ioctls");
	ok(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv), "local sockets");
	memcpy(a.sun_path, "\0rgpu-test-confine", 18);
	ok(!bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&a, 30), "and names of them");
	ok(!pthread_create(&t, NULL, thread, &child) && !pthread_join(t, NULL) && child == -1,
	   "threads, to which the same is refused");
	ok(!getrlimit(RLIMIT_NOFILE, &r) && r.rlim_max <= 4096, "at most 4096 descriptors");
	is_int(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1, "no new privileges");
}

int main(void)
{
	char why[RGPU_WHY_MAX] = "";
	int p[3], pipe_fd[2];
	pid_t parent = getpid(), child;
	pthread_t before;
	int status;

	(void)!pipe(pipe_fd);
	fflush(stdout);
	child = fork();
	if (!child) {
		setpgid(0, 0);
		confine_early();
		/* A thread from before, as a driver has them. */
		p[0] = pipe_fd[0];
		pthread_create(&before, NULL, waits_then_tries, p);
		is_int(confine_worker("no-such-user-anywhere", why), geteuid() ? 0 : -ENOENT, "a user who is not there: %s", why);
		*why = 0;
		is_int(confine_worker("", why), 0, "the worker is confined%s%s", *why ? ": " : "", why);
		if (tap_failed)
			_exit(1);
		ways_out(parent);
		(void)!write(pipe_fd[1], &p[1], sizeof(int));
		pthread_join(before, NULL);
		is_int(p[2], -1, "a thread from before cannot start a program either");
		daily_work();
		fflush(stdout);
		(void)!write(pipe_fd[1], (int[]){tap_run, tap_failed}, 2 * sizeof(int));
		kill(0, SIGKILL);
		_exit(1);
	}
	waitpid(child, &status, 0);
	close(pipe_fd[1]);
	/* The child's results come before ours. */
	if (read(pipe_fd[0], p, 2 * sizeof(int)) == 2 * sizeof(int)) {
		tap_run = p[0];
		tap_failed = p[1];
	}
	ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "its own group it may kill");
	return tap_done();
}
