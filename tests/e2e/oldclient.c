/* SPDX-License-Identifier: MIT */
/* A client whose library is of another version: starts a session as one of API version N would, and prints what comes of it.
 * Usage: oldclient PORT KEY N */
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <linux/rgpu.h>
#include "api/hello.h"
#include "lib/addr.h"
#include "lib/key.h"
#include "usermode-proxy/control.h"

int main(int argc, char **argv)
{
	struct rgpu_shim_hello hello = {.magic = RGPU_HELLO_MAGIC, .cuda_version = 13000};
	struct rgpu_start s = {.epoch = 1, .comm = "oldclient", .data_len = sizeof(hello)};
	struct rgpu_addr server = {.host = "127.0.0.1"};
	struct rgpu_auth auth = {0};
	char why[RGPU_WHY_MAX];
	struct rgpu_lease lease;
	struct rgpu_ctl *c;

	if (argc != 4 || getrandom(s.sid, sizeof(s.sid), 0) != sizeof(s.sid))
		return 2;
	server.port = atoi(argv[1]);
	hello.api_version = atoi(argv[3]);
	if (rgpu_key_load(argv[2], &auth.key, why)) {
		fprintf(stderr, "oldclient: %s\n", why);
		return 2;
	}
	c = rgpu_ctl_new(&server, &auth, "oldclient");
	if (!c || rgpu_ctl_start(c, false, &s, &hello, &lease, why)) {
		fprintf(stderr, "oldclient: %s\n", why);
		return 1;
	}
	printf("oldclient: it has a session\n");
	rgpu_ctl_end(c, s.sid, why);
	rgpu_ctl_free(c);
	return 0;
}
