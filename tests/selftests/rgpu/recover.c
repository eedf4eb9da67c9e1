// SPDX-License-Identifier: GPL-2.0
/* Proxies that die under a running program, that come too late, or that live on after they were superseded. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/selftests/rgpu/stub.h"

#define RW	  (PROT_READ | PROT_WRITE)
#define SCRIBBLED 131072 /* where in the buffer object */

/* Sends @n bytes through the proxy's echo and compares what comes back; counts what is wrong. */
static int echo(int fd, struct chan *c, int n)
{
	int wrong = 0, i;

	for (i = 0; i < n; i++) {
		__u32 at = c->a->sq_tail;
		char b = 'a' + at % 26;

		c->sq[at % CHAN_RING] = b;
		__atomic_store_n(&c->a->sq_tail, at + 1, __ATOMIC_RELEASE);
		if (app_kick(fd, 0))
			return n;
		while (__atomic_load_n(&c->p->cq_tail, __ATOMIC_ACQUIRE) == at) {
			if (app_wait(fd, 0, -1))
				return n;
		}
		wrong += c->cq[at % CHAN_RING] != (b ^ 0x20);
	}
	return wrong;
}

struct run {
	int fd, wrong;
	struct chan c;
	_Atomic int done;
};

static void *echo_thread(void *arg)
{
	struct run *r = arg;

	r->wrong = echo(r->fd, &r->c, 3000);
	r->done = 1;
	return NULL;
}

/* A program sends 3,000 bytes while its proxy is killed again and again. */
static void killed_again_and_again(void)
{
	pid_t proxy = proxy_fork();
	struct run r = { .fd = app_open(0) };
	int kills = 0;
	__u32 epoch;
	pthread_t t;

	is_int(app_start(r.fd, NULL), 0, "a program starts");
	is_int(app_channel(r.fd, CHAN_RING, NULL), 0, "with a channel");
	r.c = map_channel(r.fd, 0, false);
	epoch = r.c.k->epoch;
	is_int(echo(r.fd, &r.c, 10), 0, "the proxy echoes");
	proxy_kill(proxy);
	is_int(counter_becomes("proxy", 0), 0, "killed");
	is_int(r.c.k->state, RGPU_SESSION_RECOVERING, "RECOVERING");
	proxy = proxy_fork();
	is_int(r.c.k->state, RGPU_SESSION_LIVE, "the next proxy: LIVE");
	is_int(r.c.k->epoch, epoch + 1, "of the next epoch");
	is_int(echo(r.fd, &r.c, 10), 0, "which goes on where the first was");

	pthread_create(&t, NULL, echo_thread, &r);
	while (!r.done && kills < 8) {
		usleep(30000);
		proxy_kill(proxy);
		proxy = proxy_fork();
		kills++;
	}
	pthread_join(t, NULL);
	is_int(r.wrong, 0, "3,000 bytes, each right");
	ok(kills > 0, "while %d proxies were killed", kills);
	is_int(r.c.a->sq_tail, 3020, "none was sent twice");
	is_int(r.c.p->sq_head, 3020, "nor taken twice");
	unmap_channel(&r.c);
	close(r.fd);
	is_int(counter_becomes("gone", 0), 0, "the session's end is acknowledged");
	proxy_kill(proxy);
}

static sigjmp_buf fault;
static volatile _Atomic unsigned long writes;
static _Atomic int bus;

static void on_bus(int sig)
{
	siglongjmp(fault, sig);
}

static int touch(volatile char *p, bool write)
{
	int sig = sigsetjmp(fault, 1);

	if (sig)
		return sig;
	if (write)
		*p = 1;
	else
		(void)*p;
	return 0;
}

static sigjmp_buf writer_fault;
static __thread int is_writer;

static void on_bus_writer(int sig)
{
	if (is_writer) {
		bus = sig;
		siglongjmp(writer_fault, 1);
	}
	on_bus(sig);
}

/* A proxy's thread that does not know that it is over. */
static void *writer(void *arg)
{
	volatile unsigned long *word = arg;

	is_writer = 1;
	if (sigsetjmp(writer_fault, 1))
		return NULL;
	for (;;) {
		writes++;
		*word = writes;
	}
}

