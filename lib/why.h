/* SPDX-License-Identifier: MIT */
/* Fills a caller's line that says for people why a call failed. */
#ifndef RGPU_LIB_WHY_H
#define RGPU_LIB_WHY_H

#include <stdarg.h>
#include <stdio.h>

#define RGPU_WHY_MAX 256

/* One line in @why, and the negative errno to return: return rgpu_why(why, -EINVAL, "…", …). */
__attribute__((format(printf, 3, 4), unused)) static int rgpu_why(char why[RGPU_WHY_MAX], int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, RGPU_WHY_MAX, fmt, ap);
	va_end(ap);
	return err;
}

#endif
