/* SPDX-License-Identifier: MIT */
/* What a session offers to other sessions of its tenant: memory and events, under names that cannot be guessed. */
#ifndef RGPU_SERVER_SHARE_H
#define RGPU_SERVER_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#define SHARE_NAME 32

enum share_kind {
	SHARE_MEMORY = 1, /* with a descriptor */
	SHARE_EVENT,
};

struct share_item {
	uint32_t kind;
	uint32_t device; /* in the server's list */
	uint64_t bytes;
	uint8_t data[64]; /* an event's handle, as the driver gave it */
};

/* Who a name may be shown to: sessions of this client key. Before the first offer. */
void share_init(const char *key_id);

/*
 * Offers it, as long as this process lives or until it is withdrawn. What @owner (a number of the session's own, among things of
 * that kind) offers again keeps its name. @fd is duplicated; −1: none. 0 or -errno.
 */
int share_offer(uint64_t owner, const struct share_item *item, int fd, uint8_t name[SHARE_NAME]);
void share_withdraw(enum share_kind kind, uint64_t owner); /* nothing happens when it offers nothing */

bool share_is_ours(const uint8_t name[SHARE_NAME]); /* this process offers it */
/*
 * Asks the process that offers it. *fd is the caller's, or −1. 0; -ENOENT: nobody offers that; -EACCES: it is of another client
 * key; other -errno.
 */
int share_find(const uint8_t name[SHARE_NAME], struct share_item *item, int *fd);

#endif
