// SPDX-License-Identifier: MIT
/* The control connection against a scripted listener: versions, nonsense, errors, leases, and a listener that comes back. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/rgpu.h>
#include "lib/link.h"
#include "tests/tap.h"
#include "usermode-proxy/control.h"

static struct rgpu_auth auth;

/* What the listener does; set before the client's request. */
static struct script {
	uint32_t major, magic;
	uint64_t features;
	bool error_first; /* ERROR instead of WELCOME */
	bool short_welcome;
	bool wrong_type; /* an answer of another type */
	bool damaged_devices;
	bool strange_words;		/* that a terminal would obey */
	bool other_sid;			/* STARTED for another session */
	int drop_after;			/* closes after so many requests; 0 never */
	struct rgpu_error_frame refuse; /* err ≠ 0: the answer to everything but HELLO */
} script;

static int listen_fd;
static bool stop;		     /* atomic */
static unsigned connections, starts; /* atomic */
static uint8_t exported[RGPU_KEY_LEN];
static uint16_t started_type;

static bool find(void *arg, const char *identity, uint8_t out[RGPU_KEY_LEN])
{
	(void)arg;
	memcpy(out, auth.key.secret, RGPU_KEY_LEN);
	return !strcmp(identity, auth.key.identity);
}

static void send_devices(struct rgpu_link *l)
{
	struct {
		struct rgpu_device_entry e;
		char props[8];
	} d[2] = {{{.name = "one", .mem_total = 7, .props_len = 5}, "props"}, {{.name = "two", .props_len = 8}, "eight..."}};

	if (script.strange_words)
		memset(d[0].e.name, '\033', sizeof(d[0].e.name));
	if (script.damaged_devices)
		d[1].e.props_len = 9;
	rgpu_link_send_frame(l, RGPU_C_DEVICE_LIST, 0, d, sizeof(d), 1000);
}

static void send_started(struct rgpu_link *l, const uint8_t *req, uint16_t type)
{
	struct rgpu_started s = {.lease = 5, .grace_ms = 1234};
	uint8_t ctx[20];

	memcpy(s.sid, req, 16);
	memset(s.token, 0x77, sizeof(s.token));
	memcpy(ctx, s.sid, 16);
	memcpy(ctx + 16, &s.lease, 4);
	rgpu_link_export(l, RGPU_DATA_LABEL, ctx, sizeof(ctx), exported, sizeof(exported));
	__atomic_add_fetch(&starts, 1, __ATOMIC_SEQ_CST);
	started_type = type;
	if (script.other_sid)
		s.sid[3] ^= 1;
	rgpu_link_send_frame(l, RGPU_C_STARTED, 0, &s, sizeof(s), 1000);
}

static bool answer(struct rgpu_link *l, const struct rgpu_frame *f, const uint8_t *req)
{
	struct rgpu_welcome w = {.magic = script.magic,
				 .major = script.major,
				 .features = script.features,
				 .agent = "rgpu-server 9.9",
				 .driver = "none",
				 .ndevices = 2};
	struct rgpu_error_frame old = {.err = EPROTO, .text = "this server speaks 7.0, the client 1.0"};
	uint32_t stats[4] = {1, 2, 3, 4};

	if (script.strange_words) {
		memcpy(w.agent, "a\033[2J\n\xc3\xbc", 9);
		memset(w.driver, '\a', sizeof(w.driver));
	}
	if (f->type == RGPU_C_HELLO) {
		if (script.error_first)
			rgpu_link_send_frame(l, RGPU_C_ERROR, 0, &old, sizeof(old), 1000);
		else
			rgpu_link_send_frame(l, RGPU_C_WELCOME, 0, &w, script.short_welcome ? 20 : sizeof(w), 1000);
		return true;
	}
	if (script.drop_after && !--script.drop_after)
		return false;
	if (script.refuse.err) {
		rgpu_link_send_frame(l, RGPU_C_ERROR, 0, &script.refuse, sizeof(script.refuse), 1000);
	} else if (script.wrong_type) {
		rgpu_link_send_frame(l, RGPU_C_WELCOME, 0, &w, sizeof(w), 1000);
	} else {
		switch (f->type) {
		case RGPU_C_DEVICES:
			send_devices(l);
			break;
		case RGPU_C_START:
		case RGPU_C_RESUME:
			send_started(l, req, f->type);
			break;
		case RGPU_C_STATS:
			rgpu_link_send_frame(l, RGPU_C_STATS_LIST, 0, stats, sizeof(stats), 1000);
			break;
		case RGPU_C_TELEMETRY: /* a ping is answered by nothing */
			rgpu_link_send_frame(l, RGPU_C_TELEMETRY_LIST, 0, stats, *(const uint32_t *)req ? sizeof(stats) : 0,
					     1000);
			break;
		default:
			rgpu_link_send_frame(l, RGPU_C_OK, 0, NULL, 0, 1000);
		}
	}
	return true;
}

