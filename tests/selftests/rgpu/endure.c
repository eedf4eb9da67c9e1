// SPDX-License-Identifier: GPL-2.0
/* What the machine does to us with everything open: sleep, processors that go, memory that runs short, a device or module
 * removed. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/selftests/rgpu/stub.h"

#define RW  (PROT_READ | PROT_WRITE)
#define MIB (1 << 20)
#define BO  (4 * MIB)

/* One program with two devices, and its proxy, both in this process; a child that inherited the program's descriptors. */
static struct proxy p;
static int fd, fd2, fd3, fd4, sfd;
static __u64 id;
static struct chan c, pc;
static __u32 handle;
static unsigned char *bo, *pbo;
static pid_t child;
static struct async waits, asks, asks_too; /* a WAIT on channel 1; a request that was pulled; one that was not */
static struct async joins, joins_too;	   /* a JOIN that was pulled; one that waits for the first one's end */
static struct request pulled, pulled_join;

/* Bytes that go to the proxy and back on channel 0, all the time. */
static pthread_t app_thread, proxy_thread;
static _Atomic int stop, wrong;
static _Atomic unsigned int echoed;

static void *echo_app(void *arg)
{
	__u32 at;

	(void)arg;
	for (at = 0; !stop; at++) {
		char b = at % 251;

		c.sq[at % CHAN_RING] = b;
		__atomic_store_n(&c.a->sq_tail, at + 1, __ATOMIC_RELEASE);
		app_kick(fd, 0);
		while (__atomic_load_n(&c.p->cq_tail, __ATOMIC_ACQUIRE) == at) {
			if (app_wait(fd, 0, -1) == -ESHUTDOWN)
				return NULL;
		}
		wrong += c.cq[at % CHAN_RING] != (char)(b ^ 0x5a);
		echoed++;
	}
	return NULL;
}

static void *echo_proxy(void *arg)
{
	struct rgpu_kicked k = { .size = sizeof(k) };
	struct pollfd pfd = { .fd = sfd, .events = POLLIN };
	__u32 head = 0, tail;

	(void)arg;
	for (;;) {
		poll(&pfd, 1, -1);
		if (pfd.revents & POLLHUP || ioctl(sfd, RGPU_SES_KICKED, &k))
			return NULL;
		tail = __atomic_load_n(&pc.a->sq_tail, __ATOMIC_ACQUIRE);
		for (; head != tail; head++)
			pc.cq[head % CHAN_RING] = pc.sq[head % CHAN_RING] ^ 0x5a;
		__atomic_store_n(&pc.p->cq_tail, tail, __ATOMIC_RELEASE);
		app_kick(sfd, 0);
	}
}

static unsigned char pattern(unsigned int i)
{
	return i * 131 + (i >> 12);
}

