// SPDX-License-Identifier: MIT
/* The listener's view of the sessions: their workers, who may speak for them, and what became of those that are gone. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <openssl/crypto.h>
#include "lib/clock.h"
#include "lib/log.h"
#include "lib/text.h"
#include "server/registry_int.h"
#include "server/spawn.h"

#define TOKEN_MS 30000
#define OPEN_MS	 60000 /* a worker loads its driver */
#define JOIN_MS	 60000
#define BURIAL_S 20 /* a dead worker's cause is waited for */
#define NO_SLOT	 UINT_MAX

void registry_hex(char out[33], const uint8_t sid[RGPU_SID_LEN])
{
	for (int i = 0; i < RGPU_SID_LEN; i++)
		sprintf(out + 2 * i, "%02x", sid[i]);
}

int64_t registry_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return t.tv_sec;
}

static void wake(struct registry *r)
{
	uint64_t one = 1;

	(void)!write(r->wake_fd, &one, sizeof(one));
}

void registry_init(struct registry *r, const struct server_opts *o, const struct devices *d, const char *state_dir, int wake_fd)
{
	char path[STATE_DIR_MAX + 8];

	memset(r, 0, sizeof(*r));
	r->opts = o;
	r->devices = d;
	r->wake_fd = wake_fd;
	snprintf(r->state_dir, sizeof(r->state_dir), "%s", state_dir);
	/* Workers of an earlier server with more sessions may be about to come in, besides. */
	r->slots = 2 * o->max_sessions;
	r->most = o->max_sessions;
	snprintf(path, sizeof(path), "%s/memory", r->state_dir);
	r->quota = quota_open(path, r->slots);
	if (r->quota)
		r->slot_users = calloc(quota_slots(r->quota), sizeof(*r->slot_users));
	if (!r->slot_users)
		rgpu_err("cannot keep the account of memory in %s: %s; no session can start", path, strerror(errno));
	if (o->cache_mib)
		r->store = store_new((uint64_t)o->cache_mib << 20);
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->buried, NULL);
}

struct ses *registry_new(const struct registry *r, const uint8_t sid[RGPU_SID_LEN])
{
	struct ses *s = calloc(1, sizeof(*s));
	char name[33];

	if (!s)
		return NULL;
	s->refs = 2;
	s->sock = s->pidfd = -1;
	s->slot = NO_SLOT;
	memcpy(s->sid, sid, RGPU_SID_LEN);
	registry_hex(name, sid);
	snprintf(s->path, sizeof(s->path), "%s/%s.sock", r->state_dir, name);
	pthread_mutex_init(&s->lock, NULL);
	return s;
}

void registry_put(struct ses *s)
{
	if (--s->refs)
		return;
	pthread_mutex_destroy(&s->lock);
	if (s->sock >= 0)
		close(s->sock);
	if (s->pidfd >= 0)
		close(s->pidfd);
	OPENSSL_cleanse(s->psk, sizeof(s->psk));
	free(s);
}

/* registry.lock is held. */
static struct ses *lookup(struct registry *r, const uint8_t sid[RGPU_SID_LEN])
{
	for (struct ses *s = r->list; s; s = s->next)
		if (!memcmp(s->sid, sid, RGPU_SID_LEN))
			return s;
	return NULL;
}

static struct ses *find(struct registry *r, const uint8_t sid[RGPU_SID_LEN])
{
	struct ses *s;

	pthread_mutex_lock(&r->lock);
	s = lookup(r, sid);
	if (s)
		s->refs++;
	pthread_mutex_unlock(&r->lock);
	return s;
}

/* registry.lock is held. */
static void list(struct registry *r, struct ses *s)
{
	s->next = r->list;
	r->list = s;
	r->n++;
}

void registry_list(struct registry *r, struct ses *s)
{
	pthread_mutex_lock(&r->lock);
	list(r, s);
	pthread_mutex_unlock(&r->lock);
}

