// SPDX-License-Identifier: GPL-2.0
/* A stub of the proxy, a stub of a program, and the module's counters, for the tests in this folder. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tests/selftests/rgpu/stub.h"

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
}

static int sys(int ret)
{
	return ret < 0 ? -errno : ret;
}

/* Outside our guests, where a missing module is a failure, a machine may just not have it. */
__attribute__((constructor)) static void need_module(void)
{
	if (access("/dev/rgpu-ctl", F_OK) && !getenv("RGPU_VM"))
		skip_all("there is no /dev/rgpu-ctl: modprobe rgpu");
}

/* The proxy -------------------------------------------------------------------------------------------------------- */

int proxy_register(struct nl *nl, int ctl_fd, __u16 major, __u32 *epoch)
{
	struct msg m, a;
	int err;

	msg_begin(nl, &m, RGPU_CMD_REGISTER);
	msg_u32(&m, RGPU_A_CTL_FD, ctl_fd);
	msg_u16(&m, RGPU_A_ABI_MAJOR, major);
	msg_u16(&m, RGPU_A_ABI_MINOR, RGPU_ABI_MINOR);
	msg_u64(&m, RGPU_A_FEATURES, RGPU_FEATURES);
	err = nl_call(nl, &m, &a);
	if (!err)
		*epoch = msg_get_u32(&a, RGPU_A_EPOCH);
	return err;
}

int proxy_open(struct proxy *p)
{
	int err = nl_open(&p->nl);

	p->gone = 0;
	if (err)
		return err;
	p->ctl = open("/dev/rgpu-ctl", O_RDWR | O_CLOEXEC);
	if (p->ctl < 0) {
		err = -errno;
		nl_close(&p->nl);
		return err;
	}
	err = proxy_register(&p->nl, p->ctl, RGPU_ABI_MAJOR, &p->epoch);
	if (err)
		proxy_close(p);
	return err;
}

void proxy_close(struct proxy *p)
{
	close(p->ctl);
	nl_close(&p->nl);
}

int proxy_online(struct proxy *p, __u32 dev, __u8 server)
{
	__u8 uuid[RGPU_UUID_LEN];
	char name[32];
	struct msg m;

	msg_begin(&p->nl, &m, RGPU_CMD_DEV_SET);
	msg_u32(&m, RGPU_A_DEVICE, dev);
	snprintf(name, sizeof(name), "Stub GPU %u", dev);
	msg_str(&m, RGPU_A_NAME, name);
	memset(uuid, 0x10 + dev, sizeof(uuid));
	msg_put(&m, RGPU_A_UUID, uuid, sizeof(uuid));
	memset(uuid, server, sizeof(uuid));
	msg_put(&m, RGPU_A_SERVER, uuid, sizeof(uuid));
	msg_u64(&m, RGPU_A_MEM_TOTAL, 80ull << 30);
	msg_put(&m, RGPU_A_PROPS, "properties", 10);
	msg_put(&m, RGPU_A_DEV_COOKIE, &dev, sizeof(dev));
	msg_u8(&m, RGPU_A_ONLINE, 1);
	return nl_call(&p->nl, &m, NULL);
}

static size_t copy_attr(const struct msg *m, __u16 type, void *dst, size_t max)
{
	size_t len = 0;
	const void *p = msg_attr(m, type, &len);

	if (!p || len > max)
		return 0;
	memcpy(dst, p, len);
	return len;
}

int proxy_pull(struct proxy *p, struct request *r)
{
	struct msg m, a;
	int err;

	memset(r, 0, sizeof(*r));
	msg_begin(&p->nl, &m, RGPU_CMD_PULL);
	err = nl_call(&p->nl, &m, &a);
	if (err)
		return err;
	r->id = msg_get_u64(&a, RGPU_A_REQ_ID);
	r->session = msg_get_u64(&a, RGPU_A_SESSION);
	r->type = msg_get_u32(&a, RGPU_A_REQ_TYPE);
	r->flags = msg_get_u32(&a, RGPU_A_REQ_FLAGS);
	r->room = msg_get_u32(&a, RGPU_A_DATA_ROOM);
	r->op = msg_get_u32(&a, RGPU_A_OP);
	r->device = msg_get_u32(&a, RGPU_A_DEVICE);
	r->index = msg_get_u32(&a, RGPU_A_DEVICE_INDEX);
	r->uid = msg_get_u32(&a, RGPU_A_UID);
	r->pid = msg_get_u32(&a, RGPU_A_PID);
	copy_attr(&a, RGPU_A_SID, r->sid, sizeof(r->sid));
	copy_attr(&a, RGPU_A_COMM, r->comm, sizeof(r->comm));
	r->len = copy_attr(&a, RGPU_A_DATA, r->data, sizeof(r->data));
	r->cookie_len = copy_attr(&a, RGPU_A_COOKIE, r->cookie, sizeof(r->cookie));
	r->dev_cookie_len = copy_attr(&a, RGPU_A_DEV_COOKIE, r->dev_cookie, sizeof(r->dev_cookie));
	return 0;
}

