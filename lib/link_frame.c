// SPDX-License-Identifier: MIT
/* Blocking frames over a link, for control connections. */
#include <errno.h>
#include <poll.h>
#include "lib/clock.h"
#include "lib/link.h"

static int wait_for(struct rgpu_link *l, short events, int64_t deadline)
{
	struct pollfd p = {.fd = rgpu_link_fd(l), .events = events};
	int n = poll(&p, 1, rgpu_ms_left(deadline));

	if (!n)
		return -ETIMEDOUT;
	return n < 0 && errno != EINTR ? -errno : 0;
}

static int write_all(struct rgpu_link *l, const void *buf, size_t len, int64_t deadline)
{
	const uint8_t *p = buf;

	while (len) {
		ssize_t n = rgpu_link_write(l, p, len);

		if (n == -EAGAIN)
			n = wait_for(l, POLLOUT, deadline);
		if (n < 0)
			return n;
		p += n;
		len -= n;
	}
	return 0;
}

static int read_all(struct rgpu_link *l, void *buf, size_t len, int64_t deadline)
{
	uint8_t *p = buf;

	while (len) {
		ssize_t n = rgpu_link_read(l, p, len);

		if (!n)
			return -ECONNRESET;
		if (n == -EAGAIN)
			n = wait_for(l, rgpu_link_events(l), deadline);
		if (n < 0)
			return n;
		p += n;
		len -= n;
	}
	return 0;
}

static int send_frame(struct rgpu_link *l, const struct rgpu_frame *hdr, const void *buf, size_t len, int timeout_ms)
{
	int64_t deadline = rgpu_deadline(timeout_ms);
	int err;

	if (len > RGPU_FRAME_MAX)
		return -EMSGSIZE;
	err = write_all(l, hdr, sizeof(*hdr), deadline);
	if (!err)
		err = write_all(l, buf, len, deadline);
	while (!err && (err = rgpu_link_flush(l)) == -EAGAIN)
		err = wait_for(l, POLLOUT, deadline);
	return err;
}

int rgpu_link_send_frame(struct rgpu_link *l, uint16_t type, uint32_t channel, const void *buf, size_t len, int timeout_ms)
{
	struct rgpu_frame hdr = {.len = len, .type = type, .channel = channel};

	return send_frame(l, &hdr, buf, len, timeout_ms);
}

int rgpu_link_send_flagged(struct rgpu_link *l, uint16_t type, uint16_t flags, const void *buf, size_t len, int timeout_ms)
{
	struct rgpu_frame hdr = {.len = len, .type = type, .flags = flags};

	return send_frame(l, &hdr, buf, len, timeout_ms);
}

ssize_t rgpu_link_recv_frame(struct rgpu_link *l, struct rgpu_frame *hdr, void *buf, size_t room, int timeout_ms)
{
	int64_t deadline = rgpu_deadline(timeout_ms);
	int err = read_all(l, hdr, sizeof(*hdr), deadline);

	if (err)
		return err;
	if (hdr->len > room)
		return -EMSGSIZE;
	err = read_all(l, buf, hdr->len, deadline);
	return err ? err : (ssize_t)hdr->len;
}
