// SPDX-License-Identifier: MIT
/* Workers that were taken over, and what a listener that adopts them believes. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "server/wmsg.h"
#include "tests/server/procs.h"
#include "tests/tap.h"

/* What a worker that was taken over may do: it has its socket, and says what it likes. */
enum lie { LIE_PID, LIE_TENANT, LIE_CHATTER };

static void chatter(int sock, struct wmsg *m)
{
	/* So that never nothing waits. */
	for (int i = 0; i < 3; i++)
		if (!fork())
			break;
	for (m->type = W_RESULT, m->id = 77;; m->err = 0)
		if (wmsg_send(sock, m, -1) == -EPIPE)
			return;
}

/* In a process of its own, as a worker is. Never returns. */
static void lying_worker(int listening, const struct wmsg_ident *who, enum lie lie)
{
	static struct wmsg m;
	int sock = accept(listening, NULL, NULL), fd;

	for (;;) {
		if (wmsg_recv(sock, &m, &fd, -1))
			_exit(0);
		if (fd >= 0)
			close(fd);
		if (m.type == W_LINK)
			continue;
		if (m.type == W_END)
			_exit(0);
		if (m.type == W_STATS && lie == LIE_CHATTER)
			chatter(sock, &m);
		m.ident = *who;
		if (m.type == W_LEASE && lie == LIE_TENANT)
			snprintf(m.ident.key_id, sizeof(m.ident.key_id), "%s", key2.id);
		m.type = W_RESULT;
		m.err = 0;
		wmsg_send(sock, &m, -1);
	}
}

/* Leaves it in the state directory for the next listener: its process. @pid: what it says that it is, 0: itself. */
static pid_t leave_liar(struct client *c, enum lie lie, pid_t pid)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct wmsg_ident who = {.uid = 1000, .comm = "a liar", .from = "nowhere", .lease = 1, .flags = WMSG_HAS_LINK};
	int n = snprintf(a.sun_path, sizeof(a.sun_path), "%s/", state_path), fd;
	pid_t child;

	memcpy(who.sid, c->start.sid, sizeof(who.sid));
	memcpy(who.key_id, key.id, sizeof(key.id));
	for (unsigned i = 0; i < sizeof(who.sid); i++)
		n += sprintf(a.sun_path + n, "%02x", who.sid[i]);
	strcpy(a.sun_path + n, ".sock");
	child = fork();
	if (child) {
		while (access(a.sun_path, F_OK))
			usleep(1000);
		return child;
	}
	setpgid(0, 0);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	/* Under another name until it listens. */
	a.sun_path[n] = '-';
	bind(fd, (struct sockaddr *)&a, sizeof(a));
	listen(fd, 4);
	{
		char last[sizeof(a.sun_path)];

		strcpy(last, a.sun_path);
		last[n] = '.';
		rename(a.sun_path, last);
	}
	who.worker = pid ? pid : getpid();
	lying_worker(fd, &who, lie);
	_exit(1);
}

static void liars(void)
{
	struct client *pid = client_new(), *tenant = client_new(), *chat = client_new(), *c = client_new(), *d = client_new();
	struct rgpu_join j = {0};
	pid_t bystander, liar[3];
	int status;

	mkdir(state_path, 0700);
	bystander = fork();
	if (!bystander) {
		setpgid(0, 0);
		for (;;)
			pause();
	}
	setpgid(bystander, bystander);
	liar[0] = leave_liar(pid, LIE_PID, bystander);
	liar[1] = leave_liar(tenant, LIE_TENANT, 0);
	liar[2] = leave_liar(chat, LIE_CHATTER, 0);
	server_up(0, "16");
	is_int(control_as(c, &key), 0, "a server starts beside workers that were taken over");
	ok(log_has("says that it is another process", 1), "one that claims to be another process is not adopted");
	memcpy(j.sid, pid->start.sid, 16);
	request(c, RGPU_C_END, &j, sizeof(j));

	memcpy(c->start.sid, tenant->start.sid, 16);
	is_int(start(c, RGPU_C_RESUME), RGPU_C_STARTED, "a session's client resumes it");
	control_as(d, &key2);
	memcpy(d->start.sid, tenant->start.sid, 16);
	is_int(start(d, RGPU_C_RESUME), RGPU_C_ERROR, "which its worker cannot make another client's: %s", d->error.text);

	is_int(request(c, RGPU_C_STATS, NULL, 0), RGPU_C_STATS_LIST, "STATS comes past a worker that says other things for ever");
	memcpy(j.sid, chat->start.sid, 16);
	is_int(request(c, RGPU_C_END, &j, sizeof(j)), RGPU_C_OK, "and END");
	waitpid(liar[2], &status, 0);
	is_int(server_down(SIGTERM), 0, "the server ends");
	is_int(waitpid(bystander, &status, WNOHANG), 0, "no process was killed that is no worker");
	for (unsigned i = 0; i < 2; i++) {
		kill(liar[i], SIGKILL);
		waitpid(liar[i], &status, 0);
	}
	kill(bystander, SIGKILL);
	waitpid(bystander, &status, 0);
	client_free(pid);
	client_free(tenant);
	client_free(chat);
	client_free(c);
	client_free(d);
}

int main(int argc, char **argv)
{
	char why[RGPU_WHY_MAX];

	(void)argc;
	if (!procs_begin(argv[0]))
		return 1;
	run((char *[]){stubd, "--pair", "--key", key_path, NULL}, log_path);
	run((char *[]){stubd, "--pair", "--key", key2_path, NULL}, log_path);
	if (!is_int(rgpu_key_load(key_path, &key, why) || rgpu_key_load(key2_path, &key2, why), 0, "two clients' keys")) {
		procs_end();
		return tap_done();
	}
	liars();
	procs_end();
	return tap_done();
}
