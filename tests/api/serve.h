/* SPDX-License-Identifier: MIT */
/* A server for a test program: started on a free port of this host with a key of its own, and stopped at the end. */
#ifndef TESTS_API_SERVE_H
#define TESTS_API_SERVE_H

#include <cuda.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/tap.h"

static pid_t serve_pid;
static char serve_dir[64], serve_build[PATH_MAX];
static char serve_other_key[96];	/* a file: another client's, which the server lets in, too */
static const char *serve_nvml;		/* a file of the build folder that stands for the driver's NVML; with a driver only */
static const char *serve_grace = "120"; /* seconds that a server which does not answer is waited for */

/* A file of the build folder: the test program is in its tests/. */
__attribute__((unused)) static const char *built(const char *name)
{
	static char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/%s", serve_build, name);
	return path;
}

static void serve_stop(void)
{
	char cmd[128];

	if (serve_pid > 0) {
		kill(serve_pid, SIGTERM);
		waitpid(serve_pid, NULL, 0);
	}
	serve_pid = 0;
	snprintf(cmd, sizeof(cmd), "rm -rf %s", serve_dir);
	if (*serve_dir && system(cmd))
		printf("# %s stays\n", serve_dir);
}

static pid_t serve_spawn(const char *out, const char *const *argv)
{
	pid_t pid = fork();
	int fd;

	if (pid)
		return pid;
	fd = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	dup2(fd, 1);
	dup2(fd, 2);
	execv(argv[0], (char *const *)argv);
	_exit(127);
}

/* Finds "listening on HOST:PORT" in the server's log. */
static bool serve_address(const char *log, char *addr, size_t size)
{
	FILE *f = fopen(log, "r");
	char line[512], *at = NULL;

	while (f && fgets(line, sizeof(line), f) && !(at = strstr(line, "listening on ")))
		;
	if (f)
		fclose(f);
	if (!at)
		return false;
	at += strlen("listening on ");
	at[strcspn(at, " \n")] = 0;
	if (at[strlen(at) - 1] == ':')
		at[strlen(at) - 1] = 0;
	snprintf(addr, size, "%s", at);
	return true;
}

/* @driver: NULL for softgpu, else a file of the build folder. @devices: soft ones. Exits the test when there is no server. */
__attribute__((unused)) static void serve(const char *driver, int devices)
{
	char self[PATH_MAX], server[PATH_MAX + 96], lib[PATH_MAX + 96], nvml[PATH_MAX + 96], key[96], log[96], addr[64], n[16];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	bool up = false;

	self[len > 0 ? len : 0] = 0;
	snprintf(serve_build, sizeof(serve_build), "%s", dirname(dirname(self)));
	strcpy(serve_dir, "/tmp/rgpu-api.XXXXXX");
	if (!mkdtemp(serve_dir))
		exit(1);
	atexit(serve_stop);
	snprintf(server, sizeof(server), "%s", getenv("RGPU_TEST_SERVER") ?: built("bin/rgpu-server"));
	snprintf(lib, sizeof(lib), "%s", driver ? built(driver) : "");
	snprintf(nvml, sizeof(nvml), "%s", serve_nvml ? built(serve_nvml) : "");
	snprintf(key, sizeof(key), "%s/key", serve_dir);
	snprintf(serve_other_key, sizeof(serve_other_key), "%s/other", serve_dir);
	snprintf(log, sizeof(log), "%s/log", serve_dir);
	snprintf(n, sizeof(n), "%d", devices);
	setenv("RGPU_SOFTGPU_DEVICES", n, 1);
	waitpid(serve_spawn(log, (const char *[]){server, "--pair", "--key", key, NULL}), NULL, 0);
	waitpid(serve_spawn(log, (const char *[]){server, "--pair", "--key", serve_other_key, NULL}), NULL, 0);
	if (driver)
		serve_pid = serve_spawn(log, (const char *[]){server, "--driver", lib, "--drain", "0", "--listen", "127.0.0.1:0",
							      "--key", key, "--key", serve_other_key, "--grace", serve_grace,
							      serve_nvml ? "--nvml" : NULL, nvml, NULL});
	else
		serve_pid =
			serve_spawn(log, (const char *[]){server, "--softgpu", "--drain", "0", "--listen", "127.0.0.1:0", "--key",
							  key, "--key", serve_other_key, "--grace", serve_grace, NULL});
	for (int i = 0; i < 200 && !up; i++) {
		usleep(50000);
		up = serve_address(log, addr, sizeof(addr));
	}
	if (!up) {
		printf("Bail out! no server: see %s\n", log);
		*serve_dir = 0;
		exit(1);
	}
	setenv("RGPU_SERVER", addr, 1);
	setenv("RGPU_KEY", key, 1);
	unsetenv("CUDA_VISIBLE_DEVICES");
}

__attribute__((unused)) static const char *error_name(int r)
{
	const char *s = NULL;

	cuGetErrorName((CUresult)r, &s);
	return s ? s : "?";
}

/* The call's status, with both names when it is another. */
#define is_cu(call, want)                                                                                                        \
	({                                                                                                                       \
		int got_ = (int)(call);                                                                                          \
		bool same_ = ok(got_ == (int)(want), "%s gives %s", #call, #want);                                               \
		if (!same_)                                                                                                      \
			printf("# %s:%d: got %s\n", __FILE__, __LINE__, error_name(got_));                                       \
		same_;                                                                                                           \
	})

/* A call that must succeed for the rest to have a meaning. */
#define must(call)                                                                                                               \
	do {                                                                                                                     \
		int got_ = (int)(call);                                                                                          \
		if (got_) {                                                                                                      \
			ok(false, "%s", #call);                                                                                  \
			printf("# %s:%d: %s\n", __FILE__, __LINE__, error_name(got_));                                           \
			exit(tap_done());                                                                                        \
		}                                                                                                                \
	} while (0)

/* cuInit, the first device's primary context made current. */
__attribute__((unused)) static CUcontext primary(void)
{
	CUcontext c;

	must(cuInit(0));
	must(cuDevicePrimaryCtxRetain(&c, 0));
	must(cuCtxSetCurrent(c));
	return c;
}

/* Of libcuda's version node RGPU_PRIVATE: round trips so far. */
long rgpuRoundTrips(const char *name);

/* From here on the server is behind a wire of @mbit Mbit/s and 1 ms: so slow that answers pile up before it. Kill it at the end.
 */
__attribute__((unused)) static pid_t serve_slowly(const char *mbit)
{
	const char *port = strrchr(getenv("RGPU_SERVER"), ':') + 1;
	char log[96], addr[32], line[64] = "";
	pid_t pid;

	snprintf(log, sizeof(log), "%s/wire", serve_dir);
	pid = serve_spawn(log, (const char *[]){built("tests/bench/slowlink"), port, "1000", mbit, NULL});
	for (int i = 0; i < 200 && strncmp(line, "port ", 5); i++) {
		FILE *f = fopen(log, "r");

		usleep(20000);
		if (f && !fgets(line, sizeof(line), f))
			*line = 0;
		if (f)
			fclose(f);
	}
	snprintf(addr, sizeof(addr), "127.0.0.1:%d", atoi(line + 5));
	setenv("RGPU_SERVER", addr, 1);
	setenv("RGPU_COMPRESS", "off", 1);
	return pid;
}

#endif
