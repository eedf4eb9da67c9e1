// SPDX-License-Identifier: MIT
/*
 * What waits and questions see of streams, and that they are no work themselves. Each case holds work (wait values in memory),
 * asks on another thread, gives more work, and opens the gate, all in streams of a table. Sources: the Driver API's pages of
 * cuStreamSynchronize, cuStreamQuery, cuEventSynchronize and cuCtxSynchronize, and "Stream synchronization behavior".
 */
#include "tests/fidelity/fidelity.h"

enum stream { LEGACY, BLOCKING, BLOCKING2, FREE, FREE2, OWN, STREAMS, NONE = STREAMS };
enum ask { STREAM_SYNC, STREAM_QUERY, EVENT_SYNC, EVENT_QUERY, CTX_SYNC, ASKS };

static const char *const stream_name[] = {
	"legacy", "blocking", "another blocking", "non-blocking", "another non-blocking", "the thread's own", "no"};
static const char *const ask_name[] = {"cuStreamSynchronize", "cuStreamQuery", "cuEventSynchronize", "cuEventQuery",
				       "cuCtxSynchronize"};

/*
 * In this order: the held work, the event for a question about one, work between, the question, work after it, another record of
 * the event, what opens the held work. The work between and after is held until the question is answered.
 */
struct gates {
	enum stream held, between, asked, after, opens;
	enum ask ask;
	bool again;
};

static CUcontext ctx;
static CUstream stream[STREAMS];
static CUdeviceptr word; /* two of them: the held work's, and the other's */
static CUevent event;

/* ---- What the documentation says of a case ---- */

enum { HELD, EVENT, BETWEEN, AFTER, AGAIN, OPENS, PARTS };

static bool blocking(enum stream s)
{
	return s == BLOCKING || s == BLOCKING2 || s == OWN;
}

static bool orders(enum stream first, enum stream second)
{
	return first == second || (first == LEGACY && blocking(second)) || (second == LEGACY && blocking(first));
}

static bool about_event(enum ask a)
{
	return a == EVENT_SYNC || a == EVENT_QUERY;
}

/* By part: the parts that it stands behind, itself too. */
static void model(const struct gates *g, unsigned behind[PARTS])
{
	enum stream in[PARTS] = {[HELD] = g->held,
				 [EVENT] = about_event(g->ask) ? g->asked : NONE,
				 [BETWEEN] = g->between,
				 [AFTER] = g->after,
				 [AGAIN] = g->again ? g->after : NONE,
				 [OPENS] = g->opens};

	for (int i = 0; i < PARTS; i++) {
		behind[i] = in[i] == NONE ? 0 : 1u << i;
		for (int k = 0; k < i && in[i] != NONE; k++)
			if (in[k] != NONE && orders(in[k], in[i]))
				behind[i] |= behind[k];
	}
}

/* The parts before @end that the answer stands behind. */
static unsigned covered(const struct gates *g, const unsigned behind[PARTS], int end)
{
	enum stream in[PARTS] = {g->held, NONE, g->between, g->after, NONE, g->opens};
	unsigned all = 0;

	if (about_event(g->ask))
		return behind[g->ask == EVENT_QUERY && g->again && end > AGAIN ? AGAIN : EVENT];
	for (int i = 0; i < end; i++)
		if (behind[i] && (g->ask == CTX_SYNC || in[i] == g->asked || (g->asked == LEGACY && blocking(in[i]))))
			all |= behind[i];
	return all;
}

/* Whether it comes to an end. *late: not where the later work is there before the question begins. */
static bool ends(const struct gates *g, bool *late)
{
	unsigned gated = 1u << BETWEEN | 1u << AFTER, behind[PARTS], answer;
	bool query = g->ask == STREAM_QUERY || g->ask == EVENT_QUERY;

	model(g, behind);
	if (behind[OPENS] & (gated | 1u << HELD))
		return false;
	*late = covered(g, behind, OPENS) & gated || (g->again && g->ask == EVENT_SYNC);
	answer = covered(g, behind, query ? OPENS : AFTER);
	return !(answer & gated) && !(query && *late);
}

/* Whether the answer has to wait for the gate. */
static bool is_held(const struct gates *g)
{
	unsigned behind[PARTS];

	model(g, behind);
	return covered(g, behind, AFTER) & 1u << HELD;
}

/* ---- Running one ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static const struct gates *now; /* the asking thread's */
static atomic_bool asks, answered, over;
static CUresult answer;

static CUresult ask(const struct gates *g)
{
	CUresult r;

	switch (g->ask) {
	case STREAM_SYNC:
		return cuStreamSynchronize(stream[g->asked]);
	case EVENT_SYNC:
		return cuEventSynchronize(event);
	case CTX_SYNC:
		return cuCtxSynchronize();
	default:
		while ((r = g->ask == STREAM_QUERY ? cuStreamQuery(stream[g->asked]) : cuEventQuery(event)) ==
		       CUDA_ERROR_NOT_READY)
			usleep(100);
		return r;
	}
}

static void wait_value(enum stream s, unsigned i)
{
	must(cuStreamWaitValue32(stream[s], word + 4 * i, 1, CU_STREAM_WAIT_VALUE_GEQ));
}

static void *asker(void *arg)
{
	must(cuCtxSetCurrent(ctx));
	for (;;) {
		const struct gates *g;

		pthread_mutex_lock(&lock);
		while (!now && !atomic_load(&over))
			pthread_cond_wait(&turn, &lock);
		g = now;
		now = NULL;
		pthread_mutex_unlock(&lock);
		if (!g)
			return arg;
		wait_value(g->held, 0);
		if (about_event(g->ask))
			must(cuEventRecord(event, stream[g->asked]));
		if (g->between != NONE)
			wait_value(g->between, 1);
		atomic_store(&asks, true);
		answer = ask(g);
		atomic_store(&answered, true);
	}
}

