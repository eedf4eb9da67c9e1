// SPDX-License-Identifier: MIT
/* Moves bytes between host and device: small ones in the record, pinned ones from where they lie, others through staging slots.
 */
#include "shim/copy.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "lib/half.h"
#include "lib/log.h"
#include "rgpu_rpc.h"
#include "shim/arrival.h"
#include "shim/call_int.h"
#include "shim/ctx.h"
#include "shim/graph.h"
#include "shim/hostfunc.h"
#include "shim/known.h"
#include "shim/pinned.h"
#include "shim/progress.h"
#include "shim/session.h"
#include "shim/shared.h"
#include "shim/staging.h"

#define INLINE_UP   (32u << 10)
#define INLINE_DOWN (8u << 10)
#define LEND_MIN    (64u << 10) /* below, a copy costs less than to lend the memory */

/*
 * A record's share of a copy. Where little needs to be under way, pieces stay small enough that each end finds them in its cache
 * when it comes to them (measured: half as fast again as pieces of RGPU_CHUNK_MAX); on longer links they are few.
 */
#define PIECE_SHORT (512u << 10)
#define PIECE_UP    (1u << 20) /* staged: the slots must hold what is under way, and what is being copied */
#define PIECE_MIN   (256u << 10)
/* Where a piece may end: so that the same bytes are the same frames, however the link is, and the server knows them again. */
#define ON_FRAMES(n) ((n) & ~(uint64_t)(RGPU_FRAME_BULK - 1))

static uint64_t piece_max(struct rgpu_call *c)
{
	int r;
	struct rgpu_lane *l = session_lane(c->session, &r);
	uint64_t p = l ? lane_ahead(l) / STAGING_SLOTS : 0;

	return p < PIECE_SHORT ? PIECE_SHORT : p > RGPU_CHUNK_MAX ? RGPU_CHUNK_MAX : ON_FRAMES(p);
}

/* A large one that the program waits for is shown. */
static void begin_shown(struct rgpu_call *c, struct progress *p, uint64_t bytes, uint64_t piece)
{
	int r;
	struct rgpu_lane *l = session_lane(c->session, &r);

	if (l)
		progress_begin(p, l, bytes, piece);
}

static void end_shown(struct rgpu_call *c)
{
	int r;
	struct rgpu_lane *l = session_lane(c->session, &r);

	if (l && l->progress)
		progress_end(l);
}

/* Staged ones: small enough that copying the next piece and sending this one overlap. */
static uint64_t piece_of(struct rgpu_call *c, uint64_t bytes, uint64_t most)
{
	uint64_t p = ON_FRAMES(bytes / STAGING_SLOTS), enough = piece_max(c);

	if (most < enough)
		most = enough;
	return p < PIECE_MIN ? PIECE_MIN : p > most ? most : p;
}

/*
 * A synchronous copy to the device ends, for CUDA, when the work before it has, and then the bytes are there for every stream. If
 * there is no such work it needs no answer: the server runs it before anything that comes later (WAIT_NOT). If there is, the
 * program waits as it would for a GPU in this machine, since others may have to act before that work ends (WAIT_ANSWER).
 */
enum wait { WAIT_ASYNC, WAIT_NOT, WAIT_ANSWER };

/* Returns where inlined bytes go. */
static void *begin_half(struct rgpu_call *c, enum wait w, struct remote dst, uint64_t bytes, uint64_t stream)
{
	struct rec_H2D_HALF *b;

	c->mute = false;
	c->op = OP_H2D_HALF;
	b = rgpu_begin(c, w == WAIT_ANSWER ? RGPU_REC_FENCE : 0, 1, sizeof(*b));
	if (b)
		*b = (struct rec_H2D_HALF){
			.ctx = c->ctx, .dst = dst.at, .bytes = bytes, .hStream = stream, .sync = w == WAIT_NOT};
	return b;
}

