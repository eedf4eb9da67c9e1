/* SPDX-License-Identifier: MIT */
/* The picture: what our NVML knows of the devices, their processes and the way to them. */
#include <stdlib.h>
#include <string.h>
#include "shim/nvml/lib.h"
#include "tools/smi/smi.h"

static int exit_of(enum nvml_result r)
{
	switch (r) {
	case NVML_SUCCESS:
		return SMI_OK;
	case NVML_INVALID_ARGUMENT:
		return SMI_BAD_ARGUMENT;
	case NVML_NOT_SUPPORTED:
		return SMI_NOT_SUPPORTED;
	case NVML_NO_PERMISSION:
	case NVML_OPERATING_SYSTEM: /* how NVML says EPERM */
		return SMI_NO_PERMISSION;
	case NVML_NOT_FOUND:
		return SMI_NOT_FOUND;
	case NVML_DRIVER_NOT_LOADED:
		return SMI_NO_DRIVER;
	case NVML_GPU_IS_LOST:
		return SMI_GPU_LOST;
	case NVML_LIB_RM_VERSION_MISMATCH:
		return SMI_VERSION_MISMATCH;
	default:
		return SMI_OTHER;
	}
}

int smi_open(char why[RGPU_WHY_MAX])
{
	return exit_of(nvml_open(false, why));
}

void smi_close(void)
{
	nvml_close();
}

static enum nvml_result facts(struct smi_gpu *out, struct gpu *g, unsigned int flags)
{
	static const struct {
		uint16_t id;
		uint8_t group;
	} all[] = {
#define FACT(id, name, group, shape, function, argument) {id, FACT_GROUP_##group},
#include "api/nvml_facts.def"
#undef FACT
	};

	for (unsigned int i = 0; i < sizeof(all) / sizeof(*all); i++) {
		uint16_t id = all[i].id;
		enum nvml_result r = NVML_NOT_SUPPORTED;

		if (id < FACT_TEXTS)
			r = nvml_text(g, id, out->text[id]);
		else if (all[i].group != FACT_GROUP_SLOW || flags & SMI_SLOW)
			r = nvml_fact(g, id, &out->fact[id].value);
		out->fact[id].status = r < 255 ? r : 255;
		if (r == NVML_GPU_IS_LOST)
			return r;
	}
	return NVML_SUCCESS;
}

static enum nvml_result describe(struct smi_gpu *out, struct gpu *g, unsigned int flags)
{
	*out = (struct smi_gpu){
		.index = nvml_index(g),
		.minor = nvml_through_module() ? g->dev->minor : nvml_index(g),
		.domain = g->domain,
		.bus = g->bus,
		.device = g->device,
		.cc_major = nvml_attribute(g, 75), /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, …_MINOR */
		.cc_minor = nvml_attribute(g, 76),
	};
	snprintf(out->name, sizeof(out->name), "%s", g->dev->name);
	memcpy(out->uuid, g->uuid, sizeof(out->uuid));
	memcpy(out->bus_id, g->bus_id, sizeof(out->bus_id));
	return facts(out, g, flags);
}

/* Index, UUID, bus id with as much of the domain as people write, or serial number. */
static bool named(struct gpu *g, const char *id, size_t len)
{
	char text[64], serial[FACT_TEXT_MAX], *end;
	unsigned int domain = 0, bus, dev;
	unsigned long n;

	if (!len || len >= sizeof(text))
		return false;
	memcpy(text, id, len);
	text[len] = 0;
	n = strtoul(text, &end, 10);
	if (!*end && n < GPUS_MAX && n == nvml_index(g))
		return true;
	if (!strcasecmp(text, g->uuid))
		return true;
	if (sscanf(text, "%x:%x:%x", &domain, &bus, &dev) == 3 || (domain = 0, sscanf(text, "%x:%x", &bus, &dev) == 2))
		return domain == g->domain && bus == g->bus && dev == g->device;
	return !nvml_text(g, FACT_SERIAL, serial) && !strcmp(text, serial);
}

static int choose(bool chosen[GPUS_MAX], const char *ids, char why[RGPU_WHY_MAX])
{
	for (unsigned int i = 0; i < nvml_count(); i++)
		chosen[i] = !ids;
	while (ids && *ids) {
		size_t len = strcspn(ids, ",");
		bool found = false;

		for (unsigned int i = 0; i < nvml_count(); i++)
			if (named(nvml_gpu(i), ids, len))
				chosen[i] = found = true;
		if (!found) {
			rgpu_why(why, 0, "No devices were found: \"%.*s\" is no index, UUID or bus id of one", (int)len, ids);
			return SMI_NOT_FOUND;
		}
		ids += len + (ids[len] == ',');
	}
	return SMI_OK;
}

