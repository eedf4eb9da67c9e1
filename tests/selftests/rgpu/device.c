// SPDX-License-Identifier: GPL-2.0
/* Nodes that come and go under open files, and a module that goes when, and only when, nobody uses it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tests/selftests/rgpu/stub.h"

static struct proxy p;

static int add(__u32 want, bool any, __u32 *got)
{
	struct msg m, a;
	int err;

	msg_begin(&p.nl, &m, RGPU_CMD_DEV_ADD);
	if (!any)
		msg_u32(&m, RGPU_A_DEVICE, want);
	err = nl_call(&p.nl, &m, &a);
	if (!err)
		*got = msg_get_u32(&a, RGPU_A_DEVICE);
	return err;
}

static int del(__u32 dev)
{
	struct msg m;

	msg_begin(&p.nl, &m, RGPU_CMD_DEV_DEL);
	msg_u32(&m, RGPU_A_DEVICE, dev);
	return nl_call(&p.nl, &m, NULL);
}

static int unload(void)
{
	return syscall(SYS_delete_module, "rgpu", O_NONBLOCK) ? -errno : 0;
}

static void come_and_go(void)
{
	struct stat st;
	__u32 n, i;

	is_int(add(7, false, &n), 0, "DEV_ADD of 7");
	is_int(n, 7, "gives 7");
	is_int(add(7, false, &n), -EEXIST, "twice");
	is_int(add(64, false, &n), -ERANGE, "beyond the last");
	is_int(stat("/dev/rgpu7", &st), 0, "the node is there");
	is_int(add(0, true, &n), 0, "DEV_ADD of any");
	is_int(n, 4, "gives the first that is free");
	is_int(del(4), 0, "DEV_DEL");
	is_int(del(4), -ENODEV, "twice");
	for (i = 5; !add(0, true, &n); i++)
		;
	is_int(i, 64, "until there is none");
	is_int(add(0, true, &n), -ENOSPC, "then ENOSPC");
	for (i = 4; i < 64; i++) {
		if (del(i))
			break;
	}
	is_int(i, 64, "all can go");
	ok(stat("/dev/rgpu7", &st) && errno == ENOENT, "the node is gone");
}

static void description(void)
{
	struct msg m, a;
	size_t len;

	msg_begin(&p.nl, &m, RGPU_CMD_DEV_SET);
	msg_u32(&m, RGPU_A_DEVICE, 3);
	msg_u8(&m, RGPU_A_ONLINE, 1);
	is_int(nl_call(&p.nl, &m, NULL), -EINVAL, "online without a uuid");
	is_str(p.nl.why, "a device goes online with UUID and SERVER", "and the kernel says so");
	is_int(proxy_online(&p, 3, 9), 0, "online with all");
	msg_begin(&p.nl, &m, RGPU_CMD_DEV_SET);
	msg_u32(&m, RGPU_A_DEVICE, 3);
	msg_str(&m, RGPU_A_NAME, "Renamed");
	is_int(nl_call(&p.nl, &m, NULL), 0, "a new name");
	msg_begin(&p.nl, &m, RGPU_CMD_DEV_GET);
	msg_u32(&m, RGPU_A_DEVICE, 3);
	is_int(nl_call(&p.nl, &m, &a), 0, "DEV_GET");
	is_str(msg_attr(&a, RGPU_A_NAME, NULL), "Renamed", "the name is new");
	is_int(msg_get_u64(&a, RGPU_A_MEM_TOTAL), 80ull << 30, "the rest stays");
	ok(msg_attr(&a, RGPU_A_PROPS, &len) && len == 10, "properties too");
	ok(msg_attr(&a, RGPU_A_DEV_COOKIE, &len) && len == 4, "the cookie too");
	msg_begin(&p.nl, &m, RGPU_CMD_DEV_SET);
	msg_u32(&m, RGPU_A_DEVICE, 3);
	msg_str(&m, RGPU_A_NAME, "0123456789012345678901234567890123456789012345678901234567890123");
	is_int(nl_call(&p.nl, &m, NULL), -EINVAL, "a name that is too long");
	is_int(del(3), 0, "DEV_DEL");
	msg_begin(&p.nl, &m, RGPU_CMD_DEV_SET);
	msg_u32(&m, RGPU_A_DEVICE, 3);
	is_int(nl_call(&p.nl, &m, NULL), -ENODEV, "DEV_SET of none");
}

static void removed_in_use(void)
{
	struct async w = { .ms = -1 };
	struct rgpu_kpage *k;
	int fd, sfd, fresh;
	__u32 n;

	proxy_online(&p, 0, 1);
	fd = app_open(0);
	sfd = start_with(&p, fd, NULL);
	app_channel(fd, 4096, NULL);
	k = map(fd, RGPU_MMAP_KPAGE, 4096, PROT_READ, MAP_SHARED);
	w.fd = fd;
	async_begin(&w, async_wait);
	async_sleeps(&w);
	is_int(del(0), 0, "DEV_DEL under a session");
	is_int(async_end(&w), -ESHUTDOWN, "who waits is woken");
	is_int(k->state, RGPU_SESSION_FAILED, "the session has FAILED");
	is_int(k->reason, -ENODEV, "because of that");
	is_int(add(0, false, &n), 0, "a new device 0 while the file is open");
	is_int(app_open(0), -ENODEV, "is offline");
	is_int(proxy_online(&p, 0, 1), 0, "until it is set online");
	fresh = app_open(0);
	ok(fresh >= 0, "opens");
	is_int(app_start(fd, NULL), -ENODEV, "the old file is of no device any more");
	munmap(k, 4096);
	close(fd);
	close(fresh);
	is_int(acknowledge(&p), 1, "GONE");
	close(sfd);
}

/* A program that started when the device went offline meanwhile. */
static void offline_since_open(void)
{
	int fd = app_open(0);
	struct msg m;

	msg_begin(&p.nl, &m, RGPU_CMD_DEV_SET);
	msg_u32(&m, RGPU_A_DEVICE, 0);
	msg_u8(&m, RGPU_A_ONLINE, 0);
	is_int(nl_call(&p.nl, &m, NULL), 0, "offline after open");
	is_int(app_start(fd, NULL), -ENODEV, "SESSION_START: ENODEV");
	proxy_online(&p, 0, 1);
	close(start_with(&p, fd, NULL));
	close(fd);
	is_int(acknowledge(&p), 1, "online again: the same file can start");
}

