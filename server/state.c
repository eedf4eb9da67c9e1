// SPDX-License-Identifier: MIT
/* The state directory: the workers' sockets, the server's name, and the lock that one server has on it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include "server/state.h"

static int choose(const struct server_opts *o, uint16_t port, char dir[STATE_DIR_MAX])
{
	const char *run = getenv("RUNTIME_DIRECTORY"), *xdg = getenv("XDG_RUNTIME_DIR"), *tmp = getenv("TMPDIR");
	int n;

	if (*o->state_dir)
		n = snprintf(dir, STATE_DIR_MAX, "%s", o->state_dir);
	else if (run && *run)
		n = snprintf(dir, STATE_DIR_MAX, "%s/rgpu-server-%u", run, port);
	else if (!geteuid() && !access("/run", W_OK))
		n = snprintf(dir, STATE_DIR_MAX, "/run/rgpu-server-%u", port);
	else if (xdg && *xdg)
		n = snprintf(dir, STATE_DIR_MAX, "%s/rgpu-server-%u", xdg, port);
	else
		n = snprintf(dir, STATE_DIR_MAX, "%s/rgpu-server-%u-%u", tmp && *tmp ? tmp : "/tmp", geteuid(), port);
	return n < STATE_DIR_MAX ? 0 : -ENAMETOOLONG;
}

/* Ours alone, or somebody else could have put a worker's socket there. */
static int check(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (st.st_uid != geteuid() || st.st_mode & 077)
		return -EPERM;
	return 0;
}

/* 16 random bytes, made once, so that a restarted server keeps its name. */
static int server_name(int dir, uint8_t name[16])
{
	int fd = openat(dir, "name", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600), err = 0;

	if (fd < 0)
		return -errno;
	if (read(fd, name, 16) != 16) {
		ssize_t n = getrandom(name, 16, 0) == 16 ? pwrite(fd, name, 16, 0) : -1;

		/* A part of it stays for nobody: the next start makes another. */
		err = n == 16 ? 0 : n < 0 ? -errno : -ENOSPC;
	}
	close(fd);
	return err;
}

int state_open(const struct server_opts *o, uint16_t port, char dir[STATE_DIR_MAX], uint8_t name[16], char why[RGPU_WHY_MAX])
{
	int fd, err;

	if (choose(o, port, dir))
		return rgpu_why(why, -ENAMETOOLONG,
				"the state directory's name is too long; give a short one with --state-dir DIR");
	if (mkdir(dir, 0700) && errno != EEXIST)
		return rgpu_why(why, -errno, "cannot make %s: %s; give another with --state-dir DIR", dir, strerror(errno));
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return rgpu_why(why, -errno, "cannot open %s: %s", dir, strerror(errno));
	err = check(fd);
	if (err) {
		close(fd);
		return rgpu_why(why, err, "%s must belong to the server's user alone (mode 0700)", dir);
	}
	if (flock(fd, LOCK_EX | LOCK_NB)) {
		close(fd);
		return rgpu_why(why, -EBUSY,
				"another rgpu-server uses %s; stop it, or give another directory with --state-dir DIR", dir);
	}
	err = server_name(fd, name);
	if (err)
		return rgpu_why(why, err, "cannot keep the server's name in %s: %s", dir, strerror(-err));
	return 0;
}

void state_remove(const struct server_opts *o, const char *dir)
{
	char name[STATE_DIR_MAX + 8];

	if (*o->state_dir)
		return;
	snprintf(name, sizeof(name), "%s/name", dir);
	unlink(name);
	rmdir(dir);
}
