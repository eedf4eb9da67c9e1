// SPDX-License-Identifier: MIT
/* A listener that starts finds the workers that an earlier one left behind. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/log.h"
#include "lib/text.h"
#include "server/registry_int.h"

/* "<32 hex digits>.sock" → sid. */
static bool sid_of(const char *name, uint8_t sid[RGPU_SID_LEN])
{
	if (strlen(name) != 37 || strcmp(name + 32, ".sock") || strspn(name, "0123456789abcdef") != 32)
		return false;
	for (int i = 0; i < RGPU_SID_LEN; i++)
		sscanf(name + 2 * i, "%2hhx", &sid[i]);
	return true;
}

static int call(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct timeval patience = {.tv_sec = REGISTRY_ANSWER_MS / 1000}; /* for one that takes no calls */
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	memcpy(a.sun_path, path, strlen(path) + 1);
	if (!connect(fd, (struct sockaddr *)&a, sizeof(a)))
		return fd;
	err = errno;
	close(fd);
	return -err;
}

/* The process behind the socket, whatever it says. */
static int worker_of(int sock)
{
	struct ucred who;
	socklen_t len = sizeof(who);

	return getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &who, &len) ? -1 : who.pid;
}

static void adopt(struct registry *r, const uint8_t sid[RGPU_SID_LEN])
{
	struct ses *s = registry_new(r, sid);
	struct wmsg *m = calloc(1, sizeof(*m));
	char why[RGPU_WHY_MAX];
	int err;

	if (!s || !m) {
		rgpu_err("out of memory while looking for workers");
		goto out;
	}
	s->sock = call(s->path);
	if (s->sock < 0) {
		rgpu_note("%s: no worker behind it any more (%s)", s->path, strerror(-s->sock));
		unlink(s->path);
		goto out;
	}
	m->type = W_IDENT;
	pthread_mutex_lock(&s->lock);
	err = registry_ask(s, m, REGISTRY_ANSWER_MS, why);
	pthread_mutex_unlock(&s->lock);
	if (!err && memcmp(m->ident.sid, sid, RGPU_SID_LEN))
		err = rgpu_why(why, -EPROTO, "another session answers there");
	/* It is killed by that number. */
	if (!err && m->ident.worker != worker_of(s->sock))
		err = rgpu_why(why, -EPROTO, "it says that it is another process");
	if (err) {
		rgpu_warn("%s: the worker behind it cannot be taken over: %s", s->path, why);
		goto out;
	}
	s->ident = m->ident;
	text_printable(s->ident.key_id, sizeof(s->ident.key_id));
	text_printable(s->ident.from, sizeof(s->ident.from));
	text_printable(s->ident.comm, sizeof(s->ident.comm));
	/* After a reload we are still its parent. */
	s->child = !waitid(P_PID, s->ident.worker, &(siginfo_t){0}, WEXITED | WNOHANG | WNOWAIT);
	s->pidfd = pidfd_open(s->ident.worker, 0);
	registry_take_slot(r, s, s->ident.slot);
	snprintf(s->client, sizeof(s->client), "%s", s->ident.key_id);
	s->proof = s->ident.proof;
	s->cert = s->ident.cert;
	s->state = SES_LIVE;
	s->open = true;
	registry_tell_link(r, s);
	registry_list(r, s);
	rgpu_note("session adopted: sid %.8s %s %s uid %u pid %u comm \"%s\" device %u, worker %d", strrchr(s->path, '/') + 1,
		  registry_proof(s->proof), s->ident.key_id, s->ident.uid, s->ident.pid, s->ident.comm, s->ident.device,
		  s->ident.worker);
	registry_put(s);
	free(m);
	return;
out:
	if (s) {
		registry_put(s);
		registry_put(s);
	}
	free(m);
}

/* What workers that nobody buried had taken. Only sessions that were adopted have anything yet. */
static void clear_account(struct registry *r)
{
	for (unsigned slot = 0; r->slot_users && slot < quota_slots(r->quota); slot++)
		if (!r->slot_users[slot])
			quota_clear(r->quota, slot, NULL);
}

void registry_adopt(struct registry *r)
{
	DIR *d = opendir(r->state_dir);
	uint8_t sid[RGPU_SID_LEN];
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (sid_of(e->d_name, sid))
			adopt(r, sid);
	if (d)
		closedir(d);
	clear_account(r);
	if (r->n > r->most)
		r->most = r->n;
}
