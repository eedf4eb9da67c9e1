// SPDX-License-Identifier: MIT
/* The client's allocator, its ranges and its handle tables, with a server that is a few lines here. */
#include <stdlib.h>
#include "rgpu_rpc.h"
#include "shim/ctx.h"
#include "shim/handles.h"
#include "shim/session.h"
#include "tests/tap.h"

#define MIB (1ull << 20)

/* The server: memory of this many bytes, and what it was asked. */
static uint64_t capacity = 256 * MIB, leased;
static unsigned leases, unleases, syncs;
static union {
	struct rec_LEASE lease;
	struct rec_UNLEASE unlease;
} body;

static struct rgpu_session session = {.window = {.lock = PTHREAD_MUTEX_INITIALIZER}};
static struct device dev = {.session = &session, .props = {.granularity = 2 * MIB, .mem_total = 1024 * MIB}};
static struct rgpu_obj *context;

void *rgpu_begin(struct rgpu_call *c, uint8_t flags, unsigned nseg, size_t size)
{
	(void)flags;
	(void)nseg;
	(void)size;
	(void)c;
	return &body;
}

int rgpu_fence(struct rgpu_call *c, void *out, size_t room)
{
	(void)c;
	(void)out;
	(void)room;
	leases++;
	if (leased + body.lease.bytes > capacity)
		return CUDA_ERROR_OUT_OF_MEMORY;
	leased += body.lease.bytes;
	return 0;
}

int rgpu_send(struct rgpu_call *c)
{
	(void)c;
	unleases++;
	leased -= body.unlease.bytes;
	return 0;
}

int ctx_sync_device(struct device *d)
{
	syncs++;
	heap_idle(d, atomic_load(&d->session->counter));
	return 0;
}

static void work(void)
{
	heap_busy(&dev, NULL, atomic_fetch_add(&session.counter, 1) + 1);
}

static uint64_t alloc(uint64_t bytes)
{
	uint64_t addr = 0;
	int r = heap_alloc(&dev, context, bytes, &addr);

	return r ? 0 : addr;
}

static void test_small(void)
{
	uint64_t a = alloc(1), b = alloc(513), c = alloc(512);
	struct block found;

	is_int(leases, 1, "three small allocations, one lease");
	ok(a && b && c && a % HEAP_ALIGN == 0 && b % HEAP_ALIGN == 0 && c % HEAP_ALIGN == 0, "aligned to %u", HEAP_ALIGN);
	ok(b == a + 512 && c == b + 1024, "side by side");
	ok(heap_find(a, &found) && found.asked == 1 && found.range.start == a, "the first byte is found");
	ok(heap_find(b + 600, &found) && found.range.start == b && found.asked == 513, "an inner byte leads to its block");
	ok(!heap_find(c + 512, &found), "behind the last one there is none");
	is_int(heap_free(b + 8), CUDA_ERROR_INVALID_VALUE, "an inner address is not freed");
	is_int(heap_free(b), 0, "the beginning is");
	is_int(heap_free(b), CUDA_ERROR_INVALID_VALUE, "once");
	is_int(alloc(1024) == b, 1, "an idle device's block is reused at once");
	heap_free(a);
	heap_free(b);
	heap_free(c);
	is_int(alloc(2560) == a, 1, "neighbours have merged");
	heap_free(a);
}

static void test_parked(void)
{
	uint64_t a = alloc(4096), b;

	work();
	is_int(heap_free(a), 0, "freed while the device may use it");
	b = alloc(4096);
	ok(b && b != a, "it is not handed out again");
	is_int(syncs, 0, "and nobody waited");
	heap_idle(&dev, atomic_load(&session.counter) - 1);
	ok(tally_most(&dev.heap.busy) != 0 && alloc(4096) != a, "a wait that began before the work frees nothing");
	heap_idle(&dev, atomic_load(&session.counter));
	is_int(tally_most(&dev.heap.busy), 0, "one that began after it does");
	is_int(alloc(4096) == a, 1, "and the block is there again");
	heap_drop_context(context);
	ok(!heap_find(a, &(struct block){0}) && !heap_find(b, &(struct block){0}), "a context takes its allocations with it");
}

static void test_large(void)
{
	uint64_t a, b;
	unsigned before;

	a = alloc(64 * MIB);
	b = alloc(64 * MIB);
	ok(a && b && a % (2 * MIB) == 0, "large ones have leases of their own");
	before = leases;
	heap_free(a);
	is_int(alloc(60 * MIB) == a, 1, "a lease is reused when an eighth at most is wasted");
	is_int(leases, before, "without asking");
	heap_free(a);
	ok(alloc(32 * MIB) != a, "but not for half of it");
	ok(!alloc(500 * MIB), "what the server does not have is refused at the call");
	heap_free(b);
	is_int(leased <= capacity, 1, "never more than there is");
	a = alloc(200 * MIB);
	ok(a != 0, "idle leases make room for a larger one");
	ok(unleases > 0, "they were given back");
	work();
	heap_free(a);
	a = alloc(200 * MIB);
	ok(a && syncs > 0, "out of memory with a parked block: the device is waited for");
	heap_drop_context(context);
}

