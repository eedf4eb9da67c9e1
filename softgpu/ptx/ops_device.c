/* SPDX-License-Identifier: MIT */
/* The device runtime: launches, copies and memory that a kernel asks for, as code built with -rdc=true calls it. */
#include <stdlib.h>

#include "softgpu/ptx/call.h"
#include "softgpu/ptx/children.h"
#include "softgpu/ptx/heap.h"

/* The runtime's errors, by number: the runtime's headers are not the engine's. */
enum {
	ERR_NONE = 0,
	ERR_INVALID_VALUE = 1,
	ERR_MEMORY = 2,
	ERR_CONFIGURATION = 9,
	ERR_MAX_DEPTH = 65,
	ERR_PENDING = 69,
	ERR_FUNCTION = 98,
	ERR_HANDLE = 400,
	ERR_RESOURCES = 701,
};

#define MAX_LEVELS	24u
#define STREAM_TAIL	3u
#define STREAM_FORGET	4u
#define RUNTIME_VERSION 13000u
/* Streams and events need no state here: their handles only have to be ours. */
#define HANDLE_STREAM 0x5357000000000000ull
#define HANDLE_EVENT  0x4557000000000000ull
#define HANDLE_MASK   (0xffffull << 48)

/* In front of the parameters that the kernel writes; it lies in device memory, so nothing of it is believed. */
struct prepared {
	u32 func, grid[3], block[3], shared;
	u64 bytes;
	_Alignas(16) u8 params[];
};

static void answer(struct warp *w, const struct ins *i, u32 l, u32 err)
{
	if (err)
		w->device_error[l] = err;
	result(w, i, l, &err, 4);
}

static u64 new_handle(u64 tag)
{
	static _Atomic u64 last;

	return tag | (atomic_fetch_add(&last, 1) + 1);
}

/* A stream that a kernel may use; the host's are none of them. */
static bool is_stream(u64 s)
{
	return s <= STREAM_FORGET || (s & HANDLE_MASK) == HANDLE_STREAM;
}

static bool is_event(u64 e)
{
	return (e & HANDLE_MASK) == HANDLE_EVENT;
}

static struct ptx_func *kernel_at(const struct ptx_module *m, u64 addr)
{
	u64 index = ((addr & WINDOW_MASK) >> 4) - 1;

	return addr >> WINDOW_SHIFT == WINDOW_FUNC && !(addr & 15) && index < m->nkernels ? m->funcs[index] : NULL;
}

static u32 check_shape(const struct ptx_func *f, const u32 *grid, const u32 *block, u32 shared)
{
	u64 threads = (u64)block[0] * block[1] * block[2];

	if (!threads || !grid[0] || !grid[1] || !grid[2] || grid[0] > INT32_MAX || grid[1] > 65535 || grid[2] > 65535 ||
	    block[0] > 1024 || block[1] > 1024 || block[2] > 64 || threads > 1024)
		return ERR_CONFIGURATION;
	if (threads > f->info.max_threads || (u64)f->shared_static + shared > 227u << 10)
		return ERR_RESOURCES;
	return ERR_NONE;
}

HANDLER(parameter_buffer)
{
	const struct ptx_module *m = w->frame->f->m;

	for (u32 rest = em; rest; rest &= rest - 1) {
		u32 l = (u32)__builtin_ctz(rest), err = ERR_FUNCTION;
		struct ptx_func *f = kernel_at(m, arg64(w, i, l, 0));
		struct prepared p = {.shared = arg32(w, i, l, 3)};
		u64 at = 0;

		call_arg(w, i, l, 1, p.grid, sizeof(p.grid));
		call_arg(w, i, l, 2, p.block, sizeof(p.block));
		if (f)
			err = w->blk->l->depth >= MAX_LEVELS ? ERR_MAX_DEPTH : check_shape(f, p.grid, p.block, p.shared);
		if (!err) {
			p.func = f->index;
			p.bytes = f->param_bytes;
			at = ptx_heap_alloc(m->heap, sizeof(p) + p.bytes);
			err = at ? ERR_NONE : ERR_MEMORY;
		}
		if (at) {
			memcpy((void *)(uintptr_t)at, &p, sizeof(p));
			at += sizeof(p);
		}
		if (err)
			w->device_error[l] = err;
		result(w, i, l, &at, 8);
	}
}

