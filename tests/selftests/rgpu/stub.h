/* SPDX-License-Identifier: GPL-2.0 */
/* What the tests play: a proxy that answers step by step, a program, and a look at what is left in the module. */
#ifndef RGPU_SELFTEST_STUB_H
#define RGPU_SELFTEST_STUB_H

#include <linux/rgpu.h>
#include <linux/rgpu_netlink.h>
#include <pthread.h>
#include <sys/types.h>
#include "tests/selftests/rgpu/nl.h"
#include "tests/tap.h"

/* The proxy -------------------------------------------------------------------------------------------------------- */

struct proxy {
	struct nl nl;
	int ctl;
	__u32 epoch;
	int gone; /* GONEs acknowledged by start_with() since the last acknowledge() */
};

struct request {
	__u64 id, session;
	__u32 type, flags, room, op, device, index, uid, pid;
	__u8 sid[RGPU_SID_LEN];
	char comm[RGPU_COMM_LEN];
	size_t len, cookie_len, dev_cookie_len;
	char data[RGPU_CONTROL_MAX];
	char cookie[RGPU_COOKIE_MAX], dev_cookie[RGPU_COOKIE_MAX];
};

/* Opens what a proxy needs, and registers. 0 or −errno. */
int proxy_open(struct proxy *p);
/* Ends it as its death would. */
void proxy_close(struct proxy *p);
int proxy_register(struct nl *nl, int ctl_fd, __u16 major, __u32 *epoch);

/* Describes and brings online /dev/rgpu@dev, whose server's uuid is 16 × @server. */
int proxy_online(struct proxy *p, __u32 dev, __u8 server);

/* Pulls once: 0 or −errno. */
int proxy_pull(struct proxy *p, struct request *r);
/* Waits up to 20 s until there is something to pull, and pulls it. */
int proxy_next(struct proxy *p, struct request *r);
int proxy_reply(struct proxy *p, __u64 id, int status, const void *data, size_t len);
/* A session fd, or −errno. */
int proxy_attach(struct proxy *p, __u64 session);
int session_set(int sfd, __u32 state, int reason);
int session_cookie(struct proxy *p, __u64 session, const void *data, size_t len);

/* Answers requests until killed: START attaches and succeeds, CONTROL echoes, all channels are echoed too. Never returns. */
void proxy_serve(void);
/* proxy_serve() in a child, with rgpu0 … rgpu2 online (server 1, 1, 2). Returns when these are usable. */
pid_t proxy_fork(void);
/* Kills it with SIGKILL and waits until the module knows. */
void proxy_kill(pid_t pid);

/* A program ------------------------------------------------------------------------------------------------------- */

/* All return 0, a descriptor or a value, or −errno. */
int app_open(int dev);
int app_start(int fd, __u64 *id);
int app_channel(int fd, __u32 size, __u32 *ch);
int app_channel_destroy(int fd, __u32 ch);
int app_bo(int fd, __u64 bytes, __u32 *handle);
int app_bo_destroy(int fd, __u32 handle);
int app_kick(int fd, __u32 ch);
int app_wait(int fd, __u32 ch, int ms);
int app_join(int fd, int other, __u32 *index);
/* @len: in, bytes of @data to send; out, bytes that came back. */
int app_control(int fd, __u32 op, void *data, __u32 *len, __u32 room);
/* mmap with errors as −errno. */
void *map(int fd, __u64 off, size_t len, int prot, int flags);
#define MAP_BAD(p) ((unsigned long)(p) >= (unsigned long)-4095)

/* One side's maps of a channel whose rings have CHAN_RING bytes each. */
#define CHAN_RING 4096
struct chan {
	struct rgpu_kpage *k;
	struct rgpu_apage *a;
	struct rgpu_ppage *p;
	char *sq, *cq;
};
/* Else the test is over. */
struct chan map_channel(int fd, __u32 ch, bool proxy);
void unmap_channel(struct chan *c);

/* A call in a thread of its own, while the test plays the proxy. */
struct async {
	pthread_t thread;
	int (*call)(struct async *a);
	int fd, ret, other;
	__u64 id;
	__u32 op, len, room, ch, index;
	int ms;
	char data[RGPU_CONTROL_MAX];
	_Atomic int tid;
};
int async_start(struct async *a);
int async_control(struct async *a);
int async_wait(struct async *a);
int async_join(struct async *a);
void async_begin(struct async *a, int (*call)(struct async *a));
/* The call's result. */
int async_end(struct async *a);
/* Returns when the call sleeps in the kernel. */
void async_sleeps(struct async *a);

/* Starts a session on @fd with @p, all in this process, acknowledging GONEs on the way: the session fd. Else the test is over. */
int start_with(struct proxy *p, int fd, __u64 *id);
/* Acknowledges GONE requests until there are none, and says how many there were since the last time. */
int acknowledge(struct proxy *p);

/* The machine ----------------------------------------------------------------------------------------------------- */

/* Writes to a file that is there. 0 or −errno. */
int put(const char *path, const char *text);
/* Runs @f in a child: what it returned, −1 when it was killed. */
int child_status(int (*f)(void));
/* One result line: whether that was 0. */
#define in_child(what, f) is_int(child_status(f), 0, "%s", what)
/* In such a child, the line that failed is the exit status. */
#define MUST(expr)                                                                                                               \
	do {                                                                                                                     \
		if (!(expr))                                                                                                     \
			return __LINE__ & 255;                                                                                   \
	} while (0)

/* The module ------------------------------------------------------------------------------------------------------ */

long counter(const char *name);
/* Waits up to 20 s until the counter has that value; returns what it has in the end. */
long counter_becomes(const char *name, long want);
/* How many kinds of things are left after up to 20 s. */
int left_behind(void);
#define nothing_left() is_int(left_behind(), 0, "nothing is left in the module")
void parameter(const char *name, const char *value);
void parameters_reset(void); /* to what they are when the module is loaded */
void device_attr(int dev, const char *name, char *buf, size_t len);

#endif
