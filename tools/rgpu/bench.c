/* SPDX-License-Identifier: MIT */
/* rgpu bench: how fast a program here reaches the GPU there, as a table, for a spreadsheet, and as a picture. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tools/rgpu/bench.h"
#include "tools/rgpu/cmd.h"
#include "tools/rgpu/direct.h"
#include "tools/rgpu/sys.h"

static const char help[] =
	"usage: rgpu bench [--server HOST:PORT --key FILE] [--device N] [--quick] [--csv FILE] [--svg FILE]\n\n"
	"Measures the way to a GPU by what programs do: the round trip, small calls, launches, copies of 64 KiB to 64 MiB, and "
	"a\n"
	"step like one of training; through /dev/rgpuN, or to a server as rgpu run's options have it. It takes some twenty\n"
	"seconds, with --quick two, and 200 MiB here and 64 MiB there. Others' work on the GPU and on the link counts in.\n"
	"  --device N  of the devices that programs see; default 0\n"
	"  --csv FILE  the figures as comma-separated values; - is standard output, in place of the table\n"
	"  --svg FILE  a picture of them\n";

static int say(const char *what)
{
	fprintf(stderr, "rgpu bench: %s\n", what);
	return 1;
}

static int put(const struct bench *b, const char *path, void (*form)(const struct bench *, FILE *))
{
	char why[RGPU_WHY_MAX];
	FILE *f = !strcmp(path, "-") ? stdout : fopen(path, "we");
	int err = 0;

	if (!f)
		err = errno;
	if (f)
		form(b, f);
	if (f && (fflush(f) || ferror(f)))
		err = errno;
	if (f && f != stdout && fclose(f) && !err)
		err = errno;
	if (!err)
		return 0;
	rgpu_why(why, 0, "%.200s: %s", path, strerror(err));
	return say(why);
}

int cmd_bench(int argc, char **argv)
{
	static const struct option options[] = {DIRECT_OPTIONS,
						{"device", required_argument, NULL, 'd'},
						{"quick", no_argument, NULL, 'q'},
						{"csv", required_argument, NULL, 'c'},
						{"svg", required_argument, NULL, 's'},
						{"help", no_argument, NULL, 'h'},
						{0}};
	const char *csv = NULL, *svg = NULL;
	char dir[PATH_MAX], lib[PATH_MAX + 16], why[RGPU_WHY_MAX], *end;
	struct direct direct = {NULL};
	struct bench b = {0};
	double seconds = 1;
	int c, err, n = 0;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case 'd':
			n = strtol(optarg, &end, 10);
			if (*end || end == optarg || n < 0)
				return say("--device: expected a number, 0 for the first"), 2;
			break;
		case 'q':
			seconds = 0.1;
			break;
		case 'c':
			csv = optarg;
			break;
		case 's':
			svg = optarg;
			break;
		default:
			if (direct_option(&direct, c, optarg))
				break;
			fputs(help, c == 'h' ? stdout : stderr);
			return c == 'h' ? 0 : 2;
		}
	}
	if (optind < argc) {
		fputs(help, stderr);
		return 2;
	}
	if (direct_set(&direct, why))
		return say(why);
	if (!sys_libs(dir))
		return say("no libcuda.so.1 of ours beside this program, in ../lib/rgpu or ../lib: build or install it");
	snprintf(lib, sizeof(lib), "%s/libcuda.so.1", dir);
	setenv("RGPU_PROGRESS", "0", 1); /* drawing would be measured, too */
	if (isatty(STDERR_FILENO))
		fputs("rgpu bench: measuring …\r", stderr);
	err = bench_measure(&b, lib, n, seconds, why);
	if (isatty(STDERR_FILENO))
		fputs("\033[K", stderr);
	if (err)
		return say(why);
	if (csv)
		err |= put(&b, csv, bench_csv);
	if (svg)
		err |= put(&b, svg, bench_svg);
	if (!csv || strcmp(csv, "-"))
		if (!svg || strcmp(svg, "-"))
			err |= put(&b, "-", bench_table);
	return err;
}
