# SPDX-License-Identifier: MIT
# Fuzzers of softgpu's loader and of what comes off the wire: make check replays their corpus, check-long runs them (scripts/fuzz).

# Replay: the target with an ordinary main, over the corpus in the tree.
FUZZ_TARGETS := ptx fatbin
FUZZ_LINK_ptx := $(B)/softgpu/libptx.a
FUZZ_LINK_fatbin := $(SOFTGPU_OBJS) $(SOFTGPU_PTX_OBJS)
FUZZ_LIBS := -Wl,--wrap=log_line -llz4 -lzstd -lpthread -lm

$(FUZZ_TARGETS:%=$(B)/tests/fuzz-%): $(B)/tests/fuzz-%: tests/fuzz/%.c tests/fuzz/replay.c tests/fuzz/fuzz.h tests/tap.h $(SOFTGPU_OBJS) $(SOFTGPU_PTX_OBJS)
	@mkdir -p $(@D)
	$(CC) $(filter-out -MMD -MP,$(CFLAGS)) $(SOFTGPU_CFLAGS) -DCORPUS='"tests/fuzz/corpus/$*"' $(LDFLAGS) -o $@ \
		$< tests/fuzz/replay.c $(FUZZ_LINK_$*) $(FUZZ_LIBS)

# Of the link: the decoders of the worker, the listener and the relay, with tests/fuzz/link.c in the place of lib/link.c, and that one.
WIRE_FUZZ_TARGETS := frames control relay handshake config
WIRE_FUZZ_LINK_frames := tests/fuzz/link.c $(B)/server/tests/stub.o $(B)/server/libserver.a
WIRE_FUZZ_LINK_control := tests/fuzz/link.c $(B)/server/libserver.a
WIRE_FUZZ_LINK_relay := tests/fuzz/link.c $(B)/lib/librgpu-engine.a
WIRE_FUZZ_LIBS := $(LIBS_BASE) -linih -lseccomp

$(WIRE_FUZZ_TARGETS:%=$(B)/tests/fuzz-%): $(B)/tests/fuzz-%: tests/fuzz/%.c tests/fuzz/link.c tests/fuzz/replay.c tests/fuzz/fuzz.h tests/tap.h \
		$(B)/server/tests/stub.o $(B)/server/libserver.a $(B)/lib/librgpu-engine.a $(B)/lib/librgpu-base.a
	@mkdir -p $(@D)
	$(CC) $(filter-out -MMD -MP,$(CFLAGS)) -DCORPUS='"tests/fuzz/corpus/$*"' $(LDFLAGS) -o $@ \
		$< tests/fuzz/replay.c $(WIRE_FUZZ_LINK_$*) $(B)/lib/librgpu-base.a $(WIRE_FUZZ_LIBS)

UNIT_TESTS += $(FUZZ_TARGETS:%=$(B)/tests/fuzz-%) $(WIRE_FUZZ_TARGETS:%=$(B)/tests/fuzz-%)

# The fuzzers: everything by clang, with coverage for libFuzzer but in the instructions' handlers, whose choice says nothing new.
FUZZ_CC ?= clang-14
FUZZ_B := $(B)/fuzz
FUZZ_SAN := -fsanitize=address,undefined -fno-sanitize-recover=all
FUZZ_CFLAGS = -std=gnu17 -O1 -g -w -D_GNU_SOURCE -DFUZZING -DRGPU_VERSION='"fuzz"' -Iuapi -I$(B)/gen -I. $(SOFTGPU_CFLAGS) $(PTX_FP) $(FUZZ_SAN) -MMD -MP
FUZZ_COVER := -fsanitize=fuzzer-no-link

FUZZ_PTX_OBJS := $(filter-out $(FUZZ_B)/softgpu/ptx/ops_%,$(PTX_SRC:%.c=$(FUZZ_B)/%.o))
FUZZ_OPS_OBJS := $(patsubst %.c,$(FUZZ_B)/%.op,$(filter softgpu/ptx/ops_%,$(PTX_SRC))) \
	$(foreach v,v2 v3 v4,$(PTX_LEVEL_SRC:%.c=$(FUZZ_B)/%.$(v).op))
# libsoftgpu.so's objects, wherever their sources are.
FUZZ_DRV_OBJS := $(patsubst $(B)/%,$(FUZZ_B)/%,$(patsubst $(B)/softgpu/api_%.o,$(B)/softgpu/api_%.op,$(patsubst \
	$(B)/softgpu/fatbin.o,$(B)/lib/fatbin.o,$(SOFTGPU_OBJS:$(B)/softgpu/lib/%=$(B)/lib/%))))

