# SPDX-License-Identifier: MIT
# tests/nvml/: NVML's functions over a server with softgpu, and over one with a driver and an NVML that is not genuine.

$(B)/tests/libfake-nvml.so: tests/nvml/fake_nvml.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -shared -o $@ $<

NVML_TESTS := soft genuine

$(NVML_TESTS:%=$(B)/tests/nvml-%): $(B)/tests/nvml-%: tests/nvml/%.c tests/nvml/nvml.h tests/api/serve.h $(B)/lib/libnvidia-ml.so.1 \
		| $(API_GEN) $(API_TEST_NEEDS) $(B)/tests/libfake-nvml.so $(B)/lib/libcuda.so.1
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -isystem $(CUDA_HOME)/include $(LDFLAGS) -o $@ $< -L$(B)/lib -l:libnvidia-ml.so.1 -l:libcuda.so.1 \
		-Wl,-rpath,'$$ORIGIN/../lib' -ldl

tests/nvml/page.t: $(B)/bin/rgpu-server $(B)/tests/libnulldrv.so $(B)/tests/libfake-nvml.so $(B)/lib/libsoftgpu.so

UNIT_TESTS += $(NVML_TESTS:%=$(B)/tests/nvml-%) tests/nvml/page.t
ALL += $(B)/tests/libfake-nvml.so
