// SPDX-License-Identifier: MIT
/* rgpu-proxy: serves the rgpu module's programs from one server. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>
#include "lib/log.h"
#include "lib/notify.h"
#include "usermode-proxy/config.h"
#include "usermode-proxy/devices.h"
#include "usermode-proxy/requests.h"
#include "usermode-proxy/session.h"
#include "usermode-proxy/view.h"

#define AGENT	      "rgpu-proxy " RGPU_VERSION
#define REGISTER_MS   5000 /* a predecessor that was just killed may still be on its way out */
#define REGISTER_EACH 100

/* A successor has our sessions: their mappings are gone, and a thread of ours that goes on writing ends here. */
static void on_sigbus(int sig)
{
	static const char line[] = "rgpu-proxy: another rgpu-proxy has taken over the sessions\n";

	(void)sig;
	(void)!write(STDERR_FILENO, line, sizeof(line) - 1);
	_exit(1);
}

static int open_ctl(const char *path, char why[RGPU_WHY_MAX])
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd >= 0)
		return fd;
	if (errno == ENOENT || errno == ENXIO)
		return rgpu_why(why, -errno, "there is no %s: the rgpu module is not loaded (modprobe rgpu)", path);
	if (errno == EACCES || errno == EPERM)
		return rgpu_why(why, -errno, "no permission for %s: run as its owner (the user rgpu-proxy), or as root", path);
	return rgpu_why(why, -errno, "cannot open %s: %s", path, strerror(errno));
}

/* A try that fails spoils both descriptors, so each opens its own. */
static int try_register(const char *path, struct requests *rq, char why[RGPU_WHY_MAX])
{
	int err;

	rq->ctl_fd = open_ctl(path, why);
	if (rq->ctl_fd < 0)
		return rq->ctl_fd;
	err = kern_open(&rq->kern, why);
	if (err) {
		close(rq->ctl_fd);
		return err;
	}
	err = kern_register(rq->kern, rq->ctl_fd, &rq->epoch, why);
	if (err) {
		kern_close(rq->kern);
		close(rq->ctl_fd);
	}
	return err;
}

static int become_proxy(const char *path, struct requests *rq, char why[RGPU_WHY_MAX])
{
	struct timespec pause = {.tv_nsec = REGISTER_EACH * 1000000L};
	int err;

	for (int ms = 0;; ms += REGISTER_EACH) {
		err = try_register(path, rq, why);
		if (err != -EBUSY || ms >= REGISTER_MS)
			break;
		nanosleep(&pause, NULL);
	}
	if (err == -EBUSY)
		return rgpu_why(why, err, "another rgpu-proxy is running: one serves all programs of a machine; stop it first");
	return err;
}

/*
 * SIGHUP: the same process begins anew with the configuration as it is now. Sessions go on as after any other end of a proxy.
 * With a bad configuration nothing changes.
 */
static void reload(char **argv)
{
	struct proxy_config fresh;
	char why[RGPU_WHY_MAX];
	int argc = 0;

	rgpu_notify_reloading();
	while (argv[argc])
		argc++;
	if (proxy_config(argc, argv, &fresh, why)) {
		rgpu_err("%s; the configuration stays as it was", why);
	} else {
		rgpu_note("reads its configuration again; running programs go on");
		execv("/proc/self/exe", argv);
		rgpu_err("cannot start anew: %s", strerror(errno));
	}
	rgpu_notify("READY=1");
}

static bool is_reload(int signals)
{
	struct signalfd_siginfo s;

	return read(signals, &s, sizeof(s)) == sizeof(s) && s.ssi_signo == SIGHUP;
}

