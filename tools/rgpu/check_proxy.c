// SPDX-License-Identifier: MIT
/* rgpu doctor on the proxy: its configuration, its key or certificate, its process, and whether it has devices online. */
#include <errno.h>
#include <glob.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tools/rgpu/doctor.h"
#include "tools/rgpu/sys.h"

/* How to have the server's line for us, where it can be had by one command. */
static void fix_join(const struct doctor *d, struct finding *f)
{
	if (*d->host)
		fix(f, "ssh %s rgpu-server --pair | rgpu join -", d->host);
	else if (d->cfg.server.port)
		fix(f, "rgpu-server --pair | rgpu join -");
	else
		fix(f, "ssh GPUHOST rgpu-server --pair | rgpu join -   # GPUHOST: the machine with the GPU");
}

/* The first bad line is told; the others when that is mended. */
struct settings {
	struct proxy_texts t;
	int bad_line;
	char why[RGPU_WHY_MAX];
};

static void conf_bad(struct proxy_texts *t, const char *path, int line, const char *why)
{
	struct settings *s = (struct settings *)t;

	(void)path;
	if (s->bad_line)
		return;
	s->bad_line = line;
	snprintf(s->why, sizeof(s->why), "%s", why);
}

static bool read_settings(const struct doctor *d, struct settings *s)
{
	*s = (struct settings){0};
	return proxy_conf_read(sys_path(d->conf), &s->t, conf_bad, s->why) >= 0;
}

static void look_config(struct doctor *d, struct finding *f)
{
	const char *auth[RGPU_AUTH_SETTINGS];
	char why[RGPU_WHY_MAX];
	struct settings s;

	if (access(sys_path(d->conf), F_OK)) {
		if (sys_in_container()) {
			skip(f, "this is a container: the proxy is the host's");
			return;
		}
		bad(f, "there is no %s: this machine has joined no server", d->conf);
		fix_join(d, f);
		return;
	}
	if (!read_settings(d, &s)) {
		bad(f, "%s", s.why);
		fix(f, "chmod 0644 %s", d->conf);
		return;
	}
	if (s.bad_line) {
		bad(f, "%s:%d: %s", d->conf, s.bad_line, s.why);
		fix(f, "sed -i '%d s/^/; /' %s && systemctl reload-or-restart rgpu-proxy", s.bad_line, d->conf);
		return;
	}
	if (!*s.t.server || rgpu_addr_parse(s.t.server, false, &d->cfg.server, why)) {
		bad(f, "%s names no server", d->conf);
		fix_join(d, f);
		return;
	}
	proxy_auth_texts(&s.t, auth);
	if (rgpu_auth_kind(auth, proxy_auth_names, why) < 0) {
		bad(f, "%s: %s", d->conf, why);
		if (*s.t.key || *s.t.tls_cert)
			fix(f, "nano %s   # man rgpu-proxy.conf", d->conf);
		else
			fix_join(d, f);
		return;
	}
	if (!rgpu_addr_is_loopback(&d->cfg.server))
		snprintf(d->host, sizeof(d->host), "%s", d->cfg.server.host);
	d->conf_good = true;
	good(f, "%s: server %s", d->conf, s.t.server);
}

/* Its own; the server's is looked at when it is spoken to. */
static void look_cert(struct doctor *d, struct finding *f, const struct proxy_texts *t)
{
	struct rgpu_auth *a = &d->cfg.auth;
	struct rgpu_cert_files files = {.cert = sys_path(t->tls_cert), .key = sys_path(t->tls_key), .ca = sys_path(t->tls_ca)};
	char why[RGPU_WHY_MAX];
	int err = rgpu_cert_load(&files, false, &a->cert, why);

	if (err == -EACCES && geteuid()) {
		skip(f, "%s can be read by root only: sudo rgpu doctor", t->tls_key);
		return;
	}
	if (err == -EACCES) {
		bad(f, "%s", why);
		fix(f, "chown " PROXY_USER ": %s && chmod 0600 %s", t->tls_key, t->tls_key);
		return;
	}
	if (err) {
		bad(f, "%s", why);
		fix(f, "nano %s   # man rgpu-proxy.conf", d->conf);
		return;
	}
	a->kind = RGPU_AUTH_CERT;
	d->key_good = true;
	if (rgpu_cert_days_left(a->cert) < 0) {
		bad(f, "the certificate %s (%s) expired on %s", t->tls_cert, rgpu_cert_name(a->cert), rgpu_cert_until(a->cert));
		fix(f, "install NEWCERT %s && systemctl reload rgpu-proxy   # NEWCERT: from whoever issued this one",
		    t->tls_cert);
		return;
	}
	good(f, "%s, name %s, valid until %s", t->tls_cert, rgpu_cert_name(a->cert), rgpu_cert_until(a->cert));
}

