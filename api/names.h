/* SPDX-License-Identifier: MIT */
/* Names of records, both ways; the table is generated. */
#ifndef RGPU_API_NAMES_H
#define RGPU_API_NAMES_H

#include <stdint.h>

const char *rgpu_op_name(uint16_t op); /* NULL when no table has it */
int rgpu_op_find(const char *name);    /* the op, or −1 */

#endif