static void *serve(void *arg)
{
	static uint8_t buf[RGPU_FRAME_MAX];

	(void)arg;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		struct pollfd p = {.fd = listen_fd, .events = POLLIN};
		struct rgpu_link *l;
		struct rgpu_frame f;
		int fd;

		if (poll(&p, 1, 10) <= 0)
			continue;
		fd = accept(listen_fd, NULL, NULL);
		if (fd < 0)
			continue;
		__atomic_add_fetch(&connections, 1, __ATOMIC_SEQ_CST);
		l = rgpu_link_server(fd, find, NULL);
		if (!rgpu_link_handshake_wait(l, 5000))
			while (rgpu_link_recv_frame(l, &f, buf, sizeof(buf), 20000) >= 0 && answer(l, &f, buf))
				;
		rgpu_link_free(l);
	}
	return NULL;
}

static struct rgpu_ctl *fresh(const struct rgpu_addr *a)
{
	script = (struct script){.major = RGPU_WIRE_MAJOR, .magic = RGPU_MAGIC};
	return rgpu_ctl_new(a, &auth, "rgpu-test 0.1");
}

static void greetings(const struct rgpu_addr *a)
{
	struct rgpu_welcome w;
	char why[RGPU_WHY_MAX];
	struct rgpu_devices d;
	struct rgpu_ctl *c;

	c = fresh(a);
	is_int(rgpu_ctl_fd(c), -1, "no connection before it is needed");
	is_int(rgpu_ctl_hello(c, &w, why), 0, "a greeting");
	is_str(w.agent, "rgpu-server 9.9", "… with the server's name");
	ok(rgpu_ctl_fd(c) >= 0, "… and a connection that stays");
	rgpu_ctl_free(c);

	c = fresh(a);
	script.major = 7;
	is_int(rgpu_ctl_hello(c, NULL, why), -EPROTO, "another version: %s", why);
	ok(strstr(why, "rgpu-test 0.1") && strstr(why, "rgpu-server 9.9") && strstr(why, "7.0") && strstr(why, "1."),
	   "… names both");
	rgpu_ctl_free(c);

	c = fresh(a);
	script.error_first = true;
	is_int(rgpu_ctl_hello(c, NULL, why), -EPROTO, "a server that refuses the version: %s", why);
	is_str(why, "this server speaks 7.0, the client 1.0", "… in its own words");
	rgpu_ctl_free(c);

	c = fresh(a);
	script.magic = 1;
	is_int(rgpu_ctl_hello(c, NULL, why), -EPROTO, "another program: %s", why);
	rgpu_ctl_free(c);

	c = fresh(a);
	script.strange_words = true;
	is_int(rgpu_ctl_hello(c, &w, why), 0, "a server with strange words");
	is_str(w.agent, "a?[2J???", "… says none to a terminal");
	ok(strlen(w.driver) == sizeof(w.driver) - 1 && strspn(w.driver, "?") == strlen(w.driver), "… nor in what answers there");
	is_int(rgpu_ctl_devices(c, &d, why), 0, "… its devices");
	ok(strlen(d.entry[0]->name) == sizeof(d.entry[0]->name) - 1 && strspn(d.entry[0]->name, "?") == strlen(d.entry[0]->name),
	   "… neither");
	rgpu_devices_free(&d);
	script.refuse = (struct rgpu_error_frame){.err = ENOENT, .text = "no\033]0;a title\a"};
	is_int(rgpu_ctl_end(c, (uint8_t[16]){0}, why), -ENOENT, "… its reasons");
	is_str(why, "no?]0;a title?", "… neither");
	rgpu_ctl_free(c);

	c = fresh(a);
	script.short_welcome = true;
	is_int(rgpu_ctl_hello(c, NULL, why), -EPROTO, "a short greeting: %s", why);
	rgpu_ctl_free(c);
}

