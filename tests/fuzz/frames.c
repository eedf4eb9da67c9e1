// SPDX-License-Identifier: MIT
/* Fuzz target: any bytes as a client's data connection: frames, records and payloads end in calls or in a reason. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/log.h"
#include "server/lane.h"
#include "server/store.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/link.h"
#include "tests/server/stub.h"

/* A store with one block, 64 KiB of zeros: for clients whose first frame asks for one. */
static void lend_store(struct worker *w)
{
	static uint8_t zeros[RGPU_BLOCK_MIN];
	static struct store *store;
	uint64_t hint;
	int sv[2];

	if (!store) {
		store = store_new(1 << 20);
		if (!store || !store_put(store_tenant(store, "fuzz", 0), zeros, sizeof(zeros), true, &hint))
			abort();
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv))
		abort();
	store_serve(store, "fuzz", 0, sv[0]);
	cache_use(w, sv[1]);
}

/* The lanes' threads run what came, for a short while: else what they do depends on how busy the machine is. */
static void settle(struct worker *w)
{
	bool busy = true;

	for (int n = 0; busy && n < 100 && !w->broken; n++) {
		busy = false;
		for (unsigned i = 0; i < w->nlanes; i++)
			busy |= w->lanes[i]->backlog > 0 && w->lanes[i]->phase != LANE_HELD;
		if (busy)
			usleep(100);
	}
}

/* One connection, as the I/O thread would move it. */
static void connection(struct worker *w, const uint8_t *data, size_t size, size_t step)
{
	struct output *o = &w->output;
	int more = 1;

	pthread_mutex_lock(&w->input_lock);
	pthread_mutex_lock(&o->lock);
	o->link = fuzz_link(data, size, step, false);
	fuzz_link_pause(o->link, step < 64 ? 64 : 1);
	pthread_mutex_unlock(&o->lock);
	while ((more > 0 || (!more && fuzz_link_left(o->link))) && !w->broken) {
		more = input_read(w, 1 << 20);
		settle(w);
		pthread_mutex_lock(&o->lock);
		for (int i = 0; i < 8 && !output_pump(w, 1 << 20) && output_more(w); i++)
			;
		pthread_mutex_unlock(&o->lock);
	}
	pthread_mutex_lock(&o->lock);
	output_cut(o);
	pthread_mutex_unlock(&o->lock);
	input_reset(w);
	pthread_mutex_unlock(&w->input_lock);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct worker w;
	unsigned flags = 0;
	size_t first;

	/* Two bytes say where the connection breaks and another goes on, and in what pieces the bytes come. */
	if (size < 2)
		return 0;
	rgpu_log_init("fuzz", RGPU_LOG_ERR);
	stub_reset();
	stub_gate = 1;
	stub_no_crash = true;
	if (worker_init(&w, NULL, data[0] & 1, &worker_times_default))
		abort();
	if (size > 2 + sizeof(struct rgpu_frame))
		flags = data[2 + offsetof(struct rgpu_frame, flags) + 1] << 8;
	if (flags & RGPU_ATTACH_CACHE)
		lend_store(&w);
	/* The answers, too, whatever the link carries. */
	if (flags & (RGPU_ATTACH_LZ4 | RGPU_ATTACH_ZSTD))
		worker_compress(&w, flags & RGPU_ATTACH_LZ4 ? RGPU_PACK_LZ4 : RGPU_PACK_ZSTD);
	first = data[0] > 1 ? (size - 2) * data[0] / 256 : size - 2;
	connection(&w, data + 2, first, data[1] ? data[1] : size);
	if (first < size - 2 && !w.broken)
		connection(&w, data + 2 + first, size - 2 - first, size);
	if (w.broken && (!w.end_text[0] || strlen(w.end_text) >= sizeof(w.end_text)))
		abort();
	worker_destroy(&w);
	return 0;
}
