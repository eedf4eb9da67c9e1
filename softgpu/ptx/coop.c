/* SPDX-License-Identifier: MIT */
/* The device runtime's grid barrier, as code built with -rdc=true calls it: PTX of ours stands for libcudadevrt's. */
#include <string.h>

#include "softgpu/ptx/ast.h"

/*
 * The handle is the address of the launch's barrier, 0 in one that is not cooperative. Its second word counts arrivals below bit
 * 31, which the last of a round turns: block 0 adds what the others leave to make that so.
 */
static const char text[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			   ".visible .func (.param .b64 r) cudaCGGetIntrinsicHandle(.param .b32 scope)\n"
			   "{\n"
			   "	.reg .pred %p;\n"
			   "	.reg .b32 %s, %lo, %hi;\n"
			   "	.reg .b64 %h;\n"
			   "	ld.param.b32 %s, [scope];\n"
			   "	mov.b32 %hi, %envreg1;\n"
			   "	mov.b32 %lo, %envreg2;\n"
			   "	mov.b64 %h, {%lo, %hi};\n"
			   "	setp.eq.s32 %p, %s, 1;\n"
			   "	selp.b64 %h, %h, 0, %p;\n"
			   "	st.param.b64 [r], %h;\n"
			   "	ret;\n"
			   "}\n"
			   ".visible .func (.param .b32 r) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)\n"
			   "{\n"
			   "	.reg .pred %p, %first;\n"
			   "	.reg .b32 %a, %b, %n, %old, %now;\n"
			   "	.reg .b64 %h;\n"
			   "	ld.param.b64 %h, [handle];\n"
			   "	setp.eq.s64 %p, %h, 0;\n"
			   "	@%p bra INVALID;\n"
			   "	bar.sync 0;\n"
			   "	mov.u32 %a, %tid.x;\n"
			   "	mov.u32 %b, %tid.y;\n"
			   "	or.b32 %a, %a, %b;\n"
			   "	mov.u32 %b, %tid.z;\n"
			   "	or.b32 %a, %a, %b;\n"
			   "	setp.ne.s32 %p, %a, 0;\n"
			   "	@%p bra WAIT;\n"
			   "	mov.u32 %n, %nctaid.x;\n"
			   "	mov.u32 %b, %nctaid.y;\n"
			   "	mul.lo.s32 %n, %n, %b;\n"
			   "	mov.u32 %b, %nctaid.z;\n"
			   "	mul.lo.s32 %n, %n, %b;\n"
			   "	sub.s32 %n, 0x80000001, %n;\n"
			   "	mov.u32 %a, %ctaid.x;\n"
			   "	mov.u32 %b, %ctaid.y;\n"
			   "	or.b32 %a, %a, %b;\n"
			   "	mov.u32 %b, %ctaid.z;\n"
			   "	or.b32 %a, %a, %b;\n"
			   "	setp.eq.s32 %first, %a, 0;\n"
			   "	selp.b32 %n, %n, 1, %first;\n"
			   "	membar.gl;\n"
			   "	atom.global.add.u32 %old, [%h+4], %n;\n"
			   "AGAIN:\n"
			   "	ld.volatile.global.u32 %now, [%h+4];\n"
			   "	xor.b32 %now, %now, %old;\n"
			   "	setp.ge.s32 %p, %now, 0;\n"
			   "	@%p bra AGAIN;\n"
			   "	membar.gl;\n"
			   "WAIT:\n"
			   "	bar.sync 0;\n"
			   "	st.param.b32 [r], 0;\n"
			   "	ret;\n"
			   "INVALID:\n"
			   "	st.param.b32 [r], 1;\n"
			   "	ret;\n"
			   "}\n";

void coop_functions(struct load *ld)
{
	u32 version = ld->version, target = ld->target;
	bool wanted = false;

	/* libcudadevrt's are made of system calls of a GPU's own. */
	for (struct func_ast *f = ld->funcs; f; f = f->next)
		if (!strcmp(f->name, "cudaCGGetIntrinsicHandle") || !strcmp(f->name, "cudaCGSynchronize")) {
			f->has_body = false;
			wanted = true;
		}
	if (!wanted)
		return;
	lex_init(&ld->lx, text, strlen(text));
	parse_module(ld);
	ld->version = version;
	ld->target = target;
}
