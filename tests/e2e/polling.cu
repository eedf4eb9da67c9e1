// SPDX-License-Identifier: MIT
// Runtime API: a host function holds a stream while the program polls an event and the stream, and lets it go.
#include <atomic>
#include <unistd.h>
#include "tests/e2e/e2e.h"

static std::atomic<bool> open_gate;

static void gate(void *arg)
{
	while (!open_gate)
		usleep(1000);
	*(int *)arg = 42;
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
	printf("polling: the copy read what the function wrote\n");
	return 0;
}
