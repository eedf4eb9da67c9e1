// SPDX-License-Identifier: MIT
/* Texture and surface objects, arrays, and reserved addresses: their arguments. */
#include "tests/fidelity/fidelity.h"

static void objects(void)
{
	CUDA_ARRAY3D_DESCRIPTOR d = {.Width = 16, .Height = 16, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1};
	CUDA_TEXTURE_DESC t = {.addressMode = {CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP},
			       .flags = CU_TRSF_READ_AS_INTEGER};
	CUDA_RESOURCE_DESC r = {.resType = CU_RESOURCE_TYPE_ARRAY}, got = {}, linear;
	CUDA_ARRAY3D_DESCRIPTOR back = {};
	CUtexObject tex;
	CUsurfObject surf;
	CUdeviceptr p;
	int align = 0;

	must(cuArray3DCreate(&r.res.array.hArray, &d));
	/* Driver API, cuTexObjectCreate, cuTexObjectGetResourceDesc: what it was created with */
	cu(CUDA_SUCCESS, cuTexObjectCreate(&tex, &r, &t, NULL));
	must(cuTexObjectGetResourceDesc(&got, tex));
	probe(got.resType == CU_RESOURCE_TYPE_ARRAY && got.res.array.hArray == r.res.array.hArray, "the object's resource");
	cu(CUDA_SUCCESS, cuTexObjectDestroy(tex));
	/* Driver API, cuTexObjectCreate: no place for the result, no resource, no description */
	cu(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(NULL, &r, &t, NULL));
	cu(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&tex, NULL, &t, NULL));
	/* Driver API, cuTexObjectCreate: a kind of resource that is not known; flags must be 0 */
	linear = r, linear.resType = 77;
	cu(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&tex, &linear, &t, NULL));
	/* Driver API, cuSurfObjectCreate: the array was created with SURFACE_LDST */
	cu(CUDA_ERROR_INVALID_VALUE, cuSurfObjectCreate(&surf, &r));
	must(cuArrayDestroy(r.res.array.hArray));
	d.Flags = CUDA_ARRAY3D_SURFACE_LDST;
	must(cuArray3DCreate(&r.res.array.hArray, &d));
	cu(CUDA_SUCCESS, cuSurfObjectCreate(&surf, &r));
	cu(CUDA_SUCCESS, cuSurfObjectDestroy(surf));
	/* Driver API, cuArray3DGetDescriptor: its flags, too */
	must(cuArray3DGetDescriptor(&back, r.res.array.hArray));
	same(back.Flags, CUDA_ARRAY3D_SURFACE_LDST, "the array's flags");
	must(cuArrayDestroy(r.res.array.hArray));
	/* Driver API, cuTexObjectCreate: linear memory lies at a multiple of TEXTURE_ALIGNMENT */
	must(cuMemAlloc(&p, 4096));
	must(cuDeviceGetAttribute(&align, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 0));
	linear =
		(CUDA_RESOURCE_DESC){.resType = CU_RESOURCE_TYPE_LINEAR, .res.linear = {p, CU_AD_FORMAT_UNSIGNED_INT32, 1, 1024}};
	cu(CUDA_SUCCESS, cuTexObjectCreate(&tex, &linear, &t, NULL));
	must(cuTexObjectDestroy(tex));
	linear.res.linear.devPtr = p + align / 2;
	cu(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&tex, &linear, &t, NULL));
	/* Driver API, cuSurfObjectCreate: of arrays only */
	cu(CUDA_ERROR_INVALID_VALUE, cuSurfObjectCreate(&surf, &linear));
	must(cuMemFree(p));
	/* Driver API, cuArray3DCreate: a cube's sides are square, and six */
	d = (CUDA_ARRAY3D_DESCRIPTOR){.Width = 16,
				      .Height = 8,
				      .Depth = 6,
				      .Format = CU_AD_FORMAT_FLOAT,
				      .NumChannels = 1,
				      .Flags = CUDA_ARRAY3D_CUBEMAP};
	cu(CUDA_ERROR_INVALID_VALUE, cuArray3DCreate(&r.res.array.hArray, &d));
	d.Height = 16, d.Depth = 5;
	cu(CUDA_ERROR_INVALID_VALUE, cuArray3DCreate(&r.res.array.hArray, &d));
}

static void addresses(void)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle h;
	unsigned long long flags = 99;
	CUdeviceptr p = 0;
	size_t unit = 0;

	must(cuMemGetAllocationGranularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	/* Driver API, cuMemAddressReserve: a multiple of the granularity; flags must be 0 */
	cu(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&p, unit + 1, 0, 0, 0));
	cu(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&p, unit, 0, 0, 1));
	must(cuMemAddressReserve(&p, 2 * unit, 0, 0, 0));
	/* Driver API, cuMemCreate: a multiple of the granularity; flags must be 0 */
	cu(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&h, unit + 1, &prop, 0));
	cu(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&h, unit, &prop, 1));
	must(cuMemCreate(&h, unit, &prop, 0));
	/* Driver API, cuMemMap: offset and flags must be 0; inside of the allocation */
	cu(CUDA_ERROR_INVALID_VALUE, cuMemMap(p, unit, 0, h, 1));
	cu(CUDA_ERROR_INVALID_VALUE, cuMemMap(p, 2 * unit, 0, h, 0));
	must(cuMemMap(p, unit, 0, h, 0));
	/* Driver API, cuMemMap: mapped memory can't be reached before cuMemSetAccess */
	must(cuMemGetAccess(&flags, &access.location, p));
	same(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE, "no access before it is given");
	cu(CUDA_SUCCESS, cuMemSetAccess(p, unit, &access, 1));
	must(cuMemGetAccess(&flags, &access.location, p));
	same(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, "the access given");
	/* Driver API, cuMemSetAccess: where nothing is mapped */
	cu(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(p + unit, unit, &access, 1));
	/* Driver API, cuMemRelease: what is mapped stays until it is unmapped */
	cu(CUDA_SUCCESS, cuMemRelease(h));
	cu(CUDA_SUCCESS, cuMemsetD8(p, 1, 16));
	must(cuCtxSynchronize());
	cu(CUDA_SUCCESS, cuMemUnmap(p, unit));
	cu(CUDA_SUCCESS, cuMemAddressFree(p, 2 * unit));
}

int main(void)
{
	primary();
	objects();
	addresses();
	return tap_done();
}
