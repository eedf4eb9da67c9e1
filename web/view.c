// SPDX-License-Identifier: MIT
/* The lists of a view grow as they are filled. */
#include <stdlib.h>
#include "web/view.h"

/* Doubles at the powers of two. @list keeps its old memory when there is none. */
static void *grown(void *list, unsigned n, size_t size)
{
	return n & (n - 1) ? list : reallocarray(list, n ? 2 * (size_t)n : 1, size);
}

struct web_device *web_view_device(struct web_view *v)
{
	struct web_device *all = grown(v->device, v->ndevices, sizeof(*all));

	if (!all)
		return NULL;
	v->device = all;
	all[v->ndevices] = (struct web_device){.minor = WEB_UNKNOWN, .index = WEB_UNKNOWN, .utilization = WEB_UNKNOWN};
	return &all[v->ndevices++];
}

struct web_session *web_view_session(struct web_view *v)
{
	struct web_session *all = grown(v->session, v->nsessions, sizeof(*all));

	if (!all)
		return NULL;
	v->session = all;
	all[v->nsessions] = (struct web_session){.device = WEB_UNKNOWN};
	return &all[v->nsessions++];
}

void web_view_free(struct web_view *v)
{
	free(v->device);
	free(v->session);
	*v = (struct web_view){0};
}
