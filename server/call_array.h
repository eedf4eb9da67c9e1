/* SPDX-License-Identifier: MIT */
/* Mipmapped arrays as their handles' kind has them. */
#ifndef RGPU_SERVER_CALL_ARRAY_H
#define RGPU_SERVER_CALL_ARRAY_H

#include "server/session.h"
#include "lib/texel.h"

/* Its context is gone: the handles of its levels go, too. */
void mipmap_drop(struct srv_session *s, void *mipmap);

/* Before an array goes with its context. */
void array_drop(struct srv_session *s, void *real);

#endif
