// SPDX-License-Identifier: MIT
/* One call from its beginning to its status: what generated and hand-written functions share. */
#include "shim/call.h"

#include <string.h>
#include "shim/count.h"
#include "shim/ctx.h"
#include "shim/cuda_api.h"
#include "shim/graph.h"
#include "shim/handles.h"
#include "shim/known.h"
#include "shim/pinned.h"
#include "shim/session.h"
#include "shim/shared.h"
#include "shim/thread.h"

/* Stands for the streams that are names and no objects. Never written. */
static struct rgpu_obj sentinel;

static const unsigned sentinels[KIND_MAX] = {[KIND_stream] = RGPU_SENTINELS_stream};

static void adopt_context(struct rgpu_call *c, struct rgpu_obj *context)
{
	c->context = context;
	c->ctx = context->handle;
	c->session = ctx_of(context)->device->session;
}

int rgpu_enter(struct rgpu_call *c, uint16_t op)
{
	uint64_t current;
	int r = process_ready();

	*c = (struct rgpu_call){.op = op};
	if (r)
		return r;
	if (thread_get()->in_host_function)
		return CUDA_ERROR_NOT_PERMITTED;
	current = thread_context();
	if (current) {
		struct rgpu_obj *context = handle_find(KIND_context, current);

		if (!context || !ctx_of(context)->alive)
			return CUDA_ERROR_CONTEXT_IS_DESTROYED;
		adopt_context(c, context);
	}
	return 0;
}

int rgpu_use(struct rgpu_call *c, enum rgpu_kind kind, const void *handle, bool adopt, uint64_t *wire, struct rgpu_obj **obj)
{
	uint64_t h = (uint64_t)handle;

	if (h < sentinels[kind]) {
		*wire = h;
		*obj = &sentinel;
		return c->context ? 0 : CUDA_ERROR_INVALID_CONTEXT;
	}
	*obj = handle_find(kind, h);
	if (!*obj)
		return kind == KIND_context ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_HANDLE;
	*wire = h;
	if (adopt)
		adopt_context(c, (*obj)->context);
	return 0;
}

int rgpu_mint(struct rgpu_call *c, enum rgpu_kind kind, uint64_t *wire, struct rgpu_obj **obj)
{
	if (!c->context)
		return CUDA_ERROR_INVALID_CONTEXT;
	*obj = handle_new(kind, c->context);
	if (!*obj)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*wire = (*obj)->handle;
	return 0;
}

void rgpu_retire(struct rgpu_obj *obj)
{
	handle_free(obj);
}

int rgpu_check_range(struct rgpu_call *c, uint64_t addr, __int128 len)
{
	if (!len)
		return 0;
	if (len > 0 && !allocs_cover(addr, len) && c->session)
		pinned_reached(c, &addr, sizeof(addr));
	return len > 0 && allocs_cover(addr, len) ? 0 : CUDA_ERROR_INVALID_VALUE;
}

int rgpu_settle(int status, uint64_t addr, uint64_t stream)
{
	struct rgpu_call c;
	int r;

	if (status || !copies_end(addr))
		return status;
	r = rgpu_enter(&c, RGPU_NO_OP);
	if (!r)
		r = ctx_use(&c, NULL);
	return r ? r : stream_sync(&c, stream);
}

void *rgpu_begin(struct rgpu_call *c, uint8_t flags, unsigned nseg, size_t body)
{
	size_t len = sizeof(struct rgpu_rec) + nseg * sizeof(struct rgpu_seg) + body;

	c->remote = c->sent = false;
	c->rec = NULL;
	if (!c->session) {
		c->status = CUDA_ERROR_INVALID_CONTEXT;
		return NULL;
	}
	/* Else a quiet call would seem to succeed, and only the next fence would say what is known already. */
	if (c->context && ctx_of(c->context)->fault) {
		c->status = ctx_of(c->context)->fault;
		return NULL;
	}
	if (shared_any() && c->context && shared_before(c->op)) {
		c->status = shared_push_for(c->session, c->op);
		if (c->status)
			return NULL;
	}
	len = (len + RGPU_REC_ALIGN - 1) & ~(size_t)(RGPU_REC_ALIGN - 1);
	if (len > RGPU_REC_MAX) {
		c->status = CUDA_ERROR_INVALID_VALUE;
		return NULL;
	}
	c->lane = session_lane(c->session, &c->status);
	if (!c->lane)
		return NULL;
	c->rec = lane_begin(c->lane, c->op, flags, nseg, len, &c->status);
	if (!c->rec)
		return NULL;
	if (c->unordered)
		c->rec->after = 0;
	return (uint8_t *)(c->rec + 1) + nseg * sizeof(struct rgpu_seg);
}

