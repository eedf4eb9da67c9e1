// SPDX-License-Identifier: MIT
/* Loads modules and libraries, and makes the table of their kernels. */
#include "server/call_module.h"

#include <stdlib.h>
#include <string.h>
#include "lib/jit_option.h"

#define LOG_BYTES 8192u

static void free_image(struct srv_module *m)
{
	if (m->image)
		image_gone(m->session, m->bytes);
	free(m->image);
	m->image = NULL;
}

static void unref(struct srv_module *m)
{
	if (--m->refs)
		return;
	pthread_rwlock_destroy(&m->life);
	free_image(m);
	free(m->info);
	free(m->func);
	free(m->param);
	free(m->table);
	free(m);
}

void module_put(struct srv_module **m)
{
	if (!*m)
		return;
	pthread_rwlock_unlock(&(*m)->life);
	unref(*m);
}

static void count_ref(void *m)
{
	((struct srv_module *)m)->refs++;
}

struct srv_module *srv_module(struct srv_call *c, uint64_t handle, bool change)
{
	struct srv_module *m;
	struct srv_slot slot;

	if (!session_hold(c->session, SRV_HANDLE_KIND(handle) == KIND_library ? KIND_library : KIND_module, handle, &slot,
			  count_ref)) {
		srv_fail(c, CUDA_ERROR_INVALID_HANDLE);
		return NULL;
	}
	m = slot.real;
	if (change)
		pthread_rwlock_wrlock(&m->life);
	else
		pthread_rwlock_rdlock(&m->life);
	if (m->dead) {
		module_put(&m);
		srv_fail(c, CUDA_ERROR_INVALID_HANDLE);
		return NULL;
	}
	return m;
}

static void unload_real(struct srv_module *m)
{
	if (m->real && m->library)
		drv_cuda.cuLibraryUnload(m->real);
	else if (m->real)
		drv_cuda.cuModuleUnload(m->real);
	m->real = NULL;
}

void module_drop(struct srv_session *s, struct srv_module *m, bool unload)
{
	pthread_rwlock_wrlock(&m->life);
	shared_drop_of(s, m, 0);
	if (unload)
		unload_real(m);
	m->dead = true;
	pthread_rwlock_wrlock(&s->ranges_lock);
	ranges_drop_of(&s->globals, m, 0);
	pthread_rwlock_unlock(&s->ranges_lock);
	pthread_rwlock_unlock(&m->life);
	unref(m);
}

void srv_LOAD_BEGIN(struct srv_call *c)
{
	struct rec_LOAD_BEGIN a;
	struct srv_module *m;
	enum rgpu_kind kind;

	if (!srv_body(c, &a, sizeof(a)))
		return;
	kind = a.is_library ? KIND_library : KIND_module;
	if (!srv_fresh(c, kind, a.module) || (!a.is_library && !srv_context(c, a.ctx)))
		return;
	if (!a.bytes || a.bytes > IMAGE_MAX) {
		srv_fail(c, CUDA_ERROR_INVALID_IMAGE);
		return;
	}
	if (!image_room(c->session, a.bytes)) {
		srv_fail(c, CUDA_ERROR_OUT_OF_MEMORY);
		return;
	}
	m = calloc(1, sizeof(*m));
	if (m)
		m->image = malloc(a.bytes + 1);
	if (!m || !m->image) {
		free(m);
		image_gone(c->session, a.bytes);
		srv_fail(c, CUDA_ERROR_OUT_OF_MEMORY);
		return;
	}
	pthread_rwlock_init(&m->life, NULL);
	m->session = c->session;
	m->refs = 1;
	m->library = a.is_library;
	m->bytes = a.bytes;
	srv_put(c, kind, a.module, m, a.is_library ? 0 : a.ctx);
}

/* What goes wrong before END is END's to say. */
void srv_LOAD_DATA(struct srv_call *c)
{
	struct rec_LOAD_DATA a;
	MODULE_REF *m = NULL;
	const uint8_t *src;

	if (!srv_body(c, &a, sizeof(a)) || !(m = srv_module(c, a.module, true)))
		return;
	src = a.inlined ? c->body + sizeof(a) : c->payload;
	if (m->ended || a.off != m->got || a.bytes > m->bytes - m->got ||
	    (a.inlined ? a.bytes != a.inlined || a.bytes > c->body_len - sizeof(a) : a.bytes != c->payload_len)) {
		m->status = CUDA_ERROR_INVALID_VALUE;
		return;
	}
	memcpy(m->image + m->got, src, a.bytes);
	m->got += a.bytes;
}

