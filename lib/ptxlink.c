// SPDX-License-Identifier: MIT
/* Joins PTX texts: module-level statements are told apart, matched by name, and written out again, those that nobody uses left
 * out. */
#include "lib/ptxlink.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/ptxscan.h"

/* A name: of one text, or of all of them. */
struct symbol {
	struct symbol *chain;
	const char *name;
	size_t len;
	unsigned unit; /* + 1; 0: everybody's */
	struct stmt *def, *decl;
	bool live, rename;
};

#define BUCKETS 4096u

struct ptxlink {
	struct ptx_unit *unit;
	unsigned nunits;
	struct symbol *bucket[BUCKETS];
	struct symbol **work; /* live ones whose definition was not looked at */
	size_t nwork, work_room;
	unsigned max_regs;
	FILE *out;
	bool no_memory;
};

struct ptxlink *ptxlink_new(void)
{
	return calloc(1, sizeof(struct ptxlink));
}

static void forget_symbols(struct ptxlink *l)
{
	for (unsigned i = 0; i < BUCKETS; i++)
		while (l->bucket[i]) {
			struct symbol *s = l->bucket[i];

			l->bucket[i] = s->chain;
			free(s);
		}
}

void ptxlink_free(struct ptxlink *l)
{
	forget_symbols(l);
	for (unsigned i = 0; i < l->nunits; i++)
		ptx_unit_clear(&l->unit[i]);
	free(l->unit);
	free(l->work);
	free(l);
}

int ptxlink_add(struct ptxlink *l, char *text, bool library, char *log, size_t log_bytes)
{
	struct ptx_unit *more = realloc(l->unit, (l->nunits + 1) * sizeof(*more));
	int r;

	if (!more) {
		free(text);
		return -ENOMEM;
	}
	l->unit = more;
	r = ptx_unit_scan(&l->unit[l->nunits], text, log, log_bytes);
	if (r) {
		ptx_unit_clear(&l->unit[l->nunits]);
		return r;
	}
	for (struct stmt *t = l->unit[l->nunits].first; t; t = t->next)
		t->unit = l->nunits;
	l->unit[l->nunits++].library = library;
	return 0;
}

void ptxlink_limit_registers(struct ptxlink *l, unsigned n)
{
	l->max_regs = n;
}

bool ptxlink_last_is_whole(const struct ptxlink *l)
{
	for (struct stmt *t = l->unit[l->nunits - 1].first; t; t = t->next)
		if (t->linkage & PTX_EXTERN && !t->shared)
			return false;
	return true;
}

static uint32_t hash_of(const char *name, size_t len)
{
	uint32_t h = 2166136261u;

	while (len--)
		h = (h ^ (uint8_t)*name++) * 16777619u;
	return h % BUCKETS;
}

static struct symbol *find(struct ptxlink *l, unsigned unit, const char *name, size_t len)
{
	for (struct symbol *s = l->bucket[hash_of(name, len)]; s; s = s->chain)
		if (s->unit == unit && s->len == len && !memcmp(s->name, name, len))
			return s;
	return NULL;
}

static struct symbol *symbol(struct ptxlink *l, unsigned unit, const char *name, size_t len)
{
	uint32_t h = hash_of(name, len);
	struct symbol *s = find(l, unit, name, len);

	if (s)
		return s;
	s = calloc(1, sizeof(*s));
	if (!s) {
		l->no_memory = true;
		return NULL;
	}
	*s = (struct symbol){.chain = l->bucket[h], .name = name, .len = len, .unit = unit};
	l->bucket[h] = s;
	return s;
}

static bool local(const struct stmt *t)
{
	return !(t->linkage & (PTX_VISIBLE | PTX_EXTERN | PTX_WEAK)) && t->what != STMT_ENTRY;
}

/* Makes the symbols. A strong definition replaces a weak one; a second strong one is an error. */
static int enter_names(struct ptxlink *l, char *log, size_t log_bytes)
{
	for (unsigned u = 0; u < l->nunits; u++)
		for (struct stmt *t = l->unit[u].first; t; t = t->next) {
			struct symbol *s;

			if (!t->name)
				continue;
			s = symbol(l, local(t) ? u + 1 : 0, t->name, t->name_len);
			if (!s)
				return -ENOMEM;
			if (!t->defines) {
				s->decl = s->decl ? s->decl : t;
			} else if (!s->def || s->def->linkage & PTX_WEAK) {
				if (!s->def || !(t->linkage & PTX_WEAK))
					s->def = t;
			} else if (!(t->linkage & PTX_WEAK)) {
				snprintf(log, log_bytes, "multiple definition of '%.*s'", (int)t->name_len, t->name);
				return -EEXIST;
			}
		}
	/* A text's own name that another text has, too, gets another one. */
	for (unsigned i = 0; i < BUCKETS; i++)
		for (struct symbol *s = l->bucket[i]; s; s = s->chain)
			for (struct symbol *o = l->bucket[i]; s->unit && o; o = o->chain)
				s->rename |= o->unit != s->unit && o->len == s->len && !memcmp(o->name, s->name, s->len);
	return l->no_memory ? -ENOMEM : 0;
}

