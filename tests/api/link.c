// SPDX-License-Identifier: MIT
/* The JIT linker: texts, object files and archives; what it says; and the logs of loads. */
#include "tests/api/serve.h"

#define HEAD ".version 7.0\n.target sm_75\n.address_size 64\n"

/* Uses a function and a variable of another text, and has a name of its own that the other has, too. */
static const char user[] = HEAD ".extern .func (.param .b32 r) half_function (.param .b32 x);\n"
				".extern .global .align 4 .u32 shared_value;\n"
				".global .align 4 .u32 own = 500;\n"
				".visible .entry run(.param .u64 out)\n{\n"
				"	.reg .b32 %r<6>; .reg .b64 %d<3>;\n"
				"	ld.param.u64 %d1, [out];\n"
				"	ld.global.u32 %r1, [shared_value];\n"
				"	{ .param .b32 p0; .param .b32 r0; st.param.b32 [p0], %r1; call (r0), half_function, "
				"(p0); ld.param.b32 %r2, [r0]; }\n"
				"	ld.global.u32 %r3, [own];\n"
				"	add.u32 %r4, %r2, %r3;\n"
				"	st.global.u32 [%d1], %r4;\n"
				"	ret;\n}\n";

static const char half[] =
	HEAD ".visible .global .align 4 .u32 shared_value = 40;\n"
	     ".global .align 4 .u32 own = 1;\n"
	     ".visible .func (.param .b32 r) half_function (.param .b32 x)\n{\n"
	     "	.reg .b32 %a<4>;\n"
	     "	ld.param.b32 %a1, [x]; ld.global.u32 %a2, [own]; add.u32 %a3, %a1, %a2; st.param.b32 [r], %a3; ret;\n}\n"
	     "// nobody calls this one, which could not be run: the linker leaves it out\n"
	     ".extern .func missing_everywhere ();\n"
	     ".func unused ()\n{\n	.reg .b32 %b;\n	call missing_everywhere;\n	ret;\n}\n";

