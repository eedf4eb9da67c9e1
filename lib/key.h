/* SPDX-License-Identifier: MIT */
/* Key files: the pairing secret that a client and a server share, made by rgpu-server --pair. */
#ifndef RGPU_LIB_KEY_H
#define RGPU_LIB_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <rgpu_wire.h>
#include "lib/why.h"

/*
 * A key file is text: the line RGPU_KEY_FILE_MAGIC, then a line of 64 hex digits. Lines that begin with '#'
 * and empty lines are skipped. Nobody but its owner may have any right on it.
 */
#define RGPU_KEY_FILE_MAGIC "rgpu-key-1"
#define RGPU_KEY_ID_LEN	    8  /* hex digits */
#define RGPU_KEY_TEXT_MAX   96 /* the file's text with its NUL */

struct rgpu_key {
	uint8_t secret[RGPU_KEY_LEN];
	char id[RGPU_KEY_ID_LEN + 1]; /* first hex digits of SHA-256("rgpu-key-id" ‖ secret): may be shown */
	char identity[32];	      /* RGPU_PSK_IDENTITY "/" id, as rgpu_link_client() wants it */
};

/* Reads @path. -ENOENT and other open errors, -EACCES readable by others, -EINVAL not a key file. */
int rgpu_key_load(const char *path, struct rgpu_key *out, char why[RGPU_WHY_MAX]);

/* Makes a random key and writes it to @path with mode 0600. -EEXIST when there is a file: it is left alone. */
int rgpu_key_create(const char *path, struct rgpu_key *out, char why[RGPU_WHY_MAX]);

/* A key from a file's text (NUL-terminated). -EINVAL. */
int rgpu_key_parse(const char *text, struct rgpu_key *out, char why[RGPU_WHY_MAX]);

/* The file's text. */
void rgpu_key_text(const struct rgpu_key *key, char out[RGPU_KEY_TEXT_MAX]);

/* Wipes the secret. */
void rgpu_key_wipe(struct rgpu_key *key);

#endif
