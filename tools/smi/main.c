/* SPDX-License-Identifier: MIT */
/* rgpu-smi: the devices of /dev/rgpuN, or of RGPU_SERVER, as nvidia-smi would show them. */
#include "tools/smi/smi.h"
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const char help[] = "RGPU System Management Interface -- v" SMI_VERSION "\n\n"
			   "rgpu-smi [OPTION]\n\n"
			   "    -h,   --help                Print usage information and exit.\n"
			   "          --version             Print version information and exit.\n\n"
			   "  LIST OPTIONS:\n\n"
			   "    -L,   --list-gpus           Display a list of GPUs connected to the system.\n\n"
			   "  SUMMARY OPTIONS:\n\n"
			   "    <no arguments>              Show a summary of GPUs connected to the system.\n\n"
			   "Without options in the environment it looks at /dev/rgpuN; RGPU_SERVER=HOST:PORT and RGPU_KEY=FILE "
			   "ask a server directly.\n\n"
			   "Exit status: 0; 2 bad argument; 4 no permission; 6 no device; 9 module not loaded; 15 server lost; "
			   "18 versions differ; 255 other.\n";

enum what { TABLE, LIST, VERSION };

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{"list-gpus", no_argument, NULL, 'L'},
		{0},
	};
	enum what what = TABLE;
	char why[RGPU_WHY_MAX];
	struct smi smi;
	int c, status;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "hL", options, NULL)) != -1) {
		switch (c) {
		case 'h':
			fputs(help, stdout);
			return SMI_OK;
		case 'V':
			what = VERSION;
			break;
		case 'L':
			what = LIST;
			break;
		default:
			fprintf(stderr, "Invalid combination of input arguments: %s. Please run 'rgpu-smi -h' for help.\n",
				argv[optind - 1]);
			return SMI_BAD_ARGUMENT;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "Invalid combination of input arguments: %s. Please run 'rgpu-smi -h' for help.\n", argv[optind]);
		return SMI_BAD_ARGUMENT;
	}
	status = smi_collect(&smi, why);
	if (what == VERSION) {
		smi_version(&smi, stdout); /* what is not known without a server is N/A */
		smi_free(&smi);
		return SMI_OK;
	}
	if (status) {
		fprintf(stderr, "rgpu-smi has failed: %s\n", why);
		return status;
	}
	if (what == LIST)
		smi_list(&smi, stdout);
	else
		smi_table(&smi, stdout);
	smi_free(&smi);
	return fflush(stdout) ? SMI_OTHER : SMI_OK;
}
