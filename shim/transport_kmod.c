// SPDX-License-Identifier: MIT
/* The transport over /dev/rgpuN: ioctls and mapped rings; it opens nothing else. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "shim/transport_int.h"

#define MINORS	       64
#define QUOTA_TRIES    30
#define QUOTA_PAUSE_NS 100000000L

struct kmod {
	struct rgpu_transport base;
	int *fd;     /* of each device */
	int session; /* the fd that started it */

	pthread_mutex_t lock; /* of observer */
	int observer;	      /* what control requests go through while there is no session; −1 none yet */
};

static struct kmod *of(struct rgpu_transport *t)
{
	return (struct kmod *)t;
}

static void free_kmod(struct kmod *m)
{
	if (m->observer >= 0)
		close(m->observer);
	for (unsigned i = 0; i < m->base.ndevices; i++) {
		close(m->fd[i]);
		free((void *)m->base.device[i].props);
	}
	free(m->base.device);
	free(m->fd);
	free(m);
}

static void kmod_close(struct rgpu_transport *t)
{
	if (t->k)
		munmap((void *)t->k, sysconf(_SC_PAGESIZE));
	free_kmod(of(t));
}

/* Takes a device in. -EPROTO is for everybody; another error is this device's. */
static int add_device(struct kmod *m, int fd, uint8_t server[RGPU_UUID_LEN])
{
	struct rgpu_info info = {.size = sizeof(info), .props_len = RGPU_PROPS_MAX};
	struct rgpu_device *d = &m->base.device[m->base.ndevices];
	void *props = calloc(1, RGPU_PROPS_MAX);

	if (!props)
		return -ENOMEM;
	info.props = (uintptr_t)props;
	if (ioctl(fd, RGPU_IOC_INFO, &info)) {
		free(props);
		return -errno;
	}
	if (info.abi_major != RGPU_ABI_MAJOR) {
		free(props);
		return transport_why(-EPROTO,
				     "this library speaks version %d.%d of the rgpu module's interface, the loaded module %u.%u: "
				     "install the same "
				     "release of both",
				     RGPU_ABI_MAJOR, RGPU_ABI_MINOR, info.abi_major, info.abi_minor);
	}
	/* One transport is one server: the first device's. */
	if (m->base.ndevices && memcmp(server, info.server, RGPU_UUID_LEN)) {
		free(props);
		return -EXDEV;
	}
	memcpy(server, info.server, RGPU_UUID_LEN);
	d->index = m->base.ndevices;
	d->minor = info.minor;
	memcpy(d->uuid, info.uuid, RGPU_UUID_LEN);
	memcpy(d->name, info.name, RGPU_NAME_LEN);
	d->name[RGPU_NAME_LEN - 1] = 0;
	d->mem_total = info.mem_total;
	d->props = props;
	d->props_len = info.props_len < RGPU_PROPS_MAX ? info.props_len : RGPU_PROPS_MAX;
	m->fd[m->base.ndevices++] = fd;
	return 0;
}

static int none_found(int denied, int offline)
{
	if (denied >= 0)
		return transport_why(
			-EACCES,
			"no permission for /dev/rgpu%d: is this user in the group rgpu, and does its cgroup allow the device?",
			denied);
	if (offline >= 0)
		return transport_why(-ENODEV,
				     "no GPU stands behind /dev/rgpu%d now: rgpu-proxy is not running or does not reach its "
				     "server (look at its log)",
				     offline);
	return transport_why(
		-ENODEV,
		"there is no /dev/rgpu0: load the module (modprobe rgpu) and start rgpu-proxy, or set RGPU_SERVER=HOST:PORT and "
		"RGPU_KEY=FILE to go without it");
}

