/* SPDX-License-Identifier: MIT */
/* TAP output for test programs: ok(), is-style macros with the values on failure, and the closing plan. */
#ifndef RGPU_TESTS_TAP_H
#define RGPU_TESTS_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int tap_run, tap_failed;

/* Prints one result line; returns @pass so that a caller can stop on a failure that makes the rest meaningless. */
__attribute__((format(printf, 2, 3), unused)) static bool ok(bool pass, const char *fmt, ...)
{
	va_list ap;

	printf("%sok %d - ", pass ? "" : "not ", ++tap_run);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	if (!pass)
		tap_failed++;
	fflush(stdout);
	return pass;
}

/* Compares two integers and shows both when they differ. */
#define is_int(got, want, ...)                                                                                                   \
	({                                                                                                                       \
		long long got_ = (long long)(got), want_ = (long long)(want);                                                    \
		bool same_ = ok(got_ == want_, __VA_ARGS__);                                                                     \
		if (!same_)                                                                                                      \
			printf("# %s:%d: got %lld, want %lld\n", __FILE__, __LINE__, got_, want_);                               \
		same_;                                                                                                           \
	})

#define is_str(got, want, ...)                                                                                                   \
	({                                                                                                                       \
		const char *got_ = (got), *want_ = (want);                                                                       \
		bool same_ = ok(got_ && !strcmp(got_, want_), __VA_ARGS__);                                                      \
		if (!same_)                                                                                                      \
			printf("# %s:%d: got \"%s\", want \"%s\"\n", __FILE__, __LINE__, got_ ? got_ : "(null)", want_);         \
		same_;                                                                                                           \
	})

/* kselftest's runner knows a skipped test by its status; for prove the plan says it, and another status would be a failure. */
#define skip_all(...)                                                                                                            \
	do {                                                                                                                     \
		printf("1..0 # SKIP ");                                                                                          \
		printf(__VA_ARGS__);                                                                                             \
		putchar('\n');                                                                                                   \
		exit(getenv("kselftest_timeout") ? 4 : 0);                                                                       \
	} while (0)

/* Prints the plan; main returns its value. */
__attribute__((unused)) static int tap_done(void)
{
	printf("1..%d\n", tap_run);
	return tap_failed ? 1 : 0;
}

#endif
