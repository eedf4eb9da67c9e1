// SPDX-License-Identifier: GPL-2.0
/* Doorbells: latched, one a channel, and the waits they end; signals, states and ends that end a wait too. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/selftests/rgpu/stub.h"

static struct proxy p;
static int fd, sfd;
static __u64 id;
static volatile int signals;

static void on_signal(int sig)
{
	(void)sig;
	signals++;
}

static int poll_now(int f)
{
	struct pollfd pfd = { .fd = f, .events = POLLIN };

	return poll(&pfd, 1, 0) > 0 ? pfd.revents : 0;
}

static void drain(void)
{
	struct rgpu_kicked k = { .size = sizeof(k) };
	__u32 ch;

	for (ch = 0; ch < 80; ch++)
		app_wait(fd, ch, 0);
	ioctl(sfd, RGPU_SES_KICKED, &k);
}

static void to_app(void)
{
	struct async a = { .fd = fd, .ms = -1 };

	is_int(app_kick(sfd, 0), 0, "the proxy kicks");
	is_int(app_kick(sfd, 0), 0, "twice");
	is_int(app_wait(fd, 0, -1), 0, "a kick that came before the wait ends it");
	is_int(app_wait(fd, 0, 0), -ETIMEDOUT, "two kicks are one");
	is_int(app_wait(fd, 0, 20), -ETIMEDOUT, "no kick: time runs out");
	async_begin(&a, async_wait);
	async_sleeps(&a);
	is_int(app_kick(sfd, 1), 0, "a kick of channel 1");
	is_int(app_wait(fd, 1, 0), 0, "is a kick of channel 1");
	async_sleeps(&a);
	is_int(app_kick(sfd, 0), 0, "while one waits on 0, who");
	is_int(async_end(&a), 0, "is woken by a kick of channel 0");
}

static void to_proxy(void)
{
	struct rgpu_kicked k = { .size = sizeof(k) };

	is_int(poll_now(sfd), 0, "no kick: the session fd is not readable");
	app_kick(fd, 3);
	app_kick(fd, 70);
	app_kick(fd, 3);
	is_int(poll_now(sfd), POLLIN, "kicked: it is");
	is_int(poll_now(sfd), POLLIN, "and stays so");
	is_int(ioctl(sfd, RGPU_SES_KICKED, &k), 0, "KICKED");
	is_int(k.channels[0], 1 << 3, "channel 3");
	is_int(k.channels[1], 1 << 6, "channel 70");
	is_int(k.channels[2] | k.channels[3], 0, "and no other");
	is_int(poll_now(sfd), 0, "taken: not readable");
	is_int(app_wait(fd, 3, 0), -ETIMEDOUT, "the program's own kick does not wake itself");
}

/* Many kicks between two threads: each must be seen, or one of them sleeps for ever. */
static int ping(struct async *a)
{
	int i, err;

	for (i = 0; i < 2000; i++) {
		if (app_kick(a->fd, 5))
			return -1;
		err = app_wait(a->fd, 5, -1);
		if (err)
			return err;
	}
	return 0;
}

static void ping_pong(void)
{
	struct rgpu_kicked k = { .size = sizeof(k) };
	struct pollfd pfd = { .fd = sfd, .events = POLLIN };
	struct async a = { .fd = fd };
	int i;

	async_begin(&a, ping);
	for (i = 0; i < 2000 && poll(&pfd, 1, 60000) == 1; i++) {
		ioctl(sfd, RGPU_SES_KICKED, &k);
		app_kick(sfd, 5);
	}
	is_int(i, 2000, "2,000 kicks there");
	is_int(async_end(&a), 0, "and back");
}

