// SPDX-License-Identifier: GPL-2.0
/* Tracked maps of a buffer object: each written page is told once, whoever wrote it and however many write at the same time. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/selftests/rgpu/stub.h"

#define RW    (PROT_READ | PROT_WRITE)
#define PAGES 300
#define PAGE  4096
#define LARGE 70000 /* pages, more than one round of BO_DIRTY looks at */

static int fd;
static __u32 handle;
static unsigned char *m; /* the tracked map */
static __u64 bits[(LARGE + 63) / 64];

static int dirty_of(__u32 h, __u64 first, __u64 pages, __u64 *count)
{
	struct rgpu_bo_dirty d = {
		.size = sizeof(d),
		.handle = h,
		.first = first,
		.pages = pages,
		.bitmap = (unsigned long)bits,
	};
	int err;

	memset(bits, 0, sizeof(bits));
	err = ioctl(fd, RGPU_IOC_BO_DIRTY, &d) ? -errno : 0;
	*count = d.count;
	return err;
}

/* How many pages were dirty, or −errno. */
static long dirty(void)
{
	__u64 n;
	int err = dirty_of(handle, 0, PAGES, &n);

	return err ? err : (long)n;
}

static bool bit(unsigned int i)
{
	return bits[i / 64] >> i % 64 & 1;
}

static void told_once(void)
{
	unsigned int i, sum = 0;
	int f, fds[2];

	is_int(dirty(), 0, "nothing was written: no page");
	for (i = 0; i < PAGES; i++)
		sum += m[i * PAGE];
	is_int(sum, 0, "it reads as zeros");
	is_int(dirty(), 0, "reading makes no page dirty");
	m[5 * PAGE] = 1;
	m[5 * PAGE + 100] = 2;
	m[299 * PAGE + 4095] = 3;
	is_int(dirty(), 2, "three writes to two pages");
	ok(bit(5) && bit(299), "are told as these");
	is_int(dirty(), 0, "each is told once");
	is_int(m[5 * PAGE + 100], 2, "and what was written stays");
	is_int(dirty(), 0, "reading it again is no write");
	m[5 * PAGE]++;
	is_int(dirty(), 1, "another write to the same page is told again");
	memset(m, 7, 300 * PAGE);
	is_int(dirty(), 300, "all of it");
	f = open("/dev/zero", O_RDONLY);
	is_int(read(f, m + 10 * PAGE, 2 * PAGE), 2 * PAGE, "a system call writes into it");
	close(f);
	is_int(dirty(), 2, "which makes two pages dirty");
	ok(bit(10) && bit(11) && !m[10 * PAGE] && m[12 * PAGE] == 7, "the right ones");
	is_int(pipe(fds), 0, "a pipe");
	is_int(write(fds[1], m, 3 * PAGE), 3 * PAGE, "a system call reads from it");
	close(fds[0]);
	close(fds[1]);
	is_int(dirty(), 0, "which makes none dirty");
}

static void ranges(void)
{
	__u64 n, outside = 0;

	m[64 * PAGE] = m[65 * PAGE] = m[200 * PAGE] = 1;
	is_int(dirty_of(handle, 65, 100, &n), 0, "a part of the object");
	ok(n == 1 && bit(0), "bit 0 is the part's first page");
	is_int(dirty(), 2, "the rest was left alone");
	is_int(dirty_of(handle, 0, PAGES + 1, &n), -EINVAL, "a page too much");
	is_int(dirty_of(handle, PAGES, 1, &n), -EINVAL, "behind the end");
	is_int(dirty_of(handle, ~0ull, 2, &n), -EINVAL, "a sum that wraps");
	is_int(dirty_of(handle, 0, 0, &n), -EINVAL, "no page");
	is_int(dirty_of(12345, 0, 1, &n), -ENOENT, "no such object");
	m[9 * PAGE] = 1;
	{
		struct rgpu_bo_dirty d = { .size = sizeof(d), .handle = handle, .pages = PAGES, .bitmap = 16 };

		outside = ioctl(fd, RGPU_IOC_BO_DIRTY, &d) ? errno : 0;
	}
	is_int(outside, EFAULT, "a bitmap at a bad address");
	is_int(dirty(), 1, "forgets nothing");
}

