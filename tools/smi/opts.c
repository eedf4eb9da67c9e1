/* SPDX-License-Identifier: MIT */
/* rgpu-smi's command line, in nvidia-smi's forms: -i 0, -i=0, --id=0, --id 0; -l and -lms with one dash. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "tools/smi/opts.h"

static const char help[] =
	"RGPU System Management Interface -- v" RGPU_VERSION "\n\n"
	"rgpu-smi [OPTION1 [ARG1]] [OPTION2 [ARG2]] ...\n\n"
	"    -h,   --help                Print usage information and exit.\n"
	"          --version             Print version information and exit.\n\n"
	"  LIST OPTIONS:\n\n"
	"    -L,   --list-gpus           One line for each device.\n\n"
	"  SUMMARY OPTIONS:\n\n"
	"    <no arguments>              A table of the devices and their processes.\n"
	"          --remote              With the box about the connection, also when the output is no terminal.\n\n"
	"  QUERY OPTIONS:\n\n"
	"    -q,   --query               Everything about each device.\n"
	"    -x,   --xml-format          As XML.\n"
	"    -d,   --display=            Only these sections: MEMORY, UTILIZATION, ECC, TEMPERATURE, POWER, CLOCK, COMPUTE,\n"
	"                                PIDS, PERFORMANCE, SUPPORTED_CLOCKS, PAGE_RETIREMENT, ACCOUNTING, ENCODER_STATS,\n"
	"                                VOLTAGE, FBC_STATS, ROW_REMAPPER, GSP_FIRMWARE_VERSION, POWER_SMOOTHING,\n"
	"                                POWER_PROFILES; several with commas. Not with -x.\n\n"
	"  SELECTIVE QUERY OPTIONS:\n\n"
	"          --query-gpu=          Fields of each device; --help-query-gpu lists them.\n"
	"          --query-compute-apps= Fields of each process; --help-query-compute-apps lists them.\n"
	"          --format=             csv, and with commas: noheader, nounits.\n\n"
	"  With all of them:\n\n"
	"    -i,   --id=                 Only these devices: index, UUID, bus id or serial number, several with commas.\n"
	"    -f,   --filename=           Write to this file.\n"
	"    -l,   --loop=               Again every so many seconds (5), until Ctrl+C.\n"
	"    -lms, --loop-ms=            Again every so many milliseconds.\n\n"
	"  MONITORING:\n\n"
	"    dmon                        A line for each device, every second: -i, -d SECONDS, -c COUNT, -s LETTERS (p power "
	"and\n"
	"                                temperature, u use, c clocks, m memory, e errors, t PCIe throughput), -o D T (date,\n"
	"                                time), -f FILE, --format csv,nounit,noheader.\n"
	"    pmon                        A line for each process: -i, -d, -c, -s (u use, m memory), -o, -f.\n"
	"    topo -m                     What lies between the devices.\n\n"
	"It looks at /dev/rgpuN; RGPU_SERVER=HOST:PORT and RGPU_KEY=FILE in the environment ask a server directly.\n\n"
	"Exit status: 0; 2 bad argument; 3 not supported; 4 no permission; 6 no such device; 9 module not loaded; 15 server\n"
	"lost; 18 versions differ; 255 other.\n";

enum opt {
	HELP,
	VERSION,
	LIST,
	QUERY,
	XML,
	DISPLAY,
	QUERY_GPU,
	QUERY_APPS,
	FORMAT,
	ID,
	FILENAME,
	LOOP,
	LOOP_MS,
	REMOTE,
	HELP_GPU,
	HELP_APPS,
	ABSENT,
	FORBIDDEN,
	DELAY,
	COUNT_OPT,
	SELECT,
	OPTIONS,
	MATRIX,
};

enum arg { NO, MUST, MAY };

struct option {
	const char *brief, *full;
	enum opt opt;
	enum arg arg;
};

static const struct option usual[] = {
	{"-h", "--help", HELP, NO},
	{NULL, "--version", VERSION, NO},
	{"-L", "--list-gpus", LIST, NO},
	{"-q", "--query", QUERY, NO},
	{"-x", "--xml-format", XML, NO},
	{"-d", "--display", DISPLAY, MUST},
	{NULL, "--query-gpu", QUERY_GPU, MUST},
	{NULL, "--query-compute-apps", QUERY_APPS, MUST},
	{NULL, "--format", FORMAT, MUST},
	{"-i", "--id", ID, MUST},
	{"-f", "--filename", FILENAME, MUST},
	{"-l", "--loop", LOOP, MAY},
	{"-lms", "--loop-ms", LOOP_MS, MUST},
	{NULL, "--remote", REMOTE, NO},
	{NULL, "--help-query-gpu", HELP_GPU, NO},
	{NULL, "--help-query-compute-apps", HELP_APPS, NO},
	{NULL, "--query-accounted-apps", ABSENT, MUST},
	{NULL, "--query-retired-pages", ABSENT, MUST},
	{NULL, "--query-remapped-rows", ABSENT, MUST},
	{NULL, "--query-supported-clocks", ABSENT, MUST},
	{"-u", "--unit", ABSENT, NO},
	{"-B", "--list-excluded-gpus", ABSENT, NO},
	/* What changes a device. */
	{"-pm", "--persistence-mode", FORBIDDEN, MUST},
	{"-e", "--ecc-config", FORBIDDEN, MUST},
	{"-p", "--reset-ecc-errors", FORBIDDEN, MUST},
	{"-c", "--compute-mode", FORBIDDEN, MUST},
	{NULL, "--gom", FORBIDDEN, MUST},
	{"-r", "--gpu-reset", FORBIDDEN, MAY},
	{"-lgc", "--lock-gpu-clocks", FORBIDDEN, MUST},
	{"-rgc", "--reset-gpu-clocks", FORBIDDEN, NO},
	{"-lmc", "--lock-memory-clocks", FORBIDDEN, MUST},
	{"-rmc", "--reset-memory-clocks", FORBIDDEN, NO},
	{"-ac", "--applications-clocks", FORBIDDEN, MUST},
	{"-rac", "--reset-applications-clocks", FORBIDDEN, NO},
	{"-pl", "--power-limit", FORBIDDEN, MUST},
	{"-am", "--accounting-mode", FORBIDDEN, MUST},
	{"-caa", "--clear-accounted-apps", FORBIDDEN, NO},
	{"-mig", "--multi-instance-gpu", FORBIDDEN, MUST},
	{0},
};

