/* SPDX-License-Identifier: MIT */
/* The PTX tokenizer; it works on a length, never on a terminator, so truncated text is safe. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/ptx/lex.h"

enum { C_SPACE = 1, C_WORD = 2, C_DIGIT = 4 };

static u8 char_class(char c)
{
	if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '\v')
		return C_SPACE;
	if (c >= '0' && c <= '9')
		return C_WORD | C_DIGIT;
	if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%' || c == '.')
		return C_WORD;
	return 0;
}

void lex_init(struct lexer *lx, const char *text, size_t len)
{
	const char *nul = memchr(text, 0, len);

	lx->p = text;
	lx->end = nul ? nul : text + len;
	lx->line = 1;
}

void lex_skip_line(struct lexer *lx)
{
	while (lx->p < lx->end && *lx->p != '\n')
		lx->p++;
}

/* Skips blanks and comments; false when a block comment does not end. */
static bool skip_blank(struct lexer *lx)
{
	for (;;) {
		while (lx->p < lx->end && char_class(*lx->p) == C_SPACE)
			lx->line += *lx->p++ == '\n';
		if (lx->end - lx->p < 2 || *lx->p != '/')
			return true;
		if (lx->p[1] == '/') {
			lex_skip_line(lx);
		} else if (lx->p[1] == '*') {
			for (lx->p += 2;; lx->p++) {
				if (lx->end - lx->p < 2)
					return false;
				if (lx->p[0] == '*' && lx->p[1] == '/')
					break;
				lx->line += *lx->p == '\n';
			}
			lx->p += 2;
		} else {
			return true;
		}
	}
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 99;
}

static bool parse_int(struct token *t, const char *s, u32 len, unsigned base)
{
	u64 v = 0;

	if (len && (s[len - 1] == 'U'))
		len--;
	if (!len)
		return false;
	for (u32 i = 0; i < len; i++) {
		unsigned d = digit(s[i]);

		if (d >= base || v > (UINT64_MAX - d) / base)
			return false;
		v = v * base + d;
	}
	t->kind = T_INT;
	t->val = v;
	return true;
}

static bool parse_decimal_float(struct token *t)
{
	char buf[64], *end;
	double v;

	if (t->len >= sizeof(buf))
		return false;
	memcpy(buf, t->s, t->len);
	buf[t->len] = 0;
	v = strtod(buf, &end);
	if (*end)
		return false;
	t->kind = T_FLOAT;
	t->fbits = 64;
	memcpy(&t->val, &v, 8);
	return true;
}

static bool parse_number(struct token *t)
{
	const char *s = t->s;
	u32 len = t->len;

	if (len > 2 && s[0] == '0') {
		char k = s[1] | 32;

		if (k == 'x')
			return parse_int(t, s + 2, len - 2, 16);
		if (k == 'b')
			return parse_int(t, s + 2, len - 2, 2);
		if ((k == 'f' && len == 10) || (k == 'd' && len == 18)) {
			if (!parse_int(t, s + 2, len - 2, 16))
				return false;
			t->kind = T_FLOAT;
			t->fbits = k == 'f' ? 32 : 64;
			return true;
		}
	}
	if (memchr(s, '.', len) || memchr(s, 'e', len) || memchr(s, 'E', len))
		return parse_decimal_float(t);
	return parse_int(t, s, len, len > 1 && s[0] == '0' ? 8 : 10);
}

void lex_next(struct lexer *lx, struct token *t)
{
	if (!skip_blank(lx)) {
		*t = (struct token){.kind = T_BAD, .line = lx->line, .s = lx->p, .len = 0};
		return;
	}
	*t = (struct token){.kind = T_EOF, .line = lx->line, .s = lx->p};
	if (lx->p >= lx->end)
		return;

	u8 cl = char_class(*lx->p);

	if (cl & C_WORD) {
		const char *p = lx->p;

		for (;;) {
			/* ".reg.b32" is two directives, "ld.b32" one opcode */
			while (p < lx->end && (char_class(*p) & C_WORD) && !(*p == '.' && p > lx->p && *lx->p == '.'))
				p++;
			/* "::" joins words: ld.shared::cta.b32 */
			if (lx->end - p > 2 && p[0] == ':' && p[1] == ':' && (char_class(p[2]) & C_WORD))
				p += 2;
			else if ((cl & C_DIGIT) && lx->end - p > 1 && (*p == '+' || *p == '-') && (p[-1] | 32) == 'e' &&
				 memchr(lx->p, '.', (size_t)(p - lx->p)))
				p++; /* a decimal float's exponent sign */
			else
				break;
		}
		t->len = (u32)(p - lx->p);
		lx->p = p;
		t->kind = T_WORD;
		if ((cl & C_DIGIT) && !parse_number(t))
			t->kind = T_BAD;
		return;
	}
	if (*lx->p == '"') {
		const char *p = ++lx->p;

		while (p < lx->end && *p != '"' && *p != '\n')
			p++;
		t->s = lx->p;
		t->len = (u32)(p - lx->p);
		t->kind = p < lx->end && *p == '"' ? T_STRING : T_BAD;
		lx->p = p < lx->end ? p + 1 : p;
		return;
	}
	t->kind = strchr("{}()[]<>,;:=+-*|!@~&", *lx->p) ? T_PUNCT : T_BAD;
	t->punct = *lx->p++;
	t->len = 1;
}
