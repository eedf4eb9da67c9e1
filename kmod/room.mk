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

$(B)/tests/kmod/%: tests/selftests/rgpu/%.c tests/selftests/rgpu/nl.c tests/selftests/rgpu/stub.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -o $@ $^ -lpthread