/* A server of the first release is not asked what it does not know. */
static void telemetry(struct rgpu_ctl *c)
{
	struct rgpu_telemetry_ask live = {.what = RGPU_TELEMETRY_LIVE}, link = {.what = RGPU_TELEMETRY_LINK};
	struct rgpu_telemetry_link l;
	char why[RGPU_WHY_MAX];
	uint8_t buf[64];

	is_int(rgpu_ctl_telemetry(c, &live, buf, sizeof(buf), why), -EOPNOTSUPP, "an old server has no telemetry: %s", why);
	is_int(rgpu_ctl_telemetry(c, &link, &l, sizeof(l), why), -EOPNOTSUPP, "nor does it answer pings");
	script.features = RGPU_WIRE_TELEMETRY;
	rgpu_ctl_drop(c);
	is_int(rgpu_ctl_telemetry(c, &live, buf, sizeof(buf), why), 16, "TELEMETRY of a new one");
	is_int(rgpu_ctl_telemetry(c, &live, buf, 15, why), -EMSGSIZE, "without room: %s", why);
	is_int(rgpu_ctl_telemetry(c, &link, &l, sizeof(l), why), sizeof(l), "the link is described here");
	ok(l.samples == 8 && l.rtt_p50 > 0 && l.rtt_p50 <= l.rtt_p99, "with round trips: %llu and %llu ns", l.rtt_p50, l.rtt_p99);
	ok(!strncmp(l.tls, "TLSv1.3 TLS_", 12) && !strcmp(l.agent, "rgpu-server 9.9"), "and how it is protected: %s", l.tls);
	script.features = 0;
	rgpu_ctl_drop(c);
}

