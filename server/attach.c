// SPDX-License-Identifier: MIT
/* ATTACH: a connection takes up where the last one was cut. */
#include <errno.h>
#include <stdlib.h>
#include "lib/link.h"
#include "server/attach.h"
#include "server/lane.h"

/* Every named channel has its lane, every lane its name. */
static bool match_lanes(struct worker *w, const struct rgpu_attach_channel *ch, unsigned n)
{
	bool named[RGPU_CHANNELS_MAX] = {false};

	for (unsigned i = 0; i < n; i++) {
		uint32_t id = ch[i].channel;

		if (id >= RGPU_CHANNELS_MAX || named[id]) {
			worker_break(w, EPROTO, "ATTACH names channel %u, which cannot be; use a client of the server's version",
				     id);
			return false;
		}
		named[id] = true;
		if (!w->by_channel[id] && !lane_open(w, id)) {
			worker_break(w, ENOMEM, "the server cannot make another thread; run fewer sessions there");
			return false;
		}
	}
	for (unsigned i = w->nlanes; i-- > 0;)
		if (!named[w->lanes[i]->channel])
			lane_close(w->lanes[i]);
	return true;
}

bool worker_attach(struct worker *w, const struct rgpu_attach_channel *ch, uint32_t len)
{
	struct rgpu_attached_channel answer[RGPU_CHANNELS_MAX] = {0};
	struct output *o = &w->output;
	unsigned n = len / sizeof(*ch);
	uint32_t bad = UINT32_MAX;
	uint16_t flags;
	int err = 0;

	if (len % sizeof(*ch)) {
		worker_break(w, EPROTO, "ATTACH of %u bytes; use a client of the server's version", len);
		return false;
	}
	if (!match_lanes(w, ch, n))
		return false;
	flags = w->input.hdr.flags & rgpu_pack_flags(w->compress);
	w->unpack.mode = w->compress;
	if (rgpu_packer_begin(&w->unpack, -1, flags))
		flags = 0;
	w->input.cached = w->input.hdr.flags & RGPU_ATTACH_CACHE && w->cache.on;
	pthread_mutex_lock(&o->lock);
	for (unsigned i = 0; i < n; i++) {
		struct srv_lane *lane = w->by_channel[ch[i].channel];
		uint64_t backlog = lane->backlog;

		if (output_ack(lane, ch[i].published))
			bad = ch[i].channel;
		lane->rx = 0;
		lane->rx_told = 0;
		lane->granted_allow = backlog < lane->window ? lane->window - backlog : 0;
		lane->granted_received = lane->received;
		answer[i] = (struct rgpu_attached_channel){
			.channel = ch[i].channel,
			.credit = lane->granted_allow,
			.received = lane->received,
		};
	}
	if (bad == UINT32_MAX && o->link) {
		err = output_reset(w);
		o->attached = !err;
		o->tell_known = w->input.cached;
		o->pack.mode = w->compress;
		rgpu_packer_begin(&o->pack, rgpu_link_fd(o->link), flags); /* without memory it sends plainly */
		/* The control queue is empty: this is the connection's first frame. */
		if (!err)
			output_ctl_flags(o, RGPU_D_ATTACHED, flags | (w->input.cached ? RGPU_ATTACH_CACHE : 0), answer,
					 n * sizeof(*answer));
	}
	pthread_mutex_unlock(&o->lock);
	if (w->input.cached && !err) {
		unsigned have = 0;
		uint64_t *list = cache_list(&w->cache, &have);

		output_known(w, list, have, true);
		free(list);
	}
	if (bad != UINT32_MAX)
		worker_break(w, EPROTO, "channel %u: the client published a reply that it never got", bad);
	else if (err)
		worker_break(w, -err, "the server is out of memory");
	return bad == UINT32_MAX && !err;
}