static void open_everything(void)
{
	struct request r;
	struct async j;
	unsigned int i;

	if (proxy_open(&p) || proxy_online(&p, 0, 1) || proxy_online(&p, 1, 1) || proxy_online(&p, 2, 1) ||
	    proxy_online(&p, 3, 1)) {
		printf("Bail out! no proxy\n");
		exit(1);
	}
	fd = app_open(0);
	fd2 = app_open(1);
	sfd = start_with(&p, fd, &id);
	j = (struct async){ .fd = fd2, .other = fd };
	async_begin(&j, async_join);
	proxy_next(&p, &r);
	proxy_reply(&p, r.id, 0, NULL, 0);
	is_int(async_end(&j) | app_channel(fd, CHAN_RING, NULL) | app_channel(fd, CHAN_RING, NULL) | app_bo(fd, BO, &handle), 0,
	       "a session with two devices, two channels, a buffer object");
	c = map_channel(fd, 0, false);
	pc = map_channel(sfd, 0, true);
	bo = map(fd, RGPU_MMAP_BO(handle), BO, RW, MAP_SHARED);
	pbo = map(sfd, RGPU_MMAP_BO(handle), BO, RW, MAP_SHARED);
	for (i = 0; i < BO; i++)
		bo[i] = pattern(i);
	fflush(stdout);
	child = fork();
	if (!child) {
		pause();
		_exit(0);
	}
	stop = wrong = 0;
	pthread_create(&app_thread, NULL, echo_app, NULL);
	pthread_create(&proxy_thread, NULL, echo_proxy, NULL);

	while (!app_wait(fd, 1, 0))
		;
	waits = (struct async){ .fd = fd, .ch = 1, .ms = -1 };
	async_begin(&waits, async_wait);
	async_sleeps(&waits);
	fd3 = app_open(2);
	joins = (struct async){ .fd = fd3, .other = fd };
	async_begin(&joins, async_join);
	proxy_next(&p, &pulled_join);
	fd4 = app_open(3);
	joins_too = (struct async){ .fd = fd4, .other = fd };
	async_begin(&joins_too, async_join);
	async_sleeps(&joins_too);
	asks = (struct async){ .fd = fd, .op = 5, .len = 4, .room = 4, .data = "ask" };
	async_begin(&asks, async_control);
	proxy_next(&p, &pulled);
	asks_too = (struct async){ .fd = fd2, .op = 6, .len = 4, .room = 4, .data = "too" };
	async_begin(&asks_too, async_control);
	async_sleeps(&asks_too);
}

/* Until the echo has gone on for a while from where it was. */
static bool traffic_flows(void)
{
	unsigned int before = echoed;
	int i;

	for (i = 0; i < 10000 && echoed < before + 50; i++)
		usleep(2000);
	return echoed >= before + 50;
}

static bool memory_is_right(void)
{
	unsigned int i, bad = 0;

	for (i = 0; i < BO; i++)
		bad += bo[i] != pattern(i) || pbo[i] != pattern(i);
	return !bad;
}

/* The sleepers still sleep, what is asked is answered, and bytes flow. */
static void all_goes_on(const char *after)
{
	struct request r;

	ok(traffic_flows() && !wrong, "%s: bytes flow, none is wrong", after);
	ok(memory_is_right(), "%s: the buffer object is as it was, seen from both sides", after);
	is_int(c.k->state, RGPU_SESSION_LIVE, "%s: the session is LIVE", after);
	is_int(proxy_reply(&p, pulled.id, 0, "one", 4), 0, "%s: a request that was pulled before is answered", after);
	is_int(async_end(&asks), 0, "%s: the asker has his answer", after);
	is_str(asks.data, "one", "%s: which is right", after);
	is_int(proxy_next(&p, &r), 0, "%s: the next is pulled", after);
	is_str(r.data, "too", "%s: and is the one that was asked", after);
	is_int(proxy_reply(&p, r.id, 0, "two", 4) | async_end(&asks_too), 0, "%s: and answered", after);
	is_int(proxy_reply(&p, pulled_join.id, 0, NULL, 0) | async_end(&joins), 0,
	       "%s: a JOIN that was pulled before is answered", after);
	is_int(proxy_next(&p, &r) | proxy_reply(&p, r.id, 0, NULL, 0) | async_end(&joins_too), 0,
	       "%s: the JOIN that waited for its end goes on, and is answered", after);
	is_int(app_kick(sfd, 1) | async_end(&waits), 0, "%s: a kick ends a wait that began before", after);
}

static void end_traffic(void)
{
	stop = 1;
	pthread_join(app_thread, NULL);
}

static void close_everything(void)
{
	end_traffic();
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	unmap_channel(&c);
	munmap(bo, BO);
	close(fd);
	close(fd2);
	close(fd3);
	close(fd4);
	is_int(counter_becomes("sessions", 0), 0, "the session ends");
	pthread_join(proxy_thread, NULL);
	unmap_channel(&pc);
	munmap(pbo, BO);
	is_int(acknowledge(&p), 1, "and is acknowledged");
	close(sfd);
	proxy_close(&p);
}

/*
 * To the freezer; with RGPU_TEST_SUSPEND the devices go down and come back too, which a guest whose root is on virtio-9p does not
 * survive (scripts/vm --ram).
 */
