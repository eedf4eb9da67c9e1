/* SPDX-License-Identifier: MIT */
/* The video instructions: what lower_video.c understood of one, packed into an instruction's 64 bits of immediate. */
#ifndef SOFTGPU_PTX_VIDEO_H
#define SOFTGPU_PTX_VIDEO_H

#include "softgpu/ptx/types.h"

enum video_op { V_ADD, V_SUB, V_ABSDIFF, V_MIN, V_MAX, V_SHL, V_SHR, V_MAD, V_SET, V_AVRG };
enum video_second { V_NONE, V_PLUS, V_LEAST, V_MOST };
enum video_cmp { V_EQ, V_NE, V_LT, V_LE, V_GT, V_GE };

/* A part of a register: 0 all of it, 1 to 4 a byte, 5 and 6 a half. */
enum { V_BYTE = 1, V_HALF = 5 };

struct video {
	u16 asel, bsel;		       /* a part; with lanes: four bits for each lane's element of {a, b}, lane 0 lowest */
	u8 dsel;		       /* a part; with lanes: a bit for each lane that is written */
	u8 op : 4, lanes : 3, sat : 1; /* lanes: 1, 2 or 4 */
	u8 dsigned : 1, asigned : 1, bsigned : 1, merge : 1, wrap : 1, plus_one : 1, minus_ab : 1, minus_c : 1;
	u8 second : 2, cmp : 3, scale : 2; /* scale: 1 for .shr7, 2 for .shr15 */
};
_Static_assert(sizeof(struct video) == 8, "fits an immediate");

#endif