/* Records that leave the devices' memory as it is; after any other, cuMemGetInfo asks. */
static bool keeps_memory(uint16_t op)
{
	switch (op) {
	case OP_LAUNCH:
	case OP_H2D:
	case OP_D2H:
	case OP_D2D:
	case OP_STREAM_SYNC:
	case OP_EVENT_SYNC:
	case OP_CTX_SYNC:
	case OP_CTX_WAIT:
	case OP_EVENT_WATCH:
	case OP_STREAM_WATCH:
	case OP_MEMORY_WATCH:
	case OP_SHARE_UP:
	case OP_SHARE_DOWN:
	case OP_cuMemGetInfo_v2:
	case OP_cuMemsetD8Async:
	case OP_cuMemsetD32Async:
	case OP_cuStreamQuery:
	case OP_cuStreamWaitEvent:
	case OP_cuEventQuery:
	case OP_cuEventRecord:
	case OP_cuEventElapsedTime:
	case OP_GRAPH_LAUNCH:
	case OP_cuEventElapsedTime_v2:
		return true;
	default:
		return false;
	}
}

/* After the record, and after a fence's answer: who asks then is told of it, or knows that he was not. */
static void note_change(const struct rgpu_call *c)
{
	if (!keeps_memory(c->op))
		atomic_fetch_add(&c->session->changes, 1);
}

/* From here on the device has work, as far as anybody here knows. */
static void mark_busy(struct rgpu_call *c)
{
	struct ctx *x = ctx_of(c->context);

	if (!c->settles)
		tally_add(&x->work, c->lane, 1);
	known_given(c);
	heap_busy(x->device, c->lane, atomic_load_explicit(&c->session->counter, memory_order_relaxed));
}

uint64_t call_publish(struct rgpu_call *c, bool place)
{
	uint64_t seq = lane_publish(c->lane, c->rec, place);

	c->sent = true;
	if (c->context)
		mark_busy(c);
	lane_kick(c->lane);
	if (shared_any() && c->context && (shared_before(c->op) || c->op == OP_GRAPH_LAUNCH))
		shared_watch(c->session);
	return seq;
}

int rgpu_send(struct rgpu_call *c)
{
	int r;

	call_publish(c, true);
	note_change(c);
	r = c->mute ? 0 : session_take_pending(c->session, c->op);
	c->remote = r;
	return r;
}

void call_part(struct rgpu_call *c)
{
	call_publish(c, false);
	note_change(c);
}

int call_wait(struct rgpu_call *c, struct fence *f)
{
	int r = lane_wait(c->lane, f);

	note_change(c);
	if (r)
		return r;
	/* Who has seen work done finds what that brought. */
	landing_poll();
	c->remote = true;
	if (f->status) {
		/* The fence's own answer is about its context; an earlier quiet call's need not be. */
		if (c->context && !op_library(c->op) && ctx_is_sticky(f->status))
			ctx_of(c->context)->fault = f->status;
		return f->status;
	}
	known_waited(c->session, f->after);
	return c->mute ? 0 : session_take_pending(c->session, c->op);
}

void call_expect(struct rgpu_call *c, struct fence *f)
{
	f->after = c->rec->after;
	f->seq = call_publish(c, false);
	lane_expect(c->lane, f);
	count_round_trip(c->op);
}

int rgpu_fence(struct rgpu_call *c, void *out, size_t room)
{
	struct fence f = {.out = out, .room = room};
	int r;

	if (room)
		memset(out, 0, room);
	call_expect(c, &f);
	r = call_wait(c, &f);
	/* The program has seen work end: what that wrote for it is here before the call returns. */
	if (!r && shared_any() && shared_after(c->op))
		r = shared_pull(c->session, false);
	else if (r && shared_any())
		shared_doubt();
	return r;
}
