# SPDX-License-Identifier: MIT
# The kernel module: `make kmod [KDIR=…]` builds $(B)/kmod/<kernel release>/rgpu.ko and leaves the tree clean.

KDIR ?= /lib/modules/$(shell uname -r)/build
KMOD_SRC := Kbuild dkms.conf $(wildcard kmod/*.c kmod/*.h) $(wildcard uapi/linux/*.h)
KMOD_FLAGS ?=

# A folder of links, so that kbuild's products stay out of the tree. The module's own make decides what is old.
.PHONY: kmod
kmod:
	@test -f "$(KDIR)/Makefile" || { echo "kmod: no kernel headers at KDIR=$(KDIR): install linux-headers-$$(uname -r), or name others" >&2; exit 1; }
	@rel=$$(sed -n 's/.*UTS_RELEASE "\(.*\)"/\1/p' "$(KDIR)/include/generated/utsrelease.h") && d=$(abspath $(B))/kmod/$$rel && mkdir -p $$d/kmod $$d/uapi/linux && \
	for f in $(KMOD_SRC); do ln -sfn $(CURDIR)/$$f $$d/$$f; done && \
	$(MAKE) --no-print-directory -C "$(KDIR)" M=$$d CFLAGS= LDFLAGS= $(KMOD_FLAGS) modules

# The module's tests, for a guest where they are the proxy themselves. kselftest's own Makefile is beside them.
KMOD_TESTS += $(patsubst tests/selftests/rgpu/%.c,$(B)/tests/kmod/%,$(filter-out %/nl.c %/stub.c,$(wildcard tests/selftests/rgpu/*.c)))

# The protocol of the rings, in every interleaving.
UNIT_TESTS += tests/model/ring.t

$(B)/tests/kmod/%: tests/selftests/rgpu/%.c tests/selftests/rgpu/nl.c tests/selftests/rgpu/stub.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -o $@ $^ -lpthread

# The same tests on kernels that look for faults (scripts/debug-kernel): KASAN, lockdep, leaks, failing allocations, coverage; then
# random calls for FUZZ_SECS; then data races. `make check-debug`, or one shard of check-long at a time.
FUZZ_SECS ?= 1800
KMOD_COVERAGE ?= 80

$(B)/tests/kcov.so: tests/vm/kcov.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -shared $< -o $@ -ldl

# The module with line numbers, for a debug kernel's build folder.
.PHONY: kmod-kasan kmod-kcsan
kmod-kasan kmod-kcsan: kmod-%: $(KMOD_TESTS) $(B)/tests/kcov.so guest-lists
	scripts/debug-kernel $*
	$(MAKE) --no-print-directory kmod KDIR="$$(scripts/setup --kernel 6.1-$* kdir)" KMOD_FLAGS="KCFLAGS='-g -ftrivial-auto-var-init=pattern'"
	@printf '%s\n' $(B)/tests/kmod/fuzz $(B)/tests/kmod/stress >$(B)/tests/kmod-random.list

LONG += kmod-kasan-suite kmod-kasan-fuzz kmod-kcsan-suite
.PHONY: check-debug long-kmod-kasan-suite long-kmod-kasan-fuzz long-kmod-kcsan-suite
check-debug: long-kmod-kasan-suite long-kmod-kasan-fuzz long-kmod-kcsan-suite

long-kmod-kasan-suite: kmod-kasan
	rm -rf $(B)/kcov-suite && mkdir -p $(B)/kcov-suite
	prove --failures --comments tests/long/kasan-suite.t
	tests/vm/kcov-report $(B)/kmod/*-kasan/rgpu.ko $(B)/kcov-suite $(KMOD_COVERAGE)

long-kmod-kasan-fuzz: kmod-kasan
	rm -rf $(B)/kcov-fuzz && mkdir -p $(B)/kcov-fuzz
	RGPU_FUZZ_SECS=$(FUZZ_SECS) prove --failures --comments tests/long/kasan-fuzz.t
	tests/vm/kcov-report $(B)/kmod/*-kasan/rgpu.ko $(B)/kcov-fuzz

long-kmod-kcsan-suite: kmod-kcsan
	prove --failures --comments tests/long/kcsan-suite.t

# As a kernel maintainer runs them: built with the kernel's lib.mk, run by its runner, both from Debian's linux-source; and as an
# administrator gets the module, by DKMS; asleep; and on the newest kernel. All in guests, a shard of check-long for each kind.
KSELFTEST := $(abspath $(B))/kselftest

KMOD_KERNEL := kmod-kselftest-6.1 kmod-kselftest-6.12 kmod-dkms kmod-suspend kmod-newest kmod-style

.PHONY: kselftest check-kernel $(KMOD_KERNEL:%=long-%)
check-kernel: $(KMOD_KERNEL:%=long-%)
LONG += $(KMOD_KERNEL)

kselftest:
	rm -rf $(KSELFTEST)
	mkdir -p $(KSELFTEST)/obj $(KSELFTEST)/rgpu
	src=$$(scripts/debug-kernel source)/tools/testing/selftests && \
	$(MAKE) -s -C tests/selftests/rgpu KSFT=$$src OUTPUT=$(KSELFTEST)/obj INSTALL_PATH=$(KSELFTEST)/rgpu install && \
	$(MAKE) -s -C tests/selftests/rgpu KSFT=$$src OUTPUT=$(KSELFTEST)/obj COLLECTION=rgpu emit_tests >$(KSELFTEST)/kselftest-list.txt && \
	cp -r $$src/kselftest $$src/run_kselftest.sh $(KSELFTEST)/

# For a guest that sleeps and so has nothing but RAM.
$(B)/tests/kmod-suspend: tests/selftests/rgpu/endure.c tests/selftests/rgpu/nl.c tests/selftests/rgpu/stub.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -static -o $@ $^ -lpthread

long-kmod-kselftest-6.1 long-kmod-kselftest-6.12: long-kmod-%: modules kselftest
	@mkdir -p $(B)/tests
	@echo $(KSELFTEST)/run_kselftest.sh >$(B)/tests/kselftest.list
	prove --failures --comments tests/long/$*.t

long-kmod-dkms: $(KMOD_TESTS) guest-lists
	@echo tests/vm/dkms-install >$(B)/tests/dkms.list
	prove --failures --comments tests/long/dkms-6.1.t tests/long/dkms-6.12.t

long-kmod-suspend: modules $(B)/tests/kmod-suspend
	prove --failures --comments tests/long/suspend-6.1.t tests/long/suspend-6.12.t

long-kmod-newest: $(KMOD_TESTS) guest-lists
	d=$(abspath $(B))/kmod/$$(scripts/newest-kernel) && mkdir -p $$d/kmod $$d/uapi/linux && \
	for f in $(KMOD_SRC); do ln -sfn $(CURDIR)/$$f $$d/$$f; done && scripts/newest-kernel build $$d
	prove --failures --comments tests/long/newest.t

# The kernel's own checkers.
long-kmod-style:
	prove --failures --comments scripts/kmod-style