/*
 * A process of the old proxy, which writes as fast as it can to a map of its own. It has nothing else of the proxy, so that the
 * registration can end without it.
 */
static pid_t scribbler(const struct proxy *old, int sfd, __u32 handle)
{
	volatile unsigned long *word;
	int told[2];
	pid_t pid;
	char b;

	if (pipe(told))
		return -1;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		signal(SIGBUS, SIG_DFL);
		close(old->ctl);
		close(old->nl.fd);
		word = map(sfd, RGPU_MMAP_BO(handle), 1 << 20, RW, MAP_SHARED);
		if (MAP_BAD(word))
			_exit(1);
		for (word += SCRIBBLED / sizeof(*word), *word = 1;; ++*word) {
			if (*word == 1000)
				(void)!write(told[1], "w", 1);
		}
	}
	(void)!read(told[0], &b, 1);
	close(told[0]);
	close(told[1]);
	kill(pid, SIGSTOP);
	waitpid(pid, NULL, WUNTRACED);
	return pid;
}

static void superseded(void)
{
	struct proxy old, new;
	int fd, sfd, sfd2;
	char *bo, *pbo, *late;
	unsigned long seen, scribbled;
	pid_t stopped;
	int status;
	struct pollfd pfd;
	struct chan c, pc;
	__u32 handle;
	pthread_t t;
	__u64 id;

	signal(SIGBUS, on_bus_writer);
	signal(SIGSEGV, on_bus_writer);
	is_int(proxy_open(&old), 0, "a proxy");
	proxy_online(&old, 0, 1);
	fd = app_open(0);
	sfd = start_with(&old, fd, &id);
	app_channel(fd, CHAN_RING, NULL);
	app_bo(fd, 1 << 20, &handle);
	c = map_channel(fd, 0, false);
	pc = map_channel(sfd, 0, true);
	bo = map(fd, RGPU_MMAP_BO(handle), 1 << 20, RW, MAP_SHARED);
	pbo = map(sfd, RGPU_MMAP_BO(handle), 1 << 20, RW, MAP_SHARED);
	late = map(sfd, RGPU_MMAP_BO(handle), 1 << 20, RW, MAP_SHARED);
	strcpy(pc.cq, "reply");
	pc.p->published = 5;
	strcpy(pbo + 65536, "bytes");
	stopped = scribbler(&old, sfd, handle);
	scribbled = *(unsigned long *)(bo + SCRIBBLED);
	ok(scribbled >= 1000, "a process of the proxy writes, and is stopped in the middle of it");
	pthread_create(&t, NULL, writer, pbo);
	while (writes < 1000)
		usleep(1000);

	/* Only its netlink socket goes: the process lives on, with the session fd and all maps. */
	nl_close(&old.nl);
	is_int(counter_becomes("proxy", 0), 0, "its socket closed: no proxy");
	pthread_join(t, NULL);
	is_int(bus, SIGBUS, "its writer is stopped by SIGBUS");
	seen = *(unsigned long *)bo;
	is_int(touch(pbo + 4096, true), SIGBUS, "buffer object: SIGBUS");
	is_int(touch(pbo + 65536, false), SIGBUS, "also to read");
	is_int(touch(late, true), SIGBUS, "also where nothing was mapped in yet");
	is_int(touch(pc.cq, true), SIGBUS, "CQ: SIGBUS");
	is_int(touch((char *)pc.p, true), SIGBUS, "P page: SIGBUS");
	is_int(touch(pc.sq, false), SIGBUS, "SQ: SIGBUS");
	is_int(touch((char *)pc.k, false), SIGBUS, "K page: SIGBUS");
	is_int(app_kick(sfd, 0), -ESTALE, "KICK: ESTALE");
	is_int(session_set(sfd, RGPU_SESSION_FAILED, -EIO), -ESTALE, "SET: ESTALE");
	is_int((long)map(sfd, RGPU_MMAP_KPAGE, 4096, PROT_READ, MAP_SHARED), -ESTALE, "mmap: ESTALE");
	pfd = (struct pollfd){ .fd = sfd, .events = POLLIN };
	poll(&pfd, 1, 0);
	ok(pfd.revents & POLLHUP, "session fd: hung up");
	pfd = (struct pollfd){ .fd = old.ctl, .events = POLLIN };
	poll(&pfd, 1, 0);
	is_int(pfd.revents, POLLHUP, "ctl: hung up");
	is_int(proxy_attach(&old, id), -EPERM, "SESSION_FD by its ctl: EPERM");

	is_int(proxy_open(&new), 0, "a second proxy");
	is_int(c.k->state, RGPU_SESSION_RECOVERING, "RECOVERING");
	sfd2 = proxy_attach(&new, id);
	ok(sfd2 >= 0, "takes the session");
	is_int(c.k->epoch, new.epoch, "K page: its epoch");
	close(sfd); /* and its maps stay */
	is_int(c.k->state, RGPU_SESSION_RECOVERING, "closing the old fd changes nothing");
	is_int(session_set(sfd2, RGPU_SESSION_LIVE, 0), 0, "SET LIVE");
	unmap_channel(&pc);
	pc = map_channel(sfd2, 0, true);
	is_str(pc.cq, "reply", "CQ: as the old one left it");
	is_int(pc.p->published, 5, "P page too");
	munmap(pbo, 1 << 20);
	pbo = map(sfd2, RGPU_MMAP_BO(handle), 1 << 20, RW, MAP_SHARED);
	is_str(pbo + 65536, "bytes", "buffer object too");
	is_int(*(unsigned long *)pbo, seen, "nobody wrote since");
	kill(stopped, SIGCONT);
	waitpid(stopped, &status, 0);
	ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS, "the stopped process goes on, into SIGBUS");
	is_int(*(unsigned long *)(bo + SCRIBBLED), scribbled, "before it wrote anything");
	is_int(touch(late, true), SIGBUS, "the old map stays dead");
	is_int(touch(bo, true), 0, "the program's map never was");
	unmap_channel(&pc);
	unmap_channel(&c);
	munmap(bo, 1 << 20);
	munmap(pbo, 1 << 20);
	munmap(late, 1 << 20);
	close(fd);
	is_int(acknowledge(&new), 1, "the session is gone");
	close(sfd2);
	close(old.ctl);
	proxy_close(&new);
	signal(SIGBUS, SIG_DFL);
	signal(SIGSEGV, SIG_DFL);
}

