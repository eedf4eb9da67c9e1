// SPDX-License-Identifier: MIT
/* The direct transport against the whole server with a stub behind it: devices, sessions, calls, copies, forks, and how it ends.
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/clock.h"
#include "lib/key.h"
#include "shim/transport.h"
#include "tests/server/stub.h"
#include "tests/tap.h"

static char dir[] = "/tmp/rgpu-direct-XXXXXX", key[64], other_key[64], address[64], server_path[512];
static pid_t server;

/* A channel's state as the shim keeps it. */
struct lane {
	struct rgpu_transport *t;
	struct rgpu_channel ch;
	uint32_t tail, head;
	uint64_t seq;
};

static _Atomic uint64_t counter; /* the session's stamps */

/* As the stub has them. */
uint8_t stub_pattern(uint32_t seed, uint64_t i)
{
	return seed * 31 + i * 7 + (i >> 8);
}

uint64_t stub_sum(const uint8_t *p, uint64_t n)
{
	uint64_t h = 1469598103934665603ull;

	for (uint64_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 1099511628211ull;
	return h;
}

static int wait_until(struct lane *l, bool (*cond)(struct lane *l, uint64_t v), uint64_t v)
{
	while (!cond(l, v)) {
		int err = 0;

		__atomic_store_n(&l->ch.a->cq_event, RGPU_EVENT_ASLEEP, __ATOMIC_SEQ_CST);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (!cond(l, v) && l->ch.k->state != RGPU_SESSION_FAILED)
			err = rgpu_transport_wait(l->t, l->ch.id, 20000);
		__atomic_store_n(&l->ch.a->cq_event, RGPU_EVENT_AWAKE, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&l->ch.k->state, __ATOMIC_ACQUIRE) == RGPU_SESSION_FAILED && !cond(l, v))
			return l->ch.k->reason;
		if (err && err != -EINTR)
			return err;
	}
	return 0;
}

static bool room(struct lane *l, uint64_t v)
{
	return l->ch.sq_size - (l->tail - __atomic_load_n(&l->ch.p->sq_head, __ATOMIC_ACQUIRE)) >= v;
}

static bool answered(struct lane *l, uint64_t v)
{
	(void)v;
	return __atomic_load_n(&l->ch.p->cq_tail, __ATOMIC_ACQUIRE) != l->head;
}

static bool acked(struct lane *l, uint64_t v)
{
	return __atomic_load_n(&l->ch.p->acked, __ATOMIC_ACQUIRE) >= v;
}

static int post(struct lane *l, uint16_t op, uint8_t flags, const struct rgpu_seg *seg, unsigned nseg, const void *body,
		uint32_t body_len)
{
	struct rgpu_rec rec = {.op = op, .flags = flags, .nseg = nseg, .seq = ++l->seq, .after = counter};
	uint32_t at = l->tail & (l->ch.sq_size - 1), to_end = l->ch.sq_size - at, pad = 0;
	int err;

	rec.len = (sizeof(rec) + nseg * sizeof(*seg) + body_len + 15) & ~15u;
	if (rec.len > to_end)
		pad = to_end;
	err = wait_until(l, room, rec.len + pad);
	if (err)
		return err;
	if (pad) {
		struct rgpu_rec end = {.len = pad, .flags = RGPU_REC_PAD};

		memcpy(l->ch.sq + at, &end, 16);
		l->tail += pad;
		at = 0;
	}
	if (!(flags & RGPU_REC_FENCE))
		rec.stamp = ++counter;
	memcpy(l->ch.sq + at, &rec, sizeof(rec));
	if (nseg)
		memcpy(l->ch.sq + at + sizeof(rec), seg, nseg * sizeof(*seg));
	if (body_len)
		memcpy(l->ch.sq + at + sizeof(rec) + nseg * sizeof(*seg), body, body_len);
	l->tail += rec.len;
	__atomic_store_n(&l->ch.a->sq_tail, l->tail, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&l->ch.p->sq_event, __ATOMIC_RELAXED) == RGPU_EVENT_ASLEEP)
		rgpu_transport_kick(l->t, l->ch.id);
	return 0;
}

static int reply(struct lane *l, struct rgpu_rep *rep, void *body, uint32_t body_room)
{
	for (;;) {
		uint32_t at = l->head & (l->ch.cq_size - 1);
		int err = wait_until(l, answered, 0);

		if (err)
			return err;
		memset(rep, 0, sizeof(*rep));
		memcpy(rep, l->ch.cq + at, 16);
		if (!(rep->flags & RGPU_REP_PAD)) {
			memcpy(rep, l->ch.cq + at, sizeof(*rep));
			memcpy(body, l->ch.cq + at + sizeof(*rep), rep->body_len < body_room ? rep->body_len : body_room);
		}
		l->head += rep->len;
		__atomic_store_n(&l->ch.a->cq_head, l->head, __ATOMIC_RELEASE);
		if (!(rep->flags & RGPU_REP_PAD))
			return 0;
	}
}

