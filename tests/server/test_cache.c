// SPDX-License-Identifier: MIT
/* Uploads that come again: what the store keeps and for whom, and a client that names blocks instead of sending them. */
#include <sys/socket.h>
#include <unistd.h>
#include "server/cache_msg.h"
#include "server/lane.h"
#include "server/store.h"
#include "tests/server/peer.h"
#include "tests/server/stub.h"
#include "tests/tap.h"

#define KIB   1024u
#define BLOCK (256 * KIB)
#define TAIL  (100 * KIB)
#define BYTES (BLOCK + TAIL)

static struct rig r;
static struct store *store;
static uint8_t bytes[BYTES];
static uint64_t known[4096];
static unsigned nknown;
static uint64_t needed; /* seq of the last NEED */

static void fill(uint8_t *to, size_t n, unsigned seed)
{
	uint64_t z = seed * 0x9e3779b97f4a7c15ull + 1;

	for (size_t i = 0; i < n; i++) {
		z ^= z << 13;
		z ^= z >> 7;
		z ^= z << 17;
		to[i] = z;
	}
}

static bool keep(struct store_tenant *t, unsigned seed, bool at_once)
{
	static uint8_t block[BLOCK];
	uint64_t hint;

	fill(block, BLOCK, seed);
	return store_put(t, block, BLOCK, at_once, &hint);
}

static bool kept(struct store_tenant *t, unsigned seed)
{
	static uint8_t block[BLOCK];
	uint8_t sha[RGPU_SHA256_LEN];
	struct store_block *b;
	bool same;

	fill(block, BLOCK, seed);
	rgpu_sha256(block, BLOCK, sha);
	b = store_get(t, rgpu_hint(block, BLOCK), sha, BLOCK);
	same = b && !memcmp(b->bytes, block, BLOCK);
	if (b)
		store_release(store, b);
	return same;
}

static void the_store(void)
{
	/* Four blocks and what belongs to them. */
	uint64_t limit = 4 * (BLOCK + 1024);
	struct store_tenant *a, *b, *user;
	struct store_stats s;
	uint64_t hints[8];
	unsigned n = 0;

	store = store_new(limit);
	a = store_tenant(store, "a", 1000);
	b = store_tenant(store, "b", 1000);
	user = store_tenant(store, "a", 1001);
	ok(a == store_tenant(store, "a", 1000) && a != b && a != user, "a tenant is a client's name and a user");
	for (unsigned i = 1; i <= 4; i++)
		n += keep(a, i, false);
	is_int(n, 4, "while there is room, all is kept");
	ok(kept(a, 1) && kept(a, 4), "… and found again, byte by byte");
	ok(!kept(b, 1) && !kept(user, 1), "… but by no other client, and by no other user");
	ok(!keep(a, 5, false) && kept(a, 2), "without room, what comes for the first time is not kept");
	ok(keep(a, 5, false) && kept(a, 5), "… for the second time it is");
	ok(!kept(a, 3) && kept(a, 2) && kept(a, 1), "… and what was not used for longest goes");
	ok(keep(b, 6, true) && kept(b, 6), "an image is kept at once");
	store_stats(store, &s);
	ok(s.bytes <= s.limit && s.limit == limit && s.blocks == 4, "never more than the limit: %llu of %llu",
	   (unsigned long long)s.bytes, (unsigned long long)s.limit);
	is_int(s.evicted, 2, "two went");
	is_int(s.saved, s.hits * BLOCK, "hits and their bytes are counted");
	is_int(store_list(b, hints, 8), 1, "a tenant's list has its own");
	is_int(store_list(a, hints, 2), 2, "… and no more than there is room for");
	for (unsigned i = 0; i < 64; i++)
		keep(b, 100 + i / 2, false);
	store_stats(store, &s);
	ok(s.bytes <= s.limit && kept(a, 1) && kept(a, 2), "one tenant's many uploads leave the other its share");
	store_free(store);
	store = store_new(16 << 20);
	a = store_tenant(store, "a", 0);
	keep(a, 1, false);
	for (unsigned i = 0; i < 2 * STORE_IDLE_MAX; i++) {
		user = store_tenant(store, "b", i);
		if (i == 0 || i == 2 * STORE_IDLE_MAX - 1)
			keep(user, i, false);
		store_tenant_put(user);
	}
	store_stats(store, &s);
	is_int(s.idle, STORE_IDLE_MAX, "of users without a session, so many are remembered and no more");
	ok(kept(a, 1), "… who has one is");
	ok(kept(store_tenant(store, "b", 2 * STORE_IDLE_MAX - 1), 2 * STORE_IDLE_MAX - 1) &&
		   !kept(store_tenant(store, "b", 0), 0),
	   "… and the last of them has its blocks, the first has not");
	store_stats(store, &s);
	is_int(s.blocks, 2, "whose blocks went with it");
	store_free(store);
	store = store_new(limit);
	a = store_tenant(store, "a", 0);
	n = keep(a, 1, false) + keep(a, 2, false);
	for (unsigned i = 0; i < 8; i++)
		keep(store_tenant(store, "b", i), 10 + i, true);
	ok(n == 2 && kept(a, 1) && kept(a, 2), "a client that says it is many users leaves the other its share");
	ok(kept(store_tenant(store, "b", 7), 17), "… and what it had itself goes");
	store_free(store);
	store = store_new(16 << 20);
	a = store_tenant(store, "a", 0);
	keep(a, 1, false);
	store_tenant_put(a);
	for (unsigned i = 0; i < 2 * STORE_IDLE_MAX; i++)
		store_tenant_put(store_tenant(store, "b", i));
	ok(kept(store_tenant(store, "a", 0), 1), "nor is a user without a session forgotten for those of another client");
	for (unsigned i = 0; i < 2 * STORE_IDLE_MAX; i++) {
		char name[16];

		snprintf(name, sizeof(name), "client %u", i);
		store_tenant_put(store_tenant(store, name, 0));
	}
	store_stats(store, &s);
	is_int(s.idle, STORE_IDLE_MAX, "of as many clients, too, so many are remembered and no more");
	store_free(store);
	store = store_new(1000);
	ok(!keep(store_tenant(store, "a", 0), 1, true), "what is larger than all of it is not kept");
	store_free(store);
}

