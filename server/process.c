// SPDX-License-Identifier: MIT
/* The worker as a process: its limits, its socket for the listener, its session, its end. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <openssl/crypto.h>
#include "lib/log.h"
#include "server/confine.h"
#include "server/process.h"
#include "server/quota.h"
#include "server/share.h"
#include "server/wmsg.h"
#include "server/worker.h"

#define LOW_NICE 10
#define CALLERS	 4 /* a listener, and one that takes over before the old one is quite gone */
#define DEVICES	 64

/* One per process; the control thread's, but for `callers` and `stats`, which the end reads too. */
static struct {
	struct worker w;
	struct wmsg_ident ident;
	char socket[108];
	int listen_fd;
	uint32_t device[DEVICES], ndevices;
	pthread_mutex_t lock; /* of callers */
	int callers[CALLERS];
} me = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int listen_on(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, CALLERS)) {
		int err = errno;

		if (fd >= 0)
			close(fd);
		return -err;
	}
	return fd;
}

static int answer(int sock, struct wmsg *m, int err, const char *text)
{
	m->type = W_RESULT;
	m->err = err;
	snprintf(m->text, sizeof(m->text), "%s", text);
	return wmsg_send(sock, m, -1);
}

/* A driver takes its time. If the listener is gone meanwhile, nobody knows of us, and the client asks the next one for a worker.
 */
static bool is_awaited(int fd)
{
	struct pollfd p = {.fd = fd};

	return poll(&p, 1, 0) >= 0 && !p.revents;
}

static int open_session(int fd, const struct wmsg *m, char why[RGPU_WHY_MAX])
{
	struct worker_times t = worker_times_default;
	struct rgpu_start start = {
		.epoch = m->ident.epoch,
		.uid = m->ident.uid,
		.pid = m->ident.pid,
		.device = m->ident.device,
		.data_len = m->open.data_len,
		.flags = m->ident.flags,
	};
	struct srv_session *s;
	struct quota *quota;
	int err;

	memcpy(start.sid, m->ident.sid, sizeof(start.sid));
	memcpy(start.comm, m->ident.comm, sizeof(start.comm));
	t.grace = m->open.grace_ms;
	t.direct_grace = m->open.direct_grace_ms;
	if (t.direct_grace > t.grace)
		t.direct_grace = t.grace;
	share_init(m->ident.key_id);
	quota = quota_open(m->open.quota, m->open.slots);
	if (!quota)
		return rgpu_why(why, -errno, "cannot open the account of memory %.100s: %s", m->open.quota, strerror(errno));
	quota_use(quota, m->ident.slot, &m->open.limits);
	if (m->open.limits.low) {
		/* CPU time, for softgpu; where MPS shares a genuine GPU, its clients' priority. */
		setpriority(PRIO_PROCESS, 0, LOW_NICE);
		setenv("CUDA_MPS_CLIENT_PRIORITY", "1", 1);
	}
	err = srv_driver_load(m->open.driver, *m->open.blas ? m->open.blas : NULL, why, RGPU_WHY_MAX);
	if (err)
		return err;
	if (!is_awaited(fd))
		return rgpu_why(why, -EPIPE, "the listener is gone");
	me.listen_fd = listen_on(m->open.socket);
	if (me.listen_fd < 0)
		return rgpu_why(why, me.listen_fd, "cannot listen on %s: %s", m->open.socket, strerror(-me.listen_fd));
	/* What the client said comes next. */
	err = confine_worker(m->open.user, why);
	if (!err)
		err = srv_session_open(&s, &start, m->open.data, m->open.data_len, why, RGPU_WHY_MAX);
	if (err)
		return err;
	err = worker_init(&me.w, s, m->ident.flags & RGPU_START_DIRECT, &t);
	if (err)
		return rgpu_why(why, err, "cannot start the session's threads: %s", strerror(-err));
	me.ident = m->ident;
	me.ident.worker = getpid();
	me.ident.lease = 1;
	me.ident.flags |= WMSG_HAS_LINK;
	me.device[me.ndevices++] = m->ident.device;
	snprintf(me.socket, sizeof(me.socket), "%s", m->open.socket);
	worker_retire(&me.w, me.ident.lease);
	return 0;
}

static int join(const struct rgpu_join *j, char why[RGPU_WHY_MAX])
{
	int err;

	if (j->index < me.ndevices && me.device[j->index] == j->device)
		return 0; /* said again */
	if (j->index != me.ndevices || j->index == DEVICES)
		return rgpu_why(why, -EINVAL, "device %u cannot be the session's number %u", j->device, j->index);
	err = srv_session_join(me.w.session, j->device);
	if (err)
		return rgpu_why(why, err, "device %u cannot join the session: %s", j->device, strerror(-err));
	me.device[me.ndevices++] = j->device;
	return 0;
}

static void stats(struct wmsg *m)
{
	memset(&m->stats, 0, sizeof(m->stats));
	m->stats.records = me.w.records;
	m->stats.fences = me.w.fences;
	m->stats.up = me.w.output.received;
	m->stats.down = me.w.output.sent;
	m->stats.ndevices = me.ndevices;
	for (unsigned i = 0; i < me.ndevices; i++) {
		m->stats.device[i] = me.device[i];
		m->stats.mem[i] = srv_session_mem(me.w.session, i);
	}
}

