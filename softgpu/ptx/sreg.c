/* SPDX-License-Identifier: MIT */
/* The names of the special registers. */
#include <string.h>

#include "softgpu/ptx/ast.h"
#include "softgpu/ptx/sreg.h"

static const struct {
	const char *name;
	u8 sreg;
} names[] = {
	{"%tid.x", SR_TID_X},
	{"%tid.y", SR_TID_Y},
	{"%tid.z", SR_TID_Z},
	{"%ntid.x", SR_NTID_X},
	{"%ntid.y", SR_NTID_Y},
	{"%ntid.z", SR_NTID_Z},
	{"%ctaid.x", SR_CTAID_X},
	{"%ctaid.y", SR_CTAID_Y},
	{"%ctaid.z", SR_CTAID_Z},
	{"%nctaid.x", SR_NCTAID_X},
	{"%nctaid.y", SR_NCTAID_Y},
	{"%nctaid.z", SR_NCTAID_Z},
	{"%laneid", SR_LANEID},
	{"%warpid", SR_WARPID},
	{"%nwarpid", SR_NWARPID},
	{"%smid", SR_SMID},
	{"%nsmid", SR_NSMID},
	{"%gridid", SR_GRIDID},
	{"WARP_SZ", SR_WARPSZ},
	{"%lanemask_eq", SR_MASK_EQ},
	{"%lanemask_le", SR_MASK_LE},
	{"%lanemask_lt", SR_MASK_LT},
	{"%lanemask_ge", SR_MASK_GE},
	{"%lanemask_gt", SR_MASK_GT},
	{"%clock", SR_CLOCK},
	{"%clock_hi", SR_CLOCK_HI},
	{"%clock64", SR_CLOCK64},
	{"%globaltimer", SR_GLOBALTIMER},
	{"%globaltimer_lo", SR_GLOBALTIMER_LO},
	{"%globaltimer_hi", SR_GLOBALTIMER_HI},
	{"%envreg1", SR_ENVREG1},
	{"%envreg2", SR_ENVREG2},
	{"%dynamic_smem_size", SR_DYN_SMEM},
	{"%total_smem_size", SR_TOTAL_SMEM},
	{"%aggr_smem_size", SR_AGGR_SMEM},
	{"%cluster_ctarank", SR_CLUSTER_CTARANK},
	{"%cluster_nctarank", SR_CLUSTER_NCTARANK},
	{"%cluster_ctaid.x", SR_CLUSTER_CTAID_X},
	{"%cluster_ctaid.y", SR_CLUSTER_CTAID_Y},
	{"%cluster_ctaid.z", SR_CLUSTER_CTAID_Z},
	{"%cluster_nctaid.x", SR_CLUSTER_NCTAID_X},
	{"%cluster_nctaid.y", SR_CLUSTER_NCTAID_Y},
	{"%cluster_nctaid.z", SR_CLUSTER_NCTAID_Z},
	{"%clusterid.x", SR_CLUSTERID_X},
	{"%clusterid.y", SR_CLUSTERID_Y},
	{"%clusterid.z", SR_CLUSTERID_Z},
	{"%nclusterid.x", SR_NCLUSTERID_X},
	{"%nclusterid.y", SR_NCLUSTERID_Y},
	{"%nclusterid.z", SR_NCLUSTERID_Z},
	{"%is_explicit_cluster", SR_IS_EXPLICIT_CLUSTER},
};

static const char *const zero[] = {"%envreg",
				   "%pm0",
				   "%pm1",
				   "%pm2",
				   "%pm3",
				   "%pm4",
				   "%pm5",
				   "%pm6",
				   "%pm7",
				   "%reserved_smem_offset_",
				   "%current_graph_exec"};

int sreg_by_name(const char *name, u32 len)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i].name) == len && !memcmp(names[i].name, name, len))
			return names[i].sreg;
	/*
	 * What has no meaning here reads as zero: registers of the driver's own, counters of a profiler that nobody set (their
	 * values are not defined), memory that the system reserves, the graph of a kernel.
	 */
	for (size_t i = 0; i < sizeof(zero) / sizeof(zero[0]); i++) {
		size_t n = strlen(zero[i]);

		if (len >= n && !memcmp(name, zero[i], n) && (len == n || zero[i][n - 1] != 'c'))
			return SR_ZERO;
	}
	return -1;
}
