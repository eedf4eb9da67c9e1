/* SPDX-License-Identifier: MIT */
/* rgpu-smi's table against lines of a real nvidia-smi 590: scripts cut it by columns. */
#include "tests/tap.h"
#include "tools/smi/smi.h"

static char *lines[64];
static unsigned int nlines;

static void print(const struct smi *smi)
{
	static char buf[16384];
	FILE *f = fmemopen(buf, sizeof(buf), "w");

	smi_table(smi, f);
	fclose(f);
	nlines = 0;
	for (char *l = strtok(buf, "\n"); l && nlines < 64; l = strtok(NULL, "\n"))
		lines[nlines++] = l;
}

static bool has(const char *want)
{
	for (unsigned int i = 0; i < nlines; i++)
		if (!strcmp(lines[i], want))
			return true;
	return false;
}

int main(void)
{
	struct smi_gpu gpus[] = {
		{.name = "NVIDIA H200",
		 .bus_id = "00000000:83:00.0",
		 .mem_used = 32362ull << 20,
		 .mem_total = 143771ull << 20,
		 .utilization = 100},
		{.name = "A name that is far too long for its column",
		 .bus_id = "00000001:01:00.0",
		 .mem_total = 8ull << 30,
		 .utilization = SMI_UNKNOWN,
		 .compute_mode = 3},
	};
	struct smi_process processes[] = {
		{0, 10291, "/root/tools/memhog", 2566ull << 20},
		{0, 10309, "./gpu_burn", 28234ull << 20},
		{1, 4194303, "/usr/local/lib/python3.11/some/long/path/bin/python3.11", 1ull << 20},
	};
	struct smi smi = {.driver_version = 13010, .ngpus = 2, .nprocesses = 3, .gpus = gpus, .processes = processes};
	bool wide = true;
	char list[4096];
	FILE *f;

	print(&smi);
	/* These are nvidia-smi's, byte for byte, where nothing of the GPU's own state stands in them. */
	ok(has("|    0   N/A  N/A           10291      C   /root/tools/memhog                     2566MiB |"), "a process");
	ok(has("|    0   N/A  N/A           10309      C   ./gpu_burn                            28234MiB |"), "a larger one");
	ok(has("|=========================================+========================+======================|"), "the rule");
	ok(has("| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |"), "the heading");
	ok(has("|   0  NVIDIA H200                    Off |   00000000:83:00.0 Off |                  N/A |"),
	   "a GPU's first line");
	ok(has("| N/A   N/A   N/A             N/A /   N/A |   32362MiB / 143771MiB |    100%      Default |"), "its second line");
	ok(has("|   1  A name that is far too long fo Off |   00000001:01:00.0 Off |                  N/A |"),
	   "a long name stays in its column");
	ok(has("|    1   N/A  N/A         4194303      C   ...3.11/some/long/path/bin/python3.11     1MiB |"),
	   "a long path keeps its end");
	for (unsigned int i = 1; i < nlines; i++)
		if (strlen(lines[i]) != 91)
			wide = !printf("# %zu: %s\n", strlen(lines[i]), lines[i]);
	ok(wide, "every line is 91 columns wide");
	ok(strstr(lines[2], "CUDA Version: 13.1 "), "the CUDA version is where scripts look for it");

	smi.nprocesses = 0;
	print(&smi);
	ok(has("|  No running processes found                                                             |"), "no process");

	gpus[0].uuid[0] = 0xab;
	gpus[0].uuid[15] = 0x0c;
	smi.ngpus = 1;
	f = fmemopen(list, sizeof(list), "w");
	smi_list(&smi, f);
	fclose(f);
	is_str(list, "GPU 0: NVIDIA H200 (UUID: GPU-ab000000-0000-0000-0000-00000000000c)\n", "-L");
	return tap_done();
}
