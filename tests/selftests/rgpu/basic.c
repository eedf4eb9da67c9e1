// SPDX-License-Identifier: GPL-2.0
/* The way of a program that meets no trouble: device, start, identity, rings both ways, buffer object, control, end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tests/selftests/rgpu/stub.h"

static void device(void)
{
	struct rgpu_info info = { .size = sizeof(info), .props_len = 4 };
	char buf[96], props[8] = "", want[RGPU_UUID_LEN];
	int fd;

	device_attr(0, "state", buf, sizeof(buf));
	is_str(buf, "online", "sysfs: state");
	device_attr(0, "name", buf, sizeof(buf));
	is_str(buf, "Stub GPU 0", "sysfs: name");
	device_attr(1, "uuid", buf, sizeof(buf));
	is_str(buf, "11111111-1111-1111-1111-111111111111", "sysfs: uuid");
	device_attr(0, "server", buf, sizeof(buf));
	is_str(buf, "01010101-0101-0101-0101-010101010101", "sysfs: server");
	device_attr(0, "mem_total", buf, sizeof(buf));
	is_str(buf, "85899345920", "sysfs: mem_total");

	fd = app_open(1);
	ok(fd >= 0, "a device that is online opens");
	info.props = (unsigned long)props;
	is_int(ioctl(fd, RGPU_IOC_INFO, &info), 0, "INFO");
	is_int(info.abi_major, RGPU_ABI_MAJOR, "INFO: abi");
	is_int(info.features, RGPU_FEATURES, "INFO: features");
	is_int(info.minor, 1, "INFO: which device");
	is_str(info.name, "Stub GPU 1", "INFO: name");
	memset(want, 0x11, sizeof(want));
	ok(!memcmp(info.uuid, want, sizeof(want)), "INFO: uuid");
	is_int(info.props_len, 10, "INFO: how many bytes of properties there are");
	is_str(props, "prop", "INFO: as many bytes of them as there was room for");
	close(fd);
}

static void identity(struct proxy *p, int fd, __u64 *id, int *sfd)
{
	struct async a = { .fd = fd };
	struct rgpu_kpage *k, *pk;
	struct request r;
	__u8 zero[RGPU_SID_LEN] = { 0 };

	async_begin(&a, async_start);
	is_int(proxy_next(p, &r), 0, "the proxy pulls");
	is_int(r.type, RGPU_REQ_START, "a START");
	is_int(r.flags, 0, "START: no replay");
	is_int(r.device, 0, "START: device");
	is_int(r.dev_cookie_len, 4, "START: the device's cookie");
	is_int(r.uid, geteuid(), "START: uid");
	is_int(r.pid, getpid(), "START: pid");
	is_str(r.comm, "basic", "START: name of the process");
	ok(memcmp(r.sid, zero, sizeof(zero)), "START: sid is not zero");
	*sfd = proxy_attach(p, r.session);
	ok(*sfd >= 0, "the proxy takes the session fd");
	is_int(proxy_attach(p, r.session), -EBUSY, "but only once");
	pk = map(*sfd, RGPU_MMAP_KPAGE, 4096, PROT_READ, MAP_SHARED);
	ok(!MAP_BAD(pk), "the proxy maps the K page");
	is_int(pk->state, RGPU_SESSION_STARTING, "K page: STARTING");
	is_int(proxy_reply(p, r.id, 0, NULL, 0), 0, "REPLY");
	is_int(async_end(&a), 0, "SESSION_START");
	is_int(a.id, r.session, "SESSION_START: id");
	*id = a.id;
	is_int(pk->state, RGPU_SESSION_LIVE, "K page: LIVE");

	k = map(fd, RGPU_MMAP_KPAGE, 4096, PROT_READ, MAP_SHARED);
	ok(!MAP_BAD(k), "the program maps the K page");
	is_int(k->magic, RGPU_MAGIC, "K page: magic");
	is_int(k->epoch, p->epoch, "K page: epoch");
	ok(!memcmp(k->sid, r.sid, sizeof(r.sid)), "K page: sid");
	munmap(k, 4096);
	munmap(pk, 4096);
}

static void rings(int fd, int sfd)
{
	struct rgpu_kicked kicked = { .size = sizeof(kicked) };
	struct rgpu_channel_info info = { .size = sizeof(info) };
	struct rgpu_apage *a, *pa;
	struct rgpu_ppage *p, *pp;
	char *sq, *psq, *cq, *pcq;
	__u32 ch;

	is_int(app_channel(fd, 64 << 10, &ch), 0, "CHANNEL_CREATE");
	is_int(ch, 0, "the first channel is 0");
	is_int(ioctl(sfd, RGPU_SES_KICKED, &kicked), 0, "KICKED");
	is_int(kicked.channels[0], 1, "the proxy hears of the channel by a kick");
	is_int(ioctl(sfd, RGPU_SES_CHANNEL_INFO, &info), 0, "CHANNEL_INFO");
	is_int(info.alive, 1, "CHANNEL_INFO: alive");
	is_int(info.sq_size, 64 << 10, "CHANNEL_INFO: size");

	a = map(fd, RGPU_MMAP_CHANNEL(ch, RGPU_MMAP_APAGE), 4096, PROT_READ | PROT_WRITE, MAP_SHARED);
	p = map(fd, RGPU_MMAP_CHANNEL(ch, RGPU_MMAP_PPAGE), 4096, PROT_READ, MAP_SHARED);
	sq = map(fd, RGPU_MMAP_CHANNEL(ch, RGPU_MMAP_SQ), 64 << 10, PROT_READ | PROT_WRITE, MAP_SHARED);
	cq = map(fd, RGPU_MMAP_CHANNEL(ch, RGPU_MMAP_CQ), 64 << 10, PROT_READ, MAP_SHARED);
	ok(!MAP_BAD(a) && !MAP_BAD(p) && !MAP_BAD(sq) && !MAP_BAD(cq), "the program maps its channel");
	pa = map(sfd, RGPU_MMAP_CHANNEL(ch, RGPU_MMAP_APAGE), 4096, PROT_READ, MAP_SHARED);
	pp = map(sfd, RGPU_MMAP_CHANNEL(ch, RGPU_MMAP_PPAGE), 4096, PROT_READ | PROT_WRITE, MAP_SHARED);
	psq = map(sfd, RGPU_MMAP_CHANNEL(ch, RGPU_MMAP_SQ), 64 << 10, PROT_READ, MAP_SHARED);
	pcq = map(sfd, RGPU_MMAP_CHANNEL(ch, RGPU_MMAP_CQ), 64 << 10, PROT_READ | PROT_WRITE, MAP_SHARED);
	ok(!MAP_BAD(pa) && !MAP_BAD(pp) && !MAP_BAD(psq) && !MAP_BAD(pcq), "the proxy maps it");

	/* The far ends of each page and ring: a wrong index in the module would show. */
	strcpy(sq, "down");
	strcpy(sq + (64 << 10) - 4, "end");
	a->sq_tail = 5;
	is_str(psq, "down", "bytes go down by the SQ");
	is_str(psq + (64 << 10) - 4, "end", "also at its end");
	is_int(pa->sq_tail, 5, "A page");
	strcpy(pcq, "up");
	pp->published = 77;
	is_str(cq, "up", "bytes come up by the CQ");
	is_int(p->published, 77, "P page");

	is_int(app_channel_destroy(fd, ch), 0, "CHANNEL_DESTROY");
	is_int(app_channel_destroy(fd, ch), -ENOENT, "twice");
	is_int(ioctl(sfd, RGPU_SES_CHANNEL_INFO, &info), 0, "CHANNEL_INFO");
	is_int(info.alive, 0, "CHANNEL_INFO: not alive");
	is_str(psq, "down", "what is mapped stays");
	is_int(counter("channels"), 0, "no channel is left");
	ok(counter("pages") > 1, "but its pages, which are mapped");
	munmap(a, 4096), munmap(p, 4096), munmap(sq, 64 << 10), munmap(cq, 64 << 10);
	munmap(pa, 4096), munmap(pp, 4096), munmap(psq, 64 << 10), munmap(pcq, 64 << 10);
	is_int(counter("pages"), 1, "unmapped, all are gone but the K page");
	is_int(app_channel(fd, 4096, &ch), 0, "CHANNEL_CREATE");
	is_int(ch, 1, "an index is not used again");
	is_int(app_channel_destroy(fd, ch), 0, "CHANNEL_DESTROY");
}

