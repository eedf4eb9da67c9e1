/* SPDX-License-Identifier: MIT */
/* Prints a view of rgpu-smi for a machine with an H200 under load and a device of which nothing is known. Usage: smi-views VIEW
 */
#include <stdlib.h>
#include <string.h>
#include "tools/smi/smi.h"

#define MIB (1ull << 20)

static struct smi_gpu gpus[2];

static void num(enum nvml_fact id, uint64_t v)
{
	gpus[0].fact[id].status = 0;
	gpus[0].fact[id].value = v;
}

static void str(enum nvml_fact id, const char *s)
{
	gpus[0].fact[id].status = 0;
	snprintf(gpus[0].text[id], FACT_TEXT_MAX, "%s", s);
}

static void fill(void)
{
	for (unsigned int i = 0; i < FACTS_MAX; i++)
		gpus[0].fact[i].status = gpus[1].fact[i].status = 3;
	gpus[0].minor = 0;
	snprintf(gpus[0].name, sizeof(gpus[0].name), "NVIDIA H200");
	snprintf(gpus[0].uuid, sizeof(gpus[0].uuid), "GPU-00000000-0000-0000-0000-000000000000");
	snprintf(gpus[0].bus_id, sizeof(gpus[0].bus_id), "00000000:83:00.0");
	gpus[0].bus = 0x83;
	gpus[0].cc_major = 9;
	str(FACT_SERIAL, "0000000000000");
	str(FACT_DRIVER_VERSION, "590.48.01");
	str(FACT_VBIOS, "96.00.A5.00.03");
	str(FACT_BOARD_PART, "695-2G520-0280-001");
	str(FACT_INFOROM_IMAGE, "G520.0280.02.02");
	str(FACT_INFOROM_OEM, "2.1");
	str(FACT_INFOROM_ECC, "7.16");
	str(FACT_GSP_VERSION, "590.48.01");
	num(FACT_BRAND, 14);
	num(FACT_ARCHITECTURE, 9);
	num(FACT_BOARD_ID, 0x8300);
	num(FACT_MULTI_GPU_BOARD, 0);
	num(FACT_PCI_DEVICE_ID, 0x233510de);
	num(FACT_PCI_SUBSYSTEM_ID, 0x18be10de);
	num(FACT_PCIE_GEN_MAX, 5);
	num(FACT_PCIE_GPU_GEN_MAX, 5);
	num(FACT_PCIE_GEN, 5);
	num(FACT_PCIE_WIDTH_MAX, 16);
	num(FACT_PCIE_WIDTH, 16);
	num(FACT_PCIE_REPLAYS, 0);
	num(FACT_PCIE_TX, 4217);
	num(FACT_PCIE_RX, 8691);
	num(FACT_MODULE_ID, 1);
	num(FACT_VIRTUALIZATION, 1);
	num(FACT_GSP_MODE, 1);
	num(FACT_GSP_DEFAULT, 1);
	num(FACT_PERSISTENCE, 1);
	num(FACT_DISPLAY_MODE, 1);
	num(FACT_DISPLAY_ACTIVE, 0);
	num(FACT_ACCOUNTING, 0);
	num(FACT_ACCOUNTING_BUFFER, 4000);
	num(FACT_COMPUTE_MODE, 0);
	num(FACT_MIG_MODE, 0);
	num(FACT_MIG_PENDING, 0);
	num(FACT_ECC_MODE, 1);
	num(FACT_ECC_PENDING, 1);
	for (int id = FACT_ECC_CORR_VOL; id <= FACT_ECC_SRAM_UNCORR_AGG; id++)
		num(id, 0);
	num(FACT_REMAP_CORR, 0);
	num(FACT_REMAP_UNCORR, 0);
	num(FACT_REMAP_PENDING, 0);
	num(FACT_REMAP_FAILURE, 0);
	num(FACT_REMAP_HIST_MAX, 3072);
	for (int id = FACT_REMAP_HIST_HIGH; id <= FACT_ENC_LATENCY; id++)
		num(id, 0);
	num(FACT_CLOCK_REASONS_SUPPORTED, 0x1ff);
	num(FACT_CLOCK_REASONS, 0);
	num(FACT_PSTATE, 0);
	num(FACT_MEM_TOTAL, 143771 * MIB);
	num(FACT_MEM_RESERVED, 614 * MIB);
	num(FACT_MEM_USED, 32362 * MIB);
	num(FACT_MEM_FREE, 110796 * MIB);
	num(FACT_BAR1_TOTAL, 262144 * MIB);
	num(FACT_BAR1_USED, 32363 * MIB);
	num(FACT_BAR1_FREE, 229781 * MIB);
	num(FACT_PROTECTED_TOTAL, 0);
	num(FACT_PROTECTED_USED, 0);
	num(FACT_PROTECTED_FREE, 0);
	num(FACT_UTIL_GPU, 100);
	num(FACT_UTIL_MEM, 7);
	num(FACT_UTIL_ENC, 0);
	num(FACT_UTIL_DEC, 0);
	num(FACT_UTIL_JPG, 0);
	num(FACT_UTIL_OFA, 0);
	num(FACT_TEMP_GPU, 52);
	num(FACT_TEMP_MARGIN, 35);
	num(FACT_TEMP_MEM, 40);
	num(FACT_POWER, 628400);
	num(FACT_POWER_AVERAGE, 627400);
	num(FACT_POWER_INSTANT, 626260);
	num(FACT_POWER_LIMIT, 700000);
	num(FACT_POWER_ENFORCED, 700000);
	num(FACT_POWER_DEFAULT_LIMIT, 700000);
	num(FACT_POWER_MIN_LIMIT, 200000);
	num(FACT_POWER_MAX_LIMIT, 700000);
	num(FACT_CLOCK_GRAPHICS, 1980);
	num(FACT_CLOCK_SM, 1980);
	num(FACT_CLOCK_MEM, 3201);
	num(FACT_CLOCK_VIDEO, 1545);
	num(FACT_MAX_CLOCK_GRAPHICS, 1980);
	num(FACT_MAX_CLOCK_SM, 1980);
	num(FACT_MAX_CLOCK_MEM, 3201);
	num(FACT_MAX_CLOCK_VIDEO, 1545);
	num(FACT_BOOST_CLOCK_GRAPHICS, 1980);
	for (int id = FACT_APP_CLOCK_GRAPHICS; id <= FACT_APP_DEFAULT_MEM; id++)
		gpus[0].fact[id].status = 26;

	gpus[1].index = gpus[1].minor = 1;
	snprintf(gpus[1].name, sizeof(gpus[1].name), "A name & <more>, that is far too long for its column");
	snprintf(gpus[1].uuid, sizeof(gpus[1].uuid), "GPU-ab000000-0000-0000-0000-00000000000c");
	snprintf(gpus[1].bus_id, sizeof(gpus[1].bus_id), "00000001:01:00.0");
	gpus[1].domain = gpus[1].bus = 1;
	gpus[1].cc_major = gpus[1].cc_minor = -1;
}

