# SPDX-License-Identifier: MIT
# server/: rgpu-server. libserver.a is all of it but main() and the API code, which the tests replace by a stub.
SERVER_API_SRC := $(wildcard server/call*.c server/session*.c server/driver*.c)
SERVER_SRC := $(filter-out server/main.c $(SERVER_API_SRC),$(wildcard server/*.c))
SERVER_OBJS := $(SERVER_SRC:server/%.c=$(B)/server/%.o)
SERVER_BASE := $(B)/lib/librgpu-web.a $(B)/lib/librgpu-base.a
LIBS_SERVER = $(LIBS_BASE) $(LIBS_WEB) -linih -lseccomp

$(B)/server/control.o $(B)/server/view.o: override CFLAGS += -DRGPU_VERSION='"$(VERSION)"'

$(B)/server/%.o: server/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -c -o $@ $<

# It knows images by their calls' numbers.
$(B)/server/cache.o: | $(B)/gen/.stamp

$(B)/server/libserver.a: $(SERVER_OBJS)
	@rm -f $@
	ar rcs $@ $^

SERVER_TEST_STUB := $(B)/server/tests/stub.o $(B)/server/tests/peer.o
SERVER_TESTS := stamps cache places packed lanes resume hostile process liars ends confine

# The API code: hand-written here, generated in api's room. Without it there is no server yet.
ifneq ($(SERVER_API_SRC),)
SERVER_API_OBJS := $(SERVER_API_SRC:server/%.c=$(B)/server/%.o) $(API_SERVER_OBJS)

$(B)/bin/rgpu-server: $(B)/server/main.o $(SERVER_API_OBJS) $(B)/server/libserver.a $(SERVER_BASE)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_SERVER) -ldl

ALL += $(B)/bin/rgpu-server

# One that does a record wrong, for tests/api/outputs.py.
$(B)/tests/spoiled-server: $(B)/server/main.o $(SERVER_API_OBJS) $(B)/server/tests/spoil.o $(B)/server/libserver.a $(SERVER_BASE)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -Wl,--wrap=srv_find -o $@ $^ $(LIBS_SERVER) -ldl

$(B)/server/tests/spoil.o: tests/api/spoil.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -c -o $@ $<
endif

# The whole server with the stub behind it, for tests of processes, leases and hostile clients.
$(B)/tests/server-stubd: $(B)/server/main.o $(B)/server/tests/stub.o $(B)/server/libserver.a $(SERVER_BASE)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_SERVER)

$(B)/server/tests/%.o: tests/server/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -c -o $@ $<

$(SERVER_TESTS:%=$(B)/tests/server-%): $(B)/tests/server-%: $(B)/server/tests/test_%.o $(SERVER_TEST_STUB) $(B)/server/libserver.a $(SERVER_BASE)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_SERVER)

$(B)/tests/server-config $(B)/tests/server-plain: $(B)/tests/server-%: $(B)/server/tests/test_%.o $(B)/lib/librgpu-engine.a $(SERVER_BASE)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_SERVER)

UNIT_TESTS += $(B)/tests/server-config $(B)/tests/server-plain

$(B)/tests/server-process $(B)/tests/server-liars $(B)/tests/server-ends: $(B)/server/tests/procs.o
$(B)/tests/server-process $(B)/tests/server-liars $(B)/tests/server-ends $(B)/tests/server-config $(B)/tests/server-plain: | $(B)/tests/server-stubd

UNIT_TESTS += $(SERVER_TESTS:%=$(B)/tests/server-%)