/* Until a frame of @type came, or @stop; KNOWN and NEED are remembered. The type. */
static int hear(int want)
{
	int type;

	do {
		bool got;

		type = peer_step(&r.p, NULL, &got, NULL, PEER_WAIT_MS);
		if (type == RGPU_D_KNOWN) {
			memcpy(known + nknown, r.p.frame, r.p.last_len);
			nknown += r.p.last_len / 8;
		}
		if (type == RGPU_D_NEED)
			memcpy(&needed, r.p.frame, sizeof(needed));
	} while (type > 0 && type != want);
	return type;
}

static bool knows(const uint8_t *at, uint32_t len)
{
	for (unsigned i = 0; i < nknown; i++)
		if (known[i] == rgpu_hint(at, len))
			return true;
	return false;
}

/* A session of @client, connected; what it is told that there is lies in known. */
static void up(const char *client, bool flagged)
{
	int sv[2];

	nknown = 0;
	needed = 0;
	stub_reset();
	memset(&r.p, 0, sizeof(r.p));
	rig_up(&r, &worker_times_default, false);
	if (!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv)) {
		store_serve(store, client, 0, sv[0]);
		cache_use(&r.w, sv[1]);
	}
	r.p.attach_flags = flagged ? RGPU_ATTACH_CACHE : 0;
	rig_connect(&r);
	peer_attach(&r.p, NULL, 0);
	if (flagged)
		hear(RGPU_D_KNOWN);
}

static void send_block(const uint8_t *at, uint32_t len)
{
	peer_send(&r.p, RGPU_D_PAYLOAD, 1, at, len);
}

static void name_block(const uint8_t *at, uint32_t len)
{
	struct rgpu_ref ref = {.hint = rgpu_hint(at, len), .len = len};

	rgpu_sha256(at, len, ref.sha256);
	peer_send(&r.p, RGPU_D_REF, 1, &ref, sizeof(ref));
}