static int lane_open(struct lane *l, struct rgpu_transport *t)
{
	memset(l, 0, sizeof(*l));
	l->t = t;
	return rgpu_transport_channel(t, &l->ch);
}

/* The server on a free port, which it prints to its log. */
static void start_server(void)
{
	char log[64], line[512], *at;
	FILE *f;

	snprintf(log, sizeof(log), "%s/log", dir);
	unlink(log);
	server = fork();
	if (!server) {
		if (!freopen(log, "w", stderr))
			_exit(1);
		execl(server_path, server_path, "--driver", "stub", "--drain", "0", "--listen", "127.0.0.1:0", "--key", key,
		      "--grace", "5", NULL);
		_exit(127);
	}
	address[0] = 0;
	for (int i = 0; i < 1000 && !address[0]; i++) {
		usleep(10000);
		f = fopen(log, "r");
		while (f && fgets(line, sizeof(line), f)) {
			at = strstr(line, "127.0.0.1:");
			if (at && atoi(at + 10) > 0)
				snprintf(address, sizeof(address), "127.0.0.1:%d", atoi(at + 10));
		}
		if (f)
			fclose(f);
	}
	setenv("RGPU_SERVER", address, 1);
	setenv("RGPU_KEY", key, 1);
}

static void stop_server(int sig)
{
	kill(server, sig);
	waitpid(server, NULL, 0);
}

static int sockets(void)
{
	char path[300], to[64];
	struct dirent *e;
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (d && (e = readdir(d))) {
		ssize_t len;

		snprintf(path, sizeof(path), "/proc/self/fd/%s", e->d_name);
		len = readlink(path, to, sizeof(to) - 1);
		if (len > 0 && !strncmp(to, "socket:", 7))
			n++;
	}
	if (d)
		closedir(d);
	return n;
}

static void cannot_open(void)
{
	struct rgpu_transport *t;

	setenv("RGPU_SERVER", "127.0.0.1:1", 1);
	is_int(rgpu_transport_open(&t), -ECONNREFUSED, "nobody listens: %s", rgpu_transport_why(NULL));
	setenv("RGPU_SERVER", "127.0.0.1:x", 1);
	is_int(rgpu_transport_open(&t), -EINVAL, "bad address: %s", rgpu_transport_why(NULL));
	setenv("RGPU_SERVER", address, 1);
	unsetenv("RGPU_KEY");
	is_int(rgpu_transport_open(&t), -EINVAL, "no key: %s", rgpu_transport_why(NULL));
	setenv("RGPU_KEY", "/nonexistent", 1);
	is_int(rgpu_transport_open(&t), -EINVAL, "no such key file: %s", rgpu_transport_why(NULL));
	setenv("RGPU_KEY", other_key, 1);
	is_int(rgpu_transport_open(&t), -EACCES, "another key: %s", rgpu_transport_why(NULL));
	chmod(other_key, 0644);
	is_int(rgpu_transport_open(&t), -EACCES, "a key that all can read: %s", rgpu_transport_why(NULL));
	setenv("RGPU_KEY", key, 1);
	is_int(sockets(), 0, "and no socket is left");
}

static void calls(struct rgpu_transport *t)
{
	struct lane l;
	struct rgpu_rep rep;
	uint32_t arg = 77;
	int64_t began;
	char text[64];
	int n = 2000, bad = 0;

	is_int(lane_open(&l, t), 0, "a channel");
	post(&l, STUB_ECHO, RGPU_REC_FENCE, NULL, 0, "hello, my lane!", 16);
	is_int(reply(&l, &rep, text, sizeof(text)), 0, "a reply");
	is_int(rep.body_len, 16, "… of 16 bytes");
	is_str(text, "hello, my lane!", "… which are ours");
	post(&l, STUB_FAIL, RGPU_REC_FENCE, NULL, 0, &arg, 4);
	is_int(reply(&l, &rep, text, sizeof(text)), 0, "a call that fails");
	is_int(rep.status, 77, "… with its status");
	post(&l, STUB_FAIL, 0, NULL, 0, &arg, 4);
	post(&l, STUB_ECHO, RGPU_REC_FENCE, NULL, 0, "", 0);
	is_int(reply(&l, &rep, text, sizeof(text)), 0, "a quiet call that fails");
	is_int(rep.qstatus, 77, "… is told by the next reply");
	began = rgpu_now_ns();
	for (int i = 0; i < n; i++) {
		post(&l, STUB_ECHO, RGPU_REC_FENCE, NULL, 0, &i, 4);
		bad += reply(&l, &rep, &arg, 4) || (int)arg != i;
	}
	is_int(bad, 0, "%d calls one after the other (%.1f us each)", n, (rgpu_now_ns() - began) / 1e3 / n);
	began = rgpu_now_ns();
	n = 100000;
	for (int i = 0; i < n; i++)
		post(&l, STUB_COUNT, 0, NULL, 0, &i, 4);
	post(&l, STUB_COUNT, RGPU_REC_FENCE, NULL, 0, NULL, 0);
	is_int(reply(&l, &rep, &arg, 4), 0, "%d quiet calls and a fence (%.2f us each)", n, (rgpu_now_ns() - began) / 1e3 / n);
	is_int(arg, n + 1, "… were counted");
}

