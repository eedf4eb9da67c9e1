/* SPDX-License-Identifier: MIT */
/* The short answers: -L, one line a GPU; --version; topo -m. */
#include <string.h>
#include <unistd.h>
#include "tools/smi/smi.h"

void smi_list(const struct smi *smi, FILE *to)
{
	for (unsigned int i = 0; i < smi->ngpus; i++)
		fprintf(to, "GPU %u: %s (UUID: %s)\n", smi->gpus[i].index, smi->gpus[i].name, smi->gpus[i].uuid);
}

void smi_version(const struct smi *smi, FILE *to)
{
	const char *nvml = strchr(smi->nvml_version, '.'); /* 13.590.00: CUDA's version, then NVML's */

	fprintf(to, "NVIDIA-SMI version  : 590 (rgpu-smi %s)\n", RGPU_VERSION);
	fprintf(to, "NVML version        : %s\n", nvml ? nvml + 1 : "N/A");
	fprintf(to, "DRIVER version      : %s\n", *smi->driver_version ? smi->driver_version : "N/A");
	if (smi->cuda_version)
		fprintf(to, "CUDA Version        : %u.%u\n", smi->cuda_version / 1000, smi->cuda_version % 1000 / 10);
	else
		fprintf(to, "CUDA Version        : N/A\n");
}

/* What lies between two devices of another machine is not known here; every CPU is as far from them as any other. */
void smi_topo(const struct smi *smi, FILE *to)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	fputs("\t\033[4m", to);
	for (unsigned int i = 0; i < smi->ngpus; i++)
		fprintf(to, "%sGPU%u", i ? "\t" : "", smi->gpus[i].index);
	fputs("\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\033[0m\n", to);
	for (unsigned int i = 0; i < smi->ngpus; i++) {
		fprintf(to, "GPU%u", smi->gpus[i].index);
		for (unsigned int j = 0; j < smi->ngpus; j++)
			fputs(i == j ? "\t X " : "\tN/A", to);
		if (cpus > 1)
			fprintf(to, "\t0-%ld\tN/A\t\tN/A\n", cpus - 1);
		else
			fputs("\t0\tN/A\t\tN/A\n", to);
	}
	fputs("\nLegend:\n\n"
	      "  X    = Self\n"
	      "  N/A  = Both are in the server; what lies between them there is not told here\n",
	      to);
}
