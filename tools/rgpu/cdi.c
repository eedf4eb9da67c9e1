// SPDX-License-Identifier: MIT
/* rgpu cdi generate: what podman and others read to know --device rgpu.dev/gpu=0. */
#include "tools/rgpu/cdi.h"
#include <errno.h>
#include <getopt.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tools/rgpu/cmd.h"
#include "tools/rgpu/sys.h"

static const char help[] =
	"usage: rgpu cdi generate [--output FILE | --output -] [--root DIR]\n\n"
	"Writes the Container Device Interface's specification of this machine's /dev/rgpuN: devices \"0\", \"1\", … and \"all\" "
	"of the\n"
	"kind rgpu.dev/gpu, with the client libraries. Without --output: " CDI_FILE ", replaced in one step.\n";

/* Where container programs find the libraries: the same folder as outside, read-only. */
static void edits(FILE *to, const char *libs)
{
	fprintf(to,
		"containerEdits:\n"
		"  env:\n"
		"    - LD_LIBRARY_PATH=%s\n"
		"  mounts:\n"
		"    - hostPath: %s\n"
		"      containerPath: %s\n"
		"      options: [ro, nosuid, nodev, bind]\n",
		libs, libs, libs);
}

static void node(FILE *to, const char *path)
{
	fprintf(to, "        - path: %s\n          permissions: rw\n", path);
}

int cdi_write(FILE *to)
{
	char libs[PATH_MAX];
	size_t skip = strlen(sys_root);
	glob_t g;

	if (!sys_libs(libs))
		return -ELIBACC;
	if (glob(sys_path("/dev/rgpu[0-9]"), 0, NULL, &g) && !g.gl_pathc)
		return -ENODEV;
	glob(sys_path("/dev/rgpu[0-9][0-9]"), GLOB_APPEND, NULL, &g);
	/* The lowest version that has what we use: podman 4.3 takes 0.3.0 and 0.5.0 and nothing newer. */
	fputs("# Written by rgpu cdi generate.\ncdiVersion: 0.3.0\nkind: rgpu.dev/gpu\n", to);
	edits(to, libs);
	fputs("devices:\n", to);
	for (size_t i = 0; i < g.gl_pathc; i++) {
		fprintf(to, "  - name: \"%s\"\n    containerEdits:\n      deviceNodes:\n", strrchr(g.gl_pathv[i], '/') + 5);
		node(to, g.gl_pathv[i] + skip);
	}
	fputs("  - name: all\n    containerEdits:\n      deviceNodes:\n", to);
	for (size_t i = 0; i < g.gl_pathc; i++)
		node(to, g.gl_pathv[i] + skip);
	globfree(&g);
	return 0;
}

static int fail(const char *what, int err)
{
	if (err == -ENODEV)
		fprintf(stderr, "rgpu cdi: there is no /dev/rgpuN; next: modprobe rgpu\n");
	else if (err == -ELIBACC)
		fprintf(stderr, "rgpu cdi: no libcuda.so.1 of ours beside this program, in ../lib/rgpu or ../lib: install it\n");
	else
		fprintf(stderr, "rgpu cdi: %s: %s\n", what, strerror(-err));
	return 1;
}

int cmd_cdi(int argc, char **argv)
{
	static const struct option options[] = {
		{"output", required_argument, NULL, 'o'},
		{"root", required_argument, NULL, 'r'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	const char *out = CDI_FILE;
	char *text = NULL;
	size_t len;
	FILE *f;
	int c, err;

	while ((c = getopt_long(argc, argv, "ho:", options, NULL)) != -1) {
		if (c == 'o') {
			out = optarg;
		} else if (c == 'r') {
			sys_root = optarg;
		} else {
			fputs(help, c == 'h' ? stdout : stderr);
			return c == 'h' ? 0 : 2;
		}
	}
	if (optind + 1 != argc || strcmp(argv[optind], "generate")) {
		fputs(help, stderr);
		return 2;
	}
	f = open_memstream(&text, &len);
	err = f ? cdi_write(f) : -ENOMEM;
	if (f)
		fclose(f);
	if (!err && !strcmp(out, "-")) {
		fputs(text, stdout);
	} else if (!err) {
		if (!strcmp(out, CDI_FILE))
			mkdir(sys_path("/run/cdi"), 0755);
		err = sys_write(out, text, 0644, NULL);
	}
	free(text);
	return err ? fail(out, err) : 0;
}
