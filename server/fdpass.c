// SPDX-License-Identifier: MIT
/* Messages of fixed size between processes of one host, each with a descriptor or without. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "server/fdpass.h"

union fd_space {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int))];
};

ssize_t fdpass_send(int sock, const void *buf, size_t len, int fd, int flags)
{
	union fd_space space = {0};
	struct iovec iov = {(void *)buf, len};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c;
	ssize_t n;

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
		n = sendmsg(sock, &h, MSG_NOSIGNAL | flags);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

int fdpass_recv(int sock, void *buf, size_t len, int *fd)
{
	union fd_space space = {0};
	struct iovec iov = {buf, len};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &space, .msg_controllen = sizeof(space)};
	struct cmsghdr *c;
	ssize_t n;

	*fd = -1;
	do
		n = recvmsg(sock, &h, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return !n || errno == ECONNRESET ? -EPIPE : -errno;
	c = CMSG_FIRSTHDR(&h);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(c), sizeof(*fd));
	if ((size_t)n == len && !(h.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return 0;
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	return -EPROTO;
}
