/* SPDX-License-Identifier: MIT */
/* A connection over loopback with both ends in one process. */
#ifndef TESTS_RELAY_TCP_H
#define TESTS_RELAY_TCP_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static void tcp_pair(int fd[2])
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(at);

	fd[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(listener, (void *)&at, len) || listen(listener, 1) || getsockname(listener, (void *)&at, &len) ||
	    connect(fd[0], (void *)&at, len))
		abort();
	fd[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	close(listener);
}

#endif
