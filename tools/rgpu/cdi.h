/* SPDX-License-Identifier: MIT */
/* The Container Device Interface's specification of this machine's devices. */
#ifndef RGPU_TOOLS_CDI_H
#define RGPU_TOOLS_CDI_H

#include <stdio.h>

#define CDI_FILE "/run/cdi/rgpu.yaml"

/* Writes the specification for the nodes below the root as they are now. 0, or a negative errno: −ENOENT there is no node. */
int cdi_write(FILE *to);

#endif
