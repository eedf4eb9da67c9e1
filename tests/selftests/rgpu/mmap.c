// SPDX-License-Identifier: GPL-2.0
/* What mmap, mprotect, mremap, fork and madvise must not give away. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/selftests/rgpu/stub.h"

#define RW   (PROT_READ | PROT_WRITE)
#define RING 16384
#define BO   (1 << 20)

static sigjmp_buf fault;

static void on_fault(int sig)
{
	siglongjmp(fault, sig);
}

/* The signal that touching the byte raises, 0 for none. */
static int touch(volatile char *p, bool write)
{
	int sig = sigsetjmp(fault, 1);

	if (sig)
		return sig;
	if (write)
		*p = 1;
	else
		(void)*p;
	return 0;
}

static __u32 handle;

static const struct object {
	const char *name;
	__u64 off;
	size_t size;
	bool app_writes, proxy_writes;
} objects[] = {
	{ "K page", RGPU_MMAP_KPAGE, 4096, false, false },
	{ "A page", RGPU_MMAP_CHANNEL(0, RGPU_MMAP_APAGE), 4096, true, false },
	{ "P page", RGPU_MMAP_CHANNEL(0, RGPU_MMAP_PPAGE), 4096, false, true },
	{ "SQ", RGPU_MMAP_CHANNEL(0, RGPU_MMAP_SQ), RING, true, false },
	{ "CQ", RGPU_MMAP_CHANNEL(0, RGPU_MMAP_CQ), RING, false, true },
	{ "BO", RGPU_MMAP_BO(1), BO, true, true },
	{ "tracked BO", RGPU_MMAP_TRACKED(1), BO, true, false },
};

/* One object from one side. */
static void rights(int fd, const struct object *o, const char *side, bool writes)
{
	int prot = writes ? RW : PROT_READ;
	char *m;

	is_int((long)map(fd, o->off, o->size, PROT_READ, MAP_PRIVATE), -EINVAL, "%s %s: private", side, o->name);
	is_int((long)map(fd, o->off, o->size, RW, MAP_PRIVATE), -EINVAL, "%s %s: private, writable", side, o->name);
	is_int((long)map(fd, o->off, o->size + 4096, prot, MAP_SHARED), -EINVAL, "%s %s: a page too much", side, o->name);
	if (o->size > 4096)
		is_int((long)map(fd, o->off, o->size - 4096, prot, MAP_SHARED), -EINVAL, "%s %s: a page too few", side, o->name);
	is_int((long)map(fd, o->off + 4096, o->size, prot, MAP_SHARED), -ENOENT, "%s %s: not from its start", side, o->name);
	m = map(fd, o->off, o->size, prot | PROT_EXEC, MAP_SHARED);
	/* Before we are asked, kernels from 6.16 on refuse it for all files without a name, as the proxy's is. */
	ok((long)m == -EACCES || (!strcmp(side, "proxy") && (long)m == -EPERM), "%s %s: executable", side, o->name);
	if (!writes)
		is_int((long)map(fd, o->off, o->size, RW, MAP_SHARED), -EACCES, "%s %s: writable", side, o->name);

	m = map(fd, o->off, o->size, prot, MAP_SHARED);
	if (!ok(!MAP_BAD(m), "%s %s: as it should be", side, o->name))
		return;
	is_int(touch(m, false), 0, "%s %s: read", side, o->name);
	is_int(touch(m + o->size - 1, writes), 0, "%s %s: its last byte", side, o->name);
	if (!writes) {
		is_int(touch(m, true), SIGSEGV, "%s %s: write", side, o->name);
		is_int(mprotect(m, o->size, RW) ? -errno : 0, -EACCES, "%s %s: mprotect to writable", side, o->name);
	}
	is_int(mprotect(m, o->size, PROT_READ | PROT_EXEC) ? -errno : 0, -EACCES, "%s %s: mprotect to executable", side, o->name);
	is_int(mremap(m, o->size, 2 * o->size, MREMAP_MAYMOVE) == MAP_FAILED ? -errno : 0, -EFAULT, "%s %s: mremap to more", side,
	       o->name);
	is_int(mremap(m, 0, o->size, MREMAP_MAYMOVE) == MAP_FAILED ? -errno : 0, -EFAULT, "%s %s: mremap from nothing", side,
	       o->name);
	m = mremap(m, o->size, o->size, MREMAP_MAYMOVE | MREMAP_FIXED, (char *)0x200000000000ul);
	ok(m != MAP_FAILED && !touch(m, writes), "%s %s: may move", side, o->name);
	munmap(m, o->size);
}

static void offsets(int fd)
{
	is_int((long)map(fd, 4096, 4096, PROT_READ, MAP_SHARED), -ENOENT, "behind the K page");
	is_int((long)map(fd, RGPU_MMAP_CHANNEL(1, 0), 4096, PROT_READ, MAP_SHARED), -ENOENT, "a channel that is not there");
	is_int((long)map(fd, RGPU_MMAP_CHANNEL(0, 4), 4096, PROT_READ, MAP_SHARED), -ENOENT, "a fifth part of a channel");
	is_int((long)map(fd, RGPU_MMAP_CHANNEL(255, 3), 4096, PROT_READ, MAP_SHARED), -ENOENT, "channel 255");
	is_int((long)map(fd, RGPU_MMAP_BO(0), 4096, PROT_READ, MAP_SHARED), -ENOENT, "handle 0");
	is_int((long)map(fd, RGPU_MMAP_BO(2), 4096, PROT_READ, MAP_SHARED), -ENOENT, "a handle that is not there");
	is_int((long)map(fd, 4ull << 40, 4096, PROT_READ, MAP_SHARED), -ENOENT, "no window");
	is_int((long)map(fd, 1ull << 62, 4096, PROT_READ, MAP_SHARED), -ENOENT, "far out");
}

