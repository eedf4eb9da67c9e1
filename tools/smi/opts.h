/* SPDX-License-Identifier: MIT */
/* rgpu-smi's command line. */
#ifndef RGPU_TOOLS_SMI_OPTS_H
#define RGPU_TOOLS_SMI_OPTS_H

#include "tools/smi/smi.h"

enum smi_view {
	VIEW_TABLE,
	VIEW_LIST,
	VIEW_VERSION,
	VIEW_REPORT,
	VIEW_XML,
	VIEW_QUERY_GPU,
	VIEW_QUERY_APPS,
	VIEW_DMON,
	VIEW_PMON,
	VIEW_TOPO
};

struct smi_opts {
	enum smi_view view;
	const char *ids, *file, *fields, *display;
	struct smi_format format;
	int every_ms; /* 0: once */
	long count;   /* looks; 0: for ever */
	bool remote;  /* the Remote box, also when the output is no terminal */
	struct smi_monitor monitor;
};

/* −1: go on; else the exit status: what was asked for was printed, or what is wrong was said on stderr. */
int smi_opts(int argc, char **argv, struct smi_opts *o);

#endif