/* Takes it off the list: true for the one who did. registry.lock is held. */
static bool unlist(struct registry *r, struct ses *s)
{
	for (struct ses **at = &r->list; *at; at = &(*at)->next) {
		if (*at != s)
			continue;
		*at = s->next;
		r->n--;
		return true;
	}
	return false;
}

static struct tombstone *tombstone(struct registry *r, const uint8_t sid[RGPU_SID_LEN])
{
	for (unsigned i = 0; i < TOMBSTONES && i < r->ndead; i++) {
		struct tombstone *t = &r->dead[(r->ndead - 1 - i) % TOMBSTONES];

		if (!memcmp(t->sid, sid, RGPU_SID_LEN))
			return t;
	}
	return NULL;
}

void registry_remember(struct registry *r, const struct ses *s, const char *text)
{
	struct tombstone *t;

	pthread_mutex_lock(&r->lock);
	t = tombstone(r, s->sid);
	if (t) {
		snprintf(t->text, sizeof(t->text), "%s", text);
		t->dying = false;
	}
	pthread_cond_broadcast(&r->buried);
	pthread_mutex_unlock(&r->lock);
}

bool registry_unlist(struct registry *r, struct ses *s)
{
	struct tombstone *t;
	bool mine;

	pthread_mutex_lock(&r->lock);
	mine = unlist(r, s);
	if (mine) {
		t = &r->dead[r->ndead++ % TOMBSTONES];
		memcpy(t->sid, s->sid, RGPU_SID_LEN);
		strcpy(t->text, "its worker process died");
		t->dying = true;
	}
	s->token_until = 0;
	pthread_mutex_unlock(&r->lock);
	wake(r);
	return mine;
}

int registry_ask(struct ses *s, struct wmsg *m, int timeout_ms, char why[RGPU_WHY_MAX])
{
	int64_t deadline = rgpu_deadline(timeout_ms);
	uint32_t id = ++s->asked;
	int err;

	m->id = id;
	err = wmsg_send(s->sock, m, -1);
	while (!err) {
		err = wmsg_recv(s->sock, m, NULL, rgpu_ms_left(deadline));
		if (!err && m->type == W_RESULT && m->id == id)
			break;
		if (!err && m->type == W_GONE) {
			s->gone = *m;
			s->gone_said = true;
		}
		/* One that was taken over may say other things for ever. */
		if (!err && !rgpu_ms_left(deadline))
			err = -ETIMEDOUT;
	}
	s->hung_up |= err == -EPIPE;
	if (err == -EPIPE)
		return rgpu_why(why, -ESTALE, "the session is over: %s", s->gone_said ? s->gone.text : "its worker process died");
	if (err == -ETIMEDOUT)
		return rgpu_why(why, err, "the session's worker did not answer within %d s", timeout_ms / 1000);
	if (err)
		return rgpu_why(why, err, "the session's worker cannot be reached: %s", strerror(-err));
	if (m->err)
		rgpu_why(why, 0, "%s", m->text);
	return -m->err;
}

/* Who a session belongs to, and which process its worker is, we know better than a worker that was taken over. */
static void take_answer(struct ses *s, const struct wmsg_ident *i)
{
	s->ident.lease = i->lease;
	s->ident.flags |= i->flags & WMSG_HAS_LINK;
}

void registry_tell_link(struct registry *r, struct ses *s)
{
	struct wmsg *m = s->ident.flags & WMSG_HAS_LINK ? calloc(1, sizeof(*m)) : NULL;
	char client[STORE_NAME_MAX];
	int sv[2] = {-1, -1};

	if (!m)
		return;
	m->type = W_LINK;
	m->link.compress = r->opts->compress;
	if (r->store && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv))
		sv[0] = sv[1] = -1;
	wmsg_send(s->sock, m, sv[1]); /* lost: the other end closes, too */
	if (sv[0] >= 0) {
		close(sv[1]);
		/* A key's id and a certificate's name may be the same word. */
		snprintf(client, sizeof(client), "%s %s", registry_proof(s->ident.proof), s->ident.key_id);
		store_serve(r->store, client, s->ident.uid, sv[0]);
	}
	free(m);
}