/* A child has what the program allocated, but nothing of how it speaks to its proxy. */
static void forked(int fd)
{
	char *sq = map(fd, RGPU_MMAP_CHANNEL(0, RGPU_MMAP_SQ), RING, RW, MAP_SHARED);
	char *k = map(fd, RGPU_MMAP_KPAGE, 4096, PROT_READ, MAP_SHARED);
	char *bo = map(fd, RGPU_MMAP_BO(handle), BO, RW, MAP_SHARED);
	int status;
	pid_t pid;

	strcpy(bo + 8192, "parent");
	fflush(stdout);
	pid = fork();
	if (!pid) {
		int bad = touch(sq, false) != SIGSEGV;

		bad |= (touch(k, false) != SIGSEGV) << 1;
		bad |= !!strcmp(bo + 8192, "parent") << 2;
		strcpy(bo + 12288, "child");
		_exit(bad);
	}
	waitpid(pid, &status, 0);
	is_int(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0, "a child has no ring and no K page, but the buffer object");
	is_str(bo + 12288, "child", "which is the same memory");
	munmap(sq, RING);
	munmap(k, 4096);
	munmap(bo, BO);
}

static void advice(int fd, int sfd)
{
	char *bo = map(fd, RGPU_MMAP_BO(handle), BO, RW, MAP_SHARED);
	char *p = map(sfd, RGPU_MMAP_BO(handle), BO, RW, MAP_SHARED);

	strcpy(bo, "kept");
	ok(madvise(bo, BO, MADV_REMOVE) < 0, "no hole can be punched into a buffer object");
	is_int(madvise(bo, BO, MADV_DONTNEED), 0, "MADV_DONTNEED");
	is_str(bo, "kept", "takes pages from the map and not from the object");
	/* Newer kernels refuse it for all memory of drivers. */
	ok(!madvise(bo, BO, MADV_DOFORK) || errno == EINVAL, "MADV_DOFORK is harmless");
	is_str(p, "kept", "and the other side sees it too");
	ok(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) < 0, "fallocate");
	ok(ftruncate(fd, 4096) < 0, "ftruncate");
	munmap(p, BO);
	/* get_user_pages() on the map: a pipe takes the page itself, not a copy. */
	{
		struct iovec {
			void *base;
			size_t len;
		} v = { bo, 4096 };
		char buf[16] = "";
		int pipes[2];

		if (pipe(pipes))
			return;
		is_int(vmsplice(pipes[1], (void *)&v, 1, 0), 4096, "its pages can be pinned");
		is_int(read(pipes[0], buf, 5), 5, "and read");
		is_str(buf, "kept", "as what they are");
		close(pipes[0]);
		close(pipes[1]);
	}
	munmap(bo, BO);
}

int main(void)
{
	struct proxy p;
	int fd, sfd;
	size_t i;
	char *k, *bo;
	__u32 ch;

	signal(SIGSEGV, on_fault);
	signal(SIGBUS, on_fault);
	if (!ok(proxy_open(&p) == 0 && proxy_online(&p, 0, 1) == 0, "the proxy registers"))
		return tap_done();
	fd = app_open(0);
	is_int((long)map(fd, RGPU_MMAP_KPAGE, 4096, PROT_READ, MAP_SHARED), -ENOTCONN, "before there is a session");
	is_int((long)map(p.ctl, RGPU_MMAP_KPAGE, 4096, PROT_READ, MAP_SHARED), -ENODEV, "ctl has nothing to map");
	sfd = start_with(&p, fd, NULL);
	is_int(app_channel(fd, RING, &ch), 0, "CHANNEL_CREATE");
	is_int(app_bo(fd, BO, &handle), 0, "BO_CREATE");
	is_int(handle, 1, "the first handle is 1");

	for (i = 0; i < sizeof(objects) / sizeof(*objects); i++) {
		rights(fd, &objects[i], "program", objects[i].app_writes);
		if (objects[i].off != RGPU_MMAP_TRACKED(1)) /* the program's alone: track.c */
			rights(sfd, &objects[i], "proxy", objects[i].proxy_writes);
	}
	offsets(fd);
	offsets(sfd);
	forked(fd);
	advice(fd, sfd);

	/* Maps outlive the file. */
	k = map(fd, RGPU_MMAP_KPAGE, 4096, PROT_READ, MAP_SHARED);
	bo = map(fd, RGPU_MMAP_BO(handle), BO, RW, MAP_SHARED);
	close(fd);
	is_int(((struct rgpu_kpage *)k)->state, RGPU_SESSION_LIVE, "a map keeps the session when the descriptor is closed");
	munmap(k, 4096);
	is_int(touch(bo, true), 0, "the buffer object is still there");
	is_int(counter("sessions"), 1, "and the session");
	munmap(bo, BO);
	is_int(counter_becomes("sessions", 0), 0, "with the last map it ends");
	is_int((long)map(sfd, RGPU_MMAP_KPAGE, 4096, PROT_READ, MAP_SHARED), -ESHUTDOWN, "the proxy maps nothing of it any more");
	close(sfd);
	is_int(acknowledge(&p), 1, "one session is gone");
	proxy_close(&p);
	nothing_left();
	return tap_done();
}
