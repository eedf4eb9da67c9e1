// SPDX-License-Identifier: MIT
/* Every name of the driver that the table calls absent or impossible: it is there, and gives what the table says. */
#include <dlfcn.h>
#include "tests/api/serve.h"

static const struct {
	const char *name;
	int status;
} names[] = {
#include "absent_cuda.inc"
};

int main(void)
{
	int (*f)(void);
	void *cuda;
	unsigned bad = 0;

	serve(NULL, 1);
	cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	f = (int (*)(void))dlsym(cuda, "cuGreenCtxCreate");
	is_int(f(), CUDA_ERROR_NOT_INITIALIZED, "nothing is answered before cuInit");
	primary();
	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
		f = (int (*)(void))dlsym(cuda, names[i].name);
		if (f && f() == names[i].status)
			continue;
		printf("# %s: want %s\n", names[i].name, error_name(names[i].status));
		bad++;
	}
	is_int(bad, 0, "the names that the table calls absent or impossible");
	return tap_done();
}
