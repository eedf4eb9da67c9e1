// SPDX-License-Identifier: MIT
/* Programs and servers that break the rules: the session ends with a reason that says so, and nothing crashes or hangs. */
#include <errno.h>
#include <unistd.h>
#include "tests/relay/workload.h"
#include "tests/tap.h"

/* Programs -------------------------------------------------------------------------------------------------------- */

static struct rgpu_rec good_rec(struct app *app)
{
	return (struct rgpu_rec){.len = 48, .op = FAKE_NOP, .seq = ++app->ch[0].seq};
}

static void publish(struct app *app, const struct rgpu_rec *rec, const struct rgpu_seg *seg, unsigned nseg, uint32_t by)
{
	struct app_chan *c = &app->ch[0];
	uint8_t *at = c->sq + (c->tail & (c->sq_size - 1));

	memcpy(at, rec, sizeof(*rec));
	if (nseg)
		memcpy(at + sizeof(*rec), seg, nseg * sizeof(*seg));
	c->tail += by;
	__atomic_store_n(&c->a->sq_tail, c->tail, __ATOMIC_SEQ_CST);
	app_kick(app, 0);
}

enum app_trick {
	TAIL_FAR,
	TAIL_BACK,
	TAIL_ODD,
	LEN_ZERO,
	LEN_SMALL,
	LEN_ODD,
	LEN_BEYOND,
	LEN_HUGE,
	PAD_SHORT,
	PAD_BEYOND,
	SEQ_AGAIN,
	SEQ_GAP,
	FLAGS,
	NSEG_MANY,
	NSEG_NO_ROOM,
	SEG_NO_BO,
	SEG_BO_ZERO,
	SEG_DIR,
	SEG_BOTH,
	SEG_BEYOND,
	SEG_WRAPS,
	SEG_CHUNK,
	SEG_CHUNK_SUM,
	SEG_RECV_BEYOND,
	CQ_HEAD_FAR,
	CQ_HEAD_ODD,
	APP_TRICKS,
};

static const char *const app_tricks[] = {
	"a tail beyond the ring",
	"a tail that goes back",
	"a tail within a record",
	"a record of no length",
	"a record shorter than its header",
	"a length that is no multiple of 16",
	"a record longer than what was published",
	"a record of 1 MiB",
	"a PAD that ends before the ring",
	"a PAD longer than what was published",
	"a record twice",
	"a record that is missing",
	"unknown flags",
	"17 segments",
	"segments beyond the record",
	"a buffer object that is not there",
	"buffer object 0",
	"a segment without direction",
	"a segment of both directions",
	"a segment that ends beyond its object",
	"a segment whose end wraps",
	"a segment of more than 2 MiB",
	"segments of more than 2 MiB together",
	"a place for an answer beyond its object",
	"a CQ head beyond the tail",
	"a CQ head within a reply",
};

