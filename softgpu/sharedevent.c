// SPDX-License-Identifier: MIT
/* The state of an interprocess event: a page that the processes which have the event share. */
#include "softgpu/sharedevent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC	0x746e657665756773ull
#define RECORDS 250u

/* Recording n has the slot n modulo RECORDS, as recording n + RECORDS has later. */
struct page {
	uint64_t magic;
	uint8_t nonce[16];
	int32_t device, reserved;
	atomic_ullong last;
	struct {
		atomic_ullong ended; /* the last recording of the slot that has */
		atomic_ullong who;   /* the process that began the latest */
	} slot[RECORDS];
};
_Static_assert(sizeof(struct page) <= 4096, "one page");

/* The file is found in the process that made it: it goes with that process, and only the same user may open it. */
struct handle {
	uint64_t magic;
	uint8_t nonce[16];
	int32_t pid, fd;
};
_Static_assert(sizeof(struct handle) <= sizeof(CUipcEventHandle), "an event's handle has 64 bytes");

struct shared_event {
	struct page *page;
	int fd;
	pid_t pid;
};

static struct shared_event *map(int fd, pid_t pid)
{
	struct shared_event *e = calloc(1, sizeof(*e));
	struct page *p = e ? mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;

	if (p == MAP_FAILED) {
		free(e);
		close(fd);
		return NULL;
	}
	e->page = p;
	e->fd = fd;
	e->pid = pid;
	return e;
}

struct shared_event *shared_event_new(int device)
{
	int fd = memfd_create("softgpu-event", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct shared_event *e = NULL;

	/* Sealed, so that no other process can take the page away. */
	if (fd >= 0 && !ftruncate(fd, sizeof(struct page)) && !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL))
		e = map(fd, getpid());
	else if (fd >= 0)
		close(fd);
	if (!e || getrandom(e->page->nonce, sizeof(e->page->nonce), 0) != sizeof(e->page->nonce)) {
		log_line("cannot make an event that processes share: %s", strerror(errno));
		shared_event_free(e);
		return NULL;
	}
	e->page->device = device;
	e->page->magic = MAGIC;
	return e;
}

struct shared_event *shared_event_open(const CUipcEventHandle *handle, int *device)
{
	struct shared_event *e;
	struct handle h;
	struct stat st;
	char path[64];
	int fd;

	memcpy(&h, handle, sizeof(h));
	if (h.magic != MAGIC)
		return NULL;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", h.pid, h.fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) || st.st_size != sizeof(struct page) || !(fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK)) {
		close(fd);
		return NULL;
	}
	e = map(fd, h.pid);
	/* The number may be another file's by now. */
	if (e && (e->page->magic != MAGIC || memcmp(e->page->nonce, h.nonce, sizeof(h.nonce)))) {
		shared_event_free(e);
		return NULL;
	}
	if (e)
		*device = e->page->device;
	return e;
}

void shared_event_free(struct shared_event *e)
{
	if (!e)
		return;
	munmap(e->page, sizeof(*e->page));
	close(e->fd);
	free(e);
}

void shared_event_handle(const struct shared_event *e, CUipcEventHandle *out)
{
	struct handle h = {.magic = MAGIC, .pid = e->pid, .fd = e->fd};

	memcpy(h.nonce, e->page->nonce, sizeof(h.nonce));
	memset(out, 0, sizeof(*out));
	memcpy(out, &h, sizeof(h));
}

bool shared_event_is_ours(const CUipcEventHandle *handle)
{
	struct handle h;

	memcpy(&h, handle, sizeof(h));
	return h.pid == getpid();
}

uint64_t shared_event_last(struct shared_event *e)
{
	return atomic_load(&e->page->last);
}

bool shared_event_reached(struct shared_event *e, uint64_t n)
{
	unsigned int i = n % RECORDS;
	pid_t who;

	if (!n || atomic_load(&e->page->slot[i].ended) >= n)
		return true;
	who = (pid_t)atomic_load(&e->page->slot[i].who);
	return who && kill(who, 0) && errno == ESRCH;
}

uint64_t shared_event_begin(struct shared_event *e)
{
	uint64_t n = atomic_fetch_add(&e->page->last, 1) + 1;

	/* As a GPU's queue is bounded. */
	while (n > RECORDS && !shared_event_reached(e, n - RECORDS))
		usleep(50);
	atomic_store(&e->page->slot[n % RECORDS].who, (unsigned long long)getpid());
	return n;
}

void shared_event_end(struct shared_event *e, uint64_t n)
{
	unsigned long long was = atomic_load(&e->page->slot[n % RECORDS].ended);

	while (was < n && !atomic_compare_exchange_weak(&e->page->slot[n % RECORDS].ended, &was, n))
		;
}