static int kmod_start(struct rgpu_transport *t, const unsigned *dev, unsigned n, const void *data, uint32_t data_len)
{
	struct rgpu_session_start s = {.size = sizeof(s), .data_len = data_len, .data_room = RGPU_CONTROL_MAX};
	char buf[RGPU_CONTROL_MAX + 1];
	struct kmod *m = of(t);
	void *k;
	int err;

	memcpy(buf, data, data_len);
	s.data = (uintptr_t)buf;
	if (ioctl(m->fd[dev[0]], RGPU_IOC_SESSION_START, &s)) {
		err = -errno;
		/* With an error, the answer's bytes are the proxy's line about it. */
		if (s.data_len && s.data_len <= RGPU_CONTROL_MAX && s.data_len != data_len) {
			buf[s.data_len] = 0;
			return transport_why(err, "%s", buf);
		}
		return transport_why(err, "the session could not be started: %s (see rgpu-proxy's log)", strerror(-err));
	}
	m->session = m->fd[dev[0]];
	for (unsigned i = 1; i < n; i++) {
		struct rgpu_session_join j = {.size = sizeof(j), .fd = m->session};

		if (ioctl(m->fd[dev[i]], RGPU_IOC_SESSION_JOIN, &j)) {
			err = -errno;
			return transport_why(err, "device %u could not join the session: %s (see rgpu-proxy's log)", dev[i],
					     strerror(-err));
		}
		if (j.device != i)
			return transport_why(-EPROTO, "device %u became number %u of the session, expected %u", dev[i], j.device,
					     i);
	}
	k = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, m->session, RGPU_MMAP_KPAGE);
	if (k == MAP_FAILED)
		return transport_why(-errno, "cannot map the session's page: %s", strerror(errno));
	t->k = k;
	return 0;
}

static void *map_ring(struct kmod *m, uint32_t channel, unsigned what, size_t bytes, int prot)
{
	return mmap(NULL, bytes, prot, MAP_SHARED, m->session, RGPU_MMAP_CHANNEL(channel, what));
}

static int kmod_channel(struct rgpu_transport *t, struct rgpu_channel *out)
{
	struct rgpu_channel_create c = {.size = sizeof(c), .sq_size = RGPU_SQ_DEFAULT, .cq_size = RGPU_CQ_DEFAULT};
	struct rgpu_channel_ref ref = {.size = sizeof(ref)};
	size_t page = sysconf(_SC_PAGESIZE);
	struct kmod *m = of(t);
	void *a, *p, *sq, *cq;
	int err;

	if (ioctl(m->session, RGPU_IOC_CHANNEL_CREATE, &c))
		return transport_why(-errno,
				     errno == ENOSPC ? "a program can have %d threads that use CUDA; this is one more (%s)"
						     : "no channel of %d: %s",
				     RGPU_CHANNELS_MAX, strerror(errno));
	a = map_ring(m, c.channel, RGPU_MMAP_APAGE, page, PROT_READ | PROT_WRITE);
	p = map_ring(m, c.channel, RGPU_MMAP_PPAGE, page, PROT_READ);
	sq = map_ring(m, c.channel, RGPU_MMAP_SQ, c.sq_size, PROT_READ | PROT_WRITE);
	cq = map_ring(m, c.channel, RGPU_MMAP_CQ, c.cq_size, PROT_READ);
	if (a == MAP_FAILED || p == MAP_FAILED || sq == MAP_FAILED || cq == MAP_FAILED) {
		err = -errno;
		if (a != MAP_FAILED)
			munmap(a, page);
		if (p != MAP_FAILED)
			munmap(p, page);
		if (sq != MAP_FAILED)
			munmap(sq, c.sq_size);
		if (cq != MAP_FAILED)
			munmap(cq, c.cq_size);
		ref.channel = c.channel;
		ioctl(m->session, RGPU_IOC_CHANNEL_DESTROY, &ref);
		return transport_why(err, "cannot map a channel's rings: %s", strerror(-err));
	}
	*out = (struct rgpu_channel){c.channel, t->k, a, p, sq, cq, c.sq_size, c.cq_size};
	return 0;
}

/*
 * The limit counts what the proxy still has mapped of objects that were just destroyed; it lets go of them within a second or so.
 */
static int create_bo(struct kmod *m, struct rgpu_bo_create *c)
{
	struct timespec pause = {.tv_nsec = QUOTA_PAUSE_NS};

	for (int i = 0;; i++) {
		if (!ioctl(m->session, RGPU_IOC_BO_CREATE, c))
			return 0;
		if (errno != EDQUOT || i == QUOTA_TRIES)
			return -errno;
		nanosleep(&pause, NULL);
	}
}

