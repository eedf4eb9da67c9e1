// SPDX-License-Identifier: GPL-2.0
/* Random calls with random arguments: every ioctl on every kind of descriptor, maps and what is done to them, netlink messages;
 * several threads and processes at once, killed at random. Asserts that a sound proxy and program go on afterwards. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tests/selftests/rgpu/stub.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

#define FDS   8
#define MAPS  8
#define NAMES 16

/* What the threads of one process share, without locks: a torn value is one more random value. */
static struct {
	int fds[FDS];
	struct {
		char *p;
		size_t len;
	} maps[MAPS];
	__u64 names[NAMES]; /* request and session ids that the kernel told us */
	struct nl nl[2];
	pthread_mutex_t nl_lock[2];
} w;

static __thread unsigned int seed;

static unsigned int rnd(unsigned int n)
{
	return rand_r(&seed) % n;
}

static __u64 value(void)
{
	static char room[RGPU_CONTROL_MAX + 64];

	switch (rnd(12)) {
	case 0:
		return 0;
	case 1:
		return rnd(8);
	case 2:
		return 1ull << rnd(64);
	case 3:
		return (1ull << rnd(64)) - 1;
	case 4:
		return -(__u64)rnd(600);
	case 5:
		return (unsigned long)room + rnd(64);
	case 6:
		return (unsigned long)w.maps[rnd(MAPS)].p;
	case 7:
		return w.fds[rnd(FDS)];
	case 8:
		return w.names[rnd(NAMES)];
	case 9:
		return 4096ull << rnd(6);
	case 10:
		return rnd(RGPU_CONTROL_MAX + 2);
	default:
		return ((__u64)rand_r(&seed) << 32) ^ rand_r(&seed);
	}
}

/* An argument whose size field is right most of the time, so that it gets past the first check. */
static void any_ioctl(int fd)
{
	static const unsigned int cmds[] = {
		RGPU_IOC_INFO,
		RGPU_IOC_SESSION_START,
		RGPU_IOC_SESSION_JOIN,
		RGPU_IOC_CHANNEL_CREATE,
		RGPU_IOC_CHANNEL_DESTROY,
		RGPU_IOC_BO_CREATE,
		RGPU_IOC_BO_DESTROY,
		RGPU_IOC_BO_DIRTY,
		RGPU_IOC_KICK,
		RGPU_IOC_WAIT,
		RGPU_IOC_CONTROL,
		RGPU_CTL_SESSION_FD,
		RGPU_SES_KICKED,
		RGPU_SES_CHANNEL_INFO,
		RGPU_SES_BO_INFO,
		RGPU_SES_SET,
	};
	unsigned int cmd = cmds[rnd(sizeof(cmds) / sizeof(*cmds))];
	union {
		struct {
			__u32 size, flags;
		};
		__u32 u32[64];
		__u64 u64[32];
		struct rgpu_session_start start;
		struct rgpu_session_fd session;
	} a;
	size_t size = _IOC_SIZE(cmd), i;
	__s64 ret;

	for (i = 0; i < 32; i++) {
		a.u64[i] = value();
		if (rnd(2))
			a.u32[2 * i] = value(), a.u32[2 * i + 1] = rnd(3) ? rnd(4) : value();
	}
	a.size = rnd(16) ? size : value();
	a.flags = rnd(16) ? 0 : value();
	/* Waits must end: the reply comes from a proxy as random as this. */
	if (cmd == RGPU_IOC_WAIT)
		a.u32[3] = rnd(20);
	if (cmd == RGPU_IOC_SESSION_START && rnd(4)) {
		a.u32[2] = rnd(64);
		a.u32[3] = rnd(64);
	}
	if (!rnd(30))
		cmd = _IOC(rnd(4), rnd(8) ? RGPU_IOC_TYPE : rnd(256), rnd(256), rnd(300));
	ret = ioctl(fd, cmd, rnd(30) ? (unsigned long)&a : value());
	if (!ret && cmd == RGPU_IOC_SESSION_START)
		w.names[rnd(NAMES)] = a.start.id;
	if (!ret && cmd == RGPU_CTL_SESSION_FD) {
		int slot = rnd(FDS), got = a.session.fd;

		close(w.fds[slot]);
		w.fds[slot] = got;
	}
}

static void any_map(int fd)
{
	int i = rnd(MAPS), prot = rnd(5) ? PROT_READ | (rnd(2) ? PROT_WRITE : 0) : (int)rnd(8);
	size_t len = rnd(6) ? 4096u << rnd(4) : 4096u * rnd(64);
	__u64 off;
	char *p;

	switch (rnd(5)) {
	case 0:
		off = RGPU_MMAP_KPAGE;
		break;
	case 1:
	case 2:
		off = RGPU_MMAP_CHANNEL(rnd(4), rnd(5));
		break;
	case 3:
		off = rnd(2) ? RGPU_MMAP_BO(rnd(6)) : RGPU_MMAP_TRACKED(rnd(6));
		break;
	default:
		off = value() & ~4095ull;
	}
	if (w.maps[i].p && rnd(2))
		munmap(w.maps[i].p, w.maps[i].len);
	p = mmap(NULL, len, prot, rnd(8) ? MAP_SHARED : MAP_PRIVATE, fd, off);
	w.maps[i].p = p == MAP_FAILED ? NULL : p;
	w.maps[i].len = len;
}