static void copies(struct rgpu_transport *t)
{
	uint32_t chunk = RGPU_CHUNK_MAX, seed = 9, bad = 0, n = 64;
	struct rgpu_bo up, down;
	struct rgpu_rep rep;
	uint64_t sum = 0;
	int64_t began;
	struct lane l;

	lane_open(&l, t);
	is_int(rgpu_transport_bo_create(t, 4 * chunk, &up), 0, "a buffer object");
	is_int(rgpu_transport_bo_create(t, 4 * chunk + 1, &down), 0, "another");
	is_int(down.bytes % sysconf(_SC_PAGESIZE), 0, "… of whole pages");
	for (uint64_t i = 0; i < up.bytes; i++)
		((uint8_t *)up.base)[i] = stub_pattern(1, i);
	for (unsigned i = 0; i < 4; i++) {
		struct rgpu_seg s = {up.handle, RGPU_SEG_SEND, i * chunk, chunk};

		post(&l, STUB_SUM, RGPU_REC_FENCE, &s, 1, NULL, 0);
		bad += reply(&l, &rep, &sum, 8) || sum != stub_sum((uint8_t *)up.base + i * chunk, chunk);
	}
	is_int(bad, 0, "uploads arrive");
	for (unsigned i = 0; i < 4; i++) {
		struct rgpu_seg s = {down.handle, RGPU_SEG_RECV, i * chunk, chunk};

		post(&l, STUB_FILL, RGPU_REC_FENCE, &s, 1, &seed, 4);
		bad += reply(&l, &rep, &sum, 8) || rep.bulk != chunk;
		for (uint64_t k = 0; k < chunk; k++)
			bad += ((uint8_t *)down.base)[i * chunk + k] != stub_pattern(seed, k);
	}
	is_int(bad, 0, "downloads arrive");
	began = rgpu_now_ns();
	for (unsigned i = 0; i < n; i++) {
		struct rgpu_seg s = {up.handle, RGPU_SEG_SEND, i % 4 * chunk, chunk};

		if (i >= 4)
			wait_until(&l, acked, l.seq - 3);
		post(&l, STUB_COUNT, 0, &s, 1, NULL, 0);
	}
	post(&l, STUB_COUNT, RGPU_REC_FENCE, NULL, 0, NULL, 0);
	is_int(reply(&l, &rep, &sum, 8), 0, "128 MiB up (%.2f GB/s)", n * (double)chunk / (rgpu_now_ns() - began));
	rgpu_transport_bo_destroy(t, &up);
	rgpu_transport_bo_destroy(t, &down);
}

static void *many_calls(void *arg)
{
	struct lane l;
	struct rgpu_rep rep;
	uintptr_t bad = 0;
	uint32_t got;

	if (lane_open(&l, arg))
		return (void *)1;
	for (uint32_t i = 0; i < 300; i++) {
		post(&l, STUB_ECHO, 0, NULL, 0, &i, 4);
		post(&l, STUB_ECHO, RGPU_REC_FENCE, NULL, 0, &i, 4);
		bad += reply(&l, &rep, &got, 4) || got != i;
	}
	return (void *)bad;
}

static void threads(struct rgpu_transport *t)
{
	pthread_t th[8];
	void *res;
	int bad = 0;

	for (int i = 0; i < 8; i++)
		pthread_create(&th[i], NULL, many_calls, t);
	for (int i = 0; i < 8; i++) {
		pthread_join(th[i], &res);
		bad += res != NULL;
	}
	is_int(bad, 0, "8 threads, 300 calls each");
}

