// SPDX-License-Identifier: MIT
/* What a device does and holds at the moment, in NVML's structures. */
#include <sched.h>
#include <time.h>
#include "shim/nvml/call.h"

/* The memory of a CPU is not measured: its rate is then 0, for programs want both. */
API nvml_return nvmlDeviceGetUtilizationRates(void *device, struct nvml_utilization *out)
{
	struct gpu *g;
	uint64_t v;

	TRY(nvml_enter(device, &g));
	NEED(out);
	TRY(nvml_fact(g, FACT_UTIL_GPU, &v));
	out->gpu = v;
	out->memory = nvml_fact(g, FACT_UTIL_MEM, &v) ? 0 : v;
	return NVML_SUCCESS;
}

static nvml_return memory(void *device, enum nvml_fact total, enum nvml_fact free, enum nvml_fact used, struct nvml_memory *out)
{
	uint64_t t, f, u;
	struct gpu *g;

	TRY(nvml_enter(device, &g));
	NEED(out);
	TRY(nvml_fact(g, total, &t));
	TRY(nvml_fact(g, free, &f));
	TRY(nvml_fact(g, used, &u));
	*out = (struct nvml_memory){t, f, u};
	return NVML_SUCCESS;
}

API nvml_return nvmlDeviceGetMemoryInfo_v2(void *device, struct nvml_memory2 *out)
{
	struct nvml_memory m;
	uint64_t reserved;

	NEED(out);
	TRY(memory(device, FACT_MEM_TOTAL, FACT_MEM_FREE, FACT_MEM_USED, &m));
	if (out->version != NVML_VERSIONED(*out, 2))
		return NVML_ARGUMENT_VERSION_MISMATCH;
	out->total = m.total;
	out->reserved = nvml_fact(nvml_handle(device), FACT_MEM_RESERVED, &reserved) ? 0 : reserved;
	out->free = m.free;
	out->used = m.used;
	return NVML_SUCCESS;
}

/* The first release counts as used what the driver has reserved. */
API nvml_return nvmlDeviceGetMemoryInfo(void *device, struct nvml_memory *out)
{
	struct nvml_memory m;

	NEED(out);
	TRY(memory(device, FACT_MEM_TOTAL, FACT_MEM_FREE, FACT_MEM_USED, &m));
	*out = (struct nvml_memory){m.total, m.free, m.total - m.free};
	return NVML_SUCCESS;
}

API nvml_return nvmlDeviceGetBAR1MemoryInfo(void *device, struct nvml_memory *out)
{
	return memory(device, FACT_BAR1_TOTAL, FACT_BAR1_FREE, FACT_BAR1_USED, out);
}

API nvml_return nvmlDeviceGetConfComputeProtectedMemoryUsage(void *device, struct nvml_memory *out)
{
	return memory(device, FACT_PROTECTED_TOTAL, FACT_PROTECTED_FREE, FACT_PROTECTED_USED, out);
}

API nvml_return nvmlDeviceGetTemperatureV(void *device, struct nvml_temperature *t)
{
	struct gpu *g;
	uint64_t v;

	TRY(nvml_enter(device, &g));
	NEED(t);
	if (t->version != NVML_VERSIONED(*t, 1))
		return NVML_ARGUMENT_VERSION_MISMATCH;
	NEED(!t->sensor);
	TRY(nvml_fact(g, FACT_TEMP_GPU, &v));
	t->celsius = v;
	return NVML_SUCCESS;
}

API nvml_return nvmlDeviceGetMarginTemperature(void *device, struct nvml_margin *t)
{
	struct gpu *g;
	uint64_t v;

	TRY(nvml_enter(device, &g));
	NEED(t);
	if (t->version != NVML_VERSIONED(*t, 1))
		return NVML_ARGUMENT_VERSION_MISMATCH;
	TRY(nvml_fact(g, FACT_TEMP_MARGIN, &v));
	t->celsius = (int64_t)v;
	return NVML_SUCCESS;
}

