/* SPDX-License-Identifier: MIT */
/* NVML's binary interface as its documentation has it: results, and the structures that we read or fill. Own names. */
#ifndef RGPU_API_NVML_ABI_H
#define RGPU_API_NVML_ABI_H

#include <stdint.h>

enum nvml_result {
	NVML_SUCCESS = 0,
	NVML_UNINITIALIZED = 1,
	NVML_INVALID_ARGUMENT = 2,
	NVML_NOT_SUPPORTED = 3,
	NVML_NO_PERMISSION = 4,
	NVML_ALREADY_INITIALIZED = 5,
	NVML_NOT_FOUND = 6,
	NVML_INSUFFICIENT_SIZE = 7,
	NVML_INSUFFICIENT_POWER = 8,
	NVML_DRIVER_NOT_LOADED = 9,
	NVML_TIMEOUT = 10,
	NVML_IRQ_ISSUE = 11,
	NVML_LIBRARY_NOT_FOUND = 12,
	NVML_FUNCTION_NOT_FOUND = 13,
	NVML_CORRUPTED_INFOROM = 14,
	NVML_GPU_IS_LOST = 15,
	NVML_RESET_REQUIRED = 16,
	NVML_OPERATING_SYSTEM = 17,
	NVML_LIB_RM_VERSION_MISMATCH = 18,
	NVML_IN_USE = 19,
	NVML_MEMORY = 20,
	NVML_NO_DATA = 21,
	NVML_VGPU_ECC_NOT_SUPPORTED = 22,
	NVML_INSUFFICIENT_RESOURCES = 23,
	NVML_FREQ_NOT_SUPPORTED = 24,
	NVML_ARGUMENT_VERSION_MISMATCH = 25,
	NVML_DEPRECATED = 26,
	NVML_NOT_READY = 27,
	NVML_GPU_NOT_FOUND = 28,
	NVML_INVALID_STATE = 29,
	NVML_RESET_TYPE_NOT_SUPPORTED = 30,
	NVML_UNKNOWN = 999,
};

/* The first member of a structure with versions: its size, and the number in the top byte. */
#define NVML_VERSIONED(type, n) ((unsigned int)(sizeof(type) | (unsigned int)(n) << 24))

#define NVML_VALUE_NOT_AVAILABLE (~0ull) /* of a process's memory */

struct nvml_utilization {
	unsigned int gpu, memory;
};

struct nvml_memory {
	unsigned long long total, free, used;
};

struct nvml_memory2 {
	unsigned int version;
	unsigned long long total, reserved, free, used;
};

struct nvml_bar1 {
	unsigned long long total, free, used;
};

struct nvml_pci {
	char bus_id_legacy[16];
	unsigned int domain, bus, device, device_id, subsystem_id;
	char bus_id[32];
};

struct nvml_pci2 { /* v1 and v2 */
	char bus_id[16];
	unsigned int domain, bus, device, device_id, subsystem_id;
	unsigned int reserved[4];
};

enum { NVML_UUID_TEXT = 1, NVML_UUID_BYTES = 2 };

struct nvml_uuid {
	unsigned int version, type;
	union {
		char text[41];
		unsigned char bytes[16];
	};
};

struct nvml_pci_ext {
	unsigned int version, domain, bus, device, device_id, subsystem_id, base_class, sub_class;
	char bus_id[32];
};

struct nvml_process1 {
	unsigned int pid;
	unsigned long long memory;
};

struct nvml_process { /* v2 and v3 */
	unsigned int pid;
	unsigned long long memory;
	unsigned int gpu_instance, compute_instance;
};

struct nvml_process_detail {
	unsigned int pid;
	unsigned long long memory;
	unsigned int gpu_instance, compute_instance;
	unsigned long long protected_memory;
};

struct nvml_process_detail_list {
	unsigned int version, mode, n;
	struct nvml_process_detail *list;
};

struct nvml_process_sample {
	unsigned int pid;
	unsigned long long timestamp; /* µs */
	unsigned int sm, memory, encoder, decoder;
};

struct nvml_process_util {
	unsigned long long timestamp;
	unsigned int pid, sm, memory, encoder, decoder, jpeg, ofa;
};

struct nvml_process_util_list {
	unsigned int version, n;
	unsigned long long last_seen;
	struct nvml_process_util *list;
};

union nvml_value {
	double d;
	int si;
	unsigned int ui;
	unsigned long ul;
	unsigned long long ull;
	long long sll;
	unsigned short us;
};

enum nvml_value_type {
	NVML_TYPE_DOUBLE,
	NVML_TYPE_UINT,
	NVML_TYPE_ULONG,
	NVML_TYPE_ULONGLONG,
	NVML_TYPE_LONGLONG,
	NVML_TYPE_INT,
};

struct nvml_field {
	unsigned int id, scope;
	long long timestamp, latency;
	unsigned int type;
	unsigned int result;
	union nvml_value value;
};

struct nvml_sample {
	unsigned long long timestamp;
	union nvml_value value;
};

struct nvml_temperature {
	unsigned int version, sensor;
	int celsius;
};

struct nvml_margin {
	unsigned int version;
	int celsius;
};

struct nvml_histogram {
	unsigned int max, high, partial, low, none;
};

struct nvml_attributes {
	unsigned int multiprocessors, copy_engines, decoders, encoders, jpegs, ofas, gpu_slices, compute_slices;
	unsigned long long memory_mib;
};

struct nvml_driver_model {
	unsigned int current, pending;
};

struct nvml_conf_mem {
	unsigned long long protected_kib, unprotected_kib;
};

struct nvml_conf_state {
	unsigned int environment, feature, dev_tools;
};

struct nvml_conf_settings {
	unsigned int version, environment, feature, dev_tools, multi_gpu;
};

struct nvml_fabric {
	unsigned char cluster[16];
	unsigned int status, clique;
	unsigned char state;
};

struct nvml_fabric2 {
	unsigned int version;
	unsigned char cluster[16];
	unsigned int status, clique;
	unsigned char state;
	unsigned int health;
};

struct nvml_fabric3 {
	unsigned int version;
	unsigned char cluster[16];
	unsigned int status, clique;
	unsigned char state;
	unsigned int health;
	unsigned char summary;
};

struct nvml_platform1 {
	unsigned int version;
	unsigned char ib_guid[16], rack_guid[16];
	unsigned char chassis_slot, compute_slot, node, peer_type, module;
};

struct nvml_platform2 {
	unsigned int version;
	unsigned char ib_guid[16], chassis_serial[16];
	unsigned char slot, tray, host, peer_type, module;
};

struct nvml_event {
	void *device;
	unsigned long long type, data;
	unsigned int gpu_instance, compute_instance;
};

struct nvml_event1 {
	void *device;
	unsigned long long type, data;
};

#endif
