/* SPDX-License-Identifier: MIT */
/* What rgpu-smi knows of the devices and their processes at one moment, and who prints it. */
#ifndef RGPU_TOOLS_SMI_H
#define RGPU_TOOLS_SMI_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <linux/rgpu.h>
#include "api/nvml_facts.h"
#include "lib/why.h"

struct smi_gpu {
	unsigned int index, minor;
	char name[RGPU_NAME_LEN];
	char uuid[48];
	char bus_id[32]; /* as nvidia-smi has it: 00000000:83:00.0 */
	unsigned int domain, bus, device;
	int cc_major, cc_minor; /* −1: not known */
	struct {
		uint8_t status; /* an enum nvml_result */
		uint64_t value;
	} fact[FACTS_MAX];
	char text[20][FACT_TEXT_MAX]; /* of facts with a text, by their number */
};

struct smi_process {
	unsigned int gpu; /* index */
	unsigned int pid; /* as the reader sees it */
	char name[256];
	uint64_t mem_used;	    /* bytes, on that GPU */
	uint32_t busy, busy_memory; /* per cent, RGPU_TELEMETRY_NONE not known */
};

struct smi_remote {
	bool known;
	struct rgpu_telemetry_link link;
	bool through_module;
	unsigned int sessions;
	uint64_t records, fences, rate_up, rate_down;
};

struct smi {
	struct timespec when;
	uint32_t cuda_version; /* as cuDriverGetVersion: 13000; 0 not known */
	char driver_version[FACT_TEXT_MAX], nvml_version[32];
	unsigned int count; /* devices that there are */
	unsigned int ngpus, nprocesses;
	struct smi_gpu *gpus;	       /* those that were asked for */
	struct smi_process *processes; /* by GPU, then by pid */
	struct smi_remote remote;
};

/* Exit statuses, as nvidia-smi documents them. */
enum smi_exit {
	SMI_OK = 0,
	SMI_BAD_ARGUMENT = 2,
	SMI_NOT_SUPPORTED = 3,
	SMI_NO_PERMISSION = 4,
	SMI_NOT_FOUND = 6,
	SMI_NO_DRIVER = 9,
	SMI_GPU_LOST = 15,
	SMI_VERSION_MISMATCH = 18,
	SMI_OTHER = 255,
};

/* Opens the way to the devices; @why says what went wrong and what to do about it. An enum smi_exit. */
int smi_open(char why[RGPU_WHY_MAX]);
void smi_close(void);

#define SMI_SLOW   1u /* also facts that take some time to measure */
#define SMI_REMOTE 2u /* also the connection */

/* A picture of now. @ids: devices by index, UUID or bus id, separated by commas; NULL: all. An enum smi_exit. */
int smi_collect(struct smi *smi, const char *ids, unsigned int flags, char why[RGPU_WHY_MAX]);
void smi_free(struct smi *smi);

/* How a value is made: the words of fields.def and report.def. */
enum smi_kind {
	NONE,
	DEPRECATED,
	SECTION,
	PROCESSES,
	TIMESTAMP,
	COUNT,
	NAME,
	UUID,
	BUSID,
	PCIDOMAIN,
	PCIBUS,
	PCIDEVICE,
	PCICLASS,
	INDEX,
	MINOR,
	COMPUTECAP,
	TEXT,
	NUMBER,
	SIGNED,
	MIB,
	WATT,
	HEX32,
	HEX64,
	HEXSHORT,
	LANES,
	PSTATE,
	REASON,
	ENABLED,
	YESNO,
	COMPUTEMODE,
	GOM,
	BRAND,
	ARCHITECTURE,
	VIRTUALIZATION,
};

/* The value in words, without its unit. false: there is none, and @out says so: N/A, or that it is deprecated. */
bool smi_value(const struct smi *smi, const struct smi_gpu *g, enum smi_kind kind, int arg, char out[FACT_TEXT_MAX]);

/* The fact's number; false: not known. */
bool smi_number(const struct smi_gpu *g, enum nvml_fact id, uint64_t *out);

/* Of the local clock; @out has room for 32 bytes. */
void smi_date(const struct smi *smi, char *out);      /* Fri Jul  3 22:11:09 2026 */
void smi_timestamp(const struct smi *smi, char *out); /* 2026/07/03 22:11:09.763 */

struct smi_format {
	bool header, units;
};

/* 0; or SMI_BAD_ARGUMENT with @why. Both check all names before they print. */
int smi_query_gpu(const struct smi *smi, const char *fields, const struct smi_format *f, FILE *to, char why[RGPU_WHY_MAX]);
int smi_query_apps(const struct smi *smi, const char *fields, const struct smi_format *f, FILE *to, char why[RGPU_WHY_MAX]);
void smi_help_query_gpu(FILE *to);
void smi_help_query_apps(FILE *to);

/* @display: words of -d separated by commas; NULL: everything. */
int smi_report(const struct smi *smi, const char *display, FILE *to, char why[RGPU_WHY_MAX]);
void smi_report_xml(const struct smi *smi, FILE *to);

void smi_table(const struct smi *smi, FILE *to);
void smi_remote(const struct smi *smi, FILE *to);
void smi_list(const struct smi *smi, FILE *to);
void smi_version(const struct smi *smi, FILE *to);
void smi_topo(const struct smi *smi, FILE *to);

struct smi_monitor {
	const char *columns; /* letters of -s; NULL: the usual ones */
	bool date, clock;    /* -o D, T */
	bool csv;
	struct smi_format format;
};
int smi_dmon_head(const struct smi_monitor *m, FILE *to); /* SMI_BAD_ARGUMENT: a letter is unknown */
void smi_dmon(const struct smi *smi, const struct smi_monitor *m, FILE *to);
int smi_pmon_head(const struct smi_monitor *m, FILE *to);
void smi_pmon(const struct smi *smi, const struct smi_monitor *m, FILE *to);

#endif