static void requests(const struct rgpu_addr *a)
{
	struct rgpu_start st = {.sid = {1, 2, 3}, .data_len = 4};
	char why[RGPU_WHY_MAX], buf[64];
	struct rgpu_devices d;
	struct rgpu_ctl *c;
	struct rgpu_lease l;

	c = fresh(a);
	is_int(rgpu_ctl_devices(c, &d, why), 0, "devices");
	is_int(d.n, 2, "… two");
	is_str(d.entry[0]->name, "one", "… the first's name");
	ok(d.entry[0]->props_len == 5 && !memcmp(d.entry[0] + 1, "props", 5), "… and properties");
	ok(!memcmp(d.entry[1] + 1, "eight...", 8), "… the second's properties");
	rgpu_devices_free(&d);
	script.damaged_devices = true;
	is_int(rgpu_ctl_devices(c, &d, why), -EPROTO, "a damaged list: %s", why);
	script.damaged_devices = false;
	is_int(rgpu_ctl_start(c, false, &st, "data", &l, why), 0, "START");
	is_int(started_type, RGPU_C_START, "… as START");
	ok(l.lease == 5 && l.grace_ms == 1234 && l.token[7] == 0x77, "… gives a lease");
	ok(!memcmp(l.key, exported, sizeof(exported)), "… and both ends the same key");
	st.data_len = 0;
	is_int(rgpu_ctl_start(c, true, &st, NULL, &l, why), 0, "RESUME");
	is_int(started_type, RGPU_C_RESUME, "… as RESUME");
	script.other_sid = true;
	is_int(rgpu_ctl_start(c, true, &st, NULL, &l, why), -EPROTO, "a lease of another session: %s", why);
	script.other_sid = false;
	st.data_len = RGPU_CONTROL_MAX + 1;
	is_int(rgpu_ctl_start(c, false, &st, buf, &l, why), -EMSGSIZE, "too much data: %s", why);
	is_int(rgpu_ctl_join(c, st.sid, 1, 1, why), 0, "JOIN");
	is_int(rgpu_ctl_end(c, st.sid, why), 0, "END");
	is_int(rgpu_ctl_stats(c, buf, sizeof(buf), why), 16, "STATS");
	is_int(rgpu_ctl_stats(c, buf, 15, why), -EMSGSIZE, "STATS without room: %s", why);
	telemetry(c);
	script.wrong_type = true;
	is_int(rgpu_ctl_end(c, st.sid, why), -EPROTO, "an answer of another type: %s", why);
	script.wrong_type = false;
	script.refuse = (struct rgpu_error_frame){.err = EDQUOT, .text = "the quota is used up"};
	is_int(rgpu_ctl_join(c, st.sid, 1, 1, why), -EDQUOT, "a refusal");
	is_str(why, "the quota is used up", "… with its text");
	script.refuse.err = 100000;
	is_int(rgpu_ctl_join(c, st.sid, 1, 1, why), -EPROTO, "a refusal of no known class");
	rgpu_ctl_free(c);
}

/* Whatever breaks under a request on an old connection is tried again once, on a new one. */
static void breaks(const struct rgpu_addr *a)
{
	struct rgpu_start st = {.sid = {9}};
	char why[RGPU_WHY_MAX];
	struct rgpu_addr nobody = {.host = "127.0.0.1", .port = 1};
	struct rgpu_ctl *c;
	struct rgpu_lease l;
	unsigned before;

	c = fresh(a);
	rgpu_ctl_hello(c, NULL, why);
	before = __atomic_load_n(&connections, __ATOMIC_SEQ_CST);
	script.drop_after = 1;
	is_int(rgpu_ctl_start(c, false, &st, NULL, &l, why), 0, "the connection breaks under a START, which is asked again");
	is_int(__atomic_load_n(&connections, __ATOMIC_SEQ_CST) - before, 1, "… on one more connection");
	rgpu_ctl_drop(c);
	is_int(rgpu_ctl_fd(c), -1, "dropped");
	is_int(rgpu_ctl_end(c, st.sid, why), 0, "… and made again when needed");
	rgpu_ctl_free(c);

	c = rgpu_ctl_new(&nobody, &auth, "rgpu-test 0.1");
	is_int(rgpu_ctl_hello(c, NULL, why), -ECONNREFUSED, "nobody: %s", why);
	ok(rgpu_ctl_retryable(-ECONNREFUSED) && !rgpu_ctl_retryable(-EACCES) && !rgpu_ctl_retryable(-ENOENT),
	   "what may be tried again");
	rgpu_ctl_free(c);
}

int main(void)
{
	struct rgpu_addr a = {.host = "127.0.0.1"};
	char why[RGPU_WHY_MAX], text[RGPU_KEY_TEXT_MAX];
	pthread_t t;

	snprintf(text, sizeof(text), "%s\n%064d\n", RGPU_KEY_FILE_MAGIC, 42);
	rgpu_key_parse(text, &auth.key, why);
	listen_fd = rgpu_addr_listen(&a, &a.port, why);
	pthread_create(&t, NULL, serve, NULL);
	greetings(&a);
	requests(&a);
	breaks(&a);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(t, NULL);
	close(listen_fd);
	return tap_done();
}