/* Until a signal ends us, or the module does. */
static int loop(struct requests *rq, int signals, char **argv, char why[RGPU_WHY_MAX])
{
	struct pollfd p[3] = {{.fd = kern_fd(rq->kern), .events = POLLIN},
			      {.fd = rq->ctl_fd, .events = POLLIN},
			      {.fd = signals, .events = POLLIN}};
	int err;

	for (;;) {
		err = requests_pull(rq, why);
		if (err)
			return err;
		rgpu_notify_watchdog();
		if (poll(p, 3, rgpu_notify_watchdog_ms()) < 0 && errno != EINTR)
			return rgpu_why(why, -errno, "poll: %s", strerror(errno));
		if (p[2].revents && !is_reload(signals))
			return 0;
		if (p[2].revents)
			reload(argv);
		if (p[1].revents & (POLLHUP | POLLERR))
			return rgpu_why(why, -ENODEV, "the rgpu module is going away");
		if (kern_drain(rq->kern))
			return rgpu_why(why, -EIO, "the netlink socket broke");
	}
}

static int catch_signals(void)
{
	struct sigaction bus = {.sa_handler = on_sigbus};
	sigset_t end;

	sigaction(SIGBUS, &bus, NULL);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&end);
	sigaddset(&end, SIGTERM);
	sigaddset(&end, SIGINT);
	sigaddset(&end, SIGHUP);
	/* Before any thread: they all inherit it. */
	pthread_sigmask(SIG_BLOCK, &end, NULL);
	return signalfd(-1, &end, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void raise_fd_limit(void)
{
	struct rlimit r;

	/* Four descriptors a session. */
	if (!getrlimit(RLIMIT_NOFILE, &r)) {
		r.rlim_cur = r.rlim_max;
		setrlimit(RLIMIT_NOFILE, &r);
	}
}

/* A page that cannot be had is no reason to leave programs without GPUs. */
static void show(const struct proxy_config *cfg, struct kern *kern)
{
	struct rgpu_ctl *ctl;
	char why[RGPU_WHY_MAX];
	int port;

	if (cfg->web == WEB_OFF)
		return;
	ctl = rgpu_ctl_new(&cfg->server, &cfg->auth, AGENT);
	port = ctl ? view_serve(kern, ctl, &cfg->server, cfg->web, why) : rgpu_why(why, -ENOMEM, "no memory for the page");
	if (port < 0)
		rgpu_warn("%s", why);
	else
		rgpu_note("page and metrics at http://localhost:%d/", port);
}

static int run(const struct proxy_config *cfg, char **argv, char why[RGPU_WHY_MAX])
{
	static struct requests rq; /* its threads may outlive this function */
	int signals = catch_signals(), err;
	struct rgpu_ctl *ctl;

	rq.server = cfg->server;
	session_compress(cfg->compress);
	raise_fd_limit();
	rq.pool = pool_new(&cfg->server, &cfg->auth, AGENT);
	ctl = rgpu_ctl_new(&cfg->server, &cfg->auth, AGENT);
	if (signals < 0 || !rq.pool || !ctl)
		return rgpu_why(why, -ENOMEM, "no memory or descriptors to begin with");
	err = become_proxy(cfg->ctl, &rq, why);
	if (err) {
		rgpu_ctl_free(ctl);
		pool_free(rq.pool);
		return err;
	}
	err = requests_recover(&rq, why);
	if (!err)
		err = devices_run(rq.kern, ctl, &cfg->server, why);
	if (!err)
		show(cfg, rq.kern);
	if (!err)
		rgpu_notify("READY=1");
	if (!err)
		err = loop(&rq, signals, argv, why);
	return err;
}

int main(int argc, char **argv)
{
	struct proxy_config cfg;
	char why[RGPU_WHY_MAX];
	int err;

	rgpu_log_init("rgpu-proxy", RGPU_LOG_INFO);
	err = proxy_config(argc, argv, &cfg, why);
	if (err > 0)
		return 0; /* --help or --version were answered */
	if (!err)
		err = run(&cfg, argv, why);
	if (err) {
		rgpu_err("%s", why);
		exit(err == -EINVAL ? 2 : 1);
	}
	/* What runs is left to a successor: the kernel takes our descriptors, and the sessions wait. */
	rgpu_note("ends; running programs wait for the next rgpu-proxy");
	_exit(0);
}
