/* SPDX-License-Identifier: MIT */
/* -q: everything about each device, as text, or as XML with -x. */
#include <string.h>
#include "tools/smi/smi.h"
#include "tools/xml.h"

#define VALUE_COLUMN   55
#define PROCESS_COLUMN 42

static const struct row {
	int depth;
	const char *label, *xml;
	enum smi_kind kind;
	int arg;
	const char *unit, *display;
} rows[] = {
#define ROW(depth, label, xml, kind, arg, unit, display) {depth, label, xml, kind, arg, unit, display},
#include "tools/smi/report.def"
#undef ROW
};
#define ROWS (sizeof(rows) / sizeof(*rows))

static void line(int depth, int column, const char *label, const char *value, const char *unit, FILE *to)
{
	fprintf(to, "%*s%-*s: %s%s%s\n", 4 * depth, "", column - 4 * depth, label, value, *unit ? " " : "", unit);
}

static void process_lines(const struct smi *smi, const struct smi_gpu *g, FILE *to)
{
	bool any = false;

	for (unsigned int i = 0; i < smi->nprocesses; i++) {
		const struct smi_process *p = &smi->processes[i];
		char text[32];

		if (p->gpu != g->index)
			continue;
		if (!any)
			fputs("    Processes\n", to);
		any = true;
		line(2, PROCESS_COLUMN, "GPU instance ID", "N/A", "", to);
		line(2, PROCESS_COLUMN, "Compute instance ID", "N/A", "", to);
		snprintf(text, sizeof(text), "%u", p->pid);
		line(2, PROCESS_COLUMN, "Process ID", text, "", to);
		line(3, PROCESS_COLUMN, "Type", "C", "", to);
		line(3, PROCESS_COLUMN, "Name", p->name, "", to);
		snprintf(text, sizeof(text), "%llu", (unsigned long long)p->mem_used >> 20);
		line(3, PROCESS_COLUMN, "Used GPU Memory", text, "MiB", to);
	}
	if (!any)
		line(1, VALUE_COLUMN, "Processes", "None", "", to);
}

static bool contains(const char *list, const char *word)
{
	while (*list) {
		size_t len = strcspn(list, ",");

		if (strlen(word) == len && !strncasecmp(list, word, len))
			return true;
		list += len + (list[len] == ',');
	}
	return false;
}

/* Every word of -d chooses something. */
static int check_display(const char *list, char why[RGPU_WHY_MAX])
{
	while (*list) {
		size_t len = strcspn(list, ",");
		bool known = false;

		for (unsigned int i = 0; i < ROWS && !known; i++)
			known = strlen(rows[i].display) == len && len && !strncasecmp(rows[i].display, list, len);
		/* These two tell nothing here. */
		if (!known && !(len == 16 && !strncasecmp(list, "SUPPORTED_CLOCKS", 16)) &&
		    !(len == 7 && !strncasecmp(list, "VOLTAGE", 7))) {
			rgpu_why(why, 0, "\"%.*s\" is no section of -q; rgpu-smi -h lists them", (int)len, list);
			return SMI_BAD_ARGUMENT;
		}
		list += len + (list[len] == ',');
	}
	return SMI_OK;
}

static void gpu_lines(const struct smi *smi, const struct smi_gpu *g, const char *display, FILE *to)
{
	bool shown = true;

	fprintf(to, "GPU %s\n", g->bus_id);
	for (unsigned int i = 0; i < ROWS; i++) {
		const struct row *r = &rows[i];
		char text[FACT_TEXT_MAX];
		bool known;

		if (r->depth == 1)
			shown = !display || contains(display, r->display);
		if (!shown || !*r->label)
			continue;
		if (r->kind == SECTION) {
			fprintf(to, "%*s%s\n", 4 * r->depth, "", r->label);
		} else if (r->kind == PROCESSES) {
			process_lines(smi, g, to);
		} else {
			known = smi_value(smi, g, r->kind, r->arg, text);
			line(r->depth, VALUE_COLUMN, r->label, text, known ? r->unit : "", to);
		}
	}
	fputc('\n', to);
}

static const char *cuda(const struct smi *smi, char out[16])
{
	if (smi->cuda_version)
		snprintf(out, 16, "%u.%u", smi->cuda_version / 1000 % 1000, smi->cuda_version % 1000 / 10);
	else
		snprintf(out, 16, "N/A");
	return out;
}

static const char *driver(const struct smi *smi)
{
	return *smi->driver_version ? smi->driver_version : "N/A";
}

