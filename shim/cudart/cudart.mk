# SPDX-License-Identifier: MIT
# libcudart.so.13: our CUDA runtime over the driver's public functions. Included by shim/room.mk.

CUDART := $(B)/shim/cudart
CUDART_CFLAGS := -isystem $(CUDA_HOME)/include -Wno-deprecated-declarations

# Files whose functions take the default stream are compiled for both of its kinds.
CUDART_TWICE := graph_launch launch copy copy2d copy3d copyarray batch order entry
CUDART_ONCE := box graph graph_node graph_params graph_exec array channel texture drv init error register config kind memory peer func device props stream library pool absent unsupported
CUDART_OBJS := $(CUDART_ONCE:%=$(CUDART)/%.o) $(CUDART_TWICE:%=$(CUDART)/%.o) $(CUDART_TWICE:%=$(CUDART)/%.ptsz.o)

$(CUDART)/%.ptsz.o: shim/cudart/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(CUDART_CFLAGS) -DCUDART_PER_THREAD -c -o $@ $<

$(CUDART)/%.o: shim/cudart/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(CUDART_CFLAGS) -c -o $@ $<

$(CUDART)/stubs.c: shim/cudart/genstubs.py shim/cudart/never.txt api/libcudart-13.0-exports.txt $(CUDART_OBJS)
	$(PY) shim/cudart/genstubs.py api/libcudart-13.0-exports.txt shim/cudart/never.txt $@ $(CUDART_OBJS)

$(CUDART)/stubs.o: $(CUDART)/stubs.c
	$(CC) $(CFLAGS) -c -o $@ $<

$(B)/lib/libcudart.so.13: $(CUDART_OBJS) $(CUDART)/stubs.o shim/cudart/cudart.map
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -shared -Wl,-soname,libcudart.so.13 -Wl,--version-script=shim/cudart/cudart.map -Wl,-z,defs -o $@ \
		$(CUDART_OBJS) $(CUDART)/stubs.o -ldl -lpthread
	ln -sf libcudart.so.13 $(B)/lib/libcudart.so

ALL += $(B)/lib/libcudart.so.13
-include shim/cudart/v12/v12.mk
