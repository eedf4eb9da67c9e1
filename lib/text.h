/* SPDX-License-Identifier: MIT */
/* Words of the other end of a link that go into our log or on to somebody's terminal. */
#ifndef RGPU_LIB_TEXT_H
#define RGPU_LIB_TEXT_H

#include <stddef.h>

/* Ends the text within its @size bytes and leaves printable ASCII in it alone. */
static inline void text_printable(char *s, size_t size)
{
	s[size - 1] = 0;
	for (; *s; s++)
		if (*s < ' ' || *s > '~')
			*s = '?';
}

#endif
