// SPDX-License-Identifier: GPL-2.0
/* Every ioctl in every state of its file, and with every kind of bad argument. */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/selftests/rgpu/stub.h"

enum state { NO_SESSION, LIVE, RECOVERING, FAILED, REMOVED, FOREIGN, STARTING, NSTATES };
static const char *const state_names[] = {
	"no session", "LIVE", "RECOVERING", "FAILED", "device removed", "another process", "STARTING",
};

/* Big enough for all arguments; the fields that make each valid are set by prepare(). */
union arg {
	__u32 size;
	struct rgpu_info info;
	struct rgpu_session_start start;
	struct rgpu_session_join join;
	struct rgpu_channel_create channel;
	struct rgpu_channel_ref ref;
	struct rgpu_bo_create bo;
	struct rgpu_bo_ref bo_ref;
	struct rgpu_wait wait;
	struct rgpu_control control;
	struct rgpu_session_fd session_fd;
	struct rgpu_kicked kicked;
	struct rgpu_channel_info channel_info;
	struct rgpu_session_set set;
	char room[512];
};

#define OK 0
/* RECOVERING: what only concerns the kernel goes on; CONTROL would wait, so it is tested in relay.c. */
#define SKIP 1
static const struct command {
	const char *name;
	unsigned long cmd;
	__u32 size;
	int want[NSTATES];
} commands[] = {
#define C(name, type) #name, name, sizeof(struct type)
	{ C(RGPU_IOC_INFO, rgpu_info), { OK, OK, OK, OK, -ENODEV, -EPERM, OK } },
	{ C(RGPU_IOC_SESSION_START, rgpu_session_start), { SKIP, -EALREADY, -EALREADY, -EALREADY, -ENODEV, -EPERM, -EALREADY } },
	{ C(RGPU_IOC_SESSION_JOIN, rgpu_session_join), { -EBADF, -EBADF, -EBADF, -EBADF, -ENODEV, -EPERM, -EBADF } },
	{ C(RGPU_IOC_CHANNEL_CREATE, rgpu_channel_create), { -ENOTCONN, OK, OK, -ESHUTDOWN, -ENODEV, -EPERM, -ENOTCONN } },
	{ C(RGPU_IOC_BO_CREATE, rgpu_bo_create), { -ENOTCONN, OK, OK, -ESHUTDOWN, -ENODEV, -EPERM, -ENOTCONN } },
	{ C(RGPU_IOC_KICK, rgpu_channel_ref), { -ENOTCONN, OK, OK, -ESHUTDOWN, -ENODEV, -EPERM, -ENOTCONN } },
	{ C(RGPU_IOC_WAIT, rgpu_wait), { -ENOTCONN, -ETIMEDOUT, OK, -ESHUTDOWN, -ENODEV, -EPERM, -ENOTCONN } },
	{ C(RGPU_IOC_CONTROL, rgpu_control), { -ENOTCONN, SKIP, SKIP, -ESHUTDOWN, -ENODEV, -EPERM, -ENOTCONN } },
	{ C(RGPU_IOC_BO_DESTROY, rgpu_bo_ref), { -ENOTCONN, -ENOENT, -ENOENT, -ENOENT, -ENODEV, -EPERM, -ENOTCONN } },
	{ C(RGPU_IOC_BO_DIRTY, rgpu_bo_dirty), { -ENOTCONN, -ENOENT, -ENOENT, -ENOENT, -ENODEV, -EPERM, -ENOTCONN } },
	{ C(RGPU_IOC_CHANNEL_DESTROY, rgpu_channel_ref), { -ENOTCONN, -ENOENT, -ENOENT, -ENOENT, -ENODEV, -EPERM, -ENOTCONN } },
	/* Commands of other files. */
	{ C(RGPU_CTL_SESSION_FD, rgpu_session_fd), { -ENOTTY, -ENOTTY, -ENOTTY, -ENOTTY, -ENODEV, -EPERM, -ENOTTY } },
	{ C(RGPU_SES_KICKED, rgpu_kicked), { -ENOTTY, -ENOTTY, -ENOTTY, -ENOTTY, -ENODEV, -EPERM, -ENOTTY } },
	{ C(RGPU_SES_SET, rgpu_session_set), { -ENOTTY, -ENOTTY, -ENOTTY, -ENOTTY, -ENODEV, -EPERM, -ENOTTY } },
};
#define NCOMMANDS (sizeof(commands) / sizeof(*commands))

