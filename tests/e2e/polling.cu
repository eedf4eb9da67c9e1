// SPDX-License-Identifier: MIT
// Runtime API: a host function holds a stream while the program polls an event and the stream, and lets it go.
#include <atomic>
#include <dlfcn.h>
#include <time.h>
#include <unistd.h>
#include "tests/e2e/e2e.h"

static std::atomic<bool> open_gate;

static void gate(void *arg)
{
	while (!open_gate)
		usleep(1000);
	*(int *)arg = 42;
}

/* As the client library counts them; its own entry, which no program but a test knows. */
static long questions()
{
	static long (*count)(const char *);

	if (!count)
		count = (long (*)(const char *))dlvsym(dlopen("libcuda.so.1", RTLD_NOW), "rgpuRoundTrips", "RGPU_PRIVATE");
	return count("cuEventQuery") + count("cuStreamQuery");
}

static double now()
{
	timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/*
 * A new event and a stream with new work, polled from the beginning to the end, cost no round trip. Where so much else runs that
 * the first question comes long after the work, it may: then once more.
 */
static bool free_of_charge(cudaStream_t s, int *host)
{
	cudaEvent_t e;
	long before;
	bool late;

	open_gate = false;
	RT(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
	RT(cudaLaunchHostFunc(s, gate, host));
	double begin = now();
	RT(cudaEventRecord(e, s));
	before = questions();
	for (int i = 0; i < 200; i++) {
		if (cudaEventQuery(e) != cudaErrorNotReady || cudaStreamQuery(s) != cudaErrorNotReady)
			die("ready before the function has returned");
		if (!i)
			late = now() - begin > 0.004;
	}
	open_gate = true;
	while (cudaEventQuery(e) == cudaErrorNotReady || cudaStreamQuery(s) == cudaErrorNotReady)
		;
	RT(cudaEventQuery(e));
	RT(cudaStreamQuery(s));
	RT(cudaEventDestroy(e));
	if (!late && questions() != before)
		die("%ld round trips for polling", questions() - before);
	return !late;
}

int main()
{
	cudaEvent_t e;
	cudaStream_t s;
	int *host, *dev, got = 0;

	RT(cudaStreamCreate(&s));
	RT(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
	RT(cudaMallocHost(&host, sizeof(*host)));
	RT(cudaMalloc(&dev, sizeof(*dev)));
	*host = 1;
	RT(cudaLaunchHostFunc(s, gate, host));
	RT(cudaMemcpyAsync(dev, host, sizeof(*host), cudaMemcpyHostToDevice, s));
	RT(cudaEventRecord(e, s));
	for (int i = 0; i < 200; i++)
		if (cudaEventQuery(e) != cudaErrorNotReady || cudaStreamQuery(s) != cudaErrorNotReady)
			die("ready before the function has returned");
	open_gate = true;
	while (cudaEventQuery(e) == cudaErrorNotReady || cudaStreamQuery(s) == cudaErrorNotReady)
		;
	RT(cudaEventQuery(e));
	RT(cudaStreamQuery(s));
	RT(cudaMemcpy(&got, dev, sizeof(got), cudaMemcpyDeviceToHost));
	if (got != 42)
		die("the copy read %d, before the function had written", got);
	for (int tries = 0; !free_of_charge(s, host); tries++)
		if (tries == 500)
			die("each of 500 first questions came late");
	printf("polling: the copy read what the function wrote\n");
	return 0;
}
