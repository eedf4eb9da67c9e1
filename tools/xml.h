/* SPDX-License-Identifier: MIT */
/* Text of others in what we write as XML. */
#ifndef RGPU_TOOLS_XML_H
#define RGPU_TOOLS_XML_H

#include <stdio.h>

/* Writes @s with XML's own characters escaped. Control characters, which XML has not, become '?': who named a device need not
 * know. */
static inline void xml_text(const char *s, FILE *to)
{
	for (; *s; s++)
		switch (*s) {
		case '&':
			fputs("&amp;", to);
			break;
		case '<':
			fputs("&lt;", to);
			break;
		case '>':
			fputs("&gt;", to);
			break;
		default:
			fputc((unsigned char)*s < ' ' ? '?' : *s, to);
		}
}

#endif
