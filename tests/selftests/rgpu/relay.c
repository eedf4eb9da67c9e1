// SPDX-License-Identifier: GPL-2.0
/* Requests to the proxy: refused, interrupted, abandoned, answered late or twice, and replayed to the next proxy. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/selftests/rgpu/stub.h"

static struct proxy p;
static int signals;

static void on_signal(int sig)
{
	(void)sig;
	signals++;
}

static int readable(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, 0) > 0 && pfd.revents & POLLIN;
}

static void refused(void)
{
	char text[64] = "hello";
	struct rgpu_session_start s = {
		.size = sizeof(s),
		.data_len = 5,
		.data_room = sizeof(text),
		.data = (unsigned long)text,
	};
	struct request r;
	int ret, status;
	pid_t pid;

	/* From a child, so that identity is not ours by chance. */
	fflush(stdout);
	pid = fork();
	if (!pid) {
		ret = ioctl(app_open(0), RGPU_IOC_SESSION_START, &s) < 0 ? errno : 0;
		_exit(ret == ECONNREFUSED && s.data_len == 10 && !strcmp(text, "no server") ? 0 : 1);
	}
	is_int(proxy_next(&p, &r), 0, "START arrives");
	is_int(r.pid, pid, "with the child's pid");
	is_int(r.len, 5, "and its data");
	is_int(r.room, sizeof(text), "and room for an answer");
	is_int(proxy_reply(&p, r.id, -ECONNREFUSED, "no server", 10), 0, "refused, with a reason");
	waitpid(pid, &status, 0);
	is_int(status, 0, "the program gets the error and the reason");
	is_int(proxy_pull(&p, &r), -EAGAIN, "nothing more is heard of that session");
	is_int(counter("gone"), 0, "nor kept");
}

static void retry(void)
{
	struct async a = { .fd = app_open(0) };
	struct request r;
	int sfd;

	async_begin(&a, async_start);
	proxy_next(&p, &r);
	async_sleeps(&a);
	is_int(app_start(a.fd, NULL), -EALREADY, "a second START while the first waits");
	is_int(proxy_reply(&p, r.id, 0, NULL, 0), -ENOTCONN, "success without a session fd is refused");
	is_int(proxy_reply(&p, r.id, -EACCES, NULL, 0), 0, "an error is not");
	is_int(async_end(&a), -EACCES, "which the program gets");
	sfd = start_with(&p, a.fd, NULL);
	ok(sfd >= 0, "the same file may try again");
	close(a.fd);
	is_int(acknowledge(&p), 1, "and its end is told");
	close(sfd);
}

/* A child that starts a session, and then sends a CONTROL when @control. Killed while it waits. */
static pid_t victim(bool control)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		int fd = app_open(0);
		__u32 len = 0;

		if (!app_start(fd, NULL) && control)
			app_control(fd, 7, NULL, &len, 0);
		pause();
	}
	return pid;
}

