// SPDX-License-Identifier: MIT
/* Blocks that the server keeps: their hints, and naming such a block instead of sending it. */
#include <stdlib.h>
#include <string.h>
#include "lib/digest.h"
#include "usermode-proxy/relay_int.h"

#define KNOWN_MAX (1u << 17) /* hints; a MiB of memory */
#define IN_VAIN	  5u	     /* after blocks that were gone, 4^5 MiB at most are sent without naming */

static uint32_t place(const struct known *k, uint64_t hint)
{
	uint32_t at = rgpu_hint_place(hint, k->key, k->size);

	while (k->hint[at] && k->hint[at] != hint)
		at = (at + 1) & (k->size - 1);
	return at;
}

static bool grow(struct known *k)
{
	struct known more = {.size = k->size ? 2 * k->size : 1024, .key = k->key ? k->key : rgpu_hint_key()};

	more.hint = more.size <= KNOWN_MAX ? calloc(more.size, sizeof(*more.hint)) : NULL;
	if (!more.hint)
		return false;
	for (uint32_t i = 0; i < k->size; i++)
		if (k->hint[i])
			more.hint[place(&more, k->hint[i])] = k->hint[i];
	more.n = k->n;
	free(k->hint);
	*k = more;
	return true;
}

static void add(struct known *k, uint64_t hint)
{
	uint32_t at;

	/* At most half full; what is not remembered is sent. 0 marks a free place. */
	if (!hint || (2 * k->n >= k->size && !grow(k)))
		return;
	at = place(k, hint);
	k->n += !k->hint[at];
	k->hint[at] = hint;
}

void relay_known_clear(struct rgpu_relay *r)
{
	free(r->known.hint);
	r->known = (struct known){0};
}

int relay_known_told(struct rgpu_relay *r, uint16_t flags, const uint8_t *buf, uint32_t len)
{
	uint64_t hint;

	if (!r->cached || len % sizeof(hint))
		return relay_fail(r, -EPROTO, "the server sent KNOWN of %u bytes", len);
	if (flags & RGPU_KNOWN_ALL)
		relay_known_clear(r);
	for (; len; len -= sizeof(hint), buf += sizeof(hint)) {
		memcpy(&hint, buf, sizeof(hint));
		add(&r->known, hint);
	}
	return 0;
}

bool relay_known_ref(struct rgpu_relay *r, const uint8_t *bytes, uint32_t len, struct rgpu_ref *out)
{
	if (!r->known.n || len < RGPU_BLOCK_MIN || r->count.sent_bytes < r->name_after)
		return false;
	*out = (struct rgpu_ref){.hint = rgpu_hint(bytes, len), .len = len};
	if (!out->hint || !r->known.hint[place(&r->known, out->hint)] || !rgpu_sha256(bytes, len, out->sha256))
		return false;
	r->count.named++;
	r->count.saved_bytes += len;
	return true;
}

int relay_needed(struct rgpu_relay *r, struct chan *c, const uint8_t *buf, uint32_t len)
{
	struct rgpu_need need;

	if (!r->cached || len != sizeof(need))
		return relay_fail(r, -EPROTO, "the server sent NEED of %u bytes", len);
	memcpy(&need, buf, sizeof(need));
	if (need.seq <= c->received || need.seq > c->seq || c->rewind)
		return relay_fail(r, -EPROTO, "the server needs record %llu of channel %u again, of %llu to %llu",
				  (unsigned long long)need.seq, c->id, (unsigned long long)c->received + 1,
				  (unsigned long long)c->seq);
	/* Others may be gone, too; it tells anew what it has. */
	relay_known_clear(r);
	/* A store that loses them as fast as they come in is of no use for a while: each loss costs more than a block. */
	if (r->in_vain)
		r->name_after = r->count.sent_bytes + (1ull << (20 + 2 * r->in_vain));
	if (r->in_vain < IN_VAIN)
		r->in_vain++;
	c->rewind = need.seq;
	r->count.needed++;
	__atomic_store_n(&c->m.p->needed, c->m.p->needed + 1, __ATOMIC_RELAXED);
	return 0;
}

bool relay_rewind(struct rgpu_relay *r, struct chan *c)
{
	struct rgpu_need need = {.seq = c->rewind};

	if (!relay_stage(r, RGPU_D_REWIND, c->id, &need, sizeof(need)))
		return false;
	for (unsigned i = c->pay.cur; i < c->pay.n; i++)
		relay_bo_put(r, c->pay.seg[i].bo);
	c->pay.n = c->pay.cur = 0;
	r->count.records -= c->seq - (need.seq - 1);
	c->seq = need.seq - 1;
	c->next = c->seq == c->received ? c->head : c->ends[c->seq & c->ends_mask];
	c->rewind = 0;
	return true;
}