/* Touching goes through madvise: what would be a SIGBUS is an error. */
static void use_map(void)
{
	int i = rnd(MAPS);
	char *p = w.maps[i].p;
	size_t len = w.maps[i].len;

	if (!p)
		return;
	switch (rnd(6)) {
	case 0:
		mprotect(p, len, rnd(8));
		break;
	case 1:
		p = mremap(p, len, 4096u * (1 + rnd(16)), rnd(4));
		if (p != MAP_FAILED)
			w.maps[i].p = NULL; /* left mapped: the process's end takes it */
		break;
	case 2:
		madvise(p, len, rnd(2) ? MADV_DONTNEED : rnd(30));
		break;
	case 3:
		mlock(p, len);
		break;
	default:
		madvise(p, len, rnd(2) ? MADV_POPULATE_READ : MADV_POPULATE_WRITE);
	}
}

/* Keeps the 64-bit names that an answer holds. */
static void learn(const struct msg *m)
{
	size_t len;
	const __u64 *v;
	static const __u16 types[] = { RGPU_A_REQ_ID, RGPU_A_SESSION };
	size_t i;

	for (i = 0; i < 2; i++) {
		v = msg_attr(m, types[i], &len);
		if (v && len == 8)
			memcpy(&w.names[rnd(NAMES)], v, 8);
	}
}

static void any_message(void)
{
	int which = rnd(2), n;
	struct nl *nl = &w.nl[which];
	static __thread struct msg m, a;
	char junk[RGPU_CONTROL_MAX + 8];
	size_t k, len;

	if (pthread_mutex_trylock(&w.nl_lock[which]))
		return;
	msg_begin(nl, &m, rnd(RGPU_CMD_MAX + 3));
	for (n = rnd(6); n > 0; n--) {
		__u16 type = rnd(20) ? rnd(RGPU_A_MAX + 3) : rnd(65536);

		switch (rnd(8)) {
		case 0:
			msg_u8(&m, type, value());
			break;
		case 1:
			msg_u16(&m, type, value());
			break;
		case 2:
			msg_u32(&m, type, value());
			break;
		case 3:
			msg_u32(&m, RGPU_A_DEVICE, rnd(4));
			break;
		case 4:
			msg_u64(&m, rnd(2) ? RGPU_A_REQ_ID : RGPU_A_SESSION, w.names[rnd(NAMES)]);
			break;
		case 5:
			msg_u32(&m, RGPU_A_STATUS, -rnd(600));
			break;
		default:
			len = rnd(4) ? rnd(300) : rnd(sizeof(junk));
			for (k = 0; k < len; k += 1 + rnd(32))
				junk[k] = rand_r(&seed);
			msg_put(&m, type, junk, len);
		}
	}
	if (!rnd(6)) { /* a sound registration, or nobody is ever the proxy */
		msg_begin(nl, &m, RGPU_CMD_REGISTER);
		msg_u32(&m, RGPU_A_CTL_FD, w.fds[FDS - 1]);
		msg_u16(&m, RGPU_A_ABI_MAJOR, RGPU_ABI_MAJOR);
		msg_u16(&m, RGPU_A_ABI_MINOR, RGPU_ABI_MINOR);
		msg_u64(&m, RGPU_A_FEATURES, RGPU_FEATURES);
	} else if (!rnd(4)) {
		msg_begin(nl, &m, RGPU_CMD_PULL);
	} else if (!rnd(6)) {
		__u8 uuid[RGPU_UUID_LEN] = { 1 + rnd(2) };

		msg_begin(nl, &m, RGPU_CMD_DEV_SET);
		msg_u32(&m, RGPU_A_DEVICE, rnd(3));
		msg_u8(&m, RGPU_A_ONLINE, 1);
		msg_put(&m, RGPU_A_UUID, uuid, sizeof(uuid));
		msg_put(&m, RGPU_A_SERVER, uuid, sizeof(uuid));
	}
	if (!rnd(6))
		m.h.nlmsg_flags |= NLM_F_DUMP;
	if (!rnd(20))
		m.h.nlmsg_flags = value() | NLM_F_REQUEST;
	if (!rnd(30))
		((char *)&m)[rnd(m.h.nlmsg_len)] = rand_r(&seed);
	(void)!send(nl->fd, &m, rnd(40) ? m.h.nlmsg_len : rnd(m.h.nlmsg_len + 64), MSG_DONTWAIT);
	for (n = 0; n < 4 && nl_recv(nl, &a, 0); n++)
		learn(&a);
	pthread_mutex_unlock(&w.nl_lock[which]);
}

