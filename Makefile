# SPDX-License-Identifier: MIT
# Top of the build: products of every room, the demo, the tests, the install. `make help` lists the targets.

B ?= build
ifeq ($(origin CC),default)
CC := gcc
endif
PY ?= /usr/bin/python3
ifeq ($(CUDA_HOME),)
CUDA_HOME := $(shell scripts/setup --print-cuda-home 2>/dev/null)
endif
ifeq ($(CUDA_HOME),)
ifneq ($(filter-out setup demo check check-long list-long kmod modules install-dkms format-check clean help,$(or $(MAKECMDGOALS),all)),)
$(error no CUDA toolkit 13 on this machine: run `make setup`, or name one in CUDA_HOME)
endif
endif
NVCC ?= $(CUDA_HOME)/bin/nvcc
PREFIX ?= /usr
DESTDIR ?=
SANITIZE ?=

WARN := -Wall -Wextra -Werror
# The version stands in dkms.conf.
VERSION := $(shell sed -n 's/^PACKAGE_VERSION="*\([^"]*\)"*$$/\1/p' dkms.conf)

CFLAGS ?= -O2 -g
override CFLAGS += -std=gnu17 $(WARN) -fPIC -fvisibility=hidden -D_GNU_SOURCE -Iuapi -I$(B)/gen -I. -MMD -MP
ifneq ($(SANITIZE),)
# With sanitizers gcc's flow analysis sees paths that are not there: these two warn for nothing.
override CFLAGS += -fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer -Wno-format-truncation -Wno-maybe-uninitialized \
	$(if $(findstring thread,$(SANITIZE)),-Wno-tsan)
override LDFLAGS += -fsanitize=$(SANITIZE)
endif

# What the rooms add to, in their room.mk:
#	ALL		products
#	UNIT_TESTS	TAP programs of the host
#	KMOD_TESTS	TAP programs of a guest that has the module and nothing else (they may be the proxy themselves)
#	GUEST_TESTS	TAP programs of a guest that has module, proxy and server
#	BENCHES		targets that print one bench each
#	LONG		shards of check-long: NAME has the target long-NAME
ALL :=
UNIT_TESTS :=
KMOD_TESTS :=
GUEST_TESTS :=
BENCHES :=
LONG :=

.PHONY: all
all: products

