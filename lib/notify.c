// SPDX-License-Identifier: MIT
/* systemd's notification socket: ready, status, reload, watchdog. */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "lib/clock.h"
#include "lib/notify.h"

void rgpu_notify(const char *fmt, ...)
{
	const char *where = getenv("NOTIFY_SOCKET");
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	char text[512];
	size_t len;
	va_list ap;
	int fd;

	if (!where || (*where != '/' && *where != '@') || strlen(where) >= sizeof(a.sun_path))
		return;
	len = strlen(where);
	memcpy(a.sun_path, where, len);
	if (*where == '@')
		a.sun_path[0] = 0;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	if (sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&a, offsetof(struct sockaddr_un, sun_path) + len) <
	    0) {
		/* A manager that does not listen will say so itself. */
	}
	close(fd);
}

void rgpu_notify_reloading(void)
{
	rgpu_notify("RELOADING=1\nMONOTONIC_USEC=%lld", (long long)(rgpu_now_ns() / 1000));
}

int rgpu_notify_watchdog_ms(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	long long ms;

	if (!usec || (pid && atoi(pid) != getpid()))
		return -1;
	ms = atoll(usec) / 2000;
	return ms > 0 && ms < 1 << 30 ? (int)ms : -1;
}

void rgpu_notify_watchdog(void)
{
	static int64_t next;
	int ms = rgpu_notify_watchdog_ms();

	if (ms < 0 || rgpu_now_ns() < next)
		return;
	rgpu_notify("WATCHDOG=1");
	next = rgpu_deadline(ms);
}
