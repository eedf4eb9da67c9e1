/* SPDX-License-Identifier: MIT */
/* What a launch and a graph's kernel node have in common. */
#ifndef RGPU_SERVER_CALL_LAUNCH_H
#define RGPU_SERVER_CALL_LAUNCH_H

#include "server/call.h"

#define LAUNCH_PARAMS_MAX 8192u /* of one kernel: 32 KiB of them */

/* Handles in attributes become the driver's. false: the status is set. */
bool launch_attrs(struct srv_call *c, CUlaunchAttribute *attr, unsigned n);

#endif