int proxy_next(struct proxy *p, struct request *r)
{
	struct pollfd pfd = { .fd = p->ctl, .events = POLLIN };

	if (poll(&pfd, 1, 20000) <= 0 || !(pfd.revents & POLLIN))
		return -ETIME;
	return proxy_pull(p, r);
}

int proxy_reply(struct proxy *p, __u64 id, int status, const void *data, size_t len)
{
	__s32 s = status;
	struct msg m;

	msg_begin(&p->nl, &m, RGPU_CMD_REPLY);
	msg_u64(&m, RGPU_A_REQ_ID, id);
	msg_put(&m, RGPU_A_STATUS, &s, sizeof(s));
	if (data)
		msg_put(&m, RGPU_A_DATA, data, len);
	return nl_call(&p->nl, &m, NULL);
}

int proxy_attach(struct proxy *p, __u64 session)
{
	struct rgpu_session_fd s = { .size = sizeof(s), .id = session };

	if (ioctl(p->ctl, RGPU_CTL_SESSION_FD, &s))
		return -errno;
	return s.fd;
}

int session_set(int sfd, __u32 state, int reason)
{
	struct rgpu_session_set s = { .size = sizeof(s), .state = state, .reason = reason };

	return sys(ioctl(sfd, RGPU_SES_SET, &s));
}

int session_cookie(struct proxy *p, __u64 session, const void *data, size_t len)
{
	struct msg m;

	msg_begin(&p->nl, &m, RGPU_CMD_SESSION_SET);
	msg_u64(&m, RGPU_A_SESSION, session);
	msg_put(&m, RGPU_A_COOKIE, data, len);
	return nl_call(&p->nl, &m, NULL);
}

/* A session that proxy_serve() holds: it echoes channel 0 to the program. */
struct served {
	int sfd;
	__u64 id;
	struct rgpu_apage *a;
	struct rgpu_ppage *p;
	char *sq, *cq;
	__u32 sq_size, cq_size;
};

static void serve_ring(struct served *s)
{
	struct rgpu_kicked k = { .size = sizeof(k) };
	struct rgpu_channel_info info = { .size = sizeof(info) };
	struct rgpu_channel_ref ref = { .size = sizeof(ref) };
	__u32 tail, i;

	if (ioctl(s->sfd, RGPU_SES_KICKED, &k) || !(k.channels[0] & 1))
		return;
	if (!s->a) {
		if (ioctl(s->sfd, RGPU_SES_CHANNEL_INFO, &info))
			return;
		s->sq_size = info.sq_size;
		s->cq_size = info.cq_size;
		s->a = map(s->sfd, RGPU_MMAP_CHANNEL(0, RGPU_MMAP_APAGE), 4096, PROT_READ, MAP_SHARED);
		s->p = map(s->sfd, RGPU_MMAP_CHANNEL(0, RGPU_MMAP_PPAGE), 4096, PROT_READ | PROT_WRITE, MAP_SHARED);
		s->sq = map(s->sfd, RGPU_MMAP_CHANNEL(0, RGPU_MMAP_SQ), s->sq_size, PROT_READ, MAP_SHARED);
		s->cq = map(s->sfd, RGPU_MMAP_CHANNEL(0, RGPU_MMAP_CQ), s->cq_size, PROT_READ | PROT_WRITE, MAP_SHARED);
		if (MAP_BAD(s->a) || MAP_BAD(s->p) || MAP_BAD(s->sq) || MAP_BAD(s->cq)) {
			s->a = NULL; /* the program is gone already */
			return;
		}
	}
	tail = __atomic_load_n(&s->a->sq_tail, __ATOMIC_ACQUIRE);
	for (i = s->p->sq_head; i != tail; i++)
		s->cq[i & (s->cq_size - 1)] = s->sq[i & (s->sq_size - 1)] ^ 0x20;
	__atomic_store_n(&s->p->sq_head, tail, __ATOMIC_RELEASE);
	__atomic_store_n(&s->p->cq_tail, tail, __ATOMIC_RELEASE);
	ioctl(s->sfd, RGPU_IOC_KICK, &ref);
}

