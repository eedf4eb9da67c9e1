// SPDX-License-Identifier: MIT
/* rgpu-proxy without a module: what it says about its options, its files and what is missing, in one line each. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/key.h"
#include "tests/tap.h"

static char proxy[512], dir[] = "/tmp/rgpu-proxy-XXXXXX", out[2048];

/* Its exit status; what it printed is in @out. */
static int run(char *const argv[])
{
	int fd[2], status = 0;
	size_t len = 0;
	ssize_t n;
	pid_t pid;

	if (pipe(fd))
		abort();
	pid = fork();
	if (!pid) {
		dup2(fd[1], 1);
		dup2(fd[1], 2);
		close(fd[0]);
		alarm(20);
		execv(proxy, argv);
		_exit(127);
	}
	close(fd[1]);
	while ((n = read(fd[0], out + len, sizeof(out) - 1 - len)) > 0)
		len += n;
	out[len] = 0;
	close(fd[0]);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void put(const char *name, const char *text, char path[128])
{
	int fd;

	snprintf(path, 128, "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		abort();
	close(fd);
}

#define SAYS(status, part, ...)                                                                                                  \
	do {                                                                                                                     \
		char *argv_[] = {proxy, ##__VA_ARGS__, NULL};                                                                    \
		is_int(run(argv_), status, "%s", part);                                                                          \
		ok(strstr(out, part) && strchr(out, '\n') == out + strlen(out) - 1, "… in one line");                            \
		if (!strstr(out, part))                                                                                          \
			printf("# %s", out);                                                                                     \
	} while (0)

int main(void)
{
	static const char *const lines[] = {"bad:2: expected NAME = VALUE",
					    "bad:3: \"x\" is not a port",
					    "bad:4: unknown setting \"speed\"",
					    "bad:6: unknown section [proxi]",
					    "bad:7: the section's ] is missing",
					    "bad:10: ctl is set in line 9 already",
					    "6 lines of "};
	char key[128], conf[128], bad[128], plain[128], why[RGPU_WHY_MAX];
	struct rgpu_key k;
	ssize_t n = readlink("/proc/self/exe", proxy, sizeof(proxy) - 32);

	/* build/tests/… → build/bin/rgpu-proxy */
	if (n < 0 || !mkdtemp(dir))
		return 1;
	proxy[n] = 0;
	*strrchr(proxy, '/') = 0;
	strcpy(strrchr(proxy, '/'), "/bin/rgpu-proxy");
	snprintf(key, sizeof(key), "%s/key", dir);
	rgpu_key_create(key, &k, why);
	put("plain", "", plain);

	SAYS(2, "no server: --server HOST:PORT");
	SAYS(2, "no key: --key FILE", "--server", "gpu");
	SAYS(2, "is not a port", "--server", "gpu:x", "--key", key);
	SAYS(2, "unknown option", "--sever", "gpu");
	SAYS(2, "unknown option, or one without its value: --server", "--server");
	SAYS(2, "unexpected \"gpu\"", "gpu");
	SAYS(1, "cannot read the key file /nonexistent", "--server", "gpu", "--key", "/nonexistent");
	SAYS(2, "not a key file", "--server", "gpu", "--key", plain);
	chmod(key, 0644);
	SAYS(1, "chmod 600", "--server", "gpu", "--key", key);
	chmod(key, 0600);
	SAYS(1, "modprobe rgpu", "--server", "gpu", "--key", key, "--ctl", "/dev/no-rgpu-ctl");
	SAYS(0, "rgpu-proxy 0.1", "--version");

	put("bad", "[proxy]\nserver\nserver = gpu:x\n  speed = 9\n[proxi]\nkey = k\n[proxy\n[proxy]\nctl = a\nctl = a\n", bad);
	is_int(run((char *[]){proxy, "--check-config", "--config", bad, NULL}), 2, "--check-config with bad lines");
	for (unsigned i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		ok(strstr(out, lines[i]), "it says \"%s\"", lines[i]);
	put("bad", "server = gpu\n", bad);
	is_int(run((char *[]){proxy, "--config", bad, NULL}), 2, "a line before the section");
	ok(strstr(out, "bad:1: outside of a section: put [proxy] above it"), "is told with its number");
	snprintf(out, sizeof(out), "[proxy]\nserver = gpu:77\n key = %s\t\nctl=/dev/no-rgpu-ctl ; not there\n# end\n", key);
	put("conf", out, conf);
	SAYS(1, "there is no /dev/no-rgpu-ctl", "--config", conf);
	SAYS(0, "conf is good", "--check-config", "--config", conf);
	SAYS(1, "there is no /dev/no-rgpu-ctl", "--config", conf, "--server", "gpu:1");
	SAYS(1, "cannot read /nonexistent", "--config", "/nonexistent");
	unlink(key);
	unlink(conf);
	unlink(bad);
	unlink(plain);
	rmdir(dir);
	return tap_done();
}
