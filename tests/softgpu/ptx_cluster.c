/* SPDX-License-Identifier: MIT */
/* Clusters of the PTX engine: their registers, barrier, distributed shared memory (kernels: ptx_cluster.cu). */
#include "tests/softgpu/test_arena.h"
#include "tests/softgpu/ptx_forms.h"
#include "tests/tap.h"

static struct ptx_module *m;

static enum ptx_status run(const char *name, const uint32_t grid[3], const uint32_t cluster[3], uint32_t block,
			   const void *params)
{
	enum ptx_status st;

	memcpy(test_cluster, cluster, sizeof(test_cluster));
	st = test_launch_dim(ptx_module_kernel(m, name), grid, (const uint32_t[3]){block, 1, 1}, 0, params, false);
	if (st != PTX_OK)
		printf("# %s: status %d, %s\n", name, st, test_fault.text);
	return st;
}

#define DIM(...) ((const uint32_t[3]){__VA_ARGS__})

#define EACH(n, got, want, what)                                                                                                 \
	do {                                                                                                                     \
		int bad_ = 0;                                                                                                    \
		for (int t = 0; t < (int)(n); t++)                                                                               \
			if ((got) != (want) && bad_++ < 3)                                                                       \
				printf("# %s: at %d got %lld want %lld\n", what, t, (long long)(got), (long long)(want));        \
		ok(!bad_, what);                                                                                                 \
	} while (0)

static void test_registers(int *o)
{
	static const uint32_t grid[3] = {6, 4, 2}, cl[3] = {3, 2, 1};
	int bad = 0;

	is_int(run("registers", grid, cl, 1, &o), PTX_OK, "a grid of 6×4×2 blocks in clusters of 3×2×1");
	for (int b = 0; b < 48; b++) {
		int id[3] = {b % 6, b / 6 % 4, b / 24}, want[16] = {0}, rank = 0;

		for (int d = 2; d >= 0; d--) {
			rank = rank * (int)cl[d] + id[d] % (int)cl[d];
			want[2 + d] = id[d] % (int)cl[d];
			want[5 + d] = (int)cl[d];
			want[8 + d] = id[d] / (int)cl[d];
			want[11 + d] = (int)(grid[d] / cl[d]);
		}
		want[0] = rank;
		want[1] = 6;
		want[14] = 1;
		for (int k = 0; k < 15; k++)
			if (o[16 * b + k] != want[k] && bad++ < 3)
				printf("# block %d, register %d: %d, not %d\n", b, k, o[16 * b + k], want[k]);
	}
	ok(!bad, "each block knows its place");
	is_int(run("registers", DIM(2, 1, 1), DIM(0, 0, 0), 1, &o), PTX_OK, "without clusters");
	ok(o[0] == 0 && o[1] == 1 && o[16 + 8] == 1 && o[14] == 0, "each block is a cluster of its own, not an explicit one");
}

static void test_shapes(int *o)
{
	const struct ptx_func_info *f = ptx_func_info(ptx_module_kernel(m, "fixed_shape"));

	ok(f->cluster[0] == 2 && f->cluster[1] == 2 && f->cluster[2] == 1 && f->explicit_cluster, "a kernel's own cluster shape");
	is_int(run("fixed_shape", DIM(4, 2, 1), DIM(0, 0, 0), 32, &o), PTX_OK, "launched without one");
	EACH(8, o[t], t / 4 * 2 + t % 2, "the kernel's shape holds");
	is_int(run("fixed_shape", DIM(4, 2, 1), DIM(2, 2, 1), 32, &o), PTX_OK, "launched with the same");
	is_int(run("fixed_shape", DIM(4, 2, 1), DIM(4, 1, 1), 32, &o), PTX_OUT_OF_RESOURCES, "another one is refused");
	is_int(run("fixed_shape", DIM(3, 2, 1), DIM(0, 0, 0), 32, &o), PTX_OUT_OF_RESOURCES, "a grid that is no multiple");
	is_int(run("exchange", DIM(17, 1, 1), DIM(17, 1, 1), 32, &o), PTX_OUT_OF_RESOURCES, "17 blocks in a cluster");
}

static void test_shared(int *o)
{
	int *in = test_alloc(4000), count[48] = {0};
	struct {
		int *o, *in;
		int n;
	} p = {o, in, 1000};

	for (int size = 1; size <= 16; size *= 2) {
		const uint32_t grid = 32;
		int bad = 0;

		test_threads = size == 4 ? 2 : 1;
		is_int(run("exchange", DIM(grid, 1, 1), DIM((uint32_t)size, 1, 1), 64, &o), PTX_OK, "clusters of %d", size);
		for (int t = 0; t < (int)grid * 64; t++) {
			int first = t / 64 / size * size, want = 0;

			for (int r = 0; r < size; r++)
				want += 3 * ((first + r) * 1000 + (t % 64 ^ 1)) + 3;
			bad += o[t] != want;
		}
		ok(!bad, "each block reads the memory of all %d", size);
	}
	test_threads = 1;
	for (int k = 0; k < 1000; k++) {
		in[k] = k * k % 48;
		count[in[k]]++;
	}
	is_int(run("histogram", DIM(3, 1, 1), DIM(3, 1, 1), 128, &p), PTX_OK, "a histogram over three blocks");
	EACH(48, o[t], count[t], "atomics on other blocks' memory");
	is_int(run("spaces", DIM(2, 1, 1), DIM(2, 1, 1), 1, &o), PTX_OK, "isspacep");
	EACH(4, o[t], t & 1 ? 7 : 3, "own memory is .shared::cta, all is .shared::cluster");
	is_int(run("whose", DIM(8, 1, 1), DIM(4, 1, 1), 1, &o), PTX_OK, "getctarank");
	EACH(16, o[t], (t / 2 + !(t & 1)) % 4, "the rank of a shared address");
}

static void test_barrier(int *o)
{
	is_int(run("leavers", DIM(4, 1, 1), DIM(2, 1, 1), 96, &o), PTX_OK, "threads leave before the barrier");
	EACH(4, o[t], (t ^ 1) + 1, "the others meet");
	is_int(run("stuck", DIM(2, 1, 1), DIM(2, 1, 1), 64, &o), PTX_DEADLOCK,
	       "a block that never comes is a deadlock, not a hang");
}

static void test_mbarriers(int *o)
{
	is_int(run("sends", DIM(4, 1, 1), DIM(4, 1, 1), 32, &o), PTX_OK, "st.async and red.async");
	EACH(16, o[t], t == 0 ? 6 : t < 4 ? 0 : t / 4 * 10, "rank 0 has what the others sent");
	is_int(run("remote_arrive", DIM(4, 1, 1), DIM(4, 1, 1), 32, &o), PTX_OK, "arrivals at another block's mbarrier");
	is_int(o[0], 7, "complete the phase");
}

int main(int argc, char **argv)
{
	char *text;
	int *o;

	(void)argc;
	m = test_module_beside(argv[0], &text);
	o = test_alloc(1 << 16);
	test_registers(o);
	test_shapes(o);
	test_shared(o);
	test_barrier(o);
	test_mbarriers(o);
	ptx_module_free(m);
	free(text);
	forms_done("cluster");
	return tap_done();
}
