# SPDX-License-Identifier: MIT
# usermode-proxy/: the engine (rings to TLS links) and the daemon around it.
ENGINE_OBJS := $(patsubst %,$(B)/usermode-proxy/%.o,control relay relay_ahead relay_chan relay_conn relay_inline relay_known relay_rx relay_tx rtt)

$(B)/usermode-proxy/%.o: usermode-proxy/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -c -o $@ $<

$(B)/lib/librgpu-engine.a: $(ENGINE_OBJS)
	@mkdir -p $(@D)
	@rm -f $@
	ar rcs $@ $^

ALL += $(B)/lib/librgpu-engine.a

PROXY_OBJS := $(patsubst %,$(B)/usermode-proxy/%.o,main config kern session pool devices requests view)
$(B)/usermode-proxy/main.o $(B)/usermode-proxy/config.o $(B)/usermode-proxy/view.o: override CFLAGS += -DRGPU_VERSION='"$(VERSION)"'
NL_CFLAGS := $(shell pkg-config --cflags libnl-genl-3.0 2>/dev/null)

$(B)/usermode-proxy/kern.o: override CFLAGS += $(NL_CFLAGS)

$(B)/bin/rgpu-proxy: $(PROXY_OBJS) $(B)/lib/librgpu-engine.a $(B)/lib/librgpu-web.a $(B)/lib/librgpu-base.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ -lnl-genl-3 -lnl-3 -linih $(LIBS_WEB) $(LIBS_BASE)

ALL += $(B)/bin/rgpu-proxy

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
