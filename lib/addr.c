// SPDX-License-Identifier: MIT
/* HOST:PORT on the command line, and TCP sockets to and at such an address. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <sched.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <rgpu_wire.h>
#include "lib/addr.h"
#include "lib/clock.h"

static int parse_port(const char *text, bool any_port, uint16_t *port, char why[RGPU_WHY_MAX])
{
	unsigned long v = 0;
	const char *c;

	for (c = text; *c >= '0' && *c <= '9' && v <= 65535; c++)
		v = v * 10 + (*c - '0');
	if (*c || c == text || v > 65535 || (!v && !any_port))
		return rgpu_why(why, -EINVAL, "\"%.40s\" is not a port: a number from 1 to 65535 (default %d)", text,
				RGPU_DEFAULT_PORT);
	*port = v;
	return 0;
}

int rgpu_addr_parse(const char *text, bool any_port, struct rgpu_addr *out, char why[RGPU_WHY_MAX])
{
	const char *host = text, *port = NULL, *colon;
	size_t len;

	if (*text == '[') {
		const char *end = strchr(text, ']');

		if (!end || (end[1] && end[1] != ':'))
			return rgpu_why(why, -EINVAL, "bad address \"%.80s\": expected [ADDRESS]:PORT", text);
		host = text + 1;
		len = end - host;
		if (end[1])
			port = end + 2;
		if (!memchr(host, ':', len))
			return rgpu_why(why, -EINVAL, "bad address \"%.80s\": brackets are for IPv6 addresses", text);
	} else {
		colon = strchr(text, ':');
		len = strlen(text);
		/* Two colons without brackets: an IPv6 address, whole. */
		if (colon && !strchr(colon + 1, ':')) {
			len = colon - text;
			port = colon + 1;
		}
	}
	if (!len)
		return rgpu_why(why, -EINVAL, "bad address \"%.80s\": no host; expected HOST:PORT", text);
	if (len >= sizeof(out->host))
		return rgpu_why(why, -EINVAL, "bad address \"%.80s…\": the host is too long", text);
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)host[i] <= ' ' || strchr("/@[]", host[i]))
			return rgpu_why(why, -EINVAL,
					"bad address \"%.80s\": expected HOST:PORT, without a scheme, blanks or brackets inside",
					text);
	memcpy(out->host, host, len);
	out->host[len] = 0;
	out->port = RGPU_DEFAULT_PORT;
	return port ? parse_port(port, any_port, &out->port, why) : 0;
}

void rgpu_addr_text(const struct rgpu_addr *a, char out[RGPU_ADDR_TEXT_MAX])
{
	snprintf(out, RGPU_ADDR_TEXT_MAX, strchr(a->host, ':') ? "[%s]:%u" : "%s:%u", a->host, a->port);
}

static int resolve(const struct rgpu_addr *a, int flags, struct addrinfo **out, char why[RGPU_WHY_MAX])
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};
	char port[8];
	int err;

	snprintf(port, sizeof(port), "%u", a->port);
	err = getaddrinfo(a->host, port, &hints, out);
	if (err == EAI_MEMORY)
		return rgpu_why(why, -ENOMEM, "no memory to look up %s", a->host);
	if (err)
		return rgpu_why(why, -EHOSTUNREACH, "cannot find the host %.100s: %s", a->host, gai_strerror(err));
	return 0;
}

void rgpu_sock_tune(int fd)
{
	static const struct {
		int level, name, value;
	} opts[] = {
		{IPPROTO_TCP, TCP_NODELAY, 1},
		{SOL_SOCKET, SO_KEEPALIVE, 1},
		{IPPROTO_TCP, TCP_KEEPIDLE, 5},
		{IPPROTO_TCP, TCP_KEEPINTVL, 5},
		{IPPROTO_TCP, TCP_KEEPCNT, 3},
		{IPPROTO_TCP, TCP_USER_TIMEOUT, 20000},
		{IPPROTO_TCP, TCP_NOTSENT_LOWAT, 512 << 10},
	};

	/* Each is a refinement; on a socket that is not TCP (tests) none applies. */
	for (size_t i = 0; i < sizeof(opts) / sizeof(opts[0]); i++)
		setsockopt(fd, opts[i].level, opts[i].name, &opts[i].value, sizeof(int));
}

bool rgpu_sock_same_host(int fd)
{
	struct sockaddr_storage here = {0}, there = {0};
	socklen_t a = sizeof(here), b = sizeof(there);

	if (getsockname(fd, (struct sockaddr *)&here, &a) || getpeername(fd, (struct sockaddr *)&there, &b) ||
	    here.ss_family != there.ss_family)
		return false;
	if (here.ss_family == AF_INET6)
		return !memcmp(&((struct sockaddr_in6 *)&here)->sin6_addr, &((struct sockaddr_in6 *)&there)->sin6_addr,
			       sizeof(struct in6_addr));
	return here.ss_family == AF_INET
		       ? ((struct sockaddr_in *)&here)->sin_addr.s_addr == ((struct sockaddr_in *)&there)->sin_addr.s_addr
		       : here.ss_family == AF_UNIX;
}