static void trick_app(struct app *app, enum app_trick t)
{
	struct rgpu_seg seg[RGPU_SEG_MAX + 1] = {{1, RGPU_SEG_SEND, 0, 100}};
	struct rgpu_rec r = good_rec(app);
	uint32_t by = 48;
	unsigned nseg = 0;

	switch (t) {
	case TAIL_FAR:
		by = 2 * RGPU_SQ_DEFAULT;
		break;
	case TAIL_BACK:
		by = -16;
		break;
	case TAIL_ODD:
		by = 40;
		break;
	case LEN_ZERO:
		r.len = 0;
		break;
	case LEN_SMALL:
		r.len = 16;
		break;
	case LEN_ODD:
		r.len = 40;
		break;
	case LEN_BEYOND:
		r.len = 64;
		break;
	case LEN_HUGE:
		r.len = 1 << 20;
		by = 1 << 20;
		break;
	case PAD_SHORT:
		r.flags = RGPU_REC_PAD;
		break;
	case PAD_BEYOND:
		r.flags = RGPU_REC_PAD;
		r.len = RGPU_SQ_DEFAULT;
		break;
	case SEQ_AGAIN:
		publish(app, &r, NULL, 0, by);
		break;
	case SEQ_GAP:
		r.seq += 5;
		break;
	case FLAGS:
		r.flags = 0x40;
		break;
	case NSEG_MANY:
		r.nseg = RGPU_SEG_MAX + 1;
		by = r.len = 48 + (RGPU_SEG_MAX + 1) * sizeof(seg[0]);
		by = r.len = (by + 15) & ~15u;
		nseg = RGPU_SEG_MAX + 1;
		break;
	case NSEG_NO_ROOM:
		r.nseg = 2;
		break;
	case CQ_HEAD_FAR:
	case CQ_HEAD_ODD:
		r.flags = RGPU_REC_FENCE;
		__atomic_store_n(&app->ch[0].a->cq_head, t == CQ_HEAD_FAR ? 1u << 30 : 8, __ATOMIC_SEQ_CST);
		break;
	default:
		nseg = r.nseg = 1;
		by = r.len = 64;
	}
	if (t == SEG_NO_BO)
		seg[0].bo = 99;
	else if (t == SEG_BO_ZERO)
		seg[0].bo = 0;
	else if (t == SEG_DIR)
		seg[0].dir = 0;
	else if (t == SEG_BOTH)
		seg[0].dir = RGPU_SEG_SEND | RGPU_SEG_RECV;
	else if (t == SEG_BEYOND)
		seg[0].off = APP_BO_BYTES - 99;
	else if (t == SEG_WRAPS)
		seg[0].off = UINT64_MAX - 50;
	else if (t == SEG_CHUNK)
		seg[0].len = RGPU_CHUNK_MAX + 1;
	else if (t == SEG_RECV_BEYOND)
		seg[0] = (struct rgpu_seg){1, RGPU_SEG_RECV, APP_BO_BYTES, 1};
	if (t == SEG_CHUNK_SUM) {
		seg[0].len = RGPU_CHUNK_MAX;
		seg[1] = (struct rgpu_seg){1, RGPU_SEG_SEND, 0, 1};
		nseg = r.nseg = 2;
		by = r.len = 96;
	}
	publish(app, &r, seg, nseg, by);
}

static void hostile_programs(void)
{
	for (enum app_trick t = 0; t < APP_TRICKS; t++) {
		struct fake f;
		struct app app;

		fake_start(&f);
		app_start(&app, &f, t % 2, 1, RGPU_SQ_DEFAULT, RGPU_CQ_DEFAULT);
		/* After some honest work. */
		app_post(&app, 0, FAKE_NOP, 0, NULL, 0, NULL, 0);
		app_acked(&app, 0, 1);
		trick_app(&app, t);
		is_int(app_failed(&app), -EBADMSG, "%s: %s", app_tricks[t], app.why);
		ok(strstr(app.why, "channel 0") != NULL, "… names the channel");
		app_stop(&app);
		is_int(app.maps, 0, "… and leaves no map");
		is_str(f.trouble, "", "… and the server saw nothing wrong");
		fake_stop(&f);
	}
}

/* A program that destroys what its record sends, before the record is looked at. */
static void gone_bo(void)
{
	struct rgpu_seg seg = {2, RGPU_SEG_SEND, 0, 100};
	struct fake f;
	struct app app;
	uint8_t *bo;

	fake_start(&f);
	app_start(&app, &f, true, 1, RGPU_SQ_DEFAULT, RGPU_CQ_DEFAULT);
	app_post(&app, 0, FAKE_H2D, 0, &seg, 1, NULL, 0);
	is_int(app_acked(&app, 0, 1), 0, "a buffer object in use");
	bo = app.bo[2];
	app.bo[2] = NULL;
	rgpu_relay_bo_gone(app.relay, 2, false);
	is_int(app.maps, 0, "… and destroyed: the map is gone at once");
	app_post(&app, 0, FAKE_H2D, 0, &seg, 1, NULL, 0);
	is_int(app_failed(&app), -EBADMSG, "a record that uses it: %s", app.why);
	app.bo[2] = bo;
	app_stop(&app);
	fake_stop(&f);
}

static uint32_t lent_stage; /* atomic: 1 the first part was sent, 2 the memory is taken back */