static void serve_resume(const struct msg *m, void *arg)
{
	__u64 *ids = arg;
	int i;

	for (i = 0; i < 8; i++) {
		if (!ids[i]) {
			ids[i] = msg_get_u64(m, RGPU_A_SESSION);
			return;
		}
	}
}

static void serve_request(struct proxy *p, struct served *s)
{
	struct request r;
	int i, status = 0;

	if (proxy_pull(p, &r))
		return;
	if (r.type == RGPU_REQ_START) {
		for (i = 0; i < 8 && s[i].sfd; i++)
			;
		s[i].sfd = proxy_attach(p, r.session);
		s[i].id = r.session;
		if (s[i].sfd < 0)
			status = -EIO;
	}
	for (i = 0; r.type == RGPU_REQ_GONE && i < 8; i++) {
		if (s[i].sfd && s[i].id == r.session) {
			close(s[i].sfd);
			memset(&s[i], 0, sizeof(s[i]));
		}
	}
	proxy_reply(p, r.id, status, r.type == RGPU_REQ_CONTROL ? r.data : NULL, r.len);
}

void proxy_serve(void)
{
	struct served s[8] = { 0 };
	struct pollfd pfd[9];
	__u64 ids[8] = { 0 };
	struct proxy p;
	int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (proxy_open(&p))
		_exit(99);
	nl_dump(&p.nl, RGPU_CMD_SESSION_GET, serve_resume, ids);
	for (i = 0; i < 8 && ids[i]; i++) {
		s[i].id = ids[i];
		s[i].sfd = proxy_attach(&p, ids[i]);
		if (s[i].sfd > 0)
			session_set(s[i].sfd, RGPU_SESSION_LIVE, 0);
	}
	proxy_online(&p, 2, 2);
	proxy_online(&p, 1, 1);
	proxy_online(&p, 0, 1);
	for (;;) {
		pfd[8] = (struct pollfd){ .fd = p.ctl, .events = POLLIN };
		for (i = 0; i < 8; i++)
			pfd[i] = (struct pollfd){ .fd = s[i].sfd > 0 ? s[i].sfd : -1, .events = POLLIN };
		poll(pfd, 9, -1);
		for (i = 0; i < 8; i++) {
			if (pfd[i].revents & POLLIN)
				serve_ring(&s[i]);
		}
		if (pfd[8].revents & POLLIN)
			serve_request(&p, s);
	}
}

pid_t proxy_fork(void)
{
	pid_t pid = fork();
	char state[32] = "";
	int i;

	if (!pid)
		proxy_serve();
	for (i = 0; i < 10000 && strcmp(state, "online"); i++) {
		nap();
		device_attr(0, "state", state, sizeof(state));
	}
	return pid;
}

void proxy_kill(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	counter_becomes("proxy", 0);
}

/* A program ------------------------------------------------------------------------------------------------------- */

int app_open(int dev)
{
	char path[32];

	snprintf(path, sizeof(path), "/dev/rgpu%d", dev);
	return sys(open(path, O_RDWR | O_CLOEXEC));
}

int app_start(int fd, __u64 *id)
{
	struct rgpu_session_start s = { .size = sizeof(s) };
	int err = sys(ioctl(fd, RGPU_IOC_SESSION_START, &s));

	if (id)
		*id = s.id;
	return err;
}

int app_channel(int fd, __u32 size, __u32 *ch)
{
	struct rgpu_channel_create c = { .size = sizeof(c), .sq_size = size, .cq_size = size };
	int err = sys(ioctl(fd, RGPU_IOC_CHANNEL_CREATE, &c));

	if (ch)
		*ch = c.channel;
	return err;
}

int app_channel_destroy(int fd, __u32 ch)
{
	struct rgpu_channel_ref r = { .size = sizeof(r), .channel = ch };

	return sys(ioctl(fd, RGPU_IOC_CHANNEL_DESTROY, &r));
}

