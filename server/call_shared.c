// SPDX-License-Identifier: MIT
/* Twins of the program's memory: host memory here, in the session's window, that kernels reach; see shim/shared.h. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "lib/twin.h"
#include "server/session.h"

struct srv_shared {
	struct twin twin;
	bool managed;
	const void *owner;	 /* a variable: its module, and */
	uint64_t ctx;		 /* the context that it is of */
	struct srv_shared *next; /* by address */
};

/* Devices and this process: it carries the changes. */
static CUresult open_access(struct srv_session *s, uint64_t addr, uint64_t bytes)
{
	CUmemAccessDesc desc[SRV_DEVICES_MAX + 1];
	unsigned n = 0;

	for (; n < s->ndevices; n++)
		desc[n] = (CUmemAccessDesc){.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = s->device[n].dev},
					    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	desc[n++] = (CUmemAccessDesc){.location = {.type = CU_MEM_LOCATION_TYPE_HOST_NUMA},
				      .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	return drv_cuda.cuMemSetAccess(addr, bytes, desc, n);
}

static CUresult map(struct srv_session *s, uint64_t addr, uint64_t bytes)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_HOST_NUMA}};
	CUmemGenericAllocationHandle h;
	CUresult r = drv_cuda.cuMemCreate(&h, bytes, &prop, 0);

	if (r)
		return r;
	r = drv_cuda.cuMemMap(addr, bytes, 0, h, 0);
	/* The mapping keeps the memory. */
	drv_cuda.cuMemRelease(h);
	if (r)
		return r;
	r = open_access(s, addr, bytes);
	if (r)
		drv_cuda.cuMemUnmap(addr, bytes);
	else
		memset((void *)addr, 0, bytes); /* as the shadows are at both ends */
	return r;
}

/* Whether a line of [addr, addr + bytes) is in a twin already. */
static bool taken(struct srv_session *s, uint64_t addr, uint64_t bytes)
{
	for (struct srv_shared *m = s->shared; m; m = m->next)
		if (m->twin.addr < addr + bytes && addr < m->twin.addr + m->twin.bytes)
			return true;
	return false;
}

static void insert(struct srv_session *s, struct srv_shared *m)
{
	struct srv_shared **at = &s->shared;

	while (*at && (*at)->twin.addr < m->twin.addr)
		at = &(*at)->next;
	m->next = *at;
	*at = m;
}

static CUresult share(struct srv_session *s, const struct rec_SHARE *a, struct srv_shared *m)
{
	CUresult r = map(s, a->addr, a->bytes);
	bool listed;

	if (r)
		return r;
	pthread_rwlock_wrlock(&s->ranges_lock);
	listed = ranges_add(&s->leases, &(struct srv_range_entry){.addr = a->addr, .bytes = a->bytes, .what = SRV_RANGE_SHARED});
	pthread_rwlock_unlock(&s->ranges_lock);
	if (!listed) {
		drv_cuda.cuMemUnmap(a->addr, a->bytes);
		return CUDA_ERROR_INVALID_VALUE;
	}
	m->twin.mem = (uint8_t *)a->addr;
	m->twin.addr = a->addr;
	m->twin.bytes = a->bytes;
	m->managed = a->managed;
	pthread_mutex_lock(&s->shared_lock);
	insert(s, m);
	pthread_mutex_unlock(&s->shared_lock);
	return CUDA_SUCCESS;
}

