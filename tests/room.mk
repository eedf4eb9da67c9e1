# SPDX-License-Identifier: MIT
# The end-to-end programs and the benches: what a user would compile, with nvcc as it is.

E2E_DIR := $(B)/tests/e2e
E2E_NVCC := $(NVCC) -cudart shared -O2 -I.

# Runtime API; the cuBLAS one links ours by its real name.
E2E_CU := chain graphs once vadd matmul reduce histogram handoff twodev threads errors ordered zerocopy managed polling spin texture ipc
# Driver API.
E2E_C := vadd_drv waitvalue upload errors_drv mmap_drv stream_drv bothways quota_drv small_drv progress_drv again
E2E_C += packed half late gates

E2E_PROGRAMS := $(E2E_DIR)/oldserver $(E2E_DIR)/oldclient $(E2E_DIR)/oldmodule.so $(E2E_DIR)/cutter $(E2E_DIR)/hostile $(E2E_CU:%=$(E2E_DIR)/%) $(E2E_C:%=$(E2E_DIR)/%) $(E2E_DIR)/sgemm $(E2E_DIR)/kernels.ptx $(E2E_DIR)/kernels.fatbin

$(E2E_DIR)/texture: E2E_NVCC += --extended-lambda -Wno-deprecated-declarations

$(E2E_CU:%=$(E2E_DIR)/%): $(E2E_DIR)/%: tests/e2e/%.cu tests/e2e/e2e.h
	@mkdir -p $(@D)
	$(E2E_NVCC) -o $@ $<

# The same programs, compiled in ways that matter: a run path to the toolkit's runtime, per-thread default streams, the static runtime.
E2E_PROGRAMS += $(E2E_DIR)/cluster $(E2E_DIR)/tensormap $(E2E_DIR)/vadd_rpath $(E2E_DIR)/threads_ptds $(E2E_DIR)/vadd_static

$(E2E_DIR)/cluster $(E2E_DIR)/tensormap: $(E2E_DIR)/%: tests/e2e/%.cu tests/e2e/e2e.h
	@mkdir -p $(@D)
	$(E2E_NVCC) -gencode arch=compute_90,code=compute_90 -o $@ $<

$(E2E_DIR)/vadd_rpath: tests/e2e/vadd.cu tests/e2e/e2e.h
	@mkdir -p $(@D)
	$(E2E_NVCC) -o $@ $< -Xlinker --disable-new-dtags -Xlinker -rpath -Xlinker $(CUDA_HOME)/lib64

$(E2E_DIR)/threads_ptds: tests/e2e/threads.cu tests/e2e/e2e.h
	@mkdir -p $(@D)
	$(E2E_NVCC) --default-stream per-thread -DDEFAULT_STREAM_ONLY -o $@ $<

$(E2E_DIR)/vadd_static: tests/e2e/vadd.cu tests/e2e/e2e.h
	@mkdir -p $(@D)
	$(NVCC) -O2 -I. -o $@ $<

# Device code that is linked at run time. libcudadevrt is of no use in it, and not everybody has one.
E2E_PROGRAMS += $(E2E_DIR)/separate

$(E2E_DIR)/separate: tests/e2e/separate.cu tests/e2e/separate_half.cu tests/e2e/e2e.h
	@mkdir -p $(@D)
	$(E2E_NVCC) -rdc=true -cudadevrt none -gencode arch=compute_75,code=compute_75 -o $@ $(filter %.cu,$^)

# Kernels that launch kernels: the device runtime is the device's own.
E2E_PROGRAMS += $(E2E_DIR)/cdp

$(E2E_DIR)/cdp: tests/e2e/cdp.cu tests/e2e/e2e.h
	@mkdir -p $(@D)
	$(E2E_NVCC) -rdc=true -cudadevrt none -gencode arch=compute_80,code=compute_80 -o $@ $<

# A program of CUDA 12's: what it was compiled with does not matter to it, the runtime that it asks for does.
E2E_PROGRAMS += $(E2E_DIR)/runtime12

