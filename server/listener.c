// SPDX-License-Identifier: MIT
/* The listener: accepts, tells control from data connections, and lets nobody in without a key or a certificate. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/clock.h"
#include "lib/link.h"
#include "lib/log.h"
#include "lib/notify.h"
#include "server/control.h"
#include "server/listener.h"
#include "server/nvml.h"
#include "server/state.h"
#include "server/view.h"

#define TLS_HANDSHAKE 0x16
#define GUESTS_MAX    256 /* connections that have not shown a key: the oldest makes room */
#define GUEST_ADDR    64  /* of them from one address: its own oldest makes room */
#define GUEST_MS      5000
#define LEAVE_MS      1000	       /* for one that was refused to read why */
#define LISTEN_ENV    "RGPU_LISTEN_FD" /* to ourselves over a reload: "FD PORT HOST" */

/* A connection that has not proven anything. Nothing is parsed: a first byte, then a handshake or a comparison. */
struct guest {
	int fd; /* the link's once there is one; −1: free */
	struct rgpu_link *link;
	int64_t until;
	bool leaves; /* was refused, and is to read why: what it says is thrown away until it closes */
	struct sockaddr_storage from;
	uint32_t got;
	union {
		struct rgpu_preface preface;
		uint8_t bytes[sizeof(struct rgpu_preface)];
	};
};

struct listener {
	struct server_opts *opts;
	struct rgpu_key key[SERVER_KEYS_MAX];
	struct rgpu_cert *cert; /* NULL: keys only */
	struct devices devices;
	struct registry registry;
	struct control_server control;
	struct guest guest[GUESTS_MAX];
	int listen_fd, signal_fd, wake_fd;
	int64_t drained_by; /* SIGTERM came: until then running programs may end by themselves; 0: it did not */
	/* At most one line a second about strangers. */
	int64_t refused_at;
	unsigned refused;
	/* For poll(): the three above, guests, two for each session. */
	struct pollfd *fds;
	struct ses **watched;
};

static bool find_key(void *arg, const char *identity, uint8_t key[RGPU_KEY_LEN])
{
	struct listener *l = arg;

	for (unsigned i = 0; i < l->opts->nkeys; i++) {
		if (strcmp(identity, l->key[i].identity))
			continue;
		memcpy(key, l->key[i].secret, RGPU_KEY_LEN);
		return true;
	}
	return false;
}

/* Why sessions of a client that was let in once may not go on; NULL: they may. */
static const char *refuses_client(void *arg, const char *client, const struct rgpu_cert_id *cert)
{
	struct listener *l = arg;

	if (!strcmp(client, RGPU_PLAIN_NAME))
		return l->opts->plaintext ? NULL : "the server does not take plaintext any more; ask whoever runs it";
	if (cert)
		return l->cert ? rgpu_cert_refuses(l->cert, cert)
			       : "the server does not take certificates any more; ask whoever runs it";
	for (unsigned i = 0; i < l->opts->nkeys; i++)
		if (!strcmp(client, l->key[i].id))
			return NULL;
	return "the server does not take this client's key any more; ask whoever runs it";
}

static void dismiss(struct guest *g)
{
	if (g->link)
		rgpu_link_free(g->link);
	else if (g->fd >= 0)
		close(g->fd);
	g->link = NULL;
	g->fd = -1;
}

static void complain(struct listener *l, const char *what)
{
	int64_t now = rgpu_now_ns();

	l->refused++;
	if (now - l->refused_at < 1000000000LL && l->refused_at)
		return;
	rgpu_note("%u connection%s refused; the last: %s", l->refused, l->refused == 1 ? "" : "s", what);
	l->refused_at = now;
	l->refused = 0;
}

static bool same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;
	const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;

	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET)
		return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
	/* Whoever has a machine with IPv6 has 2^64 addresses; those of IPv4 differ at their end. */
	return !memcmp(&a6->sin6_addr, &b6->sin6_addr, IN6_IS_ADDR_V4MAPPED(&a6->sin6_addr) ? 16 : 8);
}

