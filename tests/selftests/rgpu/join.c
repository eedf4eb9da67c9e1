// SPDX-License-Identifier: GPL-2.0
/* Sessions of several devices: same server, wrong server, twice, replayed, and who closes last. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/selftests/rgpu/stub.h"

static struct proxy p;

static int join_with(int fd, int other, int status, struct request *r, __u32 *index)
{
	struct async a = { .fd = fd, .other = other };

	async_begin(&a, async_join);
	proxy_next(&p, r);
	proxy_reply(&p, r->id, status, NULL, 0);
	async_end(&a);
	*index = a.index;
	return a.ret;
}

static long sessions_of(int dev)
{
	char buf[32];

	device_attr(dev, "sessions", buf, sizeof(buf));
	return atol(buf);
}

struct seen {
	int n;
	__u32 devices[4];
};

static void look(const struct msg *m, void *arg)
{
	struct seen *s = arg;
	const void *d;

	for (s->n = 0; s->n < 4 && (d = msg_nth(m, RGPU_A_DEVICE, s->n, NULL)); s->n++)
		memcpy(&s->devices[s->n], d, sizeof(__u32));
}

int main(void)
{
	int f0, f1, f1b, f2, bare, sfd, status, null = open("/dev/null", O_RDWR);
	struct async a;
	struct rgpu_kpage *k;
	struct request r;
	struct seen s = { 0 };
	__u32 index;
	pid_t pid;
	__u64 id;

	if (!ok(proxy_open(&p) == 0 && !proxy_online(&p, 0, 1) && !proxy_online(&p, 1, 1) && !proxy_online(&p, 2, 2),
		"two devices of one server, one of another"))
		return tap_done();
	f0 = app_open(0);
	f1 = app_open(1);
	f1b = app_open(1);
	f2 = app_open(2);
	bare = app_open(0);
	sfd = start_with(&p, f0, &id);

	is_int(app_join(f1, null, NULL), -EBADF, "join something else");
	is_int(app_join(f1, p.ctl, NULL), -EBADF, "join ctl");
	is_int(app_join(f1, sfd, NULL), -EBADF, "join a session fd");
	is_int(app_join(f1, bare, NULL), -ENOTCONN, "join a file without a session");
	is_int(app_join(f0, f0, NULL), -EALREADY, "join oneself");
	is_int(app_join(f2, f0, NULL), -EXDEV, "join with a device of another server");
	fflush(stdout);
	pid = fork();
	if (!pid) {
		int f = app_open(1);

		_exit(app_join(f, f0, NULL) == -EPERM ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	is_int(status, 0, "join another process's session");
	is_int(proxy_pull(&p, &r), -EAGAIN, "the proxy heard of none of these");

	is_int(join_with(f1, f0, -ENOSPC, &r, &index), -ENOSPC, "the proxy refuses");
	is_int(sessions_of(1), 0, "the device has no session");
	is_int(join_with(f1, f0, 0, &r, &index), 0, "the proxy agrees");
	is_int(r.type, RGPU_REQ_JOIN, "JOIN");
	is_int(r.session, id, "JOIN: session");
	is_int(r.device, 1, "JOIN: device");
	is_int(r.index, 1, "JOIN: its index");
	is_int(r.dev_cookie_len, 4, "JOIN: its cookie");
	is_int(index, 1, "the program gets the index");
	is_int(sessions_of(1), 1, "the device has a session");
	is_int(counter("sessions"), 1, "which is the same");
	is_int(app_join(f1, f0, NULL), -EALREADY, "again");
	is_int(app_start(f1, NULL), -EALREADY, "start on a file that joined");
	is_int(app_join(f1b, f1, &index), 0, "another file of the same device, by way of the second");
	is_int(index, 1, "has its index, without asking the proxy");
	nl_dump(&p.nl, RGPU_CMD_SESSION_GET, look, &s);
	ok(s.n == 2 && s.devices[0] == 0 && s.devices[1] == 1, "SESSION_GET shows both devices in order");

	k = map(f1, RGPU_MMAP_KPAGE, 4096, PROT_READ, MAP_SHARED);
	ok(!MAP_BAD(k) && k->state == RGPU_SESSION_LIVE, "the joined file maps the session");
	munmap(k, 4096);
	is_int(app_channel(f1, 4096, NULL), 0, "and makes channels");
	close(f0);
	close(f1b);
	is_int(counter("sessions"), 1, "the starter closes: the session stays");
	close(f1);
	is_int(counter("sessions"), 0, "the last one closes: it ends");
	is_int(sessions_of(0) | sessions_of(1), 0, "no device has it any more");
	is_int(acknowledge(&p), 1, "GONE, once");
	close(sfd);

	/* A JOIN that the old proxy had is replayed like any other. */
	f0 = bare;
	sfd = start_with(&p, f0, &id);
	f1 = app_open(1);
	a = (struct async){ .fd = f1, .other = f0 };
	async_begin(&a, async_join);
	proxy_next(&p, &r);
	proxy_close(&p);
	close(sfd);
	proxy_open(&p);
	proxy_online(&p, 0, 1);
	proxy_online(&p, 1, 1);
	sfd = proxy_attach(&p, id);
	session_set(sfd, RGPU_SESSION_LIVE, 0);
	is_int(proxy_next(&p, &r), 0, "the next proxy pulls");
	is_int(r.type, RGPU_REQ_JOIN, "the JOIN");
	is_int(r.flags, RGPU_REQ_REPLAY, "marked REPLAY");
	is_int(r.index, 1, "of the same index");
	proxy_reply(&p, r.id, 0, NULL, 0);
	is_int(async_end(&a), 0, "the program's call succeeds");
	close(f0);
	close(f1);
	close(f2);
	is_int(acknowledge(&p), 1, "GONE");
	close(sfd);
	proxy_close(&p);
	nothing_left();
	return tap_done();
}
