// SPDX-License-Identifier: MIT
/* A server with the stub behind it as a process, its log, and clients of it. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/clock.h"
#include "lib/key.h"
#include "tests/server/procs.h"
#include "tests/server/stub.h"

char dir[64], stubd[PATH_MAX], log_path[128], key_path[128], key2_path[128], state_path[128];
struct rgpu_key key, key2;
pid_t server;
uint16_t port;

char *read_file(const char *path)
{
	static char buf[1 << 20];
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? 0 : read(fd, buf, sizeof(buf) - 1);

	buf[n > 0 ? n : 0] = 0;
	if (fd >= 0)
		close(fd);
	return buf;
}

pid_t spawn(char *const argv[], const char *log)
{
	pid_t pid = fork();

	if (!pid) {
		int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);

		dup2(fd, 1);
		dup2(fd, 2);
		close(fd);
		execv(argv[0], argv);
		_exit(127);
	}
	return pid;
}

int run(char *const argv[], const char *log)
{
	pid_t pid = spawn(argv, log);
	int status;

	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

bool log_has(const char *text, int times)
{
	int64_t deadline = rgpu_deadline(PEER_WAIT_MS);

	do {
		const char *at = read_file(log_path);
		int n = 0;

		while ((at = strstr(at, text))) {
			at++;
			n++;
		}
		if (n >= times)
			return true;
		usleep(2000);
	} while (rgpu_ms_left(deadline));
	return false;
}

void server_at(const char *host, uint16_t at, const char *max)
{
	char listen[32], on[64];
	const char *l;

	snprintf(listen, sizeof(listen), "%s:%u", host, at);
	snprintf(on, sizeof(on), "listening on %s:", host);
	truncate(log_path, 0);
	server = spawn((char *[]){stubd, "--driver", "stub", "--listen", listen, "--key", key_path, "--key", key2_path,
				  "--state-dir", state_path, "--max-sessions", (char *)max, "--drain", "0", "--verbose", NULL},
		       log_path);
	if (!log_has("listening on", 1)) {
		printf("Bail out! the server did not start: %s\n", read_file(log_path));
		exit(1);
	}
	l = strstr(read_file(log_path), on);
	port = atoi(l + strlen(on));
}

void server_up(uint16_t at, const char *max)
{
	server_at("127.0.0.1", at, max);
}

int server_down(int sig)
{
	int status;

	kill(server, sig);
	waitpid(server, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int dial_from(uint32_t host)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(host)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (bind(fd, (struct sockaddr *)&from, sizeof(from)) || connect(fd, (struct sockaddr *)&a, sizeof(a))) {
		close(fd);
		return -1;
	}
	return fd;
}

int dial(void)
{
	return dial_from(INADDR_ANY);
}

int request(struct client *c, uint16_t type, const void *buf, size_t len)
{
	struct rgpu_frame h;

	if (rgpu_link_send_frame(c->link, type, 0, buf, len, PEER_WAIT_MS))
		return -1;
	c->len = rgpu_link_recv_frame(c->link, &h, c->answer, sizeof(c->answer), PEER_WAIT_MS);
	if (c->len < 0)
		return -1;
	if (h.type == RGPU_C_ERROR)
		memcpy(&c->error, c->answer, sizeof(c->error));
	if (h.type == RGPU_C_STARTED)
		memcpy(&c->started, c->answer, sizeof(c->started));
	return h.type;
}

int hello(struct client *c, uint16_t major)
{
	struct rgpu_hello h = {.magic = RGPU_MAGIC, .major = major, .minor = 7, .agent = "a test 9.9"};

	return request(c, RGPU_C_HELLO, &h, sizeof(h));
}

int control_as(struct client *c, const struct rgpu_key *k)
{
	int fd = dial(), err;

	if (fd < 0)
		return -ECONNREFUSED;
	c->link = rgpu_link_client(fd, k->identity, k->secret);
	err = rgpu_link_handshake_wait(c->link, PEER_WAIT_MS);
	if (!err && hello(c, RGPU_WIRE_MAJOR) != RGPU_C_WELCOME)
		err = -EPROTO;
	return err;
}

struct client *client_new(void)
{
	static unsigned count;
	struct client *c = calloc(1, sizeof(*c));

	c->start = (struct rgpu_start){.epoch = 1, .uid = 1000, .pid = 4000 + count, .comm = "a test"};
	snprintf((char *)c->start.sid, sizeof(c->start.sid), "session %u", ++count);
	return c;
}

void client_free(struct client *c)
{
	peer_drop(&c->p);
	rgpu_link_free(c->link);
	free(c->p.out);
	for (unsigned i = 0; i < RGPU_CHANNELS_MAX; i++)
		free(c->p.lane[i].bo);
	free(c);
}

int data_with(struct client *c, const uint8_t token[16], uint32_t lease)
{
	struct rgpu_preface pre = {.magic = RGPU_PREFACE_MAGIC, .lease = lease};
	uint8_t ctx[20], psk[RGPU_KEY_LEN];
	int fd = dial(), err;

	memcpy(pre.token, token, 16);
	memcpy(ctx, c->start.sid, 16);
	memcpy(ctx + 16, &lease, 4);
	rgpu_link_export(c->link, RGPU_DATA_LABEL, ctx, sizeof(ctx), psk, sizeof(psk));
	if (fd < 0 || write(fd, &pre, sizeof(pre)) != sizeof(pre))
		return -ECONNREFUSED;
	peer_drop(&c->p);
	c->p.link = rgpu_link_client(fd, RGPU_DATA_IDENTITY, psk);
	err = rgpu_link_handshake_wait(c->p.link, PEER_WAIT_MS);
	return err;
}

void attach(struct client *c)
{
	uint32_t ch[RGPU_CHANNELS_MAX], n = 0;

	for (unsigned i = 0; i < RGPU_CHANNELS_MAX; i++)
		if (c->p.lane[i].seq)
			ch[n++] = i;
	peer_attach(&c->p, ch, n);
}

int start(struct client *c, uint16_t type)
{
	return request(c, type, &c->start, sizeof(c->start));
}

struct client *whole(bool direct)
{
	struct client *c = client_new();
	int err = control_as(c, &key);

	c->start.flags = direct ? RGPU_START_DIRECT : 0;
	if (err || start(c, RGPU_C_START) != RGPU_C_STARTED || data_with(c, c->started.token, c->started.lease)) {
		printf("Bail out! no session: %d %s\n", err, c->error.text);
		exit(1);
	}
	attach(c);
	return c;
}

int count(struct client *c)
{
	struct peer_reply rep;
	int v;

	if (peer_rec(&c->p, 0, .op = STUB_COUNT, .fence = true) || !peer_reply(&c->p, &rep, NULL))
		return -1;
	memcpy(&v, rep.body, 4);
	return v;
}

unsigned sessions(struct client *c)
{
	if (request(c, RGPU_C_STATS, NULL, 0) != RGPU_C_STATS_LIST)
		return 9999;
	return ((struct rgpu_stats *)c->answer)->nsessions;
}

bool sessions_become(struct client *c, unsigned n)
{
	int64_t deadline = rgpu_deadline(PEER_WAIT_MS);

	while (sessions(c) != n && rgpu_ms_left(deadline))
		usleep(10000);
	return sessions(c) == n;
}

pid_t last_worker(void)
{
	char *at = read_file(log_path), *w = NULL;

	while ((at = strstr(at, ", worker ")))
		w = at += 9;
	return w ? atoi(w) : 0;
}

bool procs_begin(const char *argv0)
{
	char me[PATH_MAX];

	alarm(240);
	signal(SIGPIPE, SIG_IGN);
	snprintf(me, sizeof(me), "%s", argv0);
	snprintf(stubd, sizeof(stubd), "%s/server-stubd", dirname(me));
	snprintf(dir, sizeof(dir), "%s/rgpu-XXXXXX",
		 getenv("TMPDIR") && strlen(getenv("TMPDIR")) < 30 ? getenv("TMPDIR") : "/tmp");
	if (!mkdtemp(dir))
		return false;
	snprintf(log_path, sizeof(log_path), "%s/log", dir);
	snprintf(key_path, sizeof(key_path), "%s/key", dir);
	snprintf(key2_path, sizeof(key2_path), "%s/key2", dir);
	snprintf(state_path, sizeof(state_path), "%s/state", dir);
	return true;
}

void procs_end(void)
{
	char cmd[160];

	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", dir);
	(void)!system(cmd);
}