static void use(struct ptxlink *l, struct symbol *s)
{
	if (!s || s->live)
		return;
	s->live = true;
	if (l->nwork == l->work_room) {
		size_t room = l->work_room ? 2 * l->work_room : 256;
		struct symbol **p = realloc(l->work, room * sizeof(*p));

		if (!p) {
			l->no_memory = true;
			return;
		}
		l->work = p;
		l->work_room = room;
	}
	l->work[l->nwork++] = s;
}

/* What a name in this text means. NULL: nothing at the module's level. */
static struct symbol *meaning(struct ptxlink *l, unsigned unit, const char *name, size_t len)
{
	struct symbol *s = find(l, unit + 1, name, len);

	return s ? s : find(l, 0, name, len);
}

static void use_names(struct ptxlink *l, const struct stmt *t)
{
	struct ptx_token tok;

	for (const char *at = t->s; (at = ptx_token(at, t->end, &tok));)
		if (tok.kind == TOK_NAME)
			use(l, meaning(l, t->unit, tok.s, tok.len));
}

/* Kernels, and what a program can ask for by name; from there on what those use. */
static void find_live(struct ptxlink *l)
{
	for (unsigned u = 0; u < l->nunits; u++)
		for (struct stmt *t = l->unit[u].first; t; t = t->next) {
			bool root = t->linkage & (PTX_VISIBLE | PTX_WEAK) ? t->what == STMT_ENTRY || t->what == STMT_VAR
									  : !l->unit[u].library && t->what != STMT_FUNC;

			if (t->name && t->defines && root)
				use(l, meaning(l, u, t->name, t->name_len));
		}
	while (l->nwork) {
		struct symbol *s = l->work[--l->nwork];

		if (s->def)
			use_names(l, s->def);
		if (s->decl)
			use_names(l, s->decl);
	}
}

/* A piece of a text, its own names changed where they must be. */
static void write_text(struct ptxlink *l, unsigned unit, const char *s, const char *end)
{
	const char *done = s;
	struct ptx_token tok;

	for (const char *at = s; (at = ptx_token(at, end, &tok));) {
		struct symbol *name = tok.kind == TOK_NAME ? find(l, unit + 1, tok.s, tok.len) : NULL;

		if (!name || !name->rename)
			continue;
		fwrite(done, 1, tok.s + tok.len - done, l->out);
		fprintf(l->out, "$u%u", unit);
		done = tok.s + tok.len;
	}
	fwrite(done, 1, end - done, l->out);
}

static bool says_registers(const struct stmt *t)
{
	struct ptx_token tok;

	for (const char *at = t->s; (at = ptx_token(at, t->body, &tok));)
		if (tok.kind == TOK_DIRECTIVE && tok.len == strlen(".maxnreg") && !memcmp(tok.s, ".maxnreg", tok.len))
			return true;
	return false;
}

static void write_stmt(struct ptxlink *l, const struct stmt *t)
{
	if (l->max_regs && t->what == STMT_ENTRY && t->body && !says_registers(t)) {
		write_text(l, t->unit, t->s, t->body);
		fprintf(l->out, ".maxnreg %u\n", l->max_regs);
		write_text(l, t->unit, t->body, t->end);
	} else {
		write_text(l, t->unit, t->s, t->end);
	}
	fputc('\n', l->out);
}

/* What is used of a kind: definitions, or the declarations of what has none here. */
static void write_all(struct ptxlink *l, enum stmt_kind what, bool heads)
{
	for (unsigned u = 0; u < l->nunits; u++)
		for (struct stmt *t = l->unit[u].first; t; t = t->next) {
			struct symbol *s = t->name && t->what == what ? meaning(l, u, t->name, t->name_len) : NULL;

			if (!s || !s->live)
				continue;
			if (heads && t == s->def && t->body) {
				write_text(l, u, t->s, t->body);
				fputs(";\n", l->out);
			} else if (heads ? t == s->decl && !(s->def && s->def->body)
					 : t == s->def && (t->body || what != STMT_FUNC)) {
				write_stmt(l, t);
			} else if (!heads && what == STMT_VAR && !s->def && t == s->decl) {
				write_stmt(l, t);
			}
		}
}

static void write_header(struct ptxlink *l)
{
	const struct ptx_unit *newest = l->unit, *largest = l->unit;

	for (unsigned u = 1; u < l->nunits; u++) {
		if (l->unit[u].version > newest->version)
			newest = &l->unit[u];
		if (l->unit[u].sm > largest->sm)
			largest = &l->unit[u];
	}
	fprintf(l->out, ".version %u.%u\n%.*s\n.address_size 64\n", newest->version / 10, newest->version % 10,
		(int)largest->target_len, largest->target);
}

int ptxlink_join(struct ptxlink *l, char **text, size_t *bytes, char *log, size_t log_bytes)
{
	int r;

	if (!l->nunits)
		return -EINVAL;
	r = enter_names(l, log, log_bytes);
	if (r)
		goto out;
	find_live(l);
	r = -ENOMEM;
	*text = NULL;
	l->out = open_memstream(text, bytes);
	if (!l->out)
		goto out;
	write_header(l);
	write_all(l, STMT_FUNC, true);
	write_all(l, STMT_ENTRY, true);
	write_all(l, STMT_VAR, false);
	write_all(l, STMT_FUNC, false);
	write_all(l, STMT_ALIAS, false);
	write_all(l, STMT_ENTRY, false);
	if (!fclose(l->out) && !l->no_memory)
		r = 0;
	else
		free(*text);
out:
	forget_symbols(l);
	return r;
}
