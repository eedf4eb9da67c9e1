# SPDX-License-Identifier: MIT
# tests/api/: the Driver API as a program sees it, each program over a server of its own; and the generator's tests.

API_TESTS := device big errors procaddr context memory pool vmm ipc shared copy held overtake stream perthread trips polls module launch blocking link hostfunc old_abi editions stream_attr batch occupancy absent texture cublas session life hostile graph
API_TEST_B := $(B)/tests/api

$(API_TEST_B)/kernels.ptx: tests/api/kernels.cu
	@mkdir -p $(@D)
	$(NVCC) -ptx -o $@ $<

$(API_TEST_B)/kernels.fatbin: tests/api/kernels.cu
	@mkdir -p $(@D)
	$(NVCC) -fatbin -o $@ $<

$(API_TEST_B)/link_half.o: tests/api/link_half.cu
	@mkdir -p $(@D)
	$(NVCC) -dc -gencode arch=compute_75,code=compute_75 -o $@ $<

$(API_TEST_B)/link_half.fatbin: tests/api/link_half.cu
	@mkdir -p $(@D)
	$(NVCC) -fatbin -rdc=true -gencode arch=compute_75,code=compute_75 -o $@ $<

$(API_TEST_B)/link_half.a: $(API_TEST_B)/link_half.o
	@rm -f $@
	ar rcs $@ $<

$(B)/tests/api-link: $(patsubst %,$(API_TEST_B)/link_half.%,o a fatbin)

# What the programs start and load.
API_TEST_NEEDS := $(B)/bin/rgpu-server $(B)/lib/libsoftgpu.so $(B)/lib/libsoftcublas.so $(B)/tests/libnulldrv.so \
	$(API_TEST_B)/kernels.ptx $(API_TEST_B)/kernels.fatbin

$(B)/tests/api-polls $(B)/tests/api-overtake: | $(B)/tests/bench/slowlink

$(API_TESTS:%=$(B)/tests/api-%): $(B)/tests/api-%: tests/api/%.c tests/api/serve.h $(B)/lib/libcublas.so.13 | $(API_GEN) $(API_TEST_NEEDS)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -isystem $(CUDA_HOME)/include -Wno-deprecated-declarations $(LDFLAGS) -o $@ $< $(API_TEST_WITH) -L$(B)/lib \
		-l:libcublas.so.13 -l:libcuda.so.1 -Wl,-rpath,'$$ORIGIN/../lib' $(API_TEST_LIBS) -lpthread -lm

# The toolkit's header defines functions that are inline as C had it before C99.
$(B)/tests/api-occupancy: API_TEST_WITH = -fgnu89-inline

# It asks a worker what it offers.
$(B)/tests/api-ipc: API_TEST_WITH = $(B)/server/share.o $(B)/server/fdpass.o $(B)/lib/log.o
$(B)/tests/api-ipc: API_TEST_LIBS = -lcrypto
$(B)/tests/api-ipc: $(B)/server/share.o $(B)/server/fdpass.o $(B)/lib/log.o

$(B)/tests/api-texture: $(B)/tests/softgpu-drv_texture.ptx $(addprefix tests/softgpu/,drv_array.c drv_texture.c texture.h texture_ref.h)

# It opens libcuda.so.1 by itself.
$(B)/tests/api-life: | $(B)/tests/life-dl

$(B)/tests/life-dl: tests/api/life_dl.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -isystem $(CUDA_HOME)/include $(LDFLAGS) -o $@ $< -ldl -lpthread

# Our libnvrtc and libnvJitLink find what stands for NVIDIA's in the program's own run path.
FAKE_JIT := $(B)/tests/fake/libnvrtc.so.13 $(B)/tests/fake/libnvJitLink.so.13

$(B)/tests/fake/libnvrtc.so.13: tests/api/fake_nvrtc.c
$(B)/tests/fake/libnvJitLink.so.13: tests/api/fake_nvjitlink.c
$(FAKE_JIT):
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -shared -Wl,-soname,$(@F) -o $@ $<

$(B)/tests/api-jit: tests/api/jit.c tests/api/serve.h $(JIT_LIBS) $(B)/lib/libcuda.so.1 | $(API_GEN) $(API_TEST_NEEDS) $(FAKE_JIT)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -isystem $(CUDA_HOME)/include $(LDFLAGS) -o $@ $< -L$(B)/lib -l:libnvrtc.so.13 -l:libnvJitLink.so.13 -l:libcuda.so.1 \
		-Wl,-rpath,'$$ORIGIN/../lib:$$ORIGIN/fake'

UNIT_TESTS += $(B)/tests/api-jit

# Parts of the shim without a server behind them.
$(B)/tests/api-heap: tests/api/heap.c $(patsubst %,$(B)/shim/%.o,heap allocs ordered ranges handles) | $(API_GEN)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(API_CFLAGS) $(LDFLAGS) -o $@ $(filter %.c %.o,$^) -lpthread

$(B)/tests/api-twin: tests/api/twin.c $(B)/lib/twin.o
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^

$(B)/tests/api-tally: tests/api/tally.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $< -lpthread

$(B)/tests/api-%: tests/api/%.py $(wildcard api/*) | $(B)/lib/libcuda.so.1
	@mkdir -p $(@D)
	install -m 0755 $< $@

$(B)/tests/api-exports: | $(patsubst %,$(B)/lib/%,libcublas.so.13 libcudart.so.13 libcudart.so.12)
$(B)/tests/api-coverage: | $(CUDART)/stubs.c $(NVML)/refused.c

UNIT_TESTS += $(API_TESTS:%=$(B)/tests/api-%) $(patsubst %,$(B)/tests/api-%,heap tally twin generator exports coverage)

# Numbers and layouts of calls, which releases share.
tests/api/ops.t: | $(B)/gen/.stamp
UNIT_TESTS += tests/api/ops.t

# Does each record's test notice what the record gives? It is run over a server that does just that record wrong.
LONG += outputs
.PHONY: long-outputs
long-outputs: $(B)/tests/spoiled-server $(API_TESTS:%=$(B)/tests/api-%)
	B=$(B) prove --failures --comments tests/api/outputs.py
