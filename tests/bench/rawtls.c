/* SPDX-License-Identifier: MIT */
/* The other end of raw.h, a process of its own. Usage: rawtls; prints "port N", and runs until it is killed. */
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "tests/bench/raw.h"

int main(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(at);

	if (listener < 0 || bind(listener, (void *)&at, len) || listen(listener, 4) || getsockname(listener, (void *)&at, &len)) {
		perror("rawtls");
		return 1;
	}
	signal(SIGCHLD, SIG_IGN);
	printf("port %d\n", ntohs(at.sin_port));
	fflush(stdout);
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		if (fd < 0)
			continue;
		if (!fork()) {
			raw_serve(fd);
			exit(0);
		}
		close(fd);
	}
}