static void signalled(void)
{
	struct sigaction plain = { .sa_handler = on_signal }, restart = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	struct async a = { .fd = fd, .ms = -1 };
	int status;
	pid_t pid;

	sigaction(SIGUSR1, &plain, NULL);
	async_begin(&a, async_wait);
	async_sleeps(&a);
	pthread_kill(a.thread, SIGUSR1);
	is_int(async_end(&a), -EINTR, "a handler ends the wait");

	sigaction(SIGUSR1, &restart, NULL);
	async_begin(&a, async_wait);
	async_sleeps(&a);
	signals = 0;
	pthread_kill(a.thread, SIGUSR1);
	while (!signals)
		usleep(1000);
	async_sleeps(&a);
	app_kick(sfd, 0);
	is_int(async_end(&a), 0, "one with SA_RESTART does not: a kick does");

	a.ms = 60000;
	async_begin(&a, async_wait);
	async_sleeps(&a);
	pthread_kill(a.thread, SIGUSR1);
	is_int(async_end(&a), -EINTR, "a wait with a time limit is ended by both");

	/* A stopped and continued program waits on; a killed one is gone. */
	fflush(stdout);
	pid = fork();
	if (!pid) {
		int f = app_open(0);

		if (app_start(f, NULL) || app_channel(f, 4096, NULL))
			_exit(1);
		_exit(app_wait(f, 0, -1) ? 2 : 0);
	}
	{
		struct request r;
		int s;

		proxy_next(&p, &r);
		s = proxy_attach(&p, r.session);
		proxy_reply(&p, r.id, 0, NULL, 0);
		counter_becomes("channels", 81);
		kill(pid, SIGSTOP);
		waitpid(pid, &status, WUNTRACED);
		ok(WIFSTOPPED(status), "a child stops in its wait");
		kill(pid, SIGCONT);
		waitpid(pid, &status, WCONTINUED);
		ok(WIFCONTINUED(status), "goes on");
		is_int(waitpid(pid, &status, WNOHANG), 0, "and waits");
		app_kick(s, 0);
		waitpid(pid, &status, 0);
		is_int(status, 0, "until it is kicked");
		close(s);
		is_int(acknowledge(&p), 1, "its session is gone");
	}
}

static void ended(void)
{
	struct async a = { .fd = fd, .ms = -1 }, b = { .fd = fd, .ms = -1, .ch = 1 };

	async_begin(&a, async_wait);
	async_sleeps(&a);
	is_int(app_channel_destroy(fd, 0), 0, "a channel is destroyed under its waiter");
	is_int(async_end(&a), -ENOENT, "who hears of it");

	async_begin(&b, async_wait);
	async_sleeps(&b);
	close(sfd);
	is_int(async_end(&b), 0, "the proxy goes: the waiter is woken");
	is_int(app_wait(fd, 2, 0), 0, "and who waits later on another channel");
	is_int(app_wait(fd, 2, 0), -ETIMEDOUT, "once");
	sfd = proxy_attach(&p, id);
	is_int(app_wait(fd, 2, 0), 0, "a proxy comes: kicked");
	is_int(poll_now(sfd), POLLIN, "on both sides");
	is_int(session_set(sfd, RGPU_SESSION_LIVE, 0), 0, "LIVE");
	is_int(app_wait(fd, 2, 0), 0, "kicked");
	is_int(app_wait(fd, 1, 0), 0, "on each channel");
	async_begin(&b, async_wait);
	async_sleeps(&b);
	is_int(session_set(sfd, RGPU_SESSION_FAILED, -EIO), 0, "FAILED");
	is_int(async_end(&b), -ESHUTDOWN, "the waiter hears of it");
	is_int(app_wait(fd, 1, -1), -ESHUTDOWN, "and never sleeps again");
	is_int(app_kick(fd, 1), -ESHUTDOWN, "nor kicks");
	close(fd);
	ok(poll_now(sfd) & POLLHUP, "the program is gone: the session fd is hung up");
}

int main(void)
{
	int i;

	if (!ok(proxy_open(&p) == 0 && proxy_online(&p, 0, 1) == 0, "the proxy registers"))
		return tap_done();
	fd = app_open(0);
	sfd = start_with(&p, fd, &id);
	for (i = 0; i < 80; i++)
		app_channel(fd, 4096, NULL);
	is_int(counter("channels"), 80, "80 channels");
	drain();
	to_app();
	drain();
	to_proxy();
	ping_pong();
	drain();
	signalled();
	ended();
	close(sfd);
	is_int(acknowledge(&p), 1, "the session is gone");
	proxy_close(&p);
	nothing_left();
	return tap_done();
}
