/* SPDX-License-Identifier: MIT */
/* rgpu-smi: the devices of /dev/rgpuN, or of RGPU_SERVER, as nvidia-smi would show them. */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "tools/smi/opts.h"

static int print(const struct smi_opts *o, const struct smi *smi, bool first, bool remote, FILE *to, char why[RGPU_WHY_MAX])
{
	struct smi_format f = o->format;

	f.header &= first;
	switch (o->view) {
	case VIEW_LIST:
		smi_list(smi, to);
		return SMI_OK;
	case VIEW_REPORT:
		return smi_report(smi, o->display, to, why);
	case VIEW_XML:
		smi_report_xml(smi, to);
		return SMI_OK;
	case VIEW_QUERY_GPU:
		return smi_query_gpu(smi, o->fields, &f, to, why);
	case VIEW_QUERY_APPS:
		return smi_query_apps(smi, o->fields, &f, to, why);
	case VIEW_DMON:
		smi_dmon(smi, &o->monitor, to);
		return SMI_OK;
	case VIEW_PMON:
		smi_pmon(smi, &o->monitor, to);
		return SMI_OK;
	case VIEW_TOPO:
		smi_topo(smi, to);
		return SMI_OK;
	case VIEW_VERSION:
	case VIEW_TABLE:
		break;
	}
	smi_table(smi, to);
	if (remote)
		smi_remote(smi, to);
	return SMI_OK;
}

static unsigned int needs(const struct smi_opts *o, bool remote)
{
	bool slow = o->view == VIEW_REPORT || o->view == VIEW_XML ||
		    (o->view == VIEW_DMON && o->monitor.columns && strchr(o->monitor.columns, 't'));

	return (slow ? SMI_SLOW : 0) | (remote ? SMI_REMOTE : 0);
}

static int fail(int status, const char *why)
{
	fprintf(stderr, "rgpu-smi has failed: %s\n", why);
	return status;
}

static void pause_until(struct timespec *next, int ms)
{
	next->tv_sec += ms / 1000;
	next->tv_nsec += ms % 1000 * 1000000L;
	if (next->tv_nsec >= 1000000000L) {
		next->tv_sec++;
		next->tv_nsec -= 1000000000L;
	}
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, next, NULL) == EINTR)
		;
}

/* The first lines of dmon and pmon come again now and then, as on a screen the old ones are gone. */
#define HEAD_EVERY 20

static int head(const struct smi_opts *o, long look, FILE *to)
{
	if (look % HEAD_EVERY)
		return SMI_OK;
	if (o->view == VIEW_DMON)
		return smi_dmon_head(&o->monitor, to);
	return o->view == VIEW_PMON ? smi_pmon_head(&o->monitor, to) : SMI_OK;
}

static int look(const struct smi_opts *o, long n, bool remote, FILE *to)
{
	char why[RGPU_WHY_MAX] = "";
	struct smi smi;
	int status = smi_collect(&smi, o->ids, needs(o, remote), why);

	if (status)
		return fail(status, why);
	status = head(o, n, to);
	if (status)
		snprintf(why, sizeof(why), "-s takes the letters that rgpu-smi -h lists");
	else
		status = print(o, &smi, !n, remote, to, why);
	smi_free(&smi);
	if (status)
		fprintf(stderr, "%s\n", why);
	else if (fflush(to))
		return fail(SMI_OTHER, strerror(errno));
	return status;
}

/* What is not known without a server is N/A. */
static int version(FILE *to)
{
	char why[RGPU_WHY_MAX];
	struct smi smi = {0};
	int status = smi_open(why);

	if (!status)
		status = smi_collect(&smi, NULL, 0, why);
	smi_version(&smi, to);
	smi_free(&smi);
	smi_close();
	return fflush(to) ? SMI_OTHER : SMI_OK;
}

static int looks(const struct smi_opts *o, FILE *to)
{
	bool remote = o->view == VIEW_TABLE && (o->remote || (to == stdout && isatty(STDOUT_FILENO)));
	struct timespec next;
	int status;

	clock_gettime(CLOCK_MONOTONIC, &next);
	for (long n = 0;; n++) {
		status = look(o, n, remote, to);
		if (status || !o->every_ms || n + 1 == o->count)
			return status;
		pause_until(&next, o->every_ms);
	}
}

int main(int argc, char **argv)
{
	char why[RGPU_WHY_MAX];
	struct smi_opts o;
	int status = smi_opts(argc, argv, &o);
	FILE *to = stdout;

	if (status >= 0)
		return status;
	if (o.file)
		to = fopen(o.file, "w");
	if (!to) {
		fprintf(stderr, "%s: %s\n", o.file, strerror(errno));
		return SMI_BAD_ARGUMENT;
	}
	if (o.view == VIEW_VERSION)
		return version(to);
	status = smi_open(why);
	if (status)
		return fail(status, why);
	status = looks(&o, to);
	smi_close();
	return status;
}