static void sleeps(void)
{
	const char *level = getenv("RGPU_TEST_SUSPEND") ? "devices" : "freezer";

	if (access("/sys/power/pm_test", W_OK)) {
		printf("# this kernel has no pm_test: not put to sleep\n");
		return;
	}
	open_everything();
	put("/sys/module/suspend/parameters/pm_test_delay", "1");
	is_int(put("/sys/power/pm_test", level), 0, "pm_test: %s", level);
	is_int(put("/sys/power/state", "mem"), 0, "the machine sleeps and wakes");
	put("/sys/power/pm_test", "none");
	all_goes_on("after sleep");
	close_everything();
}

static void processors_go(void)
{
	static const char path[] = "/sys/devices/system/cpu/cpu1/online";
	int i, good = 0;

	if (access(path, W_OK)) {
		printf("# no second processor that could go\n");
		return;
	}
	open_everything();
	for (i = 0; i < 3; i++)
		good += !put(path, "0") && traffic_flows() && !put(path, "1") && traffic_flows();
	is_int(good, 3, "a processor goes and comes three times, and bytes flow");
	all_goes_on("after it");
	close_everything();
}

/* Of /proc/meminfo. */
static long free_kib(void)
{
	char line[128];
	long kib = 0;
	FILE *f = fopen("/proc/meminfo", "r");

	while (f && fgets(line, sizeof(line), f) && sscanf(line, "MemFree: %ld", &kib) != 1)
		;
	if (f)
		fclose(f);
	return kib;
}

/*
 * The kernel is told to keep nearly all free memory for itself: it reclaims what it can, all the time, at once, and without a
 * program that would have to fill gigabytes first.
 */
static void memory_short(void)
{
	static const char keep[] = "/proc/sys/vm/min_free_kbytes";
	char before[24] = "", n[24];
	int i, f = open(keep, O_RDONLY), good = 0;

	if (!getenv("RGPU_VM") || f < 0 || read(f, before, sizeof(before) - 1) <= 0) {
		printf("# a machine that others may be using: memory not made short\n");
		return;
	}
	close(f);
	open_everything();
	snprintf(n, sizeof(n), "%ld", free_kib() - (150 << 10));
	is_int(put(keep, n), 0, "memory is short: %s KiB are to stay free", n);
	for (i = 0; i < 3; i++) {
		__u32 h;
		char *m;

		put("/proc/sys/vm/drop_caches", "3");
		put("/proc/sys/vm/compact_memory", "1");
		if (app_bo(fd, 2 * MIB, &h))
			continue;
		m = map(fd, RGPU_MMAP_BO(h), 2 * MIB, RW, MAP_SHARED);
		if (!MAP_BAD(m)) {
			memset(m, i, 2 * MIB);
			good += m[MIB] == i && !munmap(m, 2 * MIB) && traffic_flows();
		}
		app_bo_destroy(fd, h);
	}
	put(keep, before);
	is_int(good, 3, "buffer objects come and go, and bytes flow");
	all_goes_on("after it");
	close_everything();
}

#define GROUP "/tmp/rgpu-endure"

/* In a cgroup with 48 MiB: pinned memory until there is no more. What comes then is an error, and the program lives. */
static int in_small_group(void)
{
	__u32 h[64];
	int f, n, err = 0;

	if (put(GROUP "/small/cgroup.procs", "0"))
		return 1;
	f = app_open(0);
	if (app_start(f, NULL))
		return 2;
	for (n = 0; n < 64 && !err; n++)
		err = app_bo(f, 2 * MIB, &h[n]);
	if (err != -ENOMEM)
		return 3;
	if (n < 8 || n > 25) /* failed is the last */
		return 4;
	if (app_bo_destroy(f, h[0]) || app_bo(f, 2 * MIB, &h[0]))
		return 5;
	return 0;
}

