// SPDX-License-Identifier: MIT
/* The process that asks the genuine NVML: each fact by the function and in the shape that its row names. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include "api/nvml_abi.h"
#include "api/nvml_facts.h"
#include "lib/clock.h"
#include "lib/log.h"
#include "lib/uuid.h"
#include "server/devices.h"
#include "server/nvml.h"

#define FRESH_MS      100 /* an answer this old is given again: many clients cost the driver no more than one */
#define SAMPLES_MAX   256
#define PROCESSES_MAX 256

typedef void *gpu_handle;

/* Every function takes what its shape says: the table is the only caller. */
union call {
	void *p;
	unsigned (*system)(char *, unsigned);
	unsigned (*str)(gpu_handle, char *, unsigned);
	unsigned (*str1)(gpu_handle, char *);
	unsigned (*inforom)(gpu_handle, int, char *, unsigned);
	unsigned (*u32)(gpu_handle, unsigned *);
	unsigned (*u32a)(gpu_handle, unsigned, unsigned *);
	unsigned (*u64)(gpu_handle, unsigned long long *);
	unsigned (*pair)(gpu_handle, unsigned *, unsigned *);
	unsigned (*three)(gpu_handle, unsigned *, unsigned *, unsigned *);
	unsigned (*four)(gpu_handle, unsigned *, unsigned *, unsigned *, unsigned *);
	unsigned (*five)(gpu_handle, struct nvml_histogram *);
	unsigned (*rates)(gpu_handle, struct nvml_utilization *);
	unsigned (*mem1)(gpu_handle, struct nvml_memory *);
	unsigned (*mem2)(gpu_handle, struct nvml_memory2 *);
	unsigned (*pci)(gpu_handle, struct nvml_pci *);
	unsigned (*margin)(gpu_handle, struct nvml_margin *);
	unsigned (*field)(gpu_handle, int, struct nvml_field *);
	unsigned (*ecc)(gpu_handle, int, int, unsigned long long *);
	unsigned (*eccat)(gpu_handle, int, int, int, unsigned long long *);
	unsigned (*retired)(gpu_handle, int, unsigned *, unsigned long long *);
};

enum shape {
	SYSTEM,
	STR,
	STR1,
	INFOROM,
	U32,
	U32A,
	U64,
	PAIR,
	THREE,
	FOUR,
	FIVE,
	RATES,
	MEM1,
	MEM2,
	PCI,
	MARGIN,
	FIELD,
	ECC,
	ECCAT,
	RETIRED,
};

static const struct fact {
	uint16_t id;
	uint8_t group, shape;
	int arg;
	const char *function;
} facts[] = {
#define FACT(id, name, group, shape, function, arg) {id, FACT_GROUP_##group, shape, arg, #function},
#include "api/nvml_facts.def"
#undef FACT
};
#define NFACTS (sizeof(facts) / sizeof(*facts))

static union call calls[NFACTS];
static unsigned (*handle_by_uuid)(const char *, gpu_handle *);
static unsigned (*running)(gpu_handle, unsigned *, struct nvml_process *);
static unsigned (*samples)(gpu_handle, struct nvml_process_sample *, unsigned *, unsigned long long);

static struct gpu {
	uint8_t uuid[16];
	gpu_handle handle; /* NULL: NVML does not know it, as a slice of a GPU */
	struct cached {
		int64_t at; /* 0 never */
		uint32_t len;
		_Alignas(struct nvml_use) uint8_t buf[RGPU_CONTROL_MAX];
	} cached[RGPU_TELEMETRY_PROCESSES];
} gpus[DEVICES_MAX];
static unsigned ngpus;

static int load(const char *lib)
{
	void *l = dlopen(lib, RTLD_NOW | RTLD_LOCAL);
	const char *e = l ? NULL : dlerror();
	unsigned (*init)(void), r;

	if (!l) {
		rgpu_note("no NVML: %s", e ? e : lib);
		return -1;
	}
	/* Ours would ask a server again, perhaps this one. */
	if (dlsym(l, "rgpuNvml")) {
		rgpu_err("%s is rgpu's own: take its folder out of LD_LIBRARY_PATH, or name the driver's with --nvml FILE", lib);
		return -1;
	}
	init = dlsym(l, "nvmlInit_v2");
	handle_by_uuid = dlsym(l, "nvmlDeviceGetHandleByUUID");
	running = dlsym(l, "nvmlDeviceGetComputeRunningProcesses_v3");
	samples = dlsym(l, "nvmlDeviceGetProcessUtilization");
	if (!init || !handle_by_uuid) {
		rgpu_err("%s is no NVML", lib);
		return -1;
	}
	r = init();
	if (r) {
		rgpu_err("%s: nvmlInit fails with error %u; look with nvidia-smi whether the GPU works", lib, r);
		return -1;
	}
	for (unsigned i = 0; i < NFACTS; i++)
		calls[i].p = dlsym(l, facts[i].function);
	return 0;
}

