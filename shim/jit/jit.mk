# SPDX-License-Identifier: MIT
# libnvrtc.so.13 and libnvJitLink.so.13: they stand before NVIDIA's. Included by shim/room.mk.

JIT_LIBS := $(B)/lib/libnvrtc.so.13 $(B)/lib/libnvJitLink.so.13

$(B)/shim/jit/%.o: shim/jit/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -c -o $@ $<

$(B)/lib/libnvrtc.so.13: $(B)/shim/jit/nvrtc.o
$(B)/lib/libnvJitLink.so.13: $(B)/shim/jit/nvjitlink.o $(B)/shim/jit/lto.o $(patsubst %,$(B)/lib/%.o,fatbin objfile ptxlink ptxscan)

$(JIT_LIBS): $(B)/shim/jit/genuine.o shim/jit/nvrtc.map shim/jit/nvjitlink.map
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -shared -Wl,-soname,$(@F) -Wl,-Bsymbolic -Wl,-z,defs \
		-Wl,--version-script=shim/jit/$(if $(findstring nvrtc,$@),nvrtc,nvjitlink).map -o $@ $(filter %.o,$^) -llz4 -lzstd -lpthread -ldl

ALL += $(JIT_LIBS)
