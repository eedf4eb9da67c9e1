/* SPDX-License-Identifier: MIT */
/* The library's own view: who has initialised it, the devices, and the facts about them. rgpu-smi looks through it, too. */
#ifndef RGPU_SHIM_NVML_LIB_H
#define RGPU_SHIM_NVML_LIB_H

#include <stdbool.h>
#include <stdint.h>
#include "api/nvml_abi.h"
#include "api/nvml_facts.h"
#include "api/props.h"
#include "lib/why.h"
#include "shim/transport.h"

#define API __attribute__((visibility("default")))

#define GPUS_MAX   64
#define FACT_TEXTS 20 /* facts below this number are texts */
#define NVML_INTERFACE                                                                                                           \
	"13.590.00" /* the release whose names and structures this library has; also where there is no server's                  \
		     */

struct gpu {
	const struct rgpu_device *dev;
	uint32_t server_index; /* in the server's list */
	char bus_id[32];       /* as NVML writes it: 00000000:83:00.0; softgpu's is all zeros */
	unsigned domain, bus, device;
	char uuid[48]; /* GPU-… */

	/* nvml.lock */
	struct {
		int64_t at; /* 0 never */
		enum nvml_result failed;
	} group[RGPU_TELEMETRY_SLOW + 1];
	struct {
		uint8_t status; /* an enum nvml_result */
		uint64_t value;
	} fact[FACTS_MAX];
	char text[FACT_TEXTS][FACT_TEXT_MAX];
};

/*
 * As nvmlInit and nvmlShutdown, counted. @why has the transport's line when it fails. nvml_open: NVML_NOT_FOUND when there is no
 * device and @none_is_good is false.
 */
enum nvml_result nvml_open(bool none_is_good, char why[RGPU_WHY_MAX]);
enum nvml_result nvml_close(void);

/* NVML_SUCCESS, NVML_UNINITIALIZED; in a forked child the connection is made anew, as a descriptor of NVIDIA's would still work.
 */
enum nvml_result nvml_ready(void);

unsigned nvml_count(void);
struct gpu *nvml_gpu(unsigned index);	/* NULL: there is none */
struct gpu *nvml_handle(const void *h); /* NULL: h is no handle of ours */
unsigned nvml_index(const struct gpu *g);
uint32_t nvml_cuda_version(void); /* as cuDriverGetVersion */
bool nvml_through_module(void);
int nvml_attribute(const struct gpu *g, unsigned cu_attribute); /* −1: not known */

/* A fact of the device, at most 100 ms old. NVML_SUCCESS, NVML_NOT_SUPPORTED, NVML_GPU_IS_LOST … */
enum nvml_result nvml_fact(struct gpu *g, enum nvml_fact id, uint64_t *value);
enum nvml_result nvml_text(struct gpu *g, enum nvml_fact id, char out[FACT_TEXT_MAX]);

struct nvml_client {
	unsigned gpu; /* index */
	uint32_t pid; /* as the reader sees it */
	uint32_t uid;
	char comm[17];
	uint32_t busy, busy_memory; /* per cent, RGPU_TELEMETRY_NONE not known */
	uint64_t mem_used;
	uint64_t records, fences, rate_up, rate_down;
	uint8_t sid[16];
};

/* The processes of this client host on all devices. *@out is malloc'ed. */
enum nvml_result nvml_clients(struct nvml_client **out, unsigned *n);

/* What is known of the connection to the server. */
enum nvml_result nvml_link(struct rgpu_telemetry_link *out);

/* A process's program, for people: its path where this user may see it, else @comm, else NULL. */
const char *nvml_program(uint32_t pid, const char *comm, char *buf, unsigned size);

enum nvml_result nvml_from_errno(int err);

/* What the generated functions return that do nothing. */
int nvml_refused(enum nvml_result how);

#endif
