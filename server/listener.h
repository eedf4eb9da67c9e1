/* SPDX-License-Identifier: MIT */
/* The listener: accepts, tells control from data connections, and lets nobody in without a key. */
#ifndef RGPU_SERVER_LISTENER_H
#define RGPU_SERVER_LISTENER_H

#include "server/opts.h"

/* Serves until a signal. The process's exit status. */
int listener_run(struct server_opts *o);

#endif
