/* SPDX-License-Identifier: MIT */
/* What one process hands another to share memory, a pool or an event with it: 64 bytes that carry a name, or a descriptor of
 * them. */
#ifndef RGPU_SHIM_TOKEN_H
#define RGPU_SHIM_TOKEN_H

#include <stdint.h>
#include "shim/cuda_api.h"

#define TOKEN_NAME  32
#define TOKEN_TYPES ((unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR | (unsigned)CU_MEM_HANDLE_TYPE_FABRIC)

enum token_kind {
	TOKEN_PIECE = 1, /* an allocation in a lease, from @start on, of @bytes; @serial: which one; @types: of its pool */
	TOKEN_MEMORY,	 /* memory of a handle: @bytes; @types that it may be exported as */
	TOKEN_POOL,	 /* name: the device's uuid, then the pool's own number */
	TOKEN_EVENT,
};

/* As CUipcMemHandle, CUipcEventHandle, CUmemFabricHandle and CUmemPoolPtrExportData. Bytes of other origin are not trusted. */
struct token {
	uint32_t magic;
	uint16_t kind, types;
	union {
		uint8_t name[TOKEN_NAME];
		uint64_t words[TOKEN_NAME / 8];
	};
	uint64_t start, bytes, serial; /* a piece of a pool: the pool's number */
};
_Static_assert(sizeof(struct token) == 64, "as the driver's handles");

struct token token_new(enum token_kind kind);
/* INVALID_VALUE: the bytes are no token of this kind. */
int token_take(enum token_kind kind, const void *bytes, struct token *t);
/* In the form that a handle type has: a new descriptor at @out, or the bytes. A CUresult. */
int token_out(const struct token *t, CUmemAllocationHandleType type, void *out);
/* From what a program passes as such a handle: a descriptor as a pointer, or a pointer to the bytes. */
int token_in(enum token_kind kind, const void *handle, CUmemAllocationHandleType type, struct token *t);

#endif