static void several_maps(int sfd)
{
	unsigned char *plain = map(fd, RGPU_MMAP_BO(handle), PAGES * PAGE, RW, MAP_SHARED), *proxy, *second, *moved;
	__u32 other;
	__u64 n;

	proxy = map(sfd, RGPU_MMAP_BO(handle), PAGES * PAGE, RW, MAP_SHARED);
	second = map(fd, RGPU_MMAP_TRACKED(handle), PAGES * PAGE, RW, MAP_SHARED);
	if (!ok(!MAP_BAD(plain) && !MAP_BAD(proxy) && !MAP_BAD(second), "an untracked map, the proxy's, another tracked one"))
		return;
	plain[3 * PAGE] = 33;
	proxy[4 * PAGE] = 44;
	is_int(dirty(), 0, "writes through the first two are not told");
	ok(m[3 * PAGE] == 33 && m[4 * PAGE] == 44, "but are there");
	second[6 * PAGE] = 1;
	m[7 * PAGE] = 1;
	is_int(dirty(), 2, "through any tracked map, they are");
	second[7 * PAGE] = 2;
	is_int(dirty(), 1, "and pages were taken out of both");
	is_int((long)map(sfd, RGPU_MMAP_TRACKED(handle), PAGES * PAGE, RW, MAP_SHARED), -ENOENT, "the proxy has no such map");
	munmap(second + 100 * PAGE, 50 * PAGE);
	second[99 * PAGE] = second[150 * PAGE] = 1;
	is_int(dirty(), 2, "a map with a hole in it");
	ok(bit(99) && bit(150), "tells the right pages");
	moved = mremap(second + 150 * PAGE, 150 * PAGE, 150 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)0x200000000000ul);
	ok(moved != MAP_FAILED, "a part of it moves");
	moved[PAGE] = 1;
	is_int(dirty(), 1, "and is tracked where it is now");
	ok(bit(151), "as the same page");
	is_int(mprotect(m, PAGE, PROT_READ) | mprotect(m, PAGE, RW), 0, "mprotect, there and back");
	m[0] = 1;
	is_int(dirty(), 1, "does not open a way around");
	munmap(moved, 150 * PAGE);
	munmap(second, 100 * PAGE);
	munmap(plain, PAGES * PAGE);
	munmap(proxy, PAGES * PAGE);
	m[0] = 1;
	is_int(dirty(), 1, "the others' end changes nothing");
	app_bo(fd, PAGE, &other);
	is_int(dirty_of(other, 0, 1, &n), -EINVAL, "an object that has no tracked map");
	app_bo_destroy(fd, other);
}

static void in_a_child(void)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		m[0] = 1; /* not there: this kills */
		_exit(0);
	}
	waitpid(pid, &status, 0);
	ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "a forked child does not have it");
	is_int(dirty(), 0, "and writes nothing");
}

/*
 * Writers count up their words, a taker takes bits and then copies the pages that they name. In the end the copy must be what is
 * there: a write that was told of no more would be missing.
 */
#define WRITERS 3
static _Atomic int stop;
static unsigned char copy[PAGES * PAGE];

static void *writer(void *arg)
{
	unsigned int seed = (unsigned long)arg, i;

	for (i = 0; !stop; i++) {
		__u32 *word = (__u32 *)(m + rand_r(&seed) % 40 * PAGE) + 16 * (unsigned long)arg;

		__atomic_store_n(word, *word + 1, __ATOMIC_RELAXED);
	}
	return (void *)(unsigned long)i;
}

static unsigned int take(void)
{
	unsigned int i, n = 0;

	dirty();
	for (i = 0; i < PAGES; i++) {
		if (bit(i)) {
			memcpy(copy + i * PAGE, m + i * PAGE, PAGE);
			n++;
		}
	}
	return n;
}

