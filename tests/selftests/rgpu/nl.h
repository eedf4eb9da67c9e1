/* SPDX-License-Identifier: GPL-2.0 */
/* A few lines of generic netlink by hand, so that the tests see what the kernel says and nothing in between. */
#ifndef RGPU_SELFTEST_NL_H
#define RGPU_SELFTEST_NL_H

#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#define NL_MSG_MAX 16384

struct nl {
	int fd;
	__u16 family;
	__u32 seq;
	/* Events seen while waiting for something else. */
	unsigned int ready, cancels;
	__u64 cancelled; /* the last one's request */
	char why[128];	 /* the kernel's text with the last error */
};

struct msg {
	union {
		struct nlmsghdr h;
		char buf[NL_MSG_MAX];
	};
};

/* Opens a socket of the family; −errno when there is none. */
int nl_open(struct nl *nl);
void nl_close(struct nl *nl);

void msg_begin(struct nl *nl, struct msg *m, __u8 cmd);
void msg_put(struct msg *m, __u16 type, const void *data, size_t len);
void msg_u8(struct msg *m, __u16 type, __u8 v);
void msg_u16(struct msg *m, __u16 type, __u16 v);
void msg_u32(struct msg *m, __u16 type, __u32 v);
void msg_u64(struct msg *m, __u16 type, __u64 v);
void msg_str(struct msg *m, __u16 type, const char *s);

/* Sends and waits for the answer, which goes to @answer when it is more than an acknowledgement. 0 or −errno. */
int nl_call(struct nl *nl, struct msg *m, struct msg *answer);

/* Asks for a dump; calls @each for every object. Returns how many, or −errno. */
int nl_dump(struct nl *nl, __u8 cmd, void (*each)(const struct msg *m, void *arg), void *arg);

/* Takes in the events that wait now: ready and cancels are counted. */
void nl_events(struct nl *nl);

/* Joins the family's group @name. 0 or −errno. */
int nl_join(struct nl *nl, const char *name);

/* Receives one message, waiting up to @ms for it; false when none came. */
bool nl_recv(struct nl *nl, struct msg *m, int ms);
__u8 msg_cmd(const struct msg *m);

/* The @n-th attribute of that type, NULL when there is none. */
const void *msg_nth(const struct msg *m, __u16 type, int n, size_t *len);
const void *msg_attr(const struct msg *m, __u16 type, size_t *len);
__u32 msg_get_u32(const struct msg *m, __u16 type);
__u64 msg_get_u64(const struct msg *m, __u16 type);
bool msg_has(const struct msg *m, __u16 type);

#endif
