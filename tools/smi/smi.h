/* SPDX-License-Identifier: MIT */
/* What rgpu-smi knows of the devices and their processes, and who prints it. */
#ifndef RGPU_TOOLS_SMI_H
#define RGPU_TOOLS_SMI_H

#include <stdint.h>
#include <stdio.h>
#include <linux/rgpu.h>
#include "lib/why.h"

#define SMI_VERSION "0.1"

#define SMI_UNKNOWN UINT32_MAX

struct smi_gpu {
	char name[RGPU_NAME_LEN];
	char bus_id[24]; /* as nvidia-smi has it: 00000000:83:00.0 */
	uint8_t uuid[RGPU_UUID_LEN];
	uint64_t mem_used, mem_total; /* bytes */
	uint32_t utilization;	      /* per cent, or SMI_UNKNOWN */
	int compute_mode;	      /* CU_COMPUTEMODE_…, −1 unknown */
};

struct smi_process {
	unsigned int gpu;
	int pid; /* as this host sees it */
	char name[256];
	uint64_t mem_used; /* bytes, on that GPU */
};

struct smi {
	uint32_t driver_version; /* as cuDriverGetVersion: 13000 */
	unsigned int ngpus, nprocesses;
	struct smi_gpu *gpus;
	struct smi_process *processes; /* by GPU, then by pid */
};

/* Exit statuses, as nvidia-smi documents them. */
enum smi_exit {
	SMI_OK = 0,
	SMI_BAD_ARGUMENT = 2,
	SMI_NO_PERMISSION = 4,
	SMI_NOT_FOUND = 6,
	SMI_NO_DRIVER = 9,
	SMI_GPU_LOST = 15,
	SMI_VERSION_MISMATCH = 18,
	SMI_OTHER = 255,
};

/* Asks the transport; @why says what went wrong and what to do about it. An enum smi_exit. */
int smi_collect(struct smi *smi, char why[RGPU_WHY_MAX]);
void smi_free(struct smi *smi);

void smi_table(const struct smi *smi, FILE *to);
void smi_list(const struct smi *smi, FILE *to);
void smi_version(const struct smi *smi, FILE *to);

#endif