/* A worker for a new session. The session's lock is held. */
static int spawn_worker(struct registry *r, const struct asker *a, struct ses *s, const struct rgpu_start *st, const void *data,
			char why[RGPU_WHY_MAX])
{
	struct wmsg *m = calloc(1, sizeof(*m));
	int sv[2], err;
	pid_t pid;

	if (!m || !r->slot_users) {
		free(m);
		return rgpu_why(why, -ENOMEM, "the server is out of memory, or cannot write to its state directory");
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv)) {
		free(m);
		return rgpu_why(why, -errno, "the server cannot make a socket: %s", strerror(errno));
	}
	m->type = W_OPEN;
	memcpy(m->ident.sid, st->sid, RGPU_SID_LEN);
	memcpy(m->ident.key_id, a->key_id, sizeof(m->ident.key_id));
	m->ident.proof = a->proof;
	m->ident.cert = a->cert;
	memcpy(m->ident.comm, st->comm, sizeof(st->comm));
	text_printable(m->ident.comm, sizeof(m->ident.comm));
	m->ident.uid = st->uid;
	m->ident.pid = st->pid;
	m->ident.device = st->device;
	m->ident.flags = st->flags;
	m->ident.epoch = st->epoch;
	m->ident.started = registry_seconds();
	m->ident.slot = s->slot;
	memcpy(m->ident.from, a->from, sizeof(m->ident.from));
	m->open.limits = client_limits_of(r->opts->client, r->opts->nclients, a->key_id);
	snprintf(m->open.quota, sizeof(m->open.quota), "%s/memory", r->state_dir);
	m->open.slots = r->slots;
	quota_clear(r->quota, s->slot, a->key_id);
	memcpy(m->open.driver, r->opts->driver, sizeof(m->open.driver));
	memcpy(m->open.blas, r->opts->blas, sizeof(m->open.blas));
	memcpy(m->open.user, r->opts->worker_user, sizeof(m->open.user));
	memcpy(m->open.socket, s->path, sizeof(m->open.socket));
	m->open.grace_ms = r->opts->grace_s * 1000;
	m->open.direct_grace_ms = r->opts->direct_grace_s * 1000;
	m->open.verbose = r->opts->verbose;
	m->open.data_len = st->data_len;
	memcpy(m->open.data, data, st->data_len);
	err = spawn_self("--worker", sv[1], NULL, &pid);
	close(sv[1]);
	if (err) {
		rgpu_why(why, err, "the server cannot start a worker process: %s", strerror(-err));
	} else {
		s->pidfd = pidfd_open(pid, 0);
		s->sock = sv[0];
		s->child = true;
		s->ident = m->ident;
		s->ident.worker = pid;
		err = registry_ask(s, m, OPEN_MS, why);
		if (!err) {
			take_answer(s, &m->ident);
			registry_tell_link(r, s);
		}
	}
	if (err) {
		if (s->child) {
			kill(-pid, SIGKILL);
			waitpid(pid, NULL, 0);
			unlink(s->path);
			s->child = false;
		} else {
			close(sv[0]);
		}
	}
	s->state = err ? SES_OVER : SES_LIVE;
	free(m);
	return err;
}

/* A token for the lease that the worker gave, and the key that both ends of this control connection know. */
static int admit(struct registry *r, const struct asker *a, struct ses *s, struct rgpu_started *out, char why[RGPU_WHY_MAX])
{
	uint8_t ctx[RGPU_SID_LEN + 4], psk[RGPU_KEY_LEN];
	uint32_t lease = s->ident.lease;
	int err = 0;

	memset(out, 0, sizeof(*out));
	memcpy(out->sid, s->sid, RGPU_SID_LEN);
	out->lease = lease;
	out->grace_ms = r->opts->grace_s * 1000;
	if (getrandom(out->token, sizeof(out->token), 0) != sizeof(out->token))
		return rgpu_why(why, -EIO, "the server has no random numbers");
	memcpy(ctx, s->sid, RGPU_SID_LEN);
	memcpy(ctx + RGPU_SID_LEN, &lease, 4); /* little-endian, as this machine */
	if (a->proof == PROOF_NONE)
		memset(psk, 0, sizeof(psk)); /* unused */
	else
		err = rgpu_link_export(a->link, RGPU_DATA_LABEL, ctx, sizeof(ctx), psk, sizeof(psk));
	if (err)
		return rgpu_why(why, err, "no key for the data connection");
	pthread_mutex_lock(&r->lock);
	memcpy(s->token, out->token, sizeof(s->token));
	s->token_until = rgpu_deadline(TOKEN_MS);
	s->token_lease = lease;
	memcpy(s->psk, psk, sizeof(psk));
	s->open = true;
	pthread_mutex_unlock(&r->lock);
	OPENSSL_cleanse(psk, sizeof(psk));
	wake(r);
	return 0;
}