static void *begin_up(struct rgpu_call *c, enum wait w, unsigned nseg, struct remote dst, uint64_t bytes, uint64_t stream,
		      uint32_t inlined)
{
	uint8_t flags = w == WAIT_ANSWER ? RGPU_REC_FENCE : 0;
	const struct array_box *box = dst.box;
	struct rec_H2A *a;
	struct rec_H2D *b;

	c->mute = false;
	if (box) {
		c->op = OP_H2A;
		a = rgpu_begin(c, flags, nseg, sizeof(*a) + inlined);
		if (!a)
			return NULL;
		*a = (struct rec_H2A){.ctx = c->ctx,
				      .array = box->array,
				      .x = box->x,
				      .y = box->y,
				      .z = box->z,
				      .width = box->width,
				      .height = box->height,
				      .depth = box->depth,
				      .at = dst.at,
				      .bytes = bytes,
				      .hStream = stream,
				      .inlined = inlined,
				      .sync = w == WAIT_NOT};
		return a + 1;
	}
	c->op = OP_H2D;
	b = rgpu_begin(c, flags, nseg, sizeof(*b) + inlined);
	if (!b)
		return NULL;
	*b = (struct rec_H2D){
		.ctx = c->ctx, .dst = dst.at, .bytes = bytes, .hStream = stream, .inlined = inlined, .sync = w == WAIT_NOT};
	return b + 1;
}

static int end_up(struct rgpu_call *c, enum wait w)
{
	return w == WAIT_ANSWER ? rgpu_fence(c, NULL, 0) : rgpu_send(c);
}

static int up_inline(struct rgpu_call *c, struct remote dst, const void *src, uint64_t bytes, uint64_t stream, enum wait w)
{
	void *to = begin_up(c, w, 0, dst, bytes, stream, bytes);

	if (!to)
		return c->status;
	memcpy(to, src, bytes);
	return end_up(c, w);
}

static int up_pinned(struct rgpu_call *c, struct remote dst, uint32_t bo, uint64_t off, uint64_t bytes, uint64_t stream,
		     enum wait w, struct progress *p)
{
	uint64_t piece = piece_max(c);

	if (w == WAIT_ANSWER)
		begin_shown(c, p, bytes, piece);
	for (;;) {
		uint64_t n = bytes < piece ? bytes : piece;
		bool last = n == bytes;

		if (!begin_up(c, last ? w : WAIT_ASYNC, 1, dst, n, stream, 0))
			return c->status;
		*rgpu_segs(c) = (struct rgpu_seg){.bo = bo, .dir = RGPU_SEG_SEND, .off = off, .len = n};
		if (last)
			return end_up(c, w);
		call_part(c);
		dst.at += n;
		off += n;
		bytes -= n;
	}
}

/* @half: they are single precision, and travel as half. */
static int up_staged(struct rgpu_call *c, struct remote dst, const uint8_t *src, uint64_t bytes, uint64_t stream, enum wait w,
		     bool half, struct progress *p)
{
	uint64_t piece = piece_of(c, bytes, PIECE_UP);

	begin_shown(c, p, bytes, piece);
	for (;;) {
		uint64_t n = bytes < piece ? bytes : piece;
		struct rgpu_lane *l;
		struct slot *slot;
		int r;

		l = session_lane(c->session, &r);
		slot = l && staging_slots(l, &r) ? staging_slot(l, &r) : NULL;
		if (!slot)
			return r;
		if (half)
			rgpu_half_from(slot->mem, src, n / 4);
		else
			memcpy(slot->mem, src, n);
		if (l->progress)
			progress_look(l);
		if (half ? !begin_half(c, n == bytes ? w : WAIT_ASYNC, dst, n, stream)
			 : !begin_up(c, n == bytes ? w : WAIT_ASYNC, 1, dst, n, stream, 0))
			return c->status;
		*rgpu_segs(c) =
			(struct rgpu_seg){.bo = slot->bo, .dir = RGPU_SEG_SEND, .off = slot->off, .len = half ? n / 2 : n};
		slot->seq = l->seq + 1;
		if (n == bytes)
			return end_up(c, w);
		call_part(c);
		dst.at += n;
		src += n;
		bytes -= n;
	}
}

