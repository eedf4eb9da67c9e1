/* SPDX-License-Identifier: MIT */
/*
 * A client with a key that means ill: garbage after the handshake, records with stale handles, forged stamps, floods of sessions,
 * until its standard input ends. Usage: hostile PORT KEYFILE SEED; prints how often it did each.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/rgpu.h>
#include "api/hello.h"
#include "lib/addr.h"
#include "lib/key.h"
#include "lib/link.h"
#include "tests/e2e/e2e.h"
#include "usermode-proxy/control.h"

#define WAIT_MS 10000
#define FLOOD	40
#define RECORDS 60

static struct rgpu_addr server = {.host = "127.0.0.1"};
static struct rgpu_auth auth;
static uint32_t state;
static unsigned garbage, forged, flooded, refused;

static uint32_t any(uint32_t below)
{
	return e2e_next(&state) % below;
}

static struct rgpu_link *control(void)
{
	char why[RGPU_WHY_MAX];
	int fd = rgpu_addr_connect(&server, WAIT_MS, why);
	struct rgpu_link *l = fd < 0 ? NULL : rgpu_link_client(fd, auth.key.identity, auth.key.secret);

	if (l && !rgpu_link_handshake_wait(l, WAIT_MS))
		return l;
	rgpu_link_free(l);
	return NULL;
}

/* Behind a good handshake: frames of any type and length, true or not. */
static void send_garbage(void)
{
	struct rgpu_hello h = {.magic = RGPU_MAGIC, .major = RGPU_WIRE_MAJOR, .agent = "hostile"};
	struct rgpu_link *l = control();
	uint8_t buf[5000];
	struct rgpu_frame f;

	if (!l)
		return;
	if (any(2) && !rgpu_link_send_frame(l, RGPU_C_HELLO, 0, &h, sizeof(h), WAIT_MS))
		rgpu_link_recv_frame(l, &f, buf, sizeof(buf), WAIT_MS);
	for (int i = 0; i < 5; i++) {
		for (unsigned k = 0; k < sizeof(buf); k++)
			buf[k] = any(256);
		if (any(3))
			rgpu_link_send_frame(l, any(20), any(400), buf, any(sizeof(buf)), 100);
		else
			rgpu_link_write(l, buf, 1 + any(sizeof(buf)));
	}
	rgpu_link_free(l);
	garbage++;
}

static int start(struct rgpu_ctl *c, struct rgpu_lease *lease)
{
	struct rgpu_shim_hello hello = {.magic = RGPU_HELLO_MAGIC, .api_version = RGPU_API_VERSION, .cuda_version = 13000};
	struct rgpu_start s = {.epoch = 1, .uid = 666, .pid = 1, .comm = "hostile", .data_len = sizeof(hello)};
	char why[RGPU_WHY_MAX];

	if (getrandom(s.sid, sizeof(s.sid), 0) != sizeof(s.sid))
		die("no random numbers");
	return rgpu_ctl_start(c, false, &s, &hello, lease, why);
}

static struct rgpu_link *data(const struct rgpu_lease *lease)
{
	struct rgpu_preface pre = {.magic = RGPU_PREFACE_MAGIC, .lease = lease->lease};
	char why[RGPU_WHY_MAX];
	int fd = rgpu_addr_connect(&server, WAIT_MS, why);
	struct rgpu_link *l;

	if (fd < 0)
		return NULL;
	memcpy(pre.token, lease->token, sizeof(pre.token));
	if (send(fd, &pre, sizeof(pre), MSG_NOSIGNAL) != sizeof(pre) ||
	    !(l = rgpu_link_client(fd, RGPU_DATA_IDENTITY, lease->key))) {
		close(fd);
		return NULL;
	}
	if (!rgpu_link_handshake_wait(l, WAIT_MS) && !rgpu_link_send_frame(l, RGPU_D_ATTACH, 0, NULL, 0, WAIT_MS))
		return l;
	rgpu_link_free(l);
	return NULL;
}

/* Records of the driver's table with bodies that are made up, and stamps that repeat, go back, or leap. */
static void send_forged(void)
{
	char why[RGPU_WHY_MAX];
	struct rgpu_ctl *c = rgpu_ctl_new(&server, &auth, "hostile");
	struct rgpu_lease lease;
	struct rgpu_link *l;
	uint64_t stamp = 1;

	if (!c || start(c, &lease)) {
		refused++;
		rgpu_ctl_free(c);
		return;
	}
	l = data(&lease);
	for (unsigned i = 1; l && i <= RECORDS; i++) {
		struct {
			struct rgpu_rec rec;
			uint64_t body[12];
		} m = {.rec = {.len = sizeof(m), .op = any(700), .flags = any(2), .seq = i}};

		for (unsigned k = 0; k < 12; k++)
			m.body[k] = any(3) ? (uint64_t)any(1 << 24) << any(40) | (any(2) ? 0x5247ull << 48 : 0) : UINT64_MAX;
		m.rec.after = any(4) ? 0 : stamp - 1;
		m.rec.stamp = any(40) ? stamp++ : any(1000);
		if (rgpu_link_send_frame(l, RGPU_D_RECORDS, any(4) ? 0 : any(3), &m, sizeof(m), 200))
			break;
	}
	rgpu_link_free(l);
	if (any(2))
		rgpu_ctl_end(c, lease.sid, why);
	rgpu_ctl_free(c);
	forged++;
}

/* As many sessions as it can get, and none of them used. */
static void flood(void)
{
	struct rgpu_ctl *c = rgpu_ctl_new(&server, &auth, "hostile");
	struct rgpu_lease lease[FLOOD];
	char why[RGPU_WHY_MAX];
	unsigned n = 0;

	while (c && n < FLOOD && !start(c, &lease[n]))
		n++;
	refused += n < FLOOD;
	while (n--)
		rgpu_ctl_end(c, lease[n].sid, why);
	rgpu_ctl_free(c);
	flooded++;
}

int main(int argc, char **argv)
{
	char why[RGPU_WHY_MAX];

	if (argc != 4 || rgpu_key_load(argv[2], &auth.key, why))
		return 2;
	server.port = atoi(argv[1]);
	state = atoi(argv[3]);
	do {
		send_garbage();
		send_forged();
		send_garbage();
		flood();
	} while (!e2e_told_to_end());
	printf("hostile: %u times garbage, %u times forged records, %u floods, %u times refused a session\n", garbage, forged,
	       flooded, refused);
	return 0;
}