/* The next lease of a session that is there. Its lock is held. */
static int take_up(struct ses *s, const struct asker *a, const struct rgpu_start *st, char why[RGPU_WHY_MAX])
{
	struct wmsg *m;
	int err;

	if (strcmp(s->ident.key_id, a->key_id) || s->ident.uid != st->uid)
		return rgpu_why(why, -EACCES, "the session belongs to another client or user");
	if (st->epoch < s->ident.epoch)
		return rgpu_why(why, -ESTALE, "a later proxy (epoch %u) has taken the session over", s->ident.epoch);
	m = calloc(1, sizeof(*m));
	if (!m)
		return rgpu_why(why, -ENOMEM, "the server is out of memory");
	m->type = W_LEASE;
	m->ident.epoch = st->epoch;
	m->ident.cert = a->cert; /* it may have been renewed */
	err = registry_ask(s, m, REGISTRY_ANSWER_MS, why);
	if (!err) {
		s->ident.epoch = st->epoch;
		s->ident.cert = a->cert;
		take_answer(s, &m->ident);
	}
	free(m);
	return err;
}

static int unknown_session(struct registry *r, const uint8_t sid[RGPU_SID_LEN], char why[RGPU_WHY_MAX])
{
	int err = rgpu_why(why, -ESTALE,
			   "the server has no such session; it was restarted, or gave the session up: run the program again");
	const struct tombstone *t;
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += BURIAL_S;
	pthread_mutex_lock(&r->lock);
	/* A client is faster than the burial of its worker. */
	while ((t = tombstone(r, sid)) && t->dying)
		if (pthread_cond_clockwait(&r->buried, &r->lock, CLOCK_MONOTONIC, &until))
			break;
	if (t)
		rgpu_why(why, err, "the session is over: %.220s", t->text);
	pthread_mutex_unlock(&r->lock);
	return err;
}

void registry_take_slot(struct registry *r, struct ses *s, unsigned slot)
{
	/* One that was taken over says that it has any. */
	if (!r->slot_users || slot >= quota_slots(r->quota))
		return;
	s->slot = slot;
	r->slot_users[slot]++;
}

void registry_drop_slot(struct registry *r, struct ses *s)
{
	pthread_mutex_lock(&r->lock);
	if (s->slot != NO_SLOT && !--r->slot_users[s->slot])
		quota_clear(r->quota, s->slot, NULL);
	s->slot = NO_SLOT;
	pthread_mutex_unlock(&r->lock);
}

/* The lowest slot that nobody has; NO_SLOT: there is none. registry.lock is held. */
static unsigned free_slot(const struct registry *r)
{
	for (unsigned slot = 0; r->slot_users && slot < r->slots; slot++)
		if (!r->slot_users[slot])
			return slot;
	return NO_SLOT;
}

/* registry.lock is held. */
static unsigned count_of(const struct registry *r, const char *client)
{
	unsigned n = 0;

	for (const struct ses *s = r->list; s; s = s->next)
		n += !strcmp(s->client, client);
	return n;
}

