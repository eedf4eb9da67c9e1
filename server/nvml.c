// SPDX-License-Identifier: MIT
/* The listener's side of the process that asks NVML: starts it, asks it, and gives it up for a while when it fails. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/clock.h"
#include "lib/log.h"
#include "server/nvml.h"
#include "server/spawn.h"

#define ANSWER_MS 10000 /* NVML's start is in it */
#define REST_MS                                                                                                                  \
	30000 /* after a failure; twice as long after each further one, so that a log does not fill for pages that ask on */
#define REST_MAX 600000

static struct {
	pthread_mutex_t lock;
	int sock;
	pid_t pid;
	int rest_ms;
	int64_t rest_until;
} me = {.lock = PTHREAD_MUTEX_INITIALIZER, .sock = -1, .rest_ms = REST_MS};

static void stop(void)
{
	if (me.sock < 0)
		return;
	close(me.sock);
	me.sock = -1;
	kill(-me.pid, SIGKILL);
	while (waitpid(me.pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static int start(const char *lib)
{
	const char *args[] = {"--nvml", lib, NULL};
	int sv[2], err;

	if (me.sock >= 0)
		return 0;
	if (rgpu_now_ns() < me.rest_until)
		return -EAGAIN;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv))
		return -errno;
	err = spawn_self("--telemetry", sv[1], args, &me.pid);
	close(sv[1]);
	if (err)
		close(sv[0]);
	else
		me.sock = sv[0];
	return err;
}

static ssize_t exchange(const struct nvml_ask *ask, void *buf, uint32_t room)
{
	struct pollfd p = {.fd = me.sock, .events = POLLIN};
	int64_t deadline = rgpu_deadline(ANSWER_MS);
	ssize_t n;

	if (send(me.sock, ask, sizeof(*ask), MSG_NOSIGNAL) != sizeof(*ask))
		return -EPIPE;
	do
		n = poll(&p, 1, rgpu_ms_left(deadline));
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return -ETIMEDOUT;
	n = recv(me.sock, buf, room, 0);
	return n > 0 ? n : -EPIPE;
}

/* An answer has a byte in front, so that an empty one is not taken for the end. */
ssize_t nvml_request(const char *lib, const struct nvml_ask *ask, void *buf, uint32_t room)
{
	static uint8_t answer[NVML_ANSWER_MAX + 1]; /* under the lock */
	ssize_t n;

	pthread_mutex_lock(&me.lock);
	n = start(lib);
	if (!n)
		n = exchange(ask, answer, sizeof(answer));
	if (n > 0) {
		n--;
		me.rest_ms = REST_MS;
		if (n > room)
			n = room;
		memcpy(buf, answer + 1, n);
	} else if (n != -EAGAIN) {
		rgpu_note("%s does not answer: %s; temperature, power and the like are not known", lib,
			  n == -ETIMEDOUT ? "it hangs" : "it cannot be loaded or failed, see above");
		stop();
		me.rest_until = rgpu_deadline(me.rest_ms);
		me.rest_ms = 2 * me.rest_ms < REST_MAX ? 2 * me.rest_ms : REST_MAX;
		n = -EAGAIN;
	}
	pthread_mutex_unlock(&me.lock);
	return n;
}

void nvml_stop(void)
{
	pthread_mutex_lock(&me.lock);
	stop();
	/* A thread that asks on would leave the process that begins anew a child that it does not know of. */
	me.rest_until = INT64_MAX;
	pthread_mutex_unlock(&me.lock);
}
