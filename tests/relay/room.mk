# SPDX-License-Identifier: MIT
# tests/relay/: links, keys, addresses, and the relay against a scripted server.
$(B)/tests/relay_%.o: tests/relay/test_%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -c -o $@ $<

$(B)/tests/relay_%: $(B)/tests/relay_%.o $(B)/lib/librgpu-base.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS_BASE)

UNIT_TESTS += $(B)/tests/relay_text $(B)/tests/relay_link
.PRECIOUS: $(B)/tests/relay_%.o
