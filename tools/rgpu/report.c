// SPDX-License-Identifier: MIT
/* rgpu bug-report: what a report needs on one page, without keys, addresses or names of this site. */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tools/rgpu/cmd.h"
#include "tools/rgpu/sys.h"

static const char help[] =
	"usage: rgpu bug-report [--output FILE]\n\n"
	"Prints versions, the checks of rgpu doctor, the configuration and the ends of the logs. Long rows of hex digits (keys,\n"
	"tokens, sessions), addresses, and this machine's and the users' names are replaced; read it all the same before you "
	"send it.\n";

#define LOG_MAX (256 << 10)

static bool word_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

static bool hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* How many bytes at @s are an IPv4 address, at least a dotted quad that stands alone; 0: none. */
static size_t ipv4(const char *s)
{
	unsigned a, b, c, d;
	int n = 0;

	/* A dot behind it may end a sentence; one with a digit is a longer number. */
	if (!isdigit(*s) || sscanf(s, "%3u.%3u.%3u.%3u%n", &a, &b, &c, &d, &n) != 4 || a > 255 || b > 255 || c > 255 || d > 255 ||
	    (s[n] == '.' && isdigit(s[n + 1])) || a == 127 || a == 0)
		return 0;
	return n;
}

/* An IPv6 address: hex groups with at least three colons, or two side by side; at its end there may be an IPv4 one. */
static size_t ipv6(const char *s)
{
	size_t n = strspn(s, "0123456789abcdefABCDEF:");
	bool gap = false;
	unsigned colons = 0;

	for (size_t i = 0; i < n; i++) {
		colons += s[i] == ':';
		gap |= i && s[i] == ':' && s[i - 1] == ':';
	}
	/* 12:34:56 is a time; ::1 says nothing. */
	if (n < 4 || (colons < 3 && !gap))
		return 0;
	return s[n] == '.' ? n + strspn(s + n, "0123456789.") : n;
}

/* How many bytes at @s, before which @text stands, are names out of certificates, as messages have them; 0: none. */
static size_t cert_names(const char *text, const char *s)
{
	static const struct {
		const char *before, *end;
	} where[] = {
		{"certificate (", ")"}, {"certificate is for ", ":"}, {"issued by \"", "\""},	   {"names it \"", "\""},
		{"issuer, \"", "\""},	{"a client (", ")"},	      {"with certificate ", " ,"}, {" certificate ", " "},
		{", name ", ","},	{"client = ", " \n"},	      {"certificate: ", ","},
	};

	for (unsigned i = 0; i < sizeof(where) / sizeof(*where); i++) {
		size_t len = strlen(where[i].before), n;

		if ((size_t)(s - text) < len || strncmp(s - len, where[i].before, len))
			continue;
		n = strcspn(s, where[i].end);
		/* Of a log's line about a session. */
		if (!strcmp(where[i].before, " certificate ") && strncmp(s + n, " from ", 6) && strncmp(s + n, " uid ", 5) &&
		    strncmp(s + n, " was refused", 12))
			continue;
		return n;
	}
	return 0;
}

/* Copies @text without what would tell keys, addresses and names. @names: ended by NULL. */
static void redact(const char *text, const char *const *names, FILE *to)
{
	const char *s = text;

	while (*s) {
		bool begin = s == text || !word_char(s[-1]);
		size_t n = 0;

		while (begin && hex(s[n]))
			n++;
		if (begin && n >= 16 && !word_char(s[n])) {
			fprintf(to, "[%zu hex digits]", n);
			s += n;
			continue;
		}
		n = begin && (s == text || s[-1] != '.') ? ipv4(s) : 0;
		if (!n && begin && (s == text || s[-1] != ':'))
			n = ipv6(s);
		if (n) {
			fputs("[address]", to);
			s += n;
			continue;
		}
		n = cert_names(text, s);
		if (n && *s != '*') {
			fputs("[name]", to);
			s += n;
			continue;
		}
		n = 0;
		for (unsigned i = 0; begin && names[i]; i++) {
			size_t len = strlen(names[i]);

			if (len < 2 || strncmp(s, names[i], len) || word_char(s[len]))
				continue;
			fprintf(to, "[name %u]", i);
			s += len;
			n = 1;
			break;
		}
		if (!n)
			fputc(*s++, to);
	}
}

