// SPDX-License-Identifier: MIT
/* Reads a kernel's parameter layout out of PTX text: the .param list of its .entry. */
#include "tests/nulldrv/nulldrv.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool word_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '.' || c == '%';
}

/* The next word, bracket or comma of [*s, end). */
static size_t token(const char **s, const char *end, const char **word)
{
	const char *p = *s;

	while (p < end && isspace((unsigned char)*p))
		p++;
	*word = p;
	if (p < end && !word_char(*p)) {
		*s = p + 1;
		return 1;
	}
	while (p < end && word_char(*p))
		p++;
	*s = p;
	return (size_t)(p - *word);
}

/* ".u64" is 8: the digits are bits. 0 for what is no type. */
static uint32_t type_bytes(const char *w, size_t n)
{
	if (n < 3 || w[0] != '.' || !strchr("usbf", w[1]) || !isdigit((unsigned char)w[2]))
		return 0;
	return (uint32_t)strtoul(w + 2, NULL, 10) / 8;
}

static void add(struct null_function *f, uint32_t bytes, uint32_t align)
{
	if (f->nparams == f->room) {
		uint32_t room = f->room ? f->room * 2 : 8;
		struct ptx_param *p = realloc(f->params, room * sizeof(*p));

		if (!p)
			return;
		f->params = p;
		f->room = room;
	}
	f->param_bytes = (f->param_bytes + align - 1) / align * align;
	f->params[f->nparams++] = (struct ptx_param){f->param_bytes, bytes};
	f->param_bytes += bytes;
}

static void parse(struct null_function *f, const char *s, const char *end)
{
	uint32_t bytes = 0, align = 0, count = 1;
	bool pointee = false; /* behind .ptr: its .align is of what is pointed at */
	const char *w;
	size_t n;

	while ((n = token(&s, end, &w))) {
		uint32_t t = type_bytes(w, n);

		if (t) {
			bytes = t;
		} else if (n == 6 && !memcmp(w, ".align", 6)) {
			n = token(&s, end, &w);
			if (!pointee)
				align = (uint32_t)strtoul(w, NULL, 10);
		} else if (n == 4 && !memcmp(w, ".ptr", 4)) {
			pointee = true;
		} else if (*w == '[') {
			n = token(&s, end, &w);
			count = (uint32_t)strtoul(w, NULL, 10);
		} else if (*w == ',') {
			if (bytes)
				add(f, bytes * count, align ? align : bytes);
			bytes = align = 0;
			count = 1;
			pointee = false;
		}
	}
	if (bytes)
		add(f, bytes * count, align ? align : bytes);
}

void null_params(struct null_function *f)
{
	const char *p = f->module->ptx;
	size_t len = strlen(f->name);

	while (p && (p = strstr(p, ".entry"))) {
		p += strlen(".entry");
		p += strspn(p, " \t\r\n");
		if (!strncmp(p, f->name, len) && !word_char(p[len])) {
			const char *open = p + len + strspn(p + len, " \t\r\n");

			if (*open == '(' && strchr(open, ')'))
				parse(f, open + 1, strchr(open, ')'));
			return;
		}
	}
}