/* Bytes for buffer object 1 in two parts, and the program takes its memory back between them. */
static void send_in_parts(struct fake *f, struct rgpu_link *l)
{
	struct rgpu_data d = {.seq = 1, .bo = 1, .off = 8};
	struct rgpu_frame h = {.type = RGPU_D_DATA, .len = sizeof(d) + 1000};
	uint8_t bytes[1000];

	(void)f;
	memset(bytes, 0xa5, sizeof(bytes));
	rgpu_link_write(l, &h, sizeof(h));
	rgpu_link_write(l, &d, sizeof(d));
	rgpu_link_write(l, bytes, 100);
	__atomic_store_n(&lent_stage, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&lent_stage, __ATOMIC_SEQ_CST) != 2)
		usleep(1000);
	rgpu_link_write(l, bytes + 100, 900);
}

/* Memory that was lent for a call: when it is taken back, nothing more comes there, and the session goes on. */
static void lent_bo(void)
{
	uint8_t body[RGPU_REP_MAX];
	struct rgpu_rep rep;
	struct fake f;
	struct app app;
	volatile uint8_t *mem;
	unsigned wrong = 0;
	uint32_t zero = 0;

	fake_start(&f);
	app_start(&app, &f, false, 1, RGPU_SQ_DEFAULT, RGPU_CQ_DEFAULT);
	mem = app.bo[1];
	memset(app.bo[1], 0, 2000);
	app_post(&app, 0, FAKE_NOP, 0, NULL, 0, NULL, 0);
	app_acked(&app, 0, 1);
	pthread_mutex_lock(&f.lock);
	f.on_attach = send_in_parts;
	f.cut_at = f.events + 1;
	pthread_mutex_unlock(&f.lock);
	app_post(&app, 0, FAKE_NOP, 0, NULL, 0, NULL, 0);
	while (__atomic_load_n(&lent_stage, __ATOMIC_SEQ_CST) != 1 || mem[8 + 99] != 0xa5)
		usleep(1000);
	rgpu_relay_bo_gone(app.relay, 1, true);
	is_int(app.maps, 0, "lent memory that is taken back while bytes come for it is let go at once");
	f.on_attach = NULL;
	__atomic_store_n(&lent_stage, 2, __ATOMIC_SEQ_CST);
	is_int(app_post(&app, 0, FAKE_NOP, RGPU_REC_FENCE, NULL, 0, &zero, sizeof(zero)), 0, "… a fence after it is sent");
	is_int(app_reply(&app, 0, &rep, body), 0, "… and answered");
	for (unsigned i = 0; i < 2000; i++)
		wrong += mem[i] != (i >= 8 && i < 108 ? 0xa5 : 0);
	is_int(wrong, 0, "… and the rest of the bytes went nowhere");
	app_stop(&app);
	fake_stop(&f);
}

/* Servers --------------------------------------------------------------------------------------------------------- */

enum server_trick {
	TYPE_UNKNOWN,
	TYPE_CONTROL,
	FRAME_HUGE,
	CHANNEL_UNKNOWN,
	CHANNEL_FAR,
	GRANT_SHORT,
	GRANT_AHEAD,
	GRANT_BACK,
	ALLOW_BACK,
	REPLY_PART,
	REPLY_LEN,
	REPLY_ODD,
	REPLY_HUGE,
	REPLY_BODY,
	REPLY_FLAGS,
	REPLY_GAP,
	REPLY_SEQ,
	REPLY_SEQ_ZERO,
	DATA_SHORT,
	DATA_EMPTY,
	DATA_NO_BO,
	DATA_BEYOND,
	DATA_WRAPS,
	DATA_SEQ,
	PING_LONG,
	BYE_SHORT,
	BYE_GOOD,
	BYE_RUDE,
	CREDIT,
	SERVER_TRICKS,
};

static const char *const server_tricks[] = {
	"a frame of unknown type",
	"a frame of the control connection",
	"a frame of 4 GiB",
	"a channel that there is not",
	"channel 4 billion",
	"a short GRANT",
	"a GRANT of what was not sent",
	"a GRANT that goes back",
	"an allowance that goes back",
	"a part of a reply",
	"a reply longer than its frame",
	"a reply of odd length",
	"a reply of 64 KiB",
	"a body beyond the reply",
	"a reply with unknown flags",
	"a reply that is missing",
	"a reply to what was not sent",
	"a reply to nothing",
	"DATA without its header",
	"DATA without bytes",
	"DATA for an object that is not there",
	"DATA beyond its object",
	"DATA whose end wraps",
	"DATA for what was not sent",
	"a long PING",
	"a short BYE",
	"a good BYE",
	"a BYE for the terminal",
	"replies without end",
};