static void too_late(void)
{
	struct async a, w;
	struct rgpu_kpage *k;
	struct proxy p;
	int fd, fd2, sfd, sfd2;
	__u64 id, id2;

	proxy_open(&p);
	proxy_online(&p, 0, 1);
	fd = app_open(0);
	fd2 = app_open(0);
	sfd = start_with(&p, fd, &id);
	sfd2 = start_with(&p, fd2, &id2);
	app_channel(fd, CHAN_RING, NULL);
	k = map(fd, RGPU_MMAP_KPAGE, 4096, PROT_READ, MAP_SHARED);
	parameter("recover_secs", "1");
	proxy_close(&p);
	is_int(app_wait(fd, 0, -1), 0, "the proxy goes: a waiter is woken");
	a = (struct async){ .fd = fd, .op = 1 };
	w = (struct async){ .fd = fd, .ms = -1 };
	while (!app_wait(fd, 0, 0))
		;
	async_begin(&w, async_wait);
	async_begin(&a, async_control);
	is_int(async_end(&a), -ESHUTDOWN, "no proxy within recover_secs: CONTROL ends");
	is_int(async_end(&w), -ESHUTDOWN, "WAIT ends");
	is_int(k->state, RGPU_SESSION_FAILED, "K page: FAILED");
	is_int(k->reason, -EHOSTDOWN, "K page: why");
	close(sfd);
	close(sfd2);
	proxy_open(&p);
	is_int(proxy_attach(&p, id), -ESHUTDOWN, "a proxy that comes now cannot have it");
	is_int(proxy_attach(&p, id2), -ESHUTDOWN, "nor the other");
	munmap(k, 4096);
	close(fd);
	close(fd2);
	is_int(acknowledge(&p), 2, "but hears of their ends");

	/* One that took the session but did not resume it in time is too late as well. */
	proxy_online(&p, 0, 1);
	fd2 = app_open(0);
	sfd = start_with(&p, fd2, &id);
	app_channel(fd2, CHAN_RING, NULL);
	close(sfd);
	sfd = proxy_attach(&p, id);
	while (!app_wait(fd2, 0, 0))
		;
	while (app_wait(fd2, 0, -1) != -ESHUTDOWN)
		;
	is_int(session_set(sfd, RGPU_SESSION_LIVE, 0), -ESHUTDOWN, "SET LIVE after the deadline");
	parameter("recover_secs", "120");
	close(fd2);
	close(sfd);
	is_int(acknowledge(&p), 1, "GONE");
	proxy_close(&p);
}