static void look_key(struct doctor *d, struct finding *f)
{
	const char *auth[RGPU_AUTH_SETTINGS];
	const struct passwd *pw = *sys_root ? NULL : getpwnam(PROXY_USER);
	char why[RGPU_WHY_MAX];
	struct settings s;
	struct stat st;
	int err;

	if (!d->conf_good) {
		skip(f, "there is no configuration");
		return;
	}
	read_settings(d, &s);
	proxy_auth_texts(&s.t, auth);
	if (rgpu_auth_kind(auth, proxy_auth_names, why) == RGPU_AUTH_CERT) {
		look_cert(d, f, &s.t);
		return;
	}
	if (rgpu_auth_kind(auth, proxy_auth_names, why) == RGPU_AUTH_PLAIN) {
		d->cfg.auth.kind = RGPU_AUTH_PLAIN;
		d->key_good = true;
		skip(f, "%s asks for plaintext, without a key", d->conf);
		return;
	}
	if (stat(sys_path(s.t.key), &st)) {
		if (errno == EACCES) {
			skip(f, "%s can be read by root only: sudo rgpu doctor", s.t.key);
			return;
		}
		bad(f, "%s: %s", s.t.key, strerror(errno));
		fix_join(d, f);
		return;
	}
	if (st.st_mode & 077 || (pw && st.st_uid != pw->pw_uid && !geteuid())) {
		bad(f, "%s has mode %04o and belongs to uid %u: it has to be " PROXY_USER "'s alone", s.t.key, st.st_mode & 07777,
		    st.st_uid);
		fix(f, pw ? "chown " PROXY_USER ": %s && chmod 0600 %s" : "chmod 0600 %s", s.t.key, s.t.key);
		return;
	}
	err = rgpu_key_load(sys_path(s.t.key), &d->cfg.auth.key, why);
	if (err == -EACCES) {
		skip(f, "%s can be read by root only: sudo rgpu doctor", s.t.key);
		return;
	}
	if (err) {
		bad(f, "%s", why);
		fix_join(d, f);
		return;
	}
	d->key_good = true;
	good(f, "%s, id %s", s.t.key, d->cfg.auth.key.id);
}

static void look_running(struct doctor *d, struct finding *f)
{
	const char *there = sys_line("/sys/class/rgpu/rgpu-ctl/proxy");
	char state = 0;
	int pid = sys_find_process("rgpu-proxy", &state);

	if (!d->loaded) {
		skip(f, "the module is not loaded");
		return;
	}
	if (pid && (state == 'T' || state == 't')) {
		bad(f, "rgpu-proxy (pid %d) is stopped: programs wait for it", pid);
		fix(f, "kill -CONT %d", pid);
		return;
	}
	if (there && *there == '1') {
		if (pid)
			good(f, "pid %d", pid);
		else
			good(f, "the module has one");
		return;
	}
	bad(f, pid ? "rgpu-proxy runs (pid %d), but does not serve the module" : "rgpu-proxy is not running", pid);
	fix(f, "systemctl unmask -q rgpu-proxy; systemctl enable -q rgpu-proxy; systemctl restart rgpu-proxy");
}

static void look_current(struct doctor *d, struct finding *f)
{
	int pid = sys_find_process("rgpu-proxy", NULL);
	char path[300], exe[PATH_MAX];
	ssize_t n;

	(void)d;
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	n = pid ? readlink(sys_path(path), exe, sizeof(exe) - 1) : -1;
	if (n < 0) {
		skip(f, pid ? "only root can see which file it runs" : "it is not running");
		return;
	}
	exe[n] = 0;
	if (!strstr(exe, " (deleted)")) {
		good(f, "%s", exe);
		return;
	}
	bad(f, "rgpu-proxy was replaced by another release, and the old one still runs");
	fix(f, "systemctl restart rgpu-proxy   # running programs go on");
}

const struct check checks_proxy[] = {
	{"proxy-config", "the proxy's configuration names a server, and a key or certificate", look_config},
	{"proxy-key", "the key is one, and the proxy's alone; a certificate has not run out", look_key},
	{"proxy-running", "rgpu-proxy runs and serves the module", look_running},
	{"proxy-current", "it is the installed release", look_current},
	{0},
};
