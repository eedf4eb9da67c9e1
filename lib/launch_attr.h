/* SPDX-License-Identifier: MIT */
/* The launch attributes that travel as they are, and the events in them. Included behind cuda.h, to which the shims give their
 * visibility. */
#ifndef RGPU_LIB_LAUNCH_ATTR_H
#define RGPU_LIB_LAUNCH_ATTR_H

#include <stdbool.h>
#include <stddef.h>

/* Whether @a travels; *event: where the event in it is, or NULL. Others hold pointers or handles of which nobody here knows. */
static inline bool launch_attr_travels(CUlaunchAttribute *a, CUevent **event)
{
	*event = NULL;
	switch (a->id) {
	case CU_LAUNCH_ATTRIBUTE_IGNORE:
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
	case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
	case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
	case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		return true;
	case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
		*event = &a->value.programmaticEvent.event;
		return true;
	case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
		*event = &a->value.launchCompletionEvent.event;
		return true;
	default:
		return false;
	}
}

#endif
