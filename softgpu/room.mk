# SPDX-License-Identifier: MIT
# softgpu: libsoftgpu.so (the CUDA Driver API on CPUs), soft cuBLAS, and their tests.

-include softgpu/ptx.mk

SOFTGPU_B := $(B)/softgpu
SOFTGPU_CFLAGS := -I$(CUDA_HOME)/include
SOFTGPU_SRCS := arena array attributes batch context copy copyapi device errors event fill function graph graph_run handles image init launch library link \
	memapi memop memory module occupancy perthread pointer pool primary procaddr ranges sched shareable sharedevent stream streamattr tensormap texobj vmm
SOFTGPU_OBJS := $(SOFTGPU_SRCS:%=$(SOFTGPU_B)/%.o) $(SOFTGPU_B)/api_stubs.o $(SOFTGPU_B)/api_table.o $(GRAPH_OBJS) \
	$(SOFTGPU_B)/fatbin.o $(patsubst %,$(SOFTGPU_B)/lib/%.o,ptxlink ptxscan)

$(SOFTGPU_B)/api_%.c: softgpu/gen_api.py softgpu/driver-api.tsv
	@mkdir -p $(@D)
	$(PY) softgpu/gen_api.py $* softgpu/driver-api.tsv >$@.tmp && mv $@.tmp $@

$(SOFTGPU_B)/exports.map: softgpu/gen_api.py softgpu/driver-api.tsv
	@mkdir -p $(@D)
	$(PY) softgpu/gen_api.py exports softgpu/driver-api.tsv >$@.tmp && mv $@.tmp $@

# The stubs are called with arguments that they don't name.
$(SOFTGPU_B)/api_%.o: $(SOFTGPU_B)/api_%.c
	$(CC) $(CFLAGS) -c $< -o $@

$(SOFTGPU_B)/fatbin.o: lib/fatbin.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -c $< -o $@

$(SOFTGPU_B)/lib/%.o: lib/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -c $< -o $@

$(SOFTGPU_B)/%.o: softgpu/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(SOFTGPU_CFLAGS) -c $< -o $@

# -Bsymbolic: another libcuda in the process must not take our own calls of cu* names. nodelete: threads of ours may be asleep in it.
$(B)/lib/libsoftgpu.so: $(SOFTGPU_OBJS) $(SOFTGPU_PTX_OBJS) $(SOFTGPU_B)/exports.map
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -shared -Wl,-soname,libsoftgpu.so -Wl,-Bsymbolic -Wl,-z,defs,-z,nodelete -Wl,--version-script=$(SOFTGPU_B)/exports.map \
		-o $@ $(SOFTGPU_OBJS) $(SOFTGPU_PTX_OBJS) -llz4 -lzstd -lpthread -lm

ALL += $(B)/lib/libsoftgpu.so

# The null driver for benches: softgpu's tables, and nothing behind them.
NULLDRV_OBJS := $(patsubst %,$(SOFTGPU_B)/null_%.o,nulldrv memory module params) \
	$(patsubst %,$(SOFTGPU_B)/%.o,attributes copyapi errors perthread procaddr api_stubs api_table fatbin)

$(SOFTGPU_B)/null_%.o: tests/nulldrv/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(SOFTGPU_CFLAGS) -c $< -o $@

$(B)/tests/libnulldrv.so: $(NULLDRV_OBJS) $(SOFTGPU_B)/exports.map
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -shared -Wl,-soname,libnulldrv.so -Wl,-Bsymbolic -Wl,--version-script=$(SOFTGPU_B)/exports.map -Wl,-z,defs \
		-o $@ $(NULLDRV_OBJS) -llz4 -lzstd -lpthread

ALL += $(B)/tests/libnulldrv.so

SOFTGPU_TESTS := drv_basic drv_memory drv_vmm drv_stream drv_devices drv_module drv_order drv_array drv_texture drv_graph drv_ipc drv_jit

$(SOFTGPU_TESTS:%=$(B)/tests/softgpu-%): $(B)/tests/softgpu-%: tests/softgpu/%.c $(B)/lib/libsoftgpu.so
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(SOFTGPU_CFLAGS) $(LDFLAGS) $< -o $@ -L$(B)/lib -lsoftgpu -Wl,-rpath,'$$ORIGIN/../lib' -lpthread -lm

$(B)/tests/softgpu-drv_texture $(B)/tests/softgpu-drv_array: $(B)/tests/softgpu-drv_texture.ptx tests/softgpu/texture.h tests/softgpu/texture_ref.h

$(B)/tests/softgpu-drv_%.ptx: tests/softgpu/drv_%.cu
	@mkdir -p $(@D)
	$(CUDA_HOME)/bin/nvcc -ptx -arch=compute_75 -std=c++17 -o $@ $<

UNIT_TESTS += $(SOFTGPU_TESTS:%=$(B)/tests/softgpu-%)

SOFTCUBLAS_OBJS := $(patsubst %,$(SOFTGPU_B)/blas/%.o,backend handle routines)

$(SOFTGPU_B)/blas/%.o: softgpu/blas/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -c $< -o $@

# Its streams are libsoftgpu's: the one beside it, which a server may have loaded already.
$(B)/lib/libsoftcublas.so: $(SOFTCUBLAS_OBJS) $(B)/lib/libsoftgpu.so
	$(CC) $(LDFLAGS) -shared -Wl,-soname,libsoftcublas.so -Wl,-z,defs -o $@ $(SOFTCUBLAS_OBJS) -L$(B)/lib -lsoftgpu \
		-Wl,-rpath,'$$ORIGIN' -ldl -lpthread

ALL += $(B)/lib/libsoftcublas.so

$(B)/tests/softgpu-cublas: tests/softgpu/drv_cublas.c $(B)/lib/libsoftcublas.so $(B)/lib/libsoftgpu.so
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(SOFTGPU_CFLAGS) $(LDFLAGS) $< -o $@ -L$(B)/lib -lsoftcublas -lsoftgpu -Wl,-rpath,'$$ORIGIN/../lib' -lm

UNIT_TESTS += $(B)/tests/softgpu-cublas

$(B)/tests/fatbin: tests/softgpu/fatbin.c $(SOFTGPU_B)/fatbin.o
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) $^ -o $@ -llz4 -lzstd

UNIT_TESTS += $(B)/tests/fatbin

$(B)/tests/nulldrv: tests/softgpu/nulldrv.c $(B)/tests/libnulldrv.so
	$(CC) $(CFLAGS) $(SOFTGPU_CFLAGS) $(LDFLAGS) $< -o $@ -L$(B)/tests -lnulldrv -Wl,-rpath,'$$ORIGIN'

UNIT_TESTS += $(B)/tests/nulldrv
