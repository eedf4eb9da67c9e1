// SPDX-License-Identifier: MIT
/* Graphs, and memory pools: arguments, defaults and what they keep count of. */
#include "tests/fidelity/fidelity.h"

static void graphs(void)
{
	CUgraphNode a, b, c, found = NULL, nodes[5];
	CUgraph g, copy, empty;
	CUgraphNodeType type = 99;
	CUgraphExec x;
	size_t n;

	/* Driver API, cuGraphCreate: flags must be 0 */
	cu(CUDA_ERROR_INVALID_VALUE, cuGraphCreate(&g, 1));
	/* Driver API, cuGraphCreate: no place for the result */
	cu(CUDA_ERROR_INVALID_VALUE, cuGraphCreate(NULL, 0));
	must(cuGraphCreate(&g, 0));
	must(cuGraphAddEmptyNode(&a, g, NULL, 0));
	must(cuGraphAddEmptyNode(&b, g, &a, 1));
	must(cuGraphAddEmptyNode(&c, g, NULL, 0));
	/* Driver API, cuGraphAddEmptyNode: no dependency twice */
	cu(CUDA_ERROR_INVALID_VALUE, cuGraphAddEmptyNode(&found, g, (CUgraphNode[]){a, a}, 2));
	/* Driver API, cuGraphGetNodes: without a place for nodes, their number */
	cu(CUDA_SUCCESS, cuGraphGetNodes(g, NULL, &n));
	same(n, 3, "nodes of the graph");
	/* Driver API, cuGraphGetNodes: what is left over is set to NULL, and the number that there are */
	memset(nodes, 1, sizeof(nodes));
	n = 5;
	must(cuGraphGetNodes(g, nodes, &n));
	probe(n == 3 && !nodes[3] && !nodes[4], "places left over are NULL");
	/* Driver API, cuGraphGetRootNodes: those without dependencies */
	must(cuGraphGetRootNodes(g, NULL, &n));
	same(n, 2, "roots of the graph");
	/* Driver API, cuGraphAddDependencies: an edge that is there already */
	cu(CUDA_ERROR_INVALID_VALUE, cuGraphAddDependencies(g, &a, &b, NULL, 1));
	/* Driver API, cuGraphAddDependencies: none is no error */
	cu(CUDA_SUCCESS, cuGraphAddDependencies(g, NULL, NULL, NULL, 0));
	/* Driver API, cuGraphAddDependencies: an edge from a node to itself */
	cu(CUDA_ERROR_INVALID_VALUE, cuGraphAddDependencies(g, &a, &a, NULL, 1));
	/* Driver API, cuGraphRemoveDependencies: an edge that is not there */
	cu(CUDA_ERROR_INVALID_VALUE, cuGraphRemoveDependencies(g, &a, &c, NULL, 1));
	/* Driver API, cuGraphAddDependencies: both nodes are the graph's */
	must(cuGraphCreate(&empty, 0));
	cu(CUDA_ERROR_INVALID_VALUE, cuGraphAddDependencies(empty, &a, &c, NULL, 1));
	/* Driver API, cuGraphNodeGetType */
	must(cuGraphNodeGetType(a, &type));
	same(type, CU_GRAPH_NODE_TYPE_EMPTY, "an empty node's type");
	/* Driver API, cuGraphNodeFindInClone: a node of the original */
	must(cuGraphClone(&copy, g));
	cu(CUDA_SUCCESS, cuGraphNodeFindInClone(&found, a, copy));
	probe(found && found != a, "the clone has a node of its own");
	/* Driver API, cuGraphDestroyNode: its edges go, too */
	cu(CUDA_SUCCESS, cuGraphDestroyNode(a));
	must(cuGraphGetEdges(g, NULL, NULL, NULL, &n));
	same(n, 0, "edges left");
	/* Driver API, cuGraphClone: the clone is no part of the original */
	must(cuGraphGetNodes(copy, NULL, &n));
	same(n, 3, "nodes of the clone");
	/* Driver API, cuGraphInstantiate: flags that are not known */
	cu(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiate(&x, g, 1u << 30));
	/* Driver API, cuGraphInstantiate: a graph without nodes is one */
	cu(CUDA_SUCCESS, cuGraphInstantiate(&x, empty, 0));
	cu(CUDA_SUCCESS, cuGraphLaunch(x, 0));
	must(cuCtxSynchronize());
	must(cuGraphExecDestroy(x));
	/* Driver API, cuGraphInstantiate: a cycle can't be */
	must(cuGraphAddDependencies(g, &b, &c, NULL, 1));
	if (!cuGraphAddDependencies(g, &c, &b, NULL, 1))
		cu(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiate(&x, g, 0));
	else
		probe(true, "a cycle can't even be added");
	must(cuGraphDestroy(g));
	must(cuGraphDestroy(copy));
	must(cuGraphDestroy(empty));
}

