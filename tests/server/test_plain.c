// SPDX-License-Identifier: MIT
/* Plaintext is for loopback alone: the data connections of a session without TLS, too, at either end. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <libgen.h>
#include <limits.h>
#include <net/if.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/addr.h"
#include "lib/clock.h"
#include "lib/link.h"
#include "tests/tap.h"
#include "usermode-proxy/control.h"
#include "usermode-proxy/relay_int.h"

#define WAIT_MS 60000

static char log_path[96];
static uint16_t port;

static uint16_t port_in_log(void)
{
	int64_t deadline = rgpu_deadline(WAIT_MS);
	static char buf[1 << 16];
	const char *at = NULL;

	while (!at && rgpu_ms_left(deadline)) {
		int fd = open(log_path, O_RDONLY);
		ssize_t n = fd < 0 ? 0 : read(fd, buf, sizeof(buf) - 1);

		if (fd >= 0)
			close(fd);
		buf[n > 0 ? n : 0] = 0;
		at = strstr(buf, "listening on 0.0.0.0:");
		usleep(5000);
	}
	return at ? atoi(at + strlen("listening on 0.0.0.0:")) : 0;
}

/* An address of this machine that is no loopback one. */
static bool other_address(char host[INET_ADDRSTRLEN])
{
	struct ifaddrs *list = NULL;
	bool found = false;

	if (getifaddrs(&list))
		return false;
	for (struct ifaddrs *i = list; i && !found; i = i->ifa_next)
		found = i->ifa_addr && i->ifa_addr->sa_family == AF_INET && !(i->ifa_flags & IFF_LOOPBACK) &&
			inet_ntop(AF_INET, &((struct sockaddr_in *)i->ifa_addr)->sin_addr, host, INET_ADDRSTRLEN);
	freeifaddrs(list);
	return found;
}

/* A data connection to @host by hand. What ATTACH comes to: 0, or -errno. */
static int data_to(const char *host, const struct rgpu_lease *lease)
{
	struct rgpu_preface pre = {.magic = RGPU_PREFACE_MAGIC, .lease = lease->lease};
	struct rgpu_addr at = {.port = port};
	char why[RGPU_WHY_MAX];
	struct rgpu_link *l;
	struct rgpu_frame f;
	uint8_t buf[512];
	ssize_t n;
	int fd;

	snprintf(at.host, sizeof(at.host), "%s", host);
	memcpy(pre.token, lease->token, sizeof(pre.token));
	fd = rgpu_addr_connect(&at, WAIT_MS, why);
	if (fd < 0 || send(fd, &pre, sizeof(pre), MSG_NOSIGNAL) != sizeof(pre))
		abort();
	l = rgpu_link_plain(fd);
	n = rgpu_link_send_frame(l, RGPU_D_ATTACH, 0, NULL, 0, WAIT_MS);
	if (!n)
		n = rgpu_link_recv_frame(l, &f, buf, sizeof(buf), WAIT_MS);
	rgpu_link_free(l);
	return n < 0 ? n : f.type == RGPU_D_ATTACHED ? 0 : -EPROTO;
}

/* As a client does whose server's name has got another address. */
static int relay_to(const char *host, const struct rgpu_lease *lease, char why[RGPU_WHY_MAX])
{
	struct rgpu_relay r = {.server = {.port = port}};
	struct rgpu_link *l = NULL;
	int err;

	snprintf(r.server.host, sizeof(r.server.host), "%s", host);
	err = relay_connect(&r, lease, &l, why);
	rgpu_link_free(l);
	return err;
}

int main(int argc, char **argv)
{
	struct rgpu_start start = {.sid = "a plain session", .epoch = 1, .uid = 1000, .pid = 1, .comm = "a test"};
	char me[PATH_MAX], stubd[PATH_MAX], dir[64], state[96], cmd[96], why[RGPU_WHY_MAX], host[INET_ADDRSTRLEN];
	struct rgpu_addr at = {.host = "127.0.0.1"};
	struct rgpu_auth auth = {.kind = RGPU_AUTH_PLAIN};
	struct rgpu_lease lease;
	struct rgpu_ctl *c;
	pid_t server;

	(void)argc;
	alarm(240);
	signal(SIGPIPE, SIG_IGN);
	snprintf(me, sizeof(me), "%s", argv[0]);
	snprintf(stubd, sizeof(stubd), "%s/server-stubd", dirname(me));
	snprintf(dir, sizeof(dir), "/tmp/rgpu-XXXXXX");
	if (!mkdtemp(dir))
		return 1;
	snprintf(state, sizeof(state), "%s/state", dir);
	snprintf(log_path, sizeof(log_path), "%s/log", dir);
	server = fork();
	if (!server) {
		int fd = open(log_path, O_WRONLY | O_CREAT | O_APPEND, 0600);

		dup2(fd, 1);
		dup2(fd, 2);
		execl(stubd, stubd, "--driver", "stub", "--plaintext", "--listen", "0.0.0.0:0", "--state-dir", state, NULL);
		_exit(127);
	}
	at.port = port = port_in_log();
	c = rgpu_ctl_new(&at, &auth, "a test");
	is_int(rgpu_ctl_start(c, false, &start, NULL, &lease, why), 0, "a session starts in plaintext");
	ok(lease.plain, "… and its data connections are to be such");
	if (other_address(host)) {
		int err = data_to(host, &lease);

		ok(err == -ECONNRESET || err == -EPIPE, "the server takes none of them on another address (%s)", strerror(-err));
		is_int(relay_to(host, &lease, why), -EPERM, "the client makes none to another: %s", why);
	} else {
		ok(true, "the server takes none of them on another address # SKIP this machine has none");
		ok(true, "the client makes none to another # SKIP this machine has none");
	}
	is_int(data_to("127.0.0.1", &lease), 0, "on loopback it goes on");
	rgpu_ctl_free(c);
	kill(server, SIGTERM);
	waitpid(server, NULL, 0);
	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", dir);
	(void)!system(cmd);
	return tap_done();
}
