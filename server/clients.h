/* SPDX-License-Identifier: MIT */
/* What each client may use: "NAME devices=0,1 mem=MIB session-mem=MIB sessions=N priority=low", by the names of keys and
 * certificates. */
#ifndef RGPU_SERVER_CLIENTS_H
#define RGPU_SERVER_CLIENTS_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/why.h"

#define CLIENT_NAME_MAX 64 /* with its NUL: a key's id, or the name of a certificate */
#define CLIENTS_MAX	64

struct client_limits {
	char name[CLIENT_NAME_MAX]; /* "*": of those that have no line of their own */
	uint64_t mem, session_mem;  /* bytes on each device, of all its sessions and of one; 0: no limit */
	uint64_t devices;	    /* a bit for each that it may use */
	unsigned sessions;	    /* 0: no limit */
	bool low;		    /* others' work comes first */
};

/* One line. -EINVAL with what is wrong. */
int client_limits_parse(const char *text, struct client_limits *out, char why[RGPU_WHY_MAX]);

/* The line of @name, else that of "*", else one without limits. */
struct client_limits client_limits_of(const struct client_limits *list, unsigned n, const char *name);

/* The device's size as such a client sees it. */
uint64_t client_mem_total(const struct client_limits *l, uint64_t device_bytes);

/* Cuts the memory sizes in a DEVICE_LIST's payload of the server's own to what a client may use. */
void client_limits_devices(uint8_t *list, uint32_t len, const struct client_limits *l);

#endif
