/* SPDX-License-Identifier: MIT */
/* ATTACH: a connection takes up where the last one was cut. */
#ifndef RGPU_SERVER_ATTACH_H
#define RGPU_SERVER_ATTACH_H

#include <stdbool.h>
#include <stdint.h>
#include <rgpu_wire.h>

struct worker;

/* The first frame came. false: the session is broken. input_lock is held. */
bool worker_attach(struct worker *w, const struct rgpu_attach_channel *ch, uint32_t len);

#endif