static void updates(CUcontext ctx)
{
	CUDA_MEMSET_NODE_PARAMS p = {.elementSize = 4, .width = 1, .height = 1, .value = 5};
	CUgraphExecUpdateResultInfo info = {};
	CUgraph g, other;
	CUgraphNode a, b;
	CUgraphExec x;
	int v = 0;

	must(cuMemAlloc(&p.dst, 16));
	must(cuGraphCreate(&g, 0));
	must(cuGraphAddMemsetNode(&a, g, NULL, 0, &p, ctx));
	must(cuGraphInstantiate(&x, g, 0));
	/* Driver API, cuGraphMemsetNodeSetParams: what was instantiated is not changed by it */
	p.value = 6;
	must(cuGraphMemsetNodeSetParams(a, &p));
	must(cuGraphLaunch(x, 0));
	must(cuMemcpyDtoH(&v, p.dst, 4));
	same(v, 5, "the executable graph is as it was instantiated");
	/* Driver API, cuGraphExecMemsetNodeSetParams: and this does change it */
	p.value = 7;
	cu(CUDA_SUCCESS, cuGraphExecMemsetNodeSetParams(x, a, &p, ctx));
	must(cuGraphLaunch(x, 0));
	must(cuMemcpyDtoH(&v, p.dst, 4));
	same(v, 7, "the executable graph's new value");
	/* Driver API, cuGraphAddMemsetNode: elements of 1, 2 or 4 bytes */
	p.elementSize = 3;
	cu(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemsetNode(&b, g, NULL, 0, &p, ctx));
	/* Driver API, cuGraphExecUpdate: a graph of another shape gives GRAPH_EXEC_UPDATE_FAILURE and tells why */
	must(cuGraphCreate(&other, 0));
	must(cuGraphAddEmptyNode(&b, other, NULL, 0));
	cu(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(x, other, &info));
	same(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, "for a node's type has changed");
	/* Driver API, cuGraphExecUpdate: what failed leaves the executable graph as it was */
	cu(CUDA_SUCCESS, cuGraphLaunch(x, 0));
	must(cuCtxSynchronize());
	/* Driver API, cuGraphDestroy: what was instantiated of it lives on */
	must(cuGraphDestroy(g));
	cu(CUDA_SUCCESS, cuGraphLaunch(x, 0));
	must(cuCtxSynchronize());
	must(cuGraphExecDestroy(x));
	must(cuGraphDestroy(other));
	must(cuMemFree(p.dst));
}

static unsigned long long of(CUmemoryPool pool, CUmemPool_attribute a)
{
	unsigned long long v = 0;

	must(cuMemPoolGetAttribute(pool, a, &v));
	return v;
}

static void pools(void)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemAccessDesc none = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_NONE};
	CUmemoryPool first, now, pool;
	unsigned long long v = 1, before;
	CUmemAccess_flags access = 99;
	CUdeviceptr p = 0;

	must(cuDeviceGetDefaultMemPool(&first, 0));
	must(cuDeviceGetMemPool(&now, 0));
	/* Driver API, cuDeviceGetMemPool: the default pool, unless another was set */
	probe(first == now, "the current pool is the default one");
	/* Driver API, cuMemPoolDestroy: not the default one */
	cu(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(first));
	must(cuMemPoolCreate(&pool, &props));
	/* Driver API, cuMemPoolSetAttribute: nothing is held beyond need unless set */
	same(of(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), 0, "the release threshold");
	/* Driver API, cuMemPoolSetAttribute: the three ways of reuse are on unless set */
	same((int)of(pool, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES), 1, "reuse after events");
	same((int)of(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC), 1, "reuse of what is done");
	same((int)of(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES), 1, "reuse with new dependencies");
	/* Driver API, cuMemPoolSetAttribute: a threshold is kept */
	v = 1 << 20;
	cu(CUDA_SUCCESS, cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &v));
	same(of(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), 1 << 20, "the threshold set");
	/* Driver API, cuMemPoolSetAttribute: high marks can be set to 0 only, and what is in use not at all */
	cu(CUDA_ERROR_INVALID_VALUE, cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &v));
	cu(CUDA_ERROR_INVALID_VALUE, cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &v));
	/* Driver API, cuMemPoolGetAttribute: what is in use */
	same(of(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0, "nothing is in use");
	must(cuMemAllocFromPoolAsync(&p, 4096, pool, 0));
	must(cuCtxSynchronize());
	before = of(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
	probe(before >= 4096, "%llu bytes are in use", before);
	/* Driver API, cuPointerGetAttribute, MEMPOOL_HANDLE: the pool that it came from */
	must(cuPointerGetAttribute(&now, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
	probe(now == pool, "the pointer tells its pool");
	must(cuMemFreeAsync(p, 0));
	must(cuCtxSynchronize());
	same(of(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0, "nothing is in use again");
	/* Driver API, cuMemPoolGetAttribute: the high mark remembers */
	probe(of(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) >= before, "the high mark stays");
	v = 0;
	cu(CUDA_SUCCESS, cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &v));
	/* Driver API, cuMemPoolTrimTo */
	cu(CUDA_SUCCESS, cuMemPoolTrimTo(pool, 0));
	same(of(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0, "nothing is reserved after trimming");
	/* Driver API, cuMemPoolCreate: the device of a pool can read and write */
	must(cuMemPoolGetAccess(&access, pool, &none.location));
	same(access, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, "access of its device");
	/* Driver API, cuDeviceSetMemPool: becomes the current one; destroying it brings the default back */
	cu(CUDA_SUCCESS, cuDeviceSetMemPool(0, pool));
	must(cuMemPoolDestroy(pool));
	must(cuDeviceGetMemPool(&now, 0));
	probe(now == first, "the default pool is current again");
	/* Driver API, cuMemAllocAsync: no place for the result */
	cu(CUDA_ERROR_INVALID_VALUE, cuMemAllocAsync(NULL, 16, 0));
	/* Driver API, cuMemPoolCreate: HOST_NUMA_CURRENT is no place for a pool */
	props.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
	cu(CUDA_ERROR_INVALID_VALUE, cuMemPoolCreate(&pool, &props));
}

int main(void)
{
	CUcontext c = primary();

	graphs();
	updates(c);
	pools();
	return tap_done();
}
