// SPDX-License-Identifier: GPL-2.0
/* Who can become the proxy, and what those who are not may ask. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/selftests/rgpu/stub.h"

static struct proxy p;

static int simple(struct nl *nl, __u8 cmd)
{
	struct msg m;

	msg_begin(nl, &m, cmd);
	return nl_call(nl, &m, NULL);
}

static int with_device(struct nl *nl, __u8 cmd, __u32 dev)
{
	struct msg m;

	msg_begin(nl, &m, cmd);
	msg_u32(&m, RGPU_A_DEVICE, dev);
	return nl_call(nl, &m, NULL);
}

static void refused(void)
{
	int null = open("/dev/null", O_RDWR), ctl = open("/dev/rgpu-ctl", O_RDWR), ctl2 = open("/dev/rgpu-ctl", O_RDWR);
	struct nl a, b;
	struct msg m;
	__u32 epoch, first;

	nl_open(&a);
	nl_open(&b);
	is_int(proxy_register(&a, -1, RGPU_ABI_MAJOR, &epoch), -EBADF, "no descriptor");
	is_int(proxy_register(&a, null, RGPU_ABI_MAJOR, &epoch), -EBADF, "a descriptor of something else");
	is_str(a.why, "not an open /dev/rgpu-ctl", "and the kernel says so");
	is_int(proxy_register(&a, a.fd, RGPU_ABI_MAJOR, &epoch), -EBADF, "the socket itself");
	is_int(proxy_register(&a, ctl, RGPU_ABI_MAJOR + 1, &epoch), -EPROTONOSUPPORT, "another major version");
	ok(strstr(a.why, "ABI 1"), "and the kernel names its own: %s", a.why);
	is_int(simple(&a, RGPU_CMD_REGISTER), -EINVAL, "no attributes");
	is_int(counter("proxy"), 0, "none of them is the proxy");

	is_int(proxy_register(&a, ctl, RGPU_ABI_MAJOR, &first), 0, "as it should be");
	is_int(counter("proxy"), 1, "there is a proxy");
	is_int(counter("epoch"), first, "of that epoch");
	is_int(proxy_register(&b, ctl2, RGPU_ABI_MAJOR, &epoch), -EBUSY, "a second one");
	is_int(proxy_register(&b, ctl, RGPU_ABI_MAJOR, &epoch), -EBUSY, "a second one with the same ctl");
	is_int(proxy_register(&a, ctl2, RGPU_ABI_MAJOR, &epoch), -EBUSY, "the same one again");
	close(ctl);
	is_int(counter("proxy"), 0, "its ctl closed: there is none");
	is_int(simple(&a, RGPU_CMD_PULL), -EPERM, "the socket has no rights any more");
	is_int(proxy_register(&b, ctl2, RGPU_ABI_MAJOR, &epoch), 0, "another one may");
	is_int(epoch, first + 1, "with the next epoch");
	nl_close(&b);
	is_int(counter("proxy"), 0, "its socket closed: there is none");
	is_int(proxy_register(&a, ctl2, RGPU_ABI_MAJOR, &epoch), -EBUSY, "a ctl is good for one registration");

	msg_begin(&a, &m, RGPU_CMD_PULL);
	msg_u32(&m, RGPU_A_DEVICE, 0);
	is_int(nl_call(&a, &m, NULL), -EINVAL, "an attribute that PULL does not have");
	msg_begin(&a, &m, RGPU_CMD_DEV_DEL);
	msg_u64(&m, RGPU_A_DEVICE, 0);
	is_int(nl_call(&a, &m, NULL), -EINVAL, "an attribute of the wrong size");
	msg_begin(&a, &m, RGPU_CMD_DEV_DEL);
	msg_u32(&m, RGPU_A_MAX + 1, 0);
	is_int(nl_call(&a, &m, NULL), -EINVAL, "an attribute that there is not");
	is_int(simple(&a, RGPU_CMD_READY), -EOPNOTSUPP, "an event is no command");
	is_int(simple(&a, RGPU_CMD_MAX + 1), -EOPNOTSUPP, "nor is what there is not");
	is_int(simple(&a, RGPU_CMD_REPLY), -EINVAL, "REPLY without attributes");
	is_int(simple(&a, RGPU_CMD_SESSION_GET), -EINVAL, "SESSION_GET without a session");
	is_int(simple(&a, RGPU_CMD_SESSION_SET), -EINVAL, "SESSION_SET without a session");
	is_int(simple(&a, RGPU_CMD_DEV_GET), -EINVAL, "DEV_GET without a device");
	is_int(simple(&a, RGPU_CMD_DEV_DEL), -EINVAL, "DEV_DEL without a device");
	is_int(simple(&a, RGPU_CMD_DEV_SET), -EINVAL, "DEV_SET without a device");
	close(ctl2);
	close(null);
	nl_close(&a);
}

static int as_nobody(void)
{
	__u32 epoch;
	struct nl nl;

	MUST(!setresgid(65534, 65534, 65534) && !setresuid(65534, 65534, 65534));
	MUST(open("/dev/rgpu-ctl", O_RDWR) < 0 && errno == EACCES);
	MUST(open("/dev/rgpu-ctl", O_RDONLY) < 0 && errno == EACCES);
	MUST(app_open(0) == -EACCES);
	MUST(!nl_open(&nl));
	MUST(proxy_register(&nl, p.ctl, RGPU_ABI_MAJOR, &epoch) == -EBUSY);
	MUST(simple(&nl, RGPU_CMD_PULL) == -EPERM);
	MUST(simple(&nl, RGPU_CMD_DEV_ADD) == -EPERM);
	MUST(with_device(&nl, RGPU_CMD_DEV_DEL, 0) == -EPERM);
	MUST(with_device(&nl, RGPU_CMD_DEV_SET, 0) == -EPERM);
	MUST(with_device(&nl, RGPU_CMD_DEV_GET, 0) == 0);
	MUST(nl_dump(&nl, RGPU_CMD_DEV_GET, NULL, NULL) >= 1);
	MUST(nl_dump(&nl, RGPU_CMD_SESSION_GET, NULL, NULL) == 0);
	MUST(nl_join(&nl, RGPU_MCGRP_MONITOR) == -EPERM);
	return 0;
}

/* Root of a user namespace of its own has every capability there, and none that counts. */
static int as_false_root(void)
{
	struct nl nl;

	MUST(!unshare(CLONE_NEWUSER | CLONE_NEWNET));
	MUST(!nl_open(&nl));
	MUST(with_device(&nl, RGPU_CMD_DEV_DEL, 0) == -EPERM);
	MUST(simple(&nl, RGPU_CMD_DEV_ADD) == -EPERM);
	MUST(with_device(&nl, RGPU_CMD_DEV_GET, 0) == 0);
	return 0;
}

