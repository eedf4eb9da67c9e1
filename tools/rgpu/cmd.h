/* SPDX-License-Identifier: MIT */
/* The subcommands of rgpu: each a function that gets its own argv and returns the exit status. */
#ifndef RGPU_TOOLS_CMD_H
#define RGPU_TOOLS_CMD_H

struct cmd {
	const char *name, *what;
	int (*main)(int argc, char **argv); /* argv[0] is the subcommand's name */
};

int cmd_run(int argc, char **argv);
int cmd_join(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_cdi(int argc, char **argv);

/* Exit statuses of rgpu's own failures, as env(1) and timeout(1) have them, so that they don't look like the command's. */
#define CMD_FAILED   125
#define CMD_CANT_RUN 126
#define CMD_MISSING  127

#endif
