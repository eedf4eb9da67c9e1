// SPDX-License-Identifier: GPL-2.0
/* Lets the first, second, third … allocation or copy within each call fail until the call succeeds. Needs a kernel with fault
 * injection. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "tests/selftests/rgpu/stub.h"

static struct proxy p;
static int fd, sfd;
static __u64 id;

/* The @n-th fault point of this thread fails from now on, or none. Says whether the one that was set last has struck. */
static bool fail_nth(int n)
{
	static __thread bool armed, struck;
	char path[64], buf[16];
	int f, len;

	if (!n && !armed)
		return struck;
	armed = n;
	snprintf(path, sizeof(path), "/proc/self/task/%ld/fail-nth", syscall(SYS_gettid));
	f = open(path, O_RDWR);
	if (f < 0)
		return false;
	len = pread(f, buf, sizeof(buf) - 1, 0);
	buf[len > 0 ? len : 0] = 0;
	struck = atoi(buf) == 0;
	len = snprintf(buf, sizeof(buf), "%d", n);
	if (pwrite(f, buf, len, 0) != len)
		struck = false;
	close(f);
	return struck;
}

static void everywhere(const char *param, const char *value)
{
	static const char *const kinds[] = { "failslab", "fail_page_alloc", "fail_usercopy" };
	char path[96];
	size_t i;
	int f;

	for (i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s/%s", kinds[i], param);
		f = open(path, O_WRONLY);
		if (f < 0)
			continue;
		(void)!write(f, value, strlen(value));
		close(f);
	}
}

/* What is tried: each gives an error or 0, and undoes a success by itself. */
static int try_open(void)
{
	int f = app_open(0);

	if (f < 0)
		return f;
	close(f);
	return 0;
}

static int try_ctl(void)
{
	int f = open("/dev/rgpu-ctl", O_RDWR);

	if (f < 0)
		return -errno;
	close(f);
	return 0;
}

static int try_channel(void)
{
	__u32 ch;
	int err = app_channel(fd, 4096, &ch);

	if (!err)
		app_channel_destroy(fd, ch);
	return err;
}

static int try_bo(void)
{
	__u32 h;
	int err = app_bo(fd, 65536, &h);

	if (!err)
		app_bo_destroy(fd, h);
	return err;
}

static int try_map(void)
{
	volatile char *m = map(fd, RGPU_MMAP_KPAGE, 4096, PROT_READ, MAP_SHARED);

	if (MAP_BAD(m))
		return (long)m;
	fail_nth(0); /* unmapping allocates too */
	munmap((void *)m, 4096);
	return 0;
}

static int try_track(void)
{
	__u64 bits = 0;
	struct rgpu_bo_dirty d = { .size = sizeof(d), .pages = 1, .bitmap = (unsigned long)&bits };
	int err = app_bo(fd, 4096, &d.handle);
	volatile char *m;

	if (err)
		return err;
	m = map(fd, RGPU_MMAP_TRACKED(d.handle), 4096, PROT_READ | PROT_WRITE, MAP_SHARED);
	err = MAP_BAD(m) ? (long)m : ioctl(fd, RGPU_IOC_BO_DIRTY, &d) ? -errno : 0;
	fail_nth(0);
	if (!MAP_BAD(m))
		munmap((void *)m, 4096);
	app_bo_destroy(fd, d.handle);
	return err;
}

static int try_kick(void)
{
	return app_kick(fd, 0);
}

static int try_dump(void)
{
	int n = nl_dump(&p.nl, RGPU_CMD_SESSION_GET, NULL, NULL);

	return n < 0 ? n : 0;
}

static int try_cookie(void)
{
	return session_cookie(&p, id, "0123456789", 10);
}

static int try_attach(void)
{
	int s;

	/* Gives the session up and takes it again. */
	close(sfd);
	sfd = -1;
	s = proxy_attach(&p, id);
	if (s < 0) {
		fail_nth(0);
		sfd = proxy_attach(&p, id);
		session_set(sfd, RGPU_SESSION_LIVE, 0);
		return s;
	}
	sfd = s;
	return session_set(sfd, RGPU_SESSION_LIVE, 0);
}

