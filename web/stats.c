// SPDX-License-Identifier: MIT
/* A STATS_LIST in a view. */
#include <errno.h>
#include <string.h>
#include <linux/rgpu.h>
#include <rgpu_wire.h>
#include "web/view.h"

static int place(const struct web_view *v, uint32_t index)
{
	for (unsigned i = 0; i < v->ndevices; i++)
		if (v->device[i].index >= 0 && (uint32_t)v->device[i].index == index)
			return i;
	return WEB_UNKNOWN;
}

static void device(struct web_device *to, const struct rgpu_stats_device *d)
{
	to->mem_used = d->mem_used;
	to->mem_total = d->mem_total;
	to->utilization = d->utilization <= 100 ? (int)d->utilization : WEB_UNKNOWN;
	to->sessions = d->sessions;
}

static int session(struct web_view *v, const struct rgpu_stats_session *s)
{
	struct web_session *to = web_view_session(v);

	if (!to)
		return -ENOMEM;
	memcpy(to->sid, s->sid, sizeof(to->sid));
	memcpy(to->comm, s->comm, sizeof(s->comm));
	to->uid = s->uid;
	to->pid = s->pid;
	to->device = place(v, s->device);
	to->mem_used = s->mem_used;
	to->records = s->records;
	to->round_trips = s->fences;
	return 0;
}

int web_view_stats(struct web_view *v, const void *list, size_t len)
{
	const struct rgpu_stats *head = list;
	const struct rgpu_stats_device *d;
	const struct rgpu_stats_session *s;
	int err = 0;

	if (len < sizeof(*head))
		return -EPROTO;
	d = (const void *)(head + 1);
	s = (const void *)(d + head->ndevices);
	if ((len - sizeof(*head)) / sizeof(*d) < head->ndevices ||
	    (len - sizeof(*head) - head->ndevices * sizeof(*d)) / sizeof(*s) < head->nsessions)
		return -EPROTO;
	for (uint32_t i = 0; i < head->ndevices; i++) {
		int at = place(v, i);

		if (at != WEB_UNKNOWN)
			device(&v->device[at], &d[i]);
	}
	for (uint32_t i = 0; i < head->nsessions && !err; i++)
		err = session(v, &s[i]);
	return err;
}
