// SPDX-License-Identifier: MIT
/* Cuts a PTX text into its module-level statements. */
#include "lib/ptxscan.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *skip_space(const char *p, const char *end)
{
	while (p < end) {
		if (isspace((unsigned char)*p)) {
			p++;
		} else if (end - p > 1 && p[0] == '/' && p[1] == '/') {
			while (p < end && *p != '\n')
				p++;
		} else if (end - p > 1 && p[0] == '/' && p[1] == '*') {
			const char *q = memmem(p + 2, end - p - 2, "*/", 2);

			p = q ? q + 2 : end;
		} else {
			break;
		}
	}
	return p;
}

static bool in_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$';
}

const char *ptx_token(const char *at, const char *end, struct ptx_token *t)
{
	const char *p = skip_space(at, end);

	if (p == end)
		return NULL;
	t->s = p;
	if (*p == '"') {
		t->kind = TOK_OTHER;
		for (p++; p < end && *p != '"'; p++)
			p += *p == '\\' && p + 1 < end;
		p += p < end;
	} else if (*p == '.' || isdigit((unsigned char)*p)) {
		t->kind = *p == '.' ? TOK_DIRECTIVE : TOK_OTHER;
		for (p++; p < end && in_name(*p); p++)
			;
	} else if (in_name(*p) || *p == '%') {
		t->kind = TOK_NAME;
		for (p++; p < end && in_name(*p); p++)
			;
	} else {
		t->kind = TOK_PUNCT;
		p++;
	}
	t->len = p - t->s;
	return p;
}

static bool is(const struct ptx_token *t, const char *word)
{
	return t->len == strlen(word) && !memcmp(t->s, word, t->len);
}

static const char *to_end_of_line(const char *p, const char *end)
{
	while (p < end && *p != '\n')
		p++;
	return p;
}

static int bad(const struct ptx_unit *u, const char *at, const char *what, char *log, size_t log_bytes)
{
	unsigned line = 1;

	for (const char *p = u->text; p < at; p++)
		line += *p == '\n';
	snprintf(log, log_bytes, "line %u: %s", line, what);
	return -EINVAL;
}

/* .version, .target, .address_size, and what is said of source files: those that end with their line. NULL: none of them. */
static const char *line_directive(struct ptx_unit *u, const struct ptx_token *t, const char *end)
{
	const char *eol = to_end_of_line(t->s, end);
	unsigned major = 0, minor = 0, sm = 0;

	if (is(t, ".version")) {
		sscanf(t->s, ".version %u.%u", &major, &minor);
		u->version = major * 10 + minor;
	} else if (is(t, ".target")) {
		sscanf(t->s, ".target sm_%u", &sm);
		u->sm = sm;
		u->target = t->s;
		u->target_len = eol - t->s;
	} else if (!is(t, ".address_size") && !is(t, ".file") && !is(t, ".loc")) {
		return NULL;
	}
	return eol;
}

/* @p stands behind a bracket: the place behind the one that closes it. NULL: there is none. */
static const char *close_bracket(const char *p, const char *end)
{
	struct ptx_token t;
	int depth = 1;

	while (depth && (p = ptx_token(p, end, &t))) {
		if (t.kind != TOK_PUNCT)
			continue;
		depth += *t.s == '(' || *t.s == '{' || *t.s == '[';
		depth -= *t.s == ')' || *t.s == '}' || *t.s == ']';
	}
	return p;
}

/* Behind .entry or .func: return parameters, name, parameters, directives, and a body or ;. */
static const char *function(struct stmt *s, const char *p, const char *end)
{
	struct ptx_token t;

	while ((p = ptx_token(p, end, &t))) {
		if (t.kind == TOK_NAME && !s->name) {
			s->name = t.s;
			s->name_len = t.len;
		} else if (t.kind == TOK_PUNCT && *t.s == '(') {
			p = close_bracket(p, end);
		} else if (t.kind == TOK_PUNCT && *t.s == '{') {
			s->body = t.s;
			s->defines = true;
			return close_bracket(p, end);
		} else if (t.kind == TOK_PUNCT && *t.s == ';') {
			return p;
		}
		if (!p)
			break;
	}
	return NULL;
}