static int try_set(void)
{
	return proxy_online(&p, 0, 1);
}

static int try_add(void)
{
	struct msg m, a;
	int err;

	msg_begin(&p.nl, &m, RGPU_CMD_DEV_ADD);
	msg_u32(&m, RGPU_A_DEVICE, 9);
	err = nl_call(&p.nl, &m, &a);
	fail_nth(0);
	msg_begin(&p.nl, &m, RGPU_CMD_DEV_DEL);
	msg_u32(&m, RGPU_A_DEVICE, 9);
	nl_call(&p.nl, &m, NULL);
	return err;
}

static const struct {
	const char *name;
	int (*try)(void);
} tries[] = {
	{ "open", try_open },	 { "open ctl", try_ctl },	{ "CHANNEL_CREATE", try_channel },
	{ "BO_CREATE", try_bo }, { "mmap", try_map },		{ "KICK", try_kick },
	{ "dump", try_dump },	 { "SESSION_SET", try_cookie }, { "SESSION_FD", try_attach },
	{ "DEV_SET", try_set },	 { "DEV_ADD", try_add },	{ "BO_DIRTY", try_track },
};

/* START fails on the program's side; the proxy's side is sound and answers what arrives. */
static struct {
	int nth, ret;
	bool struck;
	_Atomic int done;
} starting;

static void *start_thread(void *arg)
{
	int f = app_open(0);

	(void)arg;
	fail_nth(starting.nth);
	starting.ret = app_start(f, NULL);
	starting.struck = fail_nth(0);
	close(f);
	starting.done = 1;
	return NULL;
}

static int try_start(int nth, bool *struck)
{
	struct request r;
	pthread_t t;
	int s;

	memset(&starting, 0, sizeof(starting));
	starting.nth = nth;
	pthread_create(&t, NULL, start_thread, NULL);
	while (!starting.done) {
		if (proxy_pull(&p, &r)) {
			usleep(1000);
			continue;
		}
		s = r.type == RGPU_REQ_START ? proxy_attach(&p, r.session) : -1;
		proxy_reply(&p, r.id, 0, NULL, 0);
		if (s >= 0)
			close(s);
	}
	pthread_join(t, NULL);
	acknowledge(&p);
	*struck = starting.struck;
	return starting.ret;
}

int main(void)
{
	struct stat st;
	size_t i;
	bool struck;
	int n;

	if (stat("/proc/self/fail-nth", &st))
		skip_all("this kernel has no fault injection");
	if (!ok(proxy_open(&p) == 0 && proxy_online(&p, 0, 1) == 0, "the proxy registers"))
		return tap_done();
	fd = app_open(0);
	sfd = start_with(&p, fd, &id);
	app_channel(fd, 4096, NULL);
	everywhere("ignore-gfp-wait", "N");
	everywhere("ignore-gfp-highmem", "N");
	everywhere("verbose", "0");

	for (i = 0; i < sizeof(tries) / sizeof(*tries); i++) {
		int failed = 0, err = -1;

		for (n = 1; n < 5000; n++) {
			fail_nth(n);
			err = tries[i].try();
			struck = fail_nth(0);
			failed += err != 0;
			if (!struck && !err)
				break;
		}
		ok(!err && n < 5000, "%s: succeeds at last, after %d failures of %d faults", tries[i].name, failed, n - 1);
	}
	for (n = 1; n < 5000; n++) {
		int err = try_start(n, &struck);

		if (!struck && !err)
			break;
	}
	ok(n < 5000, "SESSION_START: succeeds at last, after %d faults", n - 1);
	is_int(app_kick(fd, 0), 0, "the session that stood by all the time still does");
	close(fd);
	close(sfd);
	is_int(acknowledge(&p), 1, "GONE");
	proxy_close(&p);
	nothing_left();
	return tap_done();
}
