// SPDX-License-Identifier: MIT
/* The server's configuration file: bad lines, --pair by it, what a service manager hears, and a reload under running sessions. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/clock.h"
#include "tests/tap.h"
#include "usermode-proxy/control.h"

#define WAIT_MS 60000

static char dir[64], stubd[PATH_MAX], conf[96], log_path[96], key_path[2][96];
static int manager = -1; /* what the server notifies */
static uint16_t port;
static pid_t server;

static char *read_file(const char *path)
{
	static char buf[1 << 16];
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? 0 : read(fd, buf, sizeof(buf) - 1);

	buf[n > 0 ? n : 0] = 0;
	if (fd >= 0)
		close(fd);
	return buf;
}

static void write_conf(const char *text)
{
	FILE *f = fopen(conf, "w");

	if (!f || fputs(text, f) < 0 || fclose(f))
		abort();
}

/* The child's output goes to the log; under a service manager, if it is told so, the log is the journal. */
static pid_t spawn(bool managed, char *const argv[])
{
	char journal[64], watchdog[] = "400000";
	struct stat st;
	pid_t pid;
	int fd;

	unlink(log_path);
	fd = open(log_path, O_WRONLY | O_CREAT | O_APPEND, 0600);
	pid = fork();
	if (!pid) {
		dup2(fd, 1);
		dup2(fd, 2);
		if (managed && !fstat(fd, &st)) {
			snprintf(journal, sizeof(journal), "%llu:%llu", (unsigned long long)st.st_dev,
				 (unsigned long long)st.st_ino);
			setenv("JOURNAL_STREAM", journal, 1);
			setenv("WATCHDOG_USEC", watchdog, 1);
		}
		execv(argv[0], argv);
		_exit(127);
	}
	close(fd);
	return pid;
}

