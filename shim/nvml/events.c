// SPDX-License-Identifier: MIT
/* Events: what is told is that a device was lost; of the rest a wait hears nothing, and waits. */
#include <stdlib.h>
#include <time.h>
#include "lib/clock.h"
#include "shim/nvml/call.h"

#define XID	8ull /* nvmlEventTypeXidCriticalError */
#define LOOK_MS 1000

struct event_set {
	uint64_t watched; /* bit per device */
};

API nvml_return nvmlDeviceGetSupportedEventTypes(void *device, unsigned long long *types)
{
	struct gpu *g;

	TRY(nvml_enter(device, &g));
	NEED(types);
	*types = XID;
	return NVML_SUCCESS;
}

API nvml_return nvmlEventSetCreate(struct event_set **set)
{
	TRY(nvml_ready());
	NEED(set);
	*set = calloc(1, sizeof(**set));
	return *set ? NVML_SUCCESS : NVML_MEMORY;
}

API nvml_return nvmlEventSetFree(struct event_set *set)
{
	TRY(nvml_ready());
	NEED(set);
	free(set);
	return NVML_SUCCESS;
}

API nvml_return nvmlDeviceRegisterEvents(void *device, unsigned long long types, struct event_set *set)
{
	struct gpu *g;

	TRY(nvml_enter(device, &g));
	NEED(set);
	if (types & ~XID)
		return NVML_NOT_SUPPORTED;
	if (types)
		set->watched |= 1ull << nvml_index(g);
	return NVML_SUCCESS;
}

static nvml_return look(const struct event_set *set)
{
	uint64_t v;

	for (unsigned i = 0; i < nvml_count(); i++)
		if (set->watched >> i & 1 && nvml_fact(nvml_gpu(i), FACT_MEM_TOTAL, &v) == NVML_GPU_IS_LOST)
			return NVML_GPU_IS_LOST;
	return NVML_SUCCESS;
}

static nvml_return wait_for(const struct event_set *set, unsigned timeout_ms)
{
	int64_t deadline = rgpu_now_ns() + timeout_ms * 1000000LL;

	TRY(nvml_ready());
	NEED(set);
	for (;;) {
		int64_t left = deadline - rgpu_now_ns(), nap;
		struct timespec t;

		if (left <= 0)
			return NVML_TIMEOUT;
		nap = left < LOOK_MS * 1000000LL ? left : LOOK_MS * 1000000LL;
		t = (struct timespec){nap / 1000000000, nap % 1000000000};
		nanosleep(&t, NULL);
		TRY(look(set));
	}
}

API nvml_return nvmlEventSetWait_v2(struct event_set *set, struct nvml_event *event, unsigned timeout_ms)
{
	NEED(event);
	return wait_for(set, timeout_ms);
}

API nvml_return nvmlEventSetWait(struct event_set *set, struct nvml_event1 *event, unsigned timeout_ms)
{
	NEED(event);
	return wait_for(set, timeout_ms);
}
