// SPDX-License-Identifier: MIT
/* The proxy's generic netlink socket: one transaction at a time, whoever asks, and the events that come between. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <linux/netlink.h>
#include <netlink/attr.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>
#include "usermode-proxy/kern.h"

#define ANSWER_MS   10000 /* the kernel answers at once: a silence is a lost message, and the socket is no good any more */
#define SOCKET_ROOM (1 << 20)

#define STRING_OF(x) #x
#define STRING(x)    STRING_OF(x)

typedef int (*kern_parse)(struct nlattr **a, void *arg);

struct kern {
	pthread_mutex_t lock; /* a transaction, or reading events */
	struct nl_sock *sk;
	struct nl_cb *cb;
	int family;

	/* The transaction under way. */
	uint32_t seq;
	bool active, done;
	int err;
	char text[128]; /* the kernel's, for an error */
	kern_parse parse;
	void *arg;
	struct nlmsghdr *at; /* the message that is being parsed */
};

static int on_valid(struct nl_msg *msg, void *arg)
{
	struct nlmsghdr *h = nlmsg_hdr(msg);
	struct nlattr *a[RGPU_A_MAX + 1];
	struct kern *nl = arg;

	/* Sequence number 0: READY or CANCEL. That something came is all they say; who drains pulls. */
	if (!nl->active || h->nlmsg_seq != nl->seq || !nl->parse)
		return NL_OK;
	nl->at = h;
	if (genlmsg_parse(h, 0, a, RGPU_A_MAX, NULL) < 0)
		nl->err = -EBADMSG;
	else if (!nl->err)
		nl->err = nl->parse(a, nl->arg);
	return NL_OK;
}

static int on_done(struct nl_msg *msg, void *arg)
{
	struct kern *nl = arg;

	if (nl->active && nlmsg_hdr(msg)->nlmsg_seq == nl->seq)
		nl->done = true;
	return NL_OK;
}

/* The text in an error's extended acknowledgement; the request is not echoed (NETLINK_CAP_ACK). */
static void take_text(struct kern *nl, struct nlmsgerr *e, const struct nlmsghdr *h)
{
	struct nlattr *at = (struct nlattr *)(e + 1);
	int left = (int)h->nlmsg_len - (int)(NLMSG_HDRLEN + sizeof(*e));

	if (!(h->nlmsg_flags & NLM_F_ACK_TLVS))
		return;
	for (; nla_ok(at, left); at = nla_next(at, &left))
		if (nla_type(at) == NLMSGERR_ATTR_MSG)
			snprintf(nl->text, sizeof(nl->text), "%.*s", nla_len(at), (char *)nla_data(at));
}

static int on_error(struct sockaddr_nl *who, struct nlmsgerr *e, void *arg)
{
	/* libnl hands the payload of the message: its header is right before. */
	struct nlmsghdr *h = (struct nlmsghdr *)((char *)e - NLMSG_HDRLEN);
	struct kern *nl = arg;

	(void)who;
	if (nl->active && e->msg.nlmsg_seq == nl->seq) {
		nl->err = e->error;
		nl->done = true;
		take_text(nl, e, h);
	}
	return NL_SKIP;
}

static int on_seq(struct nl_msg *msg, void *arg)
{
	(void)msg;
	(void)arg;
	return NL_OK;
}

int kern_open(struct kern **out, char why[RGPU_WHY_MAX])
{
	struct kern *nl = calloc(1, sizeof(*nl));
	int one = 1, err;

	if (!nl)
		return rgpu_why(why, -ENOMEM, "no memory");
	pthread_mutex_init(&nl->lock, NULL);
	nl->sk = nl_socket_alloc();
	nl->cb = nl_cb_alloc(NL_CB_DEFAULT);
	if (!nl->sk || !nl->cb) {
		kern_close(nl);
		return rgpu_why(why, -ENOMEM, "no memory for a netlink socket");
	}
	err = genl_connect(nl->sk);
	if (err) {
		kern_close(nl);
		return rgpu_why(why, -EPROTONOSUPPORT, "no netlink socket: %s", nl_geterror(err));
	}
	nl->family = genl_ctrl_resolve(nl->sk, RGPU_GENL_NAME);
	if (nl->family < 0) {
		kern_close(nl);
		return rgpu_why(why, -ENOENT, "the rgpu module is not loaded: modprobe rgpu");
	}
	nl_socket_set_buffer_size(nl->sk, SOCKET_ROOM, SOCKET_ROOM);
	nl_socket_set_msg_buf_size(nl->sk, 64 << 10);
	nl_socket_set_nonblocking(nl->sk);
	setsockopt(kern_fd(nl), SOL_NETLINK, NETLINK_EXT_ACK, &one, sizeof(one));
	setsockopt(kern_fd(nl), SOL_NETLINK, NETLINK_CAP_ACK, &one, sizeof(one));
	nl_cb_set(nl->cb, NL_CB_SEQ_CHECK, NL_CB_CUSTOM, on_seq, NULL);
	nl_cb_set(nl->cb, NL_CB_VALID, NL_CB_CUSTOM, on_valid, nl);
	nl_cb_set(nl->cb, NL_CB_ACK, NL_CB_CUSTOM, on_done, nl);
	nl_cb_set(nl->cb, NL_CB_FINISH, NL_CB_CUSTOM, on_done, nl);
	nl_cb_err(nl->cb, NL_CB_CUSTOM, on_error, nl);
	*out = nl;
	return 0;
}