static void any_descriptor(void)
{
	static const char *const paths[] = { "/dev/rgpu0", "/dev/rgpu1", "/dev/rgpu2", "/dev/rgpu-ctl" };
	int i = rnd(FDS), fd;
	struct pollfd pf = { .fd = w.fds[i], .events = POLLIN | POLLOUT };
	char c[64];

	switch (rnd(6)) {
	case 0:
		poll(&pf, 1, 0);
		break;
	case 1:
		(void)!read(w.fds[i], c, sizeof(c));
		break;
	case 2:
		(void)!pwrite(w.fds[i], c, rnd(sizeof(c)), 0);
		break;
	case 3:
		i = rnd(2);
		if (!pthread_mutex_trylock(&w.nl_lock[i])) {
			nl_close(&w.nl[i]);
			nl_open(&w.nl[i]);
			pthread_mutex_unlock(&w.nl_lock[i]);
		}
		break;
	default:
		fd = open(i == FDS - 1 ? paths[3] : paths[rnd(4)], O_RDWR | (rnd(4) ? 0 : O_NONBLOCK));
		if (fd >= 0) {
			close(w.fds[i]);
			w.fds[i] = fd;
		}
	}
}

static void *thread(void *arg)
{
	seed = (unsigned long)arg;
	for (;;) {
		int fd = w.fds[rnd(FDS)];

		switch (rnd(16)) {
		case 0:
			any_descriptor();
			break;
		case 1:
		case 2:
			any_map(fd);
			break;
		case 3:
		case 4:
			use_map();
			break;
		case 5:
		case 6:
		case 7:
		case 8:
			any_message();
			break;
		default:
			any_ioctl(fd);
		}
	}
	return NULL;
}

static pid_t spawn(unsigned int s)
{
	pid_t pid;
	int i;

	fflush(stdout);
	pid = fork();
	if (pid)
		return pid;
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	seed = s;
	for (i = 0; i < FDS; i++)
		w.fds[i] = open(i == FDS - 1 ? "/dev/rgpu-ctl" : i % 2 ? "/dev/rgpu0" : "/dev/rgpu1", O_RDWR);
	for (i = 0; i < 2; i++) {
		pthread_mutex_init(&w.nl_lock[i], NULL);
		nl_open(&w.nl[i]);
	}
	for (i = 0; i < 3; i++) {
		pthread_t t;

		pthread_create(&t, NULL, thread, (void *)(unsigned long)rand_r(&seed));
	}
	for (;;) {
		usleep(rnd(100000));
		if (!rnd(4) && !fork()) {
			usleep(rnd(30000)); /* holds copies of all descriptors and maps for a while */
			_exit(0);
		}
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
}

static void reap(pid_t pid)
{
	kill(-pid, SIGKILL);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static unsigned int env(const char *name, unsigned int otherwise)
{
	const char *s = getenv(name);

	return s ? strtoul(s, NULL, 0) : otherwise;
}

static void narrow_limits(void)
{
	parameters_reset();
	parameter("recover_secs", "2");
	parameter("reply_secs", "1");
	parameter("session_mib", "8");
}

int main(void)
{
	unsigned int secs = env("RGPU_FUZZ_SECS", 5), i, kills = 0;
	time_t end = time(NULL) + secs;
	struct proxy p;
	pid_t pids[3];
	struct msg m;

	seed = env("RGPU_FUZZ_SEED", time(NULL));
	printf("# RGPU_FUZZ_SEED=%u\n", seed);
	narrow_limits();
	for (i = 0; i < 3; i++)
		pids[i] = spawn(rand_r(&seed));
	while (time(NULL) < end) {
		usleep(rnd(1000000));
		i = rnd(3);
		reap(pids[i]);
		pids[i] = spawn(rand_r(&seed));
		kills++;
		/* A random LIMITS_SET can end all sessions for ever. */
		narrow_limits();
	}
	for (i = 0; i < 3; i++)
		reap(pids[i]);
	ok(kills > 0, "random calls from three processes, %u of them killed", kills);
	parameters_reset();
	for (i = 0; i < 2000 && proxy_open(&p); i++)
		usleep(10000);
	if (ok(i < 2000, "a sound proxy registers after all that")) {
		int fd, sfd;

		counter_becomes("sessions", 0);
		acknowledge(&p);
		for (i = 0; i < 2; i++) { /* random messages may have removed them */
			msg_begin(&p.nl, &m, RGPU_CMD_DEV_ADD);
			msg_u32(&m, RGPU_A_DEVICE, i);
			nl_call(&p.nl, &m, NULL);
		}
		is_int(proxy_online(&p, 0, 1), 0, "a device online");
		fd = app_open(0);
		sfd = start_with(&p, fd, NULL);
		ok(sfd >= 0, "a session starts");
		close(fd);
		close(sfd);
		acknowledge(&p);
		proxy_close(&p);
	}
	nothing_left();
	return tap_done();
}
