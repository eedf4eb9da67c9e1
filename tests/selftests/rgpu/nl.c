// SPDX-License-Identifier: GPL-2.0
/* A few lines of generic netlink by hand: build, send, receive, find attributes. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/rgpu_netlink.h>
#include "tests/selftests/rgpu/nl.h"

static void msg_header(struct nl *nl, struct msg *m, __u16 type, __u8 cmd, __u8 version)
{
	struct genlmsghdr *g = NLMSG_DATA(&m->h);

	memset(m, 0, NLMSG_LENGTH(GENL_HDRLEN));
	m->h.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN);
	m->h.nlmsg_type = type;
	m->h.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	m->h.nlmsg_seq = ++nl->seq;
	g->cmd = cmd;
	g->version = version;
}

void msg_begin(struct nl *nl, struct msg *m, __u8 cmd)
{
	msg_header(nl, m, nl->family, cmd, RGPU_GENL_VERSION);
}

void msg_put(struct msg *m, __u16 type, const void *data, size_t len)
{
	struct nlattr *a = (struct nlattr *)(m->buf + NLMSG_ALIGN(m->h.nlmsg_len));

	if (NLMSG_ALIGN(m->h.nlmsg_len) + NLA_HDRLEN + len + NLA_ALIGNTO > sizeof(m->buf))
		abort();
	a->nla_type = type;
	a->nla_len = NLA_HDRLEN + len;
	if (len)
		memcpy((char *)a + NLA_HDRLEN, data, len);
	memset((char *)a + a->nla_len, 0, NLA_ALIGN(a->nla_len) - a->nla_len);
	m->h.nlmsg_len = NLMSG_ALIGN(m->h.nlmsg_len) + NLA_ALIGN(a->nla_len);
}

void msg_u8(struct msg *m, __u16 type, __u8 v)
{
	msg_put(m, type, &v, sizeof(v));
}

void msg_u16(struct msg *m, __u16 type, __u16 v)
{
	msg_put(m, type, &v, sizeof(v));
}

void msg_u32(struct msg *m, __u16 type, __u32 v)
{
	msg_put(m, type, &v, sizeof(v));
}

void msg_u64(struct msg *m, __u16 type, __u64 v)
{
	msg_put(m, type, &v, sizeof(v));
}

void msg_str(struct msg *m, __u16 type, const char *s)
{
	msg_put(m, type, s, strlen(s) + 1);
}

/* Attributes that begin @off bytes into the message's payload. */
static const void *find_attr(const struct msg *m, size_t off, __u16 type, int n, size_t *len)
{
	const char *p = m->buf + NLMSG_HDRLEN + NLMSG_ALIGN(off), *end = m->buf + m->h.nlmsg_len;

	while (end - p >= NLA_HDRLEN) {
		const struct nlattr *a = (const struct nlattr *)p;

		if (a->nla_len < NLA_HDRLEN || a->nla_len > end - p)
			break;
		if ((a->nla_type & NLA_TYPE_MASK) == type && !n--) {
			if (len)
				*len = a->nla_len - NLA_HDRLEN;
			return p + NLA_HDRLEN;
		}
		p += NLA_ALIGN(a->nla_len);
	}
	return NULL;
}

const void *msg_nth(const struct msg *m, __u16 type, int n, size_t *len)
{
	return find_attr(m, GENL_HDRLEN, type, n, len);
}

const void *msg_attr(const struct msg *m, __u16 type, size_t *len)
{
	return msg_nth(m, type, 0, len);
}

bool msg_has(const struct msg *m, __u16 type)
{
	return msg_attr(m, type, NULL);
}

__u32 msg_get_u32(const struct msg *m, __u16 type)
{
	const void *p = msg_attr(m, type, NULL);
	__u32 v = 0xdeadbeef;

	if (p)
		memcpy(&v, p, sizeof(v));
	return v;
}

__u64 msg_get_u64(const struct msg *m, __u16 type)
{
	const void *p = msg_attr(m, type, NULL);
	__u64 v = 0xdeadbeefdeadbeefull;

	if (p)
		memcpy(&v, p, sizeof(v));
	return v;
}

__u8 msg_cmd(const struct msg *m)
{
	return ((const struct genlmsghdr *)NLMSG_DATA(&m->h))->cmd;
}

/* One datagram with one or more messages is split by keeping what is left. */
static char pending[4 * NL_MSG_MAX];

bool nl_recv(struct nl *nl, struct msg *m, int ms)
{
	struct pollfd p = { .fd = nl->fd, .events = POLLIN };
	ssize_t n;

	if (poll(&p, 1, ms) <= 0)
		return false;
	n = recv(nl->fd, m->buf, sizeof(m->buf), MSG_PEEK | MSG_TRUNC);
	if (n < 0 || (size_t)n > sizeof(m->buf))
		return false;
	n = recv(nl->fd, m->buf, sizeof(m->buf), 0);
	return n >= (ssize_t)sizeof(m->h);
}

static void take_event(struct nl *nl, const struct msg *m)
{
	if (msg_cmd(m) == RGPU_CMD_READY) {
		nl->ready++;
	} else if (msg_cmd(m) == RGPU_CMD_CANCEL) {
		nl->cancels++;
		nl->cancelled = msg_get_u64(m, RGPU_A_REQ_ID);
	}
}

