// SPDX-License-Identifier: MIT
/* The direct transport: the engine inside the program, with memory of its own instead of the module's. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>
#include "lib/addr.h"
#include "lib/auth.h"
#include "shim/transport_int.h"
#include "usermode-proxy/relay.h"

#define BO_BUCKETS 256u
#define VERSION	   "librgpu direct"

/* References: the program's, and the relay's map. Under direct.lock. */
struct bo {
	struct bo *next;
	uint32_t handle;
	unsigned refs;
	bool alive, lent; /* lent: the program's memory, which is not ours to unmap */
	uint8_t *base;
	uint64_t bytes;
};

struct direct {
	struct rgpu_transport base;
	struct direct *next; /* of all open ones, for the fork handler */
	struct rgpu_addr server;
	struct rgpu_auth auth;
	struct rgpu_ctl *ctl;
	struct rgpu_devices devices;
	enum rgpu_pack_mode compress;
	struct rgpu_relay *relay;
	struct rgpu_start start;
	uint8_t greeting[RGPU_CONTROL_MAX];
	struct rgpu_kpage *k;
	char why[RGPU_WHY_MAX]; /* written before the K page says FAILED */

	pthread_mutex_t lock; /* below; inside the relay's lock */
	uint32_t nchannels;
	struct rgpu_relay_map channel[RGPU_CHANNELS_MAX];
	uint32_t last_bo;
	struct bo *bo[BO_BUCKETS];
};

static struct direct *of(struct rgpu_transport *t)
{
	return (struct direct *)t;
}

/* Forks ----------------------------------------------------------------------------------------------------------- */

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER; /* writers of the list; the fork handler reads it without */
static struct direct *all;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

/* The child keeps no socket: it would hide the parent's end from the server. */
static void forked(void)
{
	for (struct direct *d = __atomic_load_n(&all, __ATOMIC_ACQUIRE); d; d = d->next) {
		if (d->relay)
			rgpu_relay_forked(d->relay);
		if (d->ctl)
			rgpu_ctl_forked(d->ctl);
	}
	/* Whatever this process opens itself must not be mistaken for these. */
	all = NULL;
	pthread_mutex_init(&all_lock, NULL);
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forked);
}

static void list(struct direct *d, bool add)
{
	pthread_mutex_lock(&all_lock);
	if (add) {
		d->next = all;
		__atomic_store_n(&all, d, __ATOMIC_RELEASE);
	} else {
		for (struct direct **at = &all; *at; at = &(*at)->next)
			if (*at == d) {
				__atomic_store_n(at, d->next, __ATOMIC_RELEASE);
				break;
			}
	}
	pthread_mutex_unlock(&all_lock);
}

/*
 * The program ends: the server need not wait to see whether it comes back, and its memory is free for the next program. Those who
 * call CUDA from exit handlers did so before, as their libraries depend on ours.
 */
__attribute__((destructor)) static void goodbye(void)
{
	for (struct direct *d = __atomic_load_n(&all, __ATOMIC_ACQUIRE); d; d = d->next)
		if (d->relay)
			rgpu_relay_bye(d->relay);
}

/* Memory ---------------------------------------------------------------------------------------------------------- */

/* Rings are no child's business, and in no core dump. */
static void *ring_memory(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	madvise(p, bytes, MADV_DONTFORK);
	madvise(p, bytes, MADV_DONTDUMP);
	return p;
}

static size_t page_size(void)
{
	return sysconf(_SC_PAGESIZE);
}

static void free_channel(struct rgpu_relay_map *m)
{
	if (m->a)
		munmap((void *)m->a, page_size());
	if (m->p)
		munmap(m->p, page_size());
	if (m->sq)
		munmap((void *)m->sq, m->sq_size);
	if (m->cq)
		munmap(m->cq, m->cq_size);
	memset(m, 0, sizeof(*m));
}

static struct bo **find_bo(struct direct *d, uint32_t handle)
{
	struct bo **at = &d->bo[handle % BO_BUCKETS];

