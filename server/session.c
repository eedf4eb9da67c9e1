// SPDX-License-Identifier: MIT
/* Sessions: opening, joining devices, the handle tables and ranges that everything off the wire is checked against. */
#include "server/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "api/hello.h"
#include "lib/log.h"
#include "server/share.h"

struct srv_lane_state {
	struct srv_session *session;
};

static __thread CUcontext current;
static __thread unsigned current_epoch;
static __thread bool has_own; /* its per-thread default stream was used */
static atomic_uint epoch = 1; /* advances when a context dies: what threads remember is void then */

CUresult ctx_enter(struct srv_ctx *x)
{
	unsigned now = atomic_load(&epoch);
	CUresult r;

	if (current == x->real && current_epoch == now)
		return CUDA_SUCCESS;
	r = drv_cuda.cuCtxSetCurrent(x->real);
	current = r ? NULL : x->real;
	current_epoch = now;
	return r;
}

void ctx_forget_current(void)
{
	atomic_fetch_add(&epoch, 1);
}

/* Handles. */

static struct srv_slot *slot_of(struct srv_session *s, enum rgpu_kind kind, uint64_t handle, bool make)
{
	uint32_t i = SRV_HANDLE_INDEX(handle);
	struct srv_slot **chunk;

	if (handle >> 48 != SRV_HANDLE_TAG || SRV_HANDLE_KIND(handle) != kind || i >= SRV_HANDLE_MAX)
		return NULL;
	chunk = &s->table[kind].chunk[i / SRV_HANDLE_CHUNK];
	if (!*chunk && make)
		*chunk = calloc(SRV_HANDLE_CHUNK, sizeof(**chunk));
	return *chunk ? &(*chunk)[i % SRV_HANDLE_CHUNK] : NULL;
}

bool session_hold(struct srv_session *s, enum rgpu_kind kind, uint64_t handle, struct srv_slot *out, void (*hold)(void *real))
{
	struct srv_slot *slot;
	bool found;

	pthread_mutex_lock(&s->handles_lock);
	slot = slot_of(s, kind, handle, false);
	found = slot && slot->handle == handle;
	if (found) {
		*out = *slot;
		if (hold)
			hold(slot->real);
	}
	pthread_mutex_unlock(&s->handles_lock);
	return found;
}

bool session_find(struct srv_session *s, enum rgpu_kind kind, uint64_t handle, struct srv_slot *out)
{
	return session_hold(s, kind, handle, out, NULL);
}

static bool bad_handle(struct srv_call *c, enum rgpu_kind kind)
{
	srv_fail(c, kind == KIND_context ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_HANDLE);
	return false;
}

bool srv_use(struct srv_call *c, enum rgpu_kind kind, uint64_t handle, void **real)
{
	struct srv_slot slot;

	if (kind == KIND_stream && handle < RGPU_SENTINELS_stream) {
		*real = (void *)handle;
		if (*real == CU_STREAM_PER_THREAD)
			has_own = true;
		return true;
	}
	if (!session_find(c->session, kind, handle, &slot))
		return bad_handle(c, kind);
	*real = slot.real;
	return true;
}

/* The program's thread has ended, and what the driver keeps by thread is to end with it. */
void srv_LANE_RESET(struct srv_call *c)
{
	c->status = 0;
	c->renew = has_own;
}

bool srv_fresh(struct srv_call *c, enum rgpu_kind kind, uint64_t handle)
{
	struct srv_session *s = c->session;
	struct srv_slot *slot;
	bool free;

	pthread_mutex_lock(&s->handles_lock);
	slot = slot_of(s, kind, handle, true);
	free = slot && !slot->handle;
	pthread_mutex_unlock(&s->handles_lock);
	return free ? true : bad_handle(c, kind);
}