static void forks(struct rgpu_transport *t)
{
	struct rgpu_channel ch;
	struct rgpu_bo bo;
	int status = 0;
	pid_t pid;

	rgpu_transport_bo_create(t, 4096, &bo);
	strcpy(bo.base, "parent");
	pid = fork();
	if (!pid) {
		int code = 0;

		code |= rgpu_transport_channel(t, &ch) != -ECHILD;
		code |= (rgpu_transport_kick(t, 0) != -ECHILD) << 1;
		code |= (rgpu_transport_wait(t, 0, 0) != -ECHILD) << 2;
		code |= (sockets() != 0) << 3;
		code |= !strstr(rgpu_transport_why(t), "fork") << 4;
		code |= strcmp(bo.base, "parent") ? 32 : 0;
		strcpy(bo.base, "child");
		rgpu_transport_close(t);
		_exit(code);
	}
	waitpid(pid, &status, 0);
	is_int(WEXITSTATUS(status), 0, "a forked child may not use the session, has no socket, and keeps the memory");
	is_str(bo.base, "child", "… which is shared");
	rgpu_transport_bo_destroy(t, &bo);
}

static void statistics(struct rgpu_transport *t)
{
	_Alignas(8) char buf[4096];
	struct rgpu_stats *s = (void *)buf;
	int n = rgpu_transport_control(t, RGPU_CONTROL_STATS, buf, 0, sizeof(buf));

	ok(n >= (int)sizeof(*s), "statistics: %d bytes", n);
	is_int(s->ndevices, 2, "… of two devices");
	is_int(s->nsessions, 2, "… one session on two devices");
	is_int(rgpu_transport_control(t, 99, buf, 0, sizeof(buf)), -EOPNOTSUPP, "an unknown request: %s", rgpu_transport_why(t));
}

/* A call that kills the worker. */
static void crash(struct rgpu_transport *t)
{
	struct lane l;
	struct rgpu_rep rep;
	uint32_t got = 0, arg = 4;

	lane_open(&l, t);
	post(&l, STUB_CRASH, 0, NULL, 0, NULL, 0);
	post(&l, STUB_ECHO, RGPU_REC_FENCE, NULL, 0, &arg, 4);
	ok(reply(&l, &rep, &got, 4) < 0, "the worker dies: the session ends");
	is_int(rgpu_transport_kpage(t)->state, RGPU_SESSION_FAILED, "… which the K page says");
	ok(rgpu_transport_kpage(t)->reason < 0, "… with the reason %d: %s", rgpu_transport_kpage(t)->reason,
	   rgpu_transport_why(t));
	ok(rgpu_transport_why(t)[0] != 0, "… and a line");
}

int main(void)
{
	unsigned both[] = {1, 0}, first[] = {0};
	struct rgpu_transport *t;
	char why[RGPU_WHY_MAX];
	struct rgpu_key k;
	ssize_t n;

	/* It lies beside us. */
	n = readlink("/proc/self/exe", server_path, sizeof(server_path) - 32);
	if (n < 0 || !mkdtemp(dir))
		return 1;
	server_path[n] = 0;
	strcpy(strrchr(server_path, '/'), "/server-stubd");
	snprintf(key, sizeof(key), "%s/key", dir);
	snprintf(other_key, sizeof(other_key), "%s/other", dir);
	rgpu_key_create(key, &k, why);
	rgpu_key_create(other_key, &k, why);
	start_server();
	if (!ok(address[0] != 0, "the server listens at %s", address))
		return tap_done();
	cannot_open();

	is_int(rgpu_transport_open(&t), 0, "opens");
	is_str(rgpu_transport_name(t), "direct", "the transport's name");
	is_int(rgpu_transport_ndevices(t), 2, "devices");
	is_str(rgpu_transport_device(t, 1)->name, "Stub GPU 1", "a device's name");
	is_int(rgpu_transport_device(t, 1)->props_len, 5, "… and properties");
	ok(rgpu_transport_device(t, 2) == NULL, "there is no third");
	is_int(rgpu_transport_start(t, first, 1, "refuse", 6) < 0, 1, "a session that the worker refuses: %s",
	       rgpu_transport_why(t));
	ok(strstr(rgpu_transport_why(t), "refuses") != NULL, "… says why");
	is_int(rgpu_transport_start(t, both, 2, "hi", 2), 0, "a session");
	is_int(rgpu_transport_start(t, both, 2, "hi", 2), -EALREADY, "only one");
	calls(t);
	copies(t);
	threads(t);
	forks(t);
	statistics(t);
	rgpu_transport_close(t);
	is_int(sockets(), 0, "closed: no socket is left");

	counter = 0;
	is_int(rgpu_transport_open(&t), 0, "again");
	is_int(rgpu_transport_start(t, first, 1, "hi", 2), 0, "a session");
	crash(t);
	rgpu_transport_close(t);
	stop_server(SIGTERM);
	unlink(key);
	unlink(other_key);
	snprintf(why, sizeof(why), "%s/log", dir);
	unlink(why);
	rmdir(dir);
	return tap_done();
}