static const struct option monitoring[] = {
	{"-h", "--help", HELP, NO},	      {"-i", "--id", ID, MUST},		{"-d", "--delay", DELAY, MUST},
	{"-c", "--count", COUNT_OPT, MUST},   {"-s", "--select", SELECT, MUST}, {"-o", "--options", OPTIONS, MUST},
	{"-f", "--filename", FILENAME, MUST}, {NULL, "--format", FORMAT, MUST}, {0},
};

static const struct option topology[] = {
	{"-h", "--help", HELP, NO},
	{"-m", "--matrix", MATRIX, NO},
	{"-i", "--id", ID, MUST},
	{0},
};

static int bad(const char *what)
{
	fprintf(stderr, "Invalid combination of input arguments: %s. Please run 'rgpu-smi -h' for help.\n", what);
	return SMI_BAD_ARGUMENT;
}

/* @arg is @name, or @name and = and a value. */
static bool matches(const char *arg, const char *name, const char **value)
{
	size_t len = name ? strlen(name) : 0;

	if (!len || strncmp(arg, name, len) || (arg[len] && arg[len] != '='))
		return false;
	*value = arg[len] ? arg + len + 1 : NULL;
	return true;
}

static bool number(const char *text, long min, long *out)
{
	char *end;

	errno = 0;
	*out = text ? strtol(text, &end, 10) : 0;
	return text && !errno && end != text && !*end && *out >= min && *out <= INT_MAX / 1000;
}

/* Words of --format. csv is a must for queries. */
static int format(struct smi_opts *o, const char *list)
{
	bool csv = false;

	while (*list) {
		size_t len = strcspn(list, ", ");

		if (len == 3 && !strncmp(list, "csv", 3))
			csv = true;
		else if (len == 8 && !strncmp(list, "noheader", 8))
			o->format.header = false;
		else if ((len == 7 && !strncmp(list, "nounits", 7)) || (len == 6 && !strncmp(list, "nounit", 6)))
			o->format.units = false;
		else if (len)
			return bad("--format takes csv, noheader and nounits");
		list += len;
		list += strspn(list, ", ");
	}
	o->monitor.csv = csv;
	return csv ? -1 : bad("--format needs csv");
}