/* Takes the prepared launch out of device memory. */
static u32 take(struct warp *w, u64 buffer, bool tail)
{
	const struct ptx_module *m = w->frame->f->m;
	struct prepared p;
	struct child *c;
	u32 err;

	/* The heap knows whether the address is one that it gave. */
	if (!buffer || (buffer & 15) || buffer < m->data + sizeof(p))
		return ERR_INVALID_VALUE;
	if (!ptx_heap_holds(m->heap, buffer - sizeof(p), sizeof(p)))
		return ERR_INVALID_VALUE;
	memcpy(&p, (const void *)(uintptr_t)(buffer - sizeof(p)), sizeof(p));
	if (p.func >= m->nkernels || p.bytes != m->funcs[p.func]->param_bytes ||
	    !ptx_heap_holds(m->heap, buffer - sizeof(p), sizeof(p) + p.bytes))
		return ERR_INVALID_VALUE;
	err = check_shape(m->funcs[p.func], p.grid, p.block, p.shared);
	if (err)
		return err;
	c = calloc(1, sizeof(*c) + p.bytes + 1);
	if (!c)
		return ERR_MEMORY;
	c->f = m->funcs[p.func];
	memcpy(c->grid, p.grid, sizeof(c->grid));
	memcpy(c->block, p.block, sizeof(c->block));
	c->shared = p.shared;
	memcpy(c->params, (const void *)(uintptr_t)buffer, p.bytes);
	ptx_heap_release(m->heap, buffer - sizeof(p));
	return children_add(w->blk->l, c, tail) ? ERR_NONE : ERR_PENDING;
}

HANDLER(launch_device)
{
	for (u32 rest = em; rest; rest &= rest - 1) {
		u32 l = (u32)__builtin_ctz(rest);
		u64 stream = arg64(w, i, l, 1);

		answer(w, i, l, is_stream(stream) ? take(w, arg64(w, i, l, 0), stream == STREAM_TAIL) : ERR_HANDLE);
	}
}

static u32 add_rows(struct warp *w, const struct child *rows, u64 stream)
{
	struct child *c;

	if (!is_stream(stream))
		return ERR_HANDLE;
	c = calloc(1, sizeof(*c));
	if (!c)
		return ERR_MEMORY;
	*c = *rows;
	return children_add(w->blk->l, c, stream == STREAM_TAIL) ? ERR_NONE : ERR_PENDING;
}

/* to, from, bytes, direction, stream: the addresses tell the direction */
HANDLER(copy)
{
	for (u32 rest = em; rest; rest &= rest - 1) {
		u32 l = (u32)__builtin_ctz(rest);
		struct child c = {.kind = CHILD_COPY,
				  .to = arg64(w, i, l, 0),
				  .from = arg64(w, i, l, 1),
				  .width = arg64(w, i, l, 2),
				  .rows = 1};

		answer(w, i, l, add_rows(w, &c, arg64(w, i, l, 4)));
	}
}

/* to, pitch, from, pitch, width, rows, direction, stream */
HANDLER(copy_2d)
{
	for (u32 rest = em; rest; rest &= rest - 1) {
		u32 l = (u32)__builtin_ctz(rest);
		struct child c = {.kind = CHILD_COPY,
				  .to = arg64(w, i, l, 0),
				  .to_pitch = arg64(w, i, l, 1),
				  .from = arg64(w, i, l, 2),
				  .from_pitch = arg64(w, i, l, 3),
				  .width = arg64(w, i, l, 4),
				  .rows = arg64(w, i, l, 5)};
		bool narrow = c.to_pitch < c.width || c.from_pitch < c.width;

		answer(w, i, l, narrow ? ERR_INVALID_VALUE : add_rows(w, &c, arg64(w, i, l, 7)));
	}
}

/* to, byte, bytes, stream */
HANDLER(fill)
{
	for (u32 rest = em; rest; rest &= rest - 1) {
		u32 l = (u32)__builtin_ctz(rest);
		struct child c = {.kind = CHILD_FILL,
				  .to = arg64(w, i, l, 0),
				  .from = arg32(w, i, l, 1),
				  .width = arg64(w, i, l, 2),
				  .rows = 1};

		answer(w, i, l, add_rows(w, &c, arg64(w, i, l, 3)));
	}
}

/* to, pitch, byte, width, rows, stream */
HANDLER(fill_2d)
{
	for (u32 rest = em; rest; rest &= rest - 1) {
		u32 l = (u32)__builtin_ctz(rest);
		struct child c = {.kind = CHILD_FILL,
				  .to = arg64(w, i, l, 0),
				  .to_pitch = arg64(w, i, l, 1),
				  .from = arg32(w, i, l, 2),
				  .width = arg64(w, i, l, 3),
				  .rows = arg64(w, i, l, 4)};

		answer(w, i, l, c.to_pitch < c.width ? ERR_INVALID_VALUE : add_rows(w, &c, arg64(w, i, l, 5)));
	}
}

HANDLER(last_error)
{
	for (u32 rest = em; rest; rest &= rest - 1) {
		u32 l = (u32)__builtin_ctz(rest), err = w->device_error[l];

		w->device_error[l] = ERR_NONE;
		result(w, i, l, &err, 4);
	}
}

