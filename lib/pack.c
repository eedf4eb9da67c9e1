// SPDX-License-Identifier: MIT
/* Compression of single frames, and whether it pays. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <linux/sockios.h>
#include <linux/types.h>
#include <sys/ioctl.h>
#include <lz4.h>
#include <zstd.h>
#include <rgpu_wire.h>
#include "lib/clock.h"
#include "lib/pack.h"

#define LEVEL	       1		/* of zstd: the higher ones are for slower links than GPUs are lent over */
#define LOOK_NS	       (10 * 1000000ll) /* of a busy link at least are measured at once */
#define WAITS_MIN      (64 << 10)	/* bytes in the socket of a link that is busy */
#define GAIN	       0.9		/* it must come to less than this of the time without */
#define SKIP_MAX       32u
#define OTHER	       16u /* every so many frames are compressed the other way, to see */
#define NEW(old, seen) ((old) + ((seen) - (old)) / 4)

static const char *const names[] = {"auto", "off", "lz4", "zstd"};
static const uint16_t ways[] = {RGPU_ATTACH_LZ4, RGPU_ATTACH_ZSTD};

int rgpu_pack_mode(const char *text, enum rgpu_pack_mode *out, char why[RGPU_WHY_MAX])
{
	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(text, names[i])) {
			*out = i;
			return 0;
		}
	return rgpu_why(why, -EINVAL, "compress = %.40s: expected auto, off, lz4 or zstd", text);
}

const char *rgpu_pack_name(enum rgpu_pack_mode mode)
{
	return names[mode];
}

uint16_t rgpu_pack_flags(enum rgpu_pack_mode mode)
{
	switch (mode) {
	case RGPU_PACK_AUTO:
		return RGPU_ATTACH_LZ4 | RGPU_ATTACH_ZSTD;
	case RGPU_PACK_LZ4:
		return RGPU_ATTACH_LZ4;
	case RGPU_PACK_ZSTD:
		return RGPU_ATTACH_ZSTD;
	default:
		return 0;
	}
}

void rgpu_packer_init(struct rgpu_packer *p, enum rgpu_pack_mode mode)
{
	*p = (struct rgpu_packer){.mode = mode};
}

int rgpu_packer_begin(struct rgpu_packer *p, int fd, uint16_t flags)
{
	flags &= rgpu_pack_flags(p->mode);
	if (flags && !p->lz4) {
		p->lz4 = malloc(LZ4_sizeofState());
		p->zstd = ZSTD_createCCtx();
		p->unzstd = ZSTD_createDCtx();
		p->scratch = malloc(RGPU_PACK_ROOM);
		if (!p->lz4 || !p->zstd || !p->unzstd || !p->scratch)
			rgpu_packer_free(p);
	}
	p->flags = p->lz4 ? flags : 0;
	/* Guesses, until there is something to go by. */
	p->seen[0].speed = 0.5;
	p->seen[0].ratio = 0.6;
	p->seen[1].speed = 0.3;
	p->seen[1].ratio = 0.5;
	p->fd = fd;
	p->rate = 0;
	p->gone = 0;
	p->skip = p->skips = 0;
	return flags && !p->lz4 ? -ENOMEM : 0;
}

void rgpu_packer_free(struct rgpu_packer *p)
{
	free(p->lz4);
	ZSTD_freeCCtx(p->zstd);
	ZSTD_freeDCtx(p->unzstd);
	free(p->scratch);
	p->lz4 = p->zstd = p->unzstd = p->scratch = NULL;
	p->flags = 0;
}