static union arg prepare(const struct command *c)
{
	union arg a;

	memset(&a, 0, sizeof(a));
	a.size = c->size;
	switch (c->cmd) {
	case RGPU_IOC_SESSION_JOIN:
		a.join.fd = -1;
		break;
	case RGPU_IOC_CHANNEL_CREATE:
		a.channel.sq_size = a.channel.cq_size = 4096;
		break;
	case RGPU_IOC_BO_CREATE:
		a.bo.bytes = 4096;
		break;
	case RGPU_IOC_BO_DESTROY:
		a.bo_ref.handle = 12345;
		break;
	case RGPU_IOC_CHANNEL_DESTROY:
		a.ref.channel = 255;
		break;
	}
	return a;
}

static int call(int fd, unsigned long cmd, void *arg)
{
	return ioctl(fd, cmd, arg) < 0 ? -errno : 0;
}

static void each_command(int fd, enum state s)
{
	size_t i;

	for (i = 0; i < NCOMMANDS; i++) {
		union arg a = prepare(&commands[i]);

		if (commands[i].want[s] != SKIP)
			is_int(call(fd, commands[i].cmd, &a), commands[i].want[s], "%s: %s", state_names[s], commands[i].name);
	}
	is_int(call(fd, _IO(RGPU_IOC_TYPE, 0x3f), NULL),
	       s == REMOVED ? -ENODEV :
	       s == FOREIGN ? -EPERM :
			      -ENOTTY,
	       "%s: unknown command", state_names[s]);
}

/* A file with a session that has channel 0, whose kicks are all taken. */
static int file_with_session(struct proxy *p, int *sfd)
{
	int fd = app_open(0);
	__u32 ch;

	*sfd = start_with(p, fd, NULL);
	app_channel(fd, 4096, &ch);
	while (app_wait(fd, 0, 0) == 0)
		;
	return fd;
}

/* The same four faults in the argument of every command that @fd has: nothing of it may depend on what the command does. */
static void bad_arguments(int fd, const char *kind, size_t from, size_t to)
{
	size_t i;

	for (i = from; i < to; i++) {
		const struct command *c = &commands[i];
		union arg a = prepare(c);

		is_int(call(fd, c->cmd, (void *)16), -EFAULT, "%s %s: bad pointer", kind, c->name);
		a.size = 4;
		is_int(call(fd, c->cmd, &a), -EINVAL, "%s %s: too small to have flags", kind, c->name);
		a.size = 1 << 20;
		is_int(call(fd, c->cmd, &a), -E2BIG, "%s %s: absurd size", kind, c->name);
		a = prepare(c);
		a.size = c->size + 8;
		a.room[c->size + 7] = 1;
		is_int(call(fd, c->cmd, &a), -E2BIG, "%s %s: something new that we do not know", kind, c->name);
		a = prepare(c);
		((__u32 *)&a)[1] = 0x80000000;
		is_int(call(fd, c->cmd, &a), -EINVAL, "%s %s: unknown flag", kind, c->name);
	}
}

static void longer_and_shorter(int fd)
{
	struct {
		struct rgpu_info info;
		__u64 more;
	} longer = { .info.size = sizeof(longer), .more = 0 };
	struct {
		__u32 size, flags;
		__u16 major, minor;
		__u32 canary;
	} shorter = { .size = 12, .canary = 0x5a5a5a5a };

	is_int(call(fd, RGPU_IOC_INFO, &longer), 0, "a newer program's longer argument, zero at its end");
	is_str(longer.info.name, "Stub GPU 0", "is answered in the part that we know");
	is_int(call(fd, RGPU_IOC_INFO, &shorter), 0, "an older program's shorter argument");
	is_int(shorter.major, RGPU_ABI_MAJOR, "is answered in the part that it knows");
	is_int(shorter.canary, 0x5a5a5a5a, "and nothing is written behind it");
}

