// SPDX-License-Identifier: MIT
/* Fuzz target: any bytes as a module image, through the fat binary reader and softgpu's module loader. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/fatbin.h"
#include "softgpu/softgpu.h"
#include "tests/fuzz/fuzz.h"

/* The loader's lines about each bad image would be all that one sees (linked with --wrap). */
void __wrap_log_line(const char *fmt, ...);
void __wrap_log_line(const char *fmt, ...)
{
	(void)fmt;
}

static int image_fd = -1;
static char image_name[64];

static void must(CUresult r)
{
	if (r != CUDA_SUCCESS)
		abort();
}

static void init(void)
{
	CUcontext c;

	image_fd = memfd_create("image", MFD_CLOEXEC);
	snprintf(image_name, sizeof(image_name), "/proc/self/fd/%d", image_fd);
	if (image_fd < 0)
		abort();
	setenv("RGPU_SOFTGPU_MEM_MIB", "64", 1);
	must(cuInit(0));
	must(cuDevicePrimaryCtxRetain(&c, 0));
	must(cuCtxSetCurrent(c));
}

/* Every entry, of whatever kind; what claims to unpack into more than the limit of a fuzz process is left alone. */
static void all_entries(const uint8_t *data, size_t size)
{
	struct fatbin_entry e;
	struct fatbin fb;
	size_t len;
	char *image;

	if (fatbin_open(&fb, data, size))
		return;
	while (fatbin_next(&fb, &e) > 0) {
		if (e.name && (e.name < (const char *)data || e.name + e.name_bytes > (const char *)data + size))
			abort();
		if (e.payload < data || e.payload_bytes > size || e.payload + e.payload_bytes > data + size)
			abort();
		if (e.bytes <= 64u << 20 && !fatbin_unpack(&e, &image, &len)) {
			if (image_kind(image, len) == IMAGE_FATBIN)
				fatbin_bytes(image, len);
			free(image);
		}
	}
	fatbin_pick(data, size, FATBIN_ELF, 7, 5, &e);
	if (image_kind(data, size) == IMAGE_WRAPPER && size >= 16)
		fatbin_unwrap(data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char log[256] = "", *text;
	size_t bytes;
	CUmodule m;

	if (image_fd < 0)
		init();
	all_entries(data, size);
	/* Once where each byte too far is seen, once through the driver's own way of reading. */
	if (image_text(data, size, &text, &bytes, log, sizeof(log)) == CUDA_SUCCESS) {
		if (strlen(text) < bytes)
			abort();
		free(text);
	} else if (!log[0]) {
		abort();
	}
	if (ftruncate(image_fd, 0) || pwrite(image_fd, data, size, 0) != (ssize_t)size)
		abort();
	if (cuModuleLoad(&m, image_name) == CUDA_SUCCESS) {
		unsigned int n;

		must(cuModuleGetFunctionCount(&n, m));
		must(cuModuleUnload(m));
	}
	return 0;
}
