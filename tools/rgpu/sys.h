/* SPDX-License-Identifier: MIT */
/* What the subcommands ask of this machine: files below an optional other root, commands, the places of our own parts. */
#ifndef RGPU_TOOLS_SYS_H
#define RGPU_TOOLS_SYS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define RGPU_GROUP "rgpu" /* who may open /dev/rgpuN */

/* Where "/" is for the functions below: "" unless --root was given. */
extern const char *sys_root;

/* @path below the root. Good until eight calls later. */
const char *sys_path(const char *path);

/* The first line of a file below the root, without its newline; NULL when it cannot be read. Good until four calls later. */
const char *sys_line(const char *path);

/* The release of the running kernel. */
const char *sys_release(void);

/* Runs a program (no shell) and keeps what it printed, stdout and stderr, up to @room − 1 bytes. Its status; 127: it is not
 * there. */
int sys_run(const char *const argv[], char *out, size_t room);

/* The pid of a process called @comm, 0: none. @state: as in /proc/PID/stat. */
int sys_find_process(const char *comm, char *state);

/* Writes a file below the root: a temporary one beside it, then a rename. @user: its owner, where there is such a user and we
 * may; NULL: ours. 0 or a negative errno. */
int sys_write(const char *path, const char *text, unsigned mode, const char *user);

/* The folder of our client libraries, beside this program's as built or as installed. */
bool sys_libs(char dir[PATH_MAX]);

/* Whether this process runs in a container. */
bool sys_in_container(void);

/* Whether systemd runs this machine (and no other root was given). */
bool sys_has_systemd(void);

#endif
