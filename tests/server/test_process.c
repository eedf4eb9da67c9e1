// SPDX-License-Identifier: MIT
/* The server as processes, with a stub behind it: keys, versions, sessions, leases, strangers, crashes, restarts. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/clock.h"
#include "lib/key.h"
#include "tests/server/procs.h"
#include "tests/server/stub.h"
#include "tests/tap.h"

static void command_line(void)
{
	char out[160], why[RGPU_WHY_MAX], host[128] = "", line[160];
	struct stat st;

	snprintf(out, sizeof(out), "%s/out", dir);
	is_int(run((char *[]){stubd, "--pair", "--key", key_path, NULL}, out), 0, "--pair makes a key");
	ok(!stat(key_path, &st) && (st.st_mode & 0777) == 0600, "for its owner alone");
	ok(strstr(read_file(out), "\nrgpu join 127.0.0.1:7478#") &&
		   strstr(read_file(out), "rgpu run --server 127.0.0.1:7478 --key "),
	   "and says how to use it");
	rgpu_key_load(key_path, &key, why);
	unlink(out);
	is_int(run((char *[]){stubd, "--pair", "--key", key_path, NULL}, out), 0, "--pair again");
	ok(strstr(read_file(out), key.id), "leaves the key as it is");
	unlink(out);
	run((char *[]){stubd, "--pair", "--key", key_path, "--listen", "192.0.2.7:99", NULL}, out);
	ok(strstr(read_file(out), "\nrgpu join 192.0.2.7:99#"), "the line has the address on which the server listens");
	unlink(out);
	gethostname(host, sizeof(host) - 1);
	snprintf(line, sizeof(line), "\nrgpu join %s:99#", host);
	run((char *[]){stubd, "--pair", "--key", key_path, "--listen", "0.0.0.0:99", NULL}, out);
	ok(strstr(read_file(out), line), "and this machine's name where that is every address");
	unlink(out);
	run((char *[]){stubd, "--pair", "--key", key2_path, NULL}, out);
	rgpu_key_load(key2_path, &key2, why);
	unlink(out);
	is_int(run((char *[]){stubd, "--key", key_path, "--listen", "127.0.0.1:7499", NULL}, out), 1,
	       "without a driver there is no server");
	ok(strstr(read_file(out), "libcuda.so.1"), "it names the genuine driver that it wanted");
	ok(strstr(read_file(out), "rgpu-server --softgpu --listen 127.0.0.1:7499 --key "),
	   "and prints the exact line with --softgpu");
	unlink(out);
	is_int(run((char *[]){stubd, "--driver", "stub", NULL}, out), 2, "without a key it is wrong usage");
	ok(strstr(read_file(out), "--pair"), "and says how to make one");
	unlink(out);
	is_int(run((char *[]){stubd, "--driver", "stub", "--key", "nowhere/key", NULL}, out), 1,
	       "a missing key file is an error");
	unlink(out);
}

static void strangers(void)
{
	struct rgpu_key wrong = key;
	struct client *c = client_new(), *d = client_new();

	wrong.secret[3] ^= 1;
	is_int(control_as(c, &wrong), -EACCES, "a wrong key: %s", rgpu_link_why(c->link));
	rgpu_link_free(c->link);
	strcpy(wrong.identity, RGPU_PSK_IDENTITY "/00000000");
	is_int(control_as(c, &wrong), -EACCES, "an unknown key");
	rgpu_link_free(c->link);

	c->link = rgpu_link_client(dial(), key.identity, key.secret);
	rgpu_link_handshake_wait(c->link, PEER_WAIT_MS);
	is_int(hello(c, 9), RGPU_C_ERROR, "another version is refused");
	ok(c->error.err == EPROTO && strstr(c->error.text, "9.7") && strstr(c->error.text, "1.0"), "naming both: %s",
	   c->error.text);
	rgpu_link_free(c->link);
	c->link = rgpu_link_client(dial(), key.identity, key.secret);
	rgpu_link_handshake_wait(c->link, PEER_WAIT_MS);
	is_int(hello(c, 0), RGPU_C_ERROR, "an older one, too");
	ok(c->error.err == EPROTO && strstr(c->error.text, "0.7") && strstr(c->error.text, "1.0"), "naming both: %s",
	   c->error.text);
	rgpu_link_free(c->link);

	c->link = rgpu_link_client(dial(), key.identity, key.secret);
	rgpu_link_handshake_wait(c->link, PEER_WAIT_MS);
	is_int(request(c, RGPU_C_DEVICES, NULL, 0), RGPU_C_ERROR, "nothing is answered before HELLO: %s", c->error.text);
	client_free(c);

	c = client_new();
	control_as(c, &key);
	c->start.flags = 4;
	is_int(start(c, RGPU_C_START), RGPU_C_ERROR, "flags of tomorrow are refused: %s", c->error.text);
	client_free(c);

	is_int(control_as(d, &key), 0, "the right key is let in");
	ok(!memcmp(d->answer + offsetof(struct rgpu_welcome, driver), "stub", 5), "WELCOME names the driver");
	is_int(((struct rgpu_welcome *)d->answer)->ndevices, 2, "and how many devices");
	is_int(request(d, RGPU_C_DEVICES, NULL, 0), RGPU_C_DEVICE_LIST, "DEVICES is answered");
	is_int(d->len, 2 * (sizeof(struct rgpu_device_entry) + 8), "with both");
	is_str(((struct rgpu_device_entry *)d->answer)->name, "Stub GPU 0", "by name");
	is_int(request(d, 77, NULL, 0), RGPU_C_ERROR, "an unknown request: %s", d->error.text);
	client_free(d);
}

static void sessions_and_leases(void)
{
	struct client *c = whole(false), *d = client_new();
	struct rgpu_join j = {.device = 1, .index = 1};
	struct rgpu_started first = c->started;
	struct rgpu_stats_session *ss;
	pid_t worker;

	is_int(count(c), 1, "a call runs in the worker");
	is_int(first.lease, 1, "the first lease is 1");
	worker = last_worker();
	ok(worker > 1 && !kill(worker, 0), "which is a process");
	is_int(getpgid(worker), worker, "and its own group");

	is_int(start(c, RGPU_C_START), RGPU_C_STARTED, "START again, as after a lost answer");
	is_int(c->started.lease, 2, "is the same session with the next lease");
	ok(!peer_until_end(&c->p), "the connection of the older lease is cut");
	ok(data_with(c, first.token, 1) != 0, "the older token opens nothing");
	ok(data_with(c, c->started.token, 1) != 0, "nor a lease that it is not for");
	is_int(data_with(c, c->started.token, 2), 0, "the new one does");
	attach(c);
	is_int(count(c), 2, "and the session goes on");
	{
		struct rgpu_link *now = c->p.link;

		c->p.link = NULL;
		ok(data_with(c, c->started.token, 2) != 0, "once");
		peer_drop(&c->p);
		c->p.link = now;
	}
	is_int(count(c), 3, "the living connection does not care");

	memcpy(j.sid, c->start.sid, 16);
	is_int(request(c, RGPU_C_JOIN, &j, sizeof(j)), RGPU_C_OK, "a second device joins");
	is_int(request(c, RGPU_C_JOIN, &j, sizeof(j)), RGPU_C_OK, "JOIN may be said again");
	j.index = 7;
	is_int(request(c, RGPU_C_JOIN, &j, sizeof(j)), RGPU_C_ERROR, "a device cannot be number 7: %s", c->error.text);
	j.device = 9;
	is_int(request(c, RGPU_C_JOIN, &j, sizeof(j)), RGPU_C_ERROR, "nor can there be a device 9: %s", c->error.text);

	is_int(sessions(c), 2, "STATS: an entry per session and device");
	ss = (struct rgpu_stats_session *)(c->answer + sizeof(struct rgpu_stats) + 2 * sizeof(struct rgpu_stats_device));
	ok(ss[0].uid == 1000 && ss[0].pid == c->start.pid && !strcmp(ss[0].comm, "a test"),
	   "with uid, pid and name of the client");
	is_int(ss[0].mem_used + ss[1].mem_used, 4096 + 8192, "and its memory");
	is_int(ss[0].records, 3, "and its records");

	control_as(d, &key);
	memcpy(d->start.sid, c->start.sid, 16);
	d->start.uid = 1001;
	is_int(start(d, RGPU_C_RESUME), RGPU_C_ERROR, "RESUME by another user");
	is_int(d->error.err, EACCES, "is EACCES: %s", d->error.text);
	d->start.uid = 1000;
	d->start.epoch = 0;
	is_int(start(d, RGPU_C_RESUME), RGPU_C_ERROR, "RESUME by an older proxy: %s", d->error.text);
	d->start.epoch = 3;
	is_int(start(d, RGPU_C_RESUME), RGPU_C_STARTED, "RESUME by the next proxy, over another control connection");
	is_int(d->started.lease, 3, "has the next lease");
	c->start.epoch = 2;
	is_int(start(c, RGPU_C_RESUME), RGPU_C_ERROR, "after which the older one is too late: %s", c->error.text);
	rgpu_link_free(d->link);
	d->link = NULL;
	control_as(d, &key2);
	is_int(start(d, RGPU_C_RESUME), RGPU_C_ERROR, "RESUME with another key: %s", d->error.text);
	is_int(sessions(d), 0, "whose STATS do not show the session");
	ok(((struct rgpu_stats_device *)(d->answer + sizeof(struct rgpu_stats)))->sessions == 1, "but that the device has one");
	is_int(request(d, RGPU_C_END, &(struct rgpu_join){.sid = "session 1"}, sizeof(struct rgpu_join)), RGPU_C_OK,
	       "END of what never was is no error");
	memcpy(j.sid, c->start.sid, 16);
	is_int(request(d, RGPU_C_END, &j, sizeof(j)), RGPU_C_ERROR, "END with another key: %s", d->error.text);

	is_int(request(c, RGPU_C_END, &j, sizeof(j)), RGPU_C_OK, "END");
	ok(kill(worker, 0) && errno == ESRCH, "the worker is gone when it is answered");
	is_int(request(c, RGPU_C_END, &j, sizeof(j)), RGPU_C_OK, "END may be said again");
	is_int(start(c, RGPU_C_RESUME), RGPU_C_ERROR, "RESUME of an ended session");
	ok(c->error.err == ESTALE && strstr(c->error.text, "the client program ended"), "is ESTALE and says so: %s",
	   c->error.text);
	memcpy(d->start.comm, "a\033[2J\ntest", 10);
	memcpy(d->start.sid, "strange words", 14);
	rgpu_link_free(d->link);
	d->link = NULL;
	control_as(d, &key);
	is_int(start(d, RGPU_C_START), RGPU_C_STARTED, "a program with a strange name");
	ok(log_has("comm \"a?[2J?test\"", 1), "cannot write on our terminal");
	memcpy(j.sid, d->start.sid, 16);
	request(d, RGPU_C_END, &j, sizeof(j));
	ok(log_has("session start: sid", 1) && log_has("session end: sid", 1), "start and end are in the log");
	client_free(c);
	client_free(d);
}

static void crashes(void)
{
	struct client *c = whole(false), *d = whole(false);

	is_int(count(d), 1, "a session beside it");
	peer_rec(&c->p, 0, .op = STUB_CRASH);
	ok(!peer_until_end(&c->p), "a worker that crashes takes its connection with it");
	log_has("killed by signal 9", 1);
	is_int(start(c, RGPU_C_RESUME), RGPU_C_ERROR, "RESUME then");
	ok(c->error.err == ESTALE && strstr(c->error.text, "signal 9"), "is ESTALE with the cause: %s", c->error.text);
	is_int(count(d), 2, "the other session is untouched");
	is_int(sessions(d), 1, "and the only one left");

	/* Refused by the API code. */
	{
		uint8_t buf[sizeof(c->start) + 6];

		c->start.sid[15] = 'x';
		c->start.data_len = 6;
		memcpy(buf, &c->start, sizeof(c->start));
		memcpy(buf + sizeof(c->start), "refuse", 6);
		is_int(request(c, RGPU_C_START, buf, sizeof(buf)), RGPU_C_ERROR, "a session that the driver refuses");
		ok(strstr(c->error.text, "the stub refuses"), "comes back with its words: %s", c->error.text);
	}
	is_int(sessions(d), 1, "and leaves none");
	c->start.data_len = 0;
	c->start.device = 5;
	is_int(start(c, RGPU_C_START), RGPU_C_ERROR, "a device that is not there: %s", c->error.text);
	client_free(c);
	client_free(d);
}

