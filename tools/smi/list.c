/* SPDX-License-Identifier: MIT */
/* The short answers: -L, one line a GPU, and --version. */
#include "tools/smi/smi.h"

void smi_list(const struct smi *smi, FILE *to)
{
	for (unsigned int i = 0; i < smi->ngpus; i++) {
		const uint8_t *u = smi->gpus[i].uuid;

		fprintf(to, "GPU %u: %s (UUID: GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x)\n", i,
			smi->gpus[i].name, u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13],
			u[14], u[15]);
	}
}

void smi_version(const struct smi *smi, FILE *to)
{
	fprintf(to, "NVIDIA-SMI version  : 590 (rgpu-smi %s)\n", SMI_VERSION);
	fprintf(to, "NVML version        : N/A\n");
	fprintf(to, "DRIVER version      : N/A\n");
	if (smi->driver_version)
		fprintf(to, "CUDA Version        : %u.%u\n", smi->driver_version / 1000, smi->driver_version % 1000 / 10);
	else
		fprintf(to, "CUDA Version        : N/A\n");
}