static int result(const void *image)
{
	CUdeviceptr d;
	CUfunction f;
	CUmodule m;
	int out = -1;
	void *args[] = {&d};

	must(cuModuleLoadData(&m, image));
	must(cuModuleGetFunction(&f, m, "run"));
	must(cuMemAlloc(&d, 4));
	must(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
	must(cuMemcpyDtoH(&out, d, 4));
	must(cuMemFree(d));
	must(cuModuleUnload(m));
	return out;
}

static CUresult add(CUlinkState l, CUjitInputType type, const void *data, size_t bytes)
{
	return cuLinkAddData(l, type, (void *)data, bytes, "a name", 0, NULL, NULL);
}

static void texts(void)
{
	char info[300] = "x", error[300] = "x";
	float ms = -1;
	CUjit_option option[] = {CU_JIT_INFO_LOG_BUFFER,  CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
				 CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
				 CU_JIT_WALL_TIME,	  CU_JIT_LOG_VERBOSE};
	void *value[] = {info, (void *)sizeof(info), error, (void *)sizeof(error), 0, (void *)1};
	CUlinkState l, again;
	void *image = NULL, *image2 = NULL;
	size_t bytes = 0;

	is_cu(cuLinkCreate(1, NULL, NULL, &l), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuLinkCreate(0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuLinkCreate(6, option, value, &l), CUDA_SUCCESS);
	ok(!*info && !*error && !value[1] && !value[3], "the logs are empty");
	is_cu(add(l, CU_JIT_INPUT_PTX, NULL, 5), CUDA_ERROR_INVALID_VALUE);
	is_cu(add(l, CU_JIT_INPUT_PTX, "hello", 6), CUDA_ERROR_INVALID_PTX);
	ok(*error && (size_t)value[3] == strlen(error), "an error log: %s", error);
	is_cu(add(l, (CUjitInputType)99, user, sizeof(user)), CUDA_ERROR_INVALID_VALUE);
	is_cu(add(l, CU_JIT_INPUT_PTX, user, sizeof(user) - 1), CUDA_SUCCESS); /* without its NUL */
	is_cu(add(l, CU_JIT_INPUT_PTX, half, sizeof(half)), CUDA_SUCCESS);
	is_cu(cuLinkComplete(l, NULL, &bytes), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuLinkComplete(l, &image, &bytes), CUDA_SUCCESS);
	memcpy(&ms, &value[4], sizeof(ms));
	ok(ms > 0 && ms < 60000, "%g ms", ms);
	ok(*info && (size_t)value[1] == strlen(info), "an info log: %s", info);
	is_cu(cuLinkComplete(l, &image2, &bytes), CUDA_SUCCESS);
	ok(image == image2, "asked again, it is the same");
	is_int(result(image), 541, "the kernel used both texts, each with its own variable");
	is_cu(add(l, CU_JIT_INPUT_PTX, half, sizeof(half)), CUDA_ERROR_INVALID_VALUE);
	/* What came out can go in. */
	is_cu(cuLinkCreate(0, NULL, NULL, &again), CUDA_SUCCESS);
	is_cu(add(again, CU_JIT_INPUT_CUBIN, image, bytes), CUDA_SUCCESS);
	is_cu(cuLinkComplete(again, &image2, NULL), CUDA_SUCCESS);
	is_int(result(image2), 541, "linked once more, it is still the same");
	is_cu(cuLinkDestroy(again), CUDA_SUCCESS);
	is_cu(cuLinkDestroy(l), CUDA_SUCCESS);
	is_cu(cuLinkDestroy(l), CUDA_ERROR_INVALID_HANDLE);
	is_cu(cuLinkComplete(l, &image, &bytes), CUDA_ERROR_INVALID_HANDLE);
}

static void fails(void)
{
	char error[300] = "";
	CUjit_option option[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *value[] = {error, (void *)sizeof(error)};
	CUlinkState l;
	void *image;
	size_t bytes;

	must(cuLinkCreate(2, option, value, &l));
	must(add(l, CU_JIT_INPUT_PTX, half, sizeof(half)));
	must(add(l, CU_JIT_INPUT_PTX, half, sizeof(half)));
	is_cu(cuLinkComplete(l, &image, &bytes), CUDA_ERROR_INVALID_SOURCE);
	ok(strstr(error, "multiple definition of"), "twice the same: %s", error);
	must(cuLinkDestroy(l));
	value[1] = (void *)sizeof(error);
	must(cuLinkCreate(2, option, value, &l));
	must(add(l, CU_JIT_INPUT_PTX, user, sizeof(user)));
	ok(cuLinkComplete(l, &image, &bytes) != CUDA_SUCCESS, "what is used and nowhere is an error");
	ok(strstr(error, "half_function") || strstr(error, "shared_value"), "it is named: %s", error);
	must(cuLinkDestroy(l));
}

static void files(const char *path, CUjitInputType type)
{
	CUlinkState l;
	void *image = NULL;
	size_t bytes;

	must(cuLinkCreate(0, NULL, NULL, &l));
	is_cu(cuLinkAddFile(l, type, "/no/such/file", 0, NULL, NULL), CUDA_ERROR_FILE_NOT_FOUND);
	is_cu(cuLinkAddFile(l, type, path, 0, NULL, NULL), CUDA_SUCCESS);
	is_cu(add(l, CU_JIT_INPUT_PTX, user, sizeof(user)), CUDA_SUCCESS);
	is_cu(cuLinkComplete(l, &image, &bytes), CUDA_SUCCESS);
	is_int(image ? result(image) : 0, 541, "linked with %s", path);
	must(cuLinkDestroy(l));
}

/* cuModuleLoadDataEx writes into the same options. */
static void load_logs(void)
{
	char info[100] = "x", error[100] = "x";
	CUjit_option option[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER,
				 CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_WALL_TIME};
	void *value[] = {info, (void *)sizeof(info), error, (void *)sizeof(error), 0};
	float ms = -1;
	CUmodule m;

	is_cu(cuModuleLoadDataEx(&m, half, 5, option, value), CUDA_ERROR_INVALID_PTX);
	ok(*error && strlen(error) == (size_t)value[3], "the error log: %s", error);
	value[1] = value[3] = (void *)sizeof(info);
	is_cu(cuModuleLoadDataEx(&m, HEAD ".visible .global .u32 x;\n", 5, option, value), CUDA_SUCCESS);
	is_int((size_t)value[3], 0, "no error");
	is_int((size_t)value[1], strlen(info), "the info log's size is told");
	memcpy(&ms, &value[4], sizeof(ms));
	ok(ms > 0 && ms < 60000, "%g ms", ms);
	must(cuModuleUnload(m));
}

/* Every option that is a number, for every door that takes some. */
static void numbers(void)
{
	static const CUjit_option all[] = {
		CU_JIT_TARGET_FROM_CUCONTEXT, CU_JIT_MAX_REGISTERS,	 CU_JIT_THREADS_PER_BLOCK,
		CU_JIT_OPTIMIZATION_LEVEL,    CU_JIT_FALLBACK_STRATEGY,	 CU_JIT_GENERATE_DEBUG_INFO,
		CU_JIT_LOG_VERBOSE,	      CU_JIT_GENERATE_LINE_INFO, CU_JIT_CACHE_MODE,
		CU_JIT_MAX_THREADS_PER_BLOCK, CU_JIT_MIN_CTA_PER_SM,	 CU_JIT_OVERRIDE_DIRECTIVE_VALUES,
	};

	for (unsigned i = 0; i < sizeof(all) / sizeof(*all); i++) {
		CUjit_option option = all[i];
		/* Of most of them 1 is a value that means something, and of a count of threads 32. */
		void *value = (void *)(option == CU_JIT_THREADS_PER_BLOCK || option == CU_JIT_MAX_THREADS_PER_BLOCK ? 32l : 1l);
		CUlibrary library;
		CUlinkState l;
		CUmodule m;

		printf("# option %d\n", option);
		is_cu(cuLinkCreate(1, &option, &value, &l), CUDA_SUCCESS);
		is_cu(cuLinkAddData(l, CU_JIT_INPUT_PTX, (void *)half, sizeof(half), "half", 1, &option, &value), CUDA_SUCCESS);
		must(cuLinkDestroy(l));
		is_cu(cuModuleLoadDataEx(&m, HEAD ".visible .global .u32 x;\n", 1, &option, &value), CUDA_SUCCESS);
		must(cuModuleUnload(m));
		is_cu(cuLibraryLoadData(&library, HEAD ".visible .global .u32 x;\n", &option, &value, 1, NULL, NULL, 0),
		      CUDA_SUCCESS);
		must(cuLibraryUnload(library));
	}
}

int main(void)
{
	serve(NULL, 1);
	primary();
	texts();
	fails();
	files(built("tests/api/link_half.o"), CU_JIT_INPUT_OBJECT);
	files(built("tests/api/link_half.a"), CU_JIT_INPUT_LIBRARY);
	files(built("tests/api/link_half.fatbin"), CU_JIT_INPUT_FATBINARY);
	load_logs();
	numbers();
	return tap_done();
}
