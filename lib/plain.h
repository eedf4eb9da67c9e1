/* SPDX-License-Identifier: MIT */
/* What a link without TLS has in its place: records with a checksum, so that no byte is taken that changed on its way. */
#ifndef RGPU_LIB_PLAIN_H
#define RGPU_LIB_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * A record: how many bytes it has; the CRC-32C of the record's number (from 0, 64 bits) and of that, so that nobody waits for
 * bytes that a damaged length promises; that sum continued over the bytes; the bytes. All little-endian. One without bytes is the
 * last: a clean end.
 */
#define RGPU_PLAIN_HEAD 12
#define RGPU_PLAIN_MAX	16384

struct rgpu_plain;

struct rgpu_plain *rgpu_plain_new(void); /* NULL: no memory */
void rgpu_plain_free(struct rgpu_plain *p);

/* The next record, of at most RGPU_PLAIN_MAX bytes, into @out: its length. */
size_t rgpu_plain_seal(struct rgpu_plain *p, const void *buf, size_t len, uint8_t *out);

/* Where the peer's next bytes go, and that so many came. */
uint8_t *rgpu_plain_room(struct rgpu_plain *p, size_t *room);
void rgpu_plain_came(struct rgpu_plain *p, size_t n);

/* Checked bytes: how many, 0 no whole record is there, -ENODATA the clean end, -EBADMSG a record is damaged. */
ssize_t rgpu_plain_take(struct rgpu_plain *p, void *buf, size_t len);
bool rgpu_plain_ready(const struct rgpu_plain *p); /* that would not be 0 */

#endif