/* Options that are numbers; the driver writes into none of them. */
void srv_LOAD_OPTION(struct srv_call *c)
{
	struct rec_LOAD_OPTION a;
	MODULE_REF *m = NULL;

	if (!srv_body(c, &a, sizeof(a)) || !(m = srv_module(c, a.module, true)))
		return;
	if (!jit_option_is_number(a.option)) {
		m->status = CUDA_ERROR_INVALID_VALUE;
		return;
	}
	if (m->ended || m->noptions == sizeof(m->option) / sizeof(*m->option)) {
		m->status = CUDA_ERROR_INVALID_VALUE;
		return;
	}
	m->option[m->noptions] = a.option;
	m->value[m->noptions++] = (void *)a.value;
}

static CUresult load(struct srv_module *m, char *log)
{
	CUjit_option option[28];
	void *value[28];
	unsigned n = m->noptions;
	CUresult r;

	/* A text must end, whatever the client sent. */
	m->image[m->bytes] = 0;
	r = image_check(m->image, m->bytes);
	if (r)
		return r;
	memcpy(option, m->option, n * sizeof(*option));
	memcpy(value, m->value, n * sizeof(*value));
	m->info = calloc(1, LOG_BYTES);
	if (m->info) {
		option[n] = CU_JIT_INFO_LOG_BUFFER;
		value[n++] = m->info;
		option[n] = CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES;
		value[n++] = (void *)(uintptr_t)LOG_BYTES;
	}
	option[n] = CU_JIT_ERROR_LOG_BUFFER;
	value[n++] = log;
	option[n] = CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES;
	value[n++] = (void *)(uintptr_t)LOG_BYTES;
	if (!m->library)
		return drv_cuda.cuModuleLoadDataEx((CUmodule *)&m->real, m->image, n, option, value);
	if (!drv_cuda.cuLibraryLoadData || !drv_cuda.cuLibraryGetKernelCount || !drv_cuda.cuLibraryEnumerateKernels ||
	    !drv_cuda.cuKernelGetName || !drv_cuda.cuKernelGetParamInfo || !drv_cuda.cuKernelGetFunction)
		return CUDA_ERROR_NOT_SUPPORTED;
	return drv_cuda.cuLibraryLoadData((CUlibrary *)&m->real, m->image, option, value, n, NULL, NULL, 0);
}

