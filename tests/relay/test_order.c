// SPDX-License-Identifier: MIT
/* The relay at work: order, wrapping rings, credits, interleaving of bulk with small calls, small completion rings, channels that
 * end. */
#include <errno.h>
#include <unistd.h>
#include "tests/relay/workload.h"
#include "tests/tap.h"
#include "usermode-proxy/relay_int.h"

static const char *mode(bool inside)
{
	return inside ? "inside the program" : "as a proxy";
}

static void works(bool inside, unsigned channels, uint32_t sq, uint32_t cq, struct work w, const char *what)
{
	struct rgpu_relay_counters n;
	struct fake f;
	struct app app;

	fake_start(&f);
	app_start(&app, &f, inside, channels, sq, cq);
	work_run(&app, &w);
	is_str(work_check(&app, &w), "", "%s, %s", what, mode(inside));
	is_int(f.connections, 1, "… over one connection");
	rgpu_relay_counters(app.relay, &n);
	is_int(n.records, 6 * w.rounds * channels, "… so many records");
	is_int(n.replies, 5 * w.rounds * channels, "… and replies");
	ok(n.received_bytes > 2 * w.bulk * w.rounds * channels && n.sent_bytes > w.bulk * w.rounds * channels, "… and bytes");
	app_stop(&app);
	is_int(app.maps, 0, "… and no buffer object stays mapped");
	fake_stop(&f);
}

/* 6 MiB in three records on channel 0, then a small call on channel 1, which must pass between the pieces. */
static void interleaves(bool inside)
{
	unsigned bulk_before = 0, bulk_after = 0, small_at = 0;
	uint32_t arg = 5;
	struct rgpu_rep rep;
	uint8_t body[RGPU_REP_MAX];
	struct fake f;
	struct app app;

	fake_start(&f);
	app_start(&app, &f, inside, 2, RGPU_SQ_DEFAULT, RGPU_CQ_DEFAULT);
	pthread_mutex_lock(&f.lock); /* the server reads nothing yet: all is queued when it begins */
	for (unsigned i = 0; i < 3; i++) {
		struct rgpu_seg s = {1, RGPU_SEG_SEND, i << 19, RGPU_CHUNK_MAX};

		app_post(&app, 0, FAKE_H2D, 0, &s, 1, NULL, 0);
	}
	usleep(20000);
	app_post(&app, 1, FAKE_NOP, RGPU_REC_FENCE, NULL, 0, &arg, 4);
	pthread_mutex_unlock(&f.lock);
	is_int(app_reply(&app, 1, &rep, body), 0, "a small call beside an upload, %s", mode(inside));
	is_int(rep.status, 5, "… its answer");
	is_int(app_acked(&app, 0, 3), 0, "… and the upload ends");
	pthread_mutex_lock(&f.lock);
	for (unsigned i = 0; i < f.nframes; i++)
		if (f.frame_order[i] == (1 | 1u << 31))
			small_at = i;
	for (unsigned i = 0; i < f.nframes; i++)
		if (f.frame_order[i] == 0)
			i < small_at ? bulk_before++ : bulk_after++;
	is_int(bulk_before + bulk_after, 24, "… in pieces of 256 KiB");
	ok(bulk_after > 0, "… %u pieces before the small call, %u after it", bulk_before, bulk_after);
	is_str(f.trouble, "", "… by the rules");
	pthread_mutex_unlock(&f.lock);
	app_stop(&app);
	fake_stop(&f);
}

/* Two uploads at once share the link piece by piece. */
static void shares(void)
{
	struct rgpu_seg a = {1, RGPU_SEG_SEND, 0, RGPU_CHUNK_MAX}, b = {2, RGPU_SEG_SEND, 0, RGPU_CHUNK_MAX};
	unsigned runs = 0;
	struct fake f;
	struct app app;

	fake_start(&f);
	app_start(&app, &f, false, 2, RGPU_SQ_DEFAULT, RGPU_CQ_DEFAULT);
	pthread_mutex_lock(&f.lock);
	for (unsigned i = 0; i < 3; i++) {
		app_post(&app, 0, FAKE_H2D, 0, &a, 1, NULL, 0);
		app_post(&app, 1, FAKE_H2D, 0, &b, 1, NULL, 0);
	}
	pthread_mutex_unlock(&f.lock);
	is_int(app_acked(&app, 0, 3), 0, "two uploads: the first");
	is_int(app_acked(&app, 1, 3), 0, "… the second");
	pthread_mutex_lock(&f.lock);
	for (unsigned i = 1, last = ~0u; i < f.nframes; i++) {
		if (f.frame_order[i] >> 31)
			continue;
		runs += f.frame_order[i] != last;
		last = f.frame_order[i];
	}
	ok(runs > 30, "… in turns: %u changes in 48 pieces", runs);
	pthread_mutex_unlock(&f.lock);
	app_stop(&app);
	fake_stop(&f);
}