$(E2E_DIR)/runtime12: tests/e2e/runtime12.cu tests/e2e/e2e.h $(B)/lib/libcudart.so.12
	@mkdir -p $(@D)
	$(NVCC) -cudart none -O2 -I. -o $@ $< -Xlinker $(B)/lib/libcudart.so.12

$(E2E_DIR)/sgemm: tests/e2e/sgemm.cu tests/e2e/e2e.h $(B)/lib/libcublas.so.13
	@mkdir -p $(@D)
	$(E2E_NVCC) -o $@ $< -L$(B)/lib -l:libcublas.so.13 -Xlinker -rpath-link -Xlinker $(B)/lib

$(E2E_C:%=$(E2E_DIR)/%): $(E2E_DIR)/%: tests/e2e/%.c tests/e2e/e2e.h $(B)/lib/libcuda.so.1
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -isystem $(CUDA_HOME)/include -o $@ $< -L$(B)/lib -l:libcuda.so.1 -lpthread -lm

$(E2E_DIR)/oldserver: tests/e2e/oldserver.c $(B)/lib/librgpu-base.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $< $(B)/lib/librgpu-base.a $(LIBS_BASE)

$(E2E_DIR)/oldclient: tests/e2e/oldclient.c $(B)/lib/librgpu-engine.a $(B)/lib/librgpu-base.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $< $(B)/lib/librgpu-engine.a $(B)/lib/librgpu-base.a $(LIBS_BASE)

$(E2E_DIR)/oldmodule.so: tests/e2e/oldmodule.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -shared -o $@ $<

$(E2E_DIR)/hostile: tests/e2e/hostile.c $(B)/lib/librgpu-engine.a $(B)/lib/librgpu-base.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $< $(B)/lib/librgpu-engine.a $(B)/lib/librgpu-base.a $(LIBS_BASE)

$(E2E_DIR)/cutter: tests/e2e/cutter.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $<

# The runtime's unit test, over rgpu.
E2E_PROGRAMS += $(E2E_DIR)/cudart_api

$(E2E_DIR)/cudart_api: tests/cudart/api.c tests/tap.h $(B)/lib/libcudart.so.13
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -isystem $(CUDA_HOME)/include -o $@ $< -L$(B)/lib -l:libcudart.so.13 -lpthread

$(E2E_DIR)/kernels.ptx: tests/e2e/kernels.cu
	@mkdir -p $(@D)
	$(NVCC) -ptx -o $@ $<

$(E2E_DIR)/kernels.fatbin: tests/e2e/kernels.cu
	@mkdir -p $(@D)
	$(NVCC) -fatbin -o $@ $<

ALL += $(E2E_PROGRAMS)

.PHONY: e2e-programs
e2e-programs: $(E2E_PROGRAMS) $(B)/tests/bench/slowlink

# Unit tests of the rooms beside -------------------------------------------------------------------------------------

# Our runtime over softgpu, in one process: libcuda.so.1 is found by the program's run path, which comes before LD_LIBRARY_PATH.
$(B)/tests/cudart/libcuda.so.1: $(B)/lib/libsoftgpu.so
	@mkdir -p $(@D)
	ln -sf ../../lib/libsoftgpu.so $@

$(B)/tests/cudart-api: tests/cudart/api.c tests/tap.h $(B)/lib/libcudart.so.13 | $(B)/tests/cudart/libcuda.so.1
	$(CC) $(CFLAGS) $(LDFLAGS) -isystem $(CUDA_HOME)/include -o $@ $< -L$(B)/lib -l:libcudart.so.13 \
		-Wl,--disable-new-dtags -Wl,-rpath,'$$ORIGIN/cudart:$$ORIGIN/../lib' -lpthread

$(B)/tests/cudart-v12: tests/cudart/v12.c tests/tap.h $(B)/lib/libcudart.so.12 | $(B)/tests/cudart/libcuda.so.1
	$(CC) $(CFLAGS) $(LDFLAGS) -isystem $(CUDA_HOME)/include -o $@ $< -L$(B)/lib -l:libcudart.so.12 \
		-Wl,--disable-new-dtags -Wl,-rpath,'$$ORIGIN/cudart:$$ORIGIN/../lib' -lpthread