static struct gpu *find(const uint8_t uuid[16])
{
	char text[RGPU_UUID_TEXT_MAX];
	struct gpu *g;

	for (unsigned i = 0; i < ngpus; i++)
		if (!memcmp(gpus[i].uuid, uuid, 16))
			return &gpus[i];
	if (ngpus == DEVICES_MAX)
		return NULL;
	g = &gpus[ngpus++];
	memcpy(g->uuid, uuid, 16);
	rgpu_uuid_text(text, uuid);
	if (handle_by_uuid(text, &g->handle)) {
		rgpu_note("NVML does not know the device %s", text);
		g->handle = NULL;
	}
	return g;
}

static uint64_t of(unsigned which, const unsigned v[])
{
	return v[which];
}

/* A number. The value in *@out, sign-extended where NVML has a signed one. */
static unsigned number(const struct fact *f, union call c, gpu_handle d, uint64_t *out)
{
	unsigned v[4] = {0};
	unsigned long long u64 = 0;
	struct nvml_histogram h = {0};
	struct nvml_utilization u = {0};
	struct nvml_memory m1 = {0};
	struct nvml_memory2 m2 = {.version = NVML_VERSIONED(struct nvml_memory2, 2)};
	struct nvml_pci pci = {0};
	struct nvml_margin mg = {.version = NVML_VERSIONED(struct nvml_margin, 1)};
	struct nvml_field fv = {.id = f->arg};
	unsigned r;

	switch (f->shape) {
	case U32:
		r = c.u32(d, &v[0]);
		*out = v[0];
		return r;
	case U32A:
		r = c.u32a(d, f->arg, &v[0]);
		*out = v[0];
		return r;
	case U64:
		r = c.u64(d, &u64);
		*out = u64;
		return r;
	case PAIR:
		r = c.pair(d, &v[0], &v[1]);
		*out = of(f->arg, v);
		return r;
	case THREE:
		r = c.three(d, &v[0], &v[1], &v[2]);
		*out = of(f->arg, v);
		return r;
	case FOUR:
		r = c.four(d, &v[0], &v[1], &v[2], &v[3]);
		*out = of(f->arg, v);
		return r;
	case FIVE:
		r = c.five(d, &h);
		*out = of(f->arg, (const unsigned[]){h.max, h.high, h.partial, h.low, h.none});
		return r;
	case RATES:
		r = c.rates(d, &u);
		*out = f->arg ? u.memory : u.gpu;
		return r;
	case MEM1:
		r = c.mem1(d, &m1);
		*out = f->arg == 0 ? m1.total : f->arg == 1 ? m1.free : m1.used;
		return r;
	case MEM2:
		r = c.mem2(d, &m2);
		*out = f->arg == 0 ? m2.total : f->arg == 1 ? m2.reserved : f->arg == 2 ? m2.free : m2.used;
		return r;
	case PCI:
		r = c.pci(d, &pci);
		*out = f->arg ? pci.subsystem_id : pci.device_id;
		return r;
	case MARGIN:
		r = c.margin(d, &mg);
		*out = (int64_t)mg.celsius;
		return r;
	case FIELD:
		r = c.field(d, 1, &fv);
		*out = fv.type == NVML_TYPE_UINT  ? fv.value.ui
		       : fv.type == NVML_TYPE_INT ? (uint64_t)(int64_t)fv.value.si
						  : fv.value.ull;
		return r ? r : fv.result;
	case ECC:
		r = c.ecc(d, f->arg & 1, f->arg >> 1 & 1, &u64);
		*out = u64;
		return r;
	case ECCAT:
		r = c.eccat(d, f->arg & 1, f->arg >> 1 & 1, f->arg >> 2, &u64);
		*out = u64;
		return r;
	case RETIRED:
		r = c.retired(d, f->arg, &v[0], NULL);
		*out = v[0];
		return r == NVML_INSUFFICIENT_SIZE ? NVML_SUCCESS : r;
	}
	return NVML_NOT_SUPPORTED;
}

