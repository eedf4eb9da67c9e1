/* SPDX-License-Identifier: MIT */
/* PTX seen from far enough that only its module-level statements and names can be told apart. */
#ifndef RGPU_LIB_PTXSCAN_H
#define RGPU_LIB_PTXSCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum stmt_kind { STMT_ENTRY, STMT_FUNC, STMT_VAR, STMT_ALIAS };

#define PTX_VISIBLE 1u
#define PTX_EXTERN  2u
#define PTX_WEAK    4u /* and .common */

struct stmt {
	struct stmt *next;
	unsigned unit; /* the linker's */
	enum stmt_kind what;
	unsigned linkage;
	bool defines, shared;
	const char *s, *end; /* all of it, its ; or } included */
	const char *body;    /* a function's { */
	const char *name;
	size_t name_len;
};

struct ptx_unit {
	char *text;
	struct stmt *first, **tail;
	unsigned version, sm; /* 90 for 9.0; 80 for sm_80 */
	const char *target;   /* the whole directive */
	size_t target_len;
	bool library;
};

/* Takes @text over. 0, -EINVAL and @log, -ENOMEM; the unit is to be cleared in any case. */
int ptx_unit_scan(struct ptx_unit *u, char *text, char *log, size_t log_bytes);
void ptx_unit_clear(struct ptx_unit *u);

enum tok_kind { TOK_NAME, TOK_DIRECTIVE, TOK_PUNCT, TOK_OTHER };

struct ptx_token {
	enum tok_kind kind;
	const char *s;
	size_t len;
};

/* The next token, comments left out; where the one after it is looked for, NULL at the end. */
const char *ptx_token(const char *at, const char *end, struct ptx_token *t);

#endif
