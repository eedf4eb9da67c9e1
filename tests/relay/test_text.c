// SPDX-License-Identifier: MIT
/* Tables: what is an address, and what is a key file. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/addr.h"
#include "lib/key.h"
#include "lib/log.h"
#include "tests/tap.h"

static void addresses(void)
{
	static const struct {
		const char *text;
		bool any_port;
		int err;
		const char *host;
		int port;
		const char *again; /* as rgpu_addr_text() writes it */
	} t[] = {
		{"gpu", 0, 0, "gpu", 7478, "gpu:7478"},
		{"gpu:1", 0, 0, "gpu", 1, "gpu:1"},
		{"10.0.2.2:65535", 0, 0, "10.0.2.2", 65535, "10.0.2.2:65535"},
		{"[::1]", 0, 0, "::1", 7478, "[::1]:7478"},
		{"[::1]:7479", 0, 0, "::1", 7479, "[::1]:7479"},
		{"fe80::1%eth0", 0, 0, "fe80::1%eth0", 7478, "[fe80::1%eth0]:7478"},
		{"gpu:0", 1, 0, "gpu", 0, "gpu:0"},
		{.text = "gpu:0", .err = -EINVAL},
		{.text = "gpu:", .err = -EINVAL},
		{.text = "gpu:65536", .err = -EINVAL},
		{.text = "gpu:99999999999999999999", .err = -EINVAL},
		{.text = "gpu:12x", .err = -EINVAL},
		{.text = "gpu:-1", .err = -EINVAL},
		{.text = "gpu: 1", .err = -EINVAL},
		{.text = "", .err = -EINVAL},
		{.text = ":7478", .err = -EINVAL},
		{.text = "[]:7478", .err = -EINVAL},
		{.text = "[::1", .err = -EINVAL},
		{.text = "[::1]7478", .err = -EINVAL},
		{.text = "[gpu]:7478", .err = -EINVAL},
		{.text = "https://gpu", .err = -EINVAL},
		{.text = "a b:1", .err = -EINVAL},
	};
	char why[RGPU_WHY_MAX], text[RGPU_ADDR_TEXT_MAX], longer[400];
	struct rgpu_addr a;

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		why[0] = 0;
		if (!is_int(rgpu_addr_parse(t[i].text, t[i].any_port, &a, why), t[i].err, "address \"%s\"", t[i].text) ||
		    t[i].err) {
			ok(why[0] != 0, "… says why: %s", why);
			continue;
		}
		is_str(a.host, t[i].host, "… host");
		is_int(a.port, t[i].port, "… port");
		rgpu_addr_text(&a, text);
		is_str(text, t[i].again, "… and back");
	}
	memset(longer, 'a', sizeof(longer));
	longer[sizeof(longer) - 1] = 0;
	is_int(rgpu_addr_parse(longer, false, &a, why), -EINVAL, "a host of 399 letters");
}

static void sockets(void)
{
	struct rgpu_addr a = {.host = "127.0.0.1"};
	char why[RGPU_WHY_MAX];
	uint16_t port;
	int l, c;

	l = rgpu_addr_listen(&a, &port, why);
	ok(l >= 0 && port, "listens on a free port");
	a.port = port;
	c = rgpu_addr_connect(&a, 5000, why);
	ok(c >= 0, "connects");
	ok(c >= 0 && fcntl(c, F_GETFL) & O_NONBLOCK && fcntl(c, F_GETFD) & FD_CLOEXEC,
	   "the socket is non-blocking and close-on-exec");
	is_int(rgpu_addr_listen(&a, &port, why), -EADDRINUSE, "the port is taken: %s", why);
	close(c);
	close(l);
	is_int(rgpu_addr_connect(&a, 5000, why), -ECONNREFUSED, "nobody listens: %s", why);
	ok(strstr(why, "127.0.0.1:") && strstr(why, "rgpu-server"), "… names the address and the next step");
	strcpy(a.host, "no-such-host.invalid");
	is_int(rgpu_addr_connect(&a, 5000, why), -EHOSTUNREACH, "unknown name: %s", why);
	ok(!rgpu_addr_is_loopback(&a), "an unknown name is not loopback");
	strcpy(a.host, "::1");
	ok(rgpu_addr_is_loopback(&a), "::1 is loopback");
	strcpy(a.host, "127.3.2.1");
	ok(rgpu_addr_is_loopback(&a), "127.3.2.1 is loopback");
	strcpy(a.host, "10.0.0.1");
	ok(!rgpu_addr_is_loopback(&a), "10.0.0.1 is not");
}

