/* SPDX-License-Identifier: MIT */
/* rgpu-server --pair. */
#ifndef RGPU_SERVER_PAIR_H
#define RGPU_SERVER_PAIR_H

#include "server/opts.h"

/* Makes the key if there is none and prints what to set up at the client. The process's exit status. */
int pair_run(const struct server_opts *o);

#endif
