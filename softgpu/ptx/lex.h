/* SPDX-License-Identifier: MIT */
/* PTX tokens: words keep their dots ("ld.global.u32", "%tid.x", ".reg"), so that an opcode is one token. */
#ifndef SOFTGPU_PTX_LEX_H
#define SOFTGPU_PTX_LEX_H

#include "softgpu/ptx/types.h"

enum tok { T_EOF, T_WORD, T_INT, T_FLOAT, T_STRING, T_PUNCT, T_BAD };

struct token {
	enum tok kind;
	char punct; /* T_PUNCT */
	u8 fbits;   /* T_FLOAT: 32 for 0f…, 64 for 0d… and decimal */
	u32 line;
	const char *s; /* the token's text, in the module's text */
	u32 len;
	u64 val; /* T_INT: the value; T_FLOAT: its bits */
};

struct lexer {
	const char *p, *end;
	u32 line;
};

void lex_init(struct lexer *lx, const char *text, size_t len);
void lex_next(struct lexer *lx, struct token *t);
/* Drops the rest of the current line: .loc and .file have no terminator. */
void lex_skip_line(struct lexer *lx);

#endif
