// SPDX-License-Identifier: MIT
/* What the subcommands ask of this machine: files below an optional other root, commands, the places of our own parts. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tools/rgpu/sys.h"

const char *sys_root = "";

const char *sys_path(const char *path)
{
	static char ring[8][PATH_MAX];
	static unsigned next;
	char *out = ring[next++ % 8];

	snprintf(out, PATH_MAX, "%s%s", sys_root, path);
	return out;
}

const char *sys_line(const char *path)
{
	static char ring[4][256];
	static unsigned next;
	char *out = ring[next++ % 4];
	FILE *f = fopen(sys_path(path), "re");
	bool got = f && fgets(out, sizeof(ring[0]), f);

	if (f)
		fclose(f);
	if (got)
		out[strcspn(out, "\n")] = 0;
	return got ? out : NULL;
}

const char *sys_release(void)
{
	const char *r = sys_line("/proc/sys/kernel/osrelease");

	return r ? r : "unknown";
}

int sys_run(const char *const argv[], char *out, size_t room)
{
	char spill[4096];
	size_t len = 0;
	int p[2], status;
	ssize_t n;
	pid_t pid;

	out[0] = 0;
	if (pipe2(p, O_CLOEXEC))
		return 127;
	pid = fork();
	if (!pid) {
		dup2(p[1], 1);
		dup2(p[1], 2);
		setenv("LC_ALL", "C", 1);
		execvp(argv[0], (char *const *)argv);
		_exit(127);
	}
	close(p[1]);
	/* To the end, or the program would be stopped by a pipe that broke. */
	while ((n = len < room - 1 ? read(p[0], out + len, room - 1 - len) : read(p[0], spill, sizeof(spill))) > 0)
		len += len < room - 1 ? n : 0;
	out[len] = 0;
	close(p[0]);
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return 127;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int sys_find_process(const char *comm, char *state)
{
	DIR *d = opendir(sys_path("/proc"));
	struct dirent *e;
	int found = 0;

	while (d && !found && (e = readdir(d))) {
		char path[300], stat[256];
		const char *line, *open, *close;
		FILE *f;

		if (e->d_name[0] < '1' || e->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%s/stat", e->d_name);
		/* Not sys_line(): the callers hold what it gave them. */
		f = fopen(sys_path(path), "re");
		line = f ? fgets(stat, sizeof(stat), f) : NULL;
		if (f)
			fclose(f);
		open = line ? strchr(line, '(') : NULL;
		close = line ? strrchr(line, ')') : NULL;
		if (!open || !close || (size_t)(close - open - 1) != strlen(comm) || strncmp(open + 1, comm, strlen(comm)))
			continue;
		if (close[1] == ' ' && close[2] == 'Z')
			continue;
		found = atoi(e->d_name);
		if (state)
			*state = close[1] ? close[2] : '?';
	}
	if (d)
		closedir(d);
	return found;
}

/* A user of that root, whose numbers may be others there. */
static const struct passwd *user_of(const char *name)
{
	FILE *f = *sys_root ? fopen(sys_path("/etc/passwd"), "re") : NULL;
	const struct passwd *pw = NULL;

	if (!*sys_root)
		return getpwnam(name);
	while (f && (pw = fgetpwent(f)) && strcmp(pw->pw_name, name))
		;
	if (f)
		fclose(f);
	return pw;
}

/* A device or a pipe is written to: another file in its place would be a loss. */
static int write_to(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		err = errno ? -errno : -EIO;
	close(fd);
	return err;
}

int sys_write(const char *path, const char *text, unsigned mode, const char *user)
{
	const char *to = sys_path(path);
	const struct passwd *pw = user && !geteuid() ? user_of(user) : NULL;
	char tmp[PATH_MAX + 16];
	struct stat st;
	int fd, err = 0;

	if (!stat(to, &st) && !S_ISREG(st.st_mode))
		return write_to(to, text);
	snprintf(tmp, sizeof(tmp), "%s.new", to);
	unlink(tmp);
	fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text) || fchmod(fd, mode) ||
	    (pw && fchown(fd, pw->pw_uid, pw->pw_gid)) || fsync(fd))
		err = errno ? -errno : -EIO;
	close(fd);
	if (!err && rename(tmp, to))
		err = -errno;
	if (err)
		unlink(tmp);
	return err;
}

bool sys_libs(char dir[PATH_MAX])
{
	static const char *const places[] = {"../lib/rgpu", "../lib"};
	char exe[PATH_MAX], path[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (n < 0)
		return false;
	exe[n] = 0;
	*strrchr(exe, '/') = 0;
	for (unsigned int i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s/libcuda.so.1", exe, places[i]);
		if (!access(path, R_OK)) {
			*strrchr(path, '/') = 0;
			return realpath(path, dir);
		}
	}
	return false;
}

bool sys_in_container(void)
{
	return !access(sys_path("/run/.containerenv"), F_OK) || !access(sys_path("/.dockerenv"), F_OK) ||
	       !access(sys_path("/run/systemd/container"), F_OK);
}

bool sys_has_systemd(void)
{
	return !*sys_root && !access("/run/systemd/system", F_OK);
}