/* A program with more page-locked memory than a proxy can have mapped of it. All of it is sent, some of it twice. */
static void many_objects(bool inside)
{
	const uint32_t handles = 3 * RELAY_BO_MAPS;
	unsigned wrong = 0;
	struct fake f;
	struct app app;

	fake_start(&f);
	app_start(&app, &f, inside, 1, RGPU_SQ_DEFAULT, RGPU_CQ_DEFAULT);
	app.handles = handles;
	for (unsigned i = 1; i <= APP_BOS; i++)
		memset(app.bo[i], i, 64);
	for (uint32_t i = 0; i < 2 * handles; i++) {
		struct rgpu_seg s = {i % handles + 1, RGPU_SEG_SEND, 0, 64};

		if (app_post(&app, 0, FAKE_H2D, 0, &s, 1, NULL, 0))
			break;
	}
	is_int(app_acked(&app, 0, 2 * handles), 0, "%u buffer objects, each sent twice, %s", handles, mode(inside));
	pthread_mutex_lock(&f.lock);
	is_int(f.nlog, 2 * handles, "… all come");
	for (uint32_t i = 0; i < f.nlog; i++) {
		uint8_t bytes[64];

		memset(bytes, i % handles % APP_BOS + 1, sizeof(bytes));
		wrong += f.log[i].hash != fake_hash(bytes, sizeof(bytes));
	}
	is_int(wrong, 0, "… with what is in them");
	pthread_mutex_unlock(&f.lock);
	ok(app.most_maps > 1 && app.most_maps <= (int)RELAY_BO_MAPS, "… and at most %u are mapped (%d)", RELAY_BO_MAPS,
	   app.most_maps);
	app_stop(&app);
	is_int(app.maps, 0, "… none in the end");
	fake_stop(&f);
}

/* The server grants nothing: the relay stops at the credit, and what it was not granted stays in the ring. */
static void credits(void)
{
	struct rgpu_seg s = {1, RGPU_SEG_SEND, 0, RGPU_CHUNK_MAX};
	unsigned n;
	struct fake f;
	struct app app;

	fake_start(&f);
	f.no_grants = true;
	app_start(&app, &f, false, 1, RGPU_SQ_DEFAULT, RGPU_CQ_DEFAULT);
	for (unsigned i = 0; i < 8; i++)
		app_post(&app, 0, FAKE_H2D, 0, &s, 1, NULL, 0);
	/* 8 MiB of credit: four records of 2 MiB and their headers; the fourth's header makes it more than 8 MiB. */
	for (unsigned i = 0; i < 1000; i++) {
		pthread_mutex_lock(&f.lock);
		n = f.nlog;
		pthread_mutex_unlock(&f.lock);
		if (n >= 4)
			break;
		usleep(10000);
	}
	usleep(50000);
	pthread_mutex_lock(&f.lock);
	is_int(f.nlog, 4, "without grants, so many records go");
	is_str(f.trouble, "", "… by the rules");
	pthread_mutex_unlock(&f.lock);
	is_int(app.ch[0].p->acked, 0, "nothing was granted: nothing is acked");
	is_int(app.ch[0].p->sq_head, 0, "… nor is ring space free");
	app_stop(&app);
	fake_stop(&f);
}

/* The program does not read its replies: the server runs out of credit, and goes on when they are read. */
static void unread(bool inside)
{
	uint32_t len = 20000;
	uint8_t body[RGPU_REP_MAX];
	struct rgpu_rep rep;
	struct fake f;
	struct app app;
	unsigned good = 0;

	fake_start(&f);
	app_start(&app, &f, inside, 1, RGPU_SQ_DEFAULT, RGPU_CQ_DEFAULT);
	for (unsigned i = 0; i < 50; i++)
		app_post(&app, 0, FAKE_BODY, RGPU_REC_FENCE, NULL, 0, &len, 4);
	is_int(app_acked(&app, 0, 50), 0, "50 replies of 20,000 bytes unread, %s: all was received", mode(inside));
	ok(app.ch[0].p->published < 10, "… %u fit", (unsigned)app.ch[0].p->published);
	for (unsigned i = 1; i <= 50; i++) {
		if (app_reply(&app, 0, &rep, body))
			break;
		good += rep.seq == i && rep.body_len == len && body[len - 1] == fake_byte(i, len - 1);
	}
	is_int(good, 50, "… and come when they are read");
	is_str(f.trouble, "", "… by the rules");
	app_stop(&app);
	fake_stop(&f);
}