static enum server_trick trick;

static void trick_server(struct fake *f, struct rgpu_link *l)
{
	struct rgpu_frame h = {.type = RGPU_D_REPLY, .channel = 0};
	struct rgpu_rep rep = {.len = 48, .rseq = 2, .seq = 1}; /* the quiet download had 1 */
	struct rgpu_grant g = {.received = 1, .allow = 100 << 20};
	struct rgpu_error_frame bye = {.err = EOVERFLOW, .text = "quota is used up"};
	uint8_t buf[64 << 10] = {0};
	struct {
		struct rgpu_data d;
		uint8_t bytes[64];
	} d = {.d = {.seq = 1, .bo = 1}};
	const void *p = &rep;

	/* The program's two records are here when this is sent. */
	h.len = sizeof(rep);
	switch (trick) {
	case TYPE_UNKNOWN:
		h.type = 99;
		break;
	case TYPE_CONTROL:
		h.type = RGPU_C_DEVICES;
		break;
	case FRAME_HUGE:
		h.len = 0xfffffff0;
		break;
	case CHANNEL_UNKNOWN:
		h.channel = 5;
		break;
	case CHANNEL_FAR:
		h.channel = 0xffffffff;
		break;
	case GRANT_SHORT:
	case GRANT_AHEAD:
	case GRANT_BACK:
	case ALLOW_BACK:
		h.type = RGPU_D_GRANT;
		h.len = trick == GRANT_SHORT ? 8 : sizeof(g);
		p = &g;
		if (trick == GRANT_AHEAD)
			g.received = 1000;
		else if (trick == GRANT_BACK)
			g.received = 0;
		else if (trick == ALLOW_BACK)
			g.allow = 5;
		break;
	case REPLY_PART:
		h.len = 40;
		break;
	case REPLY_LEN:
		rep.len = 64;
		break;
	case REPLY_ODD:
		rep.len = 56;
		h.len = 56;
		p = memcpy(buf, &rep, sizeof(rep));
		break;
	case REPLY_HUGE:
		h.len = rep.len = sizeof(buf);
		p = memcpy(buf, &rep, sizeof(rep));
		break;
	case REPLY_BODY:
		rep.body_len = 1;
		break;
	case REPLY_FLAGS:
		rep.flags = RGPU_REP_PAD;
		break;
	case REPLY_GAP:
		rep.rseq = 3;
		break;
	case REPLY_SEQ:
		rep.seq = 1000;
		break;
	case REPLY_SEQ_ZERO:
		rep.seq = 0;
		break;
	case PING_LONG:
		h.type = RGPU_D_PING;
		break;
	case BYE_SHORT:
	case BYE_GOOD:
	case BYE_RUDE:
		if (trick == BYE_RUDE)
			strcpy(bye.text, "\033]0;mine\007\nrgpu: all is \x9b"
					 "2Jwell");
		h.type = RGPU_D_BYE;
		h.len = trick == BYE_SHORT ? 4 : sizeof(bye);
		p = &bye;
		break;
	case CREDIT:
		h.len = rep.len = 16 << 10;
		for (int i = 1; i <= 4; i++) {
			rep.rseq = i + 1;
			memcpy(buf, &rep, sizeof(rep));
			rgpu_link_write(l, &h, sizeof(h));
			rgpu_link_write(l, buf, h.len);
		}
		p = buf;
		break;
	default:
		h.type = RGPU_D_DATA;
		h.len = sizeof(d);
		p = &d;
		if (trick == DATA_SHORT)
			h.len = 20;
		else if (trick == DATA_EMPTY)
			h.len = sizeof(d.d);
		else if (trick == DATA_NO_BO)
			d.d.bo = 77;
		else if (trick == DATA_BEYOND)
			d.d.off = APP_BO_BYTES - 63;
		else if (trick == DATA_WRAPS)
			d.d.off = UINT64_MAX - 5;
		else if (trick == DATA_SEQ)
			d.d.seq = 1000;
	}
	(void)f;
	rgpu_link_write(l, &h, sizeof(h));
	rgpu_link_write(l, p, h.len <= sizeof(buf) ? h.len : sizeof(rep));
}