static CUresult enumerate(struct srv_module *m)
{
	unsigned n = 0;
	void **list;
	CUresult r;

	r = m->library ? drv_cuda.cuLibraryGetKernelCount(&n, m->real) : drv_cuda.cuModuleGetFunctionCount(&n, m->real);
	if (r || !n)
		return r;
	m->func = calloc(n, sizeof(*m->func));
	list = calloc(n, sizeof(*list));
	if (!m->func || !list) {
		free(list);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	r = m->library ? drv_cuda.cuLibraryEnumerateKernels((CUkernel *)list, n, m->real)
		       : drv_cuda.cuModuleEnumerateFunctions((CUfunction *)list, n, m->real);
	for (unsigned i = 0; i < n; i++)
		m->func[i].real = list[i];
	m->nfuncs = n;
	free(list);
	return r;
}

static CUresult param_info(const struct srv_module *m, void *f, size_t i, size_t *off, size_t *bytes)
{
	return m->library ? drv_cuda.cuKernelGetParamInfo(f, i, off, bytes) : drv_cuda.cuFuncGetParamInfo(f, i, off, bytes);
}

static CUresult read_params(struct srv_module *m, struct srv_func *f, uint32_t *room)
{
	size_t off, bytes;

	f->first_param = m->nparams;
	/* There is no count: the first index that is not there ends the list. */
	while (!param_info(m, f->real, f->nparams, &off, &bytes)) {
		if (m->nparams == *room) {
			uint32_t more = *room ? *room * 2 : 64;
			struct rgpu_func_param *p = realloc(m->param, more * sizeof(*p));

			if (!p)
				return CUDA_ERROR_OUT_OF_MEMORY;
			m->param = p;
			*room = more;
		}
		m->param[m->nparams++] = (struct rgpu_func_param){.offset = off, .bytes = bytes};
		f->nparams++;
		if (off + bytes > f->param_bytes)
			f->param_bytes = off + bytes;
	}
	return CUDA_SUCCESS;
}

static void read_attrs(const struct srv_module *m, const struct srv_func *f, CUdevice dev, int32_t *attrs)
{
	for (int i = 0; i < RGPU_FUNC_ATTRS; i++) {
		CUresult r = m->library
				     ? (drv_cuda.cuKernelGetAttribute ? drv_cuda.cuKernelGetAttribute(&attrs[i], i, f->real, dev)
								      : CUDA_ERROR_NOT_SUPPORTED)
				     : drv_cuda.cuFuncGetAttribute(&attrs[i], i, f->real);

		if (r)
			attrs[i] = INT32_MIN;
	}
}

static CUresult add_entry(struct srv_module *m, const struct srv_func *f, CUdevice dev, uint64_t *room)
{
	struct rgpu_func_entry e = {.nparams = f->nparams};
	uint64_t need;
	const char *name;
	uint8_t *p;
	CUresult r;

	r = m->library ? drv_cuda.cuKernelGetName(&name, f->real) : drv_cuda.cuFuncGetName(&name, f->real);
	if (r)
		return r;
	e.name_bytes = strlen(name);
	need = (sizeof(e) + f->nparams * sizeof(struct rgpu_func_param) + e.name_bytes + 7) & ~7ull;
	e.bytes = need;
	read_attrs(m, f, dev, e.attrs);
	if (m->table_bytes + need > *room) {
		*room = (m->table_bytes + need) * 2;
		p = realloc(m->table, *room);
		if (!p)
			return CUDA_ERROR_OUT_OF_MEMORY;
		m->table = p;
	}
	p = m->table + m->table_bytes;
	memset(p, 0, need);
	memcpy(p, &e, sizeof(e));
	if (f->nparams)
		memcpy(p + sizeof(e), m->param + f->first_param, f->nparams * sizeof(struct rgpu_func_param));
	memcpy(p + sizeof(e) + f->nparams * sizeof(struct rgpu_func_param), name, e.name_bytes);
	m->table_bytes += need;
	return CUDA_SUCCESS;
}

static CUresult tabulate(struct srv_module *m, CUdevice dev)
{
	uint32_t params = 0;
	uint64_t room = 0;
	CUresult r = enumerate(m);

	for (uint32_t i = 0; i < m->nfuncs && !r; i++) {
		r = read_params(m, &m->func[i], &params);
		if (!r)
			r = add_entry(m, &m->func[i], dev, &room);
	}
	return r;
}

/* As much of the table as there is room for, from @off on. */
static uint64_t fill_recv(struct srv_call *c, const struct srv_module *m, uint64_t off)
{
	uint64_t n = m->table_bytes - off < c->recv_len ? m->table_bytes - off : c->recv_len;

	if (!n || !srv_recv_buffer(c))
		return 0;
	memcpy(c->recv, m->table + off, n);
	c->recv_used = n;
	return n;
}

void srv_LOAD_END(struct srv_call *c)
{
	struct rep_LOAD_END r = {0};
	char log[LOG_BYTES] = "";
	struct rec_LOAD_END a;
	MODULE_REF *m = NULL;
	unsigned device = 0;
	struct srv_ctx *x;
	CUresult status;
	uint64_t rest;

	if (!srv_body(c, &a, sizeof(a)) || !(m = srv_module(c, a.module, true)))
		return;
	if (a.ctx) {
		x = srv_context(c, a.ctx);
		if (!x || !srv_enter(c, a.ctx))
			return;
		device = x->device;
	}
	status = m->status;
	if (!status && (m->ended || m->got != m->bytes))
		status = CUDA_ERROR_INVALID_VALUE;
	if (!status)
		status = load(m, log);
	if (!status)
		status = tabulate(m, c->session->device[device].dev);
	if (status)
		unload_real(m);
	m->ended = true;
	free_image(m);
	srv_fail(c, status);
	if (!status) {
		r.table_bytes = m->table_bytes;
		r.functions = m->nfuncs;
		r.received = fill_recv(c, m, 0);
	}
	srv_answer(c, &r, sizeof(r));
	if (status) {
		log[LOG_BYTES - 1] = 0;
		memcpy(c->out + sizeof(r), log, strlen(log));
		c->out_len += strlen(log);
		return;
	}
	rest = m->table_bytes - r.received;
	if (rest > SRV_OUT_MAX - sizeof(r))
		rest = SRV_OUT_MAX - sizeof(r);
	if (rest)
		memcpy(c->out + sizeof(r), m->table + r.received, rest);
	c->out_len += rest;
}

void srv_LOAD_TABLE(struct srv_call *c)
{
	struct rec_LOAD_TABLE a;
	MODULE_REF *m = NULL;

	if (!srv_body(c, &a, sizeof(a)) || !(m = srv_module(c, a.module, false)))
		return;
	if (a.off > m->table_bytes)
		srv_fail(c, CUDA_ERROR_INVALID_VALUE);
	else
		fill_recv(c, m, a.off);
}

/* What the JIT had to say of a module that it loaded. */
void srv_LOAD_LOG(struct srv_call *c)
{
	struct rec_LOAD_LOG a;
	MODULE_REF *m = NULL;

	if (!srv_body(c, &a, sizeof(a)) || !(m = srv_module(c, a.module, false)))
		return;
	if (m->info)
		srv_answer(c, m->info, strnlen(m->info, LOG_BYTES - 1));
}

void srv_UNLOAD(struct srv_call *c)
{
	struct rec_UNLOAD a;
	void *real;

	if (!srv_body(c, &a, sizeof(a)))
		return;
	if (a.ctx && !srv_enter(c, a.ctx))
		return;
	if (!srv_take(c, SRV_HANDLE_KIND(a.module) == KIND_library ? KIND_library : KIND_module, a.module, &real))
		return;
	module_drop(c->session, real, true);
}

void srv_GLOBAL(struct srv_call *c)
{
	struct rep_GLOBAL r = {0};
	uint32_t at = sizeof(struct rec_GLOBAL);
	struct rec_GLOBAL a;
	MODULE_REF *m = NULL;
	struct srv_ctx *x;
	const char *name;
	CUdeviceptr addr;
	size_t bytes;
	CUresult status;

	if (!srv_body(c, &a, sizeof(a)) || !(name = srv_string(c, &at, a.name_n)) || !(m = srv_module(c, a.module, false)) ||
	    !(x = srv_context(c, a.ctx)) || !srv_enter(c, a.ctx))
		return;
	if (!m->real || (m->library && !drv_cuda.cuLibraryGetGlobal)) {
		srv_fail(c, m->real ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_HANDLE);
		return;
	}
	status = m->library ? drv_cuda.cuLibraryGetGlobal(&addr, &bytes, m->real, name)
			    : drv_cuda.cuModuleGetGlobal_v2(&addr, &bytes, m->real, name);
	if (!status) {
		r.addr = addr;
		r.bytes = bytes;
		/* One that is listed already was asked for twice. */
		pthread_rwlock_wrlock(&c->session->ranges_lock);
		ranges_add(
			&c->session->globals,
			&(struct srv_range_entry){.addr = addr, .bytes = bytes, .device = x->device, .owner = m, .ctx = a.ctx});
		pthread_rwlock_unlock(&c->session->ranges_lock);
	}
	srv_fail(c, status);
	srv_answer(c, &r, sizeof(r));
}

void srv_MANAGED(struct srv_call *c)
{
	struct srv_ranges *g = &c->session->globals;
	uint32_t at = sizeof(struct rec_MANAGED);
	struct rec_MANAGED a;
	MODULE_REF *m = NULL;
	const char *name;
	CUdeviceptr addr;
	size_t bytes;
	CUresult r = CUDA_ERROR_NOT_FOUND;

	if (!srv_body(c, &a, sizeof(a)) || !(name = srv_string(c, &at, a.name_n)) || !(m = srv_module(c, a.module, false)) ||
	    !srv_enter(c, a.ctx))
		return;
	if (!m->real)
		r = CUDA_ERROR_INVALID_HANDLE;
	else if (m->library)
		r = drv_cuda.cuLibraryGetManaged ? drv_cuda.cuLibraryGetManaged(&addr, &bytes, m->real, name)
						 : CUDA_ERROR_NOT_SUPPORTED;
	if (!r) {
		pthread_rwlock_wrlock(&c->session->ranges_lock);
		for (unsigned i = 0; i < g->n; i++)
			g->list[i].managed = g->list[i].managed || (g->list[i].addr == addr && g->list[i].owner == m);
		pthread_rwlock_unlock(&c->session->ranges_lock);
	}
	srv_fail(c, r);
}

struct srv_func *srv_function(struct srv_call *c, uint64_t module, uint32_t index, struct srv_module **out, CUfunction *real)
{
	struct srv_module *m = *out = srv_module(c, module, false);
	struct srv_func *f;
	CUresult r;

	if (!m)
		return NULL;
	if (!m->real || index >= m->nfuncs) {
		srv_fail(c, CUDA_ERROR_INVALID_HANDLE);
		return NULL;
	}
	f = &m->func[index];
	*real = f->real;
	if (!m->library)
		return f;
	/* A library's kernel has a function in each context. */
	r = drv_cuda.cuKernelGetFunction(real, f->real);
	if (r) {
		srv_fail(c, r);
		return NULL;
	}
	return f;
}
