# SPDX-License-Identifier: MIT
# lib/: what every program of ours stands on: TLS links, keys, addresses, logs.
LIB_BASE_OBJS := $(patsubst lib/%.c,$(B)/lib/%.o,$(wildcard lib/*.c))
LIBS_BASE := -lssl -lcrypto -llz4 -lzstd -lpthread

$(B)/lib/%.o: lib/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -c -o $@ $<

$(B)/lib/librgpu-base.a: $(LIB_BASE_OBJS)
	@rm -f $@
	ar rcs $@ $^

ALL += $(B)/lib/librgpu-base.a
