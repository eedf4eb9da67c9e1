/* SPDX-License-Identifier: MIT */
/* Walks a DEVICE_LIST's payload, which each of its readers must be able to distrust. */
#ifndef RGPU_LIB_DEVLIST_H
#define RGPU_LIB_DEVLIST_H

#include <stddef.h>
#include <linux/rgpu.h>
#include <rgpu_wire.h>

/*
 * The entry at @at, which moves behind it and its props. NULL: there is no whole one. At a list's end @at is @len, at damage it
 * is not. @list is aligned to 8 bytes.
 */
static inline const struct rgpu_device_entry *rgpu_devlist_next(const void *list, size_t len, size_t *at)
{
	const struct rgpu_device_entry *e = (const void *)((const char *)list + *at);
	size_t size;

	if (len - *at < sizeof(*e) || e->props_len > RGPU_PROPS_MAX)
		return NULL;
	size = (sizeof(*e) + e->props_len + 7) & ~(size_t)7;
	if (len - *at < size)
		return NULL;
	*at += size;
	return e;
}

#endif