/* Without memory for the list the context remembers that it is not complete. */
static void list_stream(struct srv_call *c, uint64_t ctx, CUstream stream, bool add)
{
	struct srv_slot slot;
	struct srv_ctx *x;

	if (!session_find(c->session, KIND_context, ctx, &slot))
		return;
	x = slot.real;
	pthread_mutex_lock(&x->streams_lock);
	if (add) {
		if (x->nstreams == x->room) {
			unsigned more = x->room ? x->room * 2 : 16;
			CUstream *p = realloc(x->stream, more * sizeof(*p));

			if (p) {
				x->stream = p;
				x->room = more;
			}
		}
		if (x->nstreams < x->room)
			x->stream[x->nstreams++] = stream;
		else
			x->unlisted = true;
	}
	for (unsigned i = 0; !add && i < x->nstreams; i++)
		if (x->stream[i] == stream) {
			x->stream[i] = x->stream[--x->nstreams];
			x->changes++;
			break;
		}
	pthread_mutex_unlock(&x->streams_lock);
}

void srv_put(struct srv_call *c, enum rgpu_kind kind, uint64_t handle, void *real, uint64_t ctx)
{
	struct srv_session *s = c->session;
	struct srv_slot *slot;

	pthread_mutex_lock(&s->handles_lock);
	slot = slot_of(s, kind, handle, true);
	if (slot)
		*slot = (struct srv_slot){.handle = handle, .ctx = ctx, .real = real};
	pthread_mutex_unlock(&s->handles_lock);
	if (kind == KIND_stream)
		list_stream(c, ctx, real, true);
}

bool srv_take(struct srv_call *c, enum rgpu_kind kind, uint64_t handle, void **real)
{
	struct srv_session *s = c->session;
	struct srv_slot *slot, old = {0};

	if (kind == KIND_event)
		pthread_mutex_lock(&s->events_lock);
	pthread_mutex_lock(&s->handles_lock);
	slot = slot_of(s, kind, handle, false);
	if (slot && slot->handle == handle) {
		old = *slot;
		slot->handle = 0;
	}
	pthread_mutex_unlock(&s->handles_lock);
	if (kind == KIND_event) {
		share_withdraw(SHARE_EVENT, (uintptr_t)old.real);
		pthread_mutex_unlock(&s->events_lock);
	}
	if (!old.handle)
		return bad_handle(c, kind);
	if (kind == KIND_stream)
		list_stream(c, old.ctx, old.real, false);
	*real = old.real;
	return true;
}

void session_drop_context(struct srv_session *s, uint64_t ctx, void (*fn)(struct srv_session *, enum rgpu_kind, void *))
{
	for (unsigned k = 1; k < KIND_MAX; k++)
		for (unsigned i = 0; i < SRV_HANDLE_MAX / SRV_HANDLE_CHUNK; i++)
			for (unsigned n = 0; n < SRV_HANDLE_CHUNK; n++) {
				struct srv_slot *slot, old = {0};

				pthread_mutex_lock(&s->handles_lock);
				slot = s->table[k].chunk[i];
				if (slot && slot[n].handle && slot[n].ctx == ctx) {
					old = slot[n];
					slot[n].handle = 0;
				}
				pthread_mutex_unlock(&s->handles_lock);
				if (!slot)
					break;
				if (old.handle)
					fn(s, k, old.real);
			}
}

struct srv_ctx *srv_context(struct srv_call *c, uint64_t ctx)
{
	void *x;

	return srv_use(c, KIND_context, ctx, &x) ? x : NULL;
}

bool srv_enter(struct srv_call *c, uint64_t ctx)
{
	struct srv_ctx *x = srv_context(c, ctx);
	CUresult r;

	if (!x)
		return false;
	r = ctx_enter(x);
	if (r)
		srv_fail(c, r);
	return !r;
}

/* Ranges. */