	while (*at && (*at)->handle != handle)
		at = &(*at)->next;
	return at;
}

/* direct.lock is held. */
static void put_bo(struct direct *d, uint32_t handle)
{
	struct bo **at = find_bo(d, handle), *bo = *at;

	if (!bo || --bo->refs)
		return;
	*at = bo->next;
	if (!bo->lent)
		munmap(bo->base, bo->bytes);
	free(bo);
}

/* The relay's side ------------------------------------------------------------------------------------------------ */

static int map_channel(void *arg, uint32_t channel, struct rgpu_relay_map *out)
{
	struct direct *d = arg;
	int err = -ENOENT;

	pthread_mutex_lock(&d->lock);
	if (channel < d->nchannels) {
		*out = d->channel[channel];
		err = 0;
	}
	pthread_mutex_unlock(&d->lock);
	return err;
}

static void unmap_channel(void *arg, uint32_t channel, const struct rgpu_relay_map *map)
{
	/* The memory is the transport's, for as long as that is open. */
	(void)arg;
	(void)channel;
	(void)map;
}

static int map_bo(void *arg, uint32_t handle, uint8_t **base, uint64_t *bytes)
{
	struct direct *d = arg;
	int err = -ENOENT;
	struct bo *bo;

	pthread_mutex_lock(&d->lock);
	bo = *find_bo(d, handle);
	if (bo && bo->alive) {
		bo->refs++;
		*base = bo->base;
		*bytes = bo->bytes;
		err = 0;
	}
	pthread_mutex_unlock(&d->lock);
	return err;
}

static void unmap_bo(void *arg, uint32_t handle, uint8_t *base, uint64_t bytes)
{
	struct direct *d = arg;

	(void)base;
	(void)bytes;
	pthread_mutex_lock(&d->lock);
	put_bo(d, handle);
	pthread_mutex_unlock(&d->lock);
}

static int lease(void *arg, struct rgpu_lease *out, char why[RGPU_WHY_MAX])
{
	struct direct *d = arg;

	d->start.epoch++;
	__atomic_store_n(&d->k->epoch, d->start.epoch, __ATOMIC_RELAXED);
	return rgpu_ctl_start(d->ctl, true, &d->start, d->greeting, out, why);
}

static void failed(void *arg, int reason, const char *why)
{
	struct direct *d = arg;

	snprintf(d->why, sizeof(d->why), "%s", why);
	__atomic_store_n(&d->k->reason, reason, __ATOMIC_RELEASE);
	__atomic_store_n(&d->k->state, RGPU_SESSION_FAILED, __ATOMIC_RELEASE);
}

static const struct rgpu_relay_ops relay_ops = {
	.channel_map = map_channel,
	.channel_unmap = unmap_channel,
	.bo_map = map_bo,
	.bo_unmap = unmap_bo,
	.lease = lease,
	.failed = failed,
};

/* The program's side ---------------------------------------------------------------------------------------------- */

static void direct_close(struct rgpu_transport *t)
{
	struct direct *d = of(t);

	list(d, false);
	rgpu_relay_free(d->relay, true);
	rgpu_ctl_free(d->ctl);
	rgpu_devices_free(&d->devices);
	for (uint32_t i = 0; i < d->nchannels; i++)
		free_channel(&d->channel[i]);
	for (unsigned i = 0; i < BO_BUCKETS; i++)
		while (d->bo[i]) {
			d->bo[i]->refs = 1;
			put_bo(d, d->bo[i]->handle);
		}
	if (d->k)
		munmap(d->k, page_size());
	rgpu_auth_free(&d->auth);
	pthread_mutex_destroy(&d->lock);
	free(d->base.device);
	free(d);
}

static int random_sid(uint8_t sid[RGPU_SID_LEN])
{
	return getrandom(sid, RGPU_SID_LEN, 0) == RGPU_SID_LEN ? 0 : -EIO;
}

