// SPDX-License-Identifier: MIT
/* cuGetProcAddress: of a name's ABIs the newest that the asked version knows; and cuGetExportTable, which has nothing. */
#include "shim/procaddr.h"

#include <stdatomic.h>
#include <string.h>
#include "lib/log.h"
#include "shim/cuda_api.h"

static const struct rgpu_procaddr *first_of(const char *name)
{
	unsigned lo = 0, hi = rgpu_procaddr_n;

	while (lo < hi) {
		unsigned mid = lo + (hi - lo) / 2;

		if (strcmp(rgpu_procaddr[mid].name, name) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < rgpu_procaddr_n && !strcmp(rgpu_procaddr[lo].name, name) ? &rgpu_procaddr[lo] : NULL;
}

/* *known: the name is there, in some version. */
static void *find(const char *name, int version, cuuint64_t flags, bool *known)
{
	const struct rgpu_procaddr *row = first_of(name), *end = rgpu_procaddr + rgpu_procaddr_n, *best = NULL;
	bool per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

	*known = row;
	/* Per-thread rows come last, so they win where they are wanted. */
	for (; row && row < end && !strcmp(row->name, name); row++)
		if (row->version <= version && (!row->per_thread || per_thread))
			best = row;
	return best ? (void *)best->symbol : NULL;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
			     CUdriverProcAddressQueryResult *symbolStatus)
{
	CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
	int driver = CUDA_VERSION;
	bool known;

	/* The server may be newer than this file; only then it must be asked. */
	if (cudaVersion > driver)
		cuDriverGetVersion(&driver);
	if (!symbol || !pfn || cudaVersion > driver ||
	    flags & ~(cuuint64_t)(CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) ||
	    flags == 3)
		return CUDA_ERROR_INVALID_VALUE;
	*pfn = find(symbol, cudaVersion, flags, &known);
	if (!*pfn)
		status = known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	if (symbolStatus)
		*symbolStatus = status;
	/* With symbolStatus the caller reads that; without it the status says it. */
	return *pfn || symbolStatus ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
	return cuGetProcAddress_v2(symbol, pfn, cudaVersion, flags, NULL);
}

/* A stock runtime library asks for this one before it does anything else. */
static const unsigned char stock_runtime[16] = {0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a,
						0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9};

/* NVIDIA's private tables: their layouts are not public, so there are none. */
CUresult cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId)
{
	static atomic_bool told;

	if (!ppExportTable || !pExportTableId)
		return CUDA_ERROR_INVALID_VALUE;
	*ppExportTable = NULL;
	if (!memcmp(pExportTableId->bytes, stock_runtime, sizeof(stock_runtime)) && !atomic_exchange(&told, true)) {
		rgpu_log_init("rgpu", RGPU_LOG_NOTE);
		rgpu_err("this program uses NVIDIA's own CUDA runtime, which works with NVIDIA's driver only; link it with "
			 "-cudart shared, or "
			 "put rgpu's libcudart first (rgpu run -- does), then start it again");
	}
	return CUDA_ERROR_NOT_FOUND;
}
