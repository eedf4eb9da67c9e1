// SPDX-License-Identifier: MIT
/* What listener and workers say to each other: fixed messages over a SOCK_SEQPACKET socket, one with a descriptor. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/clock.h"
#include "server/wmsg.h"

union fd_space {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int))];
};

int wmsg_send(int sock, struct wmsg *m, int fd)
{
	union fd_space space = {0};
	struct iovec iov = {m, sizeof(*m)};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c;
	ssize_t n;

	m->version = WMSG_VERSION;
	if (fd >= 0) {
		h.msg_control = &space;
		h.msg_controllen = sizeof(space);
		c = CMSG_FIRSTHDR(&h);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	do
		n = sendmsg(sock, &h, MSG_NOSIGNAL | MSG_DONTWAIT); /* who does not read for long hangs, and must not hang us */
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == ECONNRESET ? -EPIPE : -errno;
	return 0;
}

int wmsg_recv(int sock, struct wmsg *m, int *fd, int timeout_ms)
{
	int64_t deadline = rgpu_deadline(timeout_ms);
	union fd_space space = {0};
	struct iovec iov = {m, sizeof(*m)};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &space, .msg_controllen = sizeof(space)};
	struct pollfd p = {.fd = sock, .events = POLLIN};
	struct cmsghdr *c;
	int got = -1;
	ssize_t n;

	do
		n = poll(&p, 1, rgpu_ms_left(deadline));
	while (n < 0 && errno == EINTR);
	if (!n)
		return -ETIMEDOUT;
	do
		n = recvmsg(sock, &h, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return !n || errno == ECONNRESET ? -EPIPE : -errno;
	c = CMSG_FIRSTHDR(&h);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(&got, CMSG_DATA(c), sizeof(got));
	if (n != sizeof(*m) || m->version != WMSG_VERSION || h.msg_flags & (MSG_TRUNC | MSG_CTRUNC) || (got >= 0 && !fd)) {
		if (got >= 0)
			close(got);
		return -EPROTO;
	}
	m->text[sizeof(m->text) - 1] = 0;
	if (fd)
		*fd = got;
	return 0;
}
