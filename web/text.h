/* SPDX-License-Identifier: MIT */
/* How names and identities are written in both texts. */
#ifndef RGPU_WEB_TEXT_H
#define RGPU_WEB_TEXT_H

#include <stdint.h>
#include <stdio.h>

/*
 * The inside of a quoted string. Both JSON and Prometheus read \\, \" and \n; other control characters, and bytes that are no
 * UTF-8 of ours to judge, become "?", for the program chose its name.
 */
void web_quoted(FILE *to, const char *s);

void web_sid(char out[9], const uint8_t sid[16]); /* its first bytes, as logs do */

#endif
