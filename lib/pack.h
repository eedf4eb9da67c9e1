/* SPDX-License-Identifier: MIT */
/* Compression of single frames, and whether it pays: by what the link carries, what compressing takes, and what it saves. */
#ifndef RGPU_LIB_PACK_H
#define RGPU_LIB_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/why.h"

enum rgpu_pack_mode {
	RGPU_PACK_AUTO, /* when it pays */
	RGPU_PACK_OFF,
	RGPU_PACK_LZ4, /* always with this */
	RGPU_PACK_ZSTD,
};

/* "auto", "off", "lz4", "zstd". -EINVAL with what is wrong. */
int rgpu_pack_mode(const char *text, enum rgpu_pack_mode *out, char why[RGPU_WHY_MAX]);
const char *rgpu_pack_name(enum rgpu_pack_mode mode);

/* How frames may be compressed: RGPU_ATTACH_LZ4, RGPU_ATTACH_ZSTD. */
uint16_t rgpu_pack_flags(enum rgpu_pack_mode mode);

#define RGPU_PACK_MIN 4096u /* shorter frames go as they are */

struct rgpu_packer {
	enum rgpu_pack_mode mode;
	uint16_t flags; /* what both ends can; 0: nothing is compressed */
	void *lz4, *zstd, *unzstd;
	uint8_t *scratch; /* RGPU_PACK_ROOM bytes, for whoever needs a place for one frame */
	struct {
		double speed, ratio; /* bytes a nanosecond; of what is left */
	} seen[2];
	unsigned turn;	      /* frames compressed, to look at the other way now and then */
	unsigned skip, skips; /* frames to leave alone, as the last ones were no smaller; how many at the next such */
	/* The link: bytes a nanosecond while some waited in the socket; 0: none ever did for long. */
	int fd;
	double rate;
	int64_t looked_at;
	uint64_t gone;	  /* bytes sent less those that waited, then; 0: none did */
	uint64_t in, out; /* bytes that were compressed, and what became of them */
};

#define RGPU_PACK_ROOM (256u << 10)

void rgpu_packer_init(struct rgpu_packer *p, enum rgpu_pack_mode mode);
/* A new connection, over the socket @fd, whose ends agreed on @flags. 0, or -ENOMEM: then nothing is compressed. */
int rgpu_packer_begin(struct rgpu_packer *p, int fd, uint16_t flags);
void rgpu_packer_free(struct rgpu_packer *p);

/* Now and then while something may wait in the socket: @sent bytes were given to the link so far. */
void rgpu_packer_look(struct rgpu_packer *p, uint64_t sent);

/*
 * Bytes of @to, into which the frame's body was compressed, and with what (RGPU_ATTACH_…); 0: send it as it is. @room bytes are
 * there; more than 15/16 of @len are never used. @sent as above.
 */
uint32_t rgpu_pack(struct rgpu_packer *p, uint64_t sent, const void *from, uint32_t len, void *to, uint32_t room, uint16_t *how);

/* Exactly @len bytes must come of it. */
bool rgpu_unpack(struct rgpu_packer *p, uint16_t how, const void *from, uint32_t n, void *to, uint32_t len);

#endif