static void group_short(void)
{
	char events[256] = "";
	struct request r;
	int status = -1, f, s;
	pid_t pid;

	mkdir(GROUP, 0700);
	if (mount("none", GROUP, "cgroup2", 0, NULL) || put(GROUP "/cgroup.subtree_control", "+memory")) {
		printf("# no memory controller in a v2 hierarchy here\n");
		umount(GROUP);
		rmdir(GROUP);
		return;
	}
	mkdir(GROUP "/small", 0700);
	is_int(put(GROUP "/small/memory.max", "48M"), 0, "a cgroup with 48 MiB");
	put(GROUP "/small/memory.swap.max", "0");
	proxy_open(&p);
	proxy_online(&p, 0, 1);
	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(in_small_group());
	proxy_next(&p, &r);
	s = proxy_attach(&p, r.session);
	proxy_reply(&p, r.id, 0, NULL, 0);
	waitpid(pid, &status, 0);
	is_int(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0,
	       "pinned memory beyond it is ENOMEM, and what is given back can be had");
	f = open(GROUP "/small/memory.events", O_RDONLY);
	ok(f >= 0 && read(f, events, sizeof(events) - 1) > 0 && strstr(events, "oom_kill 0"), "nobody was shot");
	close(f);
	is_int(counter_becomes("gone", 1), 1, "the program ends");
	is_int(acknowledge(&p), 1, "GONE");
	close(s);
	proxy_close(&p);
	is_int(counter_becomes("pages", 0), 0, "all memory comes back");
	rmdir(GROUP "/small");
	umount(GROUP);
	rmdir(GROUP);
}

static int device(__u8 cmd, __u32 n)
{
	struct msg m;

	msg_begin(&p.nl, &m, cmd);
	msg_u32(&m, RGPU_A_DEVICE, n);
	return nl_call(&p.nl, &m, NULL);
}

static int unload(void)
{
	return syscall(SYS_delete_module, "rgpu", O_NONBLOCK) ? -errno : 0;
}

/* The second device of a session goes: the whole session fails, everybody is told, and all memory stays until it is unmapped. */
static void removed(void)
{
	struct stat st;

	open_everything();
	ok(traffic_flows(), "bytes flow");
	is_int(unload(), -EWOULDBLOCK, "rmmod with everything open");
	is_int(device(RGPU_CMD_DEV_DEL, 1), 0, "DEV_DEL of the device that joined");
	is_int(stat("/dev/rgpu1", &st), -1, "its node is gone");
	is_int(async_end(&waits), -ESHUTDOWN, "a WAIT ends");
	is_int(async_end(&asks), -ESHUTDOWN, "a request that was pulled ends");
	is_int(async_end(&asks_too), -ESHUTDOWN, "one that was not pulled, too");
	is_int(async_end(&joins), -ESHUTDOWN, "a JOIN ends");
	is_int(async_end(&joins_too), -ESHUTDOWN, "the JOIN that waited for its end, too");
	is_int(proxy_reply(&p, pulled.id, 0, "one", 4), -ENOENT, "its answer comes too late");
	is_int(c.k->state, RGPU_SESSION_FAILED, "K page: FAILED");
	is_int(c.k->reason, -ENODEV, "K page: why");
	is_int(app_bo_destroy(fd, handle), 0, "the buffer object is destroyed");
	ok(memory_is_right(), "and stays where it is mapped");
	is_int(device(RGPU_CMD_DEV_ADD, 1), 0, "another device of that number");
	is_int(unload(), -EWOULDBLOCK, "rmmod: still somebody uses it");
	close_everything();
	nothing_left();
	is_int(unload(), 0, "rmmod after the last close");
	is_int(system("modprobe rgpu"), 0, "it loads again");
}

int main(void)
{
	parameter("reply_secs", "0"); /* a slow machine must not answer for the proxy */
	sleeps();
	if (getenv("RGPU_TEST_SUSPEND")) {
		parameter("reply_secs", "120");
		nothing_left();
		return tap_done();
	}
	processors_go();
	memory_short();
	group_short();
	removed(); /* loads the module anew, and its parameters with it */
	nothing_left();
	return tap_done();
}
