// SPDX-License-Identifier: GPL-2.0
/* Bounds on what one session, and all of them, may have; and that what is given back can be had again. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tests/selftests/rgpu/stub.h"

#define MIB (1 << 20)

static unsigned int limit(struct nl *nl, __u16 attr)
{
	struct msg m, a;

	msg_begin(nl, &m, RGPU_CMD_LIMITS_GET);
	return nl_call(nl, &m, &a) ? ~0u : msg_get_u32(&a, attr);
}

static void limits_by_netlink(struct proxy *p)
{
	struct nl nobody;
	struct msg m;

	is_int(limit(&p->nl, RGPU_A_MAX_SESSIONS), 1024, "LIMITS_GET tells what the parameter says");
	msg_begin(&p->nl, &m, RGPU_CMD_LIMITS_SET);
	msg_u32(&m, RGPU_A_USER_MIB, 77);
	is_int(nl_call(&p->nl, &m, NULL), 0, "LIMITS_SET");
	is_int(limit(&p->nl, RGPU_A_USER_MIB), 77, "changes what is given");
	is_int(limit(&p->nl, RGPU_A_MAX_SESSIONS), 1024, "and nothing else");
	parameter("user_mib", "0");
	is_int(limit(&p->nl, RGPU_A_USER_MIB), 0, "the parameter is the same value");
	if (seteuid(65534) || nl_open(&nobody))
		return;
	msg_begin(&nobody, &m, RGPU_CMD_LIMITS_SET);
	msg_u32(&m, RGPU_A_USER_MIB, 1);
	is_int(nl_call(&nobody, &m, NULL), -EPERM, "LIMITS_SET is the administrator's");
	is_int(limit(&nobody, RGPU_A_USER_MIB), 0, "LIMITS_GET is anyone's");
	nl_close(&nobody);
	is_int(seteuid(0), 0, "root again");
}

static void fdinfo(int fd)
{
	char path[64], buf[1024] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "r");
	if (f) {
		buf[fread(buf, 1, sizeof(buf) - 1, f)] = 0;
		fclose(f);
	}
	ok(strstr(buf, "rgpu-device:\t0\n") && strstr(buf, "rgpu-state:\tlive\n") && strstr(buf, "rgpu-memory:\t1540 KiB\n"),
	   "fdinfo tells the device, the session's state and its memory");
	if (!strstr(buf, "rgpu-memory:\t1540 KiB\n"))
		printf("# %s\n", buf);
}

int main(void)
{
	int fd, fd2, sfd, sfd2, i, made = 0;
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
	parameter("max_cgroup_sessions", "1");
	is_int(app_start(fd, NULL), -EUSERS, "a second session of a cgroup that may have one");
	parameter("max_cgroup_sessions", "0");

	parameter("user_mib", "3");
	is_int(app_bo(fd2, 2 * MIB, &h[0]), 0, "2 MiB of a user's 3");
	sfd2 = start_with(&p, fd, NULL);
	is_int(app_bo(fd, 2 * MIB, NULL), -EDQUOT, "2 MiB more, in another session of his");
	is_int(app_bo(fd, MIB / 2, &h[1]), 0, "half a MiB");
	parameter("user_mib", "0");
	parameter("cgroup_mib", "3");
	is_int(app_bo(fd, MIB, NULL), -EDQUOT, "the same for a cgroup");
	is_int(app_bo_destroy(fd2, h[0]), 0, "what one session gives back");
	is_int(app_bo(fd, MIB, &h[2]), 0, "the other can have");
	parameter("cgroup_mib", "0");
	limits_by_netlink(&p);
	fdinfo(fd);
	close(fd);
	close(fd2);
	close(sfd2);
	is_int(acknowledge(&p), 2, "GONE");
	close(sfd);
	proxy_close(&p);
	nothing_left();
	return tap_done();
}