/* Whether the program wants its single precision to travel as half: said once. */
static bool half_uploads;

static void read_half_uploads(void)
{
	const char *s = getenv("RGPU_FP16_UPLOADS");

	if (!s || !*s || !strcmp(s, "0"))
		return;
	half_uploads = !strcmp(s, "1");
	if (half_uploads)
		rgpu_warn("copies of more than 32 KiB to the device are rounded to half precision on their way "
			  "(RGPU_FP16_UPLOADS=1)");
	else
		rgpu_err("RGPU_FP16_UPLOADS=%.20s is not understood, and nothing is rounded; 1 would", s);
}

void copy_begin(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_half_uploads);
}

int copy_up(struct rgpu_call *c, struct remote dst, const void *src, uint64_t bytes, uint64_t stream, bool sync)
{
	struct progress progress;
	bool landing, changes;
	struct known_point now;
	uint64_t off, work;
	struct ctx *x;
	enum wait w;
	uint32_t bo;
	bool twin;
	int r;

	if (!bytes)
		return 0;
	c->settles = sync;
	landing = landing_pending((uint64_t)src, bytes);
	/* Functions and copies before it may write what it reads: the work before it in its stream, that is. */
	changes = landing || hostfunc_outstanding() || pinned_pending(src, bytes);
	if (changes && !sync && pinned_find(src, &(struct pinned){0}))
		return hostfunc_copy(c, dst, src, bytes, stream);
	/* The bytes are read now. */
	if (changes && (sync || landing)) {
		r = stream_sync(c, stream);
		if (r)
			return r;
	}
	/* What the program wrote there before comes first. */
	twin = !dst.box && shared_has(dst.at);
	if (twin)
		r = shared_push(c->session, false);
	if (r)
		return r;
	x = ctx_of(c->context);
	work = tally_sum(&x->work);
	now = known_point(c, stream);
	w = !sync ? WAIT_ASYNC : work > atomic_load(&x->settled) ? WAIT_ANSWER : WAIT_NOT;
	if (bytes <= INLINE_UP)
		r = up_inline(c, dst, src, bytes, stream, w);
	else if (half_uploads && !dst.box && !(bytes % 4))
		r = up_staged(c, dst, src, bytes, stream, w, true, &progress);
	else if (!pinned_bo(src, bytes, &bo, &off))
		r = up_staged(c, dst, src, bytes, stream, w, false, &progress);
	else /* The caller may overwrite them at once: they must have left. */
		r = up_pinned(c, dst, bo, off, bytes, stream, sync ? WAIT_ANSWER : w, &progress);
	if (bytes > INLINE_UP)
		end_shown(c);
	if (!r && w == WAIT_ANSWER)
		known_reached(&now);
	if (!r && w == WAIT_ANSWER && stream == 0)
		ctx_settled(x, work);
	if (!r && sync && shared_any() && (twin || w == WAIT_ANSWER))
		r = shared_pull(c->session, false);
	return r;
}

static bool begin_down(struct rgpu_call *c, uint8_t flags, unsigned nseg, struct remote src, uint64_t bytes, uint64_t stream,
		       uint32_t inlined)
{
	const struct array_box *box = src.box;
	struct rec_A2H *a;
	struct rec_D2H *b;

	c->mute = false;
	if (box) {
		c->op = OP_A2H;
		a = rgpu_begin(c, flags, nseg, sizeof(*a));
		if (a)
			*a = (struct rec_A2H){.ctx = c->ctx,
					      .array = box->array,
					      .x = box->x,
					      .y = box->y,
					      .z = box->z,
					      .width = box->width,
					      .height = box->height,
					      .depth = box->depth,
					      .at = src.at,
					      .bytes = bytes,
					      .hStream = stream,
					      .inlined = inlined};
		return a;
	}
	c->op = OP_D2H;
	b = rgpu_begin(c, flags, nseg, sizeof(*b));
	if (b)
		*b = (struct rec_D2H){.ctx = c->ctx, .src = src.at, .bytes = bytes, .hStream = stream, .inlined = inlined};
	return b;
}

