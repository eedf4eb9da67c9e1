// SPDX-License-Identifier: MIT
/* Tests of the null driver: the parts that a bench's results depend on. */
#include "tests/softgpu/drv.h"

#define MIB (1ull << 20)

static const char ptx[] =
	".version 7.5\n.target sm_75\n.address_size 64\n"
	".visible .entry other(.param .u32 x)\n{ ret; }\n"
	".visible .entry empty3(\n\t.param .u64 .ptr .align 1 empty3_param_0,\n\t.param .u64 empty3_param_1,\n"
	"\t.param .u32 empty3_param_2\n)\n{ ret; }\n"
	".entry big(.param .align 8 .b8 s[24], .param .u8 a, .param .u16 b, .param .align 4 .b8 t[12], .param .f64 d)"
	"{ ret; }\n"
	".entry none()\n{ ret; }\n";

static int layout(CUmodule m, const char *name, const size_t (*want)[2], size_t n)
{
	size_t off, size;
	CUfunction f;

	must(cuModuleGetFunction(&f, m, name));
	for (size_t i = 0; i < n; i++)
		if (cuFuncGetParamInfo(f, i, &off, &size) || off != want[i][0] || size != want[i][1])
			return 0;
	return cuFuncGetParamInfo(f, n, &off, &size) == CUDA_ERROR_INVALID_VALUE;
}

int main(void)
{
	static const size_t empty3[][2] = {{0, 8}, {8, 8}, {16, 4}};
	static const size_t big[][2] = {{0, 24}, {24, 1}, {26, 2}, {28, 12}, {40, 8}};
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemAccessDesc rw = {.location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle h;
	CUdeviceptr p;
	uint32_t v = 5, back = 0;
	CUmodule m, any;
	CUfunction f;
	CUevent e;

	drv_start();
	works(cuModuleLoadData(&m, ptx));
	ok(layout(m, "empty3", empty3, 3), "pointers with attributes, and an int");
	ok(layout(m, "big", big, 5), "structures and small integers");
	ok(layout(m, "none", NULL, 0), "no parameters");
	ok(layout(m, "unheard_of", NULL, 0), "a name that is not there is found, without parameters");
	works(cuModuleLoadData(&any, "anything"));
	works(cuModuleGetFunction(&f, any, "f"));
	works(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	gives(cuLaunchKernel(f, 0, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	works(cuMemAddressReserve(&p, 1ull << 40, 0, 0x200000000000, 0));
	is_int(p, 0x200000000000, "a terabyte where it was asked for");
	works(cuMemCreate(&h, 4 * MIB, &prop, 0));
	works(cuMemMap(p + 8 * MIB, 4 * MIB, 0, h, 0));
	works(cuMemSetAccess(p + 8 * MIB, 4 * MIB, &rw, 1));
	works(cuMemcpyHtoD(p + 12 * MIB - 4, &v, 4));
	works(cuMemcpyDtoHAsync(&back, p + 12 * MIB - 4, 4, NULL));
	is_int(back, 5, "memory holds what was put there");
	works(cuMemUnmap(p + 8 * MIB, 4 * MIB));
	works(cuMemRelease(h));
	works(cuMemAddressFree(p, 1ull << 40));
	works(cuEventCreate(&e, 0));
	works(cuEventRecord(e, NULL));
	works(cuEventQuery(e));
	works(cuEventDestroy(e));
	works(cuModuleUnload(m));
	works(cuModuleUnload(any));
	return tap_done();
}
