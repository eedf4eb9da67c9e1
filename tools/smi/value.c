/* SPDX-License-Identifier: MIT */
/* A fact in the words that nvidia-smi has for it. */
#include <string.h>
#include "tools/smi/smi.h"

bool smi_number(const struct smi_gpu *g, enum nvml_fact id, uint64_t *out)
{
	if (!g->fact[id].status)
		*out = g->fact[id].value;
	return !g->fact[id].status;
}

static void local(const struct smi *smi, struct tm *tm)
{
	localtime_r(&smi->when.tv_sec, tm);
}

void smi_date(const struct smi *smi, char *out)
{
	struct tm tm;

	local(smi, &tm);
	strftime(out, 32, "%a %b %e %H:%M:%S %Y", &tm);
}

void smi_timestamp(const struct smi *smi, char *out)
{
	struct tm tm;
	size_t n;

	local(smi, &tm);
	n = strftime(out, 32, "%Y/%m/%d %H:%M:%S", &tm);
	snprintf(out + n, 32 - n, ".%03d", (int)(smi->when.tv_nsec / 1000000 % 1000));
}

static const char *word(const char *const words[], unsigned int n, uint64_t i)
{
	return i < n && words[i] ? words[i] : NULL;
}
#define WORD(i, ...) word((const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), i)

/* A number that stands for something. NULL: for nothing known. */
static const char *named(enum smi_kind kind, uint64_t v)
{
	switch (kind) {
	case ENABLED:
		return v ? "Enabled" : "Disabled";
	case YESNO:
		return v ? "Yes" : "No";
	case COMPUTEMODE:
		return WORD(v, "Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process");
	case GOM:
		return WORD(v, "All On", "Compute", "Low Double Precision");
	case BRAND:
		return WORD(v, "Unknown", "Quadro", "Tesla", "NVS", "GRID", "GeForce", "Titan", "NVIDIA Virtual Applications",
			    "NVIDIA Virtual PC", "NVIDIA RTX Virtual Workstation", "NVIDIA Virtual Compute Server",
			    "NVIDIA Cloud Gaming", "Quadro RTX", "NVIDIA RTX", "NVIDIA", "GeForce RTX", "Titan RTX");
	case ARCHITECTURE:
		return WORD(v, NULL, NULL, "Kepler", "Maxwell", "Pascal", "Volta", "Turing", "Ampere", "Ada Lovelace", "Hopper",
			    "Blackwell");
	case VIRTUALIZATION:
		return WORD(v, "None", "Pass-Through", "VGPU", "Host VGPU", "Host VSGA");
	default:
		return NULL;
	}
}

/* What is told in numbers. */
static void numeral(enum smi_kind kind, int arg, uint64_t v, char out[FACT_TEXT_MAX])
{
	unsigned long long n = v;

	switch (kind) {
	case SIGNED:
		snprintf(out, FACT_TEXT_MAX, "%lld", (long long)v);
		return;
	case MIB:
		snprintf(out, FACT_TEXT_MAX, "%llu", n >> 20);
		return;
	case WATT:
		snprintf(out, FACT_TEXT_MAX, "%.2f", n / 1000.0);
		return;
	case HEX32:
		snprintf(out, FACT_TEXT_MAX, "0x%08llX", n);
		return;
	case HEX64:
		snprintf(out, FACT_TEXT_MAX, "0x%016llX", n);
		return;
	case HEXSHORT:
		snprintf(out, FACT_TEXT_MAX, "0x%llx", n);
		return;
	case LANES:
		snprintf(out, FACT_TEXT_MAX, "%llux", n);
		return;
	case PSTATE:
		snprintf(out, FACT_TEXT_MAX, "P%llu", n);
		return;
	case REASON:
		snprintf(out, FACT_TEXT_MAX, "%s", n >> arg & 1 ? "Active" : "Not Active");
		return;
	default:
		snprintf(out, FACT_TEXT_MAX, "%llu", n);
	}
}

/* What is no fact: known of the device in any case. */
static bool described(const struct smi *smi, const struct smi_gpu *g, enum smi_kind kind, int arg, char out[FACT_TEXT_MAX])
{
	switch (kind) {
	case TIMESTAMP:
		smi_timestamp(smi, out);
		return true;
	case COUNT:
		snprintf(out, FACT_TEXT_MAX, "%u", smi->count);
		return true;
	case NAME:
		snprintf(out, FACT_TEXT_MAX, "%s", g->name);
		return true;
	case UUID:
		snprintf(out, FACT_TEXT_MAX, "%s", g->uuid);
		return true;
	case BUSID:
		snprintf(out, FACT_TEXT_MAX, "%s", g->bus_id);
		return true;
	case PCIDOMAIN:
		snprintf(out, FACT_TEXT_MAX, "0x%04X", g->domain);
		return true;
	case PCIBUS:
		snprintf(out, FACT_TEXT_MAX, "0x%02X", g->bus);
		return true;
	case PCIDEVICE:
		snprintf(out, FACT_TEXT_MAX, "0x%02X", g->device);
		return true;
	case PCICLASS:
		snprintf(out, FACT_TEXT_MAX, "0x%X", arg);
		return true;
	case INDEX:
		snprintf(out, FACT_TEXT_MAX, "%u", g->index);
		return true;
	case MINOR:
		snprintf(out, FACT_TEXT_MAX, "%u", g->minor);
		return true;
	case COMPUTECAP:
		snprintf(out, FACT_TEXT_MAX, "%d.%d", g->cc_major, g->cc_minor);
		return g->cc_major >= 0 && g->cc_minor >= 0;
	default:
		return false;
	}
}

#define STATUS_DEPRECATED 26

bool smi_value(const struct smi *smi, const struct smi_gpu *g, enum smi_kind kind, int arg, char out[FACT_TEXT_MAX])
{
	enum nvml_fact id = kind == REASON ? FACT_CLOCK_REASONS : arg;
	const char *w;

	if (kind >= TIMESTAMP && kind < TEXT && described(smi, g, kind, arg, out))
		return true;
	if (kind == DEPRECATED || (kind >= TEXT && g->fact[id].status == STATUS_DEPRECATED)) {
		strcpy(out, "Requested functionality has been deprecated");
		return false;
	}
	strcpy(out, "N/A");
	if (kind < TEXT || g->fact[id].status)
		return false;
	if (kind == TEXT) {
		snprintf(out, FACT_TEXT_MAX, "%s", g->text[id]);
		return true;
	}
	if (kind < ENABLED) {
		numeral(kind, arg, g->fact[id].value, out);
		return true;
	}
	w = named(kind, g->fact[id].value);
	if (w)
		strcpy(out, w);
	return w;
}
