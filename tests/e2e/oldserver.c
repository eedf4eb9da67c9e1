/* SPDX-License-Identifier: MIT */
/* A server of another version: takes the right key, then names MAJOR.MINOR. Usage: oldserver KEY MAJOR MINOR; prints its port */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/rgpu.h>
#include "lib/addr.h"
#include "lib/key.h"
#include "lib/link.h"

static bool find(void *arg, const char *identity, uint8_t key[RGPU_KEY_LEN])
{
	const struct rgpu_key *k = arg;

	if (strcmp(identity, k->identity))
		return false;
	memcpy(key, k->secret, RGPU_KEY_LEN);
	return true;
}

static void serve(int fd, struct rgpu_key *key, int major, int minor)
{
	struct rgpu_link *l = rgpu_link_server(fd, find, key);
	struct rgpu_welcome w = {
		.magic = RGPU_MAGIC, .major = major, .minor = minor, .agent = "oldserver", .driver = "none", .ndevices = 1};
	struct rgpu_frame hdr;
	char buf[4096];

	if (l && !rgpu_link_handshake_wait(l, 10000) && rgpu_link_recv_frame(l, &hdr, buf, sizeof(buf), 10000) >= 0 &&
	    hdr.type == RGPU_C_HELLO) {
		rgpu_link_send_frame(l, RGPU_C_WELCOME, 0, &w, sizeof(w), 10000);
		rgpu_link_recv_frame(l, &hdr, buf, sizeof(buf), 2000); /* until the client has read it and hangs up */
	}
	rgpu_link_free(l);
}

int main(int argc, char **argv)
{
	struct rgpu_addr addr = {.host = "127.0.0.1"};
	char why[RGPU_WHY_MAX];
	struct rgpu_key key;
	uint16_t port;
	int fd;

	if (argc != 4)
		return 2;
	if (rgpu_key_load(argv[1], &key, why) || (fd = rgpu_addr_listen(&addr, &port, why)) < 0) {
		fprintf(stderr, "oldserver: %s\n", why);
		return 1;
	}
	printf("%u\n", port);
	fflush(stdout);
	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		int c;

		if (poll(&p, 1, 60000) <= 0)
			return 0;
		c = accept(fd, NULL, NULL);
		if (c >= 0)
			serve(c, &key, atoi(argv[2]), atoi(argv[3]));
	}
}