static void values(int fd)
{
	struct rgpu_session_start start = { .size = sizeof(start), .data_len = RGPU_CONTROL_MAX + 1 };
	struct rgpu_control control = { .size = sizeof(control), .data_room = RGPU_CONTROL_MAX + 1 };
	struct rgpu_channel_create cc = { .size = sizeof(cc), .sq_size = 4096, .cq_size = 8192 + 4096 };
	__u32 ch;

	is_int(app_channel(fd, 0, &ch), -EINVAL, "ring of size 0");
	is_int(app_channel(fd, 2048, &ch), -EINVAL, "ring below the smallest");
	is_int(app_channel(fd, RGPU_RING_MAX * 2, &ch), -EINVAL, "ring above the largest");
	is_int(call(fd, RGPU_IOC_CHANNEL_CREATE, &cc), -EINVAL, "ring of no power of two");
	is_int(app_bo(fd, 0, NULL), -EINVAL, "buffer object of size 0");
	is_int(app_bo(fd, 4097, NULL), -EINVAL, "buffer object of no whole pages");
	is_int(app_bo(fd, 1ull << 63, NULL), -EINVAL, "buffer object of 2^63 bytes");
	is_int(app_bo_destroy(fd, 0), -ENOENT, "handle 0");
	is_int(app_bo_destroy(fd, ~0u), -ENOENT, "handle 2^32 - 1");
	is_int(app_kick(fd, 254), -ENOENT, "kick of a channel that was never made");
	is_int(app_kick(fd, ~0u), -ENOENT, "kick of channel 2^32 - 1");
	is_int(app_wait(fd, 0, -2), -EINVAL, "wait of -2 ms");
	is_int(app_wait(fd, 200, 0), -ENOENT, "wait on a channel that was never made");
	is_int(call(fd, RGPU_IOC_CONTROL, &control), -EMSGSIZE, "room for more than the most");
	is_int(call(fd, RGPU_IOC_SESSION_START, &start), -EMSGSIZE, "data of more than the most");
	start.data_len = 8;
	start.data = 16;
	is_int(call(fd, RGPU_IOC_SESSION_START, &start), -EFAULT, "data at a bad pointer");
	is_int(read(fd, &ch, 4) < 0 ? -errno : 0, -EINVAL, "read");
	is_int(write(fd, &ch, 4) < 0 ? -errno : 0, -EINVAL, "write");
}

/* Commands of ctl and session fd, in the same table's terms. */
static void proxy_side(struct proxy *p, int sfd)
{
	struct rgpu_session_fd s = { .size = sizeof(s), .id = 1ull << 40 };
	struct rgpu_bo_ref bo = { .size = sizeof(bo), .handle = 99 };
	struct rgpu_channel_info info = { .size = sizeof(info), .channel = 77 };
	struct rgpu_info none = { .size = sizeof(none) };

	is_int(call(p->ctl, RGPU_CTL_SESSION_FD, &s), -ENOENT, "ctl: SESSION_FD of no session");
	is_int(call(p->ctl, RGPU_IOC_INFO, &none), -ENOTTY, "ctl: INFO");
	is_int(call(sfd, RGPU_SES_BO_INFO, &bo), -ENOENT, "session fd: BO_INFO of no handle");
	is_int(call(sfd, RGPU_SES_CHANNEL_INFO, &info), -ENOENT, "session fd: CHANNEL_INFO of no channel");
	is_int(app_kick(sfd, 77), -ENOENT, "session fd: KICK of no channel");
	is_int(app_wait(sfd, 0, 0), -ENOTTY, "session fd: WAIT");
	is_int(app_start(sfd, NULL), -ENOTTY, "session fd: SESSION_START");
	is_int(session_set(sfd, RGPU_SESSION_STARTING, 0), -EINVAL, "session fd: SET STARTING");
	is_int(session_set(sfd, RGPU_SESSION_RECOVERING, 0), -EINVAL, "session fd: SET RECOVERING");
	is_int(session_set(sfd, RGPU_SESSION_FAILED, 0), -EINVAL, "session fd: SET FAILED without a reason");
	is_int(session_set(sfd, RGPU_SESSION_FAILED, -512), -EINVAL, "session fd: SET FAILED with a kernel's own error");
	is_int(session_set(sfd, RGPU_SESSION_LIVE, -EIO), -EINVAL, "session fd: SET LIVE with a reason");
	is_int(session_set(sfd, RGPU_SESSION_LIVE, 0), 0, "session fd: SET LIVE again");
}

