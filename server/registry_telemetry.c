// SPDX-License-Identifier: MIT
/* TELEMETRY: facts about the devices, from the genuine NVML or softgpu's own figures, and the asker's sessions on them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "api/nvml_facts.h"
#include "lib/devlist.h"
#include "server/nvml.h"
#include "server/registry_int.h"

struct view {
	const struct asker *a;
	bool unsure; /* a session was looked at for the first time: what it uses is not known yet */
	struct {
		uint64_t mem;
		uint32_t busy;
	} dev[DEVICES_MAX];
	struct rgpu_telemetry_process *list;
	pid_t *worker; /* of each in the list */
	unsigned n, room;
};

static int grow(struct view *v)
{
	struct rgpu_telemetry_process *list;
	pid_t *worker;

	if (v->n < v->room)
		return 0;
	v->room = v->room ? 2 * v->room : 16;
	list = reallocarray(v->list, v->room, sizeof(*list));
	if (list)
		v->list = list;
	worker = reallocarray(v->worker, v->room, sizeof(*worker));
	if (worker)
		v->worker = worker;
	return list && worker ? 0 : -ENOMEM;
}

/*
 * A session names all devices that it may use. It is shown, and its work counted, on those where it holds memory, as nvidia-smi
 * shows a process where it has a context; one that holds none yet, on its first.
 */
static bool shown(const struct wmsg *m, unsigned i)
{
	if (m->stats.mem[i])
		return true;
	for (unsigned j = 0; j < m->stats.ndevices && j < 64; j++)
		if (m->stats.mem[j] || j < i)
			return false;
	return true;
}

static int add(void *arg, struct ses *s, const struct wmsg *m)
{
	struct view *v = arg;
	struct usage *u = &s->usage;

	usage_look(u, s->ident.worker, m->stats.up, m->stats.down);
	v->unsure |= !u->known;
	for (unsigned i = 0; i < m->stats.ndevices && i < 64; i++) {
		uint32_t d = m->stats.device[i];
		struct rgpu_telemetry_process *p;

		if (d >= DEVICES_MAX || !shown(m, i))
			continue;
		v->dev[d].mem += m->stats.mem[i];
		v->dev[d].busy += u->known ? u->busy : 0;
		if (strcmp(s->ident.key_id, v->a->key_id))
			continue;
		if (grow(v))
			return -ENOMEM;
		v->worker[v->n] = s->ident.worker;
		p = &v->list[v->n++];
		*p = (struct rgpu_telemetry_process){
			.uid = s->ident.uid,
			.pid = s->ident.pid,
			.device = d,
			.busy = u->known ? u->busy : RGPU_TELEMETRY_NONE,
			.busy_memory = RGPU_TELEMETRY_NONE,
			.mem_used = m->stats.mem[i],
			.records = m->stats.records,
			.fences = m->stats.fences,
			.bytes_up = m->stats.up,
			.bytes_down = m->stats.down,
			.rate_up = u->known ? u->rate_up : 0,
			.rate_down = u->known ? u->rate_down : 0,
		};
		memcpy(p->sid, s->sid, sizeof(p->sid));
		memcpy(p->comm, s->ident.comm, sizeof(p->comm));
	}
	return 0;
}

/* Of a session that nobody has looked at for a while, two looks are needed. */
static int look(struct registry *r, struct view *v)
{
	struct timespec window = {.tv_nsec = (USAGE_WINDOW_MS + 10) * 1000000L};
	int err = registry_each(r, add, v);

	if (err || !v->unsure)
		return err;
	nanosleep(&window, NULL);
	v->n = 0;
	memset(v->dev, 0, sizeof(v->dev));
	return registry_each(r, add, v);
}

static int by_device_and_pid(const void *a, const void *b)
{
	const struct rgpu_telemetry_process *x = a, *y = b;

	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	return x->pid != y->pid ? (x->pid < y->pid ? -1 : 1) : memcmp(x->sid, y->sid, sizeof(x->sid));
}

