/* SPDX-License-Identifier: MIT */
/* Which forms of which opcodes the lowering knows, which test runs them, and whether it ran them all. */
#ifndef RGPU_TESTS_SOFTGPU_PTX_FORMS_H
#define RGPU_TESTS_SOFTGPU_PTX_FORMS_H

#include <string.h>

#include "softgpu/ptx/exec.h"
#include "tests/tap.h"

/*
 * Each row of the handlers' table belongs to one test program: a new row fails that program until a case of it looks
 * the row up. Rows with ':' are the lowering's own names for shapes of ld, atom, shfl … The test programs are linked with
 * --wrap=ptx_op_find, which notes what the lowering looked for.
 */
static const struct {
	const char *stem, *program;
} form_owners[] = {
	/* by their inner names */
	{"ld:", "mem"},
	{"ldv:", "mem"},
	{"ldp:", "mem"},
	{"lda:", "mem"},
	{"ldpr:", "mem"},
	{"st:", "mem"},
	{"stv:", "mem"},
	{"sta:", "mem"},
	{"localaddr", "mem"},
	{"isspacep:", "fault"},
	{"fence:", "mem"},
	{"atom:min:f16", "isa"},
	{"atom:max:f16", "isa"},
	{"atom:min:bf16", "isa"},
	{"atom:max:bf16", "isa"},
	{"atom:exch:b128", "isa"},
	{"atom:cas:b128", "isa"},
	{"redux:min:f32", "isa"},
	{"redux:max:f32", "isa"},
	{"atom:", "atom"},
	{"shfl:", "warp"},
	{"vote:", "warp"},
	{"match:", "warp"},
	{"redux:", "warp"},
	{"activemask:", "warp"},
	{"elect:", "warp"},
	{"warpsync:", "warp"},
	{"sreg:", "warp"},
	{"cvt:", "cvt"},
	{"cvt.", "cvt"},
	{"setp.", "setp"},
	{"ftz:", "setp"},
	{"mov:", "int"},
	{"pack:", "int"},
	{"unpack:", "int"},
	{"trunc:", "int"},
	{"xorsign:f", "float"},
	{"xorsign:", "half"},
	{"bulk:", "bulk"},
	{"tensormap:", "bulk"},
	{"alloca:", "isa"},
	{"stacksave:", "isa"},
	{"stackrestore:", "isa"},
	{"aligned:", "isa"},
	{"small:", "small"},
	{"video:", "isa"},
	{"lop3:", "int"},
	{"mma:", "mma"},
	{"wmma:small", "mma"},
	{"ldmatrix:bytes", "mma"},
	{"stmatrix:bytes", "mma"},
	{"wmma:", "tensor"},
	{"ldmatrix:", "tensor"},
	{"stmatrix:", "tensor"},
	{"movmatrix:", "tensor"},
	{"mbarrier:", "async"},
	{"cp.async:", "async"},
	/* ptx_text lowers the kernels that drv_texture runs */
	{"tex:", "text"},
	{"txq:", "text"},
	{"surf:", "text"},
	{"mapa:", "cluster"},
	{"getctarank:", "cluster"},
	{"call:__cudaCDP2", "device"},
	{"call:cudaGraph", "device"},
	{"call:", "kernels"},
	{"trap:", "kernels"},
};

/* The program that has to run @name; NULL when nobody was named. */
static __attribute__((unused)) const char *form_owner(const char *name, size_t len)
{
	static const struct {
		const char *type, *program;
	} types[] = {{".f16", "half"},	{".f16x2", "half"}, {".bf16", "half"}, {".bf16x2", "half"}, {".f32", "float"},
		     {".f64", "float"}, {".u8", "int"},	    {".s8", "int"},    {".u16", "int"},	    {".s16", "int"},
		     {".b16", "int"},	{".u32", "int"},    {".s32", "int"},   {".b32", "int"},	    {".u64", "int"},
		     {".s64", "int"},	{".b64", "int"},    {".pred", "int"},  {".u16x2", "int"},   {".s16x2", "int"},
		     {".relu", "int"}};
	const char *dot = NULL;

	for (size_t k = 0; k < sizeof(form_owners) / sizeof(form_owners[0]); k++)
		if (!strncmp(name, form_owners[k].stem, strlen(form_owners[k].stem)))
			return form_owners[k].program;
	if (!strncmp(name, "prmt.", 5) || !strncmp(name, "slct.", 5) || !strncmp(name, "selp.", 5))
		return "int";
	for (size_t k = 0; k < len; k++)
		if (name[k] == '.')
			dot = name + k;
	for (size_t k = 0; dot && k < sizeof(types) / sizeof(types[0]); k++)
		if (strlen(types[k].type) == len - (size_t)(dot - name) && !strncmp(types[k].type, dot, strlen(types[k].type)))
			return types[k].program;
	return NULL;
}

#define FORMS_MAX 16384u

static struct {
	const char *name;
	size_t len;
} forms_seen[FORMS_MAX];
static u32 forms_nseen, forms_ran;
static bool forms_missing;

const struct op_row *__real_ptx_op_find(const char *name, size_t len);
const struct op_row *__wrap_ptx_op_find(const char *name, size_t len);
const struct op_row *__wrap_ptx_op_find(const char *name, size_t len)
{
	const struct op_row *row = __real_ptx_op_find(name, len);

	for (u32 k = 0; row && k < forms_nseen; k++)
		if (forms_seen[k].len == len && !memcmp(forms_seen[k].name, name, len))
			return row;
	if (row && forms_nseen < FORMS_MAX) {
		forms_seen[forms_nseen].name = strndup(name, len);
		forms_seen[forms_nseen++].len = len;
	}
	return row;
}

/* One PTX form was run; `--forms` makes the program name them, for tests/softgpu/forms.t. */
static __attribute__((unused)) void form_ran(const char *op)
{
	forms_ran++;
	if (getenv("PTX_FORMS"))
		printf("# form %s\n", op);
}

static __attribute__((unused)) void form_check(void *program, const char *name, size_t len)
{
	const char *owner = form_owner(name, len);

	/* what nobody owns is told once */
	if (strcmp(owner ? owner : "int", program))
		return;
	for (u32 k = 0; owner && k < forms_nseen; k++)
		if (forms_seen[k].len == len && !memcmp(forms_seen[k].name, name, len))
			return;
	printf("# the engine knows '%.*s', and no case %s\n", (int)len, name, owner ? "here runs it" : "nor any program owns it");
	forms_missing = true;
}

/* Every handler of @program's share was lowered to by one of its cases. */
static __attribute__((unused)) void forms_done(const char *program)
{
	ptx_op_each(form_check, (void *)(uintptr_t)program);
	ok(!forms_missing, "%u forms run; no handler of this program's share without a case", forms_ran);
}

#endif
