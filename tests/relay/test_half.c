// SPDX-License-Identifier: MIT
/* Half precision: the plain way and the processor's agree, on every half and on singles around every one of them. */
#include "lib/half.c"
#include "tests/tap.h"

static uint32_t bits(float f)
{
	uint32_t b;

	memcpy(&b, &f, sizeof(b));
	return b;
}

int main(void)
{
	static uint16_t all[1 << 16], back[8];
	static uint32_t wide[1 << 16];
	unsigned bad = 0, wrong = 0, differ = 0;

	for (unsigned h = 0; h < 1 << 16; h++)
		all[h] = h;
	rgpu_half_to(wide, all, 1 << 16);
	for (unsigned h = 0; h < 1 << 16; h++) {
		bad += to_one(h) != wide[h];
		wrong += from_one(wide[h]) != ((h & 0x7c00) == 0x7c00 && h & 0x3ff ? h | 0x200 : h);
		/* Between it and the next: a quarter, the middle, and one to each side of that. */
		for (int k = -2; k < 6; k++) {
			uint32_t f[8];
			uint16_t one;

			for (int i = 0; i < 8; i++)
				f[i] = wide[h] + (i < 4 ? (i - 2) : 0x1000 + (i - 6)) + k * 0x800;
			rgpu_half_from(back, f, 8);
			for (int i = 0; i < 8; i++) {
				one = from_one(f[i]);
				differ += one != back[i];
			}
		}
	}
	is_int(bad, 0, "every half is the same single both ways");
	is_int(wrong, 0, "… and comes back as it was");
	is_int(differ, 0, "singles around each are rounded alike");
	is_int(from_one(bits(1)), 0x3c00, "1");
	is_int(from_one(bits(-2)), 0xc000, "-2");
	is_int(from_one(bits(65504)), 0x7bff, "the largest");
	is_int(from_one(bits(65519.996f)), 0x7bff, "what is nearest to that");
	is_int(from_one(bits(65520)), 0x7c00, "what is not is infinite");
	is_int(from_one(bits(2049)), 0x6800, "a tie, to even");
	is_int(from_one(bits(2051)), 0x6802, "a tie, to even, upwards");
	is_int(from_one(bits(5.9604645e-8f)), 1, "the least");
	is_int(from_one(bits(2.9802322e-8f)), 0, "half of it is a tie");
	is_int(from_one(bits(2.9802326e-8f)), 1, "a little more is not");
	is_int(from_one(bits(6.1035156e-5f)), 0x400, "the least with all its digits");
	return tap_done();
}
