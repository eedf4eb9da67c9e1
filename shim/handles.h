/* SPDX-License-Identifier: MIT */
/* Handles that the client mints: a tag, a kind, a generation and an index in one pointer-sized number. */
#ifndef RGPU_SHIM_HANDLES_H
#define RGPU_SHIM_HANDLES_H

#include "shim/call.h"

/*
 * 63 … 48 the tag, which makes the number no address of anything; 47 … 43 the kind; 42 … 24 the generation; 23 … 0 the
 * index. A slot's generation advances with each use, so a stale handle is told from a living one.
 */
#define HANDLE_TAG	     0x5247ull
#define HANDLE_KIND(h)	     ((unsigned)((h) >> 43 & 0x1f))
#define HANDLE_GEN(h)	     ((uint32_t)((h) >> 24 & 0x7ffff))
#define HANDLE_INDEX(h)	     ((uint32_t)((h)&0xffffff))
#define HANDLE_GEN_MASK	     0x7ffffu
#define HANDLE_INDEX_MAX     (1u << 20) /* objects of one kind */
#define HANDLE_MAKE(k, g, i) (HANDLE_TAG << 48 | (uint64_t)(k) << 43 | (uint64_t)(g) << 24 | (i))

/* NULL: out of memory, or HANDLE_INDEX_MAX objects are alive. The fields are zero. */
struct rgpu_obj *handle_new(enum rgpu_kind kind, struct rgpu_obj *context);
/* NULL: none of this kind, or stale. Needs no lock; never follows @handle. */
struct rgpu_obj *handle_find(enum rgpu_kind kind, uint64_t handle);
void handle_free(struct rgpu_obj *obj);
/* Every living object of a kind. */
void handle_each(enum rgpu_kind kind, void (*fn)(struct rgpu_obj *obj, void *arg), void *arg);

#endif