static bool summed(void)
{
	struct peer_reply rep;
	uint64_t sum;

	if (!peer_reply(&r.p, &rep, NULL))
		return false;
	memcpy(&sum, rep.body, sizeof(sum));
	return sum == stub_sum(bytes, BYTES);
}

static void a_record(uint64_t seq)
{
	peer_rec(&r.p, 1, .op = STUB_SUM, .fence = true, .send = BYTES, .seq = seq);
}

static void a_client(void)
{
	struct store_stats s;

	store = store_new(16 << 20);
	fill(bytes, BYTES, 77);
	up("one", true);
	is_int(nknown, 0, "a new client is told of nothing");
	a_record(1);
	send_block(bytes, BLOCK);
	send_block(bytes + BLOCK, TAIL);
	ok(summed(), "it sends its bytes");
	while (!knows(bytes, BLOCK) || !knows(bytes + BLOCK, TAIL))
		hear(RGPU_D_KNOWN);
	ok(true, "… and is told that both blocks are kept");
	a_record(2);
	name_block(bytes, BLOCK);
	name_block(bytes + BLOCK, TAIL);
	ok(summed(), "it names them, and the call has the bytes");
	rig_down(&r);

	up("one", true);
	ok(knows(bytes, BLOCK) && knows(bytes + BLOCK, TAIL), "another session of that client is told of them at its start");
	a_record(1);
	send_block(bytes, BLOCK);
	name_block(bytes + BLOCK, TAIL);
	ok(summed(), "… it may name one and send the other");
	rig_down(&r);
	store_stats(store, &s);
	is_int(s.hits, 3, "three blocks were not sent");
	is_int(s.saved, BLOCK + 2 * TAIL, "… of so many bytes");

	up("two", true);
	is_int(nknown, 0, "another client is told of nothing");
	a_record(1);
	name_block(bytes, BLOCK);
	hear(RGPU_D_NEED);
	is_int(needed, 1, "… and gets nothing by naming it: record 1 is needed");
	send_block(bytes + BLOCK, TAIL);
	peer_rec(&r.p, 1, .op = STUB_COUNT, .fence = true, .seq = 2);
	peer_rec(&r.p, 1, .op = STUB_SUM, .fence = true, .send = BYTES, .seq = 3);
	send_block(bytes, BLOCK);
	peer_send(&r.p, RGPU_D_REWIND, 1, &needed, sizeof(needed));
	a_record(1);
	send_block(bytes, BLOCK);
	send_block(bytes + BLOCK, TAIL);
	peer_rec(&r.p, 1, .op = STUB_COUNT, .fence = true, .seq = 2);
	ok(summed(), "after REWIND it sends the bytes");
	hear(RGPU_D_REPLY);
	is_int(stub_count, 1, "… and what came in between was not run twice");
	while (r.p.lane[1].received < 2)
		hear(RGPU_D_GRANT);
	ok(r.p.lane[1].allow >= r.p.lane[1].tx, "all that was sent is counted in its credit");
	rig_down(&r);

	up("three", true);
	a_record(1);
	name_block(bytes, BLOCK);
	hear(RGPU_D_NEED);
	peer_drop(&r.p);
	rig_resume(&r);
	is_int(r.p.lane[1].received, 0, "cut between NEED and REWIND: the record was not received");
	a_record(1);
	send_block(bytes, BLOCK);
	send_block(bytes + BLOCK, TAIL);
	ok(summed(), "… and is sent on the next connection");
	a_record(1); /* again, as after a cut before its grant */
	name_block(bytes, BLOCK);
	send_block(bytes + BLOCK, TAIL);
	a_record(2);
	send_block(bytes, BLOCK);
	send_block(bytes + BLOCK, TAIL);
	ok(summed(), "a record that is there already may name blocks that are not");
	rig_down(&r);
}

