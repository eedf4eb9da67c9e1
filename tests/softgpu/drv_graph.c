// SPDX-License-Identifier: MIT
/* Graphs and capture on softgpu: what all drivers promise, then branches that run at once and conditional nodes. */
#include "tests/softgpu/drv.h"

#include <stdatomic.h>

#define is_cu gives
#include "tests/graph/cases.h"
#include "tests/graph/cond_cases.h"
#include "tests/graph/param_cases.h"

static atomic_int inside, most;

static void CUDA_CB meet(void *arg)
{
	int now = 1 + atomic_fetch_add(&inside, 1);

	(void)arg;
	/* Waits a while for the other branch: only both together make it 2. */
	for (int i = 0; i < 5000 && atomic_load(&most) < 2; i++) {
		if (now > atomic_load(&most))
			atomic_store(&most, now);
		nap_ms(1);
		now = atomic_load(&inside);
	}
	atomic_fetch_sub(&inside, 1);
}

static void branches(void)
{
	CUDA_HOST_NODE_PARAMS h = {.fn = meet};
	CUgraphNode root, a, b;
	CUgraph g;

	must(cuGraphCreate(&g, 0));
	must(cuGraphAddEmptyNode(&root, g, NULL, 0));
	must(cuGraphAddHostNode(&a, g, &root, 1, &h));
	must(cuGraphAddHostNode(&b, g, &root, 1, &h));
	run_graph(g, NULL);
	is_int(atomic_load(&most), 2, "two branches run at once");
	must(cuGraphDestroy(g));
}

int main(void)
{
	graph_cases(drv_start());
	param_cases();
	branches();
	conditions(true);
	return tap_done();
}
