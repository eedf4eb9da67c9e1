# SPDX-License-Identifier: MIT
# tools/: rgpu, one tool with subcommands, and rgpu-smi, which looks like nvidia-smi.

TOOLS_RGPU := $(patsubst %.c,$(B)/%.o,$(wildcard tools/rgpu/*.c))

$(B)/tools/%.o: override CFLAGS += -DRGPU_VERSION='"$(VERSION)"'

$(B)/tools/%.o: tools/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -c -o $@ $<

# The tool asks the module and the server as the proxy does.
$(B)/bin/rgpu: $(TOOLS_RGPU) $(B)/usermode-proxy/kern.o $(B)/usermode-proxy/config.o $(B)/lib/librgpu-transport.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ -lnl-genl-3 -lnl-3 -linih -ldl -lm $(LIBS_BASE)

ALL += $(B)/bin/rgpu

TOOLS_SMI := $(patsubst %.c,$(B)/%.o,$(wildcard tools/smi/*.c))

$(B)/bin/rgpu-smi: $(TOOLS_SMI) $(B)/lib/librgpu-nvml.a $(B)/lib/librgpu-transport.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_NVML)

ALL += $(B)/bin/rgpu-smi