/* A privileged tool that is not the proxy. */
static int as_admin(void)
{
	struct proxy q = { .ctl = open("/dev/rgpu-ctl", O_RDWR) };
	struct msg m;

	MUST(!nl_open(&q.nl));
	MUST(proxy_online(&q, 0, 1) == -EPERM);
	MUST(!strcmp(q.nl.why, "only the proxy puts a device online"));
	msg_begin(&q.nl, &m, RGPU_CMD_DEV_SET);
	msg_u32(&m, RGPU_A_DEVICE, 0);
	msg_u8(&m, RGPU_A_ONLINE, 0);
	MUST(nl_call(&q.nl, &m, NULL) == 0);
	MUST(session_cookie(&q, 1, "x", 1) == -EPERM);
	MUST(proxy_attach(&q, 1) == -ENOENT);
	return 0;
}

static int in_own_net(void)
{
	struct proxy q;

	MUST(!unshare(CLONE_NEWNET));
	MUST(!proxy_open(&q));
	MUST(!proxy_online(&q, 0, 1));
	MUST(app_open(0) >= 0);
	nl_close(&q.nl);
	MUST(counter("proxy") == 0);
	return 0;
}

static void state_is(const char *want, const char *when)
{
	char buf[32];

	device_attr(0, "state", buf, sizeof(buf));
	is_str(buf, want, "%s", when);
}

int main(void)
{
	refused();
	state_is("no-proxy", "no proxy");
	is_int(app_open(0), -ENODEV, "no proxy: open");
	is_int(proxy_open(&p), 0, "a proxy");
	state_is("offline", "a proxy: offline");
	is_int(app_open(0), -ENODEV, "offline: open");
	is_int(proxy_online(&p, 0, 1), 0, "online");
	state_is("online", "online");
	in_child("nobody may nothing but look", as_nobody);
	in_child("root of a user namespace neither", as_false_root);
	in_child("an administrator may more, but is not the proxy", as_admin);
	state_is("offline", "he put it offline");
	proxy_close(&p);
	state_is("no-proxy", "closed");
	in_child("a proxy in a network namespace of its own", in_own_net);
	nothing_left();
	return tap_done();
}
