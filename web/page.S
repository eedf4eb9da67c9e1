/* SPDX-License-Identifier: MIT */
/* The page's bytes, from web_page to web_page_end. */
	.section .rodata
	.globl	web_page, web_page_end
	.hidden	web_page, web_page_end
web_page:
	.incbin	"web/page.html"
web_page_end:
	.section .note.GNU-stack,"",@progbits