void kern_close(struct kern *nl)
{
	if (nl->cb)
		nl_cb_put(nl->cb);
	if (nl->sk)
		nl_socket_free(nl->sk);
	pthread_mutex_destroy(&nl->lock);
	free(nl);
}

int kern_fd(const struct kern *nl)
{
	return nl_socket_get_fd(nl->sk);
}

/* Whatever waits in the socket, through the callbacks. -EAGAIN when there is no more. */
static int receive(struct kern *nl)
{
	int err = nl_recvmsgs(nl->sk, nl->cb);

	if (err == -NLE_AGAIN)
		return -EAGAIN;
	/* ENOBUFS, which libnl calls so: events were lost, and they were hints. */
	if (err == -NLE_NOMEM || err == -NLE_INTR || err == -NLE_DUMP_INTR)
		return 0;
	return err < 0 ? -EIO : 0;
}

int kern_drain(struct kern *nl)
{
	int err;

	pthread_mutex_lock(&nl->lock);
	do
		err = receive(nl);
	while (!err);
	pthread_mutex_unlock(&nl->lock);
	return err == -EAGAIN ? 0 : err;
}

static struct nl_msg *message(struct kern *nl, uint8_t cmd, int flags)
{
	struct nl_msg *msg = nlmsg_alloc_size(RGPU_CONTROL_MAX + RGPU_PROPS_MAX + 1024);

	if (msg && !genlmsg_put(msg, NL_AUTO_PORT, NL_AUTO_SEQ, nl->family, 0, flags, cmd, RGPU_GENL_VERSION)) {
		nlmsg_free(msg);
		return NULL;
	}
	return msg;
}

/* Sends @msg (which it frees) and waits for the kernel's answer: @parse for each message of it. */
static int transact(struct kern *nl, struct nl_msg *msg, const char *what, kern_parse parse, void *arg, char why[RGPU_WHY_MAX])
{
	struct pollfd p = {.fd = kern_fd(nl), .events = POLLIN};
	int err;

	pthread_mutex_lock(&nl->lock);
	nl->text[0] = 0;
	nl->err = 0;
	nl->done = false;
	nl->parse = parse;
	nl->arg = arg;
	err = nl_send_auto(nl->sk, msg);
	if (err < 0) {
		err = rgpu_why(why, -EIO, "%s: %s", what, nl_geterror(err));
	} else {
		nl->seq = nlmsg_hdr(msg)->nlmsg_seq;
		nl->active = true;
		err = 0;
		while (!nl->done && !err) {
			err = receive(nl);
			if (err == -EAGAIN)
				err = poll(&p, 1, ANSWER_MS) ? 0 : -ETIMEDOUT;
		}
		nl->active = false;
		if (!err)
			err = nl->err;
		if (err)
			rgpu_why(why, err, "%s: %s", what, nl->text[0] ? nl->text : strerror(-err));
	}
	pthread_mutex_unlock(&nl->lock);
	nlmsg_free(msg);
	return err;
}

static int no_memory(struct nl_msg *msg, char why[RGPU_WHY_MAX])
{
	if (msg)
		nlmsg_free(msg);
	return rgpu_why(why, -ENOMEM, "no memory for a netlink message");
}

/* An attribute's bytes into @dst of @room, zero-filled. The bytes there were. */
static uint32_t take(struct nlattr *a, void *dst, size_t room)
{
	size_t n = a ? nla_len(a) : 0;

	if (n > room)
		n = room;
	memset(dst, 0, room);
	if (n)
		memcpy(dst, nla_data(a), n);
	return n;
}

static uint32_t u32(struct nlattr *a)
{
	return a && nla_len(a) >= 4 ? nla_get_u32(a) : 0;
}

static uint64_t u64(struct nlattr *a)
{
	return a && nla_len(a) >= 8 ? nla_get_u64(a) : 0;
}

static int parse_registered(struct nlattr **a, void *arg)
{
	*(uint32_t *)arg = u32(a[RGPU_A_EPOCH]);
	return 0;
}