struct other {
	struct app *app;
	int err;
	int32_t status;
};

static void *waits_long(void *arg)
{
	static uint8_t body[RGPU_REP_MAX];
	struct other *o = arg;
	struct rgpu_rep rep;

	o->err = app_reply(o->app, 1, &rep, body);
	o->status = rep.status;
	return NULL;
}

/*
 * One of the program's threads receives for all and sleeps in that. Another reads its ring, without a record to send that would
 * tell the server so: the relay's thread must see that there is credit again.
 */
static void credit_while_another_receives(void)
{
	static uint8_t body[RGPU_REP_MAX];
	uint32_t big = 16 << 10, arg = 7;
	struct rgpu_rep rep;
	struct other o;
	struct fake f;
	struct app app;
	unsigned good = 0;
	pthread_t t;

	alarm(20); /* a stall lasts until the relay's ping, 5 s later; eight of them are too much */
	fake_start(&f);
	app_start(&app, &f, true, 2, RGPU_SQ_DEFAULT, RGPU_CQ_DEFAULT);
	o = (struct other){.app = &app};
	pthread_create(&t, NULL, waits_long, &o);
	while (!__atomic_load_n(&app.relay->receives, __ATOMIC_SEQ_CST))
		usleep(1000);
	for (unsigned round = 1; round <= 8; round++) {
		for (unsigned i = 0; i < 8; i++)
			app_post(&app, 0, FAKE_BODY, RGPU_REC_FENCE, NULL, 0, &big, 4);
		app_acked(&app, 0, 8 * round);
		usleep(50000); /* the server uses all its credit: the thread that receives has nothing more to wake for */
		for (unsigned i = 0; i < 8; i++)
			good += !app_reply(&app, 0, &rep, body) && rep.body_len == big;
	}
	alarm(0);
	is_int(good, 64, "replies beyond the credit come while another thread receives");
	app_post(&app, 1, FAKE_NOP, RGPU_REC_FENCE, NULL, 0, &arg, 4);
	pthread_join(t, NULL);
	ok(!o.err && o.status == 7, "… which gets its own");
	is_str(f.trouble, "", "… by the rules");
	app_stop(&app);
	fake_stop(&f);
}

/* A channel that the program destroys. */
static void ends(void)
{
	struct fake f;
	struct app app;
	bool closed = false;
	unsigned said = 0;

	fake_start(&f);
	app_start(&app, &f, false, 2, RGPU_SQ_DEFAULT, RGPU_CQ_DEFAULT);
	app_post(&app, 1, FAKE_NOP, 0, NULL, 0, NULL, 0);
	is_int(app_acked(&app, 1, 1), 0, "a record of a channel");
	__atomic_store_n(&app.ch[1].alive, false, __ATOMIC_SEQ_CST);
	app_kick(&app, 1);
	for (unsigned i = 0; i < 1000 && !closed; i++) {
		usleep(5000);
		pthread_mutex_lock(&f.lock);
		closed = f.ch[1].closed;
		pthread_mutex_unlock(&f.lock);
	}
	ok(closed, "its end reaches the server");
	app_post(&app, 0, FAKE_NOP, 0, NULL, 0, NULL, 0);
	is_int(app_acked(&app, 0, 1), 0, "the other channel goes on");
	rgpu_relay_bye(app.relay);
	is_int(app_failed(&app), -ECANCELED, "the program ends: %s", app.why);
	for (unsigned i = 0; i < 1000 && !said; i++) {
		usleep(5000);
		pthread_mutex_lock(&f.lock);
		said = f.bye;
		pthread_mutex_unlock(&f.lock);
	}
	is_int(said, 1, "… which the server is told once");
	app_stop(&app);
	fake_stop(&f);
}

