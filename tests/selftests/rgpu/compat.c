// SPDX-License-Identifier: GPL-2.0
/* The ioctls as a 32-bit program makes them: through int 0x80, which takes the same way into the kernel from a 64-bit process,
 * with arguments below 4 GiB. */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tests/selftests/rgpu/stub.h"

#define NR_IOCTL_32  54
#define NR_GETPID_32 20

static long call32(int nr, int a, unsigned int b, void *c)
{
	long ret;

	/* The 32-bit entry keeps the low halves only, and none of r8 to r11. */
	asm volatile("int $0x80" : "=a"(ret) : "a"(nr), "b"(a), "c"(b), "d"(c) : "memory", "r8", "r9", "r10", "r11");
	return (int)ret;
}

/* Room for one argument and its data that a 32-bit pointer reaches. */
static struct {
	union {
		struct rgpu_info info;
		struct rgpu_session_start start;
		struct rgpu_session_join join;
		struct rgpu_channel_create create;
		struct rgpu_channel_ref channel;
		struct rgpu_bo_create bo;
		struct rgpu_bo_ref bo_ref;
		struct rgpu_wait wait;
		struct rgpu_control control;
		struct rgpu_session_fd session;
		struct rgpu_session_set set;
		struct rgpu_channel_info channel_info;
	};
	char data[256];
} * low;

static int ioctl32(int fd, unsigned int cmd)
{
	low->info.size = _IOC_SIZE(cmd);
	return call32(NR_IOCTL_32, fd, cmd, low);
}

static int start32(struct async *a)
{
	memset(low, 0, sizeof(*low));
	strcpy(low->data, "hello");
	low->start.data = (unsigned long)low->data;
	low->start.data_len = 5;
	low->start.data_room = sizeof(low->data);
	return ioctl32(a->fd, RGPU_IOC_SESSION_START);
}

static int control32(struct async *a)
{
	memset(low, 0, sizeof(*low));
	strcpy(low->data, "question");
	low->control.data = (unsigned long)low->data;
	low->control.data_len = 8;
	low->control.data_room = sizeof(low->data);
	low->control.op = 7;
	return ioctl32(a->fd, RGPU_IOC_CONTROL);
}

int main(void)
{
	struct async a = { .ms = 0 };
	struct request r;
	struct proxy p;
	int fd, sfd, other;

	low = mmap(NULL, sizeof(*low), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	if (low == MAP_FAILED || call32(NR_GETPID_32, 0, 0, NULL) != getpid())
		skip_all("this kernel has no 32-bit system calls");
	if (!ok(proxy_open(&p) == 0 && proxy_online(&p, 0, 1) == 0 && proxy_online(&p, 1, 1) == 0, "the proxy registers"))
		return tap_done();
	fd = app_open(0);
	other = app_open(1);

	memset(low, 0, sizeof(*low));
	is_int(ioctl32(fd, RGPU_IOC_INFO), 0, "INFO");
	is_int(low->info.abi_major, RGPU_ABI_MAJOR, "it tells the version");
	is_int(low->info.server[0], 1, "and the server");

	a.fd = fd;
	async_begin(&a, start32);
	is_int(proxy_next(&p, &r), 0, "SESSION_START arrives");
	ok(r.len == 5 && !memcmp(r.data, "hello", 5), "with its data, by a 32-bit pointer");
	/* The proxy's side too: /dev/rgpu-ctl and the session fd. The program's argument is in use, so this one has its own. */
	{
		typeof(low) apart = low;

		low = mmap(NULL, sizeof(*low), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
		low->session.id = r.session;
		is_int(ioctl32(p.ctl, RGPU_CTL_SESSION_FD), 0, "SESSION_FD");
		sfd = low->session.fd;
		low = apart;
	}
	is_int(proxy_reply(&p, r.id, 0, "welcome", 7), 0, "the proxy answers");
	is_int(async_end(&a), 0, "SESSION_START returns 0");
	ok(low->start.data_len == 7 && !memcmp(low->data, "welcome", 7), "and the answer's data");
	is_int(low->start.id, r.session, "and the session's name");

	memset(low, 0, sizeof(*low));
	low->create.sq_size = 8192;
	low->create.cq_size = 4096;
	low->create.channel = 99;
	is_int(ioctl32(fd, RGPU_IOC_CHANNEL_CREATE), 0, "CHANNEL_CREATE");
	is_int(low->create.channel, 0, "makes channel 0");
	memset(low, 0, sizeof(*low));
	is_int(ioctl32(sfd, RGPU_SES_CHANNEL_INFO), 0, "CHANNEL_INFO of a session fd");
	ok(low->channel_info.alive && low->channel_info.sq_size == 8192 && low->channel_info.cq_size == 4096, "knows its rings");

	memset(low, 0, sizeof(*low));
	is_int(ioctl32(fd, RGPU_IOC_KICK), 0, "KICK");
	is_int(app_kick(sfd, 0), 0, "the other side kicks");
	memset(low, 0, sizeof(*low));
	low->wait.timeout_ms = 20000;
	is_int(ioctl32(fd, RGPU_IOC_WAIT), 0, "WAIT returns for it");
	low->wait.timeout_ms = 1;
	is_int(ioctl32(fd, RGPU_IOC_WAIT), -ETIMEDOUT, "WAIT times out without one");

	memset(low, 0, sizeof(*low));
	low->bo.bytes = 3 * 4096;
	is_int(ioctl32(fd, RGPU_IOC_BO_CREATE), 0, "BO_CREATE");
	is_int(low->bo.handle, 1, "gives handle 1");
	memset(low, 0, sizeof(*low));
	low->bo_ref.handle = 1;
	is_int(ioctl32(sfd, RGPU_SES_BO_INFO), 0, "BO_INFO");
	is_int(low->bo_ref.bytes, 3 * 4096, "tells its size");
	is_int(ioctl32(fd, RGPU_IOC_BO_DESTROY), 0, "BO_DESTROY");
	is_int(ioctl32(fd, RGPU_IOC_BO_DESTROY), -ENOENT, "only once");

	async_begin(&a, control32);
	is_int(proxy_next(&p, &r), 0, "CONTROL arrives");
	ok(r.op == 7 && r.len == 8 && !memcmp(r.data, "question", 8), "with its data");
	proxy_reply(&p, r.id, 0, "answer", 6);
	is_int(async_end(&a), 0, "CONTROL returns 0");
	ok(low->control.data_len == 6 && !memcmp(low->data, "answer", 6), "and the answer");

	memset(low, 0, sizeof(*low));
	low->join.fd = -1;
	is_int(ioctl32(other, RGPU_IOC_SESSION_JOIN), -EBADF, "JOIN of no file");
	memset(low, 0, sizeof(*low));
	is_int(ioctl32(fd, RGPU_IOC_CHANNEL_DESTROY), 0, "CHANNEL_DESTROY");
	is_int(ioctl32(fd, RGPU_IOC_KICK), -ENOENT, "KICK of a channel that is gone");
	is_int(ioctl32(fd, _IO(RGPU_IOC_TYPE, 0x3f)), -ENOTTY, "an unknown command");
	memset(low, 0, sizeof(*low));
	low->set.state = RGPU_SESSION_FAILED;
	low->set.reason = -EIO;
	is_int(ioctl32(sfd, RGPU_SES_SET), 0, "SET of a session fd");
	close(fd);
	close(other);
	close(sfd);
	is_int(acknowledge(&p), 1, "GONE");
	proxy_close(&p);
	nothing_left();
	return tap_done();
}