void nl_events(struct nl *nl)
{
	struct msg m;

	while (nl_recv(nl, &m, 0)) {
		if (m.h.nlmsg_type == nl->family)
			take_event(nl, &m);
	}
}

static int take_error(struct nl *nl, const struct msg *m)
{
	const struct nlmsgerr *e = NLMSG_DATA(&m->h);
	size_t off = sizeof(*e);
	const char *text;

	nl->why[0] = 0;
	if (e->error && m->h.nlmsg_flags & NLM_F_ACK_TLVS) {
		if (!(m->h.nlmsg_flags & NLM_F_CAPPED))
			off += e->msg.nlmsg_len - NLMSG_HDRLEN;
		text = find_attr(m, off, NLMSGERR_ATTR_MSG, 0, NULL);
		if (text)
			snprintf(nl->why, sizeof(nl->why), "%s", text);
	}
	return e->error;
}

static int nl_send(struct nl *nl, struct msg *m)
{
	return send(nl->fd, m->buf, m->h.nlmsg_len, 0) < 0 ? -errno : 0;
}

int nl_call(struct nl *nl, struct msg *m, struct msg *answer)
{
	struct msg in;
	int err = nl_send(nl, m);

	if (err)
		return err;
	while (nl_recv(nl, &in, 20000)) {
		if (in.h.nlmsg_type == NLMSG_ERROR && in.h.nlmsg_seq == m->h.nlmsg_seq)
			return take_error(nl, &in);
		if (in.h.nlmsg_seq == m->h.nlmsg_seq && answer)
			memcpy(answer->buf, in.buf, in.h.nlmsg_len);
		else if (in.h.nlmsg_type == nl->family && !in.h.nlmsg_seq)
			take_event(nl, &in);
	}
	return -ETIME; /* none of the module's errors */
}

int nl_dump(struct nl *nl, __u8 cmd, void (*each)(const struct msg *m, void *arg), void *arg)
{
	struct msg m, one;
	int n = 0, err;

	msg_begin(nl, &m, cmd);
	m.h.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	err = nl_send(nl, &m);
	if (err)
		return err;
	for (;;) {
		struct pollfd p = { .fd = nl->fd, .events = POLLIN };
		ssize_t got;
		struct nlmsghdr *h;

		if (poll(&p, 1, 20000) <= 0)
			return -ETIME;
		got = recv(nl->fd, pending, sizeof(pending), 0);
		if (got < 0)
			return -errno;
		for (h = (void *)pending; NLMSG_OK(h, got); h = NLMSG_NEXT(h, got)) {
			if (h->nlmsg_seq != m.h.nlmsg_seq || h->nlmsg_len > sizeof(one))
				continue;
			if (h->nlmsg_type == NLMSG_DONE)
				return n;
			memcpy(&one, h, h->nlmsg_len);
			if (h->nlmsg_type == NLMSG_ERROR)
				return take_error(nl, &one);
			n++;
			if (each)
				each(&one, arg);
		}
	}
}

static int get_family(struct nl *nl, struct msg *m)
{
	struct msg q;

	msg_header(nl, &q, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 1);
	msg_str(&q, CTRL_ATTR_FAMILY_NAME, RGPU_GENL_NAME);
	return nl_call(nl, &q, m);
}

int nl_open(struct nl *nl)
{
	struct sockaddr_nl sa = { .nl_family = AF_NETLINK };
	int one = 1, err;
	struct msg m;

	memset(nl, 0, sizeof(*nl));
	nl->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	if (nl->fd < 0)
		return -errno;
	setsockopt(nl->fd, SOL_NETLINK, NETLINK_EXT_ACK, &one, sizeof(one));
	if (bind(nl->fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		err = -errno;
	else
		err = get_family(nl, &m);
	if (err) {
		nl_close(nl);
		return err;
	}
	memcpy(&nl->family, msg_attr(&m, CTRL_ATTR_FAMILY_ID, NULL), sizeof(nl->family));
	return 0;
}

void nl_close(struct nl *nl)
{
	if (nl->fd >= 0)
		close(nl->fd);
	nl->fd = -1;
}

int nl_join(struct nl *nl, const char *name)
{
	size_t len, off;
	const char *groups;
	struct msg m;
	int err = get_family(nl, &m);

	if (err)
		return err;
	groups = msg_attr(&m, CTRL_ATTR_MCAST_GROUPS, &len);
	if (!groups)
		return -ENOENT;
	for (off = 0; off + NLA_HDRLEN < len;) {
		const struct nlattr *g = (const struct nlattr *)(groups + off);
		struct msg in; /* one group's attributes, dressed as a message */
		__u32 id;

		memset(&in.h, 0, sizeof(in.h));
		in.h.nlmsg_len = NLMSG_HDRLEN + g->nla_len - NLA_HDRLEN;
		memcpy(in.buf + NLMSG_HDRLEN, (const char *)g + NLA_HDRLEN, g->nla_len - NLA_HDRLEN);
		if (!strcmp(find_attr(&in, 0, CTRL_ATTR_MCAST_GRP_NAME, 0, NULL), name)) {
			memcpy(&id, find_attr(&in, 0, CTRL_ATTR_MCAST_GRP_ID, 0, NULL), sizeof(id));
			return setsockopt(nl->fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &id, sizeof(id)) ? -errno : 0;
		}
		off += NLA_ALIGN(g->nla_len);
	}
	return -ENOENT;
}
