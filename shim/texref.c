// SPDX-License-Identifier: MIT
/*
 * Texture references that the program makes. Kernels cannot see them: those of modules are not had any more (a module with one
 * does not load), so all that is left is to keep what was set and to tell it.
 */
#include "shim/array.h"

#include <stdlib.h>
#include <string.h>
#include "lib/texel.h"
#include "rgpu_rpc.h"
#include "shim/ctx.h"
#include "shim/handles.h"

enum bound { NOTHING, ARRAY, MIPMAP, ADDRESS };

struct texref {
	enum bound bound;
	CUarray array;
	CUmipmappedArray mipmap;
	CUdeviceptr address;
	CUarray_format format;
	int channels;
	CUaddress_mode mode[3];
	CUfilter_mode filter, mipmap_filter;
	float bias, least, most, border[4];
	unsigned int anisotropy, flags;
};

static int use(CUtexref handle, struct texref **t)
{
	struct rgpu_obj *obj;
	struct rgpu_call c;
	uint64_t wire;
	int r = rgpu_enter(&c, RGPU_NO_OP);

	if (!r)
		r = rgpu_use(&c, KIND_texref, handle, false, &wire, &obj);
	if (r == CUDA_ERROR_INVALID_HANDLE)
		r = CUDA_ERROR_INVALID_VALUE; /* as these calls document it */
	if (!r)
		*t = obj->data;
	return r;
}

/* Uses @hTexRef, whose values are then in *t; returns when there is none or @wrong. */
#define USE(wrong)                                                                                                               \
	struct texref *t = NULL;                                                                                                 \
	int use_ = use(hTexRef, &t);                                                                                             \
                                                                                                                                 \
	if (use_ || (wrong))                                                                                                     \
	return use_ ? use_ : CUDA_ERROR_INVALID_VALUE

CUresult cuTexRefCreate(CUtexref *pTexRef)
{
	struct texref *t;
	struct rgpu_obj *obj;
	struct rgpu_call c;
	uint64_t wire;
	int r = rgpu_enter(&c, RGPU_NO_OP);

	if (!r && !pTexRef)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = ctx_use(&c, NULL);
	if (r)
		return r;
	t = calloc(1, sizeof(*t));
	if (!t)
		return CUDA_ERROR_OUT_OF_MEMORY;
	t->format = CU_AD_FORMAT_FLOAT;
	t->channels = 1;
	r = rgpu_mint(&c, KIND_texref, &wire, &obj);
	if (r) {
		free(t);
		return r;
	}
	obj->data = t;
	*pTexRef = (CUtexref)wire;
	return CUDA_SUCCESS;
}

static void drop(struct rgpu_obj *obj)
{
	void *t = obj->data;

	handle_free(obj);
	free(t);
}

static void drop_of(struct rgpu_obj *obj, void *context)
{
	if (obj->context == context)
		drop(obj);
}

void texref_drop_context(struct rgpu_obj *context)
{
	handle_each(KIND_texref, drop_of, context);
}

CUresult cuTexRefDestroy(CUtexref hTexRef)
{
	USE(false);
	(void)t;
	drop(handle_find(KIND_texref, (uint64_t)hTexRef));
	return CUDA_SUCCESS;
}

/* What it is bound to. */

CUresult cuTexRefSetArray(CUtexref hTexRef, CUarray hArray, unsigned int Flags)
{
	struct array_info info;

	USE(Flags != CU_TRSA_OVERRIDE_FORMAT || !array_find(hArray, &info));
	t->bound = ARRAY;
	t->array = hArray;
	t->format = info.desc.Format;
	t->channels = (int)info.desc.NumChannels;
	return CUDA_SUCCESS;
}

CUresult cuTexRefSetMipmappedArray(CUtexref hTexRef, CUmipmappedArray hMipmappedArray, unsigned int Flags)
{
	struct array_info info;
	CUarray level;

	USE(Flags != CU_TRSA_OVERRIDE_FORMAT || cuMipmappedArrayGetLevel(&level, hMipmappedArray, 0) ||
	    !array_find(level, &info));
	t->bound = MIPMAP;
	t->mipmap = hMipmappedArray;
	t->format = info.desc.Format;
	t->channels = (int)info.desc.NumChannels;
	return CUDA_SUCCESS;
}

