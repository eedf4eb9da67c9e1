/* SPDX-License-Identifier: MIT */
/* softgpu-check FILE.ptx…: says of each file which kernels the engine takes, or of each function the first line that it does not.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/arena.h"
#include "softgpu/ptx/ptx.h"

struct softgpu_arena softgpu_arena; /* nothing runs here: no address is mapped */

static uint64_t host_alloc(void *arg, size_t bytes, size_t align)
{
	(void)arg;
	return (uint64_t)(uintptr_t)aligned_alloc(align, (bytes + align - 1) & ~(align - 1));
}

static void host_free(void *arg, uint64_t addr)
{
	(void)arg;
	free((void *)(uintptr_t)addr);
}

static char *read_file(const char *name, size_t *len)
{
	FILE *f = fopen(name, "rb");
	size_t cap = 1 << 16;
	char *p = f ? malloc(cap) : NULL;

	*len = 0;
	while (p) {
		size_t n = fread(p + *len, 1, cap - *len, f);
		char *q;

		*len += n;
		if (*len < cap)
			break;
		q = realloc(p, cap *= 2);
		if (!q)
			free(p);
		p = q;
	}
	if (f)
		fclose(f);
	return p;
}

static void refuse(void *arg, const char *cause)
{
	printf("%s: %s\n", (const char *)arg, cause);
}

static int check(const char *name)
{
	const struct ptx_mem mem = {.alloc = host_alloc, .free = host_free};
	struct ptx_module *m;
	struct ptx_func *f;
	char *text;
	size_t len;

	text = read_file(name, &len);
	if (!text) {
		fprintf(stderr, "softgpu-check: %s: %s\n", name, strerror(errno));
		return 1;
	}
	if (ptx_module_check(text, len, &mem, &m, refuse, (void *)(uintptr_t)name) != PTX_OK) {
		free(text);
		return 1;
	}
	for (size_t k = 0; (f = ptx_module_kernel_at(m, k)); k++) {
		const struct ptx_func_info *i = ptx_func_info(f);

		printf("%s: %s: ok, %u registers, %u bytes shared, %u bytes local\n", name, i->name, i->regs, i->shared_bytes,
		       i->local_bytes);
	}
	ptx_module_free(m);
	free(text);
	return 0;
}

int main(int argc, char **argv)
{
	int bad = 0;

	if (argc < 2) {
		fprintf(stderr,
			"usage: softgpu-check FILE.ptx…\nLoads PTX as libsoftgpu would and says what is not supported.\n");
		return 2;
	}
	for (int k = 1; k < argc; k++)
		bad |= check(argv[k]);
	return bad;
}