int smi_report(const struct smi *smi, const char *display, FILE *to, char why[RGPU_WHY_MAX])
{
	char text[32];
	int r = display ? check_display(display, why) : SMI_OK;

	if (r)
		return r;
	fputs("\n==============NVSMI LOG==============\n\n", to);
	smi_date(smi, text);
	line(0, VALUE_COLUMN, "Timestamp", text, "", to);
	line(0, VALUE_COLUMN, "Driver Version", driver(smi), "", to);
	line(0, VALUE_COLUMN, "CUDA Version", cuda(smi, text), "", to);
	fputc('\n', to);
	snprintf(text, sizeof(text), "%u", smi->count);
	line(0, VALUE_COLUMN, "Attached GPUs", text, "", to);
	for (unsigned int i = 0; i < smi->ngpus; i++)
		gpu_lines(smi, &smi->gpus[i], display, to);
	return SMI_OK;
}

/* XML ---------------------------------------------------------------------------------------------------------------- */

static void indent(int depth, FILE *to)
{
	while (depth-- > 0)
		fputc('\t', to);
}

static void element(int depth, const char *name, const char *value, const char *unit, FILE *to)
{
	indent(depth, to);
	fprintf(to, "<%s>", name);
	xml_text(value, to);
	fprintf(to, "%s%s</%s>\n", *unit ? " " : "", unit, name);
}

static void open_element(int depth, const char *name, FILE *to)
{
	indent(depth, to);
	fprintf(to, "<%s>\n", name);
}

static void close_element(int depth, const char *name, FILE *to)
{
	indent(depth, to);
	fprintf(to, "</%s>\n", name);
}

static void process_elements(const struct smi *smi, const struct smi_gpu *g, FILE *to)
{
	open_element(2, "processes", to);
	for (unsigned int i = 0; i < smi->nprocesses; i++) {
		const struct smi_process *p = &smi->processes[i];
		char text[32];

		if (p->gpu != g->index)
			continue;
		open_element(3, "process_info", to);
		element(4, "gpu_instance_id", "N/A", "", to);
		element(4, "compute_instance_id", "N/A", "", to);
		snprintf(text, sizeof(text), "%u", p->pid);
		element(4, "pid", text, "", to);
		element(4, "type", "C", "", to);
		element(4, "process_name", p->name, "", to);
		snprintf(text, sizeof(text), "%llu", (unsigned long long)p->mem_used >> 20);
		element(4, "used_memory", text, "MiB", to);
		close_element(3, "process_info", to);
	}
	close_element(2, "processes", to);
	open_element(2, "accounted_processes", to);
	close_element(2, "accounted_processes", to);
}

/* An element that lies in one of its own: outer/inner. */
static void leaf(const struct smi *smi, const struct smi_gpu *g, const struct row *r, FILE *to)
{
	const char *slash = strchr(r->xml, '/');
	char text[FACT_TEXT_MAX], outer[64];
	bool known = smi_value(smi, g, r->kind, r->arg, text);

	if (!slash) {
		element(r->depth + 1, r->xml, text, known ? r->unit : "", to);
		return;
	}
	snprintf(outer, sizeof(outer), "%.*s", (int)(slash - r->xml), r->xml);
	open_element(r->depth + 1, outer, to);
	element(r->depth + 2, slash + 1, text, known ? r->unit : "", to);
	close_element(r->depth + 1, outer, to);
}

static void gpu_elements(const struct smi *smi, const struct smi_gpu *g, FILE *to)
{
	const char *open[8]; /* sections, by depth */
	int depth = 1;

	fprintf(to, "\t<gpu id=\"%s\">\n", g->bus_id);
	for (unsigned int i = 0; i < ROWS; i++) {
		const struct row *r = &rows[i];
		/* The text shows two reasons below a third; the XML has all side by side. */
		int level = r->kind == REASON ? 2 : r->depth;

		while (depth > level) {
			depth--;
			close_element(depth + 1, open[depth], to);
		}
		if (r->kind == SECTION) {
			open_element(level + 1, r->xml, to);
			open[level] = r->xml;
			depth = level + 1;
		} else if (r->kind == PROCESSES) {
			process_elements(smi, g, to);
		} else if (level == r->depth) {
			leaf(smi, g, r, to);
		} else {
			struct row flat = *r;

			flat.depth = level;
			leaf(smi, g, &flat, to);
		}
	}
	while (depth > 1) {
		depth--;
		close_element(depth + 1, open[depth], to);
	}
	fputs("\t</gpu>\n", to);
}

void smi_report_xml(const struct smi *smi, FILE *to)
{
	char text[32];

	fputs("<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v13.dtd\">\n<nvidia_smi_log>\n", to);
	smi_date(smi, text);
	element(1, "timestamp", text, "", to);
	element(1, "driver_version", driver(smi), "", to);
	element(1, "cuda_version", cuda(smi, text), "", to);
	snprintf(text, sizeof(text), "%u", smi->count);
	element(1, "attached_gpus", text, "", to);
	for (unsigned int i = 0; i < smi->ngpus; i++)
		gpu_elements(smi, &smi->gpus[i], to);
	fputs("</nvidia_smi_log>\n", to);
}
