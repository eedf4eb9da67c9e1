// SPDX-License-Identifier: MIT
/* A session as the proxy has it: the kernel's session fd behind a relay, and the table of all of them. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "lib/clock.h"
#include "lib/log.h"
#include "usermode-proxy/session.h"

/* The table. The lock is over the list alone: a session that was taken out is its taker's. */
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct session *table;

static enum rgpu_pack_mode compress; /* before any session */

void session_compress(enum rgpu_pack_mode mode)
{
	compress = mode;
}

void session_add(struct session *s)
{
	pthread_mutex_lock(&table_lock);
	s->next = table;
	table = s;
	pthread_mutex_unlock(&table_lock);
}

uint64_t session_id(const uint8_t sid[RGPU_SID_LEN])
{
	uint64_t id = 0;

	pthread_mutex_lock(&table_lock);
	for (struct session *s = table; s && !id; s = s->next)
		if (!memcmp(s->start.sid, sid, RGPU_SID_LEN))
			id = s->id;
	pthread_mutex_unlock(&table_lock);
	return id;
}

struct session *session_take(uint64_t id)
{
	struct session **at, *s;

	pthread_mutex_lock(&table_lock);
	for (at = &table; *at && (*at)->id != id; at = &(*at)->next)
		;
	s = *at;
	if (s)
		*at = s->next;
	pthread_mutex_unlock(&table_lock);
	return s;
}

void session_each(void (*fn)(const struct session *s, void *arg), void *arg)
{
	pthread_mutex_lock(&table_lock);
	for (const struct session *s = table; s; s = s->next)
		fn(s, arg);
	pthread_mutex_unlock(&table_lock);
}

static void *map(struct session *s, uint64_t off, size_t bytes, int prot)
{
	return mmap(NULL, bytes, prot, MAP_SHARED, s->fd, off);
}

static void unmap_channel(void *arg, uint32_t ch, const struct rgpu_relay_map *m)
{
	size_t page = sysconf(_SC_PAGESIZE);

	(void)arg;
	(void)ch;
	if (m->a && m->a != MAP_FAILED)
		munmap((void *)m->a, page);
	if (m->p && m->p != MAP_FAILED)
		munmap(m->p, page);
	if (m->sq && m->sq != MAP_FAILED)
		munmap((void *)m->sq, m->sq_size);
	if (m->cq && m->cq != MAP_FAILED)
		munmap(m->cq, m->cq_size);
}

static bool channel_info(struct session *s, uint32_t ch, struct rgpu_channel_info *info)
{
	*info = (struct rgpu_channel_info){.size = sizeof(*info), .channel = ch};
	return !ioctl(s->fd, RGPU_SES_CHANNEL_INFO, info) && info->alive;
}

static int map_channel(void *arg, uint32_t ch, struct rgpu_relay_map *out)
{
	size_t page = sysconf(_SC_PAGESIZE);
	struct session *s = arg;
	struct rgpu_channel_info info;

	if (!channel_info(s, ch, &info))
		return -ENOENT;
	out->sq_size = info.sq_size;
	out->cq_size = info.cq_size;
	out->a = map(s, RGPU_MMAP_CHANNEL(ch, RGPU_MMAP_APAGE), page, PROT_READ);
	out->p = map(s, RGPU_MMAP_CHANNEL(ch, RGPU_MMAP_PPAGE), page, PROT_READ | PROT_WRITE);
	out->sq = map(s, RGPU_MMAP_CHANNEL(ch, RGPU_MMAP_SQ), info.sq_size, PROT_READ);
	out->cq = map(s, RGPU_MMAP_CHANNEL(ch, RGPU_MMAP_CQ), info.cq_size, PROT_READ | PROT_WRITE);
	if (out->a != MAP_FAILED && out->p != MAP_FAILED && out->sq != MAP_FAILED && out->cq != MAP_FAILED)
		return 0;
	/* The usual cause is that the program has just destroyed it, or ended. */
	unmap_channel(arg, ch, out);
	return channel_info(s, ch, &info) ? -ENOMEM : -ENOENT;
}

static bool channel_alive(void *arg, uint32_t ch)
{
	struct rgpu_channel_info info;

	return channel_info(arg, ch, &info);
}

static uint32_t nchannels(void *arg)
{
	struct rgpu_kpage *k = map(arg, RGPU_MMAP_KPAGE, sysconf(_SC_PAGESIZE), PROT_READ);
	uint32_t n;

	if (k == MAP_FAILED)
		return 0;
	n = k->nchannels;
	munmap(k, sysconf(_SC_PAGESIZE));
	return n < RGPU_CHANNELS_MAX ? n : RGPU_CHANNELS_MAX;
}

static int map_bo(void *arg, uint32_t handle, uint8_t **base, uint64_t *bytes)
{
	struct rgpu_bo_ref ref = {.size = sizeof(ref), .handle = handle};
	struct session *s = arg;
	void *p;

	if (ioctl(s->fd, RGPU_SES_BO_INFO, &ref))
		return -errno;
	p = map(s, RGPU_MMAP_BO(handle), ref.bytes, PROT_READ | PROT_WRITE);
	if (p == MAP_FAILED)
		return -errno;
	*base = p;
	*bytes = ref.bytes;
	return 0;
}

static void unmap_bo(void *arg, uint32_t handle, uint8_t *base, uint64_t bytes)
{
	(void)arg;
	(void)handle;
	munmap(base, bytes);
}

static bool bo_alive(void *arg, uint32_t handle)
{
	struct rgpu_bo_ref ref = {.size = sizeof(ref), .handle = handle};

	return !ioctl(((struct session *)arg)->fd, RGPU_SES_BO_INFO, &ref);
}

