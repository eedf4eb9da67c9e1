// SPDX-License-Identifier: MIT
/* What one process hands another to share memory, a pool or an event with it: 64 bytes that carry a name, or a descriptor of
 * them. */
#include "shim/token.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAGIC 0x6b544752u /* "RGTk" */
#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

struct token token_new(enum token_kind kind)
{
	return (struct token){.magic = MAGIC, .kind = kind};
}

int token_take(enum token_kind kind, const void *bytes, struct token *t)
{
	memcpy(t, bytes, sizeof(*t));
	return t->magic == MAGIC && t->kind == kind ? 0 : CUDA_ERROR_INVALID_VALUE;
}

/* The memory is in another machine: what a descriptor can carry is its name. */
int token_out(const struct token *t, CUmemAllocationHandleType type, void *out)
{
	int fd;

	if (type == CU_MEM_HANDLE_TYPE_FABRIC) {
		memcpy(out, t, sizeof(*t));
		return 0;
	}
	fd = memfd_create("rgpu-shared", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	if (write(fd, t, sizeof(*t)) != sizeof(*t) || fcntl(fd, F_ADD_SEALS, SEALS)) {
		close(fd);
		return CUDA_ERROR_OPERATING_SYSTEM;
	}
	memcpy(out, &fd, sizeof(fd));
	return 0;
}

int token_in(enum token_kind kind, const void *handle, CUmemAllocationHandleType type, struct token *t)
{
	uint8_t bytes[sizeof(*t)];

	if (type == CU_MEM_HANDLE_TYPE_FABRIC)
		return handle ? token_take(kind, handle, t) : CUDA_ERROR_INVALID_VALUE;
	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
	    pread((int)(intptr_t)handle, bytes, sizeof(bytes), 0) != sizeof(bytes))
		return CUDA_ERROR_INVALID_VALUE;
	return token_take(kind, bytes, t);
}
