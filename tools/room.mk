# SPDX-License-Identifier: MIT
# tools/: rgpu, one tool with subcommands, and rgpu-smi, which looks like nvidia-smi.

TOOLS_RGPU := $(patsubst %.c,$(B)/%.o,$(wildcard tools/rgpu/*.c))

$(B)/tools/%.o: tools/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -c -o $@ $<

$(B)/bin/rgpu: $(TOOLS_RGPU) $(B)/lib/librgpu-base.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_BASE)

ALL += $(B)/bin/rgpu

TOOLS_SMI := $(patsubst %.c,$(B)/%.o,$(wildcard tools/smi/*.c))

$(B)/bin/rgpu-smi: $(TOOLS_SMI) $(B)/lib/librgpu-transport.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $(TOOLS_SMI) $(B)/lib/librgpu-transport.a $(LIBS_TRANSPORT)

ALL += $(B)/bin/rgpu-smi