static int kmod_bo_create(struct rgpu_transport *t, uint64_t bytes, struct rgpu_bo *out)
{
	struct rgpu_bo_create c = {.size = sizeof(c), .bytes = bytes};
	struct rgpu_bo_ref ref = {.size = sizeof(ref)};
	struct kmod *m = of(t);
	void *base;
	int err;

	err = create_bo(m, &c);
	if (err)
		return transport_why(err, "no buffer object of %llu bytes: %s", (unsigned long long)bytes, strerror(-err));
	base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, m->session, RGPU_MMAP_BO(c.handle));
	if (base == MAP_FAILED) {
		err = -errno;
		ref.handle = c.handle;
		ioctl(m->session, RGPU_IOC_BO_DESTROY, &ref);
		return transport_why(err, "cannot map a buffer object: %s", strerror(-err));
	}
	*out = (struct rgpu_bo){c.handle, base, bytes};
	return 0;
}

static void kmod_bo_destroy(struct rgpu_transport *t, struct rgpu_bo *bo)
{
	struct rgpu_bo_ref ref = {.size = sizeof(ref), .handle = bo->handle};

	munmap(bo->base, bo->bytes);
	ioctl(of(t)->session, RGPU_IOC_BO_DESTROY, &ref); /* a handle that is not there is not there */
}

static int kmod_bo_map(struct rgpu_transport *t, const struct rgpu_bo *bo, void *at)
{
	if (mmap(at, bo->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, of(t)->session, RGPU_MMAP_BO(bo->handle)) != at)
		return transport_why(-errno, "cannot map a buffer object a second time: %s", strerror(errno));
	return 0;
}

static int kmod_bo_track(struct rgpu_transport *t, const struct rgpu_bo *bo, void *at)
{
	if (mmap(at, bo->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, of(t)->session, RGPU_MMAP_TRACKED(bo->handle)) ==
	    at)
		return 0;
	/* ENOENT: a module that does not have it. */
	return transport_why(errno == ENOENT ? -ENOTSUP : -errno, "cannot track writes to a buffer object: %s", strerror(errno));
}

static int kmod_bo_dirty(struct rgpu_transport *t, const struct rgpu_bo *bo, uint64_t *bits)
{
	struct rgpu_bo_dirty d = {
		.size = sizeof(d), .handle = bo->handle, .pages = bo->bytes / sysconf(_SC_PAGESIZE), .bitmap = (uint64_t)bits};

	if (!ioctl(of(t)->session, RGPU_IOC_BO_DIRTY, &d))
		return 0;
	return transport_why(-errno, "cannot ask what was written: %s", strerror(errno));
}

static int kmod_kick(struct rgpu_transport *t, uint32_t channel)
{
	struct rgpu_channel_ref ref = {.size = sizeof(ref), .channel = channel};

	/* ESHUTDOWN: the K page says it. */
	if (!ioctl(of(t)->session, RGPU_IOC_KICK, &ref) || errno == ESHUTDOWN)
		return 0;
	return transport_why(-errno, "kick: %s", strerror(errno));
}

static int kmod_wait(struct rgpu_transport *t, uint32_t channel, int timeout_ms)
{
	struct rgpu_wait w = {.size = sizeof(w), .channel = channel, .timeout_ms = timeout_ms};

	if (!ioctl(of(t)->session, RGPU_IOC_WAIT, &w) || errno == ESHUTDOWN)
		return 0;
	if (errno == ETIMEDOUT || errno == EINTR)
		return -errno;
	return transport_why(-errno, "wait: %s", strerror(errno));
}

/*
 * A program without a session (rgpu-smi) asks through one that has no greeting: the proxy answers it and starts nothing at
 * the server.
 */