static const uint8_t *uuid_of(const struct devices *d, uint32_t device)
{
	const struct rgpu_device_entry *e;
	size_t at = 0;

	do
		e = rgpu_devlist_next(d->list, d->len, &at);
	while (device--);
	return e->uuid;
}

static bool soft(const struct registry *r)
{
	return !strcmp(r->devices->driver, "softgpu");
}

/* What NVML knows of the workers, into the list: the driver counts all memory of a process, and what its kernels take. */
static void ask_uses(struct registry *r, struct view *v)
{
	struct nvml_use use[RGPU_CONTROL_MAX / sizeof(struct nvml_use)];

	for (uint32_t d = 0; d < r->devices->n; d++) {
		struct nvml_ask ask = {.what = RGPU_TELEMETRY_PROCESSES};
		ssize_t n;

		memcpy(ask.uuid, uuid_of(r->devices, d), sizeof(ask.uuid));
		n = nvml_request(r->opts->nvml, &ask, use, sizeof(use));
		for (unsigned i = 0; i < v->n; i++) {
			struct rgpu_telemetry_process *p = &v->list[i];

			if (p->device != d)
				continue;
			/* The CPU's share says nothing about a GPU. */
			p->busy = RGPU_TELEMETRY_NONE;
			for (ssize_t k = 0; k < n / (ssize_t)sizeof(*use); k++) {
				if (use[k].pid != (uint32_t)v->worker[i])
					continue;
				p->busy = use[k].busy;
				p->busy_memory = use[k].busy_memory;
				if (use[k].mem_used != UINT64_MAX)
					p->mem_used = use[k].mem_used;
			}
		}
	}
}

/* As many as fit behind those that the asker has. */
static ssize_t processes(struct registry *r, const struct asker *a, uint32_t first, uint8_t *buf)
{
	struct rgpu_telemetry_list h = {0};
	struct view v = {.a = a};
	unsigned max = (RGPU_CONTROL_MAX - sizeof(h)) / sizeof(*v.list);
	int err = look(r, &v);

	if (!err && !soft(r))
		ask_uses(r, &v);
	if (!err) {
		if (v.n)
			qsort(v.list, v.n, sizeof(*v.list), by_device_and_pid);
		h.total = v.n;
		h.n = first < v.n ? v.n - first : 0;
		if (h.n > max)
			h.n = max;
		memcpy(buf, &h, sizeof(h));
		if (h.n)
			memcpy(buf + sizeof(h), v.list + first, h.n * sizeof(*v.list));
	}
	free(v.list);
	free(v.worker);
	return err ? err : (ssize_t)(sizeof(h) + h.n * sizeof(*v.list));
}

/*
 * softgpu has no driver of its own. Tools that choose a build of CUDA by the driver's version get the branch of NVIDIA's driver
 * that has the CUDA version which softgpu implements.
 */