/*
 * The first connection is cut after the program's records came; on the second, whose ATTACH names the channel, the server
 * misbehaves.
 */
static void hostile_servers(void)
{
	for (trick = 0; trick < SERVER_TRICKS; trick++) {
		struct rgpu_seg s = {1, RGPU_SEG_RECV, 0, 100};
		unsigned unprintable = 0;
		struct fake f;
		struct app app;
		uint8_t guard[64];

		fake_start(&f);
		app_start(&app, &f, trick % 2, 1, RGPU_SQ_DEFAULT, RGPU_CQ_DEFAULT);
		memset(guard, 0x5a, sizeof(guard));
		memcpy(app.bo[1] + APP_BO_BYTES - 63, guard, 63);
		app_post(&app, 0, FAKE_NOP, 0, NULL, 0, NULL, 0);
		app_post(&app, 0, FAKE_D2H, 0, &s, 0, NULL, 0);
		app_acked(&app, 0, 2);
		pthread_mutex_lock(&f.lock);
		f.on_attach = trick_server;
		f.cut_at = f.events + 1;
		pthread_mutex_unlock(&f.lock);
		app_post(&app, 0, FAKE_NOP, 0, NULL, 0, NULL, 0);
		is_int(app_failed(&app), trick == BYE_GOOD || trick == BYE_RUDE ? -EOVERFLOW : -EPROTO, "%s: %s",
		       server_tricks[trick], app.why);
		for (const char *at = app.why; *at; at++)
			unprintable += *at < ' ' || *at > '~';
		is_int(unprintable, 0, "… in a line of text");
		ok(app.why[0] != 0, "… says why");
		ok(!memcmp(guard, app.bo[1] + APP_BO_BYTES - 63, 63), "… and wrote nothing");
		app_stop(&app);
		is_int(app.maps, 0, "… and leaves no map");
		fake_stop(&f);
	}
}

/* A server that lies in ATTACHED, and one that gave the session up. */
static void resumes_wrongly(void)
{
	static const struct {
		const char *what;
		uint64_t lie;
		bool refuse;
		int reason;
	} t[] = {
		{"a server that lost records", -1ull, false, -EPROTO},
		{"a server that has records that were never sent", 7, false, -EPROTO},
		{"a server that gave the session up", 0, true, -ENOENT},
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct fake f;
		struct app app;

		fake_start(&f);
		app_start(&app, &f, i % 2, 1, RGPU_SQ_DEFAULT, RGPU_CQ_DEFAULT);
		app_post(&app, 0, FAKE_NOP, 0, NULL, 0, NULL, 0);
		app_post(&app, 0, FAKE_NOP, 0, NULL, 0, NULL, 0);
		app_acked(&app, 0, 2);
		pthread_mutex_lock(&f.lock);
		f.lie_received = t[i].lie;
		f.refuse_resume = t[i].refuse;
		f.cut_at = f.events + 1;
		pthread_mutex_unlock(&f.lock);
		app_post(&app, 0, FAKE_NOP, 0, NULL, 0, NULL, 0);
		is_int(app_failed(&app), t[i].reason, "%s: %s", t[i].what, app.why);
		is_int(app_post(&app, 0, FAKE_BODY, RGPU_REC_FENCE, NULL, 0, NULL, 0), 0, "… a record may still be written");
		is_int(app_published(&app, 0, 1), t[i].reason, "… but a wait for its answer ends");
		app_stop(&app);
		fake_stop(&f);
	}
}

/* The server is away for longer than it keeps a session. */
static void away(void)
{
	struct fake f;
	struct app app;

	fake_start(&f);
	app_start(&app, &f, true, 1, RGPU_SQ_DEFAULT, RGPU_CQ_DEFAULT);
	app_post(&app, 0, FAKE_NOP, 0, NULL, 0, NULL, 0);
	app_acked(&app, 0, 1);
	fake_stop(&f);
	app_post(&app, 0, FAKE_NOP, 0, NULL, 0, NULL, 0);
	is_int(app_published(&app, 0, 1), -ETIMEDOUT, "a server that does not come back: %s", app.why);
	app_stop(&app);
}

int main(void)
{
	hostile_programs();
	gone_bo();
	lent_bo();
	hostile_servers();
	resumes_wrongly();
	away();
	return tap_done();
}