int kern_register(struct kern *nl, int ctl_fd, uint32_t *epoch, char why[RGPU_WHY_MAX])
{
	struct nl_msg *msg = message(nl, RGPU_CMD_REGISTER, NLM_F_ACK);

	if (!msg || nla_put_u32(msg, RGPU_A_CTL_FD, ctl_fd) || nla_put_u16(msg, RGPU_A_ABI_MAJOR, RGPU_ABI_MAJOR) ||
	    nla_put_u16(msg, RGPU_A_ABI_MINOR, RGPU_ABI_MINOR) || nla_put_u64(msg, RGPU_A_FEATURES, RGPU_FEATURES))
		return no_memory(msg, why);
	return transact(
		nl, msg,
		"registering with the module (this rgpu-proxy speaks ABI " STRING(RGPU_ABI_MAJOR) "." STRING(RGPU_ABI_MINOR) ")",
		parse_registered, epoch, why);
}

static int parse_request(struct nlattr **a, void *arg)
{
	struct kern_request *r = arg;

	if (!a[RGPU_A_REQ_ID] || !a[RGPU_A_REQ_TYPE] || !a[RGPU_A_SESSION])
		return -EBADMSG;
	r->id = u64(a[RGPU_A_REQ_ID]);
	r->type = u32(a[RGPU_A_REQ_TYPE]);
	r->flags = u32(a[RGPU_A_REQ_FLAGS]);
	r->session = u64(a[RGPU_A_SESSION]);
	r->device = u32(a[RGPU_A_DEVICE]);
	r->device_index = u32(a[RGPU_A_DEVICE_INDEX]);
	r->op = u32(a[RGPU_A_OP]);
	r->uid = u32(a[RGPU_A_UID]);
	r->pid = u32(a[RGPU_A_PID]);
	r->data_room = u32(a[RGPU_A_DATA_ROOM]);
	take(a[RGPU_A_SID], r->sid, sizeof(r->sid));
	take(a[RGPU_A_COMM], r->comm, sizeof(r->comm));
	r->comm[sizeof(r->comm) - 1] = 0;
	r->data_len = take(a[RGPU_A_DATA], r->data, sizeof(r->data));
	r->cookie_len = take(a[RGPU_A_COOKIE], r->cookie, sizeof(r->cookie));
	return 0;
}

int kern_pull(struct kern *nl, struct kern_request *out, char why[RGPU_WHY_MAX])
{
	struct nl_msg *msg = message(nl, RGPU_CMD_PULL, NLM_F_ACK);

	if (!msg)
		return no_memory(msg, why);
	return transact(nl, msg, "pulling a request", parse_request, out, why);
}

int kern_reply(struct kern *nl, uint64_t id, int status, const void *data, uint32_t len, char why[RGPU_WHY_MAX])
{
	struct nl_msg *msg = message(nl, RGPU_CMD_REPLY, NLM_F_ACK);

	if (!msg || nla_put_u64(msg, RGPU_A_REQ_ID, id) || nla_put_s32(msg, RGPU_A_STATUS, status) ||
	    (len && nla_put(msg, RGPU_A_DATA, len, data)))
		return no_memory(msg, why);
	return transact(nl, msg, "answering a request", NULL, NULL, why);
}

/* A dump's results: an array that grows. */
struct list {
	struct kern *nl;
	void *at;
	unsigned n, room;
	size_t size;
};

static void *add(struct list *l)
{
	if (l->n == l->room) {
		unsigned room = l->room ? 2 * l->room : 16;
		void *at = reallocarray(l->at, room, l->size);

		if (!at)
			return NULL;
		l->at = at;
		l->room = room;
	}
	return (char *)l->at + l->size * l->n++;
}

static int parse_session(struct nlattr **a, void *arg)
{
	struct kern_session *s = add(arg);
	struct nlattr *each;
	int left;

	if (!s)
		return -ENOMEM;
	memset(s, 0, sizeof(*s));
	/* DEVICE stands there once for each. */
	nlmsg_for_each_attr(each, ((struct list *)arg)->nl->at, GENL_HDRLEN,
			    left) if (nla_type(each) == RGPU_A_DEVICE && u32(each) < 64) s->devices |= 1ull << u32(each);
	s->reason = a[RGPU_A_REASON] ? nla_get_s32(a[RGPU_A_REASON]) : 0;
	s->bo_bytes = u64(a[RGPU_A_BO_BYTES]);
	s->link_down = a[RGPU_A_LINK_DOWN];
	s->down_ms = u64(a[RGPU_A_LINK_DOWN]);
	s->nchannels = u32(a[RGPU_A_NCHANNELS]);
	s->id = u64(a[RGPU_A_SESSION]);
	s->state = u32(a[RGPU_A_STATE]);
	s->uid = u32(a[RGPU_A_UID]);
	s->pid = u32(a[RGPU_A_PID]);
	take(a[RGPU_A_SID], s->sid, sizeof(s->sid));
	take(a[RGPU_A_COMM], s->comm, sizeof(s->comm));
	s->comm[sizeof(s->comm) - 1] = 0;
	s->cookie_len = take(a[RGPU_A_COOKIE], s->cookie, sizeof(s->cookie));
	return 0;
}