bool rgpu_sock_apart(int fd)
{
	socklen_t len = sizeof(int);
	int cpu;

	/* Loopback delivers where it was sent. */
	return !getsockopt(fd, SOL_SOCKET, SO_INCOMING_CPU, &cpu, &len) && cpu >= 0 && cpu != sched_getcpu();
}

/* One address. The socket, or -errno. */
static int connect_one(const struct addrinfo *ai, int64_t deadline)
{
	int fd, err;
	socklen_t len = sizeof(err);

	fd = socket(ai->ai_family, ai->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, ai->ai_protocol);
	if (fd < 0)
		return -errno;
	rgpu_sock_tune(fd);
	if (!connect(fd, ai->ai_addr, ai->ai_addrlen))
		return fd;
	err = errno;
	while (err == EINPROGRESS || err == EINTR) {
		struct pollfd p = {.fd = fd, .events = POLLOUT};
		int n = poll(&p, 1, rgpu_ms_left(deadline));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			err = n ? errno : ETIMEDOUT;
			break;
		}
		if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len))
			err = errno;
		if (!err)
			return fd;
	}
	close(fd);
	return -err;
}

/* A share of what is left, so that one that does not answer leaves time to those behind it. */
static int64_t share(int64_t deadline, const struct addrinfo *ai)
{
	int left = rgpu_ms_left(deadline), n = 0;

	for (; ai; ai = ai->ai_next)
		n++;
	return n > 1 && left > 0 ? rgpu_deadline(left / n) : deadline;
}

int rgpu_addr_connect(const struct rgpu_addr *a, int timeout_ms, char why[RGPU_WHY_MAX])
{
	int64_t deadline = rgpu_deadline(timeout_ms);
	char text[RGPU_ADDR_TEXT_MAX];
	struct addrinfo *list;
	int err;

	err = resolve(a, 0, &list, why);
	if (err)
		return err;
	err = -EHOSTUNREACH;
	for (struct addrinfo *ai = list; ai; ai = ai->ai_next) {
		err = connect_one(ai, share(deadline, ai));
		if (err >= 0)
			break;
	}
	freeaddrinfo(list);
	if (err >= 0)
		return err;
	rgpu_addr_text(a, text);
	if (err == -ECONNREFUSED)
		return rgpu_why(why, err, "cannot reach the server at %.120s: connection refused; is rgpu-server running there?",
				text);
	return rgpu_why(why, err, "cannot reach the server at %.120s: %s", text, strerror(-err));
}

int rgpu_addr_listen(const struct rgpu_addr *a, uint16_t *port, char why[RGPU_WHY_MAX])
{
	struct sockaddr_storage sa;
	socklen_t sa_len = sizeof(sa);
	char text[RGPU_ADDR_TEXT_MAX];
	struct addrinfo *list;
	int fd, err, one = 1;

	err = resolve(a, AI_PASSIVE, &list, why);
	if (err)
		return err;
	rgpu_addr_text(a, text);
	fd = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, list->ai_protocol);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) || bind(fd, list->ai_addr, list->ai_addrlen) ||
	    listen(fd, 128) || getsockname(fd, (struct sockaddr *)&sa, &sa_len)) {
		err = -errno;
		rgpu_why(why, err, "cannot listen on %.120s: %s", text, strerror(-err));
		if (fd >= 0)
			close(fd);
		fd = err;
	} else if (port) {
		*port = ntohs(sa.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&sa)->sin6_port
						       : ((struct sockaddr_in *)&sa)->sin_port);
	}
	freeaddrinfo(list);
	return fd;
}

static bool sockaddr_is_loopback(const struct sockaddr *sa)
{
	if (sa->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)sa)->sin_addr.s_addr) >> 24 == 127;
	if (sa->sa_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)sa)->sin6_addr) ||
		       (IN6_IS_ADDR_V4MAPPED(&((const struct sockaddr_in6 *)sa)->sin6_addr) &&
			((const struct sockaddr_in6 *)sa)->sin6_addr.s6_addr[12] == 127);
	return false;
}

bool rgpu_sock_is_loopback(int fd)
{
	struct sockaddr_storage a = {0}, b = {0};
	socklen_t alen = sizeof(a), blen = sizeof(b);

	return !getsockname(fd, (struct sockaddr *)&a, &alen) && !getpeername(fd, (struct sockaddr *)&b, &blen) &&
	       sockaddr_is_loopback((struct sockaddr *)&a) && sockaddr_is_loopback((struct sockaddr *)&b);
}

bool rgpu_addr_is_loopback(const struct rgpu_addr *a)
{
	char why[RGPU_WHY_MAX];
	struct addrinfo *list;
	bool all = true;

	if (resolve(a, 0, &list, why))
		return false;
	for (struct addrinfo *ai = list; ai; ai = ai->ai_next)
		all = all && sockaddr_is_loopback(ai->ai_addr);
	freeaddrinfo(list);
	return all;
}
