/* SPDX-License-Identifier: MIT */
/* One-line messages on stderr, with systemd's level prefixes when the journal reads them. */
#ifndef RGPU_LIB_LOG_H
#define RGPU_LIB_LOG_H

#include <stdbool.h>

enum rgpu_log_level { RGPU_LOG_ERR = 3, RGPU_LOG_WARN = 4, RGPU_LOG_NOTE = 5, RGPU_LOG_INFO = 6, RGPU_LOG_DEBUG = 7 };

/*
 * @name stands before each line on a terminal; levels above @max are not printed. Call once, before
 * threads. Without it: no name, RGPU_LOG_NOTE.
 */
void rgpu_log_init(const char *name, enum rgpu_log_level max);

/* Writes one line with one write(2), so that lines of several threads and processes do not mix. Newlines become spaces. Keeps
 * errno. */
void rgpu_log(enum rgpu_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define rgpu_err(...)	rgpu_log(RGPU_LOG_ERR, __VA_ARGS__)
#define rgpu_warn(...)	rgpu_log(RGPU_LOG_WARN, __VA_ARGS__)
#define rgpu_note(...)	rgpu_log(RGPU_LOG_NOTE, __VA_ARGS__)
#define rgpu_info(...)	rgpu_log(RGPU_LOG_INFO, __VA_ARGS__)
#define rgpu_debug(...) rgpu_log(RGPU_LOG_DEBUG, __VA_ARGS__)

#endif
