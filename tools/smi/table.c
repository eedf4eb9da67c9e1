/* SPDX-License-Identifier: MIT */
/* The default table, in the layout of nvidia-smi 590, column for column: scripts cut it by position. */
#include "tools/smi/smi.h"
#include <string.h>
#include <time.h>

static const char full[] = "+-----------------------------------------------------------------------------------------+\n";
static const char three[] = "+-----------------------------------------+------------------------+----------------------+\n";

static const char *compute_mode(int mode)
{
	switch (mode) {
	case 0:
		return "Default";
	case 2:
		return "Prohibited";
	case 3:
		return "E. Process";
	default:
		return "N/A";
	}
}

static unsigned long long mib(uint64_t bytes)
{
	return bytes >> 20;
}

static void gpu(const struct smi_gpu *g, unsigned int i, FILE *to)
{
	char used[24], total[24], util[16];

	snprintf(used, sizeof(used), "%lluMiB", mib(g->mem_used));
	snprintf(total, sizeof(total), "%lluMiB", mib(g->mem_total));
	if (g->utilization == SMI_UNKNOWN)
		snprintf(util, sizeof(util), "N/A");
	else
		snprintf(util, sizeof(util), "%u%%", g->utilization);
	fprintf(to, "| %3u  %-30.30s %-3s |   %16s %-3s | %20s |\n", i, g->name, "Off", g->bus_id, "Off", "N/A");
	fprintf(to, "| %3s %5s %5s %15s / %5s | %10s / %9s | %7s%13s |\n", "N/A", "N/A", "N/A", "N/A", "N/A", used, total, util,
		compute_mode(g->compute_mode));
	fprintf(to, "| %39s | %22s | %20s |\n", "", "", "N/A");
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
	fprintf(to, "| %4u   N/A  N/A %15d      C   %s%-*s %8s |\n", p->gpu, p->pid, front, (int)(room - strlen(front)), name,
		mem);
}

void smi_table(const struct smi *smi, FILE *to)
{
	time_t now = time(NULL);
	char date[64], first[40], cuda[16];
	struct tm tm;

	strftime(date, sizeof(date), "%a %b %e %H:%M:%S %Y", localtime_r(&now, &tm));
	snprintf(first, sizeof(first), "NVIDIA-SMI 590 (rgpu-smi %s)", SMI_VERSION);
	snprintf(cuda, sizeof(cuda), "%u.%u", smi->driver_version / 1000, smi->driver_version % 1000 / 10);
	fprintf(to, "%s       \n", date);
	fputs(full, to);
	fprintf(to, "| %-33.33s Driver Version: %-14s CUDA Version: %-8s |\n", first, "N/A", cuda);
	fputs(three, to);
	fputs("| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |\n"
	      "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |\n"
	      "|                                         |                        |               MIG M. |\n"
	      "|=========================================+========================+======================|\n",
	      to);
	for (unsigned int i = 0; i < smi->ngpus; i++)
		gpu(&smi->gpus[i], i, to);
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
