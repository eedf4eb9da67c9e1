// SPDX-License-Identifier: MIT
/* Random work on many streams, events and the legacy stream: everything runs behind all that it must come after. */
#include "tests/softgpu/drv.h"

#include <stdatomic.h>

#define STREAMS 8 /* 0 is the legacy stream; odd ones don't order with it */
#define EVENTS	12
#define OPS	6000
#define PREDS	(STREAMS + 4)

static atomic_int clock_now;

/* A piece of work: when it began and ended, and what has to have ended before. */
static struct piece {
	int start, end;
	int npreds, preds[PREDS];
} piece[OPS];

/* The opener of the gate orders with nothing: a blocking stream would wait for the legacy one, which waits for the gate. */
static CUstream stream[STREAMS], opener;
static CUevent event[EVENTS];

/* What a record of an event stands for: the last pieces of these streams. */
static int recorded[EVENTS][STREAMS];
static int last[STREAMS];				 /* piece, or -1 */
static int waits[STREAMS][2 * STREAMS], nwaits[STREAMS]; /* what the stream's next piece also has to follow */

static unsigned int seed;

static unsigned int dice(unsigned int n)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 12) % n;
}

static bool blocking(int s)
{
	return s % 2 == 0;
}

static void CUDA_CB work(void *arg)
{
	struct piece *p = arg;

	p->start = 1 + atomic_fetch_add(&clock_now, 1);
	for (volatile int i = 0; i < 200; i++)
		;
	p->end = 1 + atomic_fetch_add(&clock_now, 1);
}

static void follow(struct piece *p, int pred)
{
	for (int i = 0; i < p->npreds; i++)
		if (p->preds[i] == pred)
			return;
	if (pred >= 0 && p->npreds < PREDS)
		p->preds[p->npreds++] = pred;
}

static void add_piece(int s, int i)
{
	struct piece *p = &piece[i];

	follow(p, last[s]);
	if (!s)
		for (int t = 2; t < STREAMS; t += 2)
			follow(p, last[t]);
	else if (blocking(s))
		follow(p, last[0]);
	while (nwaits[s])
		follow(p, waits[s][--nwaits[s]]);
	must(cuLaunchHostFunc(stream[s], work, p));
	last[s] = i;
}

static void add_record(int s, int e)
{
	must(cuEventRecord(event[e], stream[s]));
	for (int t = 0; t < STREAMS; t++)
		recorded[e][t] = t == s || (!s && blocking(t)) ? last[t] : -1;
}

static void add_wait(int s, int e)
{
	must(cuStreamWaitEvent(stream[s], event[e], 0));
	for (int t = 0; t < STREAMS; t++)
		if (recorded[e][t] >= 0 && nwaits[s] < 2 * STREAMS)
			waits[s][nwaits[s]++] = recorded[e][t];
}

static void round_of(unsigned int number, CUdeviceptr gate)
{
	int wrong = 0, unrun = 0, edges = 0;

	seed = number * 7919 + 1;
	atomic_store(&clock_now, 0);
	memset(piece, 0, sizeof(piece));
	memset(recorded, 0xff, sizeof(recorded));
	memset(last, 0xff, sizeof(last));
	memset(nwaits, 0, sizeof(nwaits));
	/* In odd rounds all is queued first, in even ones it runs meanwhile. */
	must(cuMemsetD32(gate, !(number % 2), 1));
	must(cuCtxSynchronize());
	for (int s = 1; s < STREAMS; s++)
		must(cuStreamWaitValue32(stream[s], gate, 1, CU_STREAM_WAIT_VALUE_EQ));
	for (int i = 0; i < OPS; i++) {
		int s = (int)dice(STREAMS);

		if (!s && dice(8))
			s = 1 + (int)dice(STREAMS - 1);
		if (!dice(4))
			add_record((int)dice(STREAMS), (int)dice(EVENTS));
		if (!dice(4))
			add_wait((int)dice(STREAMS), (int)dice(EVENTS));
		add_piece(s, i);
	}
	if (number % 2)
		must(cuMemsetD32Async(gate, 1, 1, opener));
	must(cuCtxSynchronize());
	for (int i = 0; i < OPS; i++) {
		unrun += !piece[i].end;
		edges += piece[i].npreds;
		for (int k = 0; k < piece[i].npreds; k++)
			wrong += piece[piece[i].preds[k]].end >= piece[i].start;
	}
	is_int(unrun, 0, "round %u: all %d pieces ran", number, OPS);
	is_int(wrong, 0, "each behind what it follows (%d pairs)", edges);
}

int main(void)
{
	CUdeviceptr gate;

	drv_start();
	must(cuMemAlloc(&gate, 4));
	for (int s = 1; s < STREAMS; s++)
		must(cuStreamCreate(&stream[s], blocking(s) ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
	for (int e = 0; e < EVENTS; e++)
		must(cuEventCreate(&event[e], e % 2 ? CU_EVENT_DISABLE_TIMING : CU_EVENT_DEFAULT));
	must(cuStreamCreate(&opener, CU_STREAM_NON_BLOCKING));
	for (unsigned int n = 0; n < 6; n++)
		round_of(n, gate);
	return tap_done();
}