int main(void)
{
	int fd, live, sfd, status;
	struct async a;
	struct request r;
	struct proxy p;
	struct msg m;
	pid_t child;

	if (!ok(proxy_open(&p) == 0 && proxy_online(&p, 0, 1) == 0, "the proxy registers"))
		return tap_done();

	fd = app_open(0);
	each_command(fd, NO_SESSION);
	bad_arguments(fd, "no session", 0, 3);
	longer_and_shorter(fd);
	is_int(counter("sessions"), 0, "none of that left a session");
	a = (struct async){ .fd = fd };
	async_begin(&a, async_start);
	is_int(proxy_next(&p, &r), 0, "a START is under way");
	each_command(fd, STARTING);
	is_int(proxy_reply(&p, r.id, -EACCES, NULL, 0), 0, "and refused");
	is_int(async_end(&a), -EACCES, "as its caller hears");
	close(fd);

	live = file_with_session(&p, &sfd);
	each_command(live, LIVE);
	bad_arguments(live, "LIVE", 0, 11);
	values(live);
	proxy_side(&p, sfd);
	fflush(stdout);
	child = fork();
	if (!child) {
		tap_failed = 0;
		each_command(live, FOREIGN);
		is_int((long)map(live, RGPU_MMAP_KPAGE, 4096, PROT_READ, MAP_SHARED), -EPERM, "another process: mmap");
		fflush(stdout);
		_exit(tap_failed ? 1 : 0);
	}
	waitpid(child, &status, 0);
	tap_run += NCOMMANDS + 2;
	is_int(status, 0, "all refused in the child");
	close(live);

	live = file_with_session(&p, &sfd);
	close(sfd);
	each_command(live, RECOVERING);
	close(live);

	live = file_with_session(&p, &sfd);
	is_int(session_set(sfd, RGPU_SESSION_FAILED, -EIO), 0, "SET FAILED");
	is_int(session_set(sfd, RGPU_SESSION_LIVE, 0), -ESHUTDOWN, "FAILED is for good");
	each_command(live, FAILED);
	close(sfd);
	close(live);

	live = file_with_session(&p, &sfd);
	fd = app_open(0);
	msg_begin(&p.nl, &m, RGPU_CMD_DEV_DEL);
	msg_u32(&m, RGPU_A_DEVICE, 0);
	is_int(nl_call(&p.nl, &m, NULL), 0, "DEV_DEL");
	each_command(live, REMOVED);
	each_command(fd, REMOVED);
	is_int((long)map(live, RGPU_MMAP_KPAGE, 4096, PROT_READ, MAP_SHARED), -ENODEV, "device removed: mmap");
	close(sfd);
	close(fd);
	close(live);
	msg_begin(&p.nl, &m, RGPU_CMD_DEV_ADD);
	is_int(nl_call(&p.nl, &m, NULL), 0, "DEV_ADD");

	is_int(acknowledge(&p), 4, "four sessions are gone");
	proxy_close(&p);
	nothing_left();
	return tap_done();
}
