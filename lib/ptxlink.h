/* SPDX-License-Identifier: MIT */
/* Joins PTX texts into one: what a linker does for machine code. */
#ifndef RGPU_LIB_PTXLINK_H
#define RGPU_LIB_PTXLINK_H

#include <stdbool.h>
#include <stddef.h>

struct ptxlink;

struct ptxlink *ptxlink_new(void);
void ptxlink_free(struct ptxlink *l);

/*
 * One more text, which ends with a NUL and is taken over, whatever comes of it. @library: nobody asked for this one by itself,
 * so only what others can name or what they use of it goes along. 0; -EINVAL: not PTX, @log has why; -ENOMEM.
 */
int ptxlink_add(struct ptxlink *l, char *text, bool library, char *log, size_t log_bytes);
/* No kernel is to have more registers than @n, unless its text says how many; 0: any. */
void ptxlink_limit_registers(struct ptxlink *l, unsigned n);

bool ptxlink_last_is_whole(const struct ptxlink *l); /* the last text declares nothing that it does not define */

/* The one text. 0; -EEXIST: defined twice, @log has what; -EINVAL: no input; -ENOMEM. */
int ptxlink_join(struct ptxlink *l, char **text, size_t *bytes, char *log, size_t log_bytes);

#endif
