// SPDX-License-Identifier: GPL-2.0
/* Who is kept out: by the device cgroup, by a user namespace whose root is nobody outside; messages of the wrong shape. */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/selftests/rgpu/stub.h"

#define GROUP "/tmp/rgpu-access"

static struct proxy p;

/* A device cgroup's program: all devices but those of @major. */
static int program_without(unsigned int major)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_LDX | BPF_MEM | BPF_W,
		  .dst_reg = BPF_REG_2,
		  .src_reg = BPF_REG_1,
		  .off = offsetof(struct bpf_cgroup_dev_ctx, major) },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 1 },
		{ .code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = BPF_REG_2, .imm = major, .off = 1 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE,
		.insns = (unsigned long)insns,
		.insn_cnt = sizeof(insns) / sizeof(*insns),
		.license = (unsigned long)"GPL",
	};

	return syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

static int boxed(void)
{
	int before = app_open(0), ctl = open("/dev/rgpu-ctl", O_RDWR);
	struct rgpu_info info = { .size = sizeof(info) };

	MUST(before >= 0 && ctl >= 0);
	MUST(!put(GROUP "/box/cgroup.procs", "0"));
	MUST(app_open(0) == -EPERM);
	MUST(open("/dev/rgpu-ctl", O_RDWR) < 0 && errno == EPERM);
	MUST(open("/dev/null", O_RDWR) >= 0);
	MUST(!ioctl(before, RGPU_IOC_INFO, &info)); /* what was open stays so, as with every device */
	return 0;
}

static void device_cgroup(void)
{
	union bpf_attr attr = { .attach_type = BPF_CGROUP_DEVICE };
	struct stat st;
	int prog = -1, box = -1;

	stat("/dev/rgpu0", &st);
	mkdir(GROUP, 0700);
	if (mount("none", GROUP, "cgroup2", 0, NULL)) {
		printf("# no v2 hierarchy here: the device cgroup is not tried\n");
		rmdir(GROUP);
		return;
	}
	mkdir(GROUP "/box", 0700);
	box = open(GROUP "/box", O_RDONLY | O_DIRECTORY);
	prog = program_without(major(st.st_rdev));
	attr.target_fd = box;
	attr.attach_bpf_fd = prog;
	if (ok(box >= 0 && prog >= 0 && !syscall(SYS_bpf, BPF_PROG_ATTACH, &attr, sizeof(attr)),
	       "a device cgroup that denies the module's devices"))
		in_child("keeps them from being opened, and nothing else", boxed);
	close(prog);
	close(box);
	is_int(rmdir(GROUP "/box"), 0, "the group goes");
	umount(GROUP);
	rmdir(GROUP);
}

/* Nobody outside, root inside, with all capabilities there. */
static int false_root(void)
{
	struct msg m;
	struct nl nl;

	MUST(!setresgid(65534, 65534, 65534) && !setresuid(65534, 65534, 65534));
	prctl(PR_SET_DUMPABLE, 1); /* or its files in /proc belong to root */
	MUST(!unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS));
	MUST(!put("/proc/self/setgroups", "deny") && !put("/proc/self/uid_map", "0 65534 1") &&
	     !put("/proc/self/gid_map", "0 65534 1"));
	MUST(!setresuid(0, 0, 0) && !geteuid());
	MUST(app_open(0) == -EACCES);
	MUST(open("/dev/rgpu-ctl", O_RDWR) < 0 && errno == EACCES);
	MUST(open("/sys/class/rgpu/rgpu0/policy", O_WRONLY) < 0 && errno == EACCES);
	MUST(open("/sys/module/rgpu/parameters/user_mib", O_WRONLY) < 0 && errno == EACCES);
	MUST(!nl_open(&nl));
	msg_begin(&nl, &m, RGPU_CMD_LIMITS_SET);
	msg_u32(&m, RGPU_A_USER_MIB, 1);
	MUST(nl_call(&nl, &m, NULL) == -EPERM);
	msg_begin(&nl, &m, RGPU_CMD_DEV_DEL);
	msg_u32(&m, RGPU_A_DEVICE, 0);
	MUST(nl_call(&nl, &m, NULL) == -EPERM);
	MUST(nl_dump(&nl, RGPU_CMD_SESSION_GET, NULL, NULL) == 0);
	/* The group is there in its network too, but all that happens is told in the first one. */
	MUST(!nl_join(&nl, RGPU_MCGRP_MONITOR));
	MUST(!proxy_online(&p, 2, 1));
	MUST(!nl_recv(&nl, &m, 100));
	return 0;
}

static void versioned(__u8 version)
{
	struct genlmsghdr *g;
	struct msg m, a;

	msg_begin(&p.nl, &m, RGPU_CMD_DEV_GET);
	g = NLMSG_DATA(&m.h);
	g->version = version;
	msg_u32(&m, RGPU_A_DEVICE, 0);
	is_int(nl_call(&p.nl, &m, &a), 0, "a message of version %u is answered", version);
	g = NLMSG_DATA(&a.h);
	is_int(g->version, RGPU_GENL_VERSION, "in the module's own version");
}

/* Each is refused, and the socket is good for the next. */
static void malformed(void)
{
	struct nlattr *at;
	struct msg m;

	msg_begin(&p.nl, &m, RGPU_CMD_DEV_GET);
	m.h.nlmsg_len = NLMSG_LENGTH(2);
	is_int(nl_call(&p.nl, &m, NULL), -EINVAL, "a message too short for its command");
	msg_begin(&p.nl, &m, RGPU_CMD_DEV_GET);
	msg_u32(&m, RGPU_A_DEVICE, 0);
	at = (struct nlattr *)(m.buf + NLMSG_LENGTH(GENL_HDRLEN));
	at->nla_len += 64;
	is_int(nl_call(&p.nl, &m, NULL), -EINVAL, "an attribute that ends behind the message");
	at->nla_len = 2;
	is_int(nl_call(&p.nl, &m, NULL), -EINVAL, "one that ends before its own header");
	msg_begin(&p.nl, &m, RGPU_CMD_DEV_GET);
	msg_u32(&m, RGPU_A_DEVICE | NLA_F_NESTED, 0);
	is_int(nl_call(&p.nl, &m, NULL), -EINVAL, "a number that says that it is nested");
	msg_begin(&p.nl, &m, RGPU_CMD_PULL);
	m.h.nlmsg_flags |= NLM_F_DUMP;
	is_int(nl_call(&p.nl, &m, NULL), -EOPNOTSUPP, "a dump of what cannot be dumped");
	msg_begin(&p.nl, &m, RGPU_CMD_DEV_GET);
	msg_u32(&m, RGPU_A_DEVICE, 0);
	is_int(nl_call(&p.nl, &m, NULL), 0, "a sound one");
}

int main(void)
{
	if (!ok(proxy_open(&p) == 0 && proxy_online(&p, 0, 1) == 0, "the proxy registers"))
		return tap_done();
	device_cgroup();
	in_child("root of a user namespace is nobody here", false_root);
	versioned(0);
	versioned(RGPU_GENL_VERSION + 1);
	versioned(255);
	malformed();
	proxy_close(&p);
	nothing_left();
	return tap_done();
}