static int take(struct smi_opts *o, const struct option *d, const char *value)
{
	long n;

	switch (d->opt) {
	case HELP:
		fputs(help, stdout);
		return SMI_OK;
	case HELP_GPU:
		smi_help_query_gpu(stdout);
		return SMI_OK;
	case HELP_APPS:
		smi_help_query_apps(stdout);
		return SMI_OK;
	case VERSION:
		o->view = VIEW_VERSION;
		return -1;
	case LIST:
		o->view = VIEW_LIST;
		return -1;
	case QUERY:
		o->view = o->view == VIEW_XML ? VIEW_XML : VIEW_REPORT;
		return -1;
	case XML:
		o->view = VIEW_XML;
		return -1;
	case DISPLAY:
		o->display = value;
		return -1;
	case QUERY_GPU:
	case QUERY_APPS:
		o->view = d->opt == QUERY_GPU ? VIEW_QUERY_GPU : VIEW_QUERY_APPS;
		o->fields = value;
		return -1;
	case FORMAT:
		return format(o, value);
	case ID:
		o->ids = value;
		return -1;
	case FILENAME:
		o->file = value;
		return -1;
	case LOOP:
		if (!number(value ? value : "5", 1, &n))
			return bad("--loop takes seconds, at least 1");
		o->every_ms = n * 1000;
		return -1;
	case LOOP_MS:
		if (!number(value, 1, &n))
			return bad("--loop-ms takes milliseconds, at least 1");
		o->every_ms = n;
		return -1;
	case REMOTE:
		o->remote = true;
		return -1;
	case DELAY:
		if (!number(value, 1, &n))
			return bad("-d takes seconds, at least 1");
		o->every_ms = n * 1000;
		return -1;
	case COUNT_OPT:
		return number(value, 1, &o->count) ? -1 : bad("-c takes a number, at least 1");
	case SELECT:
		o->monitor.columns = value;
		return -1;
	case OPTIONS:
		o->monitor.date |= strchr(value, 'D') != NULL;
		o->monitor.clock |= strchr(value, 'T') != NULL;
		return strspn(value, "DT, ") == strlen(value) ? -1 : bad("-o takes D and T");
	case MATRIX:
		o->view = VIEW_TOPO;
		return -1;
	case ABSENT:
		fprintf(stderr, "%s is not supported: it is told on the server.\n", d->full);
		return SMI_NOT_SUPPORTED;
	case FORBIDDEN:
		fprintf(stderr, "%s: insufficient permissions: a device is set up on its own machine.\n", d->full);
		return SMI_NO_PERMISSION;
	}
	return SMI_OTHER;
}

static int parse(struct smi_opts *o, const struct option *table, int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		const struct option *d = table;
		const char *value = NULL;
		int r;

		while (d->full && !matches(argv[i], d->brief, &value) && !matches(argv[i], d->full, &value))
			d++;
		if (!d->full || (d->arg == NO && value))
			return bad(argv[i]);
		if (d->arg == MUST && !value) {
			if (i + 1 == argc)
				return bad(argv[i]);
			value = argv[++i];
		} else if (d->arg == MAY && !value && i + 1 < argc && argv[i + 1][0] != '-') {
			value = argv[++i];
		}
		r = take(o, d, value);
		if (r >= 0)
			return r;
	}
	return -1;
}

/* What does not go together. */
static int check(const struct smi_opts *o)
{
	bool query = o->view == VIEW_QUERY_GPU || o->view == VIEW_QUERY_APPS;

	if (query && !o->monitor.csv) {
		fprintf(stderr, "\"--format=\" switch is missing. Please run 'rgpu-smi -h' for help.\n");
		return SMI_BAD_ARGUMENT;
	}
	if (!query && o->monitor.csv && o->view != VIEW_DMON)
		return bad("--format");
	if (o->display && o->view != VIEW_REPORT)
		return bad("--display goes with -q, without -x");
	return -1;
}

int smi_opts(int argc, char **argv, struct smi_opts *o)
{
	const struct option *table = usual;
	int r;

	*o = (struct smi_opts){.format = {true, true}};
	argc--;
	argv++;
	if (argc && (!strcmp(argv[0], "dmon") || !strcmp(argv[0], "pmon"))) {
		o->view = argv[0][0] == 'd' ? VIEW_DMON : VIEW_PMON;
		o->every_ms = 1000;
		table = monitoring;
	} else if (argc && !strcmp(argv[0], "topo")) {
		table = topology;
	}
	if (table != usual) {
		argc--;
		argv++;
	}
	r = parse(o, table, argc, argv);
	if (r < 0 && table == topology && o->view != VIEW_TOPO)
		r = bad("topo: give -m");
	o->monitor.format = o->format;
	return r < 0 ? check(o) : r;
}
