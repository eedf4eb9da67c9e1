// SPDX-License-Identifier: MIT
/*
 * Device memory by client: an account of all workers of a server in one shared file, so that none needs to ask the listener.
 *
 * A worker adds to its own slot first and then looks at the sum of its client's: two that come to the limit at once may both be
 * refused, but never both be let in. A worker that dies takes nothing along: its slot is cleared by the listener that buries it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "server/quota.h"

struct slot {
	char client[CLIENT_NAME_MAX];
	_Atomic uint64_t used[QUOTA_DEVICES];
};

struct quota {
	struct slot *slot;
	unsigned n;
};

static struct {
	struct quota *q;
	struct slot *slot;
	struct client_limits limits;
} mine;

struct quota *quota_open(const char *path, unsigned slots)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	size_t bytes = slots * sizeof(struct slot);
	struct quota *q;
	struct stat st;
	void *p;
	int err;

	if (fd < 0)
		return NULL;
	/* A server that was restarted with fewer sessions still has the workers of before. */
	err = fstat(fd, &st) ? errno : 0;
	if (!err && (uint64_t)st.st_size > bytes)
		bytes = st.st_size;
	/* All of it has its place on the disk: what is mapped and has none is a SIGBUS when that is full. */
	if (!err)
		err = posix_fallocate(fd, 0, bytes);
	if (err) {
		close(fd);
		errno = err;
		return NULL;
	}
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		return NULL;
	q = malloc(sizeof(*q));
	if (q)
		*q = (struct quota){p, bytes / sizeof(struct slot)};
	return q;
}

void quota_clear(struct quota *q, unsigned slot, const char *client)
{
	struct slot *s;

	if (!q || slot >= q->n)
		return;
	s = &q->slot[slot];
	memset(s->client, 0, sizeof(s->client));
	for (unsigned i = 0; i < QUOTA_DEVICES; i++)
		s->used[i] = 0;
	if (client)
		memcpy(s->client, client, strnlen(client, sizeof(s->client) - 1));
}

unsigned quota_slots(const struct quota *q)
{
	return q ? q->n : 0;
}

void quota_use(struct quota *q, unsigned slot, const struct client_limits *l)
{
	mine.q = q;
	mine.slot = slot < q->n ? &q->slot[slot] : NULL;
	mine.limits = *l;
}

static uint64_t used_by_client(unsigned device)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < mine.q->n; i++)
		if (!memcmp(mine.q->slot[i].client, mine.slot->client, CLIENT_NAME_MAX))
			sum += mine.q->slot[i].used[device];
	return sum;
}

bool quota_take(unsigned device, uint64_t bytes)
{
	uint64_t own;

	if (!mine.slot || device >= QUOTA_DEVICES)
		return true;
	/* A sum that wraps would look small. */
	if (bytes > UINT64_MAX / 4)
		return false;
	own = atomic_fetch_add(&mine.slot->used[device], bytes) + bytes;
	if ((!mine.limits.session_mem || own <= mine.limits.session_mem) &&
	    (!mine.limits.mem || used_by_client(device) <= mine.limits.mem))
		return true;
	mine.slot->used[device] -= bytes;
	return false;
}

void quota_give(unsigned device, uint64_t bytes)
{
	if (mine.slot && device < QUOTA_DEVICES)
		mine.slot->used[device] -= bytes;
}

static void cut(uint64_t limit, uint64_t used, uint64_t *free_bytes, uint64_t *total)
{
	uint64_t left = used < limit ? limit - used : 0;

	if (*total > limit)
		*total = limit;
	if (*free_bytes > left)
		*free_bytes = left;
}

void quota_view(unsigned device, uint64_t *free_bytes, uint64_t *total)
{
	if (!mine.slot || device >= QUOTA_DEVICES)
		return;
	if (mine.limits.session_mem)
		cut(mine.limits.session_mem, mine.slot->used[device], free_bytes, total);
	if (mine.limits.mem)
		cut(mine.limits.mem, used_by_client(device), free_bytes, total);
}