static int run(char *const argv[])
{
	int status;

	waitpid(spawn(false, argv), &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* Whether the manager hears @text before the deadline. */
static bool notified(const char *text)
{
	int64_t deadline = rgpu_deadline(WAIT_MS);
	struct pollfd p = {.fd = manager, .events = POLLIN};
	char said[600];
	ssize_t n;

	while (poll(&p, 1, rgpu_ms_left(deadline)) == 1) {
		n = recv(manager, said, sizeof(said) - 1, 0);
		said[n > 0 ? n : 0] = 0;
		if (strstr(said, text))
			return true;
	}
	return false;
}

static void manage(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	snprintf(a.sun_path, sizeof(a.sun_path), "%s/notify", dir);
	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (manager < 0 || bind(manager, (struct sockaddr *)&a, sizeof(a)))
		abort();
	setenv("NOTIFY_SOCKET", a.sun_path, 1);
}

static void bad_lines(void)
{
	static const char *const says[] = {"conf:2: expected NAME = VALUE",
					   "conf:3: listen: \"x\" is not a port",
					   "conf:4: unknown setting \"pair\"",
					   "conf:5: softgpu = perhaps: expected yes or no",
					   "conf:6: max-sessions: 0: expected a number from 1 to 65536",
					   "conf:8: unknown section [proxy]",
					   "conf:11: grace is set in line 10 already: remove one of both",
					   "conf:15: client: someone mem=9 has a line already",
					   "8 lines of "};

	write_conf("[server]\nlisten\nlisten = 127.0.0.1:x\npair = yes\nsoftgpu = perhaps\nmax-sessions = 0\n[proxy]\nkey = k\n"
		   "[server]\ngrace = 5\ngrace = 5\nkey = a\nkey = b\nclient = someone\nclient = someone mem=9\n");
	is_int(run((char *[]){stubd, "--check-config", "--config", conf, NULL}), 2, "--check-config with bad lines");
	for (unsigned i = 0; i < sizeof(says) / sizeof(*says); i++)
		ok(strstr(read_file(log_path), says[i]), "it says \"%s\"", says[i]);
	is_int(run((char *[]){stubd, "--check-config", "--config", "/nonexistent", NULL}), 2, "--check-config without a file");
	ok(strstr(read_file(log_path), "cannot read /nonexistent"), "is told");
}

static void pair_by_conf(char text[512])
{
	struct rgpu_key key;
	char why[RGPU_WHY_MAX], line[256];

	snprintf(text, 512,
		 "# ours\n[server]\nlisten = 127.0.0.1:0\ndriver = stub ; softgpu = yes\nkey = %s\nstate-dir = %s/state\n",
		 key_path[0], dir);
	write_conf(text);
	is_int(run((char *[]){stubd, "--check-config", "--config", conf, NULL}), 2,
	       "a key that is missing is no good configuration");
	ok(strstr(read_file(log_path), "rgpu-server --pair --key "), "and how to make one is said");
	is_int(run((char *[]){stubd, "--pair", "--config", conf, NULL}), 0, "--pair makes the key that the configuration names");
	is_int(rgpu_key_load(key_path[0], &key, why), 0, "it is one");
	snprintf(line, sizeof(line), "\nrgpu join 127.0.0.1:0#%02x%02x", key.secret[0], key.secret[1]);
	ok(strstr(read_file(log_path), line), "the line for the client has it");
	is_int(run((char *[]){stubd, "--check-config", "--config", conf, NULL}), 0, "now the configuration is good");
}

static int greet(const char *key_file, struct rgpu_ctl **c)
{
	struct rgpu_addr at = {"127.0.0.1", port};
	struct rgpu_auth auth = {.kind = RGPU_AUTH_KEY};
	char why[RGPU_WHY_MAX];
	int err = rgpu_key_load(key_file, &auth.key, why);

	*c = rgpu_ctl_new(&at, &auth, "a test");
	return err ? err : rgpu_ctl_hello(*c, NULL, why);
}

/* Whosever they are. */
static unsigned sessions(struct rgpu_ctl *c)
{
	static _Alignas(8) char buf[RGPU_FRAME_MAX];
	const struct rgpu_stats *s = (const void *)buf;
	const struct rgpu_stats_device *dev = (const void *)(s + 1);
	char why[RGPU_WHY_MAX];
	unsigned n = 0;

	if (rgpu_ctl_stats(c, buf, sizeof(buf), why) < (ssize_t)sizeof(*s))
		return 9999;
	for (unsigned i = 0; i < s->ndevices; i++)
		n += dev[i].sessions;
	return n;
}

/* Connections are taken all the while: refused ones are counted until the reload is over. */
static unsigned refused_while_reloading(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int64_t deadline = rgpu_deadline(WAIT_MS);
	unsigned refused = 0;
	char said[600];
	ssize_t n;

	kill(server, SIGHUP);
	while (rgpu_ms_left(deadline)) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		refused += connect(fd, (struct sockaddr *)&a, sizeof(a)) != 0;
		close(fd);
		n = recv(manager, said, sizeof(said) - 1, MSG_DONTWAIT);
		said[n > 0 ? n : 0] = 0;
		if (strstr(said, "STATUS=Listening"))
			return refused;
	}
	return 9999;
}

/* What parses, but no server could begin with: @line in place of the one of that name. */
static void refused_reload(const char *text, const char *line, const char *says, struct rgpu_ctl *c)
{
	char changed[700], name[32];
	const char *was;

	snprintf(name, sizeof(name), "\n%.*s", (int)strcspn(line, "=") + 1, line);
	was = strstr(text, name);
	if (!was)
		abort();
	snprintf(changed, sizeof(changed), "%.*s\n%s%s", (int)(was - text), text, line, strchr(was + 1, '\n'));
	write_conf(changed);
	kill(server, SIGHUP);
	ok(notified("RELOADING=1\nMONOTONIC_USEC=") && notified("READY=1"), "a reload with \"%s\" ends", line);
	ok(strstr(read_file(log_path), says), "it says \"%s\"", says);
	is_int(sessions(c), 1, "and nothing has changed");
}

static void refused_reloads(const char *text, struct rgpu_ctl *c)
{
	struct rgpu_addr any = {"127.0.0.1", 0};
	char why[RGPU_WHY_MAX], line[64], says[64];
	uint16_t taken = 0;
	int fd = rgpu_addr_listen(&any, &taken, why);

	refused_reload(text, "driver = none", "none: no such driver", c);
	snprintf(line, sizeof(line), "listen = 127.0.0.1:%u", taken);
	snprintf(says, sizeof(says), "cannot listen on 127.0.0.1:%u", taken);
	refused_reload(text, line, says, c);
	close(fd);
}

static void reload(const char *text)
{
	struct rgpu_start start = {.sid = "a session", .epoch = 1, .uid = 1000, .pid = 1, .comm = "a test"};
	struct rgpu_ctl *c, *d;
	struct rgpu_lease lease;
	char why[RGPU_WHY_MAX], changed[700], proc[32];
	const char *at;
	pid_t worker;
	int64_t deadline;

	rgpu_key_create(key_path[1], &(struct rgpu_key){0}, why);
	server = spawn(true, (char *[]){stubd, "--config", conf, NULL});
	ok(notified("READY=1\nSTATUS=Listening on 127.0.0.1:"), "the manager hears when the server listens");
	at = strstr(read_file(log_path), "<5>listening on 127.0.0.1:");
	ok(at, "the journal is told priorities");
	port = at ? atoi(at + strlen("<5>listening on 127.0.0.1:")) : 0;
	ok(notified("WATCHDOG=1"), "the watchdog is fed");

	is_int(greet(key_path[0], &c), 0, "the key of the configuration is taken");
	is_int(rgpu_ctl_start(c, false, &start, NULL, &lease, why), 0, "a session starts");
	at = strstr(read_file(log_path), ", worker ");
	worker = at ? atoi(at + 9) : 0;

	snprintf(changed, sizeof(changed), "%sgrace = never\n", text);
	write_conf(changed);
	kill(server, SIGHUP);
	ok(notified("RELOADING=1\nMONOTONIC_USEC=") && notified("READY=1"), "a reload with a bad line ends");
	ok(strstr(read_file(log_path), "conf:7: grace: never: expected seconds"), "the line is told");
	is_int(sessions(c), 1, "and nothing has changed");
	refused_reloads(text, c);

	snprintf(changed, sizeof(changed),
		 "[server]\nlisten = 127.0.0.1:0\ndriver = stub\nkey = %s\nkey = %s\nstate-dir = %s/state\n", key_path[1],
		 key_path[0], dir);
	write_conf(changed);
	is_int(refused_while_reloading(), 0, "no connection is refused during a reload");
	is_int(greet(key_path[1], &d), 0, "the new key is taken");
	is_int(sessions(d), 1, "the session is still there");
	ok(worker > 0 && !kill(worker, 0), "with the same worker");

	kill(worker, SIGKILL);
	snprintf(proc, sizeof(proc), "/proc/%d", worker);
	deadline = rgpu_deadline(WAIT_MS);
	while (!access(proc, F_OK) && rgpu_ms_left(deadline))
		usleep(5000);
	ok(access(proc, F_OK), "a worker that dies after the reload leaves no zombie");

	memcpy(start.sid, "another session", 15);
	is_int(rgpu_ctl_start(c, false, &start, NULL, &lease, why), 0, "another session starts");
	snprintf(changed, sizeof(changed), "[server]\nlisten = 127.0.0.1:0\ndriver = stub\nkey = %s\nstate-dir = %s/state\n",
		 key_path[1], dir);
	write_conf(changed);
	is_int(refused_while_reloading(), 0, "a key is taken out of the configuration");
	rgpu_ctl_free(c);
	is_int(greet(key_path[0], &c), -EACCES, "it is refused");
	is_int(sessions(d), 0, "and its sessions are over");
	kill(server, SIGTERM);
	ok(notified("STOPPING=1"), "the end is told, too");
	waitpid(server, NULL, 0);
	rgpu_ctl_free(c);
	rgpu_ctl_free(d);
}

int main(int argc, char **argv)
{
	char me[PATH_MAX], text[512], cmd[96];

	(void)argc;
	alarm(240);
	signal(SIGPIPE, SIG_IGN);
	snprintf(me, sizeof(me), "%s", argv[0]);
	snprintf(stubd, sizeof(stubd), "%s/server-stubd", dirname(me));
	snprintf(dir, sizeof(dir), "/tmp/rgpu-XXXXXX");
	if (!mkdtemp(dir))
		return 1;
	snprintf(conf, sizeof(conf), "%s/conf", dir);
	snprintf(log_path, sizeof(log_path), "%s/log", dir);
	snprintf(key_path[0], sizeof(key_path[0]), "%s/key", dir);
	snprintf(key_path[1], sizeof(key_path[1]), "%s/key2", dir);
	manage();
	bad_lines();
	pair_by_conf(text);
	reload(text);
	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", dir);
	(void)!system(cmd);
	return tap_done();
}
