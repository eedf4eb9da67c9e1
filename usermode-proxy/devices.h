/* SPDX-License-Identifier: MIT */
/* The server's GPUs as /dev/rgpuN: describes them to the module, and takes them offline and online as the server goes and comes.
 */
#ifndef RGPU_PROXY_DEVICES_H
#define RGPU_PROXY_DEVICES_H

#include "usermode-proxy/kern.h"
#include "usermode-proxy/control.h"

/* Starts the thread that keeps a control connection of its own (@ctl) and the devices up to date. */
int devices_run(struct kern *kern, struct rgpu_ctl *ctl, const struct rgpu_addr *server, char why[RGPU_WHY_MAX]);

/* The server's index of the GPU behind /dev/rgpu@minor, −1 when there is none now. */
int devices_index(uint32_t minor);
/* The same, with its name: what the server said when it was last reached, so that asking costs nothing. */
int devices_named(uint32_t minor, char name[RGPU_NAME_LEN]);

#endif
