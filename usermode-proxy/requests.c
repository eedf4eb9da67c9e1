// SPDX-License-Identifier: MIT
/* What the kernel relays to the proxy: programs' sessions that start, join, ask and end; and those that a predecessor left. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "lib/log.h"
#include "usermode-proxy/devices.h"
#include "usermode-proxy/requests.h"
#include "usermode-proxy/session.h"

/* Room for one answer of the server, of which a program gets what fits. */
#define STATS_ROOM RGPU_FRAME_MAX

/* A request on its way through its thread. */
struct job {
	struct requests *rq;
	struct kern_request req;
	char why[RGPU_WHY_MAX];
};

static bool read_cookie(const uint8_t *bytes, uint32_t len, struct session_cookie *out)
{
	memset(out, 0, sizeof(*out));
	memcpy(out, bytes, len < sizeof(*out) ? len : sizeof(*out));
	return len >= sizeof(*out) && out->magic == SESSION_COOKIE_MAGIC;
}

/* An error's line goes to the program as the answer's bytes. */
static int answer(struct job *j, int status, const void *data, uint32_t len)
{
	char why[RGPU_WHY_MAX];
	int err;

	if (status) {
		data = j->why;
		len = strlen(j->why);
		if (status < -511)
			status = -EPROTO;
	}
	if (len > j->req.data_room)
		len = j->req.data_room;
	err = kern_reply(j->rq->kern, j->req.id, status, data, len, why);
	/* ENOENT: the program did not wait for it; what it leaves comes as GONE. */
	if (err && err != -ENOENT)
		rgpu_err("%s", why);
	return err;
}

static void fill_start(struct rgpu_start *s, const struct requests *rq, const uint8_t sid[16], uint32_t uid, uint32_t pid,
		       const char *comm)
{
	memset(s, 0, sizeof(*s));
	memcpy(s->sid, sid, 16);
	s->epoch = rq->epoch;
	s->uid = uid;
	s->pid = pid;
	memcpy(s->comm, comm, sizeof(s->comm));
}

static int start_at_server(struct job *j, struct rgpu_start *start, struct rgpu_lease *lease)
{
	struct rgpu_ctl *c = pool_get(j->rq->pool);
	int err = rgpu_ctl_start(c, false, start, j->req.data, lease, j->why);

	pool_put(j->rq->pool, c);
	return err;
}

static int end_at_server(struct requests *rq, const uint8_t sid[16], char why[RGPU_WHY_MAX])
{
	struct rgpu_ctl *c = pool_get(rq->pool);
	int err = rgpu_ctl_end(c, sid, why);

	pool_put(rq->pool, c);
	return err;
}

/* START of a program: the server's worker, then our relay to it, so that the first record finds everything in place. */
static int start(struct job *j)
{
	struct session_cookie cookie = {.magic = SESSION_COOKIE_MAGIC};
	struct rgpu_lease lease;
	struct rgpu_start st;
	struct session *s;
	char ignored[RGPU_WHY_MAX];
	int err, index;

	fill_start(&st, j->rq, j->req.sid, j->req.uid, j->req.pid, j->req.comm);
	/* No greeting: an observer (rgpu-smi), for which nothing is started. */
	if (!j->req.data_len) {
		cookie.flags = SESSION_OBSERVER;
	} else {
		index = devices_index(j->req.device);
		if (index < 0)
			return rgpu_why(j->why, -ENODEV, "no GPU stands behind /dev/rgpu%u now: its server is away",
					j->req.device);
		st.device = cookie.device = index;
		st.data_len = j->req.data_len;
		err = start_at_server(j, &st, &lease);
		if (err)
			return err;
		cookie.grace_ms = lease.grace_ms;
	}
	err = kern_session_set(j->rq->kern, j->req.session, &cookie, sizeof(cookie), j->why);
	s = err ? NULL : session_new(j->rq->ctl_fd, j->req.session, &cookie, &st, &j->rq->server, j->rq->pool, &err, j->why);
	if (s && s->relay) {
		err = rgpu_relay_attach(s->relay, &lease, j->why);
		if (!err)
			err = rgpu_relay_run(s->relay, lease.grace_ms);
		if (err) {
			session_free(s, true);
			s = NULL;
		}
	}
	if (!s && !(cookie.flags & SESSION_OBSERVER))
		end_at_server(j->rq, st.sid, ignored);
	if (s)
		session_add(s);
	return err;
}

