// SPDX-License-Identifier: MIT
/* Stream attributes: kept for who asks; all of them are hints or permissions to a GPU's scheduler and caches. */
#include "softgpu/softgpu.h"

static CUresult check(CUstreamAttrID attr, const CUstreamAttrValue *v)
{
	switch (attr) {
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
		/* No bytes can be set aside, as the device's attribute says. */
		return v && v->accessPolicyWindow.num_bytes ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
		return v && (v->syncPolicy < CU_SYNC_POLICY_AUTO || v->syncPolicy > CU_SYNC_POLICY_BLOCKING_SYNC)
			       ? CUDA_ERROR_INVALID_VALUE
			       : CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult cuStreamSetAttribute(CUstream stream, CUstreamAttrID attr, const CUstreamAttrValue *value)
{
	AUTO_PUT struct stream *s = NULL;

	TRY(stream_resolve(stream, &s));
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(check(attr, value));
	pthread_mutex_lock(&s->ctx->lock);
	if (attr == CU_LAUNCH_ATTRIBUTE_PRIORITY)
		s->priority = value->priority > 0 ? 0 : value->priority < -5 ? -5 : value->priority;
	else if (attr == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY)
		s->attr.sync = value->syncPolicy;
	else if (attr == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP)
		s->attr.domain_map = value->memSyncDomainMap;
	else if (attr == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN)
		s->attr.domain = value->memSyncDomain;
	pthread_mutex_unlock(&s->ctx->lock);
	return CUDA_SUCCESS;
}

CUresult cuStreamGetAttribute(CUstream stream, CUstreamAttrID attr, CUstreamAttrValue *value)
{
	AUTO_PUT struct stream *s = NULL;

	TRY(stream_resolve(stream, &s));
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(check(attr, NULL));
	*value = (CUstreamAttrValue){0};
	pthread_mutex_lock(&s->ctx->lock);
	if (attr == CU_LAUNCH_ATTRIBUTE_PRIORITY)
		value->priority = s->priority;
	else if (attr == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY)
		value->syncPolicy = s->attr.sync;
	else if (attr == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP)
		value->memSyncDomainMap = s->attr.domain_map;
	else if (attr == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN)
		value->memSyncDomain = s->attr.domain;
	pthread_mutex_unlock(&s->ctx->lock);
	return CUDA_SUCCESS;
}

CUresult cuStreamCopyAttributes(CUstream to, CUstream from)
{
	static const CUstreamAttrID all[] = {
		CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY,
		CU_LAUNCH_ATTRIBUTE_PRIORITY,
		CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
		CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
	};
	CUstreamAttrValue v;

	for (unsigned int i = 0; i < ARRAY_SIZE(all); i++) {
		TRY(cuStreamGetAttribute(from, all[i], &v));
		TRY(cuStreamSetAttribute(to, all[i], &v));
	}
	return CUDA_SUCCESS;
}

CUresult cuStreamSetAttribute_ptsz(CUstream stream, CUstreamAttrID attr, const CUstreamAttrValue *value)
{
	return cuStreamSetAttribute(stream ? stream : CU_STREAM_PER_THREAD, attr, value);
}

CUresult cuStreamGetAttribute_ptsz(CUstream stream, CUstreamAttrID attr, CUstreamAttrValue *value)
{
	return cuStreamGetAttribute(stream ? stream : CU_STREAM_PER_THREAD, attr, value);
}

CUresult cuStreamCopyAttributes_ptsz(CUstream to, CUstream from)
{
	return cuStreamCopyAttributes(to ? to : CU_STREAM_PER_THREAD, from ? from : CU_STREAM_PER_THREAD);
}
