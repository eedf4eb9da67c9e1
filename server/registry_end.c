// SPDX-License-Identifier: MIT
/* How sessions end: the last word to a worker, its burial, and what is remembered of it. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/clock.h"
#include "lib/log.h"
#include "server/registry_int.h"

#define END_MS	  3000 /* for a worker to leave by itself; then it is killed */
#define WORDS_MAX 256  /* more than its socket holds */
#define SOON_MS	  100  /* for a question of somebody else's to be answered */

static void bury_text(struct ses *s, int status, char text[252])
{
	if (s->gone_said)
		snprintf(text, 252, "%s", s->gone.text);
	else if (s->child && WIFSIGNALED(status))
		snprintf(text, 252, "its worker process was killed by signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else if (s->child)
		snprintf(text, 252, "its worker process ended with status %d", WEXITSTATUS(status));
	else
		snprintf(text, 252, "its worker process died");
}

/*
 * The number is still the worker's while nobody has waited for it. Of one that we adopted, init has: then it is the group's that
 * it leaves behind, unless another process is called so by now.
 */
static void kill_group(const struct ses *s)
{
	pid_t worker = s->ident.worker;

	if (s->child || !pidfd_send_signal(s->pidfd, 0, NULL, 0) || (kill(worker, 0) && errno == ESRCH))
		kill(-worker, SIGKILL);
}

/* The worker hung up or has to go: nothing of it is left afterwards. Only the one who unlisted it comes here. */
void registry_bury(struct registry *r, struct ses *s)
{
	struct wmsg m;
	char text[252], sid[33];
	int status = 0;

	/* First: a child of its may be what keeps somebody waiting for its answer. */
	kill_group(s);
	pthread_mutex_lock(&s->lock);
	s->state = SES_OVER;
	/* As many as can lie there: one that was taken over may go on talking. */
	for (int i = 0; i < WORDS_MAX && !s->gone_said && !wmsg_recv(s->sock, &m, NULL, 0); i++) {
		if (m.type != W_GONE)
			continue;
		s->gone = m;
		s->gone_said = true;
	}
	/* Whoever asks after it need not wait for the driver to let go of its memory. */
	if (s->gone_said)
		registry_remember(r, s, s->gone.text);
	if (s->child)
		waitpid(s->ident.worker, &status, 0);
	unlink(s->path);
	bury_text(s, status, text);
	registry_remember(r, s, text);
	registry_hex(sid, s->sid);
	registry_drop_slot(r, s);
	rgpu_note("session end: sid %.8s %s %s from %s uid %u pid %u comm \"%s\" device %u, %lld s, %llu records (%llu fences), "
		  "%llu bytes up, %llu down: %s",
		  sid, registry_proof(s->ident.proof), s->ident.key_id, s->ident.from, s->ident.uid, s->ident.pid, s->ident.comm,
		  s->ident.device, (long long)(registry_seconds() - s->ident.started),
		  (unsigned long long)(s->gone_said ? s->gone.stats.records : 0),
		  (unsigned long long)(s->gone_said ? s->gone.stats.fences : 0),
		  (unsigned long long)(s->gone_said ? s->gone.stats.up : 0),
		  (unsigned long long)(s->gone_said ? s->gone.stats.down : 0), text);
	pthread_mutex_unlock(&s->lock);
	registry_put(s); /* the list's */
}

struct burial {
	struct registry *r;
	struct ses *s;
};

static void *burial_main(void *arg)
{
	struct burial b = *(struct burial *)arg;

	free(arg);
	registry_bury(b.r, b.s);
	return NULL;
}

/* Waiting for a process may take as long as its driver likes: not in the listener's loop. */
void registry_gone(struct registry *r, struct ses *s)
{
	struct burial *b;
	pthread_t t;

	if (!registry_unlist(r, s))
		return;
	b = malloc(sizeof(*b));
	if (b)
		*b = (struct burial){r, s};
	if (!b || pthread_create(&t, NULL, burial_main, b)) {
		free(b);
		registry_bury(r, s);
		return;
	}
	pthread_detach(t);
}

/* Until the worker is gone, or has hung up. */
static void await_end(const struct ses *s, int timeout_ms)
{
	struct pollfd p[2] = {{.fd = s->sock}, {.fd = s->pidfd, .events = POLLIN}};

	poll(p, 2, timeout_ms);
}

/* Tells a worker to end, and waits for that. The session's lock is held. */
static void end_worker(struct ses *s, int err, const char *text)
{
	struct wmsg *m = calloc(1, sizeof(*m));
	char why[RGPU_WHY_MAX];

	if (m) {
		m->type = W_END;
		m->err = err;
		snprintf(m->text, sizeof(m->text), "%s", text);
		if (!registry_ask(s, m, END_MS, why))
			await_end(s, END_MS);
	}
	free(m);
}

int registry_end(struct registry *r, const struct asker *a, const uint8_t sid[RGPU_SID_LEN], char why[RGPU_WHY_MAX])
{
	struct ses *s;
	int err = registry_owned(r, a, sid, &s, why);
	bool mine;

	if (err == -ESTALE)
		return 0; /* gone already: said twice, or it ended by itself */
	if (err)
		return err;
	/* Before the worker hangs up: else the listener's loop may bury it, and we would answer while it still does. */
	mine = registry_unlist(r, s);
	if (mine)
		end_worker(s, 0, "the client program ended");
	pthread_mutex_unlock(&s->lock);
	if (mine)
		registry_bury(r, s);
	registry_put(s);
	return 0;
}

unsigned registry_close(struct registry *r)
{
	unsigned n;

	pthread_mutex_lock(&r->lock);
	r->closing = true;
	n = r->n;
	pthread_mutex_unlock(&r->lock);
	return n;
}

void registry_revoke(struct registry *r, const char *(*refuses)(void *arg, const char *client, const struct rgpu_cert_id *cert),
		     void *arg)
{
	const char *why;

	for (;;) {
		struct ses *s;

		pthread_mutex_lock(&r->lock);
		for (s = r->list; s && !(why = refuses(arg, s->client, s->proof == PROOF_CERT ? &s->cert : NULL)); s = s->next)
			;
		if (s)
			s->refs++;
		pthread_mutex_unlock(&r->lock);
		if (!s)
			return;
		if (registry_unlist(r, s)) {
			pthread_mutex_lock(&s->lock);
			end_worker(s, EKEYREVOKED, why);
			pthread_mutex_unlock(&s->lock);
			registry_bury(r, s);
		}
		registry_put(s);
	}
}

/* Takes the session's lock: who has it, for the minute in which a worker may open a session or join a device, hears that the
 * worker is gone. false: not by @deadline. */
static bool interrupt(struct ses *s, int64_t deadline)
{
	while (rgpu_ms_left(deadline)) {
		if (registry_lock_within(s, SOON_MS))
			return true;
		if (s->sock >= 0)
			shutdown(s->sock, SHUT_RDWR);
	}
	return false;
}

void registry_end_all(struct registry *r, int err, const char *text)
{
	int64_t deadline = rgpu_deadline(END_MS);
	struct wmsg *m = calloc(1, sizeof(*m));
	struct ses *s, *all;

	pthread_mutex_lock(&r->lock);
	r->closing = true;
	all = r->list;
	r->list = NULL;
	r->n = 0;
	pthread_mutex_unlock(&r->lock);
	for (s = all; s && m; s = s->next) {
		m->type = W_END;
		m->err = err;
		snprintf(m->text, sizeof(m->text), "%s", text);
		if (!registry_lock_within(s, SOON_MS))
			continue;
		if (s->state == SES_LIVE)
			wmsg_send(s->sock, m, -1); /* its answer is read, and passed over, by bury() */
		pthread_mutex_unlock(&s->lock);
	}
	free(m);
	while ((s = all)) {
		bool live;

		all = s->next;
		/* Else whoever has the lock goes with this process, and its worker sees that. */
		if (!registry_lock_within(s, 0) && !interrupt(s, deadline))
			continue;
		live = s->state == SES_LIVE;
		pthread_mutex_unlock(&s->lock);
		if (!live) {
			registry_put(s);
			continue;
		}
		await_end(s, rgpu_ms_left(deadline));
		registry_bury(r, s);
	}
}
