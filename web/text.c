// SPDX-License-Identifier: MIT
/* How names and identities are written in both texts. */
#include "web/text.h"

void web_quoted(FILE *to, const char *s)
{
	for (; *s; s++) {
		if (*s == '\\' || *s == '"')
			fputc('\\', to);
		if (*s == '\n')
			fputs("\\n", to);
		else
			fputc(*s < ' ' || *s > '~' ? '?' : *s, to);
	}
}

void web_sid(char out[9], const uint8_t sid[16])
{
	for (unsigned i = 0; i < 4; i++)
		out += sprintf(out, "%02x", sid[i]);
}