/* A listener's request. false: hang up on it. */
static bool serve(int sock)
{
	char why[RGPU_WHY_MAX] = "";
	static struct wmsg m; /* large; one thread */
	int fd, err = wmsg_recv(sock, &m, &fd, 0);

	if (err == -ETIMEDOUT)
		return true;
	if (err)
		return false;
	if (fd >= 0 && m.type != W_CONN && m.type != W_LINK)
		close(fd);
	switch (m.type) {
	case W_IDENT:
		m.ident = me.ident;
		answer(sock, &m, 0, "");
		return true;
	case W_LEASE:
		me.ident.epoch = m.ident.epoch;
		me.ident.cert = m.ident.cert;
		worker_retire(&me.w, ++me.ident.lease);
		m.ident = me.ident;
		answer(sock, &m, 0, "");
		return true;
	case W_CONN:
		if (fd >= 0)
			worker_connect(&me.w, fd, m.conn.lease, m.conn.plain ? NULL : m.conn.psk);
		OPENSSL_cleanse(m.conn.psk, sizeof(m.conn.psk));
		return true;
	case W_LINK:
		worker_compress(&me.w, m.link.compress);
		if (fd >= 0)
			cache_use(&me.w, fd);
		return true;
	case W_JOIN:
		err = join(&m.join, why);
		answer(sock, &m, -err, why);
		return true;
	case W_STATS:
		stats(&m);
		answer(sock, &m, 0, "");
		return true;
	case W_END:
		worker_break(&me.w, m.err, "%s", m.text);
		answer(sock, &m, 0, "");
		return true;
	}
	return false;
}

static void greet_caller(void)
{
	int fd = accept4(me.listen_fd, NULL, NULL, SOCK_CLOEXEC);
	struct ucred who;
	socklen_t len = sizeof(who);
	bool ours = fd >= 0 && !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) && (who.uid == geteuid() || !who.uid);

	pthread_mutex_lock(&me.lock);
	for (int i = 0; ours && i < CALLERS; i++) {
		if (me.callers[i] < 0) {
			me.callers[i] = fd;
			fd = -1;
			break;
		}
	}
	pthread_mutex_unlock(&me.lock);
	if (fd >= 0)
		close(fd);
}

static void *control_main(void *arg)
{
	(void)arg;
	for (;;) {
		struct pollfd p[CALLERS + 1] = {{.fd = me.listen_fd, .events = POLLIN}};

		for (int i = 0; i < CALLERS; i++)
			p[i + 1] = (struct pollfd){.fd = me.callers[i], .events = POLLIN};
		if (poll(p, CALLERS + 1, -1) < 0)
			continue;
		if (p[0].revents)
			greet_caller();
		for (int i = 0; i < CALLERS; i++) {
			if (!p[i + 1].revents || serve(p[i + 1].fd))
				continue;
			pthread_mutex_lock(&me.lock);
			close(me.callers[i]);
			me.callers[i] = -1;
			pthread_mutex_unlock(&me.lock);
		}
	}
	return NULL;
}

/* The last word to the listener, then nothing is left of us: what the driver holds is freed by the process's end. */
static _Noreturn void leave(void)
{
	static struct wmsg m;

	cache_drain(&me.w.cache);
	m.type = W_GONE;
	m.err = me.w.end_err;
	snprintf(m.text, sizeof(m.text), "%s", me.w.end_text);
	m.ident = me.ident;
	m.stats.records = me.w.records;
	m.stats.fences = me.w.fences;
	m.stats.up = me.w.output.received;
	m.stats.down = me.w.output.sent;
	unlink(me.socket);
	pthread_mutex_lock(&me.lock);
	for (int i = 0; i < CALLERS; i++)
		if (me.callers[i] >= 0)
			wmsg_send(me.callers[i], &m, -1);
	kill(0, SIGKILL); /* our group: also what libraries may have started */
	_exit(1);
}

_Noreturn void worker_process(int fd)
{
	char why[RGPU_WHY_MAX] = "";
	static struct wmsg m;
	pthread_t control;
	int err;

	confine_early();
	for (int i = 0; i < CALLERS; i++)
		me.callers[i] = -1;
	err = wmsg_recv(fd, &m, NULL, 10000);
	if (err || m.type != W_OPEN) {
		fprintf(stderr, "rgpu-server: --worker is for the server's own use\n");
		_exit(2);
	}
	rgpu_log_init("rgpu-worker", m.open.verbose ? RGPU_LOG_INFO : RGPU_LOG_NOTE);
	err = open_session(fd, &m, why);
	m.ident = me.ident;
	if (answer(fd, &m, -err, why) && !err) {
		unlink(me.socket);
		err = -EPIPE;
	}
	if (err)
		_exit(1);
	me.callers[0] = fd;
	if (pthread_create(&control, NULL, control_main, NULL))
		worker_break(&me.w, EAGAIN, "the server cannot make another thread; run fewer sessions there");
	worker_io(&me.w);
	leave();
}