/* A connection that breaks inside a payload leaves nothing behind that nobody sent. */
static void a_cut(void)
{
	struct store_stats s;
	uint64_t before;

	store_stats(store, &s);
	before = s.admitted;
	fill(bytes, BYTES, 78);
	up("five", true);
	a_record(1);
	send_block(bytes, BLOCK);
	peer_send(&r.p, RGPU_D_PING, 0, bytes, 8);
	hear(RGPU_D_PONG);
	peer_drop(&r.p);
	rig_resume(&r);
	hear(RGPU_D_KNOWN);
	a_record(1);
	send_block(bytes, BLOCK);
	send_block(bytes + BLOCK, TAIL);
	ok(summed(), "cut inside a payload, it is sent again");
	while (!knows(bytes, BLOCK) || !knows(bytes + BLOCK, TAIL))
		hear(RGPU_D_KNOWN);
	store_stats(store, &s);
	is_int(s.admitted - before, 2, "… and its blocks alone are kept");
	rig_down(&r);
}

/* A worker that somebody took over says what it likes. */
static void a_hostile_worker(void)
{
	static const uint32_t bad[] = {0, RGPU_BLOCK_MIN - 1, STORE_BLOCK_MAX + 1, UINT32_MAX};
	struct cache_answer a;
	int sv[2];

	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct cache_ask q = {.what = CACHE_WANTS, .len = bad[i], .hint = i + 1};

		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv))
			abort();
		store_serve(store, "six", 0, sv[0]);
		ok(cache_write(sv[1], &q, sizeof(q)) && cache_read(sv[1], &a, sizeof(a)) && !a.yes,
		   "a block of %u bytes is not wanted", bad[i]);
		q.what = CACHE_PUT;
		ok(cache_write(sv[1], &q, sizeof(q)) && !cache_read(sv[1], &a, sizeof(a)), "… and who sends one is hung up on");
		close(sv[1]);
	}
}

/* It reads nothing, and is kept no endless list for. */
static void a_deaf_client(void)
{
	uint32_t room, waits;

	up("five", true);
	for (unsigned i = 0; i < 1000; i++)
		output_known(&r.w, known, sizeof(known) / sizeof(*known), false);
	pthread_mutex_lock(&r.w.output.lock);
	room = r.w.output.known_room;
	waits = r.w.output.nknown - r.w.output.known_at;
	pthread_mutex_unlock(&r.w.output.lock);
	ok(room <= 1 << 17, "of four million hints that a client does not take, no more wait than it would remember (%u)", room);
	ok(waits > 1 << 15, "so many do");
	rig_down(&r);
}

/* A client that ends a channel does not know yet that something of it is needed again. */
static void ends_unheard(void)
{
	up("seven", true);
	a_record(1);
	fill(bytes, BYTES, 99);
	name_block(bytes, BLOCK);
	send_block(bytes + BLOCK, TAIL);
	peer_send(&r.p, RGPU_D_CLOSE_CHANNEL, 1, NULL, 0);
	ok(peer_until_end(&r.p) && strstr(r.p.bye.text, "record 1"), "a channel ends whose record is not there: %s",
	   r.p.bye.text);
	rig_down(&r);
}

static void breaks(bool flagged, uint16_t type, uint32_t len, bool record, const char *what)
{
	struct rgpu_ref ref = {.len = len};

	up("four", flagged);
	if (record)
		a_record(1);
	peer_send(&r.p, type, 1, &ref, type == RGPU_D_REWIND ? sizeof(struct rgpu_need) : sizeof(ref));
	ok(peer_until_end(&r.p) && strstr(r.p.bye.text, what), "%s: %s", what, r.p.bye.text);
	rig_down(&r);
}

int main(void)
{
	the_store();
	a_client();
	a_cut();
	a_hostile_worker();
	a_deaf_client();
	ends_unheard();
	breaks(false, RGPU_D_REF, BLOCK, true, "REF without");
	breaks(true, RGPU_D_REF, BLOCK, false, "REF without");
	breaks(true, RGPU_D_REF, BLOCK + 1, true, "REF's block");
	breaks(true, RGPU_D_REF, RGPU_BLOCK_MIN - 1, true, "REF's block");
	breaks(true, RGPU_D_REWIND, 0, true, "REWIND that was not");
	return tap_done();
}
