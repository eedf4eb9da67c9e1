# SPDX-License-Identifier: MIT
# lib/graph/: CUDA graphs as data, linked into libcuda.so.1 and libsoftgpu.so.

GRAPH_OBJS := $(patsubst lib/graph/%.c,$(B)/lib/graph/%.o,$(wildcard lib/graph/*.c))

$(GRAPH_OBJS): override CFLAGS += -isystem $(CUDA_HOME)/include -Wno-deprecated-declarations
