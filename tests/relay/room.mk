# SPDX-License-Identifier: MIT
# tests/relay/: links, keys, addresses, and the relay against a scripted server.

# The relay with its kill points, and what stands around it in the tests.
RELAY_TEST_OBJS := $(patsubst %,$(B)/tests/relay-engine/%.o,control relay relay_ahead relay_chan relay_conn relay_inline relay_known relay_rx relay_tx rtt) \
	$(patsubst %,$(B)/tests/relay/%.o,fake_server fake_app workload)

$(B)/tests/relay-engine/%.o: usermode-proxy/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -DRGPU_KILL_POINTS -c -o $@ $<

$(B)/tests/relay/%.o: tests/relay/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -DRGPU_KILL_POINTS -c -o $@ $<

$(B)/tests/relay_%: $(B)/tests/relay/test_%.o $(RELAY_TEST_OBJS) $(B)/lib/librgpu-base.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_BASE)

$(B)/tests/relay_direct: $(B)/tests/relay/test_direct.o $(B)/lib/librgpu-transport.a | $(B)/tests/server-stubd
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_TRANSPORT)

# It has a name with two addresses.
$(B)/tests/relay_text: LDFLAGS += -Wl,--wrap=getaddrinfo,--wrap=poll

$(B)/tests/relay_proxy: | $(B)/bin/rgpu-proxy

# It is server and module itself.
$(B)/tests/relay_devices: $(B)/tests/relay/test_devices.o $(B)/usermode-proxy/devices.o $(B)/lib/librgpu-base.a
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_BASE)

UNIT_TESTS += $(patsubst %,$(B)/tests/relay_%,ahead text places devices half link control order cut hostile direct proxy spin)
# There the kernel has TLS.
GUEST_TESTS += $(B)/tests/relay_link
.PRECIOUS: $(B)/tests/relay/%.o $(B)/tests/relay-engine/%.o
