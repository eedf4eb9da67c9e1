// SPDX-License-Identifier: MIT
/* Devices: how they are found, what they are called, where they sit. */
#include "shim/nvml/call.h"

API nvml_return nvmlDeviceGetCount_v2(unsigned *count)
{
	TRY(nvml_ready());
	NEED(count);
	*count = nvml_count();
	return NVML_SUCCESS;
}

API nvml_return nvmlDeviceGetCount(unsigned *count)
{
	return nvmlDeviceGetCount_v2(count);
}

API nvml_return nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
	TRY(nvml_ready());
	NEED(device && nvml_gpu(index));
	*device = nvml_gpu(index);
	return NVML_SUCCESS;
}

API nvml_return nvmlDeviceGetHandleByIndex(unsigned index, void **device)
{
	return nvmlDeviceGetHandleByIndex_v2(index, device);
}

API nvml_return nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
	TRY(nvml_ready());
	NEED(uuid && device);
	for (unsigned i = 0; i < nvml_count(); i++) {
		if (strcasecmp(nvml_gpu(i)->uuid, uuid))
			continue;
		*device = nvml_gpu(i);
		return NVML_SUCCESS;
	}
	return NVML_NOT_FOUND;
}

/* The UUID as text, or its bytes. */
API nvml_return nvmlDeviceGetHandleByUUIDV(const struct nvml_uuid *uuid, void **device)
{
	TRY(nvml_ready());
	NEED(uuid && device);
	if (uuid->version != NVML_VERSIONED(*uuid, 1))
		return NVML_ARGUMENT_VERSION_MISMATCH;
	if (uuid->type == NVML_UUID_TEXT)
		return nvmlDeviceGetHandleByUUID(uuid->text, device);
	NEED(uuid->type == NVML_UUID_BYTES);
	for (unsigned i = 0; i < nvml_count(); i++) {
		if (memcmp(nvml_gpu(i)->dev->uuid, uuid->bytes, sizeof(uuid->bytes)))
			continue;
		*device = nvml_gpu(i);
		return NVML_SUCCESS;
	}
	return NVML_NOT_FOUND;
}

API nvml_return nvmlDeviceGetHandleBySerial(const char *serial, void **device)
{
	char text[FACT_TEXT_MAX];

	TRY(nvml_ready());
	NEED(serial && device);
	for (unsigned i = 0; i < nvml_count(); i++) {
		if (nvml_text(nvml_gpu(i), FACT_SERIAL, text) || strcmp(text, serial))
			continue;
		*device = nvml_gpu(i);
		return NVML_SUCCESS;
	}
	return NVML_NOT_FOUND;
}

/* With four or eight digits of domain, or without one, in any case. */
API nvml_return nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **device)
{
	unsigned domain = 0, bus, dev;

	TRY(nvml_ready());
	NEED(id && device);
	if (sscanf(id, "%x:%x:%x", &domain, &bus, &dev) != 3) {
		domain = 0;
		NEED(sscanf(id, "%x:%x", &bus, &dev) == 2);
	}
	for (unsigned i = 0; i < nvml_count(); i++) {
		struct gpu *g = nvml_gpu(i);

		if (g->domain != domain || g->bus != bus || g->device != dev)
			continue;
		*device = g;
		return NVML_SUCCESS;
	}
	return NVML_NOT_FOUND;
}

API nvml_return nvmlDeviceGetHandleByPciBusId(const char *id, void **device)
{
	return nvmlDeviceGetHandleByPciBusId_v2(id, device);
}

API nvml_return nvmlDeviceGetIndex(void *device, unsigned *index)
{
	struct gpu *g;

	TRY(nvml_enter(device, &g));
	NEED(index);
	*index = nvml_index(g);
	return NVML_SUCCESS;
}

/* N of /dev/rgpuN where there is one: device plugins make a path of it. The node is the one with this device's UUID. */
API nvml_return nvmlDeviceGetMinorNumber(void *device, unsigned *minor)
{
	struct gpu *g;

	TRY(nvml_enter(device, &g));
	NEED(minor);
	*minor = nvml_through_module() ? g->dev->minor : nvml_index(g);
	return NVML_SUCCESS;
}

API nvml_return nvmlDeviceGetName(void *device, char *name, unsigned length)
{
	struct gpu *g;

	TRY(nvml_enter(device, &g));
	return nvml_give(name, length, g->dev->name);
}

API nvml_return nvmlDeviceGetUUID(void *device, char *uuid, unsigned length)
{
	struct gpu *g;

	TRY(nvml_enter(device, &g));
	return nvml_give(uuid, length, g->uuid);
}