static int by_gpu_and_pid(const void *a, const void *b)
{
	const struct smi_process *x = a, *y = b;

	return x->gpu != y->gpu ? (x->gpu < y->gpu ? -1 : 1) : x->pid < y->pid ? -1 : x->pid > y->pid;
}

/* A session on two devices is in the list twice. */
static void count_session(struct smi_remote *r, const struct nvml_client *all, unsigned int i)
{
	for (unsigned int j = 0; j < i; j++)
		if (!memcmp(all[i].sid, all[j].sid, sizeof(all[i].sid)))
			return;
	r->sessions++;
	r->records += all[i].records;
	r->fences += all[i].fences;
	r->rate_up += all[i].rate_up;
	r->rate_down += all[i].rate_down;
}

/* Who started a program chose its name: to a terminal it is no command, and XML has no such characters. */
static void tame(char *name)
{
	for (; *name; name++)
		if ((unsigned char)*name < ' ' || *name == 0x7f)
			*name = '?';
}

static enum nvml_result processes(struct smi *smi, const bool chosen[GPUS_MAX])
{
	struct nvml_client *all = NULL;
	unsigned int n = 0;
	enum nvml_result r = nvml_clients(&all, &n);

	if (r == NVML_NOT_SUPPORTED) /* an older server */
		return NVML_SUCCESS;
	if (r)
		return r;
	smi->processes = calloc(n + 1, sizeof(*smi->processes));
	for (unsigned int i = 0; smi->processes && i < n; i++) {
		struct smi_process *p = &smi->processes[smi->nprocesses];

		count_session(&smi->remote, all, i);
		if (!chosen[all[i].gpu])
			continue;
		*p = (struct smi_process){
			.gpu = all[i].gpu,
			.pid = all[i].pid,
			.mem_used = all[i].mem_used,
			.busy = all[i].busy,
			.busy_memory = all[i].busy_memory,
		};
		if (!nvml_program(p->pid, all[i].comm, p->name, sizeof(p->name)))
			snprintf(p->name, sizeof(p->name), "[Not Found]");
		tame(p->name);
		smi->nprocesses++;
	}
	free(all);
	if (!smi->processes)
		return NVML_MEMORY;
	qsort(smi->processes, smi->nprocesses, sizeof(*smi->processes), by_gpu_and_pid);
	return NVML_SUCCESS;
}

int smi_collect(struct smi *smi, const char *ids, unsigned int flags, char why[RGPU_WHY_MAX])
{
	bool chosen[GPUS_MAX] = {false};
	enum nvml_result r = NVML_SUCCESS;
	const char *said;
	int status;

	memset(smi, 0, sizeof(*smi));
	clock_gettime(CLOCK_REALTIME, &smi->when);
	smi->count = nvml_count();
	smi->cuda_version = nvml_cuda_version();
	snprintf(smi->nvml_version, sizeof(smi->nvml_version), "%s", NVML_INTERFACE);
	status = choose(chosen, ids, why);
	if (status)
		return status;
	smi->gpus = calloc(smi->count + 1, sizeof(*smi->gpus));
	if (!smi->gpus)
		r = NVML_MEMORY;
	for (unsigned int i = 0; !r && i < smi->count; i++)
		if (chosen[i])
			r = describe(&smi->gpus[smi->ngpus++], nvml_gpu(i), flags);
	if (!r)
		r = processes(smi, chosen);
	if (!r && smi->count && nvml_text(nvml_gpu(0), FACT_DRIVER_VERSION, smi->driver_version))
		smi->driver_version[0] = 0;
	if (!r && flags & SMI_REMOTE)
		smi->remote.known = !nvml_link(&smi->remote.link);
	smi->remote.through_module = nvml_through_module();
	if (!r)
		return SMI_OK;
	said = rgpu_transport_why(NULL);
	rgpu_why(why, 0, "asking the server for its devices: %s", said && *said ? said : "it did not answer");
	smi_free(smi);
	return exit_of(r);
}

void smi_free(struct smi *smi)
{
	free(smi->gpus);
	free(smi->processes);
	memset(smi, 0, sizeof(*smi));
}