int main(int argc, char **argv)
{
	static struct smi_process processes[] = {
		{0, 10291, "/root/tools/memhog", 2566 * MIB, RGPU_TELEMETRY_NONE, RGPU_TELEMETRY_NONE},
		{0, 10309, "./gpu_burn", 28234 * MIB, 99, 7},
		{1, 4194303, "/usr/local/lib/python3.11/some/long/path/bin/python3.11", MIB, 0, RGPU_TELEMETRY_NONE},
	};
	struct smi smi = {
		.when = {1783116669, 916000000},
		.cuda_version = 13010,
		.driver_version = "590.48.01",
		.nvml_version = "13.590.00",
		.count = 2,
		.ngpus = 2,
		.nprocesses = 3,
		.gpus = gpus,
		.processes = processes,
		.remote = {.known = true,
			   .link = {"gpuhost:7478", "rgpu-server 0.1", "CUDA 13.1", "TLSv1.3 TLS_AES_128_GCM_SHA256", 212000,
				    1870000, 512, 0},
			   .through_module = true,
			   .sessions = 2,
			   .records = 1000000,
			   .fences = 40000,
			   .rate_up = 1234567890,
			   .rate_down = 54321},
	};
	struct smi_monitor m = {.format = {true, true}};
	struct smi_format all = {true, true}, bare = {false, false};
	char why[RGPU_WHY_MAX] = "";
	const char *view = argc > 1 ? argv[1] : "";

	setenv("TZ", "UTC", 1);
	fill();
	if (!strcmp(view, "table")) {
		smi_table(&smi, stdout);
		smi_remote(&smi, stdout);
	} else if (!strcmp(view, "idle")) {
		smi.nprocesses = 0;
		smi.ngpus = smi.count = 1;
		smi_table(&smi, stdout);
	} else if (!strcmp(view, "q")) {
		return smi_report(&smi, argc > 2 ? argv[2] : NULL, stdout, why);
	} else if (!strcmp(view, "xml")) {
		smi_report_xml(&smi, stdout);
	} else if (!strcmp(view, "list")) {
		smi_list(&smi, stdout);
		smi_version(&smi, stdout);
		smi_topo(&smi, stdout);
	} else if (!strcmp(view, "gpu")) {
		return smi_query_gpu(&smi, argv[2], argc > 3 ? &bare : &all, stdout, why);
	} else if (!strcmp(view, "apps")) {
		return smi_query_apps(&smi, argv[2], argc > 3 ? &bare : &all, stdout, why);
	} else if (!strcmp(view, "help-gpu")) {
		smi_help_query_gpu(stdout);
	} else if (!strcmp(view, "help-apps")) {
		smi_help_query_apps(stdout);
	} else if (!strcmp(view, "dmon") || !strcmp(view, "pmon")) {
		bool d = *view == 'd';

		m.columns = argc > 2 ? argv[2] : NULL;
		m.date = m.clock = argc > 3;
		if (d ? smi_dmon_head(&m, stdout) : smi_pmon_head(&m, stdout))
			return 2;
		(d ? smi_dmon : smi_pmon)(&smi, &m, stdout);
	} else {
		return 2;
	}
	return 0;
}