static int observer(struct kmod *m)
{
	struct rgpu_session_start s = {.size = sizeof(s)};
	char path[64];
	int fd, err;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", m->fd[0]);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (ioctl(fd, RGPU_IOC_SESSION_START, &s)) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

static int ask(int fd, struct rgpu_control *c)
{
	return ioctl(fd, RGPU_IOC_CONTROL, c) ? -errno : 0;
}

/* The observer is kept: who watches asks every second. One that the module has given up is replaced once. */
static int ask_as_observer(struct kmod *m, struct rgpu_control *c)
{
	struct rgpu_control first = *c;
	int err = -ENOTCONN, had;

	pthread_mutex_lock(&m->lock);
	had = m->observer >= 0;
	for (int tries = 0; tries < 1 + had; tries++) {
		if (m->observer < 0)
			m->observer = observer(m);
		if (m->observer < 0) {
			err = m->observer;
			break;
		}
		*c = first;
		err = ask(m->observer, c);
		if (err != -ESHUTDOWN && err != -ENOTCONN && err != -ENODEV)
			break;
		close(m->observer);
		m->observer = -1;
	}
	pthread_mutex_unlock(&m->lock);
	return err;
}

static int kmod_control(struct rgpu_transport *t, uint32_t op, void *data, uint32_t len, uint32_t room)
{
	struct rgpu_control c = {.size = sizeof(c), .op = op, .data_len = len, .data_room = room, .data = (uintptr_t)data};
	struct kmod *m = of(t);
	int err;

	if (room > RGPU_CONTROL_MAX)
		c.data_room = RGPU_CONTROL_MAX;
	err = t->k ? ask(m->session, &c) : ask_as_observer(m, &c);
	if (err)
		return transport_why(err, "control request %u: %s (see rgpu-proxy's log)", op, strerror(-err));
	return c.data_len;
}

/* The module keeps a number; the cause in full is in the proxy's log. */
static const char *kmod_failed_why(struct rgpu_transport *t)
{
	static const struct {
		int reason;
		const char *text;
	} known[] = {
		{ETIMEDOUT, "the server, or rgpu-proxy, was away for too long; run the program again when it is back"},
		{ENODEV, "the device was removed"},
		{ESTALE, "the server lost the session (its worker died, or the server was restarted); run the program again"},
		{ESHUTDOWN, "the server was stopped; run the program again when it is back"},
		{EBADMSG, "the program's rings are damaged: something in it writes where it should not"},
		{EPROTO, "the server and rgpu-proxy do not agree; install the same release on both"},
		{EACCES, "the server refuses the session now; look at its key"},
	};
	int reason = -t->k->reason;
	const char *text = strerror(reason);

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].reason == reason)
			text = known[i].text;
	transport_why(0, "the session ended: %s (rgpu-proxy's log has the cause)", text);
	return rgpu_transport_why(NULL);
}

static const struct transport_ops kmod_ops = {
	.name = "kmod",
	.close = kmod_close,
	.start = kmod_start,
	.channel = kmod_channel,
	.bo_create = kmod_bo_create,
	.bo_destroy = kmod_bo_destroy,
	.bo_map = kmod_bo_map,
	.bo_track = kmod_bo_track,
	.bo_dirty = kmod_bo_dirty,
	.kick = kmod_kick,
	.wait = kmod_wait,
	.control = kmod_control,
	.failed_why = kmod_failed_why,
};

int transport_kmod_open(struct rgpu_transport **out)
{
	struct kmod *m = calloc(1, sizeof(*m));
	int denied = -1, offline = -1, err = 0;
	uint8_t server[RGPU_UUID_LEN];

	if (!m)
		return transport_why(-ENOMEM, "no memory");
	m->base.ops = &kmod_ops;
	m->observer = -1;
	pthread_mutex_init(&m->lock, NULL);
	m->base.device = calloc(MINORS, sizeof(*m->base.device));
	m->fd = calloc(MINORS, sizeof(*m->fd));
	for (int i = 0; i < MINORS && m->base.device && m->fd; i++) {
		char path[32];
		int fd;

		snprintf(path, sizeof(path), "/dev/rgpu%d", i);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0) {
			if (errno == EACCES || errno == EPERM)
				denied = denied < 0 ? i : denied;
			else if (errno == ENODEV)
				offline = offline < 0 ? i : offline;
			continue;
		}
		err = add_device(m, fd, server);
		if (err)
			close(fd);
		if (err == -EPROTO)
			break;
	}
	if (!m->base.ndevices || err == -EPROTO) {
		if (err != -EPROTO)
			err = none_found(denied, offline);
		free_kmod(m);
		return err;
	}
	*out = &m->base;
	return 0;
}