static nvml_return text_of(void *device, enum nvml_fact id, char *out, unsigned length)
{
	char text[FACT_TEXT_MAX];
	struct gpu *g;

	TRY(nvml_enter(device, &g));
	NEED(out);
	TRY(nvml_text(g, id, text));
	return nvml_give(out, length, text);
}

API nvml_return nvmlDeviceGetSerial(void *device, char *out, unsigned length)
{
	return text_of(device, FACT_SERIAL, out, length);
}

API nvml_return nvmlDeviceGetVbiosVersion(void *device, char *out, unsigned length)
{
	return text_of(device, FACT_VBIOS, out, length);
}

API nvml_return nvmlDeviceGetBoardPartNumber(void *device, char *out, unsigned length)
{
	return text_of(device, FACT_BOARD_PART, out, length);
}

API nvml_return nvmlDeviceGetInforomImageVersion(void *device, char *out, unsigned length)
{
	return text_of(device, FACT_INFOROM_IMAGE, out, length);
}

API nvml_return nvmlDeviceGetInforomVersion(void *device, unsigned object, char *out, unsigned length)
{
	NEED(object < 3);
	return text_of(device, FACT_INFOROM_OEM + object, out, length);
}

API nvml_return nvmlDeviceGetGspFirmwareVersion(void *device, char *out)
{
	return text_of(device, FACT_GSP_VERSION, out, 64);
}

API nvml_return nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor)
{
	struct gpu *g;

	TRY(nvml_enter(device, &g));
	NEED(major && minor);
	*major = nvml_attribute(g, 75); /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, …_MINOR */
	*minor = nvml_attribute(g, 76);
	return *major < 0 || *minor < 0 ? NVML_UNKNOWN : NVML_SUCCESS;
}

static uint64_t known(struct gpu *g, enum nvml_fact id)
{
	uint64_t v;

	return nvml_fact(g, id, &v) ? 0 : v;
}

API nvml_return nvmlDeviceGetPciInfo_v3(void *device, struct nvml_pci *pci)
{
	struct gpu *g;

	TRY(nvml_enter(device, &g));
	NEED(pci);
	memset(pci, 0, sizeof(*pci));
	pci->domain = g->domain;
	pci->bus = g->bus;
	pci->device = g->device;
	pci->device_id = known(g, FACT_PCI_DEVICE_ID);
	pci->subsystem_id = known(g, FACT_PCI_SUBSYSTEM_ID);
	snprintf(pci->bus_id_legacy, sizeof(pci->bus_id_legacy), "%04X:%02X:%02X.0", g->domain & 0xffff, g->bus, g->device);
	memcpy(pci->bus_id, g->bus_id, sizeof(pci->bus_id));
	return NVML_SUCCESS;
}

API nvml_return nvmlDeviceGetPciInfo_v2(void *device, struct nvml_pci2 *out)
{
	struct nvml_pci pci;

	NEED(out);
	TRY(nvmlDeviceGetPciInfo_v3(device, &pci));
	memset(out, 0, sizeof(*out));
	memcpy(out->bus_id, pci.bus_id_legacy, sizeof(out->bus_id));
	out->domain = pci.domain;
	out->bus = pci.bus;
	out->device = pci.device;
	out->device_id = pci.device_id;
	out->subsystem_id = pci.subsystem_id;
	return NVML_SUCCESS;
}

/* The first release's had no subsystem and nothing behind it. */
API nvml_return nvmlDeviceGetPciInfo(void *device, struct nvml_pci2 *out)
{
	struct nvml_pci2 pci;

	NEED(out);
	TRY(nvmlDeviceGetPciInfo_v2(device, &pci));
	memcpy(out, &pci, offsetof(struct nvml_pci2, subsystem_id));
	return NVML_SUCCESS;
}

API nvml_return nvmlDeviceGetPciInfoExt(void *device, struct nvml_pci_ext *out)
{
	struct nvml_pci pci;

	NEED(out);
	TRY(nvmlDeviceGetPciInfo_v3(device, &pci));
	if (out->version != NVML_VERSIONED(*out, 1))
		return NVML_ARGUMENT_VERSION_MISMATCH;
	out->domain = pci.domain;
	out->bus = pci.bus;
	out->device = pci.device;
	out->device_id = pci.device_id;
	out->subsystem_id = pci.subsystem_id;
	out->base_class = 3; /* a display controller, … */
	out->sub_class = 2;  /* … a 3D one */
	memcpy(out->bus_id, pci.bus_id, sizeof(out->bus_id));
	return NVML_SUCCESS;
}