static unsigned above(const struct srv_ranges *r, uint64_t addr)
{
	unsigned lo = 0, hi = r->n;

	while (lo < hi) {
		unsigned mid = lo + (hi - lo) / 2;

		if (r->list[mid].addr > addr)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

bool ranges_add(struct srv_ranges *r, const struct srv_range_entry *e)
{
	unsigned at = above(r, e->addr);

	if ((at && e->addr - r->list[at - 1].addr < r->list[at - 1].bytes) ||
	    (at < r->n && r->list[at].addr - e->addr < e->bytes))
		return false;
	if (r->n == r->room) {
		unsigned more = r->room ? r->room * 2 : 64;
		struct srv_range_entry *p = realloc(r->list, more * sizeof(*p));

		if (!p)
			return false;
		r->list = p;
		r->room = more;
	}
	memmove(&r->list[at + 1], &r->list[at], (r->n - at) * sizeof(*r->list));
	r->list[at] = *e;
	r->n++;
	return true;
}

void ranges_drop_of(struct srv_ranges *r, const void *owner, uint64_t ctx)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < r->n; i++)
		if (owner ? r->list[i].owner != owner : r->list[i].ctx != ctx)
			r->list[kept++] = r->list[i];
	r->n = kept;
}

bool session_in_window(const struct srv_session *s, uint64_t addr, uint64_t bytes)
{
	return bytes && bytes <= s->window_bytes && addr >= s->window && addr - s->window <= s->window_bytes - bytes;
}

bool ranges_drop(struct srv_ranges *r, uint64_t addr, uint64_t bytes, enum srv_range_what what, struct srv_range_entry *out)
{
	unsigned at = above(r, addr);

	if (!at-- || r->list[at].addr != addr || r->list[at].bytes != bytes || r->list[at].what != what)
		return false;
	*out = r->list[at];
	memmove(&r->list[at], &r->list[at + 1], (r->n - at - 1) * sizeof(*r->list));
	r->n--;
	return true;
}

/* Leases that touch are one piece for this purpose: an allocation may be made of several. */
static bool covered(const struct srv_ranges *r, uint64_t addr, unsigned __int128 len)
{
	unsigned at = above(r, addr);

	if (!at--)
		return false;
	for (; at < r->n; at++) {
		const struct srv_range_entry *e = &r->list[at];

		if (addr < e->addr || addr - e->addr >= e->bytes)
			return false;
		if (len <= e->bytes - (addr - e->addr))
			return true;
		len -= e->bytes - (addr - e->addr);
		addr = e->addr + e->bytes;
	}
	return false;
}

bool srv_range(struct srv_call *c, uint64_t addr, __int128 len)
{
	struct srv_session *s = c->session;
	bool ok;

	if (!len)
		return true;
	pthread_rwlock_rdlock(&s->ranges_lock);
	ok = len > 0 && (covered(&s->leases, addr, len) || covered(&s->globals, addr, len));
	pthread_rwlock_unlock(&s->ranges_lock);
	if (!ok)
		srv_fail(c, CUDA_ERROR_INVALID_VALUE);
	return ok;
}

/* Device printf. */

#define TEXT_MAX (4u << 20)

void session_print(void *session, const char *text, size_t len)
{
	struct srv_session *s = session;

	pthread_mutex_lock(&s->print_lock);
	if (len > TEXT_MAX - s->text_len) {
		if (!s->text_lost)
			rgpu_warn("device printf: a session has %u MiB waiting, and what follows is lost until it synchronizes",
				  TEXT_MAX >> 20);
		s->text_lost = true;
		goto out;
	}
	if (s->text_len + len > s->text_room) {
		size_t more = (s->text_len + len) * 2;
		char *p = realloc(s->text, more);

		if (!p)
			goto out;
		s->text = p;
		s->text_room = more;
	}
	memcpy(s->text + s->text_len, text, len);
	s->text_len += len;
out:
	pthread_mutex_unlock(&s->print_lock);
}

bool session_has_text(struct srv_session *s)
{
	bool has;

	pthread_mutex_lock(&s->print_lock);
	has = s->text_len;
	pthread_mutex_unlock(&s->print_lock);
	return has;
}

/* Opening and closing. */

/* The client's word is not taken for it: others of the driver's variables name libraries to load and files to write. */
static const char *may_set(const char *name, size_t len)
{
	static const char *const allowed[] = {RGPU_HELLO_NAMES};

	for (size_t i = 0; i < sizeof(allowed) / sizeof(*allowed); i++)
		if (strlen(allowed[i]) == len && !memcmp(allowed[i], name, len))
			return allowed[i];
	return NULL;
}