/* What the link carries is seen while it has more than it can carry at once: by how much of that is gone after a while. */
void rgpu_packer_look(struct rgpu_packer *p, uint64_t sent)
{
	int64_t now, took;
	uint64_t gone;
	int waits = 0;

	if (!p->flags || p->mode != RGPU_PACK_AUTO)
		return;
	now = rgpu_now_ns();
	took = now - p->looked_at;
	if (took < LOOK_NS)
		return;
	if (ioctl(p->fd, SIOCOUTQ, &waits) || waits < WAITS_MIN) {
		p->gone = 0;
		p->looked_at = now;
		return;
	}
	gone = sent > (uint64_t)waits ? sent - waits : 1;
	if (p->gone && gone > p->gone) {
		double rate = (double)(gone - p->gone) / took;

		/* A burst into empty buffers looks like a fast link. */
		p->rate = !p->rate ? rate : rate < p->rate ? (p->rate + rate) / 2 : NEW(p->rate, rate);
	}
	p->gone = gone;
	p->looked_at = now;
}

/* Nanoseconds a byte, the link and the processor being at work at the same time. */
static double cost(const struct rgpu_packer *p, unsigned way)
{
	double work = 1 / p->seen[way].speed, wire = p->seen[way].ratio / p->rate;

	return work > wire ? work : wire;
}

/* Index into ways, or −1: it does not pay. */
static int choose(const struct rgpu_packer *p)
{
	int best;

	if (p->mode != RGPU_PACK_AUTO)
		return p->flags & RGPU_ATTACH_ZSTD ? 1 : 0;
	if (!p->rate)
		return -1;
	if (!(p->flags & RGPU_ATTACH_ZSTD))
		best = 0;
	else if (!(p->flags & RGPU_ATTACH_LZ4))
		best = 1;
	else
		best = cost(p, 1) < cost(p, 0);
	if (cost(p, best) >= GAIN / p->rate)
		return -1;
	if (p->turn % OTHER == OTHER - 1 && p->flags & ways[!best] && 1 / p->seen[!best].speed < GAIN / p->rate)
		best = !best;
	return best;
}

uint32_t rgpu_pack(struct rgpu_packer *p, uint64_t sent, const void *from, uint32_t len, void *to, uint32_t room, uint16_t *how)
{
	uint32_t most = len - len / 16;
	size_t n = 0;
	int64_t at;
	int way;

	if (!p->flags || len < RGPU_PACK_MIN)
		return 0;
	rgpu_packer_look(p, sent);
	if (p->skip) {
		p->skip--;
		return 0;
	}
	way = choose(p);
	if (way < 0) {
		/* What was seen of other bytes long ago is not held against these for ever. */
		if (p->rate && ++p->turn % (4 * SKIP_MAX) == 0)
			p->seen[0].ratio = NEW(p->seen[0].ratio, 0.6);
		return 0;
	}
	if (most > room)
		most = room;
	at = rgpu_now_ns();
	if (way) {
		n = ZSTD_compressCCtx(p->zstd, to, most, from, len, LEVEL);
		n = ZSTD_isError(n) ? 0 : n;
	} else {
		int m = LZ4_compress_fast_extState(p->lz4, from, to, len, most, 1);

		n = m > 0 ? m : 0;
	}
	at = rgpu_now_ns() - at;
	p->turn++;
	p->seen[way].speed = NEW(p->seen[way].speed, (double)len / (at > 0 ? at : 1));
	p->seen[way].ratio = NEW(p->seen[way].ratio, n ? (double)n / len : 1);
	if (!n) {
		p->skips = p->skips ? (2 * p->skips < SKIP_MAX ? 2 * p->skips : SKIP_MAX) : 1;
		p->skip = p->skips;
		return 0;
	}
	p->skips = 0;
	p->in += len;
	p->out += n;
	*how = ways[way];
	return n;
}

bool rgpu_unpack(struct rgpu_packer *p, uint16_t how, const void *from, uint32_t n, void *to, uint32_t len)
{
	if (!(how & p->flags))
		return false;
	if (how == RGPU_ATTACH_LZ4)
		return LZ4_decompress_safe(from, to, n, len) == (int)len;
	return how == RGPU_ATTACH_ZSTD && ZSTD_decompressDCtx(p->unzstd, to, len, from, n) == len;
}
