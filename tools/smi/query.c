/* SPDX-License-Identifier: MIT */
/* --query-gpu and --query-compute-apps: a table of fields, printed as comma separated values. */
#include <stdlib.h>
#include <string.h>
#include "tools/smi/smi.h"

#define FIELDS_MAX 512

struct field {
	const char *name, *other, *unit;
	enum smi_kind kind;
	int arg;
	const char *help;
};

static const struct field gpu_fields[] = {
#define FIELD(name, other, unit, kind, arg, help) {name, other, unit, kind, arg, help},
#include "tools/smi/fields.def"
#undef FIELD
};

enum { APP_PID, APP_NAME, APP_MEMORY, APP_OF_GPU };

static const struct app_field {
	const char *name, *other, *unit;
	int what;
	enum smi_kind kind; /* of the GPU's value */
	int arg;
	const char *help;
} app_fields[] = {
	{"timestamp", "", "", APP_OF_GPU, TIMESTAMP, 0, "When the question was asked: YYYY/MM/DD HH:MM:SS.msec."},
	{"gpu_name", "", "", APP_OF_GPU, NAME, 0, "What the GPU calls itself."},
	{"gpu_bus_id", "", "", APP_OF_GPU, BUSID, 0, "Where it sits in the server: domain:bus:device.function, in hex."},
	{"gpu_serial", "", "", APP_OF_GPU, TEXT, FACT_SERIAL, "The number printed on the board."},
	{"gpu_uuid", "", "", APP_OF_GPU, UUID, 0, "The name of the GPU that no other has."},
	{"pid", "", "", APP_PID, NONE, 0, "The process, as the reader's pid namespace has it."},
	{"process_name", "name", "", APP_NAME, NONE, 0, "Its program."},
	{"used_gpu_memory", "used_memory", "MiB", APP_MEMORY, NONE, 0, "What it holds of the device's memory."},
};

#define COUNT_OF(a) (sizeof(a) / sizeof(*(a)))

/* The fields that are named, by their places in the table of @n entries of @size bytes that begin with the two names. */
static int choose(const char *list, const void *table, unsigned int n, size_t size, unsigned int out[FIELDS_MAX],
		  unsigned int *count, const char *what, char why[RGPU_WHY_MAX])
{
	*count = 0;
	while (*list) {
		size_t len;
		unsigned int i;

		list += strspn(list, " ,");
		len = strcspn(list, " ,");
		if (!len)
			break;
		for (i = 0; i < n; i++) {
			const char *const *names = (const void *)((const char *)table + i * size);

			if ((strlen(names[0]) == len && !strncmp(names[0], list, len)) ||
			    (strlen(names[1]) == len && !strncmp(names[1], list, len)))
				break;
		}
		if (i == n || *count == FIELDS_MAX) {
			rgpu_why(why, 0, "Field \"%.*s\" is not a valid field to query. --help-%s lists them", (int)len, list,
				 what);
			return SMI_BAD_ARGUMENT;
		}
		out[(*count)++] = i;
		list += len;
	}
	if (*count)
		return SMI_OK;
	rgpu_why(why, 0, "--%s needs names of fields. --help-%s lists them", what, what);
	return SMI_BAD_ARGUMENT;
}

static void title(const char *name, const char *unit, bool units, FILE *to)
{
	if (*unit && units)
		fprintf(to, "%s [%s]", name, unit);
	else
		fputs(name, to);
}

/* No value is quoted, so none has a comma. */
static void cell(const char *value, bool known, const char *unit, bool units, FILE *to)
{
	if (!known)
		fprintf(to, "[%s]", value);
	else
		for (; *value; value++)
			fputc(*value == ',' || *value == '\n' ? ' ' : *value, to);
	if (known && *unit && units)
		fprintf(to, " %s", unit);
}

int smi_query_gpu(const struct smi *smi, const char *fields, const struct smi_format *f, FILE *to, char why[RGPU_WHY_MAX])
{
	unsigned int chosen[FIELDS_MAX], n;
	int r = choose(fields, gpu_fields, COUNT_OF(gpu_fields), sizeof(*gpu_fields), chosen, &n, "query-gpu", why);

	if (r)
		return r;
	for (unsigned int i = 0; f->header && i < n; i++) {
		title(gpu_fields[chosen[i]].name, gpu_fields[chosen[i]].unit, f->units, to);
		fputs(i + 1 < n ? ", " : "\n", to);
	}
	for (unsigned int k = 0; k < smi->ngpus; k++) {
		for (unsigned int i = 0; i < n; i++) {
			const struct field *d = &gpu_fields[chosen[i]];
			char text[FACT_TEXT_MAX];
			bool known = smi_value(smi, &smi->gpus[k], d->kind, d->arg, text);

			cell(text, known, d->unit, f->units, to);
			fputs(i + 1 < n ? ", " : "\n", to);
		}
	}
	return SMI_OK;
}

static void app_cell(const struct smi *smi, const struct smi_process *p, const struct app_field *d, bool units, FILE *to)
{
	char text[FACT_TEXT_MAX];
	bool known = true;

	switch (d->what) {
	case APP_PID:
		snprintf(text, sizeof(text), "%u", p->pid);
		break;
	case APP_NAME:
		cell(p->name, true, "", units, to);
		return;
	case APP_MEMORY:
		snprintf(text, sizeof(text), "%llu", (unsigned long long)p->mem_used >> 20);
		break;
	default:
		known = false;
		for (unsigned int i = 0; i < smi->ngpus; i++)
			if (smi->gpus[i].index == p->gpu)
				known = smi_value(smi, &smi->gpus[i], d->kind, d->arg, text);
	}
	cell(text, known, d->unit, units, to);
}

int smi_query_apps(const struct smi *smi, const char *fields, const struct smi_format *f, FILE *to, char why[RGPU_WHY_MAX])
{
	unsigned int chosen[FIELDS_MAX], n;
	int r = choose(fields, app_fields, COUNT_OF(app_fields), sizeof(*app_fields), chosen, &n, "query-compute-apps", why);

	if (r)
		return r;
	for (unsigned int i = 0; f->header && i < n; i++) {
		title(app_fields[chosen[i]].name, app_fields[chosen[i]].unit, f->units, to);
		fputs(i + 1 < n ? ", " : "\n", to);
	}
	for (unsigned int k = 0; k < smi->nprocesses; k++) {
		for (unsigned int i = 0; i < n; i++) {
			app_cell(smi, &smi->processes[k], &app_fields[chosen[i]], f->units, to);
			fputs(i + 1 < n ? ", " : "\n", to);
		}
	}
	return SMI_OK;
}

static void help_one(const char *name, const char *other, const char *help, FILE *to)
{
	fprintf(to, "\n\"%s\"", name);
	if (*other)
		fprintf(to, " or \"%s\"", other);
	fprintf(to, "\n%s\n", help);
}

/* Exporters read this: each name in quotes, on a line of its own after an empty one. */
void smi_help_query_gpu(FILE *to)
{
	fputs("List of valid properties to query for the switch \"--query-gpu\":\n", to);
	for (unsigned int i = 0; i < COUNT_OF(gpu_fields); i++)
		help_one(gpu_fields[i].name, gpu_fields[i].other, gpu_fields[i].help, to);
	fputc('\n', to);
}

void smi_help_query_apps(FILE *to)
{
	fputs("List of valid properties to query for the switch \"--query-compute-apps\":\n", to);
	for (unsigned int i = 0; i < COUNT_OF(app_fields); i++)
		help_one(app_fields[i].name, app_fields[i].other, app_fields[i].help, to);
	fputc('\n', to);
}