static void ends(void)
{
	pid_t proxy = proxy_fork(), pid;
	int ready[2], stay[2], status;
	char b;

	/* A child of the program holds the descriptors and outlives it. */
	if (pipe(ready) || pipe(stay))
		return;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		int fd = app_open(0);

		if (app_start(fd, NULL) || app_channel(fd, CHAN_RING, NULL))
			_exit(1);
		if (!fork()) {
			alarm(60);
			(void)!write(ready[1], "c", 1);
			(void)!read(stay[0], &b, 1);
			_exit(0);
		}
		pause();
	}
	(void)!read(ready[0], &b, 1);
	is_int(counter("sessions"), 1, "a program with a child");
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	is_int(counter_becomes("sessions", 0), 0, "is killed: its session ends");
	is_int(counter("files"), 1, "though the child has the file");
	is_int(counter_becomes("gone", 0), 0, "and the proxy heard of it");
	(void)!write(stay[1], "x", 1);
	is_int(counter_becomes("files", 0), 0, "the child goes");
	close(ready[0]);
	close(ready[1]);
	close(stay[0]);
	close(stay[1]);

	/* exec: another program, another memory, the same descriptor. */
	fflush(stdout);
	pid = fork();
	if (!pid) {
		int fd = app_open(0);

		if (app_start(fd, NULL))
			_exit(1);
		dup2(fd, 200); /* without FD_CLOEXEC */
		execl("/bin/sleep", "sleep", "60", NULL);
		_exit(1);
	}
	is_int(counter_becomes("files", 1), 1, "a program starts");
	for (status = 0; status < 5000 && (counter("sessions") || counter("files") != 1); status++)
		usleep(2000);
	is_int(counter("sessions"), 0, "and becomes another: the session ends");
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	proxy_kill(proxy);
}

/* A device whose policy is to fail rather than wait. */
static void fails_fast(void)
{
	static const char path[] = "/sys/class/rgpu/rgpu1/policy";
	struct rgpu_kpage *k;
	char buf[64];
	struct proxy p;
	int fd, fd2, sfd, sfd2, f;

	device_attr(1, "policy", buf, sizeof(buf));
	ok(!strcmp(buf, "queue"), "a device's policy is to wait for the next proxy");
	f = open(path, O_WRONLY);
	ok(write(f, "perhaps", 7) < 0 && errno == EINVAL, "an unknown policy is refused");
	is_int(write(f, "fail", 4), 4, "another policy is set");
	close(f);
	proxy_open(&p);
	proxy_online(&p, 0, 1);
	proxy_online(&p, 1, 1);
	fd = app_open(0);
	fd2 = app_open(1);
	sfd = start_with(&p, fd, NULL);
	sfd2 = start_with(&p, fd2, NULL);
	k = map(fd2, RGPU_MMAP_KPAGE, 4096, PROT_READ, MAP_SHARED);
	proxy_close(&p);
	is_int(app_channel(fd2, CHAN_RING, NULL), -ESHUTDOWN, "its session ends with the proxy");
	is_int(k->reason, -EHOSTDOWN, "K page: why");
	is_int(app_channel(fd, CHAN_RING, NULL), 0, "the other device's waits");
	close(fd);
	close(fd2);
	close(sfd);
	close(sfd2);
	munmap(k, 4096);
	proxy_open(&p);
	is_int(acknowledge(&p), 2, "GONE");
	proxy_close(&p);
	f = open(path, O_WRONLY);
	is_int(write(f, "queue\n", 6), 6, "back to the first policy");
	close(f);
}

int main(void)
{
	fails_fast();
	killed_again_and_again();
	superseded();
	too_late();
	ends();
	nothing_left();
	return tap_done();
}
