# SPDX-License-Identifier: MIT
# tests/fidelity/: the documentation's rules, against softgpu, against rgpu, and against a genuine driver where there is one.

FIDELITY := init context stream waits memory copy module capture graph texture fault rt rt_fault
FIDELITY_DIR := $(B)/tests/fidelity
FIDELITY_PROGRAMS := $(addprefix $(FIDELITY_DIR)/,which $(FIDELITY))

# No run path: which libcuda.so.1 and libcudart.so.13 they get is up to who runs them.
$(FIDELITY_PROGRAMS): $(FIDELITY_DIR)/%: tests/fidelity/%.c tests/fidelity/fidelity.h tests/tap.h $(B)/lib/libcuda.so.1 $(B)/lib/libcudart.so.13
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -isystem $(CUDA_HOME)/include -o $@ $< -L$(B)/lib -l:libcudart.so.13 -l:libcuda.so.1 -lpthread

# What tests/fidelity/run runs.
$(FIDELITY_DIR)/list: tests/fidelity/room.mk
	@mkdir -p $(@D)
	@printf '%s\n' $(FIDELITY) >$@

tests/fidelity/softgpu.t tests/fidelity/rgpu.t: $(FIDELITY_PROGRAMS) $(FIDELITY_DIR)/list $(B)/lib/libsoftgpu.so $(B)/bin/rgpu-server

UNIT_TESTS += tests/fidelity/softgpu.t tests/fidelity/rgpu.t

.PHONY: fidelity
fidelity: tests/fidelity/softgpu.t tests/fidelity/rgpu.t
	prove --failures --comments $^
