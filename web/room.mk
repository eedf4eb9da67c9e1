# SPDX-License-Identifier: MIT
# web/: the page and the metrics that rgpu-proxy and rgpu-server serve.
WEB_OBJS := $(patsubst web/%.c,$(B)/web/%.o,$(wildcard web/*.c)) $(B)/web/page.o
LIBS_WEB := -lmicrohttpd

$(B)/web/%.o: web/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -c -o $@ $<

$(B)/web/page.o: web/page.S web/page.html
	@mkdir -p $(@D)
	$(CC) -c -o $@ $<

$(B)/lib/librgpu-web.a: $(WEB_OBJS)
	@mkdir -p $(@D)
	@rm -f $@
	ar rcs $@ $^

$(B)/tests/web-text: tests/web/test_text.c $(B)/lib/librgpu-web.a $(B)/lib/librgpu-base.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS_WEB) $(LIBS_BASE)

UNIT_TESTS += $(B)/tests/web-text

$(B)/tests/web-fake: tests/web/fake.c $(B)/lib/librgpu-web.a $(B)/lib/librgpu-base.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS_WEB) $(LIBS_BASE) -lm

LONG += page
.PHONY: long-page
long-page: $(B)/tests/web-fake
	$(PY) tests/web/look.py $(B)/tests/web-fake $(B)/page
