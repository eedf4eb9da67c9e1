# SPDX-License-Identifier: MIT
# The PTX engine: build/softgpu/libptx.a, softgpu-check, and the engine's tests.

PTX_SRC := $(filter-out softgpu/ptx/ops_%.c,$(wildcard softgpu/ptx/*.c))
# Handlers that are compiled once for each x86-64 level; the rest of ops_*.c once.
PTX_LEVEL_SRC := $(addprefix softgpu/ptx/,ops_int.c ops_bits.c ops_float.c ops_half.c ops_compare.c ops_convert.c ops_memory.c ops_warp.c \
	ops_tensor.c ops_wmma.c ops_whole.c ops_whole_fused.c ops_whole_memory.c)
PTX_SRC += $(filter-out $(PTX_LEVEL_SRC),$(wildcard softgpu/ptx/ops_*.c))

PTX_OBJ := $(PTX_SRC:softgpu/ptx/%.c=$(B)/softgpu/ptx/%.o) \
	$(foreach v,v2 v3 v4,$(PTX_LEVEL_SRC:softgpu/ptx/%.c=$(B)/softgpu/ptx/%.$(v).o))

# Two roundings are two roundings: nothing may be contracted. Traps and errno are not looked at.
SOFTGPU_PTX_OBJS := $(B)/softgpu/libptx.a

PTX_FP := -ffp-contract=off -fno-math-errno
# Sanitizers on vectorised handlers take minutes to compile: there they are checked, not measured.
# There handlers of whole warps return to each other, too, as calls at their ends may be real calls.
PTX_OPS_FLAGS := $(if $(SANITIZE),-O1 -DWHOLE_STEPS,-O3) $(PTX_FP) -fno-trapping-math
# Elsewhere than on x86-64 the three levels are the same.
ifeq ($(shell uname -m),x86_64)
PTX_FLAGS_v2 := -march=x86-64-v2
PTX_FLAGS_v3 := -march=x86-64-v3
PTX_FLAGS_v4 := -march=x86-64-v4 -mprefer-vector-width=512 -mno-vzeroupper
endif

$(B)/softgpu/ptx/%.o: softgpu/ptx/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(PTX_FP) $(PTX_FLAGS_v2) -c -o $@ $<

$(B)/softgpu/ptx/ops_general.o: override CFLAGS += -frounding-math
# Its loops over lanes are worth vectors.
$(B)/softgpu/ptx/texture.o $(B)/softgpu/ptx/ops_tex.o: override CFLAGS += $(if $(SANITIZE),,-O3) -fno-trapping-math

define PTX_LEVEL
$(B)/softgpu/ptx/%.$(1).o: softgpu/ptx/%.c
	@mkdir -p $$(@D)
	$$(CC) $$(CFLAGS) $$(PTX_OPS_FLAGS) $$(PTX_FLAGS_$(1)) -DLEVEL=$(1) -c -o $$@ $$<
endef
$(foreach v,v2 v3 v4,$(eval $(call PTX_LEVEL,$(v))))

$(B)/softgpu/libptx.a: $(PTX_OBJ)
	@rm -f $@
	ar rcs $@ $^

$(B)/bin/softgpu-check: softgpu/check.c $(B)/softgpu/libptx.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MF $(B)/softgpu/ptx/check.d $(LDFLAGS) -o $@ $< $(B)/softgpu/libptx.a -lm -lpthread

ALL += $(B)/softgpu/libptx.a $(B)/bin/softgpu-check

-include $(PTX_OBJ:.o=.d)

comma := ,
# Tables of forms against references in C; they see what the lowering looks for.
PTX_CASES := int float half cvt setp mem fault atom warp isa
PTX_TESTS := $(PTX_CASES:%=ptx_%) ptx_diverge \
	ptx_kernels ptx_text ptx_hostile ptx_tensor ptx_math ptx_cluster ptx_mma ptx_bulk ptx_small

PTX_TESTS += ptx_whole ptx_whole_random ptx_async ptx_device
# Those that own handlers: see ptx_forms.h.
PTX_OWNERS := $(PTX_CASES) mma tensor bulk cluster kernels text async device

$(B)/tests/softgpu-ptx_%: tests/softgpu/ptx_%.c $(B)/softgpu/libptx.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -ffp-contract=off -frounding-math -MF $(B)/softgpu/ptx/test_$*.d $(LDFLAGS) -o $@ $< $(B)/softgpu/libptx.a \
		$(if $(filter $*,$(PTX_OWNERS)),-Wl$(comma)--wrap=ptx_op_find) -lm -lpthread

# CUDA's headers convert on the host: the references of ptx_small.
$(B)/softgpu/ptx/small_ref.o: tests/softgpu/ptx_small_ref.cpp
	@mkdir -p $(@D)
	$(CUDA_HOME)/bin/nvcc -c -O1 -o $@ $<

$(B)/tests/softgpu-ptx_small: tests/softgpu/ptx_small.c $(B)/softgpu/ptx/small_ref.o $(B)/softgpu/libptx.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -ffp-contract=off -MF $(B)/softgpu/ptx/test_small.d $(LDFLAGS) -o $@ $< $(B)/softgpu/ptx/small_ref.o \
		$(B)/softgpu/libptx.a -Wl$(comma)--wrap=ptx_op_find -lstdc++ -lm -lpthread

# The kernels' PTX lies beside the test programs.
$(B)/tests/softgpu-ptx_kernels $(B)/tests/softgpu-ptx_text: $(B)/tests/softgpu-ptx_kernels.ptx
$(B)/tests/softgpu-ptx_text: $(B)/tests/softgpu-drv_texture.ptx
$(B)/tests/softgpu-ptx_device: $(B)/tests/softgpu-ptx_device.ptx
$(B)/tests/softgpu-ptx_device.ptx: PTX_ARCH := compute_75 -rdc=true
$(B)/tests/softgpu-ptx_tensor: $(B)/tests/softgpu-ptx_tensor.ptx
$(B)/tests/softgpu-ptx_bulk: $(B)/tests/softgpu-ptx_bulk.ptx
$(B)/tests/softgpu-ptx_bulk.ptx: PTX_ARCH := compute_90a
$(B)/tests/softgpu-ptx_cluster: $(B)/tests/softgpu-ptx_cluster.ptx
$(B)/tests/softgpu-ptx_cluster.ptx: PTX_ARCH := compute_90
$(B)/tests/softgpu-ptx_math: $(B)/tests/softgpu-ptx_math.ptx tests/softgpu/ptx_math.def
$(B)/tests/softgpu-ptx_kernels.ptx $(B)/tests/softgpu-ptx_math.ptx: PTX_ARCH := compute_75
$(B)/tests/softgpu-ptx_tensor.ptx: PTX_ARCH := compute_80

$(B)/tests/softgpu-ptx_%.ptx: tests/softgpu/ptx_%.cu
	@mkdir -p $(@D)
	$(CUDA_HOME)/bin/nvcc -ptx -arch=$(PTX_ARCH) -std=c++17 -I. -o $@ $<

export PTX_CASES
UNIT_TESTS += $(PTX_TESTS:%=$(B)/tests/softgpu-%) tests/softgpu/levels.t

-include $(PTX_TESTS:ptx_%=$(B)/softgpu/ptx/test_%.d)
