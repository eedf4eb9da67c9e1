# SPDX-License-Identifier: MIT
# Top of the build: products of every room, the demo, the tests, the install. `make help` lists the targets.

B ?= build
CC ?= gcc
PY ?= python3
CUDA_HOME ?= $(shell scripts/setup --print-cuda-home 2>/dev/null)
NVCC ?= $(CUDA_HOME)/bin/nvcc
PREFIX ?= /usr
DESTDIR ?=
SANITIZE ?=

WARN := -Wall -Wextra -Werror
CFLAGS ?= -O2 -g
override CFLAGS += -std=gnu17 $(WARN) -fPIC -fvisibility=hidden -D_GNU_SOURCE -Iuapi -I$(B)/gen -I. -MMD -MP
ifneq ($(SANITIZE),)
override CFLAGS += -fsanitize=$(SANITIZE) -fno-omit-frame-pointer
override LDFLAGS += -fsanitize=$(SANITIZE)
endif

ALL :=
UNIT_TESTS :=

.PHONY: all
all: products

include $(sort $(wildcard */room.mk))

.PHONY: products
products: $(ALL)

-include $(shell test -d $(B) && find $(B) -name '*.d')
