// SPDX-License-Identifier: GPL-2.0
/* Bounds on what one session, and all of them, may have; and that what is given back can be had again. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tests/selftests/rgpu/stub.h"

#define MIB (1 << 20)

int main(void)
{
	int fd, fd2, sfd, i, made = 0;
	struct proxy p;
	__u32 h[4];
	char *m;

	if (!ok(proxy_open(&p) == 0 && proxy_online(&p, 0, 1) == 0, "the proxy registers"))
		return tap_done();
	parameter("session_mib", "4");
	fd = app_open(0);
	fd2 = app_open(0);
	sfd = start_with(&p, fd, NULL);
	is_int(app_bo(fd, 5 * MIB, NULL), -EDQUOT, "more than a session may have");
	is_int(app_bo(fd, 2 * MIB, &h[0]), 0, "half of it");
	is_int(app_bo(fd, 2 * MIB, NULL), -EDQUOT, "the other half, but for the K page");
	is_int(app_bo(fd, 2 * MIB - 4096, &h[1]), 0, "what is left");
	is_int(app_bo(fd, 4096, NULL), -EDQUOT, "one page more");
	is_int(app_channel(fd, 4096, NULL), -EDQUOT, "rings count too");
	m = map(fd, RGPU_MMAP_BO(h[0]), 2 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED);
	is_int(app_bo_destroy(fd, h[0]), 0, "one destroyed while it is mapped");
	is_int(app_bo(fd, 4096, NULL), -EDQUOT, "gives nothing back");
	munmap(m, 2 * MIB);
	is_int(app_bo(fd, 2 * MIB, &h[2]), 0, "unmapped, it does");
	is_int(app_bo_destroy(fd, h[1]) | app_bo_destroy(fd, h[2]), 0, "all destroyed");
	is_int(counter("bo_bytes"), 0, "nothing is left");
	is_int(counter("pages"), 1, "but the K page");

	for (i = 0; i < RGPU_CHANNELS_MAX; i++) {
		__u32 ch;

		if (app_channel(fd, 4096, &ch) || ch != (__u32)i)
			break;
		made++;
		if (i != 3)
			app_channel_destroy(fd, ch);
	}
	is_int(made, RGPU_CHANNELS_MAX, "as many channels as there can be");
	is_int(app_channel(fd, 4096, NULL), -ENOSPC, "one more");
	is_int(counter("channels"), 1, "one of them stands");
	parameter("session_mib", "0");

	parameter("max_sessions", "1");
	is_int(app_start(fd2, NULL), -EUSERS, "a second session where one is allowed");
	close(fd);
	is_int(app_start(fd2, NULL), -EUSERS, "one whose end nobody acknowledged counts");
	is_int(acknowledge(&p), 1, "acknowledged");
	close(sfd);
	sfd = start_with(&p, fd2, NULL);
	ok(sfd >= 0, "now there is room");
	parameter("max_sessions", "1024");
	fd = app_open(0);
	parameter("max_user_sessions", "1");
	is_int(app_start(fd, NULL), -EUSERS, "a second session of a user who may have one");
	parameter("max_user_sessions", "256");
	close(fd);
	close(fd2);
	is_int(acknowledge(&p), 1, "GONE");
	close(sfd);
	proxy_close(&p);
	nothing_left();
	return tap_done();
}
