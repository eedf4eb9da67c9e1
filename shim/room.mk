# SPDX-License-Identifier: MIT
# shim/: the libraries that programs load: libcuda.so.1 and libcublas.so.13 from the tables, libcudart in its own folder.

SHIM_SRCS := $(filter-out shim/cublas%.c shim/transport%.c,$(wildcard shim/*.c))
SHIM_OBJS := $(SHIM_SRCS:shim/%.c=$(B)/shim/%.o) $(patsubst %,$(B)/gen/%.o,client_cuda stubs_cuda procaddr_table op_names) $(GRAPH_OBJS)
SHIM_CUBLAS_OBJS := $(patsubst shim/%.c,$(B)/shim/%.o,$(wildcard shim/cublas*.c)) $(B)/gen/client_cublas.o

$(SHIM_OBJS) $(SHIM_CUBLAS_OBJS): override CFLAGS += $(API_CFLAGS)
$(SHIM_OBJS) $(SHIM_CUBLAS_OBJS): | $(API_GEN)

$(B)/shim/%.o: shim/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -c -o $@ $<

# nodelete: threads of ours run in it, and what pthread_key_create() was given is called when others end.
$(B)/lib/libcuda.so.1: $(SHIM_OBJS) $(B)/lib/librgpu-transport.a shim/libcuda.map
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -shared -Wl,-soname,libcuda.so.1 -Wl,-z,nodelete -Wl,-Bsymbolic-functions -Wl,--version-script=shim/libcuda.map -Wl,-z,defs \
		-Wl,--exclude-libs,ALL -o $@ $(SHIM_OBJS) $(B)/lib/librgpu-transport.a -lssl -lcrypto -llz4 -lzstd -lpthread -ldl
	ln -sf libcuda.so.1 $(B)/lib/libcuda.so

$(B)/lib/libcublas.so.13: $(SHIM_CUBLAS_OBJS) $(B)/lib/libcuda.so.1 shim/libcublas.map
	$(CC) $(LDFLAGS) -shared -Wl,-soname,libcublas.so.13 -Wl,--version-script=shim/libcublas.map -Wl,-z,defs -o $@ \
		$(SHIM_CUBLAS_OBJS) -L$(B)/lib -l:libcuda.so.1
	ln -sf libcublas.so.13 $(B)/lib/libcublas.so

ALL += $(B)/lib/libcuda.so.1 $(B)/lib/libcublas.so.13

-include shim/cudart/cudart.mk
-include shim/jit/jit.mk
-include shim/nvml/nvml.mk
