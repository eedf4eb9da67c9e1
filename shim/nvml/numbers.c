// SPDX-License-Identifier: MIT
/* Functions that give one or two facts as they are. */
#include "shim/nvml/call.h"

static nvml_return one(void *h, enum nvml_fact id, unsigned *out)
{
	struct gpu *g;
	uint64_t v;

	TRY(nvml_enter(h, &g));
	NEED(out);
	TRY(nvml_fact(g, id, &v));
	*out = v;
	return NVML_SUCCESS;
}

static nvml_return wide(void *h, enum nvml_fact id, unsigned long long *out)
{
	struct gpu *g;
	uint64_t v;

	TRY(nvml_enter(h, &g));
	NEED(out);
	TRY(nvml_fact(g, id, &v));
	*out = v;
	return NVML_SUCCESS;
}

static nvml_return two(void *h, enum nvml_fact a, enum nvml_fact b, unsigned *x, unsigned *y)
{
	NEED(x && y);
	TRY(one(h, a, x));
	return one(h, b, y);
}

#define U32(name, fact)                                                                                                          \
	API nvml_return name(void *device, unsigned *out)                                                                        \
	{                                                                                                                        \
		return one(device, FACT_##fact, out);                                                                            \
	}
#define U64(name, fact)                                                                                                          \
	API nvml_return name(void *device, unsigned long long *out)                                                              \
	{                                                                                                                        \
		return wide(device, FACT_##fact, out);                                                                           \
	}
#define PAIR(name, a, b)                                                                                                         \
	API nvml_return name(void *device, unsigned *x, unsigned *y)                                                             \
	{                                                                                                                        \
		return two(device, FACT_##a, FACT_##b, x, y);                                                                    \
	}

U32(nvmlDeviceGetBrand, BRAND)
U32(nvmlDeviceGetArchitecture, ARCHITECTURE)
U32(nvmlDeviceGetMultiGpuBoard, MULTI_GPU_BOARD)
U32(nvmlDeviceGetBoardId, BOARD_ID)
U32(nvmlDeviceGetMaxPcieLinkGeneration, PCIE_GEN_MAX)
U32(nvmlDeviceGetGpuMaxPcieLinkGeneration, PCIE_GPU_GEN_MAX)
U32(nvmlDeviceGetMaxPcieLinkWidth, PCIE_WIDTH_MAX)
U32(nvmlDeviceGetCurrPcieLinkGeneration, PCIE_GEN)
U32(nvmlDeviceGetCurrPcieLinkWidth, PCIE_WIDTH)
U32(nvmlDeviceGetPcieReplayCounter, PCIE_REPLAYS)
U32(nvmlDeviceGetNumFans, NUM_FANS)
U32(nvmlDeviceGetFanSpeed, FAN)
U32(nvmlDeviceGetNumGpuCores, NUM_CORES)
U32(nvmlDeviceGetMemoryBusWidth, BUS_WIDTH)
U32(nvmlDeviceGetPowerUsage, POWER)
U32(nvmlDeviceGetPowerManagementLimit, POWER_LIMIT)
U32(nvmlDeviceGetPowerManagementDefaultLimit, POWER_DEFAULT_LIMIT)
U32(nvmlDeviceGetEnforcedPowerLimit, POWER_ENFORCED)
U32(nvmlDeviceGetPowerManagementMode, POWER_MODE)
U32(nvmlDeviceGetPowerSource, POWER_SOURCE)
U32(nvmlDeviceGetPerformanceState, PSTATE)
U32(nvmlDeviceGetPowerState, PSTATE)
U32(nvmlDeviceGetPersistenceMode, PERSISTENCE)
U32(nvmlDeviceGetComputeMode, COMPUTE_MODE)
U32(nvmlDeviceGetDisplayMode, DISPLAY_MODE)
U32(nvmlDeviceGetDisplayActive, DISPLAY_ACTIVE)
U32(nvmlDeviceGetAccountingMode, ACCOUNTING)
U32(nvmlDeviceGetAccountingBufferSize, ACCOUNTING_BUFFER)
U32(nvmlDeviceGetVirtualizationMode, VIRTUALIZATION)
U32(nvmlDeviceGetModuleId, MODULE_ID)
U32(nvmlDeviceGetRetiredPagesPendingStatus, RETIRED_PENDING)
U64(nvmlDeviceGetTotalEnergyConsumption, ENERGY)
U64(nvmlDeviceGetCurrentClocksThrottleReasons, CLOCK_REASONS)
U64(nvmlDeviceGetCurrentClocksEventReasons, CLOCK_REASONS)
U64(nvmlDeviceGetSupportedClocksThrottleReasons, CLOCK_REASONS_SUPPORTED)
U64(nvmlDeviceGetSupportedClocksEventReasons, CLOCK_REASONS_SUPPORTED)
PAIR(nvmlDeviceGetEncoderUtilization, UTIL_ENC, UTIL_ENC_PERIOD)
PAIR(nvmlDeviceGetDecoderUtilization, UTIL_DEC, UTIL_DEC_PERIOD)
PAIR(nvmlDeviceGetJpgUtilization, UTIL_JPG, UTIL_JPG_PERIOD)
PAIR(nvmlDeviceGetOfaUtilization, UTIL_OFA, UTIL_OFA_PERIOD)
PAIR(nvmlDeviceGetPowerManagementLimitConstraints, POWER_MIN_LIMIT, POWER_MAX_LIMIT)
PAIR(nvmlDeviceGetEccMode, ECC_MODE, ECC_PENDING)
PAIR(nvmlDeviceGetMigMode, MIG_MODE, MIG_PENDING)
PAIR(nvmlDeviceGetGpuOperationMode, GOM, GOM_PENDING)
PAIR(nvmlDeviceGetGspFirmwareMode, GSP_MODE, GSP_DEFAULT)

/* Which of several facts an argument chooses. */
static nvml_return chosen(void *h, const enum nvml_fact ids[], unsigned n, unsigned which, unsigned *out)
{
	struct gpu *g;

	TRY(nvml_enter(h, &g));
	NEED(which < n && out);
	return ids[which] ? one(h, ids[which], out) : NVML_NOT_SUPPORTED;
}
#define CHOSEN(name, ...)                                                                                                        \
	API nvml_return name(void *device, unsigned which, unsigned *out)                                                        \
	{                                                                                                                        \
		static const enum nvml_fact ids[] = {__VA_ARGS__};                                                               \
		return chosen(device, ids, sizeof(ids) / sizeof(*ids), which, out);                                              \
	}

/* By clock: graphics, SM, memory, video. */
CHOSEN(nvmlDeviceGetClockInfo, FACT_CLOCK_GRAPHICS, FACT_CLOCK_SM, FACT_CLOCK_MEM, FACT_CLOCK_VIDEO)
CHOSEN(nvmlDeviceGetMaxClockInfo, FACT_MAX_CLOCK_GRAPHICS, FACT_MAX_CLOCK_SM, FACT_MAX_CLOCK_MEM, FACT_MAX_CLOCK_VIDEO)
CHOSEN(nvmlDeviceGetApplicationsClock, FACT_APP_CLOCK_GRAPHICS, 0, FACT_APP_CLOCK_MEM, 0)
CHOSEN(nvmlDeviceGetDefaultApplicationsClock, FACT_APP_DEFAULT_GRAPHICS, 0, FACT_APP_DEFAULT_MEM, 0)
CHOSEN(nvmlDeviceGetMaxCustomerBoostClock, FACT_BOOST_CLOCK_GRAPHICS, 0, 0, 0)
/* By threshold: shutdown, slowdown, most for memory, most for the GPU. Acoustic ones there are none. */
CHOSEN(nvmlDeviceGetTemperatureThreshold, FACT_TEMP_SHUTDOWN, FACT_TEMP_SLOWDOWN, FACT_TEMP_MEM_MAX, FACT_TEMP_GPU_MAX, 0, 0, 0,
       0)
CHOSEN(nvmlDeviceGetTemperature, FACT_TEMP_GPU)
CHOSEN(nvmlDeviceGetPcieThroughput, FACT_PCIE_TX, FACT_PCIE_RX)
CHOSEN(nvmlDeviceGetFanSpeed_v2, FACT_FAN)

API nvml_return nvmlDeviceGetClock(void *device, unsigned clock, unsigned id, unsigned *out)
{
	static const enum nvml_fact ids[4][4] = {
		{FACT_CLOCK_GRAPHICS, FACT_CLOCK_SM, FACT_CLOCK_MEM, FACT_CLOCK_VIDEO},
		{FACT_APP_CLOCK_GRAPHICS, 0, FACT_APP_CLOCK_MEM, 0},
		{FACT_APP_DEFAULT_GRAPHICS, 0, FACT_APP_DEFAULT_MEM, 0},
		{FACT_BOOST_CLOCK_GRAPHICS, 0, 0, 0},
	};

	NEED(id < 4);
	return chosen(device, ids[id], 4, clock, out);
}

API nvml_return nvmlDeviceGetTotalEccErrors(void *device, unsigned kind, unsigned counter, unsigned long long *out)
{
	NEED(kind < 2 && counter < 2);
	return wide(device, FACT_ECC_CORR_VOL + 2 * counter + kind, out);
}

API nvml_return nvmlDeviceGetMemoryErrorCounter(void *device, unsigned kind, unsigned counter, unsigned place,
						unsigned long long *out)
{
	struct gpu *g;

	TRY(nvml_enter(device, &g));
	NEED(kind < 2 && counter < 2 && place < 8 && out);
	if (place == 2)
		return wide(device, FACT_ECC_DRAM_CORR_VOL + 2 * counter + kind, out);
	return place == 7 ? wide(device, FACT_ECC_SRAM_CORR_VOL + 2 * counter + kind, out) : NVML_NOT_SUPPORTED;
}

API nvml_return nvmlDeviceGetRemappedRows(void *device, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
					  unsigned *failure)
{
	NEED(pending && failure);
	TRY(two(device, FACT_REMAP_CORR, FACT_REMAP_UNCORR, corrected, uncorrected));
	return two(device, FACT_REMAP_PENDING, FACT_REMAP_FAILURE, pending, failure);
}

API nvml_return nvmlDeviceGetRowRemapperHistogram(void *device, struct nvml_histogram *h)
{
	NEED(h);
	TRY(two(device, FACT_REMAP_HIST_MAX, FACT_REMAP_HIST_HIGH, &h->max, &h->high));
	TRY(two(device, FACT_REMAP_HIST_PARTIAL, FACT_REMAP_HIST_LOW, &h->partial, &h->low));
	return one(device, FACT_REMAP_HIST_NONE, &h->none);
}

API nvml_return nvmlDeviceGetEncoderStats(void *device, unsigned *sessions, unsigned *fps, unsigned *latency)
{
	NEED(latency);
	TRY(two(device, FACT_ENC_SESSIONS, FACT_ENC_FPS, sessions, fps));
	return one(device, FACT_ENC_LATENCY, latency);
}