static void kick(void *arg, uint32_t ch)
{
	struct rgpu_channel_ref ref = {.size = sizeof(ref), .channel = ch};

	/* A channel or program that is gone needs no waking. */
	ioctl(((struct session *)arg)->fd, RGPU_IOC_KICK, &ref);
}

static int kicked(void *arg, uint64_t bits[RGPU_CHANNELS_MAX / 64])
{
	struct rgpu_kicked k = {.size = sizeof(k)};

	if (ioctl(((struct session *)arg)->fd, RGPU_SES_KICKED, &k))
		return errno == ESTALE ? -ENODEV : -errno;
	memcpy(bits, k.channels, sizeof(k.channels));
	return 0;
}

static int lease(void *arg, struct rgpu_lease *out, char why[RGPU_WHY_MAX])
{
	struct session *s = arg;
	struct rgpu_ctl *c = pool_get(s->pool);
	int err = rgpu_ctl_start(c, true, &s->start, NULL, out, why);

	pool_put(s->pool, c);
	return err;
}

static void down(void *arg, const char *why)
{
	struct rgpu_session_set set = {.size = sizeof(set), .flags = RGPU_SET_LINK_DOWN, .state = RGPU_SESSION_LIVE};
	struct session *s = arg;

	rgpu_info("session of %s (pid %u) is cut off: %s", s->start.comm, s->start.pid, why);
	__atomic_store_n(&s->down_at, rgpu_now_ns(), __ATOMIC_RELAXED);
	/* An older module shows no links, and refuses. */
	ioctl(s->fd, RGPU_SES_SET, &set);
}

static void live(void *arg)
{
	struct session *s = arg;

	rgpu_info("session of %s (pid %u) goes on", s->start.comm, s->start.pid);
	__atomic_store_n(&s->down_at, 0, __ATOMIC_RELAXED);
	session_set(s, 0);
}

static void failed(void *arg, int reason, const char *why)
{
	struct session *s = arg;

	/* The program's own end is nobody's trouble. */
	if (reason != -ECANCELED)
		rgpu_err("session of %s (pid %u) ended: %s", s->start.comm, s->start.pid, why);
	session_set(s, reason);
}

static const struct rgpu_relay_ops ops = {
	.channel_map = map_channel,
	.channel_unmap = unmap_channel,
	.channel_alive = channel_alive,
	.nchannels = nchannels,
	.bo_map = map_bo,
	.bo_unmap = unmap_bo,
	.bo_alive = bo_alive,
	.kick = kick,
	.kicked = kicked,
	.lease = lease,
	.down = down,
	.live = live,
	.failed = failed,
};

void session_set(struct session *s, int reason)
{
	struct rgpu_session_set set = {
		.size = sizeof(set), .state = reason ? RGPU_SESSION_FAILED : RGPU_SESSION_LIVE, .reason = reason};

	if (reason < -511 || reason > 0)
		set.reason = -EPROTO;
	if (ioctl(s->fd, RGPU_SES_SET, &set) && errno != ESTALE && errno != ESHUTDOWN)
		rgpu_err("session of %s (pid %u): the module refuses the state %s: %s", s->start.comm, s->start.pid,
			 reason ? "failed" : "live", strerror(errno));
}

struct session *session_new(int ctl_fd, uint64_t id, const struct session_cookie *cookie, const struct rgpu_start *start,
			    const struct rgpu_addr *server, struct pool *pool, int *err, char why[RGPU_WHY_MAX])
{
	struct rgpu_session_fd arg = {.size = sizeof(arg), .id = id};
	struct session *s = calloc(1, sizeof(*s));

	*err = -ENOMEM;
	if (!s) {
		rgpu_why(why, *err, "no memory for a session");
		return NULL;
	}
	s->id = id;
	s->cookie = *cookie;
	s->start = *start;
	s->start.data_len = 0; /* the greeting is for START alone */
	s->pool = pool;
	if (ioctl(ctl_fd, RGPU_CTL_SESSION_FD, &arg)) {
		*err = rgpu_why(why, -errno, "taking the session from the module: %s", strerror(errno));
		free(s);
		return NULL;
	}
	s->fd = arg.fd;
	if (!(cookie->flags & SESSION_OBSERVER)) {
		s->relay = rgpu_relay_new(&ops, s, server, s->fd);
		if (s->relay)
			rgpu_relay_compress(s->relay, compress);
		if (!s->relay) {
			rgpu_why(why, *err, "no memory or descriptors for a session");
			close(s->fd);
			free(s);
			return NULL;
		}
	}
	*err = 0;
	return s;
}

static struct rgpu_telemetry_uploads ended; /* table_lock */

static void add_uploads(const struct session *s, void *arg)
{
	struct rgpu_telemetry_uploads *to = arg;
	struct rgpu_relay_counters c;

	if (!s->relay)
		return;
	rgpu_relay_counters(s->relay, &c);
	to->named += c.named;
	to->saved_bytes += c.saved_bytes;
	to->needed += c.needed;
	to->pack_in += c.pack_in;
	to->pack_out += c.pack_out;
	to->sent_bytes += c.sent_bytes;
}

void session_uploads(struct rgpu_telemetry_uploads *out)
{
	pthread_mutex_lock(&table_lock);
	*out = ended;
	for (const struct session *s = table; s; s = s->next)
		add_uploads(s, out);
	pthread_mutex_unlock(&table_lock);
}

void session_free(struct session *s, bool bye)
{
	pthread_mutex_lock(&table_lock);
	add_uploads(s, &ended);
	pthread_mutex_unlock(&table_lock);
	rgpu_relay_free(s->relay, bye);
	close(s->fd);
	free(s);
}