static void section(FILE *to, const char *const *names, const char *title, const char *const argv[])
{
	static char out[LOG_MAX];
	int status;

	fflush(stdout);
	status = sys_run(argv, out, sizeof(out));
	fprintf(to, "== %s\n", title);
	if (status == 127)
		fprintf(to, "(there is no %s here)\n", argv[0]);
	else
		redact(out, names, to);
	if (status && status != 127)
		fprintf(to, "(status %d)\n", status);
	fputc('\n', to);
}

/* The configured server's name, and this machine's and user's. */
static void collect_names(const char *names[8], char host[256], char server[300])
{
	FILE *f = fopen("/etc/rgpu/proxy.conf", "re");
	char line[400];
	unsigned n = 0;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, " server = %299[^:; \n]", server) == 1 && strncmp(server, "localhost", 9))
			names[n++ % 6] = server;
	if (f)
		fclose(f);
	if (!gethostname(host, 255) && *host && strcmp(host, "localhost"))
		names[n++ % 6] = host;
	if (getenv("SUDO_USER"))
		names[n++ % 6] = getenv("SUDO_USER");
	if (getenv("USER") && strcmp(getenv("USER"), "root"))
		names[n++ % 6] = getenv("USER");
	names[n % 7] = NULL;
}

int cmd_report(int argc, char **argv)
{
	static const struct option options[] = {
		{"output", required_argument, NULL, 'o'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	static const struct {
		const char *title;
		const char *argv[8];
	} parts[] = {
		{"kernel", {"uname", "-srvm"}},
		{"system", {"cat", "/etc/os-release"}},
		{"packages", {"sh", "-c", "dpkg-query -W '*rgpu*' 2>/dev/null"}},
		{"doctor", {"/proc/self/exe", "doctor"}},
		{"status", {"/proc/self/exe", "status"}},
		{"configuration", {"sh", "-c", "head -n 200 /etc/rgpu/*.conf"}},
		{"module", {"sh", "-c", "modinfo rgpu; grep . /sys/module/rgpu/parameters/* /sys/class/rgpu/rgpu-ctl/*"}},
		{"dkms", {"dkms", "status"}},
		{"kernel log", {"sh", "-c", "dmesg 2>/dev/null | grep -i rgpu | tail -n 200"}},
		{"proxy log", {"journalctl", "-q", "-u", "rgpu-proxy", "-n", "200", "--no-pager"}},
		{"server log", {"journalctl", "-q", "-u", "rgpu-server", "-n", "200", "--no-pager"}},
	};
	static char host[256], server[300];
	const char *names[8] = {NULL};
	char self[PATH_MAX];
	const char *path = "standard output";
	FILE *to = stdout;
	ssize_t n;
	int c;

	while ((c = getopt_long(argc, argv, "ho:", options, NULL)) != -1) {
		if (c != 'o') {
			fputs(help, c == 'h' ? stdout : stderr);
			return c == 'h' ? 0 : 2;
		}
		path = optarg;
		to = fopen(path, "we");
		if (!to) {
			fprintf(stderr, "rgpu bug-report: %s: %s\n", path, strerror(errno));
			return 1;
		}
	}
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	self[n > 0 ? n : 0] = 0;
	collect_names(names, host, server);
	fprintf(to, "rgpu %s bug report\n\n", RGPU_VERSION);
	for (unsigned i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		const char *v[9] = {NULL};

		memcpy(v, parts[i].argv, sizeof(parts[i].argv));
		if (!strcmp(v[0], "/proc/self/exe"))
			v[0] = self;
		section(to, names, parts[i].title, v);
	}
	if (!fflush(to) && !ferror(to))
		return 0;
	fprintf(stderr, "rgpu bug-report: %s: %s\n", path, strerror(errno ? errno : EIO));
	return 1;
}
