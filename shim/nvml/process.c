// SPDX-License-Identifier: MIT
/* The functions about processes. All of them compute; none draws, and none comes through MPS. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include "shim/nvml/call.h"

/* The device's processes, first in the list. */
static nvml_return on_device(struct gpu *g, struct nvml_client **list, unsigned *n)
{
	unsigned all, left = 0;

	TRY(nvml_clients(list, &all));
	for (unsigned i = 0; i < all; i++)
		if ((*list)[i].gpu == nvml_index(g))
			(*list)[left++] = (*list)[i];
	*n = left;
	return NVML_SUCCESS;
}

/* NVML's rule for lists: *count has the room, and gets the number; one that does not fit gets the number alone. */
static nvml_return room_for(unsigned n, unsigned *count, const void *out)
{
	unsigned room = out ? *count : 0;

	*count = n;
	return n > room ? NVML_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

static nvml_return running(void *device, unsigned *count, void *out, unsigned size)
{
	struct nvml_client *list;
	nvml_return r;
	struct gpu *g;
	unsigned n;

	TRY(nvml_enter(device, &g));
	NEED(count && (out || !*count));
	TRY(on_device(g, &list, &n));
	r = room_for(n, count, out);
	for (unsigned i = 0; !r && i < n; i++) {
		struct nvml_process p = {list[i].pid, list[i].mem_used, ~0u, ~0u};

		memcpy((char *)out + i * size, &p, size);
	}
	free(list);
	return r;
}

/* The first release's entries are the first two members of the later ones. */
API nvml_return nvmlDeviceGetComputeRunningProcesses(void *device, unsigned *count, struct nvml_process1 *out)
{
	return running(device, count, out, sizeof(*out));
}

API nvml_return nvmlDeviceGetComputeRunningProcesses_v2(void *device, unsigned *count, struct nvml_process *out)
{
	return running(device, count, out, sizeof(*out));
}

API nvml_return nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct nvml_process *out)
{
	return running(device, count, out, sizeof(*out));
}

static nvml_return none(void *device, unsigned *count)
{
	struct gpu *g;

	TRY(nvml_enter(device, &g));
	NEED(count);
	*count = 0;
	return NVML_SUCCESS;
}

#define NONE(name)                                                                                                               \
	API nvml_return name(void *device, unsigned *count, void *out)                                                           \
	{                                                                                                                        \
		(void)out;                                                                                                       \
		return none(device, count);                                                                                      \
	}
NONE(nvmlDeviceGetGraphicsRunningProcesses)
NONE(nvmlDeviceGetGraphicsRunningProcesses_v2)
NONE(nvmlDeviceGetGraphicsRunningProcesses_v3)
NONE(nvmlDeviceGetMPSComputeRunningProcesses)
NONE(nvmlDeviceGetMPSComputeRunningProcesses_v2)
NONE(nvmlDeviceGetMPSComputeRunningProcesses_v3)
NONE(nvmlDeviceGetEncoderSessions)

API nvml_return nvmlDeviceGetRunningProcessDetailList(void *device, struct nvml_process_detail_list *l)
{
	struct nvml_client *list;
	struct gpu *g;
	nvml_return r;
	unsigned n;

	TRY(nvml_enter(device, &g));
	NEED(l);
	if (l->version != NVML_VERSIONED(*l, 1))
		return NVML_ARGUMENT_VERSION_MISMATCH;
	if (l->mode) { /* graphics, MPS */
		l->n = 0;
		return NVML_SUCCESS;
	}
	TRY(on_device(g, &list, &n));
	r = room_for(n, &l->n, l->list);
	for (unsigned i = 0; !r && i < n; i++)
		l->list[i] = (struct nvml_process_detail){list[i].pid, list[i].mem_used, ~0u, ~0u, 0};
	free(list);
	return r;
}

static unsigned long long now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * 1000000ull + t.tv_nsec / 1000;
}

static unsigned percent(uint32_t v)
{
	return v == RGPU_TELEMETRY_NONE ? 0 : v;
}

/* One sample of each process whose use is known: that of the last second. */
static nvml_return sampled(struct gpu *g, struct nvml_client **list, unsigned *n)
{
	unsigned left = 0;

	TRY(on_device(g, list, n));
	for (unsigned i = 0; i < *n; i++)
		if ((*list)[i].busy != RGPU_TELEMETRY_NONE)
			(*list)[left++] = (*list)[i];
	*n = left;
	if (left)
		return NVML_SUCCESS;
	free(*list);
	return NVML_NOT_FOUND; /* as NVML says where nothing was sampled */
}

API nvml_return nvmlDeviceGetProcessUtilization(void *device, struct nvml_process_sample *out, unsigned *count,
						unsigned long long since)
{
	struct nvml_client *list;
	struct gpu *g;
	nvml_return r;
	unsigned n;

	(void)since;
	TRY(nvml_enter(device, &g));
	NEED(count);
	TRY(sampled(g, &list, &n));
	r = room_for(n, count, out);
	for (unsigned i = 0; !r && i < n; i++)
		out[i] = (struct nvml_process_sample){list[i].pid, now_us(), percent(list[i].busy), percent(list[i].busy_memory),
						      0,	   0};
	free(list);
	return r;
}

API nvml_return nvmlDeviceGetProcessesUtilizationInfo(void *device, struct nvml_process_util_list *l)
{
	struct nvml_client *list;
	struct gpu *g;
	nvml_return r;
	unsigned n;

	TRY(nvml_enter(device, &g));
	NEED(l);
	if (l->version != NVML_VERSIONED(*l, 1))
		return NVML_ARGUMENT_VERSION_MISMATCH;
	TRY(sampled(g, &list, &n));
	r = room_for(n, &l->n, l->list);
	for (unsigned i = 0; !r && i < n; i++)
		l->list[i] = (struct nvml_process_util){
			now_us(), list[i].pid, percent(list[i].busy), percent(list[i].busy_memory), 0, 0, 0, 0};
	l->last_seen = now_us();
	free(list);
	return r;
}

API nvml_return nvmlSystemGetProcessName(unsigned pid, char *name, unsigned length)
{
	char buf[4096];

	TRY(nvml_ready());
	NEED(name && length);
	if (!nvml_program(pid, NULL, buf, sizeof(buf))) {
		char path[64];
		FILE *f;

		/* Not readable for other users; their program's short name is. */
		snprintf(path, sizeof(path), "/proc/%u/comm", pid);
		f = fopen(path, "r");
		if (!f || !fgets(buf, sizeof(buf), f)) {
			if (f)
				fclose(f);
			return errno == EACCES ? NVML_NO_PERMISSION : NVML_NOT_FOUND;
		}
		fclose(f);
		buf[strcspn(buf, "\n")] = 0;
	}
	snprintf(name, length, "%s", buf);
	return NVML_SUCCESS;
}
