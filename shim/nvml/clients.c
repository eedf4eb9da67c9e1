// SPDX-License-Identifier: MIT
/* The processes on the devices: those of this client host, by the pids that the reader knows them by. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "shim/nvml/lib_int.h"
#include "usermode-proxy/kern.h"

#define FIRST_PID_NAMESPACE 0xeffffffcu /* its inode, on every Linux */

/* Whether pids here are the machine's own. */
static bool in_first_namespace(void)
{
	struct stat s;

	return stat("/proc/self/ns/pid", &s) || s.st_ino == FIRST_PID_NAMESPACE;
}

/* The module tells everybody the sessions whose process is in his pid namespace, with the pid that it has there. */
unsigned nvml_translate(struct nvml_client *c, uint64_t *session, unsigned n)
{
	struct kern_session *list = NULL;
	char why[RGPU_WHY_MAX];
	unsigned known = 0, left = 0;
	struct kern *nl;

	if (!kern_open(&nl, why)) {
		if (kern_sessions(nl, &list, &known, why))
			known = 0;
		kern_close(nl);
	}
	for (unsigned i = 0; i < n; i++) {
		for (unsigned k = 0; k < known; k++) {
			if (!session[i] || list[k].id != session[i] || !list[k].pid)
				continue;
			c[left] = c[i];
			c[left++].pid = list[k].pid;
			break;
		}
	}
	free(list);
	return left;
}

static struct gpu *gpu_of(uint32_t server_index)
{
	for (unsigned i = 0; i < nvml.ngpus; i++)
		if (nvml.gpus[i].server_index == server_index)
			return &nvml.gpus[i];
	return NULL;
}

struct gathered {
	struct nvml_client *c;
	uint64_t *session;
	unsigned n, room;
};

static int add(struct gathered *g, const struct rgpu_telemetry_process *p)
{
	struct gpu *gpu = gpu_of(p->device);
	struct nvml_client *c;
	uint64_t *session;

	if (!gpu)
		return 0; /* on a device that this process may not use */
	if (g->n == g->room) {
		g->room = g->room ? 2 * g->room : 32;
		c = reallocarray(g->c, g->room, sizeof(*c));
		if (c)
			g->c = c;
		session = reallocarray(g->session, g->room, sizeof(*session));
		if (session)
			g->session = session;
		if (!c || !session)
			return -ENOMEM;
	}
	g->session[g->n] = p->session;
	c = &g->c[g->n++];
	*c = (struct nvml_client){
		.gpu = nvml_index(gpu),
		.pid = p->pid,
		.uid = p->uid,
		.busy = p->busy,
		.busy_memory = p->busy_memory,
		.mem_used = p->mem_used,
		.records = p->records,
		.fences = p->fences,
		.rate_up = p->rate_up,
		.rate_down = p->rate_down,
	};
	memcpy(c->comm, p->comm, sizeof(p->comm));
	memcpy(c->sid, p->sid, sizeof(c->sid));
	return 0;
}

/* Page by page: an answer has room for some thirty. */
static int gather(struct gathered *g)
{
	_Alignas(8) uint8_t buf[RGPU_CONTROL_MAX];
	uint32_t first = 0;

	for (;;) {
		struct rgpu_telemetry_list h;
		int n = nvml_ask(RGPU_TELEMETRY_PROCESSES, 0, first, buf), err;

		if (n < 0)
			return n;
		if ((size_t)n < sizeof(h))
			return -EPROTO;
		memcpy(&h, buf, sizeof(h));
		if (h.n > (n - sizeof(h)) / sizeof(struct rgpu_telemetry_process))
			return -EPROTO;
		for (uint32_t i = 0; i < h.n; i++) {
			struct rgpu_telemetry_process p;

			memcpy(&p, buf + sizeof(h) + i * sizeof(p), sizeof(p));
			err = add(g, &p);
			if (err)
				return err;
		}
		first += h.n;
		if (!h.n || first >= h.total)
			return 0;
	}
}

enum nvml_result nvml_clients(struct nvml_client **out, unsigned *n)
{
	struct gathered g = {0};
	int err;

	pthread_mutex_lock(&nvml.lock);
	err = gather(&g);
	pthread_mutex_unlock(&nvml.lock);
	if (!err && g.n && nvml_through_module() && !in_first_namespace())
		g.n = nvml_translate(g.c, g.session, g.n);
	free(g.session);
	if (err) {
		free(g.c);
		return nvml_from_errno(err);
	}
	*out = g.c;
	*n = g.n;
	return NVML_SUCCESS;
}

const char *nvml_program(uint32_t pid, const char *comm, char *buf, unsigned size)
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%u/exe", pid);
	n = readlink(link, buf, size - 1);
	if (n > 0)
		buf[n] = 0;
	else if (comm && *comm)
		snprintf(buf, size, "%s", comm);
	else
		return NULL;
	return buf;
}
