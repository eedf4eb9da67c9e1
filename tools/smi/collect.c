/* SPDX-License-Identifier: MIT */
/* Gathers what rgpu-smi shows: devices from the transport's cache, memory and processes from the server's statistics. */
#include "tools/smi/smi.h"
#include "api/props.h"
#include "shim/transport.h"
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ATTR_COMPUTE_MODE 20 /* CU_DEVICE_ATTRIBUTE_COMPUTE_MODE */

static int exit_of(int err)
{
	glob_t g;
	bool node;

	switch (err) {
	case -EINVAL:
		return SMI_BAD_ARGUMENT;
	case -EACCES:
	case -EPERM:
		return SMI_NO_PERMISSION;
	case -ENODEV:
		/* No node at all is a module that isn't loaded; a node without a GPU behind it is a device not found. */
		node = !glob("/dev/rgpu[0-9]*", GLOB_NOSORT, NULL, &g);
		globfree(&g);
		return node ? SMI_NOT_FOUND : SMI_NO_DRIVER;
	case -ENOENT:
		return SMI_NO_DRIVER;
	case -EPROTO:
		return SMI_VERSION_MISMATCH;
	case -ECONNREFUSED:
	case -ECONNRESET:
	case -ECONNABORTED:
	case -EHOSTUNREACH:
	case -ENETUNREACH:
	case -ETIMEDOUT:
	case -EPIPE:
	case -EIO:
		return SMI_GPU_LOST;
	default:
		return SMI_OTHER;
	}
}

/* 0000:83:00.0 as CUDA says it, with eight digits of domain as nvidia-smi does. */
static void long_bus_id(const char *id, char out[24])
{
	unsigned int domain, bus, dev, fn;

	if (sscanf(id, "%x:%x:%x.%x", &domain, &bus, &dev, &fn) == 4)
		snprintf(out, 24, "%08X:%02X:%02X.%X", domain, bus & 0xff, dev & 0xff, fn & 0xf);
	else
		snprintf(out, 24, "N/A");
}

static const struct rgpu_props *props_of(const struct rgpu_device *d)
{
	const struct rgpu_props *p = d->props;

	return p && d->props_len >= offsetof(struct rgpu_props, attrs) && p->magic == RGPU_PROPS_MAGIC ? p : NULL;
}

static int attribute(const struct rgpu_device *d, unsigned int attr)
{
	const struct rgpu_props *p = props_of(d);

	if (!p || attr >= p->nattrs || d->props_len < offsetof(struct rgpu_props, attrs) + (attr + 1) * sizeof(p->attrs[0]) ||
	    p->attrs[attr] == RGPU_PROPS_NONE)
		return -1;
	return p->attrs[attr];
}

static void gpu(struct smi_gpu *g, const struct rgpu_device *d)
{
	const struct rgpu_props *p = props_of(d);

	snprintf(g->name, sizeof(g->name), "%s", d->name);
	memcpy(g->uuid, d->uuid, sizeof(g->uuid));
	g->mem_total = d->mem_total;
	g->utilization = SMI_UNKNOWN;
	g->compute_mode = attribute(d, ATTR_COMPUTE_MODE);
	long_bus_id(p ? p->pci_bus_id : "", g->bus_id);
}

/* The place among ours of the device that the server calls @index; −1 when this process may not use it. */
static int place(struct rgpu_transport *t, unsigned int index)
{
	for (unsigned int i = 0; i < rgpu_transport_ndevices(t); i++) {
		const struct rgpu_props *p = props_of(rgpu_transport_device(t, i));

		if ((p ? p->index : i) == index)
			return i;
	}
	return -1;
}

/* The program's path where this user may see it, else what the program called itself when it began. */
static void process_name(struct smi_process *p, const char *comm, size_t comm_len)
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%d/exe", p->pid);
	n = readlink(link, p->name, sizeof(p->name) - 1);
	if (n > 0)
		p->name[n] = 0;
	else
		snprintf(p->name, sizeof(p->name), "%.*s", (int)comm_len, comm);
}