/* What the name "two" has: twice 127.0.0.1, at two ports, of which one may not answer. */
static uint16_t two[2];

int __real_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **out);
int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **out)
{
	int err = __real_getaddrinfo(strcmp(host, "two") ? host : "127.0.0.1", port, hints, out);

	if (!err && !strcmp(host, "two"))
		err = __real_getaddrinfo("127.0.0.1", port, hints, &(*out)->ai_next);
	for (struct addrinfo *a = err || strcmp(host, "two") ? NULL : *out; a; a = a->ai_next)
		((struct sockaddr_in *)a->ai_addr)->sin_port = htons(two[a != *out]);
	return err;
}

/* How long the first address may take: the next one on this machine would answer even without any time left. */
static int first_ms;

int __real_poll(struct pollfd *p, nfds_t n, int ms);
int __wrap_poll(struct pollfd *p, nfds_t n, int ms)
{
	first_ms = first_ms ? first_ms : ms;
	return __real_poll(p, n, ms);
}

/* A socket that listens and has no room: who connects to it hears nothing, as behind a firewall. -1: here they all hear. */
static int silent(uint16_t *port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	int l = socket(AF_INET, SOCK_STREAM, 0);

	if (bind(l, (struct sockaddr *)&a, len) || listen(l, 0) || getsockname(l, (struct sockaddr *)&a, &len))
		return -1;
	*port = ntohs(a.sin_port);
	for (unsigned i = 0; i < 64; i++) {
		struct pollfd p = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), .events = POLLOUT};

		connect(p.fd, (struct sockaddr *)&a, len);
		if (!__real_poll(&p, 1, 200))
			return l;
	}
	return -1;
}

static void addresses_of_a_name(void)
{
	struct rgpu_addr here = {.host = "127.0.0.1"}, a = {.host = "two", .port = 1};
	char why[RGPU_WHY_MAX];
	int l = rgpu_addr_listen(&here, &two[1], why), hush = silent(&two[0]), c;

	if (hush < 0) {
		ok(true, "an address that does not answer # SKIP no socket does that here");
		return;
	}
	first_ms = 0;
	c = rgpu_addr_connect(&a, 1000, why);
	ok(c >= 0, "an address that does not answer is not the last of the name's%s%s", c < 0 ? ": " : "", c < 0 ? why : "");
	ok(first_ms > 0 && first_ms <= 500, "it leaves as much time to the other as it has (%d ms of 1000)", first_ms);
	close(c);
	close(l);
	is_int(rgpu_addr_connect(&a, 500, why), -ECONNREFUSED, "the last one's error counts: %s", why);
	two[1] = two[0];
	is_int(rgpu_addr_connect(&a, 200, why), -ETIMEDOUT, "no answer of any: %s", why);
}

