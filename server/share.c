// SPDX-License-Identifier: MIT
/*
 * What a session offers to other sessions of its tenant. A name is half the address of a socket of the worker's that offers, half
 * a secret of the thing's. The socket is in the abstract namespace, so that nothing of it is left when the worker is killed; a
 * thread answers there from the first offer on.
 */
#include "server/clients.h"
#include "server/fdpass.h"
#include "server/share.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>
#include <openssl/crypto.h>
#include "lib/log.h"

#define VERSION	 1
#define HALF	 (SHARE_NAME / 2)
#define PATIENCE 5 /* seconds for the other side of a conversation */

struct offer {
	struct offer *next;
	uint64_t owner;
	uint8_t secret[HALF];
	struct share_item item;
	int fd;
	bool told; /* of another client that asked for it */
};

struct request {
	uint32_t version;
	char key_id[CLIENT_NAME_MAX];
	uint8_t secret[HALF];
};

struct reply {
	int32_t err; /* a positive errno */
	struct share_item item;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* all below */
static char key[CLIENT_NAME_MAX];
static struct offer *offers;
static uint8_t address[HALF];
static int listening = -1;

void share_init(const char *key_id)
{
	snprintf(key, sizeof(key), "%s", key_id);
}

static socklen_t address_of(struct sockaddr_un *a, const uint8_t half[HALF])
{
	int n = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "rgpu-share-");

	a->sun_family = AF_UNIX;
	a->sun_path[0] = 0;
	for (int i = 0; i < HALF; i++)
		n += sprintf(a->sun_path + 1 + n, "%02x", half[i]);
	return offsetof(struct sockaddr_un, sun_path) + 1 + n;
}

/* The other side does not keep us waiting, not even in connect(). */
static bool hurry(int sock)
{
	struct timeval t = {.tv_sec = PATIENCE};

	return !setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)) &&
	       !setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
}

/* The other side runs as the same user as we. */
static bool trust(int sock)
{
	struct ucred who;
	socklen_t len = sizeof(who);

	return !getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &who, &len) && who.uid == geteuid();
}

/* A worker that leaves before it answers offers nothing any more. */
static int receive_reply(int sock, struct reply *r, int *fd)
{
	int err = fdpass_recv(sock, r, sizeof(*r), fd);

	if (err)
		return err == -EPIPE || err == -EPROTO ? -ENOENT : err;
	return -r->err;
}

/* With the lock: it keeps the descriptor while it is sent. */
static struct offer *find(const uint8_t secret[HALF])
{
	struct offer *found = NULL;

	for (struct offer *o = offers; o; o = o->next)
		if (!CRYPTO_memcmp(o->secret, secret, HALF))
			found = o;
	return found;
}

static void serve(int sock)
{
	struct offer *o;
	struct request q;
	struct reply r = {.err = ENOENT};

	if (!trust(sock) || !hurry(sock) || recv(sock, &q, sizeof(q), 0) != sizeof(q) || q.version != VERSION)
		return;
	q.key_id[sizeof(q.key_id) - 1] = 0;
	pthread_mutex_lock(&lock);
	o = find(q.secret);
	if (o && strcmp(q.key_id, key)) {
		if (!o->told)
			rgpu_warn("a client with key %s has a name of memory or an event that a client with key %s shared: it is "
				  "refused",
				  q.key_id, key);
		o->told = true;
		r.err = EACCES;
		o = NULL;
	} else if (o) {
		r.err = 0;
		r.item = o->item;
	}
	fdpass_send(sock, &r, sizeof(r), o ? o->fd : -1, 0);
	pthread_mutex_unlock(&lock);
}

static void *answer(void *arg)
{
	int fd = (int)(intptr_t)arg;

	for (;;) {
		int sock = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

		if (sock >= 0) {
			serve(sock);
			close(sock);
		} else if (errno != EINTR && errno != ECONNABORTED) {
			usleep(100000); /* no descriptors or memory: later, perhaps */
		}
	}
	return NULL;
}

/* With the lock. */
static int start(void)
{
	struct sockaddr_un a;
	pthread_t t;
	int fd, err = 0;

	if (listening >= 0)
		return 0;
	if (getrandom(address, sizeof(address), 0) != sizeof(address))
		return -EAGAIN;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, address_of(&a, address)) || listen(fd, 64))
		err = errno;
	else
		err = pthread_create(&t, NULL, answer, (void *)(intptr_t)fd);
	if (err) {
		if (fd >= 0)
			close(fd);
		return -err;
	}
	pthread_detach(t);
	listening = fd;
	return 0;
}

/* With the lock. NULL: no memory, or no random numbers. */
static struct offer *offer_of(enum share_kind kind, uint64_t owner)
{
	struct offer *o = offers;

	while (o && !(o->owner == owner && o->item.kind == kind))
		o = o->next;
	if (o)
		return o;
	o = calloc(1, sizeof(*o));
	if (!o || getrandom(o->secret, HALF, 0) != HALF) {
		free(o);
		return NULL;
	}
	o->owner = owner;
	o->item.kind = kind;
	o->fd = -1;
	o->next = offers;
	offers = o;
	return o;
}

int share_offer(uint64_t owner, const struct share_item *item, int fd, uint8_t name[SHARE_NAME])
{
	int own = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0), err;
	struct offer *o;

	if (own < 0 && fd >= 0)
		return -errno;
	pthread_mutex_lock(&lock);
	err = start();
	o = err ? NULL : offer_of(item->kind, owner);
	if (o) {
		if (o->fd >= 0)
			close(o->fd);
		o->fd = own;
		o->item = *item;
		memcpy(name, address, HALF);
		memcpy(name + HALF, o->secret, HALF);
	} else if (own >= 0) {
		close(own);
	}
	pthread_mutex_unlock(&lock);
	return o ? 0 : err ? err : -ENOMEM;
}

void share_withdraw(enum share_kind kind, uint64_t owner)
{
	struct offer **at, *o = NULL;

	pthread_mutex_lock(&lock);
	for (at = &offers; *at && !((*at)->owner == owner && (*at)->item.kind == kind); at = &(*at)->next)
		;
	if (*at) {
		o = *at;
		*at = o->next;
		if (o->fd >= 0)
			close(o->fd);
	}
	pthread_mutex_unlock(&lock);
	free(o);
}

bool share_is_ours(const uint8_t name[SHARE_NAME])
{
	bool ours;

	pthread_mutex_lock(&lock);
	ours = listening >= 0 && !memcmp(name, address, HALF);
	pthread_mutex_unlock(&lock);
	return ours;
}

int share_find(const uint8_t name[SHARE_NAME], struct share_item *item, int *fd)
{
	struct request q = {.version = VERSION};
	struct sockaddr_un a;
	struct reply r;
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), err;

	*fd = -1;
	if (sock < 0)
		return -errno;
	memcpy(q.secret, name + HALF, HALF);
	memcpy(q.key_id, key, sizeof(key));
	if (!hurry(sock))
		err = -errno;
	else if (connect(sock, (struct sockaddr *)&a, address_of(&a, name)))
		err = errno == ECONNREFUSED ? -ENOENT : -errno;
	else if (!trust(sock))
		err = -ENOENT;
	else if (send(sock, &q, sizeof(q), MSG_NOSIGNAL) != sizeof(q))
		err = -errno;
	else
		err = receive_reply(sock, &r, fd);
	close(sock);
	if (!err)
		*item = r.item;
	return err;
}
