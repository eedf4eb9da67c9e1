// SPDX-License-Identifier: MIT
/* rgpu doctor on what programs and containers find: which libcuda.so.1 comes first, and whether the CDI file is of today. */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tools/rgpu/cdi.h"
#include "tools/rgpu/doctor.h"
#include "tools/rgpu/sys.h"

/* What the loader takes, asked in a child: a driver's library is not for this process. Empty: none is found. */
static void first_libcuda(char out[PATH_MAX])
{
	int p[2];
	ssize_t n;
	pid_t pid;

	out[0] = 0;
	if (pipe(p))
		return;
	pid = fork();
	if (!pid) {
		void *lib = dlopen("libcuda.so.1", RTLD_LAZY);
		struct link_map *map;

		if (lib && !dlinfo(lib, RTLD_DI_LINKMAP, &map) && write(p[1], map->l_name, strlen(map->l_name)) < 0)
			_exit(1);
		_exit(0);
	}
	close(p[1]);
	n = read(p[0], out, PATH_MAX - 1);
	out[n > 0 ? n : 0] = 0;
	close(p[0]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

static bool has_libcuda(const char *dir, size_t len)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%.*s/libcuda.so.1", (int)len, len ? dir : ".");
	return !access(path, F_OK);
}

static void look_libcuda(struct doctor *d, struct finding *f)
{
	const char *path = getenv("LD_LIBRARY_PATH"), *preload = getenv("LD_PRELOAD");
	char ours[PATH_MAX], first[PATH_MAX], real[PATH_MAX], want[PATH_MAX + 32];

	(void)d;
	if (!sys_libs(ours)) {
		bad(f, "our libcuda.so.1 is not installed beside this program");
		fix(f, "apt-get install librgpu-cuda1");
		return;
	}
	snprintf(want, sizeof(want), "%s/libcuda.so.1", ours);
	if (preload && strstr(preload, "libcuda.so")) {
		bad(f, "LD_PRELOAD names %s, which comes before ours even under rgpu run", preload);
		fix(f, "unset LD_PRELOAD");
		return;
	}
	first_libcuda(first);
	if (*first && realpath(first, real) && (realpath(want, first), !strcmp(real, first))) {
		good(f, "%s, for every program", real);
		return;
	}
	for (; path && *path; path += strcspn(path, ":"), path += *path == ':') {
		size_t len = strcspn(path, ":");

		if (!has_libcuda(path, len))
			continue;
		bad(f, "LD_LIBRARY_PATH has another libcuda.so.1, in %.*s", (int)len, path);
		fix(f, "export LD_LIBRARY_PATH=%s:$LD_LIBRARY_PATH", ours);
		return;
	}
	if (!access("/etc/ld.so.conf.d/00-rgpu.conf", F_OK)) {
		bad(f, "ours is to be every program's (rgpu-nvidia-compat), but the loader finds %s", *first ? real : "none");
		fix(f, "ldconfig");
		return;
	}
	good(f, "%s, by rgpu run -- PROGRAM%s%s", want, *first ? "; others get " : "", *first ? real : "");
}

static bool same_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "re");
	char buf[65536];
	size_t n = f ? fread(buf, 1, sizeof(buf) - 1, f) : 0;

	buf[n] = 0;
	if (f)
		fclose(f);
	return !strcmp(buf, text);
}

static void look_cdi(struct doctor *d, struct finding *f)
{
	static const char *const files[] = {CDI_FILE, "/etc/cdi/rgpu.yaml"};
	char *text = NULL;
	size_t len;
	FILE *to;
	int err;

	(void)d;
	for (unsigned i = 0; i < sizeof(files) / sizeof(*files); i++) {
		if (access(sys_path(files[i]), F_OK))
			continue;
		to = open_memstream(&text, &len);
		err = to ? cdi_write(to) : -1;
		if (to)
			fclose(to);
		if (!err && same_text(sys_path(files[i]), text)) {
			good(f, "%s", files[i]);
		} else if (err == -ELIBACC) {
			bad(f, "%s names libraries, and ours are not installed beside this program", files[i]);
			fix(f, "apt-get install librgpu-cuda1");
		} else if (err) {
			bad(f, "%s names devices, and there is no /dev/rgpuN", files[i]);
			fix(f, "modprobe rgpu");
		} else {
			bad(f, "%s does not have the devices and libraries that are here now", files[i]);
			fix(f, "rgpu cdi generate --output %s", files[i]);
		}
		free(text);
		return;
	}
	skip(f, "there is no CDI file: containers are given devices by --device /dev/rgpu0");
}

const struct check checks_lib[] = {
	{"libcuda", "programs find our libcuda.so.1 first", look_libcuda},
	{"cdi", "the file for container tools is of today", look_cdi},
	{0},
};