static void fin(void)
{
	struct client *c, *d, *look = client_new();

	control_as(look, &key);
	/* The clients of earlier tests were proxies without END: their sessions wait for them. */
	c = whole(true);
	d = whole(false);
	count(c);
	count(d);
	{
		unsigned before = sessions(look);

		peer_drop(&c->p);
		peer_drop(&d->p);
		ok(sessions_become(look, before - 1), "FIN of a direct client ends its session");
		ok(log_has("did not come back within 2.0 s", 1), "after 2 s");
		is_int(start(d, RGPU_C_RESUME), RGPU_C_STARTED, "FIN of a proxy does not");
	}
	client_free(c);
	client_free(d);
	client_free(look);
}

static void hostile(void)
{
	struct client *c = whole(false), *bad = whole(false), *late = client_new();
	static const uint8_t junk[64] = "GET / HTTP/1.1\r\nHost: somewhere\r\n\r\n";
	static const uint8_t half_hello[] = {0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3};
	struct rgpu_preface pre = {.magic = RGPU_PREFACE_MAGIC, .lease = 1};
	int flood[400], fd, n;
	uint8_t byte;

	is_int(count(c), 1, "a session among hostile ones");
	fd = dial();
	(void)!write(fd, junk, sizeof(junk));
	is_int(read(fd, &byte, 1) <= 0, 1, "what speaks no TLS is cut off");
	close(fd);
	fd = dial();
	(void)!write(fd, &pre, sizeof(pre));
	is_int(read(fd, &byte, 1) <= 0, 1, "so is an invented token");
	close(fd);
	memcpy(pre.magic, "RGPUother", 8);
	fd = dial();
	(void)!write(fd, &pre, sizeof(pre));
	is_int(read(fd, &byte, 1) <= 0, 1, "and a preface of something else");
	close(fd);
	for (n = 0; n < 400; n++) {
		flood[n] = dial();
		if (n % 3 == 0)
			(void)!write(flood[n], half_hello, sizeof(half_hello));
		else if (n % 3 == 1)
			(void)!write(flood[n], "RGPU", 4);
	}
	is_int(count(c), 2, "400 connections that say nothing useful");
	is_int(control_as(late, &key), 0, "do not keep a client out");
	for (n = 0; n < 400; n++)
		close(flood[n]);

	{
		struct rgpu_frame huge = {.len = 0x7fffffff, .type = RGPU_D_RECORDS};

		rgpu_link_write(bad->p.link, &huge, sizeof(huge));
		ok(peer_until_end(&bad->p) && bad->p.bye.err == EPROTO, "a forged length ends its own session: %s",
		   bad->p.bye.text);
	}
	log_has("broken frame", 1);
	is_int(start(bad, RGPU_C_RESUME), RGPU_C_ERROR, "for good: %s", bad->error.text);
	is_int(count(c), 3, "and no other");

	/* Garbage inside an authenticated control connection. */
	is_int(request(late, RGPU_C_START, junk, sizeof(junk)), RGPU_C_ERROR, "a crooked START: %s", late->error.text);
	is_int(sessions(late), 9999, "ends that control connection");
	is_int(count(c), 4, "and nothing else");
	client_free(c);
	client_free(bad);
	client_free(late);
}