int app_bo(int fd, __u64 bytes, __u32 *handle)
{
	struct rgpu_bo_create c = { .size = sizeof(c), .bytes = bytes };
	int err = sys(ioctl(fd, RGPU_IOC_BO_CREATE, &c));

	if (handle)
		*handle = c.handle;
	return err;
}

int app_bo_destroy(int fd, __u32 handle)
{
	struct rgpu_bo_ref r = { .size = sizeof(r), .handle = handle };

	return sys(ioctl(fd, RGPU_IOC_BO_DESTROY, &r));
}

int app_kick(int fd, __u32 ch)
{
	struct rgpu_channel_ref r = { .size = sizeof(r), .channel = ch };

	return sys(ioctl(fd, RGPU_IOC_KICK, &r));
}

int app_wait(int fd, __u32 ch, int ms)
{
	struct rgpu_wait w = { .size = sizeof(w), .channel = ch, .timeout_ms = ms };

	return sys(ioctl(fd, RGPU_IOC_WAIT, &w));
}

int app_join(int fd, int other, __u32 *index)
{
	struct rgpu_session_join j = { .size = sizeof(j), .fd = other };
	int err = sys(ioctl(fd, RGPU_IOC_SESSION_JOIN, &j));

	if (index)
		*index = j.device;
	return err;
}

int app_control(int fd, __u32 op, void *data, __u32 *len, __u32 room)
{
	struct rgpu_control c = {
		.size = sizeof(c),
		.op = op,
		.data_len = *len,
		.data_room = room,
		.data = (unsigned long)data,
	};
	int err = sys(ioctl(fd, RGPU_IOC_CONTROL, &c));

	*len = c.data_len;
	return err;
}

void *map(int fd, __u64 off, size_t len, int prot, int flags)
{
	void *p = mmap(NULL, len, prot, flags, fd, off);

	return p == MAP_FAILED ? (void *)(long)-errno : p;
}

struct chan map_channel(int fd, __u32 ch, bool proxy)
{
	int app_rights = PROT_READ | (proxy ? 0 : PROT_WRITE), proxy_rights = PROT_READ | (proxy ? PROT_WRITE : 0);
	struct chan c;

	c.k = map(fd, RGPU_MMAP_KPAGE, 4096, PROT_READ, MAP_SHARED);
	c.a = map(fd, RGPU_MMAP_CHANNEL(ch, RGPU_MMAP_APAGE), 4096, app_rights, MAP_SHARED);
	c.p = map(fd, RGPU_MMAP_CHANNEL(ch, RGPU_MMAP_PPAGE), 4096, proxy_rights, MAP_SHARED);
	c.sq = map(fd, RGPU_MMAP_CHANNEL(ch, RGPU_MMAP_SQ), CHAN_RING, app_rights, MAP_SHARED);
	c.cq = map(fd, RGPU_MMAP_CHANNEL(ch, RGPU_MMAP_CQ), CHAN_RING, proxy_rights, MAP_SHARED);
	if (MAP_BAD(c.k) || MAP_BAD(c.a) || MAP_BAD(c.p) || MAP_BAD(c.sq) || MAP_BAD(c.cq)) {
		printf("Bail out! a channel does not map\n");
		exit(1);
	}
	return c;
}

void unmap_channel(struct chan *c)
{
	munmap(c->k, 4096);
	munmap(c->a, 4096);
	munmap(c->p, 4096);
	munmap(c->sq, CHAN_RING);
	munmap(c->cq, CHAN_RING);
}

int async_start(struct async *a)
{
	return app_start(a->fd, &a->id);
}

int async_control(struct async *a)
{
	return app_control(a->fd, a->op, a->data, &a->len, a->room);
}

int async_wait(struct async *a)
{
	return app_wait(a->fd, a->ch, a->ms);
}

int async_join(struct async *a)
{
	return app_join(a->fd, a->other, &a->index);
}

static void *async_thread(void *arg)
{
	struct async *a = arg;

	a->tid = syscall(SYS_gettid);
	a->ret = a->call(a);
	return NULL;
}

void async_begin(struct async *a, int (*call)(struct async *a))
{
	a->call = call;
	a->tid = 0;
	if (pthread_create(&a->thread, NULL, async_thread, a))
		abort();
}

int async_end(struct async *a)
{
	pthread_join(a->thread, NULL);
	return a->ret;
}

