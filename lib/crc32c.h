/* SPDX-License-Identifier: MIT */
/* CRC-32C (Castagnoli), by the processor's instruction where it has one. */
#ifndef RGPU_LIB_CRC32C_H
#define RGPU_LIB_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* @crc: 0 at first, then what the last call gave. */
uint32_t rgpu_crc32c(uint32_t crc, const void *buf, size_t len);
uint32_t rgpu_crc32c_table(uint32_t crc, const void *buf, size_t len); /* the same without the instruction */

#endif
