/* SPDX-License-Identifier: MIT */
/* Device memory by client: an account of all workers of a server in one shared file, so that none needs to ask the listener. */
#ifndef RGPU_SERVER_QUOTA_H
#define RGPU_SERVER_QUOTA_H

#include <stdbool.h>
#include <stdint.h>
#include "server/clients.h"

#define QUOTA_DEVICES 64

struct quota;

/* The file @path, with room for @slots workers; made when it is not there. NULL: errno says why. Never closed. */
struct quota *quota_open(const char *path, unsigned slots);

/* The listener's: nothing is counted in this slot any more, and it is @client's from now on (NULL: nobody's). */
void quota_clear(struct quota *q, unsigned slot, const char *client);

/* How many there are. */
unsigned quota_slots(const struct quota *q);

/* The worker's: which slot and which limits are its own. Before anything is taken. */
void quota_use(struct quota *q, unsigned slot, const struct client_limits *l);

/*
 * Of the device with this number in DEVICE_LIST. take: false when the session or its client would have more than it may; nothing
 * is counted then. Without quota_use() there is no limit.
 */
bool quota_take(unsigned device, uint64_t bytes);
void quota_give(unsigned device, uint64_t bytes);
/* Cuts what the driver says to what this session may see and can still have. */
void quota_view(unsigned device, uint64_t *free_bytes, uint64_t *total);

#endif