static void bos(int fd, int sfd)
{
	const size_t size = 3 << 20;
	struct rgpu_bo_ref ref = { .size = sizeof(ref) };
	__u32 handle, second;
	char *b, *pb;
	size_t i;
	int bad = 0;

	is_int(app_bo(fd, size, &handle), 0, "BO_CREATE");
	is_int(counter("bo_bytes"), size, "its bytes count");
	ref.handle = handle;
	is_int(ioctl(sfd, RGPU_SES_BO_INFO, &ref), 0, "BO_INFO");
	is_int(ref.bytes, size, "BO_INFO: size");
	b = map(fd, RGPU_MMAP_BO(handle), size, PROT_READ | PROT_WRITE, MAP_SHARED);
	pb = map(sfd, RGPU_MMAP_BO(handle), size, PROT_READ | PROT_WRITE, MAP_SHARED);
	ok(!MAP_BAD(b) && !MAP_BAD(pb), "both map it");
	for (i = 0; i < size; i += 4096) {
		bad += b[i] != 0;
		*(size_t *)(b + i) = i + 1;
	}
	is_int(bad, 0, "it begins as zeros");
	for (i = size - 4096; i; i -= 4096)
		bad += *(size_t *)(pb + i) != i + 1;
	is_int(bad, 0, "each page is the same page on both sides");
	is_int(munmap(b + (1 << 20), 1 << 20), 0, "a piece is unmapped from its middle");
	is_int(*(size_t *)(b + (2 << 20)), (2 << 20) + 1, "what is behind the hole stays what it was");
	is_int(app_bo_destroy(fd, handle), 0, "BO_DESTROY");
	is_int(app_bo_destroy(fd, handle), -ENOENT, "twice");
	is_int(counter("bo_bytes"), size, "bytes count until they are unmapped");
	munmap(b, size);
	munmap(pb, size);
	is_int(counter("bo_bytes"), 0, "and then no more");
	is_int(app_bo(fd, 4096, &second), 0, "BO_CREATE");
	ok(second != handle, "a handle is not used again soon");
	is_int(app_bo_destroy(fd, second), 0, "BO_DESTROY");
}