static unsigned int alignment(CUdevice_attribute attr)
{
	CUdevice dev;
	int n;

	return cuCtxGetDevice(&dev) || cuDeviceGetAttribute(&n, attr, dev) || n < 1 ? 1 : (unsigned int)n;
}

/* The hardware begins at aligned addresses: who gives another is told how far it is from there. */
CUresult cuTexRefSetAddress_v2(size_t *ByteOffset, CUtexref hTexRef, CUdeviceptr dptr, size_t bytes)
{
	size_t off = dptr % alignment(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
	struct rgpu_call c;

	USE((off && !ByteOffset) || rgpu_enter(&c, RGPU_NO_OP) || !bytes || rgpu_check_range(&c, dptr, bytes));
	if (ByteOffset)
		*ByteOffset = off;
	t->bound = ADDRESS;
	t->address = dptr - off;
	return CUDA_SUCCESS;
}

CUresult cuTexRefSetAddress2D_v3(CUtexref hTexRef, const CUDA_ARRAY_DESCRIPTOR *desc, CUdeviceptr dptr, size_t Pitch)
{
	struct texel_format f;
	struct rgpu_call c;

	USE(!desc || texel_format(desc->Format, desc->NumChannels, &f) || !desc->Width || !desc->Height ||
	    dptr % alignment(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT) ||
	    Pitch % alignment(CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT) || Pitch / f.bytes < desc->Width ||
	    rgpu_enter(&c, RGPU_NO_OP) ||
	    rgpu_check_range(&c, dptr, (__int128)Pitch * (desc->Height - 1) + (__int128)desc->Width * f.bytes));
	t->bound = ADDRESS;
	t->address = dptr;
	t->format = desc->Format;
	t->channels = (int)desc->NumChannels;
	return CUDA_SUCCESS;
}

CUresult cuTexRefSetAddress2D_v2(CUtexref hTexRef, const CUDA_ARRAY_DESCRIPTOR *desc, CUdeviceptr dptr, size_t Pitch)
{
	return cuTexRefSetAddress2D_v3(hTexRef, desc, dptr, Pitch);
}

CUresult cuTexRefGetArray(CUarray *phArray, CUtexref hTexRef)
{
	USE(!phArray || t->bound != ARRAY);
	*phArray = t->array;
	return CUDA_SUCCESS;
}

CUresult cuTexRefGetMipmappedArray(CUmipmappedArray *phMipmappedArray, CUtexref hTexRef)
{
	USE(!phMipmappedArray || t->bound != MIPMAP);
	*phMipmappedArray = t->mipmap;
	return CUDA_SUCCESS;
}

CUresult cuTexRefGetAddress_v2(CUdeviceptr *pdptr, CUtexref hTexRef)
{
	USE(!pdptr || t->bound != ADDRESS);
	*pdptr = t->address;
	return CUDA_SUCCESS;
}

/* How it is read. */

CUresult cuTexRefSetFormat(CUtexref hTexRef, CUarray_format fmt, int NumPackedComponents)
{
	struct texel_format f;

	USE(NumPackedComponents < 1 || texel_format(fmt, (unsigned int)NumPackedComponents, &f));
	t->format = fmt;
	t->channels = NumPackedComponents;
	return CUDA_SUCCESS;
}

CUresult cuTexRefGetFormat(CUarray_format *pFormat, int *pNumChannels, CUtexref hTexRef)
{
	USE(!pFormat || !pNumChannels);
	*pFormat = t->format;
	*pNumChannels = t->channels;
	return CUDA_SUCCESS;
}

CUresult cuTexRefSetAddressMode(CUtexref hTexRef, int dim, CUaddress_mode am)
{
	USE((unsigned int)dim > 2 || am > CU_TR_ADDRESS_MODE_BORDER);
	t->mode[dim] = am;
	return CUDA_SUCCESS;
}

CUresult cuTexRefGetAddressMode(CUaddress_mode *pam, CUtexref hTexRef, int dim)
{
	USE(!pam || (unsigned int)dim > 2);
	*pam = t->mode[dim];
	return CUDA_SUCCESS;
}

CUresult cuTexRefSetFlags(CUtexref hTexRef, unsigned int Flags)
{
	USE(Flags &
	    ~(CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB | CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION));
	t->flags = Flags;
	return CUDA_SUCCESS;
}

CUresult cuTexRefSetBorderColor(CUtexref hTexRef, float *pBorderColor)
{
	USE(!pBorderColor);
	memcpy(t->border, pBorderColor, sizeof(t->border));
	return CUDA_SUCCESS;
}

CUresult cuTexRefGetBorderColor(float *pBorderColor, CUtexref hTexRef)
{
	USE(!pBorderColor);
	memcpy(pBorderColor, t->border, sizeof(t->border));
	return CUDA_SUCCESS;
}

CUresult cuTexRefSetMipmapLevelClamp(CUtexref hTexRef, float minMipmapLevelClamp, float maxMipmapLevelClamp)
{
	USE(false);
	t->least = minMipmapLevelClamp;
	t->most = maxMipmapLevelClamp;
	return CUDA_SUCCESS;
}

CUresult cuTexRefGetMipmapLevelClamp(float *pminMipmapLevelClamp, float *pmaxMipmapLevelClamp, CUtexref hTexRef)
{
	USE(!pminMipmapLevelClamp || !pmaxMipmapLevelClamp);
	*pminMipmapLevelClamp = t->least;
	*pmaxMipmapLevelClamp = t->most;
	return CUDA_SUCCESS;
}

CUresult cuTexRefSetFilterMode(CUtexref hTexRef, CUfilter_mode fm)
{
	USE(fm > CU_TR_FILTER_MODE_LINEAR);
	t->filter = fm;
	return CUDA_SUCCESS;
}

CUresult cuTexRefSetMipmapFilterMode(CUtexref hTexRef, CUfilter_mode fm)
{
	USE(fm > CU_TR_FILTER_MODE_LINEAR);
	t->mipmap_filter = fm;
	return CUDA_SUCCESS;
}

CUresult cuTexRefSetMipmapLevelBias(CUtexref hTexRef, float bias)
{
	USE(false);
	t->bias = bias;
	return CUDA_SUCCESS;
}

CUresult cuTexRefSetMaxAnisotropy(CUtexref hTexRef, unsigned int maxAniso)
{
	USE(maxAniso > 16);
	t->anisotropy = maxAniso;
	return CUDA_SUCCESS;
}

/* One value of one type each. */
#define GETTER(name, type, field)                                                                                                \
	CUresult name(type *out, CUtexref hTexRef)                                                                               \
	{                                                                                                                        \
		USE(!out);                                                                                                       \
		*out = (type)t->field;                                                                                           \
		return CUDA_SUCCESS;                                                                                             \
	}

GETTER(cuTexRefGetFilterMode, CUfilter_mode, filter)
GETTER(cuTexRefGetMipmapFilterMode, CUfilter_mode, mipmap_filter)
GETTER(cuTexRefGetMipmapLevelBias, float, bias)
GETTER(cuTexRefGetMaxAnisotropy, int, anisotropy)
GETTER(cuTexRefGetFlags, unsigned int, flags)

/* With addresses of 32 bits; none of ours is one: see old_abi.c. */

CUresult cuTexRefSetAddress(unsigned int *ByteOffset, CUtexref hTexRef, CUdeviceptr_v1 dptr, unsigned int bytes)
{
	size_t off = 0;
	CUresult r = cuTexRefSetAddress_v2(ByteOffset ? &off : NULL, hTexRef, dptr, bytes);

	if (!r && ByteOffset)
		*ByteOffset = (unsigned int)off;
	return r;
}

CUresult cuTexRefSetAddress2D(CUtexref hTexRef, const CUDA_ARRAY_DESCRIPTOR_v1 *desc, CUdeviceptr_v1 dptr, unsigned int Pitch)
{
	CUDA_ARRAY_DESCRIPTOR d;

	if (!desc)
		return CUDA_ERROR_INVALID_VALUE;
	d = (CUDA_ARRAY_DESCRIPTOR){desc->Width, desc->Height, desc->Format, desc->NumChannels};
	return cuTexRefSetAddress2D_v3(hTexRef, &d, dptr, Pitch);
}

CUresult cuTexRefGetAddress(CUdeviceptr_v1 *pdptr, CUtexref hTexRef)
{
	CUdeviceptr d;
	CUresult r = pdptr ? cuTexRefGetAddress_v2(&d, hTexRef) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	if (d > UINT32_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	*pdptr = (CUdeviceptr_v1)d;
	return CUDA_SUCCESS;
}
