// SPDX-License-Identifier: MIT
/* Allocations that processes share: exported as a piece of their lease, opened where that lease is mapped, too. */
#include "shim/ipc.h"

#include <stdlib.h>
#include <string.h>
#include "rgpu_rpc.h"
#include "shim/ctx.h"
#include "shim/handles.h"
#include "shim/session.h"

/* Another process's lease in our window. */
struct mapped {
	struct mapped *next;
	uint8_t name[TOKEN_NAME];
	struct device *device;
	uint64_t addr, bytes;
	unsigned pieces;
};

struct piece {
	struct block block; /* first */
	struct piece *next;
	struct mapped *in;
	uint64_t serial;
	unsigned opens;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* all below; taken before allocs' and the window's */
static struct mapped *leases;
static struct piece *pieces;
static uint8_t own[TOKEN_NAME / 2]; /* what the names of our own session begin with */
static bool exported;

int ipc_export(const struct block *b, struct token *t)
{
	struct rgpu_call c = {.op = OP_MEM_EXPORT, .session = b->device->session};
	uint64_t start;
	int r;

	*t = token_new(TOKEN_PIECE);
	r = rpc_MEM_EXPORT(&c, 0, b->range.start, &start, t->words);
	if (r)
		return r;
	t->start = b->range.start - start;
	t->bytes = b->asked;
	t->serial = b->id;
	pthread_mutex_lock(&lock);
	memcpy(own, t->name, sizeof(own));
	exported = true;
	pthread_mutex_unlock(&lock);
	return 0;
}

static int map(struct rgpu_session *s, struct mapped *m)
{
	struct rgpu_call c = {.op = OP_MEM_IMPORT, .session = s};
	struct rgpu_obj *obj = handle_new(KIND_memhandle, NULL);
	uint64_t handle = obj ? obj->handle : 0;
	uint32_t device;
	int r = obj ? rpc_MEM_IMPORT(&c, handle, m->name, TOKEN_NAME, &m->bytes, &device) : CUDA_ERROR_OUT_OF_MEMORY;

	if (!r && device >= s->ndevices)
		r = CUDA_ERROR_INVALID_DEVICE;
	if (r) {
		if (obj)
			handle_free(obj);
		return r;
	}
	m->device = s->devices[device];
	m->addr = window_take(m->device, m->bytes);
	c.op = OP_MEM_MAP;
	r = m->addr ? rpc_MEM_MAP(&c, m->addr, m->bytes, handle) : CUDA_ERROR_OUT_OF_MEMORY;
	if (r && m->addr)
		window_give(m->device, m->addr, m->bytes);
	/* The mapping keeps the memory. */
	c.op = OP_MEM_RELEASE;
	rpc_MEM_RELEASE(&c, handle);
	handle_free(obj);
	return r;
}

/* With the lock, as all that follows. Nothing works there. */
static void unmap(struct mapped *m)
{
	struct rgpu_call c = {.op = OP_MEM_UNMAP, .session = m->device->session};

	for (struct mapped **at = &leases; *at; at = &(*at)->next)
		if (*at == m) {
			*at = m->next;
			break;
		}
	if (!rpc_MEM_UNMAP(&c, m->addr, m->bytes))
		window_give(m->device, m->addr, m->bytes);
	free(m);
}

static int lease(struct rgpu_session *s, const uint8_t name[TOKEN_NAME], struct mapped **out)
{
	struct mapped *m = leases;
	int r;

	while (m && memcmp(m->name, name, TOKEN_NAME))
		m = m->next;
	if (!m) {
		m = calloc(1, sizeof(*m));
		if (!m)
			return CUDA_ERROR_OUT_OF_MEMORY;
		memcpy(m->name, name, TOKEN_NAME);
		r = map(s, m);
		if (r) {
			free(m);
			return r;
		}
		m->next = leases;
		leases = m;
	}
	*out = m;
	return 0;
}

static int give(struct mapped *m, uint32_t access)
{
	struct rgpu_call c = {.op = OP_MEM_ACCESS, .session = m->device->session};

	return rpc_MEM_ACCESS(&c, m->addr, m->bytes, 1u << m->device->index | access, 0, 0);
}

static int enter(struct rgpu_call *c, struct mapped *m, const struct token *t, uint64_t pool)
{
	uint64_t addr = m->addr + t->start;
	struct piece *p;

	if (!t->bytes || t->start > m->bytes || t->bytes > m->bytes - t->start)
		return CUDA_ERROR_INVALID_HANDLE;
	/* An allocation that its process has freed, but that was not closed here. */
	if (allocs_touch(addr, t->bytes))
		return CUDA_ERROR_ALREADY_MAPPED;
	p = calloc(1, sizeof(*p));
	if (!p)
		return CUDA_ERROR_OUT_OF_MEMORY;
	p->block.kind = BLOCK_IPC;
	p->block.range.start = addr;
	p->block.range.bytes = p->block.asked = t->bytes;
	p->block.device = m->device;
	p->block.context = c->context;
	p->block.pool = pool;
	p->serial = t->serial;
	p->in = m;
	p->opens = 1;
	p->next = pieces;
	pieces = p;
	m->pieces++;
	allocs_enter(&p->block);
	return 0;
}

static struct piece *opened(struct mapped *m, const struct token *t, uint64_t pool)
{
	struct piece *p = pieces;

