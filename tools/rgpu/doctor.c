// SPDX-License-Identifier: MIT
/* rgpu doctor: runs all checks and prints, for each that fails, the cause and one command that mends it. */
#include "tools/rgpu/doctor.h"
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "lib/log.h"
#include "tools/rgpu/cmd.h"
#include "tools/rgpu/sys.h"

static const char help[] =
	"usage: rgpu doctor [--json] [--list] [--root DIR]\n\n"
	"Looks at everything between a program and its GPU, and prints for each fault the cause and one command that mends it.\n"
	"As root it sees all; without, it says what it could not see.\n\n"
	"  --json      one object with every check\n"
	"  --list      what is looked at\n"
	"  --root DIR  look at the files of another root\n\n"
	"Exit status: 0 nothing is wrong; 1 something is; 2 wrong usage.\n";

static const struct check *const topics[] = {checks_module, checks_node, checks_proxy, checks_server, checks_lib};

static void say(char *out, size_t room, const char *fmt, va_list ap)
{
	vsnprintf(out, room, fmt, ap);
}

#define SAY(verdict_)                                                                                                            \
	do {                                                                                                                     \
		va_list ap;                                                                                                      \
                                                                                                                                 \
		va_start(ap, fmt);                                                                                               \
		f->verdict = verdict_;                                                                                           \
		say(f->text, sizeof(f->text), fmt, ap);                                                                          \
		va_end(ap);                                                                                                      \
	} while (0)

void good(struct finding *f, const char *fmt, ...)
{
	SAY(GOOD);
}

void skip(struct finding *f, const char *fmt, ...)
{
	SAY(SKIP);
}

void bad(struct finding *f, const char *fmt, ...)
{
	SAY(BAD);
}

void fix(struct finding *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(f->fix, sizeof(f->fix), fmt, ap);
	va_end(ap);
}

static void json_string(const char *s)
{
	putchar('"');
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			printf("\\%c", *s);
		else if ((unsigned char)*s < ' ')
			printf("\\u%04x", *s);
		else
			putchar(*s);
	}
	putchar('"');
}

static void print_json(const struct check *c, const struct finding *f, bool first)
{
	static const char *const words[] = {"good", "bad", "skipped"};

	printf("%s\n  {\"name\": \"%s\", \"what\": ", first ? "" : ",", c->name);
	json_string(c->what);
	printf(", \"result\": \"%s\", \"text\": ", words[f->verdict]);
	json_string(f->text);
	if (f->verdict == BAD) {
		printf(", \"next\": ");
		json_string(f->fix);
	}
	putchar('}');
}

static void print_text(const struct check *c, const struct finding *f)
{
	static const char *const words[] = {"good", "BAD", "-"}, *const colours[] = {"32", "1;31", "2"};

	if (isatty(STDOUT_FILENO))
		printf("\033[%sm%-4s\033[0m  %-18s %s\n", colours[f->verdict], words[f->verdict], c->name, f->text);
	else
		printf("%-4s  %-18s %s\n", words[f->verdict], c->name, f->text);
	if (f->verdict == BAD)
		printf("      next: %s\n", f->fix);
}

static int run_all(bool json)
{
	static struct doctor d = {.conf = PROXY_CONF};
	unsigned nbad = 0;
	bool first = true;

	if (json)
		printf("{\"version\": \"%s\", \"checks\": [", RGPU_VERSION);
	for (unsigned t = 0; t < sizeof(topics) / sizeof(*topics); t++) {
		for (const struct check *c = topics[t]; c->name; c++) {
			struct finding f = {.verdict = SKIP, .text = "not looked at"};

			c->look(&d, &f);
			nbad += f.verdict == BAD;
			if (json)
				print_json(c, &f, first);
			else
				print_text(c, &f);
			fflush(stdout);
			first = false;
		}
	}
	if (json)
		printf("\n], \"bad\": %u}\n", nbad);
	else if (nbad)
		printf("\n%u %s wrong. Mend the first one, then look again: others may be its consequences.\n", nbad,
		       nbad == 1 ? "thing is" : "things are");
	rgpu_auth_free(&d.cfg.auth);
	return nbad != 0;
}

static int list(void)
{
	for (unsigned t = 0; t < sizeof(topics) / sizeof(*topics); t++)
		for (const struct check *c = topics[t]; c->name; c++)
			printf("%-18s %s\n", c->name, c->what);
	return 0;
}

int cmd_doctor(int argc, char **argv)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'},
		{"list", no_argument, NULL, 'l'},
		{"root", required_argument, NULL, 'r'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	bool json = false;
	int c;

	rgpu_log_init("", -1); /* findings are told here, not by those who are asked */
	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case 'j':
			json = true;
			break;
		case 'l':
			return list();
		case 'r':
			sys_root = optarg;
			break;
		default:
			fputs(help, c == 'h' ? stdout : stderr);
			return c == 'h' ? 0 : 2;
		}
	}
	if (optind < argc) {
		fputs(help, stderr);
		return 2;
	}
	return run_all(json);
}
