// SPDX-License-Identifier: MIT
/* One-line messages on stderr, with systemd's level prefixes when the journal reads them. */
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/log.h"

static const char *log_name = "";
static enum rgpu_log_level log_max = RGPU_LOG_NOTE;
static bool log_journal;

/* systemd names the device and inode of the stream it gave us; after a redirection they no longer match. */
static bool stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	if (!stream || sscanf(stream, "%llu:%llu", &dev, &ino) != 2 || fstat(STDERR_FILENO, &st))
		return false;
	return st.st_dev == dev && st.st_ino == ino;
}

void rgpu_log_init(const char *name, enum rgpu_log_level max)
{
	log_name = name;
	log_max = max;
	log_journal = stderr_is_journal();
}

void rgpu_log(enum rgpu_log_level level, const char *fmt, ...)
{
	char line[1024];
	int saved = errno, n = 0;
	size_t len;
	va_list ap;

	if (level > log_max)
		return;
	if (log_journal)
		n = snprintf(line, sizeof(line), "<%d>", level);
	else if (*log_name)
		n = snprintf(line, sizeof(line), "%.64s: ", log_name);
	errno = saved;
	va_start(ap, fmt);
	vsnprintf(line + n, sizeof(line) - n - 1, fmt, ap);
	va_end(ap);
	len = strlen(line);
	/* Words of a stranger may be in it: one line it stays, and no terminal is told anything. */
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
			line[i] = line[i] == '\n' ? ' ' : '?';
	line[len++] = '\n';
	if (write(STDERR_FILENO, line, len) < 0) {
		/* Nowhere left to say it. */
	}
	errno = saved;
}