# What it prints for a machine that there is not, against what is known to be right.
$(B)/tests/smi-views: tests/tools/smi_views.c $(patsubst %,$(B)/tools/smi/%.o,table remote list query report monitor value)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.c %.o,$^)

ALL += $(B)/tests/smi-views

tests/tools/rgpu.t: $(B)/bin/rgpu $(B)/bin/rgpu-proxy $(B)/tests/server-stubd

tests/tools/install.t: products

UNIT_TESTS += tests/tools/rgpu.t tests/tools/install.t tests/tools/shards.t $(B)/tests/cudart-api $(B)/tests/cudart-v12 tests/tools/smi.t

# Benches -----------------------------------------------------------------------------------------------------------

BENCH := $(B)/tests/bench
BENCH_PROGRAMS := $(BENCH)/rawtls $(BENCH)/slowlink $(BENCH)/calls $(BENCH)/bare/libcuda.so.1 $(BENCH)/kpath

$(BENCH)/kpath: tests/bench/kpath.c tests/selftests/rgpu/nl.c tests/selftests/rgpu/stub.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -o $@ $^ -lpthread

$(BENCH)/raw.o: tests/bench/raw.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -c -o $@ $<

$(BENCH)/rawtls: tests/bench/rawtls.c $(BENCH)/raw.o
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -o $@ $^ -lssl -lcrypto

$(BENCH)/slowlink: tests/bench/slowlink.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -o $@ $< -lpthread

$(BENCH)/calls: tests/bench/calls.c $(BENCH)/raw.o tests/e2e/e2e.h $(B)/lib/libcuda.so.1
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -isystem $(CUDA_HOME)/include -o $@ $(filter %.c %.o,$^) -L$(B)/lib -l:libcuda.so.1 -lssl -lcrypto

# The null driver itself, found by its name: what the same program costs without a link.
$(BENCH)/bare/libcuda.so.1: $(B)/tests/libnulldrv.so
	@mkdir -p $(@D)
	ln -sf ../../libnulldrv.so $@

BENCHES += bench-link
.PHONY: bench-link
bench-link: $(BENCH_PROGRAMS) $(E2E_DIR)/kernels.ptx $(B)/tests/libnulldrv.so modules
	scripts/bench

# softgpu's speed beside C and OpenBLAS, in one process.
$(BENCH)/softgpu.ptx: tests/bench/softgpu.cu
	@mkdir -p $(@D)
	$(NVCC) -ptx -arch=compute_80 -o $@ $<

$(BENCH)/softgpu_plain.o: tests/bench/softgpu_c.c
	@mkdir -p $(@D)
	$(CC) -std=gnu17 $(WARN) -O3 -DFLAVOUR=plain -c -o $@ $<

$(BENCH)/softgpu_fast.o: tests/bench/softgpu_c.c
	@mkdir -p $(@D)
	$(CC) -std=gnu17 $(WARN) -O3 -march=native -ffast-math -DFLAVOUR=fast -c -o $@ $<

$(BENCH)/softgpu: tests/bench/softgpu.c $(BENCH)/softgpu_plain.o $(BENCH)/softgpu_fast.o $(B)/softgpu/libptx.a $(B)/lib/libsoftgpu.so
	$(CC) $(CFLAGS) -isystem $(CUDA_HOME)/include $(LDFLAGS) -o $@ $(filter %.c %.o %.a,$^) -L$(B)/lib -lsoftgpu \
		-Wl,-rpath,'$$ORIGIN/../../lib' -lm -ldl -lpthread

BENCHES += bench-softgpu
.PHONY: bench-softgpu
bench-softgpu: $(BENCH)/softgpu $(BENCH)/softgpu.ptx
	$^

# The fault suite at full size. The guest is slow where it is emulated: a proxy's death and its successor take it some seconds.
LINK_KILLS := $(addprefix link-kills-,1 2 3 4)
LONG += link-faults $(LINK_KILLS) link-cuts link-hostile
.PHONY: long-link-faults $(addprefix long-,$(LINK_KILLS)) long-link-cuts long-link-hostile
long-link-hostile: all
	B=$(B) RGPU_TEST_TRANSPORT=direct RGPU_HOSTILE_SECS=120 prove --failures --comments tests/e2e/hostile.t
