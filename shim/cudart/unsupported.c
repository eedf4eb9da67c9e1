/* SPDX-License-Identifier: MIT */
/* What every call that we do not have does: one line on stderr the first time, and cudaErrorNotSupported. */
#include "shim/cudart/unsupported.h"
#include "shim/cudart/cudart.h"
#include <stdio.h>

int cudart_unsupported(const char *name, const char *why, _Atomic char *told)
{
	if (!*told) {
		*told = 1;
		if (why)
			fprintf(stderr, "libcudart (rgpu): %s cannot be had from a GPU in another machine: %s\n", name, why);
		else
			fprintf(stderr,
				"libcudart (rgpu): %s is not supported yet and returns cudaErrorNotSupported; see "
				"docs/limits.md\n",
				name);
	}
	return cudart_fail(cudaErrorNotSupported);
}