static int dump(struct kern *nl, uint8_t cmd, const char *what, kern_parse parse, size_t size, void **out, unsigned *n,
		char why[RGPU_WHY_MAX])
{
	struct nl_msg *msg = message(nl, cmd, NLM_F_DUMP);
	struct list l = {.nl = nl, .size = size};
	int err;

	if (!msg)
		return no_memory(msg, why);
	err = transact(nl, msg, what, parse, &l, why);
	if (err) {
		free(l.at);
		return err;
	}
	*out = l.at;
	*n = l.n;
	return 0;
}

int kern_sessions(struct kern *nl, struct kern_session **out, unsigned *n, char why[RGPU_WHY_MAX])
{
	return dump(nl, RGPU_CMD_SESSION_GET, "listing sessions", parse_session, sizeof(**out), (void **)out, n, why);
}

int kern_session_set(struct kern *nl, uint64_t session, const void *cookie, uint32_t len, char why[RGPU_WHY_MAX])
{
	struct nl_msg *msg = message(nl, RGPU_CMD_SESSION_SET, NLM_F_ACK);

	if (!msg || nla_put_u64(msg, RGPU_A_SESSION, session) || nla_put(msg, RGPU_A_COOKIE, len, cookie))
		return no_memory(msg, why);
	return transact(nl, msg, "noting a session", NULL, NULL, why);
}

static int parse_device(struct nlattr **a, void *arg)
{
	struct kern_device *d = add(arg);

	if (!d)
		return -ENOMEM;
	d->minor = u32(a[RGPU_A_DEVICE]);
	d->sessions = u32(a[RGPU_A_SESSIONS]);
	d->has_uuid = take(a[RGPU_A_UUID], d->uuid, sizeof(d->uuid)) == sizeof(d->uuid);
	return 0;
}

int kern_devices(struct kern *nl, struct kern_device **out, unsigned *n, char why[RGPU_WHY_MAX])
{
	return dump(nl, RGPU_CMD_DEV_GET, "listing devices", parse_device, sizeof(**out), (void **)out, n, why);
}

static int parse_minor(struct nlattr **a, void *arg)
{
	*(uint32_t *)arg = u32(a[RGPU_A_DEVICE]);
	return 0;
}

int kern_dev_add(struct kern *nl, uint32_t *minor, char why[RGPU_WHY_MAX])
{
	struct nl_msg *msg = message(nl, RGPU_CMD_DEV_ADD, NLM_F_ACK);

	if (!msg)
		return no_memory(msg, why);
	return transact(nl, msg, "adding a device", parse_minor, minor, why);
}

int kern_dev_online(struct kern *nl, uint32_t minor, const char *name, const uint8_t uuid[RGPU_UUID_LEN],
		    const uint8_t server[RGPU_UUID_LEN], uint64_t mem_total, const void *props, uint32_t props_len,
		    char why[RGPU_WHY_MAX])
{
	struct nl_msg *msg = message(nl, RGPU_CMD_DEV_SET, NLM_F_ACK);

	if (!msg || nla_put_u32(msg, RGPU_A_DEVICE, minor) || nla_put_u8(msg, RGPU_A_ONLINE, 1) ||
	    nla_put_string(msg, RGPU_A_NAME, name) || nla_put(msg, RGPU_A_UUID, RGPU_UUID_LEN, uuid) ||
	    nla_put(msg, RGPU_A_SERVER, RGPU_UUID_LEN, server) || nla_put_u64(msg, RGPU_A_MEM_TOTAL, mem_total) ||
	    nla_put(msg, RGPU_A_PROPS, props_len, props))
		return no_memory(msg, why);
	return transact(nl, msg, "describing a device", NULL, NULL, why);
}

int kern_dev_offline(struct kern *nl, uint32_t minor, char why[RGPU_WHY_MAX])
{
	struct nl_msg *msg = message(nl, RGPU_CMD_DEV_SET, NLM_F_ACK);

	if (!msg || nla_put_u32(msg, RGPU_A_DEVICE, minor) || nla_put_u8(msg, RGPU_A_ONLINE, 0))
		return no_memory(msg, why);
	return transact(nl, msg, "taking a device offline", NULL, NULL, why);
}