/* Behind the state space: the name is the last word before an array's bracket, an initial value or the end. */
static const char *variable(struct stmt *s, const char *p, const char *end)
{
	bool named = false;
	struct ptx_token t;

	while ((p = ptx_token(p, end, &t))) {
		if (t.kind == TOK_NAME && !named) {
			s->name = t.s;
			s->name_len = t.len;
		} else if (t.kind == TOK_PUNCT && strchr("([{", *t.s)) {
			named |= *t.s == '[' && s->name;
			p = close_bracket(p, end);
		} else if (t.kind == TOK_PUNCT && (*t.s == '=' || *t.s == ',')) {
			named = true;
		} else if (t.kind == TOK_PUNCT && *t.s == ';') {
			return p;
		}
		if (!p)
			break;
	}
	return NULL;
}

static unsigned linkage_of(const struct ptx_token *t)
{
	return is(t, ".visible")		    ? PTX_VISIBLE
	       : is(t, ".extern")		    ? PTX_EXTERN
	       : is(t, ".weak") || is(t, ".common") ? PTX_WEAK
						    : 0;
}

/* One statement that has a name; @p is behind its first token. NULL: it does not end. */
static const char *named(struct ptx_unit *u, struct ptx_token t, const char *p, const char *end)
{
	struct stmt *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->s = t.s;
	*u->tail = s;
	u->tail = &s->next;
	for (unsigned l; (l = linkage_of(&t));) {
		s->linkage |= l;
		p = ptx_token(p, end, &t);
		if (!p)
			return NULL;
	}
	s->shared = is(&t, ".shared");
	s->what = is(&t, ".entry") ? STMT_ENTRY : is(&t, ".func") ? STMT_FUNC : is(&t, ".alias") ? STMT_ALIAS : STMT_VAR;
	if (s->what == STMT_ENTRY || s->what == STMT_FUNC) {
		p = function(s, p, end);
	} else {
		s->defines = !(s->linkage & PTX_EXTERN);
		p = variable(s, p, end);
	}
	s->end = p;
	return p;
}

int ptx_unit_scan(struct ptx_unit *u, char *text, char *log, size_t log_bytes)
{
	const char *end = text + strlen(text), *p = text, *next;
	struct ptx_token t;

	*u = (struct ptx_unit){.text = text, .tail = &u->first};
	errno = 0;
	while ((next = ptx_token(p, end, &t))) {
		if ((p = line_directive(u, &t, end)))
			continue;
		if (t.kind == TOK_PUNCT && *t.s == ';') {
			p = next;
		} else if (is(&t, ".section")) {
			while ((next = ptx_token(next, end, &t)) && !(t.kind == TOK_PUNCT && *t.s == '{'))
				;
			p = next ? close_bracket(next, end) : NULL;
		} else if (is(&t, ".pragma")) {
			while ((next = ptx_token(next, end, &t)) && !(t.kind == TOK_PUNCT && *t.s == ';'))
				;
			p = next;
		} else if (t.kind == TOK_DIRECTIVE && u->version) {
			p = named(u, t, next, end);
		} else {
			return bad(u, t.s,
				   u->version ? "a directive is expected" : "this is not PTX: it does not begin with .version",
				   log, log_bytes);
		}
		if (!p)
			return errno == ENOMEM ? -ENOMEM : bad(u, t.s, "a statement does not end", log, log_bytes);
	}
	if (!u->version || !u->target)
		return bad(u, text, "no .version or no .target", log, log_bytes);
	return 0;
}

void ptx_unit_clear(struct ptx_unit *u)
{
	while (u->first) {
		struct stmt *s = u->first;

		u->first = s->next;
		free(s);
	}
	free(u->text);
	*u = (struct ptx_unit){0};
}