static unsigned text(const struct fact *f, union call c, gpu_handle d, char out[FACT_TEXT_MAX])
{
	switch (f->shape) {
	case SYSTEM:
		return c.system(out, FACT_TEXT_MAX);
	case STR:
		return c.str(d, out, FACT_TEXT_MAX);
	case STR1:
		return c.str1(d, out);
	default:
		return c.inforom(d, f->arg, out, FACT_TEXT_MAX);
	}
}

static void collect(struct gpu *g, uint32_t what, struct fact_list *l)
{
	for (unsigned i = 0; i < NFACTS; i++) {
		const struct fact *f = &facts[i];
		unsigned r = NVML_NOT_SUPPORTED;
		char str[FACT_TEXT_MAX + 1] = "";
		uint64_t value = 0;

		if (f->group != what)
			continue;
		if (f->shape <= INFOROM) {
			if (calls[i].p && (g->handle || f->shape == SYSTEM))
				r = text(f, calls[i], g->handle, str);
			fact_add(l, f->id, r > 255 ? 255 : r, str, strnlen(str, FACT_TEXT_MAX));
		} else {
			if (calls[i].p && g->handle)
				r = number(f, calls[i], g->handle, &value);
			fact_add(l, f->id, r > 255 ? 255 : r, &value, sizeof(value));
		}
	}
}

/* The newest sample of each process; NVML has none for those that did nothing lately. */
static void add_samples(gpu_handle d, struct nvml_use *use, unsigned n)
{
	static struct nvml_process_sample s[SAMPLES_MAX];
	struct timespec t;
	unsigned k = SAMPLES_MAX;

	clock_gettime(CLOCK_REALTIME, &t);
	if (!samples || samples(d, s, &k, (t.tv_sec - 2) * 1000000ull))
		return;
	for (unsigned i = 0; i < n; i++) {
		unsigned long long newest = 0;

		for (unsigned j = 0; j < k; j++) {
			if (s[j].pid != use[i].pid || s[j].timestamp < newest)
				continue;
			newest = s[j].timestamp;
			use[i].busy = s[j].sm;
			use[i].busy_memory = s[j].memory;
		}
	}
}

static uint32_t processes(struct gpu *g, void *buf)
{
	static struct nvml_process p[PROCESSES_MAX];
	struct nvml_use *use = buf;
	unsigned n = PROCESSES_MAX;

	if (!running || !g->handle || running(g->handle, &n, p))
		return 0;
	if (n > RGPU_CONTROL_MAX / sizeof(*use))
		n = RGPU_CONTROL_MAX / sizeof(*use);
	for (unsigned i = 0; i < n; i++)
		use[i] = (struct nvml_use){.pid = p[i].pid,
					   .mem_used = p[i].memory,
					   .busy = RGPU_TELEMETRY_NONE,
					   .busy_memory = RGPU_TELEMETRY_NONE};
	add_samples(g->handle, use, n);
	return n * sizeof(*use);
}

static void answer(int fd, const struct nvml_ask *ask)
{
	struct gpu *g = find(ask->uuid);
	struct cached *c = g && ask->what - 1 < RGPU_TELEMETRY_PROCESSES ? &g->cached[ask->what - 1] : NULL;
	uint8_t out[1 + RGPU_CONTROL_MAX] = {0};

	if (c && (!c->at || rgpu_now_ns() - c->at > FRESH_MS * 1000000LL)) {
		struct fact_list l = {.buf = c->buf, .room = sizeof(c->buf)};

		if (ask->what == RGPU_TELEMETRY_PROCESSES)
			l.len = processes(g, c->buf);
		else
			collect(g, ask->what, &l);
		c->len = l.len;
		c->at = rgpu_now_ns();
	}
	if (c)
		memcpy(out + 1, c->buf, c->len);
	send(fd, out, 1 + (c ? c->len : 0), MSG_NOSIGNAL);
}

int nvml_process(int fd, const char *lib)
{
	struct nvml_ask ask;

	rgpu_log_init("rgpu-nvml", RGPU_LOG_NOTE);
	if (load(lib))
		return 1;
	while (recv(fd, &ask, sizeof(ask), 0) == sizeof(ask))
		answer(fd, &ask);
	return 0;
}
