// SPDX-License-Identifier: MIT
/* Bounds and statuses of a record, whatever its library. */
#include "server/call.h"

#include <string.h>
#include "api/names.h"
#include "server/session.h"

static int32_t as_cublas(CUresult cu)
{
	switch (cu) {
	case CUDA_SUCCESS:
		return CUBLAS_STATUS_SUCCESS;
	case CUDA_ERROR_INVALID_VALUE:
		return CUBLAS_STATUS_INVALID_VALUE;
	case CUDA_ERROR_OUT_OF_MEMORY:
		return CUBLAS_STATUS_ALLOC_FAILED;
	case CUDA_ERROR_INVALID_HANDLE:
	case CUDA_ERROR_INVALID_CONTEXT:
		return CUBLAS_STATUS_NOT_INITIALIZED;
	case CUDA_ERROR_NOT_SUPPORTED:
		return CUBLAS_STATUS_NOT_SUPPORTED;
	default:
		return CUBLAS_STATUS_EXECUTION_FAILED;
	}
}

static int32_t in_library(uint16_t op, CUresult cu)
{
	return op >> 12 == OP_cublasCreate_v2 >> 12 ? as_cublas(cu) : (int32_t)cu;
}

void srv_fail(struct srv_call *c, CUresult cu)
{
	c->status = in_library(c->rec.op, cu);
}

int32_t srv_not_supported(uint16_t op)
{
	return in_library(op, CUDA_ERROR_NOT_SUPPORTED);
}

const char *srv_op_name(uint16_t op)
{
	return rgpu_op_name(op);
}

bool srv_body(struct srv_call *c, void *out, uint32_t size)
{
	if (c->body_len < size) {
		srv_fail(c, CUDA_ERROR_INVALID_VALUE);
		return false;
	}
	memcpy(out, c->body, size);
	return true;
}

const void *srv_bytes(struct srv_call *c, uint32_t *at, uint64_t len)
{
	const uint8_t *p = c->body + *at;

	if (*at > c->body_len || len > c->body_len - *at) {
		srv_fail(c, CUDA_ERROR_INVALID_VALUE);
		return NULL;
	}
	len = (len + 7) & ~7ull;
	*at = len > c->body_len - *at ? c->body_len : *at + len;
	return p;
}

const char *srv_string(struct srv_call *c, uint32_t *at, uint64_t len)
{
	const char *s = srv_bytes(c, at, len);

	if (s && (!len || memchr(s, 0, len) != s + len - 1)) {
		srv_fail(c, CUDA_ERROR_INVALID_VALUE);
		return NULL;
	}
	return s;
}

void srv_answer(struct srv_call *c, const void *reply, uint32_t size)
{
	memcpy(c->out, reply, size);
	c->out_len = size;
}
