// SPDX-License-Identifier: MIT
/* What listener and workers say to each other: fixed messages over a SOCK_SEQPACKET socket, one with a descriptor. */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/clock.h"
#include "server/fdpass.h"
#include "server/wmsg.h"

int wmsg_send(int sock, struct wmsg *m, int fd)
{
	ssize_t n;

	m->version = WMSG_VERSION;
	n = fdpass_send(sock, m, sizeof(*m), fd, MSG_DONTWAIT); /* who does not read for long hangs, and must not hang us */
	if (n < 0)
		return n == -ECONNRESET ? -EPIPE : n;
	return 0;
}

int wmsg_recv(int sock, struct wmsg *m, int *fd, int timeout_ms)
{
	int64_t deadline = rgpu_deadline(timeout_ms);
	struct pollfd p = {.fd = sock, .events = POLLIN};
	int got, n;

	do
		n = poll(&p, 1, rgpu_ms_left(deadline));
	while (n < 0 && errno == EINTR);
	if (!n)
		return -ETIMEDOUT;
	n = fdpass_recv(sock, m, sizeof(*m), &got);
	if (n)
		return n;
	if (m->version != WMSG_VERSION || (got >= 0 && !fd)) {
		if (got >= 0)
			close(got);
		return -EPROTO;
	}
	m->text[sizeof(m->text) - 1] = 0;
	if (fd)
		*fd = got;
	return 0;
}
