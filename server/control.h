/* SPDX-License-Identifier: MIT */
/* A control connection after its handshake: requests, one after the other, until the client leaves. */
#ifndef RGPU_SERVER_CONTROL_H
#define RGPU_SERVER_CONTROL_H

#include "lib/link.h"
#include "server/registry.h"

#define CONTROL_THREADS_MAX 1024
#define CONTROL_CLIENT_MAX  512 /* of one client: the others have room beside it */

struct control_server {
	struct registry *registry;
	uint8_t name[16];
	_Atomic unsigned threads;
	pthread_mutex_t lock; /* of the list */
	struct control *list;
};

/* Serves @link of @client (its key's id, its certificate's name), which is taken over, in a thread of its own. -EAGAIN: too many,
 * of all or of this client, or no thread; the link is closed. */
int control_begin(struct control_server *c, struct rgpu_link *link, const char *client, const char *from);

#endif