/* The program's name as the kernel has it. */
static void set_comm(char comm[16])
{
	FILE *f = fopen("/proc/self/comm", "re");
	size_t n = f ? fread(comm, 1, 15, f) : 0;

	if (n && comm[n - 1] == '\n')
		n--;
	comm[n] = 0;
	if (f)
		fclose(f);
}

/* A worker that no connection ever reached would wait for one for as long as for a client that was cut off. */
static int not_started(struct direct *d, int err, const char *why)
{
	char ignored[RGPU_WHY_MAX];

	rgpu_ctl_end(d->ctl, d->start.sid, ignored);
	return transport_why(err, "%s", why);
}

static int direct_start(struct rgpu_transport *t, const unsigned *dev, unsigned n, const void *data, uint32_t data_len)
{
	struct direct *d = of(t);
	struct rgpu_lease l;
	char why[RGPU_WHY_MAX];
	int err;

	if (!d->k) {
		void *k = mmap(NULL, page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (k == MAP_FAILED)
			return transport_why(-ENOMEM, "no memory for a session");
		d->k = k;
	}
	err = random_sid(d->start.sid);
	if (err)
		return transport_why(err, "no random bytes for a session's name");
	d->start.epoch = 1;
	d->start.uid = geteuid();
	d->start.pid = getpid();
	d->start.device = dev[0];
	d->start.flags = RGPU_START_DIRECT;
	d->start.data_len = data_len;
	memcpy(d->greeting, data, data_len);
	set_comm(d->start.comm);

	err = rgpu_ctl_start(d->ctl, false, &d->start, data, &l, why);
	for (unsigned i = 1; i < n && !err; i++)
		err = rgpu_ctl_join(d->ctl, d->start.sid, dev[i], i, why);
	if (!err) {
		d->relay = rgpu_relay_new(&relay_ops, d, &d->server, -1);
		if (!d->relay)
			err = rgpu_why(why, -ENOMEM, "no memory or descriptors for a session");
		else
			rgpu_relay_compress(d->relay, d->compress);
	}
	if (err)
		return not_started(d, err, why);
	d->k->magic = RGPU_MAGIC;
	d->k->abi_major = RGPU_ABI_MAJOR;
	d->k->abi_minor = RGPU_ABI_MINOR;
	d->k->features = RGPU_FEATURES;
	memcpy(d->k->sid, d->start.sid, RGPU_SID_LEN);
	d->k->epoch = 1;
	d->k->state = RGPU_SESSION_LIVE;
	err = rgpu_relay_attach(d->relay, &l, why);
	if (!err) {
		err = rgpu_relay_run(d->relay, l.grace_ms);
		if (err)
			rgpu_why(why, err, "no thread for the connection: %s", strerror(-err));
	}
	if (err) {
		rgpu_relay_free(d->relay, true);
		d->relay = NULL;
		return not_started(d, err, why);
	}
	t->k = d->k;
	return 0;
}

static int direct_channel(struct rgpu_transport *t, struct rgpu_channel *out)
{
	struct rgpu_relay_map m = {.sq_size = RGPU_SQ_DEFAULT, .cq_size = RGPU_CQ_DEFAULT};
	struct direct *d = of(t);
	uint32_t id;
	int err;

	m.a = ring_memory(page_size());
	m.p = ring_memory(page_size());
	m.sq = ring_memory(m.sq_size);
	m.cq = ring_memory(m.cq_size);
	if (!m.a || !m.p || !m.sq || !m.cq) {
		free_channel(&m);
		return transport_why(-ENOMEM, "no memory for a channel");
	}
	pthread_mutex_lock(&d->lock);
	id = d->nchannels;
	if (id < RGPU_CHANNELS_MAX) {
		d->channel[id] = m;
		d->k->nchannels = ++d->nchannels;
	}
	pthread_mutex_unlock(&d->lock);
	if (id == RGPU_CHANNELS_MAX) {
		free_channel(&m);
		return transport_why(-ENOSPC, "a program can have %d threads that use CUDA; this is one more", RGPU_CHANNELS_MAX);
	}
	err = rgpu_relay_open(d->relay, id);
	if (err)
		return transport_why(err, "no channel: %s", strerror(-err));
	*out = (struct rgpu_channel){id, d->k, (struct rgpu_apage *)m.a, m.p, (uint8_t *)m.sq, m.cq, m.sq_size, m.cq_size};
	return 0;
}

static void add_bo(struct direct *d, struct bo *bo, struct rgpu_bo *out)
{
	struct bo **at;

	bo->refs = 1;
	bo->alive = true;
	pthread_mutex_lock(&d->lock);
	do
		bo->handle = ++d->last_bo;
	while (!bo->handle || *find_bo(d, bo->handle));
	at = find_bo(d, bo->handle);
	*at = bo;
	*out = (struct rgpu_bo){bo->handle, bo->base, bo->bytes};
	pthread_mutex_unlock(&d->lock);
}

static int direct_bo_lend(struct rgpu_transport *t, void *at, uint64_t bytes, struct rgpu_bo *out)
{
	struct bo *bo = calloc(1, sizeof(*bo));

	if (!bo)
		return -ENOMEM;
	bo->base = at;
	bo->bytes = bytes;
	bo->lent = true;
	add_bo(of(t), bo, out);
	return 0;
}

static int direct_bo_create(struct rgpu_transport *t, uint64_t bytes, struct rgpu_bo *out)
{
	struct bo *bo = calloc(1, sizeof(*bo));

	if (bo) {
		/* Shared: a forked child keeps what its parent allocated, as the module's objects do. */
		bo->base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (bo->base == MAP_FAILED) {
			free(bo);
			bo = NULL;
		}
	}
	if (!bo)
		return transport_why(-ENOMEM, "no memory for a buffer object of %llu bytes", (unsigned long long)bytes);
	madvise(bo->base, bytes, MADV_DONTDUMP);
	bo->bytes = bytes;
	add_bo(of(t), bo, out);
	return 0;
}

static void direct_bo_destroy(struct rgpu_transport *t, struct rgpu_bo *ref)
{
	struct direct *d = of(t);
	struct bo *bo;

	pthread_mutex_lock(&d->lock);
	bo = *find_bo(d, ref->handle);
	if (bo)
		bo->alive = false;
	pthread_mutex_unlock(&d->lock);
	if (!bo)
		return;
	if (d->relay)
		rgpu_relay_bo_gone(d->relay, ref->handle, bo->lent);
	pthread_mutex_lock(&d->lock);
	put_bo(d, ref->handle);
	pthread_mutex_unlock(&d->lock);
}

/* An old size of 0 leaves shared memory where it is, and makes a second mapping of it. */
static int direct_bo_map(struct rgpu_transport *t, const struct rgpu_bo *bo, void *at)
{
	(void)t;
	if (mremap(bo->base, 0, bo->bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at) != at)
		return transport_why(-errno, "cannot map a buffer object a second time: %s", strerror(errno));
	madvise(at, bo->bytes, MADV_DONTDUMP);
	return 0;
}

static int direct_kick(struct rgpu_transport *t, uint32_t channel)
{
	rgpu_relay_kick(of(t)->relay, channel);
	return 0;
}

static int direct_wait(struct rgpu_transport *t, uint32_t channel, int timeout_ms)
{
	return rgpu_relay_wait(of(t)->relay, channel, timeout_ms);
}

static int direct_control(struct rgpu_transport *t, uint32_t op, void *data, uint32_t len, uint32_t room)
{
	struct rgpu_telemetry_ask ask;
	char why[RGPU_WHY_MAX];
	ssize_t n;

	if (op == RGPU_CONTROL_TELEMETRY && len == sizeof(ask)) {
		memcpy(&ask, data, sizeof(ask));
		n = rgpu_ctl_telemetry(of(t)->ctl, &ask, data, room, why);
	} else if (op == RGPU_CONTROL_STATS) {
		n = rgpu_ctl_stats(of(t)->ctl, data, room, why);
	} else {
		return transport_why(-EOPNOTSUPP, "control request %u is not known to this version", op);
	}
	return n < 0 ? transport_why(n, "%s", why) : n;
}

static const char *direct_failed_why(struct rgpu_transport *t)
{
	return of(t)->why;
}

static const struct transport_ops direct_ops = {
	.name = "direct",
	.close = direct_close,
	.start = direct_start,
	.channel = direct_channel,
	.bo_create = direct_bo_create,
	.bo_destroy = direct_bo_destroy,
	.bo_lend = direct_bo_lend,
	.bo_map = direct_bo_map,
	.kick = direct_kick,
	.wait = direct_wait,
	.control = direct_control,
	.failed_why = direct_failed_why,
};

static int read_devices(struct direct *d)
{
	char why[RGPU_WHY_MAX];
	int err;

	err = rgpu_ctl_devices(d->ctl, &d->devices, why);
	if (err)
		return transport_why(err, "%s", why);
	if (!d->devices.n)
		return transport_why(-ENODEV, "the server at %s has no GPU", d->server.host);
	d->base.device = calloc(d->devices.n, sizeof(*d->base.device));
	if (!d->base.device)
		return transport_why(-ENOMEM, "no memory");
	for (unsigned i = 0; i < d->devices.n; i++) {
		const struct rgpu_device_entry *e = d->devices.entry[i];
		struct rgpu_device *dev = &d->base.device[i];

		dev->index = i;
		memcpy(dev->uuid, e->uuid, sizeof(dev->uuid));
		memcpy(dev->name, e->name, sizeof(dev->name));
		dev->mem_total = e->mem_total;
		dev->props = e + 1;
		dev->props_len = e->props_len;
	}
	d->base.ndevices = d->devices.n;
	return 0;
}

int transport_direct_open(const char *server, struct rgpu_transport **out)
{
	static const char *const name[RGPU_AUTH_SETTINGS] = {"RGPU_KEY", "RGPU_TLS_CERT", "RGPU_TLS_KEY", "RGPU_TLS_CA",
							     "RGPU_AUTH"};
	const char *text[RGPU_AUTH_SETTINGS], *mode;
	char why[RGPU_WHY_MAX];
	struct direct *d;
	int err;

	for (int i = 0; i < RGPU_AUTH_SETTINGS; i++)
		text[i] = getenv(name[i]);
	if (rgpu_auth_kind(text, name, why) < 0)
		return transport_why(-EINVAL, "RGPU_SERVER is set, but there is %s", why);
	d = calloc(1, sizeof(*d));
	if (!d)
		return transport_why(-ENOMEM, "no memory");
	pthread_once(&fork_once, watch_forks);
	pthread_mutex_init(&d->lock, NULL);
	d->base.ops = &direct_ops;
	list(d, true);
	err = rgpu_addr_parse(server, false, &d->server, why);
	if (err)
		err = transport_why(err, "RGPU_SERVER: %s", why);
	mode = getenv("RGPU_COMPRESS");
	if (!err && mode && *mode && rgpu_pack_mode(mode, &d->compress, why))
		err = transport_why(-EINVAL, "RGPU_COMPRESS: %s", why);
	if (!err) {
		err = rgpu_auth_load(text, name, &d->auth, why);
		if (err)
			err = transport_why(err == -EACCES ? err : -EINVAL, "%s: %s", name[d->auth.kind == RGPU_AUTH_CERT], why);
	}
	if (!err) {
		d->ctl = rgpu_ctl_new(&d->server, &d->auth, VERSION);
		err = d->ctl ? read_devices(d) : transport_why(-ENOMEM, "no memory");
	}
	if (err) {
		direct_close(&d->base);
		return err;
	}
	*out = &d->base;
	return 0;
}