/* A channel that the program destroys before its last records are safe at the server, and a connection that is cut just then. */
static void ends_early(void)
{
	struct fake f;
	struct app app;
	unsigned n = 0;
	bool closed;

	fake_start(&f);
	app_start(&app, &f, false, 2, RGPU_SQ_DEFAULT, RGPU_CQ_DEFAULT);
	f.no_grants = true;
	app_post(&app, 1, FAKE_NOP, 0, NULL, 0, NULL, 0);
	while (!n) {
		usleep(1000);
		pthread_mutex_lock(&f.lock);
		n = f.nlog;
		pthread_mutex_unlock(&f.lock);
	}
	__atomic_store_n(&app.ch[1].alive, false, __ATOMIC_SEQ_CST);
	app_kick(&app, 1);
	usleep(50000);
	pthread_mutex_lock(&f.lock);
	closed = f.ch[1].closed;
	/* As if it had not come: it is sent again, or it is lost. */
	f.ch[1].received = 0;
	f.nlog = 0;
	f.no_grants = false;
	f.cut_at = f.events + 1;
	pthread_mutex_unlock(&f.lock);
	ok(!closed, "a channel whose last record the server has not granted does not end there");
	app_post(&app, 0, FAKE_NOP, 0, NULL, 0, NULL, 0);
	is_int(app_acked(&app, 0, 1), 0, "cut now, the others go on");
	for (unsigned i = 0; i < 1000 && !closed; i++) {
		usleep(5000);
		pthread_mutex_lock(&f.lock);
		closed = f.ch[1].closed;
		pthread_mutex_unlock(&f.lock);
	}
	ok(closed, "and it ends");
	pthread_mutex_lock(&f.lock);
	is_int(f.ch[1].received, 1, "after its record was sent again");
	is_str(f.trouble, "", "by the rules");
	pthread_mutex_unlock(&f.lock);
	app_stop(&app);
	fake_stop(&f);
}

/* One that is destroyed while what it has published waits for credit: the kick for that and the one for its end are one. */
static void ends_with_records(void)
{
	struct rgpu_seg s = {1, RGPU_SEG_SEND, 0, RGPU_CHUNK_MAX};
	struct fake f;
	struct app app;
	bool closed = false;
	unsigned n = 0;

	fake_start(&f);
	app_start(&app, &f, false, 2, RGPU_SQ_DEFAULT, RGPU_CQ_DEFAULT);
	f.no_grants = true;
	for (unsigned i = 0; i < 6; i++)
		app_post(&app, 1, FAKE_H2D, 0, &s, 1, NULL, 0);
	while (!n) {
		usleep(1000);
		pthread_mutex_lock(&f.lock);
		n = f.nlog;
		pthread_mutex_unlock(&f.lock);
	}
	__atomic_store_n(&app.ch[1].alive, false, __ATOMIC_SEQ_CST);
	app_kick(&app, 1);
	usleep(50000);
	pthread_mutex_lock(&f.lock);
	f.no_grants = false;
	f.cut_at = f.events + 1;
	pthread_mutex_unlock(&f.lock);
	app_post(&app, 0, FAKE_NOP, 0, NULL, 0, NULL, 0);
	for (unsigned i = 0; i < 1000 && !closed; i++) {
		usleep(5000);
		pthread_mutex_lock(&f.lock);
		closed = f.ch[1].closed;
		pthread_mutex_unlock(&f.lock);
	}
	ok(closed, "a channel that is destroyed with records that have no credit ends");
	pthread_mutex_lock(&f.lock);
	is_int(f.ch[1].received, 6, "after all of them");
	is_str(f.trouble, "", "by the rules");
	pthread_mutex_unlock(&f.lock);
	app_stop(&app);
	fake_stop(&f);
}

int main(void)
{
	for (int inside = 0; inside < 2; inside++) {
		works(inside, 1, RGPU_SQ_DEFAULT, RGPU_CQ_DEFAULT, (struct work){.rounds = 5, .bulk = 300000}, "one channel");
		works(inside, 4, RGPU_SQ_DEFAULT, RGPU_CQ_DEFAULT, (struct work){.rounds = 20, .bulk = 700001}, "four channels");
		works(inside, 4, RGPU_RING_MIN, 2 * RGPU_RING_MIN, (struct work){.rounds = 300, .bulk = 900},
		      "rings that wrap all the time");
		interleaves(inside);
		unread(inside);
		many_objects(inside);
	}
	shares();
	credits();
	credit_while_another_receives();
	ends();
	ends_early();
	ends_with_records();
	return tap_done();
}