static void unloading(void)
{
	int fd, sfd, fds[2], status;
	struct timespec begin, end;
	struct nl nl;
	pid_t pid;
	char b;

	is_int(unload(), -EWOULDBLOCK, "rmmod with a proxy");
	fd = app_open(0);
	sfd = start_with(&p, fd, NULL);
	proxy_close(&p);
	is_int(unload(), -EWOULDBLOCK, "rmmod with a program and a session fd");
	close(fd);
	is_int(unload(), -EWOULDBLOCK, "rmmod with a session fd");
	close(sfd);
	is_int(counter("gone"), 1, "a GONE that nobody acknowledges");
	nl_open(&nl);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	is_int(unload(), 0, "does not hold the module");
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("# unloaded in %ld ms\n", (end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000);
	is_int(nl_dump(&nl, RGPU_CMD_DEV_GET, NULL, NULL), -ENOENT, "a socket that is open finds no family");
	nl_close(&nl);
	is_int(system("modprobe rgpu"), 0, "it loads again");

	/* A child's map of a buffer object is the last user. */
	if (pipe(fds))
		return;
	proxy_open(&p);
	proxy_online(&p, 0, 1);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		__u32 h;
		int f = app_open(0);
		char *m;

		if (app_start(f, NULL) || app_bo(f, 4096, &h))
			_exit(1);
		m = map(f, RGPU_MMAP_BO(h), 4096, PROT_READ | PROT_WRITE, MAP_SHARED);
		close(f);
		if (fork())
			_exit(0);
		*m = 1;
		(void)!write(fds[1], "c", 1);
		pause();
	}
	{
		struct request r;

		proxy_next(&p, &r);
		sfd = proxy_attach(&p, r.session);
		proxy_reply(&p, r.id, 0, NULL, 0);
	}
	(void)!read(fds[0], &b, 1);
	waitpid(pid, &status, 0);
	is_int(counter_becomes("sessions", 0), 0, "the program is gone");
	close(sfd);
	is_int(acknowledge(&p), 1, "and acknowledged");
	proxy_close(&p);
	is_int(counter("pages"), 1, "a page is mapped in its child");
	is_int(unload(), -EWOULDBLOCK, "rmmod with that");
	/* The orphan is the only process that has /dev/rgpu0 mapped. */
	is_int(system("kill $(grep -l /dev/rgpu0 /proc/[0-9]*/maps 2>/dev/null | cut -d/ -f3)"), 0, "the child is killed");
	is_int(counter_becomes("files", 0), 0, "and the file with it");
	close(fds[0]);
	close(fds[1]);
}

/* Load and unload while somebody asks all the time. */
static void reloaded(void)
{
	int status, i, good = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		for (;;) {
			struct nl nl;

			if (!nl_open(&nl)) {
				nl_dump(&nl, RGPU_CMD_DEV_GET, NULL, NULL);
				nl_dump(&nl, RGPU_CMD_SESSION_GET, NULL, NULL);
				nl_close(&nl);
			}
			close(open("/dev/rgpu-ctl", O_RDWR));
			counter("pages");
		}
	}
	for (i = 0; i < 10; i++) {
		int tries, err = -EAGAIN;

		for (tries = 0; tries < 20000 && err; tries++) {
			err = unload();
			usleep(rand() % 1000); /* the other one has a file open most of the time */
		}
		if (err)
			printf("# unload: %s\n", strerror(-err));
		good += !err && !system("modprobe rgpu");
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	is_int(good, 10, "ten times unloaded and loaded while another process asks");
}

int main(void)
{
	if (!ok(proxy_open(&p) == 0, "the proxy registers"))
		return tap_done();
	come_and_go();
	description();
	removed_in_use();
	offline_since_open();
	unloading();
	reloaded();
	nothing_left();
	return tap_done();
}
