/* SPDX-License-Identifier: MIT */
/* The default table, in the layout of nvidia-smi 590, column for column: scripts cut it by position. */
#include "tools/smi/smi.h"
#include <string.h>

static const char full[] = "+-----------------------------------------------------------------------------------------+\n";
static const char three[] = "+-----------------------------------------+------------------------+----------------------+\n";

static const char *compute_mode(const struct smi_gpu *g)
{
	uint64_t mode;

	if (!smi_number(g, FACT_COMPUTE_MODE, &mode))
		return "N/A";
	return mode == 0 ? "Default" : mode == 2 ? "Prohibited" : mode == 3 ? "E. Process" : "N/A";
}

static unsigned long long mib(uint64_t bytes)
{
	return bytes >> 20;
}

/* A fact's number between two pieces of text; N/A when there is none. */
static const char *number(const struct smi_gpu *g, enum nvml_fact id, uint64_t divisor, const char *before, const char *after,
			  char out[24])
{
	uint64_t v;

	if (smi_number(g, id, &v))
		snprintf(out, 24, "%s%llu%s", before, (unsigned long long)(v / divisor), after);
	else
		snprintf(out, 24, "N/A");
	return out;
}

static const char *on_off(const struct smi_gpu *g, enum nvml_fact id)
{
	uint64_t v;

	return !smi_number(g, id, &v) ? "N/A" : v ? "On" : "Off";
}

static void gpu(const struct smi_gpu *g, FILE *to)
{
	char a[24], b[24], c[24], d[24], e[24], used[24], total[24], util[24];
	uint64_t mig;

	number(g, FACT_MEM_USED, 1 << 20, "", "MiB", used);
	number(g, FACT_MEM_TOTAL, 1 << 20, "", "MiB", total);
	number(g, FACT_UTIL_GPU, 1, "", "%", util);
	fprintf(to, "| %3u  %-30.30s %-3s |   %16s %-3s | %20s |\n", g->index, g->name, on_off(g, FACT_PERSISTENCE), g->bus_id,
		on_off(g, FACT_DISPLAY_ACTIVE), number(g, FACT_ECC_UNCORR_VOL, 1, "", "", a));
	fprintf(to, "| %3s %5s %5s %15s / %5s | %10s / %9s | %7s%13s |\n", number(g, FACT_FAN, 1, "", "%", a),
		number(g, FACT_TEMP_GPU, 1, "", "C", b), number(g, FACT_PSTATE, 1, "P", "", c),
		number(g, FACT_POWER, 1000, "", "W", d), number(g, FACT_POWER_ENFORCED, 1000, "", "W", e), used, total, util,
		compute_mode(g));
	fprintf(to, "| %39s | %22s | %20s |\n", "", "",
		!smi_number(g, FACT_MIG_MODE, &mig) ? "N/A"
		: mig				    ? "Enabled"
						    : "Disabled");
	fputs(three, to);
}

static void process(const struct smi_process *p, FILE *to)
{
	const char *name = p->name, *front = "";
	char mem[24];
	size_t len = strlen(name), room = 37;

	if (len > room) {
		/* The end of a path says more than its beginning. */
		front = "...";
		name += len - (room - 3);
	}
	snprintf(mem, sizeof(mem), "%lluMiB", mib(p->mem_used));
	fprintf(to, "| %4u   N/A  N/A %15u      C   %s%-*s %8s |\n", p->gpu, p->pid, front, (int)(room - strlen(front)), name,
		mem);
}

void smi_table(const struct smi *smi, FILE *to)
{
	char date[32], first[40], cuda[16] = "N/A";

	smi_date(smi, date);
	snprintf(first, sizeof(first), "NVIDIA-SMI 590 (rgpu-smi %s)", RGPU_VERSION);
	if (smi->cuda_version)
		snprintf(cuda, sizeof(cuda), "%u.%u", smi->cuda_version / 1000 % 1000, smi->cuda_version % 1000 / 10);
	fprintf(to, "%s       \n", date);
	fputs(full, to);
	fprintf(to, "| %-33.33s Driver Version: %-14.14s CUDA Version: %-8.8s |\n", first,
		*smi->driver_version ? smi->driver_version : "N/A", cuda);
	fputs(three, to);
	fputs("| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |\n"
	      "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |\n"
	      "|                                         |                        |               MIG M. |\n"
	      "|=========================================+========================+======================|\n",
	      to);
	for (unsigned int i = 0; i < smi->ngpus; i++)
		gpu(&smi->gpus[i], to);
	fputc('\n', to);
	fputs(full, to);
	fputs("| Processes:                                                                              |\n"
	      "|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |\n"
	      "|        ID   ID                                                               Usage      |\n"
	      "|=========================================================================================|\n",
	      to);
	for (unsigned int i = 0; i < smi->nprocesses; i++)
		process(&smi->processes[i], to);
	if (!smi->nprocesses)
		fputs("|  No running processes found                                                             |\n", to);
	fputs(full, to);
}
