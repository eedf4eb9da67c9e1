// SPDX-License-Identifier: MIT
/* Configuration files of the daemons: INI, with every bad line told by its number. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <ini.h>
#include "lib/conf.h"

#define SETTINGS_MAX 64 /* of all daemons, the one that has most has far fewer */

/* libinih tells the first bad line only, and its handler no number: the reader that it calls for each line counts, too. */
struct parse {
	const struct rgpu_conf *c;
	const char *path;
	FILE *f;
	int line, nbad;
	bool wanted, heard; /* this line should reach the handler; it did */
	struct {
		char name[40];
		int line;
	} seen[SETTINGS_MAX];
	int nseen;
};

static void bad(struct parse *p, const char *why)
{
	p->nbad++;
	if (p->c->bad)
		p->c->bad(p->c->arg, p->path, p->line, why);
}

static void end_line(struct parse *p)
{
	if (p->wanted && !p->heard)
		bad(p, "expected NAME = VALUE");
	p->wanted = p->heard = false;
}

static char *read_line(char *buf, int room, void *arg)
{
	struct parse *p = arg;
	size_t blanks;
	int c;

	end_line(p);
	if (!fgets(buf, room, p->f))
		return NULL;
	p->line++;
	if (!strchr(buf, '\n') && !feof(p->f)) {
		while ((c = getc(p->f)) != EOF && c != '\n')
			;
		bad(p, "the line is too long (200 characters at most)");
		strcpy(buf, "\n");
	}
	/* A line that begins with a blank would be a further line of the value before it. */
	blanks = strspn(buf, " \t");
	memmove(buf, buf + blanks, strlen(buf + blanks) + 1);
	if (*buf == '[' && !strchr(buf, ']')) {
		bad(p, "the section's ] is missing");
		strcpy(buf, "\n");
	}
	p->wanted = *buf && !strchr("[#;\r\n", *buf);
	return buf;
}

static bool may_repeat(const struct rgpu_conf *c, const char *name)
{
	for (const char *const *m = c->many; m && *m; m++)
		if (!strcmp(*m, name))
			return true;
	return false;
}

/* The settings that were taken, by their names. */
static int once(struct parse *p, const char *name, char why[RGPU_WHY_MAX])
{
	if (may_repeat(p->c, name))
		return 0;
	for (int i = 0; i < p->nseen; i++)
		if (!strcmp(p->seen[i].name, name))
			return rgpu_why(why, -EEXIST, "%s is set in line %d already: remove one of both", name, p->seen[i].line);
	return 0;
}

static void took(struct parse *p, const char *name)
{
	if (p->nseen == SETTINGS_MAX || strlen(name) >= sizeof(p->seen[0].name))
		return;
	strcpy(p->seen[p->nseen].name, name);
	p->seen[p->nseen++].line = p->line;
}

static int heard(void *arg, const char *section, const char *name, const char *value)
{
	struct parse *p = arg;
	char why[RGPU_WHY_MAX];
	int err;

	p->heard = true;
	if (!*section)
		err = rgpu_why(why, -EINVAL, "outside of a section: put [%s] above it", p->c->section);
	else if (strcmp(section, p->c->section))
		err = rgpu_why(why, -EINVAL, "unknown section [%.40s]; there is [%s]", section, p->c->section);
	else
		err = once(p, name, why);
	if (!err) {
		err = p->c->set(p->c->arg, name, value, why);
		if (!err)
			took(p, name);
	}
	if (err)
		bad(p, why);
	return 1;
}

int rgpu_conf_read(const struct rgpu_conf *c, const char *path, char why[RGPU_WHY_MAX])
{
	struct parse p = {.c = c, .path = path, .f = fopen(path, "re")};
	int err;

	if (!p.f)
		return rgpu_why(why, -errno, "cannot read %.150s: %s", path, strerror(errno));
	ini_parse_stream(read_line, &p, heard, &p);
	end_line(&p);
	err = ferror(p.f) ? rgpu_why(why, -EIO, "cannot read %.150s: it is no file, or damaged", path) : 0;
	fclose(p.f);
	return err ? err : p.nbad;
}

int rgpu_conf_bool(const char *value)
{
	static const char *const yes[] = {"yes", "true", "on", "1"}, *const no[] = {"no", "false", "off", "0"};

	for (unsigned i = 0; i < sizeof(yes) / sizeof(*yes); i++) {
		if (!strcasecmp(value, yes[i]))
			return 1;
		if (!strcasecmp(value, no[i]))
			return 0;
	}
	return -1;
}