$(FUZZ_B)/%.o: %.c
	@mkdir -p $(@D)
	$(FUZZ_CC) $(FUZZ_CFLAGS) $(FUZZ_COVER) -c -o $@ $<

$(FUZZ_B)/softgpu/ptx/ops_%.op: softgpu/ptx/ops_%.c
	@mkdir -p $(@D)
	$(FUZZ_CC) $(FUZZ_CFLAGS) -march=x86-64-v2 -c -o $@ $<

define FUZZ_LEVEL
$(FUZZ_B)/softgpu/ptx/%.$(1).op: softgpu/ptx/%.c
	@mkdir -p $$(@D)
	$$(FUZZ_CC) $$(FUZZ_CFLAGS) $$(PTX_FLAGS_$(1)) -DLEVEL=$(1) -c -o $$@ $$<
endef
$(foreach v,v2 v3 v4,$(eval $(call FUZZ_LEVEL,$(v))))

$(FUZZ_B)/softgpu/api_%.op: $(SOFTGPU_B)/api_%.c
	@mkdir -p $(@D)
	$(FUZZ_CC) $(FUZZ_CFLAGS) -c -o $@ $<

$(FUZZ_B)/gen/tests/fuzz/ptx_words.h: tests/fuzz/words.py $(wildcard softgpu/ptx/*.[ch] softgpu/ptx/*.def)
	@mkdir -p $(@D)
	$(PY) $< $(filter %.c %.def,$^) >$@.tmp && mv $@.tmp $@

$(FUZZ_B)/tests/fuzz/ptx_mutate.o: $(FUZZ_B)/gen/tests/fuzz/ptx_words.h
$(FUZZ_B)/tests/fuzz/ptx_mutate.o: FUZZ_CFLAGS += -I$(FUZZ_B)/gen

$(FUZZ_B)/fuzz-ptx: $(FUZZ_B)/tests/fuzz/ptx.o $(FUZZ_B)/tests/fuzz/ptx_mutate.o $(FUZZ_PTX_OBJS) $(FUZZ_OPS_OBJS)
	$(FUZZ_CC) $(FUZZ_SAN) -fsanitize=fuzzer -o $@ $^ $(FUZZ_LIBS)

$(FUZZ_B)/fuzz-fatbin: $(FUZZ_B)/tests/fuzz/fatbin.o $(FUZZ_DRV_OBJS) $(FUZZ_PTX_OBJS) $(FUZZ_OPS_OBJS)
	$(FUZZ_CC) $(FUZZ_SAN) -fsanitize=fuzzer -o $@ $^ $(FUZZ_LIBS)

# Two rooms have a control.o: an archive each.
$(FUZZ_B)/server/cache.o: | $(B)/gen/.stamp
$(FUZZ_B)/libserver.a: $(SERVER_SRC:%.c=$(FUZZ_B)/%.o) $(FUZZ_B)/tests/server/stub.o
$(FUZZ_B)/libengine.a: $(patsubst %.c,$(FUZZ_B)/%.o,$(wildcard $(addprefix usermode-proxy/,control.c rtt.c relay*.c)))
$(FUZZ_B)/libbase.a: $(LIB_BASE_OBJS:$(B)/%=$(FUZZ_B)/%)
WIRE_FUZZ_ARCHIVES := $(addprefix $(FUZZ_B)/,libserver.a libengine.a libbase.a)
$(WIRE_FUZZ_ARCHIVES):
	@rm -f $@
	ar rcs $@ $^

$(FUZZ_B)/fuzz-frames $(FUZZ_B)/fuzz-control $(FUZZ_B)/fuzz-relay: $(FUZZ_B)/tests/fuzz/link.o

$(WIRE_FUZZ_TARGETS:%=$(FUZZ_B)/fuzz-%): $(FUZZ_B)/fuzz-%: $(FUZZ_B)/tests/fuzz/%.o $(WIRE_FUZZ_ARCHIVES)
	$(FUZZ_CC) $(FUZZ_SAN) -fsanitize=fuzzer -o $@ $(filter %.o,$^) $(WIRE_FUZZ_ARCHIVES) $(WIRE_FUZZ_LIBS)

LONG_FUZZ := $(addprefix fuzz-,$(FUZZ_TARGETS) $(WIRE_FUZZ_TARGETS))
LONG += $(LONG_FUZZ)
.PHONY: $(LONG_FUZZ:%=long-%)
$(LONG_FUZZ:%=long-%): long-fuzz-%:
	scripts/fuzz $*