static int take_hello(const uint8_t *data, uint32_t len, char *why, size_t why_size)
{
	struct rgpu_shim_hello h;
	const char *env, *end;

	if (len < sizeof(h)) {
		snprintf(why, why_size, "the client's library said nothing of itself; install the client of this release");
		return -EPROTO;
	}
	memcpy(&h, data, sizeof(h));
	if (h.magic != RGPU_HELLO_MAGIC || h.env_len > len - sizeof(h) || (h.env_len && data[sizeof(h) + h.env_len - 1])) {
		snprintf(why, why_size, "the client's library is not understood; install the client of this release");
		return -EPROTO;
	}
	if (h.api_version > RGPU_API_VERSION) {
		snprintf(why, why_size, "the client's library speaks API version %u, this server %u; install a newer server",
			 h.api_version, RGPU_API_VERSION);
		return -EPROTO;
	}
	env = (const char *)data + sizeof(h);
	for (end = env + h.env_len; env < end; env += strlen(env) + 1) {
		const char *eq = strchr(env, '='), *name;

		if (!eq || !(name = may_set(env, eq - env)))
			continue;
		setenv(name, eq + 1, 1);
	}
	return 0;
}

int srv_session_open(struct srv_session **out, const struct rgpu_start *start, const void *data, uint32_t data_len, char *why,
		     size_t why_size)
{
	struct srv_session *s = calloc(1, sizeof(*s));
	int r;

	if (!s) {
		snprintf(why, why_size, "no memory");
		return -ENOMEM;
	}
	r = take_hello(data, data_len, why, why_size);
	pthread_mutex_init(&s->handles_lock, NULL);
	pthread_mutex_init(&s->events_lock, NULL);
	pthread_rwlock_init(&s->ranges_lock, NULL);
	pthread_mutex_init(&s->lock, NULL);
	pthread_mutex_init(&s->print_lock, NULL);
	pthread_mutex_init(&s->shared_lock, NULL);
	hosts_init(&s->hosts);
	if (!r) {
		r = srv_session_join(s, start->device);
		if (r)
			snprintf(why, why_size, "there is no device %u", start->device);
	}
	if (r) {
		free(s);
		return r;
	}
	driver_set_print(session_print, s);
	*out = s;
	return 0;
}

int srv_session_join(struct srv_session *s, uint32_t device)
{
	struct srv_device *d = &s->device[s->ndevices];
	CUdevice dev;
	int can = 0;

	for (unsigned i = 0; i < s->ndevices; i++)
		if (s->device[i].list_index == device)
			return 0;
	if (s->ndevices == SRV_DEVICES_MAX)
		return -ENOSPC;
	if (device > INT32_MAX || drv_cuda.cuDeviceGet(&dev, device))
		return -ENODEV;
	d->dev = dev;
	d->list_index = device;
	if (drv_cuda.cuDeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, dev))
		can = 0;
	d->handle_type = can ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE;
	d->visible_to = 1u << s->ndevices;
	s->ndevices++;
	return 0;
}

/* The process ends after this, and the driver's resources with it: only our own memory is given back. */
void srv_session_close(struct srv_session *s)
{
	driver_set_print(NULL, NULL);
	for (unsigned k = 0; k < KIND_MAX; k++)
		for (unsigned i = 0; i < SRV_HANDLE_MAX / SRV_HANDLE_CHUNK; i++)
			free(s->table[k].chunk[i]);
	free(s->leases.list);
	free(s->globals.list);
	free(s->text);
	free(s->early);
	free(s);
}

uint64_t srv_session_mem(struct srv_session *s, unsigned i)
{
	return i < s->ndevices ? atomic_load(&s->device[i].used) : 0;
}

/* Nothing of the API is a lane's own: each record names its context, and the thread remembers which one is current. */
struct srv_lane_state *srv_lane_open(struct srv_session *s)
{
	struct srv_lane_state *l = calloc(1, sizeof(*l));

	if (l)
		l->session = s;
	return l;
}

void srv_lane_close(struct srv_session *s, struct srv_lane_state *l)
{
	(void)s;
	free(l);
}
