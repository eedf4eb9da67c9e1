// SPDX-License-Identifier: GPL-2.0
/* What SESSION_GET and DEV_GET show to whom, and what the monitor group hears. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/selftests/rgpu/stub.h"

struct seen {
	int n;
	struct msg last;
};

static void look(const struct msg *m, void *arg)
{
	struct seen *s = arg;

	s->n++;
	memcpy(s->last.buf, m->buf, m->h.nlmsg_len);
}

static int see(struct nl *nl, __u8 cmd, struct seen *s)
{
	s->n = 0;
	memset(&s->last.h, 0, sizeof(s->last.h));
	return nl_dump(nl, cmd, look, s);
}

static struct proxy p;
static __u64 id;

static int owner(void)
{
	struct seen s;
	struct nl nl;

	MUST(!setresuid(12345, 12345, 12345));
	MUST(!nl_open(&nl));
	MUST(see(&nl, RGPU_CMD_SESSION_GET, &s) == 1);
	MUST(msg_get_u64(&s.last, RGPU_A_SESSION) == id);
	MUST(msg_get_u32(&s.last, RGPU_A_UID) == 12345);
	MUST(msg_get_u32(&s.last, RGPU_A_STATE) == RGPU_SESSION_LIVE);
	MUST(!msg_has(&s.last, RGPU_A_SID) && !msg_has(&s.last, RGPU_A_COOKIE) && !msg_has(&s.last, RGPU_A_CGROUP));
	MUST(see(&nl, RGPU_CMD_DEV_GET, &s) >= 1);
	MUST(!msg_has(&s.last, RGPU_A_DEV_COOKIE));
	return 0;
}

static int stranger(void)
{
	struct seen s;
	struct msg m;
	struct nl nl;

	MUST(!setresuid(12346, 12346, 12346));
	MUST(!nl_open(&nl));
	MUST(see(&nl, RGPU_CMD_SESSION_GET, &s) == 0);
	msg_begin(&nl, &m, RGPU_CMD_SESSION_GET);
	msg_u64(&m, RGPU_A_SESSION, id);
	MUST(nl_call(&nl, &m, NULL) == -ENOENT);
	return 0;
}

/* The same user in a pid namespace where the program is not. */
static int in_pid_ns(int (*then)(void))
{
	int status;
	pid_t pid;

	MUST(!unshare(CLONE_NEWPID));
	pid = fork();
	if (!pid)
		_exit(then());
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

static int owner_elsewhere(void)
{
	struct seen s;
	struct nl nl;

	MUST(!setresuid(12345, 12345, 12345));
	MUST(!nl_open(&nl));
	MUST(see(&nl, RGPU_CMD_SESSION_GET, &s) == 0);
	return 0;
}

static int admin_elsewhere(void)
{
	struct seen s;
	struct nl nl;

	MUST(!nl_open(&nl));
	MUST(see(&nl, RGPU_CMD_SESSION_GET, &s) == 1);
	MUST(msg_get_u32(&s.last, RGPU_A_PID) == 0);
	return 0;
}

static int owner_in_pid_ns(void)
{
	return in_pid_ns(owner_elsewhere);
}

static int admin_in_pid_ns(void)
{
	return in_pid_ns(admin_elsewhere);
}

/* Receives the monitor's next event and checks what it is about. */
static void hears(struct nl *nl, struct msg *m, __u8 cmd, const char *what)
{
	if (!ok(nl_recv(nl, m, 20000), "monitor: %s", what))
		return;
	is_int(msg_cmd(m), cmd, "monitor: which event");
}

static void monitor(void)
{
	struct proxy q;
	struct msg m;
	struct nl nl;
	int fd, sfd;
	__u64 ses;

	nl_open(&nl);
	is_int(nl_join(&nl, RGPU_MCGRP_MONITOR), 0, "join the monitor group");
	proxy_open(&q);
	hears(&nl, &m, RGPU_CMD_PROXY_NTF, "a proxy");
	is_int(msg_get_u32(&m, RGPU_A_EPOCH), q.epoch, "its epoch");
	proxy_online(&q, 0, 1);
	hears(&nl, &m, RGPU_CMD_DEV_NTF, "a device");
	is_int(*(const __u8 *)msg_attr(&m, RGPU_A_ONLINE, NULL), 1, "comes online");
	fd = app_open(0);
	sfd = start_with(&q, fd, &ses);
	hears(&nl, &m, RGPU_CMD_SESSION_NTF, "a session");
	is_int(msg_get_u32(&m, RGPU_A_STATE), RGPU_SESSION_STARTING, "starts");
	is_int(msg_get_u32(&m, RGPU_A_DEVICE), 0, "on device 0");
	hears(&nl, &m, RGPU_CMD_SESSION_NTF, "the session");
	is_int(msg_get_u32(&m, RGPU_A_STATE), RGPU_SESSION_LIVE, "is LIVE");
	is_int(msg_get_u64(&m, RGPU_A_SESSION), ses, "the same");
	close(fd);
	hears(&nl, &m, RGPU_CMD_SESSION_NTF, "the session");
	is_int(msg_get_u32(&m, RGPU_A_STATE), RGPU_SESSION_FAILED, "ends");
	acknowledge(&q);
	hears(&nl, &m, RGPU_CMD_SESSION_NTF, "the session");
	ok(msg_has(&m, RGPU_A_REMOVED), "is acknowledged");
	close(sfd);
	proxy_close(&q);
	hears(&nl, &m, RGPU_CMD_DEV_NTF, "the device");
	is_int(*(const __u8 *)msg_attr(&m, RGPU_A_ONLINE, NULL), 0, "goes offline");
	hears(&nl, &m, RGPU_CMD_PROXY_NTF, "the proxy");
	ok(msg_has(&m, RGPU_A_REMOVED), "is gone");
	nl_close(&nl);
}

/* More sessions than one datagram of a dump can hold. */
static void many(void)
{
	int fds[64], sfds[64], i;
	struct seen s;

	proxy_open(&p);
	proxy_online(&p, 0, 1);
	for (i = 0; i < 64; i++) {
		char cookie[RGPU_COOKIE_MAX];
		__u64 ses;

		fds[i] = app_open(0);
		sfds[i] = start_with(&p, fds[i], &ses);
		memset(cookie, i, sizeof(cookie));
		session_cookie(&p, ses, cookie, sizeof(cookie));
	}
	is_int(see(&p.nl, RGPU_CMD_SESSION_GET, &s), 64, "64 sessions, each shown once");
	for (i = 0; i < 64; i++) {
		close(fds[i]);
		close(sfds[i]);
	}
	is_int(see(&p.nl, RGPU_CMD_SESSION_GET, &s), 0, "ended ones are not shown");
	is_int(acknowledge(&p), 64, "but told");
	proxy_close(&p);
}

/* What a file in sysfs says. */
static bool says(const char *path, const char *what)
{
	char buf[1024];
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? 0 : read(fd, buf, sizeof(buf) - 1);

	buf[n > 0 ? n : 0] = 0;
	if (fd >= 0)
		close(fd);
	return strstr(buf, what);
}

/* The proxy's word on a session's connection is there for those who look, and ends with the next state. */
static void link_down(struct proxy *p, struct seen *s, int sfd)
{
	struct rgpu_session_set set = { .size = sizeof(set), .flags = RGPU_SET_LINK_DOWN, .state = RGPU_SESSION_LIVE };

	ok(see(&p->nl, RGPU_CMD_SESSION_GET, s) == 1 && !msg_attr(&s->last, RGPU_A_LINK_DOWN, NULL), "its connection is up");
	ok(says("/sys/class/rgpu/rgpu0/links_down", "0\n"), "sysfs: no link is down");
	is_int(ioctl(sfd, RGPU_SES_SET, &set), 0, "SET LIVE with LINK_DOWN");
	ok(see(&p->nl, RGPU_CMD_SESSION_GET, s) == 1 && msg_attr(&s->last, RGPU_A_LINK_DOWN, NULL), "it is down");
	is_int(msg_get_u32(&s->last, RGPU_A_STATE), RGPU_SESSION_LIVE, "and the session LIVE");
	ok(msg_get_u64(&s->last, RGPU_A_LINK_DOWN) < 3600000, "since not long ago");
	ok(says("/sys/class/rgpu/rgpu0/links_down", "1\n"), "sysfs: one link is down");
	is_int(session_set(sfd, RGPU_SESSION_LIVE, 0), 0, "SET LIVE");
	ok(see(&p->nl, RGPU_CMD_SESSION_GET, s) == 1 && !msg_attr(&s->last, RGPU_A_LINK_DOWN, NULL), "it is up again");
	set.state = RGPU_SESSION_FAILED;
	set.reason = -EIO;
	is_int(ioctl(sfd, RGPU_SES_SET, &set) ? -errno : 0, -EINVAL, "FAILED has no link");
	set = (struct rgpu_session_set){ .size = sizeof(set), .flags = 2, .state = RGPU_SESSION_LIVE };
	is_int(ioctl(sfd, RGPU_SES_SET, &set) ? -errno : 0, -EINVAL, "a flag of tomorrow");
}

int main(void)
{
	struct request r;
	struct seen s;
	size_t len;
	int sfd, status;
	pid_t pid;

	if (!ok(proxy_open(&p) == 0 && proxy_online(&p, 0, 1) == 0, "the proxy registers"))
		return tap_done();
	chmod("/dev/rgpu0", 0666);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		int fd;

		if (setresuid(12345, 12345, 12345))
			_exit(1);
		fd = app_open(0);
		if (app_start(fd, NULL) || app_channel(fd, 4096, NULL) || app_bo(fd, 8192, NULL))
			_exit(2);
		pause();
	}
	proxy_next(&p, &r);
	is_int(r.uid, 12345, "START: uid of whoever opened the device");
	is_int(r.pid, pid, "START: pid");
	sfd = proxy_attach(&p, r.session);
	id = r.session;
	session_cookie(&p, id, "secret", 6);
	proxy_reply(&p, r.id, 0, NULL, 0);
	counter_becomes("bos", 1);

	is_int(see(&p.nl, RGPU_CMD_SESSION_GET, &s), 1, "the proxy sees the session");
	is_int(msg_get_u32(&s.last, RGPU_A_PID), pid, "pid");
	is_int(msg_get_u32(&s.last, RGPU_A_UID), 12345, "uid");
	is_int(msg_get_u64(&s.last, RGPU_A_BO_BYTES), 8192, "bytes of buffer objects");
	is_int(msg_get_u32(&s.last, RGPU_A_NCHANNELS), 1, "channels");
	is_int(msg_get_u32(&s.last, RGPU_A_EPOCH), p.epoch, "epoch");
	is_str(msg_attr(&s.last, RGPU_A_COMM, NULL), "look", "name");
	ok(!memcmp(msg_attr(&s.last, RGPU_A_SID, NULL), r.sid, sizeof(r.sid)), "sid");
	ok(msg_attr(&s.last, RGPU_A_COOKIE, &len) && len == 6, "cookie");
	link_down(&p, &s, sfd);
	in_child("its user sees it, but no secrets", owner);
	in_child("another user does not", stranger);
	in_child("nor its user in another pid namespace", owner_in_pid_ns);
	in_child("an administrator there does, without a pid", admin_in_pid_ns);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	counter_becomes("gone", 1);
	is_int(acknowledge(&p), 1, "GONE");
	close(sfd);
	proxy_close(&p);
	chmod("/dev/rgpu0", 0660);
	monitor();
	many();
	nothing_left();
	return tap_done();
}
