/* SPDX-License-Identifier: MIT */
/* dmon and pmon: a line for each device, or for each process, at each look. */
#include <string.h>
#include "tools/smi/smi.h"

struct column {
	char group; /* the letter of -s */
	const char *name, *unit;
	enum nvml_fact fact;
	uint64_t divisor;
};

static const struct column device_columns[] = {
	{'p', "pwr", "W", FACT_POWER, 1000},
	{'p', "gtemp", "C", FACT_TEMP_GPU, 1},
	{'p', "mtemp", "C", FACT_TEMP_MEM, 1},
	{'u', "sm", "%", FACT_UTIL_GPU, 1},
	{'u', "mem", "%", FACT_UTIL_MEM, 1},
	{'u', "enc", "%", FACT_UTIL_ENC, 1},
	{'u', "dec", "%", FACT_UTIL_DEC, 1},
	{'u', "jpg", "%", FACT_UTIL_JPG, 1},
	{'u', "ofa", "%", FACT_UTIL_OFA, 1},
	{'c', "mclk", "MHz", FACT_CLOCK_MEM, 1},
	{'c', "pclk", "MHz", FACT_CLOCK_GRAPHICS, 1},
	{'m', "fb", "MB", FACT_MEM_USED, 1 << 20},
	{'m', "bar1", "MB", FACT_BAR1_USED, 1 << 20},
	{'e', "sbecc", "errs", FACT_ECC_CORR_VOL, 1},
	{'e', "dbecc", "errs", FACT_ECC_UNCORR_VOL, 1},
	{'e', "pci", "errs", FACT_PCIE_REPLAYS, 1},
	{'t', "rxpci", "MB/s", FACT_PCIE_RX, 1000},
	{'t', "txpci", "MB/s", FACT_PCIE_TX, 1000},
};

static bool wanted(const struct smi_monitor *m, const char *usual, char group)
{
	return strchr(m->columns ? m->columns : usual, group);
}

/* The columns of @m; those of one group stand together, in the order of the letters. */
static unsigned int pick(const struct smi_monitor *m, const struct column *out[32])
{
	const char *letters = m->columns ? m->columns : "puc";
	unsigned int n = 0;

	for (; *letters; letters++)
		for (unsigned int i = 0; i < sizeof(device_columns) / sizeof(*device_columns) && n < 32; i++)
			if (device_columns[i].group == *letters)
				out[n++] = &device_columns[i];
	return n;
}

static void stamp_head(const struct smi_monitor *m, bool first, FILE *to)
{
	fputc('#', to);
	if (m->date)
		fputs(first ? "Date       " : "YYYYMMDD   ", to);
	if (m->clock)
		fputs(first ? "Time     " : "HH:MM:SS ", to);
}

static void stamp(const struct smi *smi, const struct smi_monitor *m, FILE *to)
{
	char text[32];
	struct tm tm;

	localtime_r(&smi->when.tv_sec, &tm);
	if (m->date) {
		strftime(text, sizeof(text), "%Y%m%d", &tm);
		fprintf(to, "%s%s", text, m->csv ? ", " : "   ");
	}
	if (m->clock) {
		strftime(text, sizeof(text), "%H:%M:%S", &tm);
		fprintf(to, "%s%s", text, m->csv ? ", " : " ");
	}
}

int smi_dmon_head(const struct smi_monitor *m, FILE *to)
{
	const struct column *c[32];
	unsigned int n = pick(m, c);

	if (m->columns && strspn(m->columns, "pucmetv") != strlen(m->columns))
		return SMI_BAD_ARGUMENT;
	for (int row = 0; row < 2 && m->format.header; row++) {
		if (m->csv && row && !m->format.units)
			break;
		stamp_head(m, !row, to);
		fputs(row ? (m->csv ? "Idx" : " Idx") : (m->csv ? "gpu" : " gpu"), to);
		for (unsigned int i = 0; i < n; i++)
			fprintf(to, m->csv ? ", %s" : "%7s", row ? c[i]->unit : c[i]->name);
		fputs(m->csv ? "\n" : " \n", to);
	}
	return SMI_OK;
}

void smi_dmon(const struct smi *smi, const struct smi_monitor *m, FILE *to)
{
	const struct column *c[32];
	unsigned int n = pick(m, c);

	for (unsigned int k = 0; k < smi->ngpus; k++) {
		stamp(smi, m, to);
		fprintf(to, m->csv ? "%u" : "%5u", smi->gpus[k].index);
		for (unsigned int i = 0; i < n; i++) {
			char text[32] = "-";
			uint64_t v;

			if (smi_number(&smi->gpus[k], c[i]->fact, &v))
				snprintf(text, sizeof(text), "%llu", (unsigned long long)(v / c[i]->divisor));
			fprintf(to, m->csv ? ", %s" : "%7s", text);
		}
		fputs(m->csv ? "\n" : " \n", to);
	}
}

int smi_pmon_head(const struct smi_monitor *m, FILE *to)
{
	bool u = wanted(m, "u", 'u'), fb = wanted(m, "u", 'm');

	if (m->columns && strspn(m->columns, "um") != strlen(m->columns))
		return SMI_BAD_ARGUMENT;
	if (!m->format.header)
		return SMI_OK;
	stamp_head(m, true, to);
	fprintf(to, " gpu         pid   type%s%s    command \n", u ? "     sm    mem    enc    dec    jpg    ofa" : "",
		fb ? "     fb   ccpm" : "");
	stamp_head(m, false, to);
	fprintf(to, " Idx           #    C/G%s%s    name \n", u ? "      %      %      %      %      %      %" : "",
		fb ? "     MB     MB" : "");
	return SMI_OK;
}

static void percent(uint32_t v, FILE *to)
{
	if (v == RGPU_TELEMETRY_NONE || !v)
		fprintf(to, "%7s", "-");
	else
		fprintf(to, "%7u", v);
}

static void pmon_line(const struct smi *smi, const struct smi_monitor *m, unsigned int gpu, const struct smi_process *p, FILE *to)
{
	const char *slash = p ? strrchr(p->name, '/') : NULL;

	stamp(smi, m, to);
	if (p)
		fprintf(to, "%5u%11u%6s", gpu, p->pid, "C");
	else
		fprintf(to, "%5u%11s%6s", gpu, "-", "-");
	if (wanted(m, "u", 'u')) {
		percent(p ? p->busy : RGPU_TELEMETRY_NONE, to);
		percent(p ? p->busy_memory : RGPU_TELEMETRY_NONE, to);
		fputs("      -      -      -      -", to);
	}
	if (wanted(m, "u", 'm')) {
		if (p)
			fprintf(to, "%7llu%7s", (unsigned long long)p->mem_used >> 20, "-");
		else
			fprintf(to, "%7s%7s", "-", "-");
	}
	fprintf(to, "    %-15.15s\n", !p ? "-" : slash ? slash + 1 : p->name);
}

void smi_pmon(const struct smi *smi, const struct smi_monitor *m, FILE *to)
{
	for (unsigned int k = 0; k < smi->ngpus; k++) {
		bool any = false;

		for (unsigned int i = 0; i < smi->nprocesses; i++) {
			if (smi->processes[i].gpu != smi->gpus[k].index)
				continue;
			any = true;
			pmon_line(smi, m, smi->gpus[k].index, &smi->processes[i], to);
		}
		if (!any)
			pmon_line(smi, m, smi->gpus[k].index, NULL, to);
	}
}