void srv_SHARE(struct srv_call *c)
{
	struct srv_session *s = c->session;
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct srv_shared *m = NULL;
	void *shadow = MAP_FAILED;
	struct rec_SHARE a;

	if (!srv_body(c, &a, sizeof(a)))
		return;
	pthread_mutex_lock(&s->lock);
	if (a.bytes > SRV_HOST_MAX || s->shared_bytes > SRV_HOST_MAX - a.bytes) {
		r = CUDA_ERROR_OUT_OF_MEMORY;
	} else if (session_in_window(s, a.addr, a.bytes) && a.addr % TWIN_LINE == 0 && a.bytes % TWIN_LINE == 0) {
		m = calloc(1, sizeof(*m));
		shadow = mmap(NULL, a.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		r = CUDA_ERROR_OUT_OF_MEMORY;
		if (m && shadow != MAP_FAILED) {
			m->twin.shadow = shadow;
			r = share(s, &a, m);
			s->shared_bytes += r ? 0 : a.bytes;
		}
	}
	pthread_mutex_unlock(&s->lock);
	if (r && shadow != MAP_FAILED)
		munmap(shadow, a.bytes);
	if (r)
		free(m);
	srv_fail(c, r);
}

/* Managed: the driver has it where this process reaches it, too, while no kernel runs. */
void srv_SHARE_VAR(struct srv_call *c)
{
	struct srv_session *s = c->session;
	struct srv_shared *m = calloc(1, sizeof(*m));
	struct srv_range_entry e = {0};
	struct rec_SHARE_VAR a;
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	uint64_t first, end;

	if (!m || !srv_body(c, &a, sizeof(a))) {
		free(m);
		if (!m)
			srv_fail(c, CUDA_ERROR_OUT_OF_MEMORY);
		return;
	}
	first = a.addr - a.addr % TWIN_LINE;
	end = (a.addr + a.bytes + TWIN_LINE - 1) / TWIN_LINE * TWIN_LINE;
	/* The lock stays, so that the module stays until the twin is listed. */
	pthread_rwlock_rdlock(&s->ranges_lock);
	for (unsigned i = 0; i < s->globals.n; i++)
		if (s->globals.list[i].managed && s->globals.list[i].addr == a.addr && s->globals.list[i].bytes == a.bytes)
			e = s->globals.list[i];
	if (e.bytes && a.length && a.from % TWIN_LINE == 0 && a.length % TWIN_LINE == 0 && a.from >= first && a.from < end &&
	    a.length <= end - a.from) {
		m->twin.addr = a.from;
		m->twin.mem = (uint8_t *)a.from;
		m->twin.bytes = a.length;
		m->twin.shadow = mmap(NULL, m->twin.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		m->managed = true;
		m->owner = e.owner;
		m->ctx = e.ctx;
		r = m->twin.shadow == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
		pthread_mutex_lock(&s->shared_lock);
		if (m->twin.shadow != MAP_FAILED && !taken(s, a.from, a.length)) {
			insert(s, m);
			r = CUDA_SUCCESS;
		}
		pthread_mutex_unlock(&s->shared_lock);
	}
	pthread_rwlock_unlock(&s->ranges_lock);
	if (r) {
		if (m->twin.shadow && m->twin.shadow != MAP_FAILED)
			munmap(m->twin.shadow, m->twin.bytes);
		free(m);
	}
	srv_fail(c, r);
}

void shared_drop_of(struct srv_session *s, const void *owner, uint64_t ctx)
{
	pthread_mutex_lock(&s->shared_lock);
	for (struct srv_shared **at = &s->shared; *at;) {
		struct srv_shared *m = *at;

		if (!m->owner || (owner ? m->owner != owner : m->ctx != ctx)) {
			at = &m->next;
			continue;
		}
		*at = m->next;
		munmap(m->twin.shadow, m->twin.bytes);
		free(m);
	}
	pthread_mutex_unlock(&s->shared_lock);
}

void srv_UNSHARE(struct srv_call *c)
{
	struct srv_session *s = c->session;
	struct srv_range_entry e;
	struct srv_shared *m = NULL;
	struct rec_UNSHARE a;
	bool mine;

	if (!srv_body(c, &a, sizeof(a)))
		return;
	pthread_mutex_lock(&s->lock);
	pthread_rwlock_wrlock(&s->ranges_lock);
	mine = ranges_drop(&s->leases, a.addr, a.bytes, SRV_RANGE_SHARED, &e);
	pthread_rwlock_unlock(&s->ranges_lock);
	if (mine) {
		pthread_mutex_lock(&s->shared_lock);
		for (struct srv_shared **at = &s->shared; *at; at = &(*at)->next)
			if ((*at)->twin.addr == a.addr) {
				m = *at;
				*at = m->next;
				break;
			}
		pthread_mutex_unlock(&s->shared_lock);
		munmap(m->twin.shadow, m->twin.bytes);
		free(m);
		s->shared_bytes -= a.bytes;
		srv_fail(c, drv_cuda.cuMemUnmap(a.addr, a.bytes));
	} else {
		srv_fail(c, CUDA_ERROR_INVALID_VALUE);
	}
	pthread_mutex_unlock(&s->lock);
}

/*
 * A line that waited for no other record: what another lane still brings was sent before it, as the stamps say, and must not
 * come over its words. So the latest ones are kept.
 */
struct srv_early {
	uint64_t head, stamp;
};

#define EARLY_LINES 256u

static bool keep_early(struct srv_session *s, const struct twin_line *line, uint64_t stamp)
{
	if (!s->early)
		s->early = calloc(EARLY_LINES, sizeof(*s->early));
	if (!s->early)
		return false;
	s->early[s->early_next++ % EARLY_LINES] = (struct srv_early){.head = line->head, .stamp = stamp};
	if (s->early_stamp < stamp)
		s->early_stamp = stamp;
	return true;
}

/* The line's words that no later one has brought already. */
static void leave_out(const struct srv_session *s, struct twin_line *line, uint64_t stamp)
{
	for (unsigned i = 0; i < EARLY_LINES; i++)
		if (s->early[i].stamp > stamp && !((s->early[i].head ^ line->head) >> 16))
			line->head &= ~(s->early[i].head & 0xffff);
}

/* Written at once: for kernels that run, too, as the host's writes to its memory are. */
void srv_SHARE_UP(struct srv_call *c)
{
	struct srv_session *s = c->session;
	struct srv_shared *m = NULL;
	struct twin_line line;
	struct rec_SHARE_UP a;
	const uint8_t *from;
	uint64_t bytes;

	if (!srv_body(c, &a, sizeof(a)))
		return;
	from = c->payload ? c->payload : c->body + sizeof(a);
	bytes = c->payload ? c->payload_len : c->body_len - sizeof(a);
	if (bytes < (uint64_t)a.lines * sizeof(line)) {
		srv_fail(c, CUDA_ERROR_INVALID_VALUE);
		return;
	}
	pthread_mutex_lock(&s->shared_lock);
	for (uint32_t i = 0; i < a.lines; i++) {
		uint64_t addr;

		memcpy(&line, from + i * sizeof(line), sizeof(line));
		addr = twin_address(&line);
		/* They come by address, in runs. */
		if (!m || addr - m->twin.addr >= m->twin.bytes)
			for (m = s->shared; m && addr - m->twin.addr >= m->twin.bytes; m = m->next)
				;
		if (!m) {
			srv_fail(c, CUDA_ERROR_INVALID_VALUE);
			break;
		}
		if (s->early_stamp > c->rec.stamp)
			leave_out(s, &line, c->rec.stamp);
		twin_put(&m->twin, &line);
		if (!c->rec.after && !keep_early(s, &line, c->rec.stamp)) {
			srv_fail(c, CUDA_ERROR_OUT_OF_MEMORY);
			break;
		}
	}
	pthread_mutex_unlock(&s->shared_lock);
}

bool shared_is_host(struct srv_session *s, uint64_t addr)
{
	struct srv_shared *m;
	bool host;

	pthread_mutex_lock(&s->shared_lock);
	for (m = s->shared; m && addr - m->twin.addr >= m->twin.bytes; m = m->next)
		;
	host = m && !m->managed;
	pthread_mutex_unlock(&s->shared_lock);
	return host;
}

void srv_SHARE_DOWN(struct srv_call *c)
{
	struct srv_session *s = c->session;
	struct rep_SHARE_DOWN r = {0};
	struct rec_SHARE_DOWN a;
	struct twin_line *out;
	size_t room;

	if (!srv_body(c, &a, sizeof(a)))
		return;
	room = (c->recv_len ? c->recv_len : SRV_OUT_MAX - sizeof(r)) / sizeof(*out);
	out = c->recv_len ? (struct twin_line *)srv_recv_buffer(c) : (struct twin_line *)(c->out + sizeof(r));
	if (!out) {
		srv_fail(c, CUDA_ERROR_OUT_OF_MEMORY);
		return;
	}
	pthread_mutex_lock(&s->shared_lock);
	for (struct srv_shared *m = s->shared; m && !r.next; m = m->next) {
		uint64_t at = a.from > m->twin.addr ? a.from - m->twin.addr : 0;

		if (m->managed && !a.managed)
			continue;
		at -= at % TWIN_LINE;
		if (at >= m->twin.bytes)
			continue;
		r.lines += twin_changes(&m->twin, &at, out + r.lines, room - r.lines);
		if (at < m->twin.bytes)
			r.next = m->twin.addr + at;
	}
	pthread_mutex_unlock(&s->shared_lock);
	srv_answer(c, &r, sizeof(r));
	if (c->recv_len)
		c->recv_used = r.lines * sizeof(*out);
	else
		c->out_len += r.lines * sizeof(*out);
}