static int by_gpu_and_pid(const void *a, const void *b)
{
	const struct smi_process *x = a, *y = b;

	return x->gpu != y->gpu ? (x->gpu < y->gpu ? -1 : 1) : x->pid < y->pid ? -1 : x->pid > y->pid;
}

/*
 * A session names all devices that it may use. It is shown on those where it holds memory, as nvidia-smi shows a process
 * where it has a context; one that holds none yet, on its first.
 */
static bool shown(const struct rgpu_stats_session *all, unsigned int n, unsigned int i)
{
	if (all[i].mem_used)
		return true;
	for (unsigned int j = 0; j < n; j++)
		if (!memcmp(all[j].sid, all[i].sid, sizeof(all[i].sid)) && (all[j].mem_used || j < i))
			return false;
	return true;
}

static int stats(struct smi *smi, struct rgpu_transport *t)
{
	static _Alignas(8) char buf[RGPU_CONTROL_MAX];
	const struct rgpu_stats *s = (const void *)buf;
	const struct rgpu_stats_device *dev;
	const struct rgpu_stats_session *ses;
	int n = rgpu_transport_control(t, RGPU_CONTROL_STATS, buf, 0, sizeof(buf)), at;
	size_t need;

	if (n < 0)
		return n;
	if ((size_t)n < sizeof(*s))
		return -EPROTO;
	need = sizeof(*s) + (size_t)s->ndevices * sizeof(*dev) + (size_t)s->nsessions * sizeof(*ses);
	if ((size_t)n < need)
		return -EPROTO;
	dev = (const void *)(s + 1);
	ses = (const void *)(dev + s->ndevices);
	for (unsigned int i = 0; i < s->ndevices; i++) {
		at = place(t, i);
		if (at < 0)
			continue;
		smi->gpus[at].mem_used = dev[i].mem_used;
		smi->gpus[at].utilization = dev[i].utilization;
	}
	smi->processes = calloc(s->nsessions + 1, sizeof(*smi->processes));
	if (!smi->processes)
		return -ENOMEM;
	for (unsigned int i = 0; i < s->nsessions; i++) {
		struct smi_process *p = &smi->processes[smi->nprocesses];

		at = place(t, ses[i].device);
		if (at < 0 || !shown(ses, s->nsessions, i))
			continue;
		p->gpu = at;
		p->pid = (int)ses[i].pid;
		p->mem_used = ses[i].mem_used;
		process_name(p, ses[i].comm, sizeof(ses[i].comm));
		smi->nprocesses++;
	}
	qsort(smi->processes, smi->nprocesses, sizeof(*smi->processes), by_gpu_and_pid);
	return 0;
}

int smi_collect(struct smi *smi, char why[RGPU_WHY_MAX])
{
	struct rgpu_transport *t = NULL;
	int err;

	memset(smi, 0, sizeof(*smi));
	err = rgpu_transport_open(&t);
	if (err) {
		rgpu_why(why, err, "%s", rgpu_transport_why(NULL));
		return exit_of(err);
	}
	smi->driver_version = rgpu_transport_driver_version(t);
	smi->ngpus = rgpu_transport_ndevices(t);
	smi->gpus = calloc(smi->ngpus + 1, sizeof(*smi->gpus));
	err = smi->gpus ? 0 : -ENOMEM;
	for (unsigned int i = 0; !err && i < smi->ngpus; i++)
		gpu(&smi->gpus[i], rgpu_transport_device(t, i));
	if (!err)
		err = stats(smi, t);
	if (err) {
		const char *said = rgpu_transport_why(t);

		rgpu_why(why, err, "asking the server for its memory and processes: %s", said && *said ? said : strerror(-err));
		smi_free(smi);
	}
	rgpu_transport_close(t);
	return err ? exit_of(err) : SMI_OK;
}

void smi_free(struct smi *smi)
{
	free(smi->gpus);
	free(smi->processes);
	memset(smi, 0, sizeof(*smi));
}
