/* SPDX-License-Identifier: MIT */
/* Configuration files of the daemons: INI, with every bad line told by its number. */
#ifndef RGPU_LIB_CONF_H
#define RGPU_LIB_CONF_H

#include "lib/why.h"

struct rgpu_conf {
	const char *section;	 /* the only one of the file */
	const char *const *many; /* settings that may stand there more than once, up to a NULL; NULL: none may */
	/* Takes one NAME = VALUE. 0, or a negative errno and @why: the cause and what to write instead. */
	int (*set)(void *arg, const char *name, const char *value, char why[RGPU_WHY_MAX]);
	/* Hears of a bad line; the first is 1. */
	void (*bad)(void *arg, const char *path, int line, const char *why);
	void *arg;
};

/*
 * Reads @path to its end: [SECTION], NAME = VALUE, comments behind '#' or ';' at a line's begin and behind " ;" elsewhere. A
 * setting's second line is bad, for which of them holds nobody sees. How many lines were bad, each told to bad(); or a negative
 * errno with @why when the file cannot be read.
 */
int rgpu_conf_read(const struct rgpu_conf *c, const char *path, char why[RGPU_WHY_MAX]);

/* 1: yes, true, on, 1. 0: no, false, off, 0. −1: anything else. */
int rgpu_conf_bool(const char *value);

#endif