static int down_inline(struct rgpu_call *c, void *dst, struct remote src, uint64_t bytes, uint64_t stream)
{
	struct {
		struct rep_D2H head;
		uint8_t bytes[INLINE_DOWN];
	} reply;
	int r;

	if (!begin_down(c, RGPU_REC_FENCE, 0, src, bytes, stream, bytes))
		return c->status;
	reply.head.text = 0;
	{
		struct fence f = {.out = &reply, .room = sizeof(reply)};

		call_expect(c, &f);
		r = call_wait(c, &f);
		if (f.done && f.got >= sizeof(reply.head) + bytes)
			memcpy(dst, reply.bytes, bytes);
		else if (!r)
			r = CUDA_ERROR_UNKNOWN;
	}
	if (!r && reply.head.text)
		print_fetch(c->session);
	return r;
}

/* Begins the records of a copy down; the last one is still to be sent. */
static int begin_pieces(struct rgpu_call *c, uint8_t last, uint32_t bo, uint64_t off, struct remote src, uint64_t bytes,
			uint64_t stream)
{
	uint64_t piece = piece_max(c);

	for (;;) {
		uint64_t n = bytes < piece ? bytes : piece;

		if (!begin_down(c, n == bytes ? last : 0, 1, src, n, stream, 0))
			return c->status;
		*rgpu_segs(c) = (struct rgpu_seg){.bo = bo, .dir = RGPU_SEG_RECV, .off = off, .len = n};
		if (n == bytes)
			return 0;
		call_part(c);
		src.at += n;
		off += n;
		bytes -= n;
	}
}

static int down_pinned(struct rgpu_call *c, void *dst, uint32_t bo, uint64_t off, struct remote src, uint64_t bytes,
		       uint64_t stream, bool sync)
{
	struct rep_D2H reply = {0};
	int r = begin_pieces(c, sync ? RGPU_REC_FENCE : 0, bo, off, src, bytes, stream);

	if (r)
		return r;
	if (sync) {
		r = rgpu_fence(c, &reply, sizeof(reply));
		if (!r && reply.text)
			print_fetch(c->session);
		return r;
	}
	r = rgpu_send(c);
	pinned_receives(dst, bytes, c, stream);
	return r;
}

int copy_down_into(struct rgpu_call *c, const struct rgpu_bo *bo, struct remote src, uint64_t bytes, uint64_t stream)
{
	int r = begin_pieces(c, 0, bo->handle, 0, src, bytes, stream);

	return r ? r : rgpu_send(c);
}

/* A piece on its way. */
struct piece {
	struct fence fence;
	struct rep_D2H reply;
	struct slot *slot;
	uint8_t *dst;
	uint64_t bytes, shift; /* in the slot */
};

/*
 * Where the transport can, bytes are received where the program wants them, while the call waits. A wrong address faults here, in
 * the thread that brought it.
 */
static bool lend(struct rgpu_call *c, void *mem, uint64_t bytes, struct rgpu_bo *bo)
{
	const volatile uint8_t *p = mem;

	if (bytes < LEND_MIN)
		return false;
	(void)p[0];
	(void)p[bytes - 1];
	return !rgpu_transport_bo_lend(c->session->transport, mem, bytes, bo);
}

/* Without a slot it lands where it is to be. */
static int land(struct rgpu_call *c, struct piece *p)
{
	int r = call_wait(c, &p->fence);

	/* A short answer without an error would leave old bytes in the slot: never hand those out. */
	if (!r && p->fence.bulk != p->bytes)
		r = CUDA_ERROR_UNKNOWN;
	if (!r && p->slot)
		memcpy(p->dst, p->slot->mem + p->shift, p->bytes);
	return r;
}

