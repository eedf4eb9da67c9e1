// SPDX-License-Identifier: MIT
/* Start and end: the transport to the devices, who has it open, and what a fork does to it. */
#include <errno.h>
#include <glob.h>
#include <pthread.h>
#include <stdlib.h>
#include "lib/uuid.h"
#include "shim/nvml/lib_int.h"

struct nvml_lib nvml = {.lock = PTHREAD_MUTEX_INITIALIZER};

enum nvml_result nvml_from_errno(int err)
{
	glob_t g;
	bool node;

	switch (err) {
	case 0:
		return NVML_SUCCESS;
	case -EINVAL:
		return NVML_INVALID_ARGUMENT;
	case -EACCES:
	case -EPERM:
		return NVML_OPERATING_SYSTEM;
	case -ENODEV:
	case -ENOENT:
		/* No node at all is a module that isn't loaded; a node without a GPU behind it is a device not found. */
		node = !glob("/dev/rgpu[0-9]*", GLOB_NOSORT, NULL, &g);
		globfree(&g);
		return node ? NVML_NOT_FOUND : NVML_DRIVER_NOT_LOADED;
	case -EPROTO:
		return NVML_LIB_RM_VERSION_MISMATCH;
	case -EOPNOTSUPP:
		return NVML_NOT_SUPPORTED;
	case -ENOMEM:
		return NVML_MEMORY;
	case -ECONNREFUSED:
	case -ECONNRESET:
	case -ECONNABORTED:
	case -EHOSTUNREACH:
	case -EHOSTDOWN:
	case -ENETUNREACH:
	case -ETIMEDOUT:
	case -ESHUTDOWN:
	case -EPIPE:
	case -EIO:
		return NVML_GPU_IS_LOST;
	default:
		return NVML_UNKNOWN;
	}
}

static void describe(struct gpu *g, const struct rgpu_device *d, unsigned index)
{
	const struct rgpu_props *p = d->props;
	unsigned domain, bus, dev, fn;

	*g = (struct gpu){.dev = d, .server_index = index};
	if (d->props_len >= offsetof(struct rgpu_props, attrs) && p->magic == RGPU_PROPS_MAGIC) {
		g->server_index = p->index;
		if (sscanf(p->pci_bus_id, "%x:%x:%x.%x", &domain, &bus, &dev, &fn) == 4) {
			g->domain = domain;
			g->bus = bus & 0xff;
			g->device = dev & 0xff;
		}
	}
	snprintf(g->bus_id, sizeof(g->bus_id), "%08X:%02X:%02X.0", g->domain, g->bus, g->device);
	rgpu_uuid_text(g->uuid, d->uuid);
}

/* nvml.lock is held. The devices are those of the first time: handles stay good. */
static int connect_devices(void)
{
	int err = rgpu_transport_open(&nvml.transport);

	if (err) {
		nvml.transport = NULL;
		return err;
	}
	nvml.ngpus = rgpu_transport_ndevices(nvml.transport);
	if (nvml.ngpus > GPUS_MAX)
		nvml.ngpus = GPUS_MAX;
	for (unsigned i = 0; i < nvml.ngpus; i++)
		describe(&nvml.gpus[i], rgpu_transport_device(nvml.transport, i), i);
	return 0;
}

/* What the parent had is the parent's; the transport's own memory stays where it is. */
static void forked(void)
{
	pthread_mutex_init(&nvml.lock, NULL);
	nvml.inherited = nvml.transport != NULL;
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forked);
}

enum nvml_result nvml_open(bool none_is_good, char why[RGPU_WHY_MAX])
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	enum nvml_result r = NVML_SUCCESS;

	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&nvml.lock);
	if (!nvml.users) {
		r = nvml_from_errno(connect_devices());
		if (r) {
			snprintf(why, RGPU_WHY_MAX, "%s", rgpu_transport_why(NULL));
			nvml.ngpus = 0;
			if (none_is_good && (r == NVML_NOT_FOUND || r == NVML_DRIVER_NOT_LOADED))
				r = NVML_SUCCESS;
		}
	}
	if (!r)
		nvml.users++;
	pthread_mutex_unlock(&nvml.lock);
	return r;
}

enum nvml_result nvml_close(void)
{
	enum nvml_result r = NVML_SUCCESS;

	pthread_mutex_lock(&nvml.lock);
	if (!nvml.users) {
		r = NVML_UNINITIALIZED;
	} else if (!--nvml.users && nvml.transport) {
		rgpu_transport_close(nvml.transport);
		nvml.transport = NULL;
		nvml.inherited = false;
		nvml.ngpus = 0;
	}
	pthread_mutex_unlock(&nvml.lock);
	return r;
}

enum nvml_result nvml_ready(void)
{
	enum nvml_result r = NVML_SUCCESS;

	pthread_mutex_lock(&nvml.lock);
	if (!nvml.users) {
		r = NVML_UNINITIALIZED;
	} else if (nvml.inherited) {
		nvml.inherited = false;
		r = nvml_from_errno(connect_devices());
		if (r)
			nvml.ngpus = 0;
	}
	pthread_mutex_unlock(&nvml.lock);
	return r;
}

unsigned nvml_count(void)
{
	return nvml.ngpus;
}

struct gpu *nvml_gpu(unsigned index)
{
	return index < nvml.ngpus ? &nvml.gpus[index] : NULL;
}

struct gpu *nvml_handle(const void *h)
{
	uintptr_t off = (uintptr_t)h - (uintptr_t)nvml.gpus;

	return (uintptr_t)h >= (uintptr_t)nvml.gpus && off % sizeof(struct gpu) == 0 ? nvml_gpu(off / sizeof(struct gpu)) : NULL;
}

unsigned nvml_index(const struct gpu *g)
{
	return g - nvml.gpus;
}

uint32_t nvml_cuda_version(void)
{
	return nvml.transport ? rgpu_transport_driver_version(nvml.transport) : 0;
}

bool nvml_through_module(void)
{
	return nvml.transport && !strcmp(rgpu_transport_name(nvml.transport), "kmod");
}

int nvml_attribute(const struct gpu *g, unsigned attr)
{
	const struct rgpu_props *p = g->dev->props;

	if (g->dev->props_len < offsetof(struct rgpu_props, attrs) || p->magic != RGPU_PROPS_MAGIC || attr >= p->nattrs ||
	    g->dev->props_len < offsetof(struct rgpu_props, attrs) + (attr + 1) * sizeof(p->attrs[0]) ||
	    p->attrs[attr] == RGPU_PROPS_NONE)
		return -1;
	return p->attrs[attr];
}

int nvml_refused(enum nvml_result how)
{
	enum nvml_result r = nvml_ready();

	return r ? r : how;
}