static void control(struct proxy *p, int fd, __u64 id)
{
	struct async a = { .fd = fd, .op = 42, .len = 5, .room = 8, .data = "query" };
	struct request r;

	is_int(session_cookie(p, id, "token", 5), 0, "SESSION_SET");
	async_begin(&a, async_control);
	is_int(proxy_next(p, &r), 0, "the proxy pulls");
	is_int(r.type, RGPU_REQ_CONTROL, "a CONTROL");
	is_int(r.op, 42, "CONTROL: op");
	is_int(r.room, 8, "CONTROL: room");
	is_int(r.len, 5, "CONTROL: length");
	ok(!memcmp(r.data, "query", 5), "CONTROL: bytes");
	ok(r.cookie_len == 5 && !memcmp(r.cookie, "token", 5), "CONTROL: the session's cookie");
	is_int(proxy_reply(p, r.id, 0, "123456789", 9), -EMSGSIZE, "an answer longer than the room");
	is_int(proxy_reply(p, r.id, -ENOSYS, "answer", 7), 0, "an answer");
	is_int(async_end(&a), -ENOSYS, "its status is the ioctl's");
	is_int(a.len, 7, "its length comes back");
	is_str(a.data, "answer", "and its bytes, also with an error");
}

int main(void)
{
	struct request r;
	struct proxy p;
	int fd, sfd;
	__u64 id;

	if (!ok(proxy_open(&p) == 0, "the proxy registers"))
		return tap_done();
	is_int(proxy_pull(&p, &r), -EAGAIN, "nothing to pull");
	is_int(proxy_online(&p, 0, 1), 0, "DEV_SET");
	is_int(proxy_online(&p, 1, 1), 0, "DEV_SET");
	device();

	fd = app_open(0);
	is_int(counter("files"), 1, "open is counted, and nothing else made");
	is_int(counter("sessions"), 0, "no session");
	identity(&p, fd, &id, &sfd);
	is_int(counter("sessions"), 1, "a session");
	is_int(app_start(fd, NULL), -EALREADY, "a second start on the same file");
	rings(fd, sfd);
	bos(fd, sfd);
	control(&p, fd, id);

	close(fd);
	is_int(counter("sessions"), 0, "closed: no session");
	is_int(counter("gone"), 1, "but the proxy must hear of it");
	is_int(proxy_next(&p, &r), 0, "the proxy pulls");
	is_int(r.type, RGPU_REQ_GONE, "a GONE");
	is_int(r.session, id, "GONE: session");
	ok(r.cookie_len == 5 && !memcmp(r.cookie, "token", 5), "GONE: the session's cookie");
	is_int(proxy_reply(&p, r.id, 0, NULL, 0), 0, "acknowledged");
	is_int(proxy_reply(&p, r.id, 0, NULL, 0), -ENOENT, "twice");
	close(sfd);
	proxy_close(&p);
	nothing_left();
	return tap_done();
}