/* Where one more may sit that comes @from there; NULL: anywhere. */
static struct guest *seat(struct listener *l, const struct sockaddr_storage *from)
{
	struct guest *oldest = &l->guest[0], *oldest_there = NULL, *empty = NULL;
	unsigned there = 0;

	for (unsigned i = 0; i < GUESTS_MAX; i++) {
		struct guest *g = &l->guest[i];

		if (g->fd < 0) {
			empty = g;
			continue;
		}
		if (g->until < oldest->until)
			oldest = g;
		if (!from || !same_host(&g->from, from))
			continue;
		there++;
		if (!oldest_there || g->until < oldest_there->until)
			oldest_there = g;
	}
	if (there >= GUEST_ADDR) {
		complain(l, "too many connections without a key from one address");
		dismiss(oldest_there);
		return oldest_there;
	}
	if (empty)
		return empty;
	complain(l, "too many connections without a key at once");
	dismiss(oldest);
	return oldest;
}

static void welcome(struct listener *l)
{
	for (int i = 0; i < 64; i++) {
		struct sockaddr_storage from = {0};
		socklen_t len = sizeof(from);
		int fd = accept4(l->listen_fd, (struct sockaddr *)&from, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0) {
			if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) {
				complain(l, strerror(errno));
				dismiss(seat(l, NULL));
				usleep(10000);
			}
			return;
		}
		*seat(l, &from) = (struct guest){.fd = fd, .from = from, .until = rgpu_deadline(GUEST_MS)};
	}
}

static void let_in(struct listener *l, struct guest *g, const char *client)
{
	char host[48] = "?", port[8] = "", from[64];

	getnameinfo((struct sockaddr *)&g->from, sizeof(g->from), host, sizeof(host), port, sizeof(port),
		    NI_NUMERICHOST | NI_NUMERICSERV);
	snprintf(from, sizeof(from), strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
	if (control_begin(&l->control, g->link, client, from))
		complain(l, "too many control connections");
	g->link = NULL;
	g->fd = -1;
}

/* A client without TLS: one on this machine, and only if that was asked for. It is told why not. */
static void take_plain(struct listener *l, struct guest *g)
{
	struct rgpu_error_frame e = {.err = EACCES};

	rgpu_sock_tune(g->fd);
	g->link = rgpu_link_plain(g->fd);
	if (!g->link) {
		dismiss(g);
		return;
	}
	if (l->opts->plaintext && rgpu_sock_is_loopback(g->fd)) {
		let_in(l, g, RGPU_PLAIN_NAME);
		return;
	}
	snprintf(e.text, sizeof(e.text), "%s",
		 l->opts->plaintext
			 ? "this server takes plaintext from its own loopback addresses only: use a key or a certificate"
			 : "this server takes no plaintext (plaintext = yes in its configuration): use a key or a "
			   "certificate");
	complain(l, l->opts->plaintext ? "plaintext from another machine" : "plaintext, which is not taken here");
	rgpu_link_send_frame(g->link, RGPU_C_ERROR, 0, &e, sizeof(e), 0);
	g->leaves = !shutdown(g->fd, SHUT_WR);
	g->until = rgpu_deadline(LEAVE_MS);
	if (!g->leaves)
		dismiss(g);
}

/* The handshake goes on: a wrong key or certificate ends it. */
static void shake_hands(struct listener *l, struct guest *g)
{
	int err = rgpu_link_handshake(g->link);
	const char *id;

	if (err == -EAGAIN)
		return;
	if (err) {
		complain(l, rgpu_link_why(g->link));
		/* Closed with bytes unread, its socket would reset the connection, and the alert may never be read. */
		g->leaves = rgpu_link_told(g->link) && !shutdown(g->fd, SHUT_WR);
		g->until = rgpu_deadline(LEAVE_MS);
		if (!g->leaves)
			dismiss(g);
		return;
	}
	id = rgpu_link_identity(g->link);
	if (!rgpu_link_cert_id(g->link))
		id = strrchr(id, '/') ? strrchr(id, '/') + 1 : "";
	let_in(l, g, id);
}

static void read_preface(struct listener *l, struct guest *g)
{
	ssize_t n = recv(g->fd, g->bytes + g->got, sizeof(g->preface) - g->got, 0);

	if (n <= 0) {
		if (!n || errno != EAGAIN)
			dismiss(g);
		return;
	}
	g->got += n;
	if (g->got < sizeof(g->preface))
		return;
	if (!memcmp(g->preface.magic, RGPU_PLAIN_MAGIC, sizeof(g->preface.magic))) {
		take_plain(l, g);
		return;
	}
	if (memcmp(g->preface.magic, RGPU_PREFACE_MAGIC, sizeof(g->preface.magic))) {
		dismiss(g);
		return;
	}
	registry_redeem(&l->registry, &g->preface, g->fd);
	g->fd = -1;
}

static void hear(struct listener *l, struct guest *g)
{
	uint8_t first, nothing[4096];
	ssize_t n;

	if (g->leaves) {
		n = recv(g->fd, nothing, sizeof(nothing), 0);
		if (!n || (n < 0 && errno != EAGAIN))
			dismiss(g);
		return;
	}
	if (g->link) {
		shake_hands(l, g);
		return;
	}
	if (g->got) {
		read_preface(l, g);
		return;
	}
	n = recv(g->fd, &first, 1, MSG_PEEK);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n == 1 && first == RGPU_PREFACE_MAGIC[0]) {
		read_preface(l, g);
		return;
	}
	if (n == 1 && first == TLS_HANDSHAKE) {
		rgpu_sock_tune(g->fd);
		g->link = rgpu_link_server_cert(g->fd, l->cert, find_key, l);
		if (g->link) {
			shake_hands(l, g);
			return;
		}
	} else if (n == 1) {
		complain(l, "it spoke neither TLS nor rgpu's data connection");
	}
	dismiss(g);
}