/* /proc/TID/syscall says "running", or the number of the call that it sleeps in. */
void async_sleeps(struct async *a)
{
	char path[64], line[64];
	FILE *f;

	for (;;) {
		nap();
		if (!a->tid)
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", a->tid);
		f = fopen(path, "r");
		if (!f)
			return;
		if (fgets(line, sizeof(line), f) && atoi(line) == SYS_ioctl) {
			fclose(f);
			return;
		}
		fclose(f);
	}
}

int start_with(struct proxy *p, int fd, __u64 *id)
{
	struct async a = { .fd = fd };
	struct request r;
	int sfd, err;

	async_begin(&a, async_start);
	for (;;) {
		err = proxy_next(p, &r);
		if (err || r.type != RGPU_REQ_GONE)
			break;
		proxy_reply(p, r.id, 0, NULL, 0);
		p->gone++;
	}
	if (err || r.type != RGPU_REQ_START) {
		printf("Bail out! waited for START: %s, type %u\n", strerror(-err), r.type);
		exit(1);
	}
	sfd = proxy_attach(p, r.session);
	err = proxy_reply(p, r.id, sfd < 0 ? sfd : 0, NULL, 0);
	if (async_end(&a) || err) {
		printf("Bail out! session does not start: %s, %s\n", strerror(-a.ret), strerror(-err));
		exit(1);
	}
	if (id)
		*id = a.id;
	return sfd;
}

int acknowledge(struct proxy *p)
{
	struct request r;
	int n = p->gone;

	p->gone = 0;
	while (!proxy_pull(p, &r)) {
		if (r.type == RGPU_REQ_GONE)
			n++;
		proxy_reply(p, r.id, r.type == RGPU_REQ_GONE ? 0 : -EIO, NULL, 0);
	}
	return n;
}

/* The machine ----------------------------------------------------------------------------------------------------- */

int put(const char *path, const char *text)
{
	int f = open(path, O_WRONLY | O_CLOEXEC), err = 0;

	if (f < 0)
		return -errno;
	if (write(f, text, strlen(text)) < 0)
		err = -errno;
	close(f);
	return err;
}

int child_status(int (*f)(void))
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(f());
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The module ------------------------------------------------------------------------------------------------------ */

static long read_long(const char *path)
{
	FILE *f = fopen(path, "r");
	long v = -1;

	if (f) {
		if (fscanf(f, "%ld", &v) != 1)
			v = -1;
		fclose(f);
	}
	return v;
}

long counter(const char *name)
{
	char path[96];

	snprintf(path, sizeof(path), "/sys/class/rgpu/rgpu-ctl/%s", name);
	return read_long(path);
}

long counter_becomes(const char *name, long want)
{
	int i;

	for (i = 0; i < 10000 && counter(name) != want; i++)
		nap();
	return counter(name);
}

int left_behind(void)
{
	static const char *const names[] = { "files", "sessions", "gone", "channels", "bos", "bo_bytes", "pages", "requests" };
	int kinds = 0;
	size_t i;
	long v;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		v = counter_becomes(names[i], 0);
		if (v) {
			printf("# %s: %ld\n", names[i], v);
			kinds++;
		}
	}
	return kinds;
}

void parameter(const char *name, const char *value)
{
	char path[96];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/module/rgpu/parameters/%s", name);
	f = fopen(path, "w");
	if (!f || fputs(value, f) < 0 || fclose(f)) {
		printf("Bail out! cannot set %s\n", path);
		exit(1);
	}
}

void parameters_reset(void)
{
	static const char *const defaults[][2] = {
		{ "recover_secs", "120" },
		{ "reply_secs", "120" },
		{ "max_sessions", "1024" },
		{ "max_user_sessions", "256" },
		{ "max_cgroup_sessions", "0" },
		{ "session_mib", "0" },
		{ "user_mib", "0" },
		{ "cgroup_mib", "0" },
	};
	size_t i;

	for (i = 0; i < sizeof(defaults) / sizeof(*defaults); i++)
		parameter(defaults[i][0], defaults[i][1]);
}

void device_attr(int dev, const char *name, char *buf, size_t len)
{
	char path[96];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/rgpu/rgpu%d/%s", dev, name);
	f = fopen(path, "r");
	buf[0] = 0;
	if (!f)
		return;
	if (!fgets(buf, len, f))
		buf[0] = 0;
	buf[strcspn(buf, "\n")] = 0;
	fclose(f);
}
