// SPDX-License-Identifier: MIT
/* Fuzz target: any bytes as a server's data connection: answers land in rings and buffer objects, or the session has a reason. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/log.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/link.h"
#include "usermode-proxy/relay_int.h"

#define CHANNELS 2
#define RING	 RGPU_RING_MIN
#define BO_BYTES 140000

static struct {
	struct rgpu_apage a;
	struct rgpu_ppage p;
	uint8_t *sq, *cq, *bo;
} app[CHANNELS];
static int mapped;

static int map_channel(void *arg, uint32_t ch, struct rgpu_relay_map *out)
{
	(void)arg;
	if (ch >= CHANNELS)
		return -ENOENT;
	*out = (struct rgpu_relay_map){&app[ch].a, &app[ch].p, app[ch].sq, app[ch].cq, RING, RING};
	return 0;
}

static void unmap_channel(void *arg, uint32_t ch, const struct rgpu_relay_map *m)
{
	(void)arg;
	(void)ch;
	(void)m;
}

static int map_bo(void *arg, uint32_t handle, uint8_t **base, uint64_t *bytes)
{
	(void)arg;
	if (!handle || handle > CHANNELS)
		return -ENOENT;
	mapped++;
	*base = app[handle - 1].bo;
	*bytes = BO_BYTES;
	return 0;
}

static void unmap_bo(void *arg, uint32_t handle, uint8_t *base, uint64_t bytes)
{
	(void)arg;
	(void)handle;
	(void)base;
	(void)bytes;
	mapped--;
}

static void kick(void *arg, uint32_t ch)
{
	(void)arg;
	(void)ch;
}

static int lease(void *arg, struct rgpu_lease *out, char why[RGPU_WHY_MAX])
{
	(void)arg;
	(void)out;
	strcpy(why, "no");
	return -ENOENT;
}

static void failed(void *arg, int reason, const char *why)
{
	(void)arg;
	if (reason >= 0 || !*why)
		abort();
}

static const struct rgpu_relay_ops ops = {
	.channel_map = map_channel,
	.channel_unmap = unmap_channel,
	.bo_map = map_bo,
	.bo_unmap = unmap_bo,
	.kick = kick,
	.lease = lease,
	.failed = failed,
};

/* Eight records a channel wait to be sent: one in three has bytes of a buffer object with it. */
static void fill(unsigned ch)
{
	uint32_t tail = 0;

	memset(app[ch].bo, 0, BO_BYTES);
	memset(&app[ch].a, 0, sizeof(app[ch].a));
	memset(&app[ch].p, 0, sizeof(app[ch].p));
	for (unsigned i = 1; i <= 8; i++) {
		struct rgpu_seg seg = {ch + 1, i % 3 ? RGPU_SEG_RECV : RGPU_SEG_SEND, i * 100, i == 6 ? 66000 : 3000};
		struct rgpu_rec rec = {.len = sizeof(rec) + 32, .op = 1, .flags = RGPU_REC_FENCE, .nseg = 1, .seq = i};

		memcpy(app[ch].sq + tail, &rec, sizeof(rec));
		memcpy(app[ch].sq + tail + sizeof(rec), &seg, sizeof(seg));
		tail += rec.len;
	}
	app[ch].a.sq_tail = tail;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct rgpu_addr nowhere = {.host = "127.0.0.1", .port = 1};
	struct rgpu_link *link;
	struct rgpu_relay *r;
	char why[RGPU_WHY_MAX];
	size_t step;

	/* The first byte: whether the answer to ATTACH is the input's, too, and in what pieces it comes. */
	if (!size)
		return 0;
	step = 1 + (data[0] >> 1) * 64;
	rgpu_log_init("fuzz", RGPU_LOG_ERR);
	for (unsigned i = 0; i < CHANNELS; i++) {
		if (!app[i].sq) {
			app[i].sq = calloc(1, RING);
			app[i].cq = calloc(1, RING);
			app[i].bo = calloc(1, BO_BYTES);
		}
		fill(i);
	}
	r = rgpu_relay_new(&ops, NULL, &nowhere, -1);
	if (!r)
		abort();
	for (unsigned i = 0; i < CHANNELS; i++)
		if (rgpu_relay_open(r, i))
			abort();
	pthread_mutex_lock(&r->lock);
	link = fuzz_link(data + 1, size - 1, step, false);
	if (data[0] & 1) {
		r->link = link;
		r->lost_at = 0;
		relay_tx_reset(r);
		relay_rx_reset(r);
		r->cached = data[0] & 2;
		rgpu_packer_begin(&r->pack, rgpu_link_fd(link), data[0] & 4 ? RGPU_ATTACH_LZ4 | RGPU_ATTACH_ZSTD : 0);
	} else {
		relay_attach(r, link, why);
	}
	/* The records are out before their answers come. */
	if (!r->failed && r->link && !r->lost_at)
		relay_tx(r);
	/* What the server says about blocks comes between records. */
	if (r->link)
		fuzz_link_pause(r->link, step < 64 ? 64 : 1);
	while (relay_pump(r) || (!r->failed && r->link && !r->lost_at && fuzz_link_left(r->link)))
		;
	/* The program reads what came, and what waited for room comes after it. */
	for (unsigned i = 0; i < CHANNELS; i++)
		app[i].a.cq_head = app[i].p.cq_tail;
	if (!r->failed)
		relay_rx_drain(r);
	if (r->failed && !r->why[0])
		abort();
	while (relay_unlock(r))
		;
	rgpu_relay_free(r, false);
	if (mapped)
		abort();
	return 0;
}