/* Whether the new address can be had. In use by us is good: one address and all addresses exclude each other. */
static bool may_listen(const struct rgpu_addr *now, const struct rgpu_addr *next, char why[RGPU_WHY_MAX])
{
	int fd;

	if (!strcmp(now->host, next->host) && now->port == next->port)
		return true;
	fd = rgpu_addr_listen(next, NULL, why);
	if (fd >= 0)
		close(fd);
	return fd >= 0 || (fd == -EADDRINUSE && now->port == next->port);
}

/* What is new and can fail is tried: a process that cannot begin would leave the clients without a server. */
static bool may_begin(const struct server_opts *now, const struct server_opts *next)
{
	struct devices d = {0};
	char why[RGPU_WHY_MAX];
	int err = 0;

	if (strcmp(now->driver, next->driver) || strcmp(now->blas, next->blas))
		err = devices_read(next, &d, why);
	free(d.list);
	if (!err && may_listen(&now->listen, &next->listen, why))
		return true;
	rgpu_err("%s", why);
	return false;
}

/* SIGHUP: whether what is configured now can be started with. If not, what is wrong is said, and nothing changes. */
static bool may_reload(struct listener *l)
{
	static struct server_opts fresh;

	rgpu_notify_reloading();
	if (!server_opts_parse(l->opts->argc, l->opts->argv, &fresh) && !server_opts_keys(&fresh) && may_begin(l->opts, &fresh))
		return true;
	rgpu_err("the configuration has errors (above) and stays as it was");
	rgpu_notify("READY=1");
	return false;
}

/* What a signal asks for: 0 nothing, else the loop ends. */
static int signalled(struct listener *l)
{
	struct signalfd_siginfo s;

	if (read(l->signal_fd, &s, sizeof(s)) != sizeof(s))
		return 0;
	if (s.ssi_signo == SIGTERM && !l->drained_by && l->opts->drain_s) {
		unsigned n = registry_close(&l->registry);

		if (n)
			rgpu_note("is being stopped: %u session%s %d s to end; SIGTERM again ends %s at once", n,
				  n == 1 ? " has" : "s have", l->opts->drain_s, n == 1 ? "it" : "them");
		rgpu_notify("STOPPING=1");
		l->drained_by = rgpu_deadline(l->opts->drain_s * 1000);
		return 0; /* loop() sees whether there is one to wait for */
	}
	return s.ssi_signo != SIGHUP || may_reload(l) ? (int)s.ssi_signo : 0;
}