HANDLER(peek_error)
{
	for (u32 rest = em; rest; rest &= rest - 1) {
		u32 l = (u32)__builtin_ctz(rest);

		result(w, i, l, &w->device_error[l], 4);
	}
}

static void put(struct warp *w, const struct ins *i, u32 em, u64 (*value)(struct warp *w, const struct ins *i, u32 l), u32 bytes)
{
	for (u32 rest = em; rest; rest &= rest - 1) {
		u32 l = (u32)__builtin_ctz(rest);
		void *p = ptx_lane_addr(w, i, l, SP_GENERIC, arg64(w, i, l, 0), bytes);
		u64 v;

		if (!p)
			return;
		v = value(w, i, l);
		memcpy(p, &v, bytes);
		answer(w, i, l, v ? ERR_NONE : ERR_MEMORY);
	}
}

static u64 a_stream(struct warp *w, const struct ins *i, u32 l)
{
	(void)w, (void)i, (void)l;
	return new_handle(HANDLE_STREAM);
}

static u64 an_event(struct warp *w, const struct ins *i, u32 l)
{
	(void)w, (void)i, (void)l;
	return new_handle(HANDLE_EVENT);
}

static u64 memory(struct warp *w, const struct ins *i, u32 l)
{
	return ptx_heap_alloc(w->frame->f->m->heap, arg64(w, i, l, 1));
}

static u64 version(struct warp *w, const struct ins *i, u32 l)
{
	(void)w, (void)i, (void)l;
	return RUNTIME_VERSION;
}

HANDLER(create_stream)
{
	put(w, i, em, a_stream, 8);
}

HANDLER(create_event)
{
	put(w, i, em, an_event, 8);
}

HANDLER(device_malloc)
{
	put(w, i, em, memory, 8);
}

HANDLER(runtime_version)
{
	put(w, i, em, version, 4);
}

HANDLER(device_free)
{
	for (u32 rest = em; rest; rest &= rest - 1) {
		u32 l = (u32)__builtin_ctz(rest);
		u64 p = arg64(w, i, l, 0);

		answer(w, i, l, !p || ptx_heap_release(w->frame->f->m->heap, p) ? ERR_NONE : ERR_INVALID_VALUE);
	}
}

/* All work of a grid runs in the order in which it came, which keeps every order that streams and events ask for. */
#define ORDER(nm, VALID)                                                                                                         \
	HANDLER(nm)                                                                                                              \
	{                                                                                                                        \
		for (u32 rest = em; rest; rest &= rest - 1) {                                                                    \
			u32 l = (u32)__builtin_ctz(rest);                                                                        \
			answer(w, i, l, (VALID) ? ERR_NONE : ERR_HANDLE);                                                        \
		}                                                                                                                \
	}
ORDER(destroy_stream, (arg64(w, i, l, 0) & HANDLE_MASK) == HANDLE_STREAM)
ORDER(destroy_event, is_event(arg64(w, i, l, 0)))
ORDER(record_event, is_event(arg64(w, i, l, 0)) && is_stream(arg64(w, i, l, 1)))
ORDER(wait_event, is_stream(arg64(w, i, l, 0)) && is_event(arg64(w, i, l, 1)))

#define CDP(name) "call:__cudaCDP2" name

const struct op_row ptx_ops_device[] = {
	{CDP("GetParameterBufferV2"), "ddssw", parameter_buffer, 0},
	{CDP("LaunchDeviceV2{,_ptsz}"), "wdd", launch_device, 0},
	{CDP("GetLastError"), "w", last_error, 0},
	{CDP("PeekAtLastError"), "w", peek_error, 0},
	{CDP("StreamCreateWithFlags"), "wdw", create_stream, 0},
	{CDP("StreamDestroy"), "wd", destroy_stream, 0},
	{CDP("StreamWaitEvent{,_ptsz}"), "wddw", wait_event, 0},
	{CDP("EventCreateWithFlags"), "wdw", create_event, 0},
	{CDP("EventRecord{,_ptsz}"), "wdd", record_event, 0},
	{CDP("EventRecordWithFlags{,_ptsz}"), "wddw", record_event, 0},
	{CDP("EventDestroy"), "wd", destroy_event, 0},
	{CDP("Malloc"), "wdd", device_malloc, 0},
	{CDP("Free"), "wd", device_free, 0},
	{CDP("MemcpyAsync{,_ptsz}"), "wdddwd", copy, 0},
	{CDP("Memcpy2DAsync{,_ptsz}"), "wddddddwd", copy_2d, 0},
	{CDP("MemsetAsync{,_ptsz}"), "wdwdd", fill, 0},
	{CDP("Memset2DAsync{,_ptsz}"), "wddwddd", fill_2d, 0},
	{CDP("RuntimeGetVersion"), "wd", runtime_version, 0},
	{NULL, NULL, NULL, 0},
};