	while (p && !(p->in == m && p->block.range.start == m->addr + t->start && p->block.asked == t->bytes &&
		      p->serial == t->serial && p->block.pool == pool))
		p = p->next;
	return p;
}

int ipc_open(struct rgpu_call *c, const struct token *t, uint64_t pool, uint32_t access, CUdeviceptr *ptr)
{
	struct mapped *m;
	struct piece *p;
	int r;

	pthread_mutex_lock(&lock);
	/* CUDA has it that the process whose memory it is has no use for this. */
	r = exported && !memcmp(t->name, own, sizeof(own)) ? CUDA_ERROR_INVALID_CONTEXT : lease(c->session, t->name, &m);
	if (!r) {
		p = opened(m, t, pool);
		r = give(m, access);
		if (!r && p)
			p->opens++;
		else if (!r)
			r = enter(c, m, t, pool);
		if (!r)
			*ptr = m->addr + t->start;
		else if (!m->pieces)
			unmap(m);
	}
	pthread_mutex_unlock(&lock);
	return r;
}

static void leave(struct piece *p)
{
	struct mapped *m = p->in;

	for (struct piece **at = &pieces; *at; at = &(*at)->next)
		if (*at == p) {
			*at = p->next;
			break;
		}
	allocs_leave(p->block.range.start, BLOCK_IPC);
	free(p);
	if (!--m->pieces)
		unmap(m);
}

static struct piece *at(CUdeviceptr ptr, bool of_pool)
{
	struct piece *p = pieces;

	while (p && (p->block.range.start != ptr || !p->block.pool == of_pool))
		p = p->next;
	return p;
}

int ipc_close(struct rgpu_call *c, CUdeviceptr ptr, bool of_pool)
{
	struct piece *p;
	int r;

	pthread_mutex_lock(&lock);
	p = at(ptr, of_pool);
	pthread_mutex_unlock(&lock);
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	/* Its addresses may be given to others at once: which close is the last one is not known before. */
	r = sync_devices(c->session);
	pthread_mutex_lock(&lock);
	p = at(ptr, of_pool);
	if (!p)
		r = CUDA_ERROR_INVALID_VALUE; /* another thread closed it meanwhile */
	else if (!--p->opens)
		leave(p);
	pthread_mutex_unlock(&lock);
	return r;
}

int ipc_give(uint64_t pool, uint32_t access)
{
	int r = 0;

	pthread_mutex_lock(&lock);
	for (struct piece *p = pieces; p && !r; p = p->next)
		if (p->block.pool == pool)
			r = give(p->in, access);
	pthread_mutex_unlock(&lock);
	return r;
}

void ipc_drop_context(struct rgpu_obj *context)
{
	struct piece *p, *next;

	pthread_mutex_lock(&lock);
	for (p = pieces; p; p = next) {
		next = p->next;
		if (p->block.context == context)
			leave(p);
	}
	pthread_mutex_unlock(&lock);
}

/* ---- cuIpc…MemHandle ---- */

static int begin(struct rgpu_call *c)
{
	int r = rgpu_enter(c, RGPU_NO_OP);

	if (!r)
		r = ctx_use(c, NULL);
	return r ? r : ctx_of(c->context)->fault;
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr)
{
	struct rgpu_call c;
	struct token t;
	struct block b;
	int r = begin(&c);

	if (r)
		return r;
	/* Of cuMemAlloc only: pools and physical memory have handles of their own. */
	if (!pHandle || !heap_find(dptr, &b) || b.kind != BLOCK_HEAP || b.pool)
		return CUDA_ERROR_INVALID_VALUE;
	r = ipc_export(&b, &t);
	if (!r)
		memcpy(pHandle, &t, sizeof(*pHandle));
	return r;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
	struct rgpu_call c;
	struct token t;
	int r = begin(&c);

	if (r)
		return r;
	if (!pdptr || Flags & ~(unsigned)CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
		return CUDA_ERROR_INVALID_VALUE;
	if (token_take(TOKEN_PIECE, &handle, &t) || t.types)
		return CUDA_ERROR_INVALID_HANDLE;
	return ipc_open(&c, &t, 0, 1u << ctx_of(c.context)->device->index, pdptr);
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
	return cuIpcOpenMemHandle_v2(pdptr, handle, Flags);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr dptr)
{
	struct rgpu_call c;
	int r = begin(&c);

	return r ? r : ipc_close(&c, dptr, false);
}