static int loop(struct listener *l)
{

	for (;;) {
		struct pollfd *p = l->fds;
		unsigned nses;
		uint64_t count;
		int sig = 0;

		p[0] = (struct pollfd){.fd = l->listen_fd, .events = POLLIN};
		p[1] = (struct pollfd){.fd = l->signal_fd, .events = POLLIN};
		p[2] = (struct pollfd){.fd = l->wake_fd, .events = POLLIN};
		for (unsigned i = 0; i < GUESTS_MAX; i++)
			p[3 + i] = (struct pollfd){.fd = l->guest[i].fd,
						   .events = l->guest[i].link ? rgpu_link_events(l->guest[i].link) : POLLIN};
		rgpu_notify_watchdog();
		nses = registry_watch(&l->registry, p + 3 + GUESTS_MAX, l->watched, l->registry.most);
		if (poll(p, 3 + GUESTS_MAX + 2 * nses, 1000) < 0) {
			if (errno != EINTR)
				rgpu_err("poll: %s", strerror(errno));
			while (nses)
				registry_put(l->watched[--nses]);
			continue;
		}
		for (unsigned i = 0; i < nses; i++) {
			const struct pollfd *worker = p + 3 + GUESTS_MAX + 2 * i;

			if (worker[0].revents || worker[1].revents)
				registry_gone(&l->registry, l->watched[i]);
			registry_put(l->watched[i]);
		}
		if (p[2].revents)
			(void)!read(l->wake_fd, &count, sizeof(count));
		for (unsigned i = 0; i < GUESTS_MAX; i++) {
			struct guest *g = &l->guest[i];

			if (g->fd >= 0 && p[3 + i].revents)
				hear(l, g);
			if (g->fd >= 0 && rgpu_now_ns() > g->until)
				dismiss(g);
		}
		if (p[0].revents)
			welcome(l);
		if (p[1].revents)
			sig = signalled(l);
		if (sig)
			return sig;
		if (l->drained_by && (!registry_close(&l->registry) || rgpu_now_ns() > l->drained_by))
			return SIGTERM;
	}
}

/* And the certificate. */
static int load_keys(struct listener *l)
{
	char why[RGPU_WHY_MAX];
	int err;

	for (unsigned i = 0; i < l->opts->nkeys; i++) {
		err = rgpu_key_load(l->opts->key_file[i], &l->key[i], why);

		if (err == -ENOENT)
			rgpu_err("%s; make a key with: rgpu-server --pair --key %s", why, l->opts->key_file[i]);
		else if (err)
			rgpu_err("%s", why);
		if (err)
			return err;
	}
	if (!l->opts->tls.cert)
		return 0;
	err = rgpu_cert_load(&l->opts->tls, true, &l->cert, why);
	if (err)
		rgpu_err("%s", why);
	return err;
}

/* Law 13: without a driver there is no server, and how to have softgpu is said, not done. */
static int load_devices(struct listener *l)
{
	char why[RGPU_WHY_MAX], line[1024];

	if (!devices_read(l->opts, &l->devices, why))
		return 0;
	rgpu_err("no CUDA driver: %s", why);
	if (!l->opts->softgpu) {
		server_opts_softgpu_line(l->opts, line, sizeof(line));
		rgpu_err("on a machine without a GPU, softgpu answers in its place, slowly: %s", line);
	}
	return -ENODEV;
}

static int catch_signals(struct listener *l)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	l->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return l->signal_fd < 0 || l->wake_fd < 0 ? -errno : 0;
}

/* The socket that the process before the reload listened on, if that is still the address: those who wait at it are not lost. */
static int inherited(const struct rgpu_addr *at, uint16_t *port)
{
	const char *was = getenv(LISTEN_ENV);
	unsigned old_port = 0;
	int fd = -1, host = 0;
	bool same;

	if (!was || sscanf(was, "%d %u %n", &fd, &old_port, &host) < 2 || !host)
		return -1;
	/* Workers that ended between the two are nobody's now. */
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	same = !strcmp(was + host, at->host) && (at->port == old_port || !at->port);
	unsetenv(LISTEN_ENV);
	if (!same || fcntl(fd, F_SETFD, FD_CLOEXEC)) {
		close(fd);
		return -1;
	}
	*port = old_port;
	return fd;
}

