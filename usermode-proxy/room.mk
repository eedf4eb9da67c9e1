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