/* Random allocations: none overlaps, and all ends as it began. */
static void test_random(void)
{
	enum { N = 400 };
	uint64_t at[N] = {0}, size[N];
	unsigned bad = 0, seed = 1;

	for (int i = 0; i < 20000; i++) {
		int k = rand_r(&seed) % N;

		if (at[k]) {
			bad += heap_free(at[k]) != 0;
			at[k] = 0;
		} else {
			size[k] = 1 + rand_r(&seed) % (rand_r(&seed) % 50 ? 40000 : 3000000);
			at[k] = alloc(size[k]);
		}
		if (i % 97 == 0)
			work();
		if (i % 501 == 0)
			heap_idle(&dev, atomic_load(&session.counter));
		if (i % 200)
			continue;
		for (int a = 0; a < N; a++)
			for (int b = a + 1; b < N; b++)
				bad += at[a] && at[b] && at[a] < at[b] + size[b] && at[b] < at[a] + size[a];
	}
	is_int(bad, 0, "no allocation overlaps another");
	for (int k = 0; k < N; k++)
		if (at[k])
			heap_free(at[k]);
	heap_idle(&dev, atomic_load(&session.counter));
	is_int(dev.heap.used, 0, "nothing is in use at the end");
	is_int(dev.heap.parked_bytes, 0, "nor parked");
	is_int(heap_unused(&dev), leased, "all that is leased is known to be unused");
}

static void test_space(void)
{
	struct space *s = space_new(0x1000, 0x10000);
	uint64_t a = space_take(s, 0x2000, 0x1000), b = space_take(s, 0x3000, 0x4000), c;

	is_int(a, 0x1000, "space: the lowest fit");
	is_int(b, 0x4000, "space: aligned");
	c = space_take(s, 0x1000, 0x1000);
	is_int(c, 0x3000, "space: the gap of the alignment is used");
	ok(space_give(s, a, 0x2000) && space_give(s, c, 0x1000) && space_give(s, b, 0x3000), "space: given back");
	is_int(space_take(s, 0x10000, 0x1000), 0x1000, "space: it is one piece again");
	is_int(space_take(s, 0x1000, 0x1000), 0, "space: and then there is none");
	free(s); /* all of it is taken: no range hangs on it */
}

static void count(struct rgpu_obj *obj, void *arg)
{
	(void)obj;
	++*(unsigned *)arg;
}

static void test_handles(void)
{
	struct rgpu_obj *a = handle_new(KIND_event, context), *b = handle_new(KIND_event, context), *many;
	uint64_t ha = a->handle, hb = b->handle;
	unsigned n = 0, bad = 0;

	ok(ha != hb && ha > 0xffff && handle_find(KIND_event, ha) == a, "a handle leads to its object");
	ok(!handle_find(KIND_stream, ha), "not as another kind");
	ok(!handle_find(KIND_event, 0) && !handle_find(KIND_event, 1) && !handle_find(KIND_event, (uint64_t)a),
	   "numbers and addresses are none");
	ok(!handle_find(KIND_event, ha ^ 1ull << 30), "nor another generation");
	ok(!handle_find(KIND_event, (ha & ~0xffffffull) | 0xfffff), "nor an index that was never used");
	a->field[0] = 9;
	handle_free(a);
	ok(!handle_find(KIND_event, ha), "freed, it is stale");
	handle_free(a);
	a = handle_new(KIND_event, context);
	ok(a->handle != ha && !handle_find(KIND_event, ha) && !a->field[0], "its successor has another handle and no old fields");
	for (int i = 0; i < 10000; i++) {
		many = handle_new(KIND_event, context);
		bad += !many || handle_find(KIND_event, many->handle) != many;
	}
	is_int(bad, 0, "ten thousand more");
	handle_each(KIND_event, count, &n);
	is_int(n, 10002, "each visits the living ones");
}

int main(void)
{
	context = handle_new(KIND_context, NULL);
	session.window.base = 0x200000000000;
	session.window.size = 1ull << 36;
	session.window.space = space_new(session.window.base, session.window.size);
	heap_init(&dev.heap);
	test_small();
	test_parked();
	test_large();
	test_random();
	test_space();
	test_handles();
	return tap_done();
}
