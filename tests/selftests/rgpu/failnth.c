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

static int call(int f, unsigned long cmd, void *arg)
{
	return ioctl(f, cmd, arg) ? -errno : 0;
}

static int try_info(void)
{
	char props[16];
	struct rgpu_info info = { .size = sizeof(info), .props_len = sizeof(props), .props = (unsigned long)props };

	return call(fd, RGPU_IOC_INFO, &info);
}

static __u32 ch, handle;

static int try_channel(void)
{
	__u32 c;
	int err = app_channel(fd, 4096, &c);

	if (!err)
		app_channel_destroy(fd, c);
	return err;
}

static void make_channel(void)
{
	app_channel(fd, 4096, &ch);
}

static int try_channel_destroy(void)
{
	return app_channel_destroy(fd, ch);
}

static void destroy_channel(void)
{
	app_channel_destroy(fd, ch);
}

static int try_bo(void)
{
	__u32 h;
	int err = app_bo(fd, 65536, &h);

	if (!err)
		app_bo_destroy(fd, h);
	return err;
}

static void make_bo(void)
{
	app_bo(fd, 4096, &handle);
}

static int try_bo_destroy(void)
{
	return app_bo_destroy(fd, handle);
}

static int try_bo_info(void)
{
	struct rgpu_bo_ref ref = { .size = sizeof(ref), .handle = handle };

	return call(sfd, RGPU_SES_BO_INFO, &ref);
}