static void limits(void)
{
	struct client *c = client_new(), *a = client_new();

	control_as(a, &key);
	for (int i = 0; i < 64; i++) {
		a->start.sid[0] = 'A' + i;
		if (start(a, RGPU_C_START) != RGPU_C_STARTED)
			break;
	}
	ok(a->error.err == EUSERS && strstr(a->error.text, "--max-sessions"), "too many sessions: %s", a->error.text);
	client_free(c);
	client_free(a);
}

/* Gone, or a zombie: nobody of ours waits for it. */
static bool ends(pid_t pid)
{
	int64_t deadline = rgpu_deadline(PEER_WAIT_MS);

	while (!kill(pid, 0)) {
		char stat[64], *text;

		snprintf(stat, sizeof(stat), "/proc/%d/stat", pid);
		text = strrchr(read_file(stat), ')');
		if (!text || text[2] == 'Z')
			return true;
		if (!rgpu_ms_left(deadline))
			return false;
		usleep(1000);
	}
	return errno == ESRCH;
}

/* A call that never returns, in a worker whose driver has started another process. */
static void wedged(int sig, const char *what)
{
	struct client *c = whole(false);
	pid_t worker = last_worker();
	struct rgpu_join j = {0};
	struct peer_reply rep;
	pid_t child = 0;

	if (!peer_rec(&c->p, 0, .op = STUB_CHILD, .fence = true) && peer_reply(&c->p, &rep, NULL))
		memcpy(&child, rep.body, sizeof(child));
	ok(child > 1 && getpgid(child) == worker, "the worker has a child in its group");
	peer_rec(&c->p, 0, .op = STUB_GATE, .fence = true);
	memcpy(j.sid, c->start.sid, 16);
	if (sig)
		kill(worker, sig);
	else
		is_int(request(c, RGPU_C_END, &j, sizeof(j)), RGPU_C_OK, "END while a call hangs");
	ok(ends(worker), "%s: the worker dies", what);
	ok(ends(child), "and so does its child");
	client_free(c);
}

