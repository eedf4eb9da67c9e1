// SPDX-License-Identifier: MIT
/* Chooses the transport, and keeps a forked child from using its parent's. */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "api/props.h"
#include "shim/transport_int.h"

static _Thread_local char last_why[RGPU_WHY_MAX];

/*
 * Transports are counted, over forks too. The word, which a fork sets to zero in the child, holds the number of the first one
 * that this process opened itself: those before it are an ancestor's.
 */
static uint32_t *owner_word;
static uint32_t opened;
static pthread_once_t owner_once = PTHREAD_ONCE_INIT;

int transport_why(int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(last_why, sizeof(last_why), fmt, ap);
	va_end(ap);
	return err;
}

static void make_owner_word(void)
{
	void *p = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || madvise(p, sysconf(_SC_PAGESIZE), MADV_WIPEONFORK))
		return;
	owner_word = p;
}

/* 0, or what a child gets that inherited this by fork(). */
static int ours(const struct rgpu_transport *t)
{
	if (*owner_word && t->owner >= *owner_word)
		return 0;
	return transport_why(
		-ECHILD, "this process is the child of a fork() and cannot use its parent's GPU session; start it with exec() or "
			 "posix_spawn(), or first use CUDA after the fork");
}

int rgpu_transport_open(struct rgpu_transport **out)
{
	const char *server = getenv("RGPU_SERVER");
	int err;

	pthread_once(&owner_once, make_owner_word);
	if (!owner_word)
		return transport_why(-ENOMEM, "no memory that forks wipe: %s", strerror(errno));
	err = server && *server ? transport_direct_open(server, out) : transport_kmod_open(out);
	if (err)
		return err;
	(*out)->owner = __atomic_add_fetch(&opened, 1, __ATOMIC_RELAXED);
	if (!*owner_word)
		*owner_word = (*out)->owner;
	return 0;
}

void rgpu_transport_close(struct rgpu_transport *t)
{
	if (t && !ours(t))
		t->ops->close(t);
}

const char *rgpu_transport_why(const struct rgpu_transport *t)
{
	if (t && t->k && *owner_word && t->owner >= *owner_word &&
	    __atomic_load_n(&t->k->state, __ATOMIC_ACQUIRE) == RGPU_SESSION_FAILED)
		return t->ops->failed_why((struct rgpu_transport *)t);
	return last_why;
}

const char *rgpu_transport_name(const struct rgpu_transport *t)
{
	return t->ops->name;
}

uint32_t rgpu_transport_driver_version(const struct rgpu_transport *t)
{
	struct rgpu_props p = {0};

	if (!t->ndevices)
		return 0;
	memcpy(&p, t->device[0].props, t->device[0].props_len < sizeof(p) ? t->device[0].props_len : sizeof(p));
	return p.magic == RGPU_PROPS_MAGIC ? p.driver_version : 0;
}

unsigned rgpu_transport_ndevices(const struct rgpu_transport *t)
{
	return t->ndevices;
}

const struct rgpu_device *rgpu_transport_device(const struct rgpu_transport *t, unsigned i)
{
	return i < t->ndevices ? &t->device[i] : NULL;
}

int rgpu_transport_start(struct rgpu_transport *t, const unsigned *dev, unsigned n, const void *data, uint32_t data_len)
{
	int err = ours(t);

	if (err)
		return err;
	if (t->k)
		return transport_why(-EALREADY, "the session was started already");
	if (!n || data_len > RGPU_CONTROL_MAX)
		return transport_why(-EINVAL, "a session needs a device, and a greeting of at most %d bytes", RGPU_CONTROL_MAX);
	for (unsigned i = 0; i < n; i++)
		if (dev[i] >= t->ndevices)
			return transport_why(-EINVAL, "there is no device %u", dev[i]);
	return t->ops->start(t, dev, n, data, data_len);
}

const struct rgpu_kpage *rgpu_transport_kpage(const struct rgpu_transport *t)
{
	return t->k;
}

int rgpu_transport_channel(struct rgpu_transport *t, struct rgpu_channel *out)
{
	int err = ours(t);

	return err ? err : t->ops->channel(t, out);
}

int rgpu_transport_bo_create(struct rgpu_transport *t, uint64_t bytes, struct rgpu_bo *out)
{
	uint64_t page = sysconf(_SC_PAGESIZE);
	int err = ours(t);

	if (err)
		return err;
	if (!bytes || bytes > UINT64_MAX - page)
		return transport_why(-EINVAL, "a buffer object of %llu bytes", (unsigned long long)bytes);
	return t->ops->bo_create(t, (bytes + page - 1) & ~(page - 1), out);
}

void rgpu_transport_bo_destroy(struct rgpu_transport *t, struct rgpu_bo *bo)
{
	if (!ours(t))
		t->ops->bo_destroy(t, bo);
}

int rgpu_transport_bo_lend(struct rgpu_transport *t, void *at, uint64_t bytes, struct rgpu_bo *out)
{
	int err = ours(t);

	if (!err && !t->ops->bo_lend)
		return -ENOTSUP;
	return err ? err : t->ops->bo_lend(t, at, bytes, out);
}

int rgpu_transport_bo_map(struct rgpu_transport *t, const struct rgpu_bo *bo, void *at)
{
	int err = ours(t);

	return err ? err : t->ops->bo_map(t, bo, at);
}

int rgpu_transport_bo_track(struct rgpu_transport *t, const struct rgpu_bo *bo, void *at)
{
	int err = ours(t);

	if (!err && !t->ops->bo_track)
		return transport_why(-ENOTSUP, "this transport does not track writes");
	return err ? err : t->ops->bo_track(t, bo, at);
}

int rgpu_transport_bo_dirty(struct rgpu_transport *t, const struct rgpu_bo *bo, uint64_t *bits)
{
	int err = ours(t);

	return err ? err : t->ops->bo_dirty(t, bo, bits);
}

int rgpu_transport_kick(struct rgpu_transport *t, uint32_t channel)
{
	int err = ours(t);

	return err ? err : t->ops->kick(t, channel);
}

int rgpu_transport_wait(struct rgpu_transport *t, uint32_t channel, int timeout_ms)
{
	int err = ours(t);

	return err ? err : t->ops->wait(t, channel, timeout_ms);
}

int rgpu_transport_control(struct rgpu_transport *t, uint32_t op, void *data, uint32_t len, uint32_t room)
{
	int err = ours(t);

	return err ? err : t->ops->control(t, op, data, len, room);
}