static int join(struct job *j)
{
	int index = devices_index(j->req.device), err;
	struct rgpu_ctl *c;

	if (index < 0)
		return rgpu_why(j->why, -ENODEV, "no GPU stands behind /dev/rgpu%u now: its server is away", j->req.device);
	c = pool_get(j->rq->pool);
	err = rgpu_ctl_join(c, j->req.sid, index, j->req.device_index, j->why);
	pool_put(j->rq->pool, c);
	return err;
}

/* Cuts the list of sessions to what has room. The bytes that are left. */
static uint32_t fit_stats(uint8_t *buf, uint32_t len, uint32_t room)
{
	struct rgpu_stats st;
	uint64_t devices;

	if (len <= room || len < sizeof(st))
		return len <= room ? len : 0;
	memcpy(&st, buf, sizeof(st));
	devices = sizeof(st) + (uint64_t)st.ndevices * sizeof(struct rgpu_stats_device);
	if (devices > room)
		return 0;
	if (st.nsessions > (room - devices) / sizeof(struct rgpu_stats_session))
		st.nsessions = (room - devices) / sizeof(struct rgpu_stats_session);
	memcpy(buf, &st, sizeof(st));
	return devices + st.nsessions * sizeof(struct rgpu_stats_session);
}

static ssize_t stats(struct job *j, struct rgpu_ctl *c, uint8_t *buf)
{
	ssize_t n = rgpu_ctl_stats(c, buf, STATS_ROOM, j->why);

	return n < 0 ? n : fit_stats(buf, n, j->req.data_room);
}

/* The module's names of the sessions: by them a reader finds out what the processes are called where it is. */
static void name_sessions(uint8_t *buf, size_t len)
{
	struct rgpu_telemetry_process p;

	for (size_t at = sizeof(struct rgpu_telemetry_list); len >= sizeof(p) && at <= len - sizeof(p); at += sizeof(p)) {
		memcpy(&p, buf + at, sizeof(p));
		p.session = session_id(p.sid);
		memcpy(buf + at, &p, sizeof(p));
	}
}

static ssize_t telemetry(struct job *j, struct rgpu_ctl *c, uint8_t *buf)
{
	struct rgpu_telemetry_ask ask;
	ssize_t n;

	if (j->req.data_len != sizeof(ask))
		return rgpu_why(j->why, -EINVAL, "a question of %u bytes", j->req.data_len);
	memcpy(&ask, j->req.data, sizeof(ask));
	if (ask.what == RGPU_TELEMETRY_UPLOADS) {
		struct rgpu_telemetry_uploads u;

		session_uploads(&u);
		memcpy(buf, &u, sizeof(u));
		return sizeof(u);
	}
	n = rgpu_ctl_telemetry(c, &ask, buf, j->req.data_room, j->why);
	if (n > 0 && ask.what == RGPU_TELEMETRY_PROCESSES)
		name_sessions(buf, n);
	return n;
}

static void control(struct job *j)
{
	uint8_t *buf = malloc(STATS_ROOM);
	struct rgpu_ctl *c;
	ssize_t n;

	if (j->req.op != RGPU_CONTROL_STATS && j->req.op != RGPU_CONTROL_TELEMETRY) {
		n = rgpu_why(j->why, -EOPNOTSUPP, "control request %u is not known to this version of rgpu-proxy", j->req.op);
	} else if (!buf) {
		n = rgpu_why(j->why, -ENOMEM, "no memory");
	} else {
		c = pool_get(j->rq->pool);
		n = j->req.op == RGPU_CONTROL_STATS ? stats(j, c, buf) : telemetry(j, c, buf);
		pool_put(j->rq->pool, c);
	}
	if (n < 0)
		answer(j, n, NULL, 0);
	else
		answer(j, 0, buf, n);
	free(buf);
}