static void killed(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void abandoned(void)
{
	struct request start, r;
	pid_t pid = victim(false);
	int sfd;

	is_int(counter_becomes("requests", 1), 1, "a START is queued");
	killed(pid);
	is_int(counter_becomes("requests", 0), 0, "killed before it was pulled: it is gone");
	is_int(proxy_pull(&p, &r), -EAGAIN, "and the proxy never hears of it");

	pid = victim(false);
	proxy_next(&p, &start);
	p.nl.cancels = 0;
	killed(pid);
	is_int(proxy_next(&p, &r), 0, "killed after it was pulled");
	is_int(r.type, RGPU_REQ_GONE, "the proxy hears GONE");
	is_int(r.session, start.session, "of that session");
	nl_events(&p.nl);
	is_int(p.nl.cancels, 1, "and a CANCEL");
	is_int(p.nl.cancelled, start.id, "of that request");
	is_int(proxy_reply(&p, start.id, -EIO, NULL, 0), -ENOENT, "a late answer finds nobody");
	is_int(proxy_attach(&p, start.session), -ESHUTDOWN, "the session cannot be taken any more");
	is_int(proxy_reply(&p, r.id, 0, NULL, 0), 0, "GONE is acknowledged");
	is_int(proxy_attach(&p, start.session), -ENOENT, "then there is none");

	pid = victim(true);
	proxy_next(&p, &r);
	sfd = proxy_attach(&p, r.session);
	proxy_reply(&p, r.id, 0, NULL, 0);
	is_int(proxy_next(&p, &r), 0, "a CONTROL of a session that is LIVE");
	is_int(r.op, 7, "is pulled");
	killed(pid);
	is_int(counter_becomes("gone", 1), 1, "killed: GONE");
	is_int(proxy_reply(&p, r.id, 0, NULL, 0), -ENOENT, "a late answer finds nobody");
	is_int(acknowledge(&p), 1, "acknowledged");
	close(sfd);
}

static void interrupted(int fd)
{
	struct sigaction sa = { .sa_handler = on_signal };
	struct async a = { .fd = fd, .op = 1, .room = 16 };
	struct request r;

	sigaction(SIGUSR1, &sa, NULL);
	async_begin(&a, async_control);
	proxy_next(&p, &r);
	async_sleeps(&a);
	pthread_kill(a.thread, SIGUSR1);
	async_sleeps(&a);
	is_int(proxy_reply(&p, r.id, 0, "fine", 5), 0, "a signal with a handler does not end a CONTROL");
	is_int(async_end(&a), 0, "it gets its answer");
	is_str(a.data, "fine", "with its bytes");
	is_int(signals, 1, "and the handler ran");
}

static void answers(int fd)
{
	struct async a = { .fd = fd, .op = 1, .room = 16 };
	struct request r, none;
	struct proxy other;

	nl_open(&other.nl);
	async_begin(&a, async_control);
	proxy_next(&p, &r);
	is_int(proxy_pull(&other, &none), -EPERM, "another socket may not pull");
	is_int(proxy_reply(&other, r.id, 0, NULL, 0), -EPERM, "nor reply");
	nl_close(&other.nl);
	is_int(proxy_reply(&p, r.id + 1000, 0, NULL, 0), -ENOENT, "an answer to no request");
	is_int(proxy_reply(&p, r.id, 1, NULL, 0), -ERANGE, "a positive status");
	is_int(proxy_reply(&p, r.id, -512, NULL, 0), -ERANGE, "a status that the kernel keeps for itself");
	is_int(session_cookie(&p, 12345, "x", 1), -ENOENT, "a cookie for no session");
	is_int(proxy_reply(&p, r.id, 0, "1", 2), 0, "an answer");
	is_int(proxy_reply(&p, r.id, 0, "2", 2), -ENOENT, "a second one");
	is_int(async_end(&a), 0, "the first counts");
	is_str(a.data, "1", "with its bytes");
}

static void deadline(int fd)
{
	struct async a = { .fd = fd, .op = 1, .room = 16 };
	struct request r;

	parameter("reply_secs", "1");
	async_begin(&a, async_control);
	proxy_next(&p, &r);
	is_int(async_end(&a), -ETIMEDOUT, "no answer within reply_secs");
	is_int(proxy_reply(&p, r.id, 0, NULL, 0), -ENOENT, "a late answer finds nobody");
	parameter("reply_secs", "120");
	async_begin(&a, async_control);
	proxy_next(&p, &r);
	is_int(proxy_reply(&p, r.id, 0, NULL, 0), 0, "the session goes on:");
	is_int(async_end(&a), 0, "the next request is answered");
}

static void notification(int fd)
{
	struct async a = { .fd = fd, .op = 1 }, b = { .fd = fd, .op = 2 };
	struct request r;

	is_int(proxy_pull(&p, &r), -EAGAIN, "the queue is empty");
	nl_events(&p.nl);
	p.nl.ready = 0;
	is_int(readable(p.ctl), 0, "ctl is not readable");
	async_begin(&a, async_control);
	async_sleeps(&a);
	async_begin(&b, async_control);
	async_sleeps(&b);
	is_int(counter("requests"), 2, "two requests");
	nl_events(&p.nl);
	is_int(p.nl.ready, 1, "one READY: more would tell nothing");
	is_int(readable(p.ctl), 1, "ctl is readable");
	is_int(proxy_pull(&p, &r), 0, "one pulled");
	is_int(r.op, 1, "the first that was asked");
	is_int(readable(p.ctl), 1, "ctl is still readable");
	is_int(proxy_reply(&p, r.id, 0, NULL, 0), 0, "answered");
	is_int(proxy_pull(&p, &r), 0, "the other pulled");
	is_int(readable(p.ctl), 0, "ctl is not readable");
	is_int(proxy_reply(&p, r.id, 0, NULL, 0), 0, "answered");
	is_int(async_end(&a) | async_end(&b), 0, "both programs go on");
}

static void replayed(int fd, __u64 id, int *sfd)
{
	struct async a = { .fd = fd, .op = 1, .room = 8 }, b = { .fd = fd, .op = 2, .room = 8 };
	struct request first, r;
	__u32 epoch = p.epoch;

	async_begin(&a, async_control);
	proxy_next(&p, &first);
	async_begin(&b, async_control);
	async_sleeps(&b);
	proxy_close(&p);
	is_int(proxy_open(&p), 0, "the next proxy registers");
	is_int(p.epoch, epoch + 1, "its epoch is the next");
	proxy_online(&p, 0, 1);
	is_int(proxy_pull(&p, &r), -EAGAIN, "requests of a session that is not resumed are held back");
	is_int(readable(p.ctl), 0, "and not announced");
	close(*sfd);
	*sfd = proxy_attach(&p, id);
	ok(*sfd >= 0, "the session is taken over");
	is_int(proxy_pull(&p, &r), -EAGAIN, "requests are still held back");
	is_int(session_set(*sfd, RGPU_SESSION_LIVE, 0), 0, "SET LIVE");
	is_int(proxy_next(&p, &r), 0, "now they come");
	is_int(r.id, first.id, "the one that the old proxy had first");
	is_int(r.flags, RGPU_REQ_REPLAY, "marked REPLAY");
	is_int(proxy_reply(&p, r.id, 0, "a", 2), 0, "answered");
	is_int(proxy_pull(&p, &r), 0, "the next");
	is_int(r.op, 2, "which the old proxy did not have");
	is_int(r.flags, 0, "is not marked");
	is_int(proxy_reply(&p, r.id, 0, "b", 2), 0, "answered");
	is_int(async_end(&a) | async_end(&b), 0, "both calls succeed");
	ok(!strcmp(a.data, "a") && !strcmp(b.data, "b"), "each with its own answer");
}

/* START does not wait for a resume: nothing is there to be resumed. */
static void start_replayed(void)
{
	struct async a = { .fd = app_open(0) };
	struct request old, r;
	int sfd, old_sfd;

	async_begin(&a, async_start);
	proxy_next(&p, &old);
	old_sfd = proxy_attach(&p, old.session);
	proxy_close(&p);
	proxy_open(&p);
	proxy_online(&p, 0, 1);
	is_int(proxy_next(&p, &r), 0, "START comes to the next proxy");
	is_int(r.id, old.id, "the same request");
	is_int(r.flags, RGPU_REQ_REPLAY, "marked REPLAY");
	ok(!memcmp(r.sid, old.sid, sizeof(r.sid)), "with the same sid");
	is_int(session_set(old_sfd, RGPU_SESSION_FAILED, -EIO), -ESTALE, "the old session fd has no rights");
	sfd = proxy_attach(&p, r.session);
	ok(sfd >= 0, "the new proxy takes it");
	is_int(session_set(sfd, RGPU_SESSION_LIVE, 0), -EINVAL, "SET LIVE does not answer a START");
	is_int(proxy_reply(&p, r.id, 0, NULL, 0), 0, "the reply does");
	is_int(async_end(&a), 0, "and the program's START succeeds");
	close(old_sfd);

	/* GONE, too, is replayed. */
	close(a.fd);
	proxy_next(&p, &old);
	is_int(old.type, RGPU_REQ_GONE, "GONE");
	proxy_close(&p);
	is_int(counter("gone"), 1, "not acknowledged: kept");
	proxy_open(&p);
	proxy_online(&p, 0, 1);
	is_int(proxy_next(&p, &r), 0, "comes to the next proxy");
	is_int(r.id, old.id, "the same");
	is_int(r.flags, RGPU_REQ_REPLAY, "marked REPLAY");
	is_int(proxy_reply(&p, r.id, 0, NULL, 0), 0, "acknowledged");
	close(sfd);
}

static void failed(int fd, int sfd)
{
	struct async a = { .fd = fd, .op = 1 }, s = { .fd = app_open(0) };
	struct request r;
	int other;

	async_begin(&a, async_control);
	proxy_next(&p, &r);
	nl_events(&p.nl);
	p.nl.cancels = 0;
	is_int(session_set(sfd, RGPU_SESSION_FAILED, -EREMOTEIO), 0, "SET FAILED while a CONTROL waits");
	is_int(async_end(&a), -ESHUTDOWN, "ends it");
	nl_events(&p.nl);
	is_int(p.nl.cancels, 1, "with a CANCEL to the proxy");
	is_int(proxy_reply(&p, r.id, 0, NULL, 0), -ENOENT, "whose answer finds nobody");

	async_begin(&s, async_start);
	proxy_next(&p, &r);
	other = proxy_attach(&p, r.session);
	is_int(session_set(other, RGPU_SESSION_FAILED, -EDQUOT), 0, "SET FAILED while START waits");
	is_int(async_end(&s), -EDQUOT, "is its answer");
	is_int(acknowledge(&p), 1, "and the proxy hears GONE, since it may have begun something");
	close(other);
	close(s.fd);
}

int main(void)
{
	int fd, sfd;
	__u64 id;

	if (!ok(proxy_open(&p) == 0 && proxy_online(&p, 0, 1) == 0, "the proxy registers"))
		return tap_done();
	refused();
	retry();
	abandoned();
	fd = app_open(0);
	sfd = start_with(&p, fd, &id);
	interrupted(fd);
	answers(fd);
	deadline(fd);
	notification(fd);
	replayed(fd, id, &sfd);
	start_replayed();
	/* start_replayed() changed the proxy: the session of ours is resumed. */
	close(sfd);
	sfd = proxy_attach(&p, id);
	is_int(session_set(sfd, RGPU_SESSION_LIVE, 0), 0, "the session is LIVE again");
	failed(fd, sfd);
	close(sfd);
	close(fd);
	is_int(acknowledge(&p), 1, "the last session is gone");
	proxy_close(&p);
	nothing_left();
	return tap_done();
}