static void restart(int sig, const char *what)
{
	struct client *c = whole(false);
	uint16_t at = port;
	pid_t worker = last_worker();
	int v;

	count(c);
	count(c);
	server_down(sig);
	is_int(count(c), 3, "%s: the session goes on without the listener", what);
	server_up(at, "16");
	ok(log_has("session adopted", 1), "the next listener finds the worker");
	rgpu_link_free(c->link);
	c->link = NULL;
	is_int(control_as(c, &key), 0, "the client comes back");
	is_int(sessions(c), 1, "its session is in STATS");
	c->start.uid = 7;
	is_int(start(c, RGPU_C_RESUME), RGPU_C_ERROR, "others cannot take it: %s", c->error.text);
	c->start.uid = 1000;
	is_int(start(c, RGPU_C_RESUME), RGPU_C_STARTED, "it can");
	is_int(data_with(c, c->started.token, c->started.lease), 0, "with a new connection");
	attach(c);
	v = count(c);
	is_int(v, 4, "and finds the same worker");
	{
		struct rgpu_join j = {0};

		memcpy(j.sid, c->start.sid, 16);
		is_int(request(c, RGPU_C_END, &j, sizeof(j)), RGPU_C_OK, "END reaches an adopted worker");
	}
	ok(ends(worker), "it is gone");
	client_free(c);
}

