/* SPDX-License-Identifier: MIT */
/* A device's properties as the server reads them once and the shim answers from: they travel in DEVICE_LIST, opaque to relays. */
#ifndef RGPU_API_PROPS_H
#define RGPU_API_PROPS_H

#include <stddef.h>
#include <stdint.h>
#include <linux/rgpu.h>

#define RGPU_PROPS_MAGIC   0x50524f50u /* "PROP" */
#define RGPU_PROPS_ATTRS   192	       /* CUdevice_attribute 0 … 191; what the driver does not know is RGPU_PROPS_NONE */
#define RGPU_PROPS_NONE	   INT32_MIN
#define RGPU_PROPS_DEVICES 32 /* of one server that the P2P table covers */
#define RGPU_PROPS_P2P	   8  /* CUdevice_P2PAttribute 0 … 7 */

/* Append-only: a reader takes what `size` covers and zero for the rest. */
struct rgpu_props {
	uint32_t magic;
	uint32_t size;		 /* of what the server filled in, bytes */
	uint32_t driver_version; /* as cuDriverGetVersion */
	uint32_t index;		 /* of this device in DEVICE_LIST: the column of others' p2p[] */
	uint8_t uuid[RGPU_UUID_LEN];
	char name[RGPU_NAME_LEN];
	char pci_bus_id[16];  /* domain:bus:device.function */
	uint64_t mem_total;   /* bytes */
	uint64_t granularity; /* bytes: leases are multiples of it */
	uint32_t nattrs;      /* attrs that were asked for: RGPU_PROPS_ATTRS of the server's build */
	uint32_t reserved;
	int8_t p2p[RGPU_PROPS_P2P][RGPU_PROPS_DEVICES]; /* [attribute][other device]: from this device */
	int32_t attrs[RGPU_PROPS_ATTRS];
};
_Static_assert(sizeof(struct rgpu_props) <= RGPU_PROPS_MAX, "the kernel caches RGPU_PROPS_MAX bytes a device");
_Static_assert(offsetof(struct rgpu_props, attrs) == 392 && sizeof(struct rgpu_props) == 1160, "append-only");

#endif
