# SPDX-License-Identifier: MIT
# usermode-proxy/: the engine (rings to TLS links) and the daemon around it.
ENGINE_OBJS := $(patsubst %,$(B)/usermode-proxy/%.o,control relay relay_chan relay_conn relay_inline relay_rx relay_tx)

$(B)/usermode-proxy/%.o: usermode-proxy/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -c -o $@ $<

$(B)/lib/librgpu-engine.a: $(ENGINE_OBJS)
	@mkdir -p $(@D)
	@rm -f $@
	ar rcs $@ $^

ALL += $(B)/lib/librgpu-engine.a

# What client libraries and tools link to reach a GPU: both transports, and all that they stand on.
TRANSPORT_OBJS := $(patsubst %,$(B)/transport/%.o,transport transport_direct transport_kmod)
LIBS_TRANSPORT := $(LIBS_BASE)

$(B)/transport/%.o: shim/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -c -o $@ $<

$(B)/lib/librgpu-transport.a: $(TRANSPORT_OBJS) $(ENGINE_OBJS) $(LIB_BASE_OBJS)
	@mkdir -p $(@D)
	@rm -f $@
	ar rcs $@ $^

ALL += $(B)/lib/librgpu-transport.a