/* How many; their addresses are the server's. */
API nvml_return nvmlDeviceGetRetiredPages(void *device, unsigned cause, unsigned *count, unsigned long long *addresses)
{
	struct gpu *g;
	uint64_t v;

	(void)addresses;
	TRY(nvml_enter(device, &g));
	NEED(cause < 2 && count);
	TRY(nvml_fact(g, FACT_RETIRED_SINGLE + cause, &v));
	if (v && *count)
		return NVML_NOT_SUPPORTED;
	*count = v;
	return v ? NVML_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

/* The fields that have a fact. Numbers are NVML's. */
static const struct {
	unsigned field;
	enum nvml_fact fact;
	enum nvml_value_type type;
} fields[] = {
	{1, FACT_ECC_MODE, NVML_TYPE_UINT},
	{2, FACT_ECC_PENDING, NVML_TYPE_UINT},
	{3, FACT_ECC_CORR_VOL, NVML_TYPE_ULONGLONG},
	{4, FACT_ECC_UNCORR_VOL, NVML_TYPE_ULONGLONG},
	{5, FACT_ECC_CORR_AGG, NVML_TYPE_ULONGLONG},
	{6, FACT_ECC_UNCORR_AGG, NVML_TYPE_ULONGLONG},
	{29, FACT_RETIRED_SINGLE, NVML_TYPE_UINT},
	{30, FACT_RETIRED_DOUBLE, NVML_TYPE_UINT},
	{31, FACT_RETIRED_PENDING, NVML_TYPE_UINT},
	{82, FACT_TEMP_MEM, NVML_TYPE_UINT},
	{83, FACT_ENERGY, NVML_TYPE_ULONGLONG},
	{94, FACT_PCIE_REPLAYS, NVML_TYPE_UINT},
	{142, FACT_REMAP_CORR, NVML_TYPE_UINT},
	{143, FACT_REMAP_UNCORR, NVML_TYPE_UINT},
	{144, FACT_REMAP_PENDING, NVML_TYPE_UINT},
	{145, FACT_REMAP_FAILURE, NVML_TYPE_UINT},
	{185, FACT_POWER_AVERAGE, NVML_TYPE_UINT},
	{186, FACT_POWER_INSTANT, NVML_TYPE_UINT},
	{187, FACT_POWER_MIN_LIMIT, NVML_TYPE_UINT},
	{188, FACT_POWER_MAX_LIMIT, NVML_TYPE_UINT},
	{189, FACT_POWER_DEFAULT_LIMIT, NVML_TYPE_UINT},
	{190, FACT_POWER_ENFORCED, NVML_TYPE_UINT},
	{191, FACT_POWER_LIMIT, NVML_TYPE_UINT},
};

static void field(struct gpu *g, struct nvml_field *f)
{
	struct timespec t;
	uint64_t v;

	clock_gettime(CLOCK_REALTIME, &t);
	f->timestamp = t.tv_sec * 1000000ll + t.tv_nsec / 1000;
	f->latency = 0;
	f->result = NVML_NOT_SUPPORTED;
	for (unsigned i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		if (fields[i].field != f->id)
			continue;
		f->result = nvml_fact(g, fields[i].fact, &v);
		f->type = fields[i].type;
		memset(&f->value, 0, sizeof(f->value));
		if (!f->result && f->type == NVML_TYPE_UINT)
			f->value.ui = v;
		else if (!f->result)
			f->value.ull = v;
	}
}

API nvml_return nvmlDeviceGetFieldValues(void *device, int n, struct nvml_field *values)
{
	struct gpu *g;

	TRY(nvml_enter(device, &g));
	NEED(n > 0 && values);
	for (int i = 0; i < n; i++)
		field(g, &values[i]);
	return NVML_SUCCESS;
}

/* Every CPU here is as far from the device as any other. */
API nvml_return nvmlDeviceGetCpuAffinity(void *device, unsigned words, unsigned long *set)
{
	struct gpu *g;
	cpu_set_t all;

	TRY(nvml_enter(device, &g));
	NEED(words && set);
	memset(set, 0, words * sizeof(*set));
	if (sched_getaffinity(0, sizeof(all), &all))
		return NVML_UNKNOWN;
	for (unsigned cpu = 0; cpu < words * 8 * sizeof(*set) && cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all))
			set[cpu / (8 * sizeof(*set))] |= 1ul << cpu % (8 * sizeof(*set));
	return NVML_SUCCESS;
}

API nvml_return nvmlDeviceGetCpuAffinityWithinScope(void *device, unsigned words, unsigned long *set, unsigned scope)
{
	NEED(scope < 2);
	return nvmlDeviceGetCpuAffinity(device, words, set);
}

/* read, write, NVLink, atomics, PCI; statuses 0 yes, 5 no, 6 not known. */
API nvml_return nvmlDeviceGetP2PStatus(void *a, void *b, unsigned what, unsigned *status)
{
	const struct rgpu_props *p;
	struct gpu *x, *y;
	int attribute;

	TRY(nvml_enter(a, &x));
	TRY(nvml_enter(b, &y));
	NEED(what < 6 && status);
	p = x->dev->props;
	*status = 6;
	if (x == y || what == 2 || what > 3 || y->server_index >= RGPU_PROPS_DEVICES ||
	    x->dev->props_len < offsetof(struct rgpu_props, attrs))
		return NVML_SUCCESS;
	attribute = what == 3 ? 3 : 2; /* CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, …_ACCESS_SUPPORTED */
	*status = p->p2p[attribute][y->server_index] ? 0 : 5;
	return NVML_SUCCESS;
}

API nvml_return nvmlDeviceOnSameBoard(void *a, void *b, int *same)
{
	struct gpu *x, *y;

	TRY(nvml_enter(a, &x));
	TRY(nvml_enter(b, &y));
	NEED(same);
	*same = x == y;
	return NVML_SUCCESS;
}
