// SPDX-License-Identifier: MIT
/* What every name does that we export and do not support: says so once, and returns NOT_SUPPORTED. */
#include <stdatomic.h>
#include "lib/log.h"
#include "shim/cuda_api.h"
#include "shim/session.h"
#include "shim/unsupported.h"

#define NAMES 1024

static const char *_Atomic told[NAMES]; /* names that were told, by hash; each name has one address */

static bool first_time(const char *name)
{
	unsigned at = (unsigned)((uintptr_t)name / 8 * 2654435761u) % NAMES;

	for (unsigned i = 0; i < NAMES; i++, at = (at + 1) % NAMES) {
		const char *there = NULL;

		if (atomic_compare_exchange_strong(&told[at], &there, name))
			return true;
		if (there == name)
			return false;
	}
	return false;
}

/* Called by the generated stubs, too. */
int rgpu_unsupported(const char *name, const char *reason)
{
	if (first_time(name)) {
		rgpu_log_init("rgpu", RGPU_LOG_NOTE);
		if (reason)
			rgpu_err("%s cannot be forwarded to another machine: %s", name, reason);
		else
			rgpu_err("%s is not supported yet (docs/limits.md)", name);
	}
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* Called by the generated functions of features that our devices do not have: what the program is told. */
#define ABSENT(status)                                                                                                           \
	int rgpu_absent_##status(void);                                                                                          \
	int rgpu_absent_##status(void)                                                                                           \
	{                                                                                                                        \
		int r = process_ready();                                                                                         \
		return r ? r : CUDA_ERROR_##status;                                                                              \
	}

ABSENT(NOT_SUPPORTED)
ABSENT(UNSUPPORTED_EXEC_AFFINITY)
ABSENT(NOT_FOUND)
ABSENT(INVALID_VALUE)