/* The session's entry, new or there already. */
static int enter(struct registry *r, const struct asker *a, const struct rgpu_start *st, struct ses **out, char why[RGPU_WHY_MAX])
{
	struct client_limits limits = client_limits_of(r->opts->client, r->opts->nclients, a->key_id);
	struct ses *fresh = registry_new(r, st->sid), *s;
	unsigned slot;
	int err = 0;

	if (!fresh)
		return rgpu_why(why, -ENOMEM, "the server is out of memory");
	pthread_mutex_lock(&r->lock);
	s = lookup(r, st->sid);
	if (s) {
		s->refs++;
	} else if (r->closing) {
		err = rgpu_why(why, -ESHUTDOWN, "the server is being stopped");
	} else if (r->n >= r->opts->max_sessions) {
		err = rgpu_why(why, -EUSERS,
			       "the server has %u sessions, its limit; wait, or start it with a larger --max-sessions", r->n);
	} else if (limits.sessions && count_of(r, a->key_id) >= limits.sessions) {
		err = rgpu_why(why, -EUSERS, "this client has %u sessions, its limit; wait until one of its programs has ended",
			       limits.sessions);
	} else if ((slot = free_slot(r)) == NO_SLOT && r->slot_users) {
		err = rgpu_why(why, -EUSERS, "the server is busy with the ends of %u sessions; try again", r->slots - r->n);
	} else {
		registry_take_slot(r, fresh, slot);
		snprintf(fresh->client, sizeof(fresh->client), "%s", a->key_id);
		fresh->proof = a->proof;
		fresh->cert = a->cert;
		list(r, fresh);
		s = fresh;
		fresh = NULL;
	}
	pthread_mutex_unlock(&r->lock);
	if (fresh) {
		fresh->refs = 1;
		registry_put(fresh);
	}
	*out = s;
	return err;
}

static int may_use(const struct registry *r, const struct asker *a, uint32_t device, char why[RGPU_WHY_MAX])
{
	struct client_limits limits = client_limits_of(r->opts->client, r->opts->nclients, a->key_id);

	if (device < 64 && !(limits.devices & 1ull << device))
		return rgpu_why(why, -EACCES, "this client (%s) may not use the server's device %u; ask whoever runs the server",
				a->key_id, device);
	return 0;
}

int registry_start(struct registry *r, const struct asker *a, const struct rgpu_start *st, const void *data, bool resume,
		   struct rgpu_started *out, char why[RGPU_WHY_MAX])
{
	struct ses *s = NULL;
	char sid[33];
	bool fresh, gone;
	int err = 0;

	if (resume) {
		s = find(r, st->sid);
		if (!s)
			return unknown_session(r, st->sid, why);
	} else {
		if (st->device >= r->devices->n)
			return rgpu_why(why, -ENODEV, "the server has %u devices, there is no number %u", r->devices->n,
					st->device);
		err = may_use(r, a, st->device, why);
		if (!err)
			err = enter(r, a, st, &s, why);
		if (err)
			return err;
	}
	pthread_mutex_lock(&s->lock);
	/* Under the lock: one that was being started is started now, or failed and off the list. */
	fresh = s->state == SES_NEW && !resume;
	if (fresh)
		err = spawn_worker(r, a, s, st, data, why);
	else if (s->state == SES_LIVE)
		err = take_up(s, a, st, why);
	else
		err = unknown_session(r, st->sid, why);
	if (!err)
		err = admit(r, a, s, out, why);
	registry_hex(sid, st->sid);
	if (!err && fresh)
		rgpu_note("session start: sid %.8s %s %s from %s uid %u pid %u comm \"%s\" device %u, worker %d", sid,
			  registry_proof(a->proof), a->key_id, a->from, st->uid, st->pid, s->ident.comm, st->device,
			  s->ident.worker);
	else if (err)
		rgpu_note("session %s refused: sid %.8s %s %s from %s uid %u pid %u: %s", resume ? "resume" : "start", sid,
			  registry_proof(a->proof), a->key_id, a->from, st->uid, st->pid, why);
	gone = err && !fresh && s->hung_up;
	pthread_mutex_unlock(&s->lock);
	if (gone) {
		/* Its client saw the worker's end before the listener's loop did: what was it? */
		registry_gone(r, s);
		unknown_session(r, st->sid, why);
	}
	if (err && fresh && registry_unlist(r, s)) {
		if (s->state == SES_LIVE) {
			registry_bury(r, s);
		} else {
			registry_remember(r, s, why);
			registry_drop_slot(r, s);
			registry_put(s);
		}
	}
	registry_put(s);
	return err;
}

