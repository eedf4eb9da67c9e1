/* SPDX-License-Identifier: MIT */
/* The driver's devices: read once by a child process, so that the listener never loads a driver. */
#ifndef RGPU_SERVER_DEVICES_H
#define RGPU_SERVER_DEVICES_H

#include <stdint.h>
#include <rgpu_wire.h>
#include "lib/why.h"
#include "server/opts.h"

#define DEVICES_MAX 64

struct devices {
	uint32_t driver_version, n, len;
	char driver[64];
	uint64_t mem_total[DEVICES_MAX];
	uint8_t *list; /* a DEVICE_LIST's payload */
};

/* Blocks until the child has answered. 0 or -errno with the driver's words in @why. */
int devices_read(const struct server_opts *o, struct devices *d, char why[RGPU_WHY_MAX]);

#endif
