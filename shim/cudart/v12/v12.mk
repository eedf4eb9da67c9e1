# SPDX-License-Identifier: MIT
# libcudart.so.12: the same objects under CUDA 12's names, and what was otherwise then. Included by shim/cudart/cudart.mk.

V12 := $(B)/shim/cudart/v12
V12_OWN := $(V12)/calls.o $(V12)/structs.o

$(V12)/%.o: shim/cudart/v12/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(CUDART_CFLAGS) -c -o $@ $<

$(V12)/renamed.o: $(CUDART_OBJS) shim/cudart/v12/rename.txt
	@mkdir -p $(@D)
	$(CC) -r -nostdlib -o $@.all $(CUDART_OBJS)
	objcopy --redefine-syms=shim/cudart/v12/rename.txt $@.all $@
	@rm -f $@.all

# --other: 13 has names that 12 has not; the map keeps them inside.
$(V12)/stubs.c: shim/cudart/genstubs.py shim/cudart/never.txt api/libcudart-12.9-exports.txt $(V12)/renamed.o $(V12_OWN)
	$(PY) shim/cudart/genstubs.py --other api/libcudart-12.9-exports.txt shim/cudart/never.txt $@ $(V12)/renamed.o $(V12_OWN)

$(V12)/stubs.o: $(V12)/stubs.c
	$(CC) $(CFLAGS) -c -o $@ $<

$(V12)/cudart.map: api/libcudart-12.9-exports.txt
	@mkdir -p $(@D)
	{ echo 'libcudart.so.12 { global:'; sed 's/$$/;/' $<; echo 'local: *; };'; } >$@

$(B)/lib/libcudart.so.12: $(V12)/renamed.o $(V12_OWN) $(V12)/stubs.o $(V12)/cudart.map
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -shared -Wl,-soname,libcudart.so.12 -Wl,--version-script=$(V12)/cudart.map -Wl,-z,defs -o $@ $(filter %.o,$^) -ldl -lpthread

ALL += $(B)/lib/libcudart.so.12
