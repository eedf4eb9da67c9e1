// SPDX-License-Identifier: MIT
/* Attributes of streams: the value is a union of NVIDIA's, which travels as words. */
#include <string.h>
#include "server/session.h"

void srv_cuStreamSetAttribute(struct srv_call *c)
{
	uint32_t at = sizeof(struct rec_cuStreamSetAttribute);
	struct rec_cuStreamSetAttribute a;
	CUstreamAttrValue v;
	const void *words;
	void *stream;

	if (!srv_body(c, &a, sizeof(a)) || !(words = srv_bytes(c, &at, sizeof(v))) ||
	    !srv_use(c, KIND_stream, a.hStream, &stream) || !srv_enter(c, a.ctx))
		return;
	memcpy(&v, words, sizeof(v));
	/* The only one with an address. */
	if (a.attr == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW && v.accessPolicyWindow.num_bytes &&
	    !srv_range(c, (uint64_t)v.accessPolicyWindow.base_ptr, v.accessPolicyWindow.num_bytes))
		return;
	if (drv_cuda.cuStreamSetAttribute)
		srv_fail(c, drv_cuda.cuStreamSetAttribute(stream, a.attr, &v));
	else
		srv_fail(c, CUDA_ERROR_NOT_SUPPORTED);
}

void srv_cuStreamGetAttribute(struct srv_call *c)
{
	struct rep_cuStreamGetAttribute r = {0};
	struct rec_cuStreamGetAttribute a;
	CUstreamAttrValue v = {0};
	void *stream;

	if (!srv_body(c, &a, sizeof(a)) || !srv_use(c, KIND_stream, a.hStream, &stream) || !srv_enter(c, a.ctx))
		return;
	_Static_assert(sizeof(r.value) == sizeof(v), "a value travels as words");
	srv_fail(c, drv_cuda.cuStreamGetAttribute ? drv_cuda.cuStreamGetAttribute(stream, a.attr, &v) : CUDA_ERROR_NOT_SUPPORTED);
	memcpy(r.value, &v, sizeof(v));
	srv_answer(c, &r, sizeof(r));
}
