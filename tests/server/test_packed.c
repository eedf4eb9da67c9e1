// SPDX-License-Identifier: MIT
/* Compressed frames at the worker: what they stand for is done; what lies about its length, or was not agreed on, ends the
 * session. */
#include <lz4.h>
#include <zstd.h>
#include "server/lane.h"
#include "tests/server/peer.h"
#include "tests/server/stub.h"
#include "tests/tap.h"

#define BYTES (200u << 10)

static struct rig r;
static uint8_t bytes[RGPU_PACKED_MAX * 4];

static void up(uint16_t flags)
{
	stub_reset();
	memset(&r.p, 0, sizeof(r.p));
	rig_up(&r, &worker_times_default, false);
	r.p.attach_flags = flags;
	rig_connect(&r);
	peer_attach(&r.p, NULL, 0);
}

/* A PACKED frame of @len bytes at @from that says it is of @said; a frame of @type inside. */
static void send_packed(uint16_t type, uint16_t how, const void *from, uint32_t len, uint32_t said)
{
	static uint8_t body[RGPU_FRAME_MAX];
	struct rgpu_packed p = {.len = said, .type = type, .how = how};
	size_t n;

	if (how == RGPU_ATTACH_LZ4)
		n = LZ4_compress_default(from, (char *)body + sizeof(p), len, sizeof(body) - sizeof(p));
	else
		n = ZSTD_compress(body + sizeof(p), sizeof(body) - sizeof(p), from, len, 1);
	memcpy(body, &p, sizeof(p));
	peer_send(&r.p, RGPU_D_PACKED, 1, body, sizeof(p) + n);
}

static void a_record(uint32_t send)
{
	peer_rec(&r.p, 1, .op = STUB_SUM, .fence = true, .send = send);
}

static bool summed(uint32_t n)
{
	struct peer_reply rep;
	uint64_t sum;

	if (!peer_reply(&r.p, &rep, NULL))
		return false;
	memcpy(&sum, rep.body, sizeof(sum));
	return sum == stub_sum(bytes, n);
}

static void good(uint16_t how, const char *name)
{
	struct rec_args a = {.channel = 1, .op = STUB_COUNT, .fence = true};
	struct peer_reply rep;

	up(how);
	a_record(BYTES);
	send_packed(RGPU_D_PAYLOAD, how, bytes, BYTES, BYTES);
	ok(summed(BYTES), "%s: a payload", name);
	a_record(BYTES);
	peer_send(&r.p, RGPU_D_PAYLOAD, 1, bytes, 1000);
	send_packed(RGPU_D_PAYLOAD, how, bytes + 1000, BYTES - 1000, BYTES - 1000);
	ok(summed(BYTES), "%s: a part of one", name);
	for (int i = 0; i < 100; i++)
		peer_gather(&r.p, a);
	send_packed(RGPU_D_RECORDS, how, r.p.out, r.p.out_len, r.p.out_len);
	r.p.out_len = 0;
	for (int i = 0; i < 100; i++)
		peer_reply(&r.p, &rep, NULL);
	is_int(stub_count, 100, "%s: a hundred records", name);
	rig_down(&r);
}

/* Payload that is 200 KiB says it is @said. */
static void liar(uint16_t flags, uint16_t type, uint16_t how, uint32_t len, uint32_t said, const char *what, const char *why)
{
	up(flags);
	a_record(RGPU_PACKED_MAX * 2);
	send_packed(type, how, bytes, len, said);
	ok(peer_until_end(&r.p) && strstr(r.p.bye.text, why), "%s: %s", what, r.p.bye.text);
	rig_down(&r);
}

int main(void)
{
	const uint16_t lz4 = RGPU_ATTACH_LZ4, zstd = RGPU_ATTACH_ZSTD;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = i % 251 / 16;
	good(lz4, "LZ4");
	good(zstd, "Zstandard");
	for (int i = 0; i < 2; i++) {
		uint16_t how = i ? zstd : lz4, both = lz4 | zstd;

		liar(both, RGPU_D_PAYLOAD, how, sizeof(bytes), RGPU_PACKED_MAX, "four times what it says", "bytes of a PACKED");
		liar(both, RGPU_D_PAYLOAD, how, sizeof(bytes), sizeof(bytes), "more than may be", "type or length of a PACKED");
		liar(both, RGPU_D_PAYLOAD, how, BYTES, BYTES + 1, "one less than it says", "bytes of a PACKED");
		liar(both, RGPU_D_PAYLOAD, how, BYTES, 0, "nothing", "type or length of a PACKED");
		liar(both, RGPU_D_ACK, how, BYTES, BYTES, "an acknowledgement", "type or length of a PACKED");
		liar(both, RGPU_D_PACKED, how, BYTES, BYTES, "one in another", "type or length of a PACKED");
		liar(both, RGPU_D_PAYLOAD, 0x10, BYTES, BYTES, "by another way", "bytes of a PACKED");
		liar(i ? lz4 : zstd, RGPU_D_PAYLOAD, how, BYTES, BYTES, "by a way that was not agreed on", "bytes of a PACKED");
		liar(0, RGPU_D_PAYLOAD, how, BYTES, BYTES, "not agreed on at all", "PACKED that was not agreed on");
	}
	liar(lz4, RGPU_D_RECORDS, lz4, 1024, 1024, "records inside a payload", "inside a payload");
	return tap_done();
}
