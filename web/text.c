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

static char *hex(char *at, const uint8_t *bytes, unsigned n)
{
	while (n--)
		at += sprintf(at, "%02x", *bytes++);
	return at;
}

void web_uuid(char out[WEB_UUID_TEXT], const uint8_t uuid[16])
{
	static const uint8_t group[] = {4, 2, 2, 2, 6};
	char *at = out;

	for (unsigned i = 0; i < sizeof(group); i++) {
		at += sprintf(at, i ? "-" : "GPU-");
		at = hex(at, uuid, group[i]);
		uuid += group[i];
	}
}

void web_sid(char out[9], const uint8_t sid[16])
{
	hex(out, sid, 4);
}
