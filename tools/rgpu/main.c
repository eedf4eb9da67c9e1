/* SPDX-License-Identifier: MIT */
/* rgpu: one tool, many subcommands; this file chooses. */
#include "tools/rgpu/cmd.h"
#include <stdio.h>
#include <string.h>

static const struct cmd cmds[] = {
	{"run", "run a program with rgpu's CUDA libraries", cmd_run},
	{"join", "make this machine a client of a server", cmd_join},
	{"status", "what runs now: proxy, devices, sessions", cmd_status},
	{"doctor", "find what is wrong, and say how to mend it", cmd_doctor},
	{"bench", "how fast the way to a GPU is", cmd_bench},
	{"cdi", "write the specification for container tools", cmd_cdi},
	{"bug-report", "collect what a report needs, without secrets", cmd_report},
};

static void usage(FILE *to)
{
	fprintf(to, "usage: rgpu COMMAND …\n\ncommands:\n");
	for (unsigned int i = 0; i < sizeof(cmds) / sizeof(cmds[0]); i++)
		fprintf(to, "  %-11s %s\n", cmds[i].name, cmds[i].what);
	fprintf(to, "\nrgpu COMMAND --help says more.\n");
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		usage(stderr);
		return CMD_FAILED;
	}
	if (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help") || !strcmp(argv[1], "help")) {
		usage(stdout);
		return 0;
	}
	if (!strcmp(argv[1], "--version")) {
		puts("rgpu " RGPU_VERSION);
		return 0;
	}
	for (unsigned int i = 0; i < sizeof(cmds) / sizeof(cmds[0]); i++)
		if (!strcmp(argv[1], cmds[i].name))
			return cmds[i].main(argc - 1, argv + 1);
	fprintf(stderr, "rgpu: no command '%s'; rgpu --help lists them\n", argv[1]);
	return CMD_FAILED;
}