static void at_the_same_time(void)
{
	unsigned int taken = 0;
	unsigned long i, written = 0;
	pthread_t t[WRITERS];
	void *n;

	take();
	memcpy(copy, m, sizeof(copy));
	for (i = 0; i < WRITERS; i++)
		pthread_create(&t[i], NULL, writer, (void *)(i + 1));
	while (taken < 500)
		taken += take();
	stop = 1;
	for (i = 0; i < WRITERS; i++) {
		pthread_join(t[i], &n);
		written += (unsigned long)n;
	}
	take();
	printf("# %lu writes, %u pages taken\n", written, taken);
	ok(!memcmp(copy, m, sizeof(copy)), "no write was lost while others took what was dirty");
	is_int(dirty(), 0, "and nothing is left");
}

/* Who cannot be told what was taken for him: the next call must tell it. @l has more pages than one round looks at. */
static void not_told(unsigned char *l, __u32 h)
{
	struct rgpu_bo_dirty *d = mmap(NULL, 3 * PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	__u64 n;

	l[PAGE] = l[40000ul * PAGE] = 1;
	munmap((char *)d + 2 * PAGE, PAGE);
	*d = (struct rgpu_bo_dirty){ .size = sizeof(*d), .handle = h, .pages = LARGE, .bitmap = (unsigned long)d + PAGE };
	is_int(ioctl(fd, RGPU_IOC_BO_DIRTY, d) ? errno : 0, EFAULT, "a bitmap that ends after the first round's bits");
	is_int(dirty_of(h, 0, LARGE, &n), 0, "asked again");
	ok(n == 2 && bit(1) && bit(40000), "none of both rounds' pages is forgotten");
	l[PAGE] = 2;
	d->bitmap = (unsigned long)bits;
	mprotect(d, PAGE, PROT_READ);
	is_int(ioctl(fd, RGPU_IOC_BO_DIRTY, d) ? errno : 0, EFAULT, "an argument that cannot be written");
	is_int(dirty_of(h, 0, LARGE, &n), 0, "asked again");
	ok(n == 1 && bit(1), "nothing is forgotten");
	munmap(d, 2 * PAGE);
}

static void large(void)
{
	unsigned char *l;
	__u32 h;
	__u64 n;

	if (!is_int(app_bo(fd, (__u64)LARGE * PAGE, &h), 0, "an object of %d pages", LARGE))
		return;
	l = map(fd, RGPU_MMAP_TRACKED(h), (size_t)LARGE * PAGE, RW, MAP_SHARED);
	l[0] = l[32768ul * PAGE] = l[65535ul * PAGE] = l[69999ul * PAGE] = 1;
	is_int(dirty_of(h, 0, LARGE, &n), 0, "asked about at once");
	ok(n == 4 && bit(0) && bit(32768) && bit(65535) && bit(69999), "tells each page in its place");
	not_told(l, h);
	is_int(app_bo_destroy(fd, h), 0, "destroyed while it is mapped");
	l[0] = 2;
	is_int(dirty_of(h, 0, 1, &n), -ENOENT, "it cannot be asked about");
	munmap(l, (size_t)LARGE * PAGE);
	is_int(counter_becomes("bos", 1), 1, "and is gone");
}

int main(void)
{
	struct proxy p;
	int sfd;

	if (!ok(proxy_open(&p) == 0 && proxy_online(&p, 0, 1) == 0, "the proxy registers"))
		return tap_done();
	fd = app_open(0);
	sfd = start_with(&p, fd, NULL);
	is_int(app_bo(fd, PAGES * PAGE, &handle), 0, "a buffer object");
	m = map(fd, RGPU_MMAP_TRACKED(handle), PAGES * PAGE, RW, MAP_SHARED);
	if (!ok(!MAP_BAD(m), "a tracked map of it"))
		return tap_done();
	told_once();
	ranges();
	several_maps(sfd);
	in_a_child();
	at_the_same_time();
	large();
	m[2 * PAGE] = 1;
	is_int(session_set(sfd, RGPU_SESSION_FAILED, -EIO), 0, "the session fails");
	m[3 * PAGE] = 1;
	is_int(dirty(), 2, "what was written is told all the same");
	close(fd);
	m[0] = 1; /* no harm after the session's end */
	munmap(m, PAGES * PAGE);
	is_int(acknowledge(&p), 1, "GONE");
	close(sfd);
	proxy_close(&p);
	nothing_left();
	return tap_done();
}
