// SPDX-License-Identifier: MIT
/* The kernel's TLS for what a link sends. Source: the kernel's Documentation/networking/tls.rst. */
#include "lib/ktls.h"

#include <linux/tls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

/* By the cipher and not by OpenSSL's structure around it: that is its own. */
static socklen_t info_size(const struct tls_crypto_info *info)
{
	switch (info->cipher_type) {
	case TLS_CIPHER_AES_GCM_128:
		return sizeof(struct tls12_crypto_info_aes_gcm_128);
	case TLS_CIPHER_CHACHA20_POLY1305:
		return sizeof(struct tls12_crypto_info_chacha20_poly1305);
	default:
		return 0;
	}
}

bool rgpu_ktls_start(int fd, const void *info)
{
	socklen_t size = info_size(info);

	/* The first fails where the kernel has no module for it, or may not load it on our behalf. */
	return size && !setsockopt(fd, SOL_TCP, TCP_ULP, "tls", sizeof("tls")) && !setsockopt(fd, SOL_TLS, TLS_TX, info, size);
}

ssize_t rgpu_ktls_send_record(int fd, uint8_t type, const void *buf, size_t len)
{
	union {
		struct cmsghdr hdr;
		char room[CMSG_SPACE(sizeof(type))];
	} control = {0};
	struct iovec iov = {.iov_base = (void *)buf, .iov_len = len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};

	control.hdr.cmsg_level = SOL_TLS;
	control.hdr.cmsg_type = TLS_SET_RECORD_TYPE;
	control.hdr.cmsg_len = CMSG_LEN(sizeof(type));
	*CMSG_DATA(&control.hdr) = type;
	return sendmsg(fd, &msg, MSG_NOSIGNAL);
}
