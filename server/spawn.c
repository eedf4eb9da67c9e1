// SPDX-License-Identifier: MIT
/* Starts this executable again in a hidden mode, as a process group of its own. */
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <unistd.h>
#include "server/spawn.h"

extern char **environ;

int spawn_self(const char *mode, int fd, const char *const *args, pid_t *pid)
{
	const char *argv[12] = {"rgpu-server", mode, "3"};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, all;
	unsigned n = 3;
	int err;

	while (args && *args && n < sizeof(argv) / sizeof(*argv) - 1)
		argv[n++] = *args++;
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attr);
	err = posix_spawn_file_actions_adddup2(&files, fd, 3);
	if (!err)
		err = posix_spawn_file_actions_addclosefrom_np(&files, 4);
	if (!err)
		err = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setpgroup(&attr, 0);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	if (!err)
		err = posix_spawn(pid, "/proc/self/exe", &files, &attr, (char *const *)argv, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	return -err;
}