/* The session, if the asker started it. */
int registry_owned(struct registry *r, const struct asker *a, const uint8_t sid[RGPU_SID_LEN], struct ses **out,
		   char why[RGPU_WHY_MAX])
{
	struct ses *s = find(r, sid);

	*out = NULL;
	if (!s)
		return unknown_session(r, sid, why);
	pthread_mutex_lock(&s->lock);
	if (strcmp(s->ident.key_id, a->key_id)) {
		pthread_mutex_unlock(&s->lock);
		registry_put(s);
		return rgpu_why(why, -EACCES, "the session belongs to another client");
	}
	*out = s;
	return 0;
}

int registry_join(struct registry *r, const struct asker *a, const struct rgpu_join *j, char why[RGPU_WHY_MAX])
{
	struct wmsg *m;
	struct ses *s;
	int err = registry_owned(r, a, j->sid, &s, why);

	if (err)
		return err;
	m = calloc(1, sizeof(*m));
	if (!m) {
		err = rgpu_why(why, -ENOMEM, "the server is out of memory");
	} else if (j->device >= r->devices->n) {
		err = rgpu_why(why, -ENODEV, "the server has %u devices, there is no number %u", r->devices->n, j->device);
	} else if (!(err = may_use(r, a, j->device, why))) {
		m->type = W_JOIN;
		m->join = *j;
		err = registry_ask(s, m, JOIN_MS, why);
	}
	free(m);
	pthread_mutex_unlock(&s->lock);
	registry_put(s);
	return err;
}

void registry_redeem(struct registry *r, const struct rgpu_preface *p, int fd)
{
	struct wmsg *m = calloc(1, sizeof(*m));
	struct ses *s, *hit = NULL;

	if (m) {
		pthread_mutex_lock(&r->lock);
		for (s = r->list; s; s = s->next)
			if (s->token_until > rgpu_now_ns() && !CRYPTO_memcmp(s->token, p->token, sizeof(s->token)) &&
			    s->token_lease == p->lease)
				hit = s;
		/* Without TLS it goes no other way than its control connection. */
		if (hit && hit->proof == PROOF_NONE && !rgpu_sock_is_loopback(fd))
			hit = NULL;
		if (hit) {
			hit->refs++;
			hit->token_until = 0;
			m->type = W_CONN;
			m->conn.lease = hit->token_lease;
			m->conn.plain = hit->proof == PROOF_NONE;
			memcpy(m->conn.psk, hit->psk, RGPU_KEY_LEN);
			OPENSSL_cleanse(hit->psk, RGPU_KEY_LEN);
		}
		pthread_mutex_unlock(&r->lock);
	}
	if (hit) {
		/* Without the session's lock, which a slow request may hold. */
		if (wmsg_send(hit->sock, m, fd))
			rgpu_info("a data connection came for a session whose worker is gone");
		OPENSSL_cleanse(m->conn.psk, RGPU_KEY_LEN);
		registry_put(hit);
	} else {
		rgpu_info("a data connection was dropped: its token is unknown or has run out, or it is plaintext and not from a "
			  "loopback address");
	}
	free(m);
	close(fd);
}

unsigned registry_watch(struct registry *r, struct pollfd *p, struct ses **out, unsigned room)
{
	unsigned n = 0;

	pthread_mutex_lock(&r->lock);
	for (struct ses *s = r->list; s && n < room; s = s->next) {
		if (!s->open)
			continue;
		s->refs++;
		if (p) {
			p[2 * n] = (struct pollfd){.fd = s->sock}; /* POLLHUP alone */
			p[2 * n + 1] = (struct pollfd){.fd = s->pidfd, .events = POLLIN};
		}
		out[n++] = s;
	}
	pthread_mutex_unlock(&r->lock);
	return n;
}