/* The same process begins anew, with the configuration as it is now. Workers are adopted, as after any restart. */
static int begin_again(struct listener *l)
{
	char was[RGPU_ADDR_TEXT_MAX + 32];

	nvml_stop();
	snprintf(was, sizeof(was), "%d %u %s", l->listen_fd, l->opts->listen.port, l->opts->listen.host);
	if (!fcntl(l->listen_fd, F_SETFD, 0) && !setenv(LISTEN_ENV, was, 1))
		execv("/proc/self/exe", l->opts->argv);
	rgpu_err("cannot start anew: %s", strerror(errno));
	return 1;
}

/* A page that cannot be had is no reason to lend no GPUs. */
static void show(struct listener *l)
{
	char why[RGPU_WHY_MAX];
	int port;

	if (l->opts->web == WEB_OFF)
		return;
	port = view_serve(&l->registry, l->opts->web, why);
	if (port < 0)
		rgpu_warn("%s", why);
	else
		rgpu_note("page and metrics at http://localhost:%d/", port);
}

static int begin(struct listener *l)
{
	char why[RGPU_WHY_MAX], dir[STATE_DIR_MAX], text[RGPU_ADDR_TEXT_MAX];
	struct rlimit files;
	uint16_t port;
	int err;

	if (!getrlimit(RLIMIT_NOFILE, &files)) {
		files.rlim_cur = files.rlim_max < 65536 ? files.rlim_max : 65536;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	for (unsigned i = 0; i < GUESTS_MAX; i++)
		l->guest[i].fd = -1;
	err = load_keys(l);
	if (!err)
		err = catch_signals(l);
	if (!err)
		err = load_devices(l);
	if (err)
		return err;
	l->listen_fd = inherited(&l->opts->listen, &port);
	if (l->listen_fd < 0)
		l->listen_fd = rgpu_addr_listen(&l->opts->listen, &port, why);
	if (l->listen_fd < 0) {
		rgpu_err("%s", why);
		return l->listen_fd;
	}
	l->opts->listen.port = port;
	err = state_open(l->opts, port, dir, l->control.name, why);
	if (err) {
		rgpu_err("%s", why);
		return err;
	}
	registry_init(&l->registry, l->opts, &l->devices, dir, l->wake_fd);
	registry_adopt(&l->registry);
	l->fds = calloc(3 + GUESTS_MAX + 2 * l->registry.most, sizeof(*l->fds));
	l->watched = calloc(l->registry.most, sizeof(*l->watched));
	if (!l->fds || !l->watched) {
		rgpu_err("out of memory");
		return -ENOMEM;
	}
	registry_revoke(&l->registry, refuses_client, l);
	l->control.registry = &l->registry;
	show(l);
	rgpu_addr_text(&l->opts->listen, text);
	rgpu_note("listening on %s: %s, %u device%s", text, l->devices.driver, l->devices.n, l->devices.n == 1 ? "" : "s");
	rgpu_notify("READY=1\nSTATUS=Listening on %s: %s, %u device%s", text, l->devices.driver, l->devices.n,
		    l->devices.n == 1 ? "" : "s");
	return 0;
}

int listener_run(struct server_opts *o)
{
	struct listener *l = calloc(1, sizeof(*l));
	int sig;

	if (!l)
		return 1;
	l->opts = o;
	if (begin(l))
		return 1;
	sig = loop(l);
	if (sig == SIGHUP)
		return begin_again(l);
	rgpu_notify("STOPPING=1");
	close(l->listen_fd);
	if (sig == SIGUSR1) {
		rgpu_note("stopped; %u session%s for the next server to take over", l->registry.n,
			  l->registry.n == 1 ? " waits" : "s wait");
		return 0;
	}
	registry_end_all(&l->registry, ESHUTDOWN, "the server was stopped; run the program again when it is back");
	state_remove(o, l->registry.state_dir);
	rgpu_note("stopped");
	/* Control threads may still be in a request: the process's end is theirs. */
	return 0;
}
