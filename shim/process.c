// SPDX-License-Identifier: MIT
/* cuInit: finds the devices, applies CUDA_VISIBLE_DEVICES once, and marks the process so that a forked child is told. */
#include "shim/session.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "lib/log.h"
#include "lib/uuid.h"
#include "shim/copy.h"
#include "shim/count.h"
#include "shim/cuda_api.h"
#include "shim/progress.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* initialising */
static struct process process;
uint32_t *process_alive;

static atomic_bool exiting;

static void note_exit(void)
{
	atomic_store(&exiting, true);
}

bool process_exiting(void)
{
	return atomic_load(&exiting);
}

struct process *process_get(void)
{
	return &process;
}

struct device *device_find(int ordinal)
{
	return ordinal >= 0 && (unsigned)ordinal < process.ndevices ? process.devices[ordinal] : NULL;
}

/* "GPU-" and the beginning of a uuid in its usual spelling, dashes included. */
static bool uuid_begins(const uint8_t *uuid, const char *prefix, size_t len)
{
	char text[RGPU_UUID_TEXT_MAX];

	rgpu_uuid_text(text, uuid);
	return len > 4 && len <= strlen(text) && !strncasecmp(text, prefix, len);
}

/* One entry of CUDA_VISIBLE_DEVICES: the device's index, or −1 where CUDA stops reading. */
static int entry(const struct rgpu_transport *t, const char *word, size_t len)
{
	unsigned n = rgpu_transport_ndevices(t);
	int found = -1;

	if (len && isdigit((unsigned char)*word)) {
		char *end;
		unsigned long v = strtoul(word, &end, 10);

		return end == word + len && v < n ? (int)v : -1;
	}
	for (unsigned i = 0; i < n; i++) {
		if (!uuid_begins(rgpu_transport_device(t, i)->uuid, word, len))
			continue;
		if (found >= 0)
			return -1; /* not unique */
		found = i;
	}
	return found;
}

/* Indices of the visible devices, in the program's order. */
static unsigned visible(const struct rgpu_transport *t, unsigned *out)
{
	const char *list = getenv("CUDA_VISIBLE_DEVICES");
	unsigned n = 0, all = rgpu_transport_ndevices(t);

	if (!list) {
		for (; n < all && n < RGPU_DEVICES_MAX; n++)
			out[n] = n;
		return n;
	}
	while (n < RGPU_DEVICES_MAX) {
		size_t skip = strspn(list, " \t"), len = strcspn(list + skip, ", \t");
		int i = entry(t, list + skip, len);

		for (unsigned k = 0; i >= 0 && k < n; k++)
			if (out[k] == (unsigned)i)
				i = -2;
		if (i == -2)
			return 0; /* twice the same: CUDA shows no device */
		if (i < 0)
			break;
		out[n++] = i;
		list = strchr(list + skip + len, ',');
		if (!list)
			break;
		list++;
	}
	return n;
}

static struct device *device_new(struct rgpu_session *s, const struct rgpu_device *rd, int ordinal)
{
	struct device *d = calloc(1, sizeof(*d));
	uint32_t size = rd->props_len < sizeof(d->props) ? rd->props_len : sizeof(d->props);

	if (!d)
		return NULL;
	for (int i = 0; i < RGPU_PROPS_ATTRS; i++)
		d->props.attrs[i] = RGPU_PROPS_NONE;
	memcpy(&d->props, rd->props, size);
	if (size < offsetof(struct rgpu_props, attrs) || d->props.magic != RGPU_PROPS_MAGIC || !d->props.granularity) {
		free(d);
		return NULL;
	}
	device_answer(d);
	d->ordinal = ordinal;
	d->session = s;
	d->index = s->ndevices;
	d->server_index = rd->index;
	pthread_mutex_init(&d->lock, NULL);
	pthread_mutex_init(&d->meminfo.lock, NULL);
	heap_init(&d->heap);
	return d;
}

static int open_error(int err)
{
	switch (err) {
	case -ENODEV:
		return CUDA_ERROR_NO_DEVICE;
	case -EACCES:
	case -EPERM:
		return CUDA_ERROR_NOT_PERMITTED;
	case -EPROTO:
		return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
	case -EINVAL:
		return CUDA_ERROR_INVALID_VALUE;
	case -ENOMEM:
		return CUDA_ERROR_OUT_OF_MEMORY;
	default:
		return CUDA_ERROR_SYSTEM_NOT_READY;
	}
}

static int find_devices(void)
{
	struct rgpu_session *s = calloc(1, sizeof(*s));
	unsigned dev[RGPU_DEVICES_MAX], n;
	int r;

	if (!s)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = rgpu_transport_open(&s->transport);
	if (r) {
		const char *why = rgpu_transport_why(NULL);

		rgpu_err("no GPU: %s", why && *why ? why : strerror(-r));
		free(s);
		return open_error(r);
	}
	pthread_mutex_init(&s->lock, NULL);
	pthread_mutex_init(&s->window.lock, NULL);
	n = visible(s->transport, dev);
	for (unsigned i = 0; i < n; i++) {
		struct device *d = device_new(s, rgpu_transport_device(s->transport, dev[i]), process.ndevices);

		if (!d) {
			rgpu_err("device %u: its properties are not understood; install client and server of the same release",
				 dev[i]);
			continue;
		}
		s->devices[s->ndevices++] = d;
		process.devices[process.ndevices++] = d;
	}
	process.session = s;
	if (process.ndevices)
		return 0;
	rgpu_err("no GPU: the server has %u, and CUDA_VISIBLE_DEVICES hides them all", rgpu_transport_ndevices(s->transport));
	rgpu_transport_close(s->transport);
	process.session = NULL;
	free(s);
	return CUDA_ERROR_NO_DEVICE;
}

int process_init(void)
{
	uint32_t *word;
	int r = 0;

	pthread_mutex_lock(&lock);
	if (process_alive) {
		r = *process_alive ? 0 : CUDA_ERROR_NOT_INITIALIZED; /* a forked child */
		goto out;
	}
	rgpu_log_init("rgpu", RGPU_LOG_NOTE);
	count_trace();
	copy_begin();
	progress_setting();
	word = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (word == MAP_FAILED || madvise(word, sysconf(_SC_PAGESIZE), MADV_WIPEONFORK)) {
		r = CUDA_ERROR_OPERATING_SYSTEM;
		goto out;
	}
	r = find_devices();
	if (r) {
		munmap(word, sysconf(_SC_PAGESIZE));
		goto out;
	}
	*word = 1;
	atexit(note_exit);
	__atomic_store_n(&process_alive, word, __ATOMIC_RELEASE);
out:
	pthread_mutex_unlock(&lock);
	return r;
}
