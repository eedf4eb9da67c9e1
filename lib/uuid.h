/* SPDX-License-Identifier: MIT */
/* A device's uuid as NVIDIA's tools write it. */
#ifndef RGPU_LIB_UUID_H
#define RGPU_LIB_UUID_H

#include <stdint.h>
#include <stdio.h>

#define RGPU_UUID_TEXT_MAX 41 /* GPU-, 32 digits, 4 hyphens, NUL */

static inline void rgpu_uuid_text(char out[RGPU_UUID_TEXT_MAX], const uint8_t uuid[16])
{
	out += sprintf(out, "GPU-");
	for (int i = 0; i < 16; i++)
		out += sprintf(out, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
}

#endif
