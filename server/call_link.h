/* SPDX-License-Identifier: MIT */
/* Link states in the worker. */
#ifndef RGPU_SERVER_CALL_LINK_H
#define RGPU_SERVER_CALL_LINK_H

struct srv_link;

void link_drop(struct srv_link *l); /* it is off the table */

#endif
