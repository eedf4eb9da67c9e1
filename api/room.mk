# SPDX-License-Identifier: MIT
# api/: runs the generator, and compiles what the server gets from it.

API_TABLES := api/cuda.api api/cublas.api api/rgpu.api
API_GEN := $(B)/gen/.stamp
API_CFLAGS := -isystem $(CUDA_HOME)/include -D__CUDA_API_VERSION_INTERNAL -Wno-deprecated-declarations

$(API_GEN): $(API_TABLES) api/procaddr.tsv $(wildcard api/*.py api/*-exports.txt)
	@mkdir -p $(@D)
	$(PY) api/gen.py --out $(@D) --tests tests/api $(API_TABLES)
	@touch $@

# What others include: looked at again when the generator has run. Without a rule make would take their age from before, and what
# includes them would be made anew by the next make only.
$(B)/gen/%.h $(B)/gen/%.inc: $(API_GEN)
	@:

API_SERVER_OBJS := $(patsubst %,$(B)/gen/%.o,srv_cuda srv_cublas srv_rgpu srv_find op_names)
API_SERVER_HAND := $(patsubst server/%.c,$(B)/server/%.o,$(wildcard server/call*.c server/session*.c server/driver*.c))

# What the generator made, of all rooms. Named, so that make does not take other files of the folder for programs to be built.
API_OBJS := $(API_SERVER_OBJS) $(patsubst %,$(B)/gen/%.o,client_cuda stubs_cuda procaddr_table client_cublas)

$(API_OBJS): $(B)/gen/%.o: $(API_GEN)
	$(CC) $(CFLAGS) $(API_CFLAGS) -c -o $@ $(B)/gen/$*.c

$(API_SERVER_HAND): override CFLAGS += $(API_CFLAGS)
$(API_SERVER_HAND): | $(API_GEN)

docs/api-coverage.md: $(API_TABLES) api/coverage.py $(B)/shim/cudart/stubs.c $(B)/shim/nvml/refused.c
	$(PY) api/coverage.py api/cuda.api $(B)/shim/cudart/stubs.c $(B)/shim/nvml/refused.c >$@.tmp && mv $@.tmp $@
