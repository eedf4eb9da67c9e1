# SPDX-License-Identifier: MIT
# libnvidia-ml.so.1: NVML over the transport's control requests. Included by shim/room.mk.

NVML := $(B)/shim/nvml
NVML_OBJS := $(patsubst shim/nvml/%.c,$(NVML)/%.o,$(wildcard shim/nvml/*.c))
# Names of the module's sessions come over its netlink family.
NVML_BELOW := $(B)/usermode-proxy/kern.o $(B)/lib/librgpu-transport.a
LIBS_NVML = -lnl-genl-3 -lnl-3 $(LIBS_TRANSPORT) -lpthread -ldl

$(NVML)/%.o: shim/nvml/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -c -o $@ $<

$(NVML)/refused.c: shim/nvml/genrefused.py shim/cudart/genstubs.py shim/nvml/refused.txt api/libnvidia-ml-590-exports.txt $(NVML_OBJS)
	$(PY) shim/nvml/genrefused.py api/libnvidia-ml-590-exports.txt shim/nvml/refused.txt $@ $(NVML_OBJS)

$(NVML)/refused.o: $(NVML)/refused.c
	$(CC) $(CFLAGS) -c -o $@ $<

$(B)/lib/libnvidia-ml.so.1: $(NVML_OBJS) $(NVML)/refused.o $(NVML_BELOW) shim/nvml/nvml.map
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -shared -Wl,-soname,libnvidia-ml.so.1 -Wl,-Bsymbolic-functions -Wl,--version-script=shim/nvml/nvml.map -Wl,-z,defs \
		-Wl,--exclude-libs,ALL -o $@ $(NVML_OBJS) $(NVML)/refused.o $(NVML_BELOW) $(LIBS_NVML)
	ln -sf libnvidia-ml.so.1 $(B)/lib/libnvidia-ml.so

# The same for our own tools, without looking for a library.
$(B)/lib/librgpu-nvml.a: $(NVML_OBJS) $(B)/usermode-proxy/kern.o
	@rm -f $@
	ar rcs $@ $^

ALL += $(B)/lib/libnvidia-ml.so.1