/*
 * Where in a slot bytes arrive that are then copied to @dst: at the same place within a page, if they fit there. malloc() gives
 * large blocks at 16 bytes into one, and a destination less than 64 bytes behind its source is what some processors copy to
 * twenty times slower (see lib/link.c).
 */
static uint64_t shift_for(const void *dst, uint64_t bytes)
{
	uint64_t shift = (uintptr_t)dst % 4096;

	return bytes + shift <= STAGING_SLOT ? shift : 0;
}

/* As many pieces are asked for ahead as keep the link busy, so that receiving and copying out overlap. */
static int down_staged(struct rgpu_call *c, uint8_t *dst, struct remote src, uint64_t bytes, uint64_t stream)
{
	uint64_t piece = piece_of(c, bytes, PIECE_SHORT), asked = 0;
	struct piece pieces[STAGING_SLOTS_MAX];
	unsigned head = 0, tail = 0;
	struct rgpu_bo lent;
	bool own = lend(c, dst, bytes, &lent);
	uint32_t text = 0;
	int r = 0, s;

	while (head != tail || (asked < bytes && !r)) {
		struct rgpu_lane *l = asked < bytes && !r ? session_lane(c->session, &r) : NULL;

		if (l && tail - head < (own ? staging_wanted(l) : staging_slots(l, &r))) {
			struct piece *p = &pieces[tail % STAGING_SLOTS_MAX];
			uint64_t n = bytes - asked < piece ? bytes - asked : piece;

			*p = (struct piece){.dst = dst + asked, .bytes = n, .shift = shift_for(dst + asked, n)};
			p->slot = own ? NULL : staging_slot(l, &r);
			if (!own && !p->slot)
				continue;
			if (!begin_down(c, RGPU_REC_FENCE, 1, (struct remote){src.at + asked, src.box}, n, stream, 0)) {
				r = c->status;
				continue;
			}
			*rgpu_segs(c) = (struct rgpu_seg){.bo = own ? lent.handle : p->slot->bo,
							  .dir = RGPU_SEG_RECV,
							  .off = own ? asked : p->slot->off + p->shift,
							  .len = n};
			p->fence.out = &p->reply;
			p->fence.room = sizeof(p->reply);
			call_expect(c, &p->fence);
			asked += n;
			tail++;
			continue;
		}
		if (head == tail)
			break;
		s = land(c, &pieces[head % STAGING_SLOTS_MAX]);
		if (s && !r)
			r = s;
		text |= pieces[head % STAGING_SLOTS_MAX].reply.text;
		head++;
	}
	if (own)
		rgpu_transport_bo_destroy(c->session->transport, &lent);
	if (!r && text)
		print_fetch(c->session);
	return r;
}

int copy_down(struct rgpu_call *c, void *dst, struct remote src, uint64_t bytes, uint64_t stream, bool sync)
{
	uint64_t off, work = tally_sum(&ctx_of(c->context)->work);
	struct known_point now;
	uint32_t bo;
	int r;

	if (!bytes)
		return 0;
	now = known_point(c, stream);
	r = !src.box && shared_has(src.at) ? shared_push(c->session, false) : 0;
	if (r)
		return r;
	c->settles = sync;
	if (pinned_bo(dst, bytes, &bo, &off) && (!sync || bytes > INLINE_DOWN))
		r = down_pinned(c, dst, bo, off, src, bytes, stream, sync);
	else if (!sync && arrival_copy(c, &(struct rows){dst, bytes, 1, bytes, bytes}, src, stream, &r))
		;
	else if (bytes <= INLINE_DOWN)
		r = down_inline(c, dst, src, bytes, stream);
	else
		r = down_staged(c, dst, src, bytes, stream);
	if (!r && sync)
		known_reached(&now);
	/* The legacy stream's copy comes after all that others were given, but for those that do not take part in its order. */
	if (!r && sync && stream == 0)
		ctx_settled(ctx_of(c->context), work);
	if (!r && sync && shared_any())
		r = shared_pull(c->session, false);
	return r;
}
