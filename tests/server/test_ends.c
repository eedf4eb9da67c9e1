// SPDX-License-Identifier: MIT
/* What ends, and what goes with it: workers with children, sessions that are being opened, accounts of those that are buried. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/clock.h"
#include "server/clients.h"
#include "tests/server/procs.h"
#include "tests/server/stub.h"
#include "tests/tap.h"

/* Gone, or a zombie: nobody of ours waits for it. */
static bool ends(pid_t pid)
{
	int64_t deadline = rgpu_deadline(PEER_WAIT_MS);
	char path[64];
	char *state;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	do {
		state = strrchr(read_file(path), ')');
		if (!state || state[2] == 'Z')
			return true;
		usleep(1000);
	} while (rgpu_ms_left(deadline));
	return false;
}

/* The server's workers, also those whose session is not there yet. */
static unsigned children(pid_t pid[16])
{
	char path[160], *at;
	unsigned n = 0;

	/* Any thread may have started one. */
	snprintf(path, sizeof(path), "cat /proc/%d/task/*/children >'%s/children'", server, dir);
	(void)!system(path);
	snprintf(path, sizeof(path), "%s/children", dir);
	for (at = strtok(read_file(path), " "); at && n < 16; at = strtok(NULL, " "))
		pid[n++] = atoi(at);
	return n;
}

static bool all_end(const pid_t *pid, unsigned n)
{
	bool all = true;

	while (n)
		all &= ends(pid[--n]);
	return all;
}

static int end(struct client *c)
{
	struct rgpu_join j = {0};

	memcpy(j.sid, c->start.sid, sizeof(j.sid));
	return request(c, RGPU_C_END, &j, sizeof(j));
}

/* START with words for the stub. Sends it only: what comes of it is for the caller. */
static void begin_start(struct client *c, const char *words)
{
	uint8_t buf[sizeof(c->start) + 16];

	c->start.data_len = strlen(words);
	memcpy(buf, &c->start, sizeof(c->start));
	memcpy(buf + sizeof(c->start), words, c->start.data_len);
	rgpu_link_send_frame(c->link, RGPU_C_START, 0, buf, sizeof(c->start) + c->start.data_len, PEER_WAIT_MS);
	c->start.data_len = 0;
}

static pid_t child_of(struct client *c)
{
	struct peer_reply rep;
	pid_t child = 0;

	if (!peer_rec(&c->p, 0, .op = STUB_FORK, .fence = true) && peer_reply(&c->p, &rep, NULL))
		memcpy(&child, rep.body, sizeof(child));
	return child;
}

/* It has all that its parent had open: the connection, and the way to the listener. */
static void forked_child(bool adopted)
{
	struct client *c = whole(false);
	pid_t worker = last_worker(), child = child_of(c);
	uint16_t at = port;

	ok(child > 1 && getpgid(child) == worker, "a worker has forked%s",
	   adopted ? ", and its listener is another one now" : "");
	if (adopted) {
		server_down(SIGUSR1);
		server_up(at, "16");
		rgpu_link_free(c->link);
		control_as(c, &key);
	}
	kill(worker, SIGKILL);
	ok(ends(child), "the worker alone is killed: its child goes, too");
	ok(!peer_until_end(&c->p), "and with it the connection");
	is_int(start(c, RGPU_C_RESUME), RGPU_C_ERROR, "the session is over");
	ok(c->error.err == ESTALE, "and says so: %s", c->error.text);
	client_free(c);
}

/* SIGTERM while a driver makes up its mind about a session. */
static void stop_amid_open(void)
{
	struct client *c = whole(false), *slow = client_new();
	struct rgpu_frame h;
	pid_t worker[16];
	unsigned n;

	control_as(slow, &key);
	begin_start(slow, "hang");
	do
		n = children(worker);
	while (n < 2);
	kill(server, SIGTERM);
	ok(peer_until_end(&c->p) && c->p.bye.err == ESHUTDOWN, "stopped amid an open: the others are told at once");
	ok(rgpu_link_recv_frame(slow->link, &h, slow->answer, sizeof(slow->answer), PEER_WAIT_MS) < 0 || h.type == RGPU_C_ERROR,
	   "who waits for the open is let go");
	is_int(server_down(0), 0, "the server ends");
	ok(all_end(worker, n), "and leaves no worker");
	client_free(c);
	client_free(slow);
}

/* A listener is killed while a worker loads its driver. Its client asks the next one. */
static void killed_amid_load(void)
{
	struct client *c = client_new();
	pid_t worker[16];
	uint16_t at;
	unsigned n;

	setenv("STUB_LOAD_MS", "700", 1);
	server_up(0, "16");
	at = port;
	control_as(c, &key);
	begin_start(c, "");
	do
		n = children(worker);
	while (!n);
	server_down(SIGKILL);
	unsetenv("STUB_LOAD_MS");
	server_up(at, "16");
	rgpu_link_free(c->link);
	is_int(control_as(c, &key), 0, "a listener is killed amid a START, and the next is there");
	ok(all_end(worker, n), "whose worker has ended: nobody waits for it");
	is_int(start(c, RGPU_C_START), RGPU_C_STARTED, "START again has its session: %s", c->error.text);
	is_int(data_with(c, c->started.token, c->started.lease), 0, "and a worker");
	attach(c);
	is_int(count(c), 1, "of its own");
	is_int(end(c), RGPU_C_OK, "END");
	client_free(c);
	server_down(SIGTERM);
}

static bool has_account(const char *client)
{
	char path[160];
	bool found = false;
	int fd;

	snprintf(path, sizeof(path), "%s/memory", state_path);
	fd = open(path, O_RDONLY);
	for (char buf[CLIENT_NAME_MAX]; !found && read(fd, buf, sizeof(buf)) == sizeof(buf);)
		found = !strcmp(buf, client);
	close(fd);
	return found;
}

/* A session ends slowly while another one begins: each has an account of its own. */
static void accounts(void)
{
	struct client *old, *fresh = client_new();
	struct rgpu_join j = {0};
	struct rgpu_frame h;
	pid_t worker;

	server_up(0, "1");
	old = whole(false);
	worker = last_worker();
	control_as(fresh, &key2);
	kill(worker, SIGSTOP);
	memcpy(j.sid, old->start.sid, sizeof(j.sid));
	rgpu_link_send_frame(old->link, RGPU_C_END, 0, &j, sizeof(j), PEER_WAIT_MS);
	while (start(fresh, RGPU_C_START) != RGPU_C_STARTED)
		usleep(1000);
	ok(has_account(key2.id), "a session has an account of its client's memory");
	rgpu_link_recv_frame(old->link, &h, old->answer, sizeof(old->answer), PEER_WAIT_MS);
	is_int(h.type, RGPU_C_OK, "another one ends, whose worker took its time");
	ok(!has_account(key.id), "its account is cleared");
	ok(has_account(key2.id), "and no other");
	client_free(old);
	client_free(fresh);
	server_down(SIGTERM);
}

int main(int argc, char **argv)
{
	char why[RGPU_WHY_MAX];

	(void)argc;
	if (!procs_begin(argv[0]))
		return 1;
	run((char *[]){stubd, "--pair", "--key", key_path, NULL}, log_path);
	run((char *[]){stubd, "--pair", "--key", key2_path, NULL}, log_path);
	rgpu_key_load(key_path, &key, why);
	rgpu_key_load(key2_path, &key2, why);
	accounts();
	killed_amid_load();
	server_up(0, "16");
	forked_child(false);
	forked_child(true);
	stop_amid_open();
	procs_end();
	return tap_done();
}
