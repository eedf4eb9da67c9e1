/* SPDX-License-Identifier: MIT */
/* The device runtime's calls, one by one: what each answers, and what the work that it gives leaves in memory. */
#include "tests/softgpu/test_arena.h"
#include "tests/softgpu/ptx_forms.h"

#define NRESULT 32u
#define NOUT	32u

static uint64_t set_handle;
static uint32_t set_sum;

static void on_condition(uint64_t handle, uint32_t value)
{
	set_handle = handle;
	set_sum += value;
}

static void test_condition(struct ptx_module *m)
{
	uint64_t handle = 0x123456789a;
	const struct ptx_launch l = {
		.grid = {1, 1, 1}, .block = {2, 1, 1}, .params = &handle, .threads = 1, .condition = on_condition};

	is_int(ptx_launch(ptx_module_kernel(m, "set_condition"), &l, &test_fault), PTX_OK, "a condition is set");
	ok(set_handle == handle && set_sum == 15, "by each thread: %u", set_sum);
}

int main(int argc, char **argv)
{
	/* the version lies behind the answers: see device_calls */
	static const int want[NRESULT] = {[24] = 400, [25] = 400, [26] = 400, [28] = 1, [30] = 9, [31] = 13000};
	static const int left[NOUT] = {5,
				       12,
				       7,
				       0,
				       5,
				       12,
				       7,
				       0,
				       5,
				       12,
				       12,
				       7,
				       [16] = 0x11111111,
				       [20] = 0x22222222,
				       0x33333333,
				       [24] = 0x22222222,
				       0x33333333};
	static const bool untouched[NOUT] = {[17] = 1, 1, 1, [22] = 1, 1, [26] = 1, 1, 1, 1, 1, 1};
	struct {
		int *r, *o;
	} params;
	struct ptx_module *m;
	char *text;

	(void)argc;
	m = test_module_beside(argv[0], &text);
	params.r = test_alloc(NRESULT * 4);
	params.o = test_alloc(NOUT * 4);
	memset(params.r, 0x5a, NRESULT * 4);
	memset(params.o, 0x5a, NOUT * 4);
	is_int(test_launch(ptx_module_kernel(m, "device_calls"), 1, 1, &params), PTX_OK, "a kernel with every call");
	for (unsigned k = 0; k < NRESULT; k++)
		is_int(params.r[k], want[k], "answer %u", k);
	for (unsigned k = 0; k < NOUT; k++)
		is_int(params.o[k], untouched[k] ? 0x5a5a5a5a : left[k], "word %u", k);
	test_condition(m);
	ptx_module_free(m);
	free(text);
	forms_done("device");
	return tap_done();
}