include $(sort $(wildcard */room.mk */*/room.mk))

.PHONY: products
products: $(ALL)

# Tests -------------------------------------------------------------------------------------------------------------

# Each end-to-end program runs three times: direct on the host, through /dev/rgpu0 on two guest kernels.
E2E_T := $(sort $(wildcard tests/e2e/*.t))
VM_TESTS := $(sort $(wildcard tests/vm/*.t))
# No test runs for ever: on time-out it gets TERM, so that what it started is stopped too. The limit is that of a whole guest
# on a machine that emulates it and has other things to do.
PROVE := prove --jobs 2 --failures --comments --timer --exec 'timeout --foreground -k 20 1500'

export B
# Before set-up there is no toolkit yet: the make after it must look again.
ifneq ($(CUDA_HOME),)
export CUDA_HOME NVCC
endif

.PHONY: setup
setup:
	scripts/setup

# Set-up first, by a make of its own: it installs what this file asks about while it is read.
.PHONY: check check-built check-unit
check:
	scripts/setup
	$(MAKE) -j$$(nproc) check-built

check-built: all modules $(UNIT_TESTS) $(KMOD_TESTS) $(GUEST_TESTS) e2e-programs guest-lists
	RGPU_TEST_TRANSPORT=direct $(PROVE) $(VM_TESTS) $(E2E_T) $(UNIT_TESTS)

check-unit: $(UNIT_TESTS)
	$(PROVE) $(UNIT_TESTS)

# What an emulated guest takes minutes for, and where the kernel under the module matters least: on 6.1 only; `make long-e2e` has all of it on 6.12.
GUEST_ONCE := $(addprefix tests/e2e/,bench.t certs.t flow.t progress.t smi.t)

# What tests/vm/*.t run in their guests.
.PHONY: guest-lists
guest-lists:
	@mkdir -p $(B)/tests
	@printf '%s\n' $(KMOD_TESTS) >$(B)/tests/kmod.list
	@printf '%s\n' $(GUEST_TESTS) $(E2E_T) >$(B)/tests/guest.list
	@printf '%s\n' $(GUEST_TESTS) $(filter-out $(GUEST_ONCE),$(E2E_T)) >$(B)/tests/guest-short.list

# The module for both guest kernels; `make kmod KDIR=…` (kmod/room.mk) builds it for one.
.PHONY: modules
modules:
	@for v in $(or $(KERNELS),6.1 6.12); do \
		kdir=$$(scripts/setup --kernel $$v kdir) || { echo "modules: none for $$v, its guests will not start" >&2; continue; }; \
		$(MAKE) --no-print-directory kmod KDIR="$$kdir" || exit; \
	done

# Leaks of third-party libraries are not ours to find here; everything else stops the test.
.PHONY: check-asan
check-asan:
	$(MAKE) B=$(B)/asan SANITIZE=address,undefined check-unit

# Threads, fork, exit, dlclose, signals and dead servers under ThreadSanitizer. softgpu itself is built without: kernels race by
# right, and what it shares with the server goes through locks that the sanitizer sees anyhow. Mapped memory is compared with what went across
# while kernels and the program write it: lib/twin.c is not looked at there.
TSAN_TESTS := $(patsubst %,api-%,life session hostfunc held stream trips shared) $(patsubst %,server-%,lanes resume process stamps) \
	$(patsubst %,relay_%,order cut control direct proxy hostile)
TSAN_SOFTGPU := $(patsubst %,lib/%,libsoftgpu.so libsoftcublas.so)

.PHONY: check-tsan
check-tsan: $(TSAN_SOFTGPU:%=$(B)/%)
	mkdir -p $(B)/tsan/lib
	cp $(TSAN_SOFTGPU:%=$(B)/%) $(B)/tsan/lib/
	$(MAKE) B=$(B)/tsan SANITIZE=thread $(TSAN_SOFTGPU:%=-o $(B)/tsan/%) $(TSAN_TESTS:%=$(B)/tsan/tests/%)
	rm -f $(B)/tsan/report.*
	TSAN_OPTIONS="suppressions=$(CURDIR)/tests/tsan.supp report_thread_leaks=0 log_path=$(abspath $(B))/tsan/report" \
		$(PROVE) --jobs 1 $(TSAN_TESTS:%=$(B)/tsan/tests/%)
	@! grep -H '^SUMMARY' $(B)/tsan/report.* 2>/dev/null

.PHONY: check-long
check-long:
	scripts/setup
	scripts/check-long $(SHARD)

.PHONY: list-long
list-long:
	@printf '%s\n' $(LONG)

LONG += asan tsan life big fresh format vm once-6.1 once-6.12 e2e
.PHONY: long-format long-asan long-tsan long-life long-big long-fresh long-vm long-once-6.1 long-once-6.12 long-e2e
long-format: format-check
long-asan: check-asan
long-tsan: check-tsan
# What takes gigabytes.
long-big: $(B)/tests/api-big
	RGPU_BIG=1 prove --exec 'timeout --foreground -k 20 3500' --failures --comments $<
# How programs end, 200 times each: no hang and no crash at exit.
long-life: $(B)/tests/api-life
	RGPU_LIFE_ROUNDS=200 prove --exec 'timeout --foreground -k 20 3500' --failures --comments $<
long-fresh:
	scripts/fresh demo check
long-vm: all modules
	prove --failures --comments tests/long/vm.t
long-once-6.1 long-once-6.12: long-%: all modules e2e-programs guest-lists
	@echo tests/e2e/once.t >$(B)/tests/once.list
	prove --failures --comments tests/long/$*.t

long-e2e: all modules e2e-programs guest-lists
	tests/vm/suite "e2e 6.12" 6.12 guest --devices 2 --time-limit 3000

.PHONY: bench
bench: all $(BENCHES)

# Install -----------------------------------------------------------------------------------------------------------
# All but the tests' programs: no compiler of CUDA is needed for these, its headers are.
.PHONY: installables
installables: $(filter-out $(B)/tests/%,$(ALL))

.PHONY: install uninstall
install: installables
	DESTDIR=$(DESTDIR) PREFIX=$(PREFIX) scripts/install install $(B) $(VERSION)

uninstall:
	DESTDIR=$(DESTDIR) PREFIX=$(PREFIX) scripts/install uninstall $(B) $(VERSION)

# The Debian packages and the source package, in $(B)/deb.
.PHONY: deb
deb:
	scripts/deb

# The module's source alone, where DKMS looks for it.
.PHONY: install-dkms
install-dkms:
	install -d $(DESTDIR)/usr/src/rgpu-$(VERSION)
	cp -r --parents Kbuild dkms.conf kmod uapi $(DESTDIR)/usr/src/rgpu-$(VERSION)/

# The rest ----------------------------------------------------------------------------------------------------------

.PHONY: demo
demo:
	scripts/demo

.PHONY: format-check
format-check:
	@command -v clang-format >/dev/null || { echo "format-check: no clang-format; next: apt-get install clang-format" >&2; exit 1; }
	clang-format --dry-run -Werror $$(git ls-files '*.c' '*.h')

.PHONY: clean
clean:
	rm -rf $(B)

.PHONY: help
help:
	@echo 'make                 all products, in $(B)/bin and $(B)/lib'
	@echo 'make setup           packages, guest kernels, a CUDA compiler (demo and check do it by themselves)'
	@echo 'make demo            set up, build, and run CUDA programs in a guest through /dev/rgpu0'
	@echo 'make check           set up, build, and run what CI runs (25 minutes at most)'
	@echo 'make check-unit      the unit tests of the host alone'
	@echo 'make check-asan      the unit tests under ASan and UBSan, in $(B)/asan'
	@echo 'make check-tsan      the threads of shim, proxy and server under TSan, in $(B)/tsan'
	@echo 'make check-long      the long tests, in shards; SHARD=NAME for one of: $(LONG)'
	@echo 'make bench           launches per second, calls and copies against raw TLS; softgpu against C'
	@echo 'make check-kernel    the module'"'"'s tests as kselftest runs them; DKMS; the newest kernel (parts of check-long)'
	@echo 'make modules         rgpu.ko for the two guest kernels (KERNELS=6.1 for one); kmod KDIR=… for another'
	@echo 'make install         to $$(DESTDIR)$$(PREFIX); make uninstall takes it away again'
	@echo 'make deb             Debian packages, in $(B)/deb; lintian has its say'
	@echo 'make format-check    clang-format has nothing to say'
	@echo 'make clean           remove $(B)'

-include $(shell test -d $(B) && find $(B) -path $(B)/deb -prune -o -name '*.d' -type f -print)