/* A server that may have fewer sessions than it finds looks after all of them. */
static void fewer(void)
{
	struct client *c[3], *look = client_new();
	uint16_t at = port;

	for (unsigned i = 0; i < 3; i++)
		c[i] = whole(false);
	server_down(SIGUSR1);
	server_up(at, "1");
	ok(log_has("session adopted", 3), "a server that may have one session adopts three");
	control_as(look, &key);
	is_int(sessions(look), 3, "STATS shows all of them");
	for (unsigned i = 0; i < 3; i++)
		peer_rec(&c[i]->p, 0, .op = STUB_CRASH);
	ok(log_has("session end", 3), "and the end of each is seen");
	is_int(start(look, RGPU_C_START), RGPU_C_STARTED, "then there is room for another");
	for (unsigned i = 0; i < 3; i++)
		client_free(c[i]);
	client_free(look);
	server_down(SIGTERM);
	server_up(0, "16");
}

static void stop(void)
{
	struct client *c = whole(false), *d = whole(true);
	pid_t worker = last_worker();
	char out[160];

	count(c);
	count(d);
	snprintf(out, sizeof(out), "%s/out", dir);
	is_int(run((char *[]){stubd, "--driver", "stub", "--listen", "127.0.0.1:0", "--key", key_path, "--state-dir", state_path,
			      NULL},
		   out),
	       1, "a second server in the same state directory is refused");
	ok(strstr(read_file(out), "another rgpu-server"), "it says so");
	unlink(out);
	is_int(server_down(SIGTERM), 0, "SIGTERM ends the server");
	ok(peer_until_end(&c->p) && c->p.bye.err == ESHUTDOWN, "its clients are told: %s", c->p.bye.text);
	ok(peer_until_end(&d->p), "all of them");
	ok(kill(worker, 0) && errno == ESRCH, "and no worker is left");
	client_free(c);
	client_free(d);
}

/* Those of one address make room for each other, also where a socket for both kinds of addresses takes them. */
static void crowd(const char *host)
{
	int first, flood[100];
	uint8_t byte;

	server_at(host, 0, "1");
	first = dial_from(INADDR_LOOPBACK + 1);
	for (unsigned i = 0; i < 100; i++)
		flood[i] = dial();
	is_int(read(flood[0], &byte, 1), 0, "%s: of a hundred strangers at one address the first has to go", host);
	ok(recv(first, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN, "and none at another");
	for (unsigned i = 0; i < 100; i++)
		close(flood[i]);
	close(first);
	server_down(SIGTERM);
}

int main(int argc, char **argv)
{
	(void)argc;
	if (!procs_begin(argv[0]))
		return 1;
	command_line();
	server_up(0, "16");
	strangers();
	sessions_and_leases();
	crashes();
	wedged(0, "END");
	wedged(SIGKILL, "kill -9 of it alone");
	fin();
	hostile();
	limits();
	server_down(SIGTERM);
	server_up(0, "16");
	restart(SIGUSR1, "SIGUSR1");
	restart(SIGKILL, "kill -9");
	fewer();
	stop();
	crowd("127.0.0.1");
	crowd("[::]");
	procs_end();
	return tap_done();
}