static bool until(const atomic_bool *b, int ms)
{
	for (int i = 0; i < ms * 10 && !atomic_load(b); i++)
		usleep(100);
	return atomic_load(b);
}

static void open_gate(CUstream s, unsigned i)
{
	must(cuStreamWriteValue32(s, word + 4 * i, 1, 0));
}

/* @ms: how long after its beginning the question is taken to have begun. */
static bool run(const struct gates *g, CUstream rescue, int ms, int patience)
{
	bool early, good;

	must(cuMemsetD32(word, 0, 2));
	must(cuCtxSynchronize());
	atomic_store(&asks, false);
	atomic_store(&answered, false);
	pthread_mutex_lock(&lock);
	now = g;
	pthread_cond_signal(&turn);
	pthread_mutex_unlock(&lock);
	while (!atomic_load(&asks))
		usleep(100);
	usleep(ms * 1000);
	if (g->after != NONE)
		wait_value(g->after, 1);
	if (g->again)
		must(cuEventRecord(event, stream[g->after]));
	early = is_held(g) && atomic_load(&answered);
	open_gate(stream[g->opens], 0);
	good = until(&answered, patience);
	open_gate(rescue, 0);
	open_gate(rescue, 1);
	if (!until(&answered, 60000)) {
		printf("Bail out! a question is not answered with all work done\n");
		exit(255);
	}
	must(cuCtxSynchronize());
	return good && !early && answer == CUDA_SUCCESS;
}

static void say(const struct gates *g)
{
	printf("# held: %s, between: %s, asked: %s, after: %s%s, opened from: %s\n", stream_name[g->held],
	       stream_name[g->between], g->ask == CTX_SYNC ? "the context" : stream_name[g->asked], stream_name[g->after],
	       g->again ? " with the event" : "", stream_name[g->opens]);
}

/* Where a question that begins late would see more, the thread may only have been late: then once more, with more time for it. */
static unsigned try(const struct gates *g, CUstream rescue, unsigned *cases)
{
	bool late, good;

	if (!ends(g, &late))
		return 0;
	++*cases;
	good = late ? run(g, rescue, 10, 3000) || run(g, rescue, 300, 3000) || run(g, rescue, 3000, 20000)
		    : run(g, rescue, 1, 20000);
	if (!good)
		say(g);
	return !good;
}

static void table(enum ask a, enum stream held, CUstream rescue)
{
	static const enum stream others[] = {NONE, LEGACY, BLOCKING2, FREE2};
	unsigned cases = 0, bad = 0;

	for (enum stream asked = 0; asked < (a == CTX_SYNC ? 1 : STREAMS); asked++) {
		struct gates g = {.ask = a, .held = held, .asked = asked, .between = NONE, .after = NONE};

		for (g.opens = LEGACY; g.opens < OWN && bad < 3; g.opens++)
			bad += try(&g, rescue, &cases);
		g.opens = FREE2;
		for (int i = 0; i < 4; i++)
			for (int k = 0; k < 5 && bad < 3; k++) {
				g.between = others[i];
				g.after = k < 4 ? others[k] : asked;
				if (g.after == OWN || (g.between == NONE && g.after == NONE))
					continue;
				bad += try(&g, rescue, &cases);
				g.again = a == EVENT_SYNC && g.after != NONE;
				if (g.again && bad < 3)
					bad += try(&g, rescue, &cases);
				g.again = false;
			}
	}
	same(bad, 0, "%s, held work in %s stream: answered in %u cases when it has run, no later and no earlier", ask_name[a],
	     stream_name[held], cases);
}

/* ---- A thread's own stream ends with the thread ---- */

static void *leave_work(void *arg)
{
	must(cuCtxSetCurrent(ctx));
	wait_value(OWN, 0);
	return arg;
}

static void *use_own(void *arg)
{
	must(cuCtxSetCurrent(ctx));
	answer = cuStreamSynchronize(CU_STREAM_PER_THREAD);
	atomic_store(&answered, true);
	return arg;
}

static void own_streams(CUstream rescue)
{
	pthread_t t;

	must(cuMemsetD32(word, 0, 2));
	must(cuCtxSynchronize());
	pthread_create(&t, NULL, leave_work, NULL);
	pthread_join(t, NULL);
	atomic_store(&answered, false);
	pthread_create(&t, NULL, use_own, NULL);
	probe(until(&answered, 20000) && answer == CUDA_SUCCESS,
	      "work that a thread left in its own stream is not before another thread's");
	open_gate(rescue, 0);
	pthread_join(t, NULL);
	must(cuCtxSynchronize());
}

int main(void)
{
	static const enum stream held[] = {LEGACY, BLOCKING, FREE, OWN};
	CUstream rescue;
	pthread_t t;

	ctx = primary();
	stream[OWN] = CU_STREAM_PER_THREAD;
	for (enum stream s = BLOCKING; s <= FREE2; s++)
		must(cuStreamCreate(&stream[s], s >= FREE ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT));
	must(cuStreamCreate(&rescue, CU_STREAM_NON_BLOCKING));
	must(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	must(cuMemAlloc(&word, 8));
	pthread_create(&t, NULL, asker, NULL);
	for (enum ask a = 0; a < ASKS; a++)
		for (unsigned i = 0; i < 4; i++)
			table(a, held[i], rescue);
	own_streams(rescue);
	pthread_mutex_lock(&lock);
	atomic_store(&over, true);
	pthread_cond_signal(&turn);
	pthread_mutex_unlock(&lock);
	pthread_join(t, NULL);
	return tap_done();
}