static void drop_session(struct job *j)
{
	struct session *s = session_take(j->req.session);

	if (s)
		session_free(s, true);
}

/* The program is gone. A server that is not reached ends the session itself when its grace is over. */
static void gone(struct job *j)
{
	struct session_cookie cookie;
	bool known = read_cookie(j->req.cookie, j->req.cookie_len, &cookie);

	drop_session(j);
	if ((!known || !(cookie.flags & SESSION_OBSERVER)) && end_at_server(j->rq, j->req.sid, j->why))
		rgpu_info("ending a session at the server: %s", j->why);
	j->req.data_room = 0;
	answer(j, 0, NULL, 0);
}

static void *serve(void *arg)
{
	struct job *j = arg;
	int err;

	switch (j->req.type) {
	case RGPU_REQ_START:
		err = start(j);
		if (err)
			rgpu_warn("%s (pid %u) gets no session: %s", j->req.comm, j->req.pid, j->why);
		/* Its GONE may have been served before the session was in the table, and no other comes. */
		if (answer(j, err, NULL, 0) == -ENOENT)
			drop_session(j);
		break;
	case RGPU_REQ_JOIN:
		err = join(j);
		answer(j, err, NULL, 0);
		break;
	case RGPU_REQ_CONTROL:
		control(j);
		break;
	case RGPU_REQ_GONE:
		gone(j);
		break;
	default:
		answer(j,
		       rgpu_why(j->why, -EOPNOTSUPP,
				"the module relays a request of type %u, which this rgpu-proxy does not know: install the same "
				"release of both",
				j->req.type),
		       NULL, 0);
	}
	free(j);
	return NULL;
}

int requests_pull(struct requests *rq, char why[RGPU_WHY_MAX])
{
	pthread_attr_t detached;
	int err = 0;

	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	while (!err) {
		struct job *j = calloc(1, sizeof(*j));
		pthread_t t;

		err = j ? kern_pull(rq->kern, &j->req, why) : rgpu_why(why, -ENOMEM, "no memory");
		if (err) {
			free(j);
			break;
		}
		j->rq = rq;
		/* Without another thread the request waits for the others, and is served here. */
		if (pthread_create(&t, &detached, serve, j))
			serve(j);
	}
	pthread_attr_destroy(&detached);
	if (err == -EPERM)
		return rgpu_why(why, err, "the module no longer knows this rgpu-proxy: another has taken over");
	return err == -EAGAIN ? 0 : err;
}

static void recover_one(struct requests *rq, const struct kern_session *k)
{
	struct session_cookie cookie;
	char why[RGPU_WHY_MAX];
	struct rgpu_start st;
	struct session *s;
	int err;

	/* One that is starting is asked for again; one that failed waits for its program's end. */
	if (k->state != RGPU_SESSION_RECOVERING)
		return;
	if (!read_cookie(k->cookie, k->cookie_len, &cookie)) {
		rgpu_err("the session of %s (pid %u) has no note of a predecessor: it cannot go on", k->comm, k->pid);
		return;
	}
	fill_start(&st, rq, k->sid, k->uid, k->pid, k->comm);
	st.device = cookie.device;
	s = session_new(rq->ctl_fd, k->id, &cookie, &st, &rq->server, rq->pool, &err, why);
	if (s && s->relay) {
		/* The module has its own deadline besides. */
		err = rgpu_relay_run(s->relay, cookie.grace_ms);
		if (err) {
			rgpu_why(why, err, "no thread: %s", strerror(-err));
			session_free(s, false);
			s = NULL;
		}
	} else if (s) {
		session_set(s, 0);
	}
	if (s)
		session_add(s);
	else
		rgpu_err("the session of %s (pid %u) cannot go on: %s", k->comm, k->pid, why);
}

int requests_recover(struct requests *rq, char why[RGPU_WHY_MAX])
{
	struct kern_session *list = NULL;
	unsigned n = 0;
	int err;

	err = kern_sessions(rq->kern, &list, &n, why);
	for (unsigned i = 0; i < n && !err; i++)
		recover_one(rq, &list[i]);
	free(list);
	return err;
}