static void destroy_bo(void)
{
	app_bo_destroy(fd, handle);
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
	err = MAP_BAD(m) ? (long)m : call(fd, RGPU_IOC_BO_DIRTY, &d);
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

static int try_kick_app(void)
{
	return app_kick(sfd, 0);
}

static void wake(void)
{
	app_kick(sfd, 0);
}

static int try_wait(void)
{
	return app_wait(fd, 0, 0);
}

static int try_kicked(void)
{
	struct rgpu_kicked k = { .size = sizeof(k) };

	return call(sfd, RGPU_SES_KICKED, &k);
}

static int try_channel_info(void)
{
	struct rgpu_channel_info info = { .size = sizeof(info) };

	return call(sfd, RGPU_SES_CHANNEL_INFO, &info);
}

static int try_session_state(void)
{
	return session_set(sfd, RGPU_SESSION_LIVE, 0);
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

/* Netlink. */
static int ask(__u8 cmd, __u16 attr, __u32 value)
{
	struct msg m, a;

	msg_begin(&p.nl, &m, cmd);
	if (attr == RGPU_A_SESSION)
		msg_u64(&m, attr, id);
	else if (attr)
		msg_u32(&m, attr, value);
	return nl_call(&p.nl, &m, &a);
}

static int try_dump(void)
{
	int n = nl_dump(&p.nl, RGPU_CMD_SESSION_GET, NULL, NULL);

	return n < 0 ? n : 0;
}

static int try_dev_dump(void)
{
	int n = nl_dump(&p.nl, RGPU_CMD_DEV_GET, NULL, NULL);

	return n < 0 ? n : 0;
}

static int try_session_get(void)
{
	return ask(RGPU_CMD_SESSION_GET, RGPU_A_SESSION, 0);
}

static int try_dev_get(void)
{
	return ask(RGPU_CMD_DEV_GET, RGPU_A_DEVICE, 0);
}

static int try_limits_get(void)
{
	return ask(RGPU_CMD_LIMITS_GET, 0, 0);
}

static int try_limits_set(void)
{
	return ask(RGPU_CMD_LIMITS_SET, RGPU_A_USER_MIB, 0);
}

static int try_cookie(void)
{
	return session_cookie(&p, id, "0123456789", 10);
}

static int try_set(void)
{
	return proxy_online(&p, 0, 1);
}

static void add_device(void)
{
	ask(RGPU_CMD_DEV_ADD, RGPU_A_DEVICE, 9);
}

static int try_add(void)
{
	return ask(RGPU_CMD_DEV_ADD, RGPU_A_DEVICE, 9);
}

static int try_del(void)
{
	return ask(RGPU_CMD_DEV_DEL, RGPU_A_DEVICE, 9);
}

static void del_device(void)
{
	ask(RGPU_CMD_DEV_DEL, RGPU_A_DEVICE, 9);
}

static int try_register(void)
{
	struct proxy q;
	int err = proxy_open(&q);

	fail_nth(0);
	if (!err)
		proxy_close(&q);
	return err;
}

/* A request that waits to be pulled, or was. One that is lost on its way to the proxy is never answered: it times out. */
static struct async asks;
static struct request pulled;
static int pull_err;

static void queue(void)
{
	asks = (struct async){ .fd = fd, .op = 1, .len = 4, .room = 4, .data = "ask" };
	async_begin(&asks, async_control);
	counter_becomes("requests", 1);
}

static int try_pull(void)
{
	pull_err = proxy_pull(&p, &pulled);
	return pull_err;
}

static void answer(void)
{
	if (!pull_err || !proxy_pull(&p, &pulled))
		proxy_reply(&p, pulled.id, 0, NULL, 0);
	async_end(&asks);
}

static void queue_and_pull(void)
{
	queue();
	pull_err = proxy_pull(&p, &pulled);
}

static int try_reply(void)
{
	return proxy_reply(&p, pulled.id, 0, "ok", 3);
}

static const struct attempt {
	const char *name;
	int (*try)(void);
	void (*before)(void), (*after)(void);
} attempts[] = {
	{ "open", try_open, NULL, NULL },
	{ "open ctl", try_ctl, NULL, NULL },
	{ "INFO", try_info, NULL, NULL },
	{ "CHANNEL_CREATE", try_channel, NULL, NULL },
	{ "CHANNEL_DESTROY", try_channel_destroy, make_channel, destroy_channel },
	{ "BO_CREATE", try_bo, NULL, NULL },
	{ "BO_DESTROY", try_bo_destroy, make_bo, destroy_bo },
	{ "BO_DIRTY", try_track, NULL, NULL },
	{ "mmap", try_map, NULL, NULL },
	{ "KICK", try_kick, NULL, NULL },
	{ "WAIT", try_wait, wake, NULL },
	{ "SESSION_FD", try_attach, NULL, NULL },
	{ "KICK of the program", try_kick_app, NULL, NULL },
	{ "KICKED", try_kicked, NULL, NULL },
	{ "CHANNEL_INFO", try_channel_info, NULL, NULL },
	{ "BO_INFO", try_bo_info, make_bo, destroy_bo },
	{ "SET", try_session_state, NULL, NULL },
	{ "PULL", try_pull, queue, answer },
	{ "REPLY", try_reply, queue_and_pull, answer },
	{ "SESSION_GET", try_session_get, NULL, NULL },
	{ "SESSION_GET, all", try_dump, NULL, NULL },
	{ "SESSION_SET", try_cookie, NULL, NULL },
	{ "DEV_GET", try_dev_get, NULL, NULL },
	{ "DEV_GET, all", try_dev_dump, NULL, NULL },
	{ "DEV_SET", try_set, NULL, NULL },
	{ "DEV_ADD", try_add, NULL, del_device },
	{ "DEV_DEL", try_del, add_device, del_device },
	{ "LIMITS_GET", try_limits_get, NULL, NULL },
	{ "LIMITS_SET", try_limits_set, NULL, NULL },
};

static void attempt(const struct attempt *a)
{
	int failed = 0, err = -1, n;
	bool struck;

	for (n = 1; n < 5000; n++) {
		if (a->before)
			a->before();
		fail_nth(n);
		err = a->try();
		struck = fail_nth(0);
		if (a->after)
			a->after();
		failed += err != 0;
		if (!struck && !err)
			break;
	}
	ok(!err && n < 5000, "%s: succeeds at last, after %d failures of %d faults", a->name, failed, n - 1);
}

/* What asks the proxy fails on the program's side; the proxy's side is sound and answers what arrives. */
static struct {
	int dev;
	int (*call)(int f);
	int nth, ret;
	bool struck;
	_Atomic int done;
} asker;

static int ask_start(int f)
{
	return app_start(f, NULL);
}

static int ask_join(int f)
{
	return app_join(f, fd, NULL);
}

static int ask_control(int f)
{
	char data[8] = "control";
	__u32 len = sizeof(data);

	(void)f;
	return app_control(fd, 1, data, &len, sizeof(data));
}

static void *ask_thread(void *arg)
{
	int f = app_open(asker.dev);

	(void)arg;
	fail_nth(asker.nth);
	asker.ret = asker.call(f);
	asker.struck = fail_nth(0);
	close(f);
	asker.done = 1;
	return NULL;
}

static int ask_once(int dev, int (*f)(int), int nth)
{
	struct request r;
	pthread_t t;
	int s;

	memset(&asker, 0, sizeof(asker));
	asker.dev = dev;
	asker.call = f;
	asker.nth = nth;
	pthread_create(&t, NULL, ask_thread, NULL);
	while (!asker.done) {
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
	return asker.ret;
}

static void attempt_asked(const char *name, int dev, int (*f)(int))
{
	int n, err = -1;

	for (n = 1; n < 5000; n++) {
		err = ask_once(dev, f, n);
		if (!asker.struck && !err)
			break;
	}
	ok(!err && n < 5000, "%s: succeeds at last, after %d faults", name, n - 1);
}

int main(void)
{
	struct stat st;
	struct nl mon;
	size_t i;

	if (stat("/proc/self/fail-nth", &st))
		skip_all("this kernel has no fault injection");
	/* It hears what each attempt does, so that telling it fails, too. Nobody reads it: what does not fit is dropped. */
	nl_open(&mon);
	nl_join(&mon, RGPU_MCGRP_MONITOR);
	everywhere("ignore-gfp-wait", "N");
	everywhere("ignore-gfp-highmem", "N");
	everywhere("verbose", "0");
	attempt(&(struct attempt){ "REGISTER", try_register, NULL, NULL });
	if (!ok(proxy_open(&p) == 0 && proxy_online(&p, 0, 1) == 0 && proxy_online(&p, 1, 1) == 0, "the proxy registers"))
		return tap_done();
	fd = app_open(0);
	sfd = start_with(&p, fd, &id);
	app_channel(fd, 4096, NULL);
	parameter("reply_secs", "2");
	for (i = 0; i < sizeof(attempts) / sizeof(*attempts); i++)
		attempt(&attempts[i]);
	parameter("reply_secs", "120");
	attempt_asked("SESSION_START", 0, ask_start);
	attempt_asked("SESSION_JOIN", 1, ask_join);
	attempt_asked("CONTROL", 0, ask_control);
	is_int(app_kick(fd, 0), 0, "the session that stood by all the time still does");
	close(fd);
	close(sfd);
	is_int(acknowledge(&p), 1, "GONE");
	proxy_close(&p);
	nl_close(&mon);
	nothing_left();
	return tap_done();
}