static void keys(void)
{
	static const char hex[] = "000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F";
	static const struct {
		const char *name, *fmt;
		int err;
	} t[] = {
		{"plain", "rgpu-key-1\n%s\n", 0},
		{"comments, CR, no newline at the end", "# mine\n\nrgpu-key-1\r\n# a\n%s", 0},
		{"empty", "", -EINVAL},
		{"no magic", "%s\n", -EINVAL},
		{"other magic", "rgpu-key-2\n%s\n", -EINVAL},
		{"no key", "rgpu-key-1\n", -EINVAL},
		{"short key", "rgpu-key-1\nabcd\n", -EINVAL},
		{"long key", "rgpu-key-1\n%s00\n", -EINVAL},
		{"two keys", "rgpu-key-1\n%s\nrgpu-key-1\n", -EINVAL},
		{"not hex", "rgpu-key-1\nzz0102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F\n", -EINVAL},
	};
	char why[RGPU_WHY_MAX], text[256];
	struct rgpu_key k;

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		snprintf(text, sizeof(text), t[i].fmt, hex);
		is_int(rgpu_key_parse(text, &k, why), t[i].err, "key text: %s", t[i].name);
		if (t[i].err)
			continue;
		is_int(k.secret[0], 0, "… first byte");
		is_int(k.secret[31], 31, "… last byte");
		/* printf 'rgpu-key-id' and the 32 bytes | sha256sum */
		is_str(k.id, "0090e7bb", "… id");
		is_str(k.identity, "rgpu-pairing/0090e7bb", "… identity");
	}
}

static void key_files(void)
{
	char dir[] = "/tmp/rgpu-key-XXXXXX", path[64], why[RGPU_WHY_MAX];
	struct rgpu_key a, b;
	struct stat st;
	mode_t old;
	int fd;

	if (!ok(mkdtemp(dir) != NULL, "a directory"))
		return;
	snprintf(path, sizeof(path), "%s/key", dir);
	is_int(rgpu_key_load(path, &a, why), -ENOENT, "no file: %s", why);
	ok(strstr(why, path) != NULL, "… names it");
	old = umask(0777);
	is_int(rgpu_key_create(path, &a, why), 0, "a new key, whatever the umask");
	umask(old);
	stat(path, &st);
	is_int(st.st_mode & 07777, 0600, "mode");
	is_int(rgpu_key_load(path, &b, why), 0, "read again");
	ok(!memcmp(a.secret, b.secret, sizeof(a.secret)), "the same secret");
	is_str(b.id, a.id, "the same id");
	is_int(rgpu_key_create(path, &b, why), -EEXIST, "no overwriting: %s", why);
	chmod(path, 0640);
	is_int(rgpu_key_load(path, &b, why), -EACCES, "readable by the group: %s", why);
	ok(strstr(why, "chmod 600") != NULL, "… and what to do");
	chmod(path, 0600);
	fd = open(path, O_WRONLY | O_TRUNC);
	is_int(write(fd, "rgpu-key-1\0", 11), 11, "binary file");
	close(fd);
	is_int(rgpu_key_load(path, &b, why), -EINVAL, "… %s", why);
	truncate(path, 1 << 20);
	is_int(rgpu_key_load(path, &b, why), -EINVAL, "a large file: %s", why);
	is_int(rgpu_key_load(dir, &b, why), -EINVAL, "a directory: %s", why);
	unlink(path);
	rmdir(dir);
	rgpu_key_wipe(&a);
	is_int(a.secret[0] | a.secret[31], 0, "wiped");
}

/* Words of strangers reach the log, a wrong key's name for one: each is one line, and a terminal obeys none. */
static void log_lines(void)
{
	char line[64] = "";
	int fd[2], old = dup(STDERR_FILENO);

	if (pipe(fd) || dup2(fd[1], STDERR_FILENO) < 0)
		abort();
	rgpu_log_init("t", RGPU_LOG_NOTE);
	rgpu_note("a\nb\033[2Jc\177d\rü");
	dup2(old, STDERR_FILENO);
	(void)!read(fd[0], line, sizeof(line) - 1);
	is_str(line, "t: a b?[2Jc?d?ü\n", "a logged line has no control characters");
	close(fd[0]);
	close(fd[1]);
	close(old);
}

int main(void)
{
	addresses();
	sockets();
	addresses_of_a_name();
	keys();
	key_files();
	log_lines();
	return tap_done();
}