static const char *branch(uint32_t cuda)
{
	static const struct {
		uint32_t cuda;
		const char *driver;
	} known[] = {{13010, "590.00"}, {13000, "580.00"}, {12080, "570.00"}, {12040, "550.00"}};

	for (unsigned i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (cuda >= known[i].cuda)
			return known[i].driver;
	return "0";
}

/* One session's share is rounded by itself: the sum of many may be above. */
static uint32_t percent(uint32_t busy)
{
	return busy > 100 ? 100 : busy;
}

/* What a CPU has of it: its use, and memory. */
static int soft_facts(struct registry *r, const struct rgpu_telemetry_ask *ask, struct fact_list *l)
{
	uint64_t total = r->devices->mem_total[ask->device];
	struct asker nobody = {.link = NULL};
	struct view v = {.a = &nobody};
	int err;

	if (ask->what == RGPU_TELEMETRY_FIXED)
		fact_text(l, FACT_DRIVER_VERSION, branch(r->devices->driver_version));
	if (ask->what != RGPU_TELEMETRY_LIVE)
		return 0;
	err = look(r, &v);
	if (!err) {
		uint64_t used = v.dev[ask->device].mem;

		fact_number(l, FACT_UTIL_GPU, percent(v.dev[ask->device].busy));
		fact_number(l, FACT_MEM_TOTAL, total);
		fact_number(l, FACT_MEM_RESERVED, 0);
		fact_number(l, FACT_MEM_USED, used);
		fact_number(l, FACT_MEM_FREE, used < total ? total - used : 0);
		fact_number(l, FACT_COMPUTE_MODE, 0);
	}
	free(v.list);
	free(v.worker);
	return err;
}

static ssize_t ask_facts(struct registry *r, uint32_t what, uint32_t device, void *buf)
{
	struct nvml_ask q = {.what = what};

	memcpy(q.uuid, uuid_of(r->devices, device), sizeof(q.uuid));
	return nvml_request(r->opts->nvml, &q, buf, RGPU_CONTROL_MAX);
}

/* Without NVML there is still what the driver said of the device. */
static int genuine_facts(struct registry *r, const struct rgpu_telemetry_ask *ask, struct fact_list *l)
{
	ssize_t n = ask_facts(r, ask->what, ask->device, l->buf);

	if (n >= 0)
		l->len = n;
	else if (ask->what == RGPU_TELEMETRY_LIVE)
		fact_number(l, FACT_MEM_TOTAL, r->devices->mem_total[ask->device]);
	return 0;
}

/* The number in a list of facts, or RGPU_TELEMETRY_NONE. */
static uint32_t number_in(const uint8_t *buf, ssize_t len, enum nvml_fact id)
{
	struct rgpu_telemetry_fact f;
	uint64_t value;

	for (ssize_t at = 0; len - at >= (ssize_t)sizeof(f); at += (f.len + 7) / 8 * 8) {
		memcpy(&f, buf + at, sizeof(f));
		at += sizeof(f);
		if (f.id != id || f.status || f.len != sizeof(value) || len - at < f.len)
			continue;
		memcpy(&value, buf + at, sizeof(value));
		return value;
	}
	return RGPU_TELEMETRY_NONE;
}

void registry_busy(struct registry *r, uint32_t busy[DEVICES_MAX])
{
	struct asker nobody = {.link = NULL};
	struct view v = {.a = &nobody};
	uint8_t buf[RGPU_CONTROL_MAX];
	int err = soft(r) ? look(r, &v) : 0;

	for (uint32_t d = 0; d < r->devices->n; d++) {
		if (soft(r))
			busy[d] = err ? RGPU_TELEMETRY_NONE : percent(v.dev[d].busy);
		else
			busy[d] = number_in(buf, ask_facts(r, RGPU_TELEMETRY_LIVE, d, buf), FACT_UTIL_GPU);
	}
	free(v.list);
	free(v.worker);
}

ssize_t registry_telemetry(struct registry *r, const struct asker *a, const struct rgpu_telemetry_ask *ask, uint8_t **out)
{
	struct fact_list l = {.buf = malloc(RGPU_CONTROL_MAX), .room = RGPU_CONTROL_MAX};
	ssize_t n = -EINVAL;

	if (!l.buf)
		return -ENOMEM;
	*out = l.buf;
	switch (ask->what) {
	case RGPU_TELEMETRY_PING:
		return 0;
	case RGPU_TELEMETRY_FIXED:
	case RGPU_TELEMETRY_LIVE:
	case RGPU_TELEMETRY_SLOW:
		if (ask->device >= r->devices->n)
			return -ENODEV;
		n = soft(r) ? soft_facts(r, ask, &l) : genuine_facts(r, ask, &l);
		return n ? n : (ssize_t)l.len;
	case RGPU_TELEMETRY_PROCESSES:
		return processes(r, a, ask->first, l.buf);
	}
	return n;
}