long-link-faults: all
	B=$(B) RGPU_TEST_TRANSPORT=direct RGPU_FAULT_CUTS=10000 RGPU_FAULT_HOLE=30 prove --failures --comments tests/e2e/faults.t
# 200 kills in all, a seed for each shard.
$(addprefix long-,$(LINK_KILLS)): long-link-kills-%: all modules
	scripts/vm run --time-limit 3500 --name long-link-kills-$* --env RGPU_TEST_TRANSPORT=kmod --env RGPU_FAULT_KILLS=50 \
		--env RGPU_FAULT_SEED=$* -- tests/e2e/faults.t
long-link-cuts: $(B)/tests/relay_cut
	RGPU_CUT_RUNS=100 $(B)/tests/relay_cut

# 24 channels and 1 GiB each way on each, at once.
LONG += link-flow link-flow-kmod
.PHONY: long-link-flow long-link-flow-kmod
long-link-flow: all
	B=$(B) RGPU_TEST_TRANSPORT=direct RGPU_FLOW_CHANNELS=24 RGPU_FLOW_MIB=1024 prove --failures --comments tests/e2e/flow.t
# An emulated guest moves some 4 MB/s each way: there it is less.
long-link-flow-kmod: all modules
	scripts/vm run --time-limit 3500 --name long-link-flow --env RGPU_TEST_TRANSPORT=kmod --env RGPU_FLOW_CHANNELS=24 \
		--env RGPU_FLOW_MIB=$$(case $$(scripts/vm probe) in kvm) echo 1024 ;; *) echo 128 ;; esac) -- tests/e2e/flow.t

# Both ends in one guest, whose kernel encrypts for both.
LONG += link-ktls
.PHONY: long-link-ktls
long-link-ktls: all modules e2e-programs
	scripts/vm run --module-only --time-limit 3500 --name long-link-ktls --env RGPU_TEST_TRANSPORT=direct -- \
		sh -c 'prove --failures --comments $(addprefix tests/e2e/,faults.t flow.t packed.t certs.t) && grep "TlsTxSw.*[1-9]" /proc/net/tls_stat'

# The release before this one, at the other end of the link.
LONG += versions
.PHONY: long-versions
long-versions: all
	B=$(B) RGPU_TEST_TRANSPORT=direct prove --failures --comments tests/long/versions.t

# CUB, Thrust and cuRAND's device functions: the templates take minutes to compile.
LONG += libs
.PHONY: long-libs
long-libs: all
	CUDA_HOME=$(CUDA_HOME) NVCC=$(NVCC) B=$(B) prove --failures --comments tests/long/libs.t

# Those who read NVML, from PyPI and Debian.
LONG += consumers
.PHONY: long-consumers
long-consumers: all
	PY=$(PY) B=$(B) prove --failures --comments tests/long/consumers.t

# NVIDIA's samples, by their own verification: directly, and in a guest. RGPU_SAMPLES names a folder of built ones, else some are built.
LONG += samples
.PHONY: long-samples
SAMPLES_DIR = $(or $(RGPU_SAMPLES),$(shell scripts/setup --print-cache)/samples)
long-samples: all modules
	CUDA_HOME=$(CUDA_HOME) NVCC=$(NVCC) tests/long/samples/build "$(SAMPLES_DIR)" $$(sed -n 's/^\([^#\t]\+\)\t.*/\1/p' tests/long/samples/list)
	@mkdir -p $(B)/tests
	@echo tests/long/samples.t >$(B)/tests/samples.list
	RGPU_SAMPLES="$(SAMPLES_DIR)" B=$(B) RGPU_TEST_TRANSPORT=direct prove --failures --comments tests/long/samples.t
	RGPU_SAMPLES="$(SAMPLES_DIR)" B=$(B) prove --failures --comments tests/long/samples-6.12.t

# Clients from PyPI with test suites of their own.
LONG += numba tinygrad
.PHONY: long-numba long-tinygrad
long-numba long-tinygrad: long-%: all
	CUDA_HOME=$(CUDA_HOME) NVCC=$(NVCC) B=$(B) prove --failures --comments tests/long/$*.t
