// SPDX-License-Identifier: MIT
/* Sizes and offsets of the kernel interface, for the compiler to check, with 64-bit and 32-bit programs alike. */
#include <linux/rgpu.h>
#include <linux/rgpu_netlink.h>

#define SIZE(type, n)	   _Static_assert(sizeof(struct type) == (n), #type)
#define AT(type, field, n) _Static_assert(__builtin_offsetof(struct type, field) == (n), #type "." #field)

/* What two programs map must never move. */
SIZE(rgpu_kpage, 96);
AT(rgpu_kpage, magic, 0);
AT(rgpu_kpage, abi_major, 4);
AT(rgpu_kpage, abi_minor, 6);
AT(rgpu_kpage, features, 8);
AT(rgpu_kpage, sid, 16);
AT(rgpu_kpage, state, 32);
AT(rgpu_kpage, reason, 36);
AT(rgpu_kpage, epoch, 40);
AT(rgpu_kpage, nchannels, 44);

SIZE(rgpu_apage, 128);
AT(rgpu_apage, sq_tail, 0);
AT(rgpu_apage, cq_head, 64);
AT(rgpu_apage, cq_event, 68);

SIZE(rgpu_ppage, 192);
AT(rgpu_ppage, sq_head, 0);
AT(rgpu_ppage, sq_event, 4);
AT(rgpu_ppage, cq_tail, 64);
AT(rgpu_ppage, cq_next, 68);
AT(rgpu_ppage, acked, 128);
AT(rgpu_ppage, delivered, 136);
AT(rgpu_ppage, published, 144);
AT(rgpu_ppage, ahead_mib, 152);
AT(rgpu_ppage, needed, 156);

/* Arguments may only grow at their ends. */
SIZE(rgpu_info, 144);
AT(rgpu_info, minor, 12);
AT(rgpu_info, features, 16);
AT(rgpu_info, uuid, 24);
AT(rgpu_info, server, 40);
AT(rgpu_info, mem_total, 56);
AT(rgpu_info, name, 64);
AT(rgpu_info, props_len, 128);
AT(rgpu_info, props, 136);
SIZE(rgpu_session_start, 48);
AT(rgpu_session_start, data_len, 8);
AT(rgpu_session_start, data_room, 12);
AT(rgpu_session_start, data, 16);
AT(rgpu_session_start, sid, 24);
AT(rgpu_session_start, id, 40);
SIZE(rgpu_session_join, 16);
SIZE(rgpu_channel_create, 24);
AT(rgpu_channel_create, channel, 16);
SIZE(rgpu_channel_ref, 16);
SIZE(rgpu_bo_create, 24);
AT(rgpu_bo_create, bytes, 8);
AT(rgpu_bo_create, handle, 16);
SIZE(rgpu_bo_ref, 24);
AT(rgpu_bo_ref, handle, 8);
AT(rgpu_bo_ref, bytes, 16);
SIZE(rgpu_bo_dirty, 48);
AT(rgpu_bo_dirty, first, 16);
AT(rgpu_bo_dirty, bitmap, 32);
AT(rgpu_bo_dirty, count, 40);
SIZE(rgpu_wait, 16);
AT(rgpu_wait, timeout_ms, 12);
SIZE(rgpu_control, 32);
AT(rgpu_control, op, 8);
AT(rgpu_control, data_len, 12);
AT(rgpu_control, data_room, 16);
AT(rgpu_control, data, 24);
SIZE(rgpu_session_fd, 24);
AT(rgpu_session_fd, id, 8);
AT(rgpu_session_fd, fd, 16);
SIZE(rgpu_kicked, 8 + RGPU_CHANNELS_MAX / 8);
SIZE(rgpu_channel_info, 24);
SIZE(rgpu_session_set, 16);

/* Numbers of commands are part of the interface too. */
_Static_assert(RGPU_IOC_INFO == 0xc0905200, "INFO");
_Static_assert(RGPU_IOC_SESSION_START == 0xc0305201, "SESSION_START");
_Static_assert(RGPU_IOC_SESSION_JOIN == 0xc0105202, "SESSION_JOIN");
_Static_assert(RGPU_IOC_CHANNEL_CREATE == 0xc0185203, "CHANNEL_CREATE");
_Static_assert(RGPU_IOC_CHANNEL_DESTROY == 0x40105204, "CHANNEL_DESTROY");
_Static_assert(RGPU_IOC_BO_CREATE == 0xc0185205, "BO_CREATE");
_Static_assert(RGPU_IOC_BO_DESTROY == 0x40185206, "BO_DESTROY");
_Static_assert(RGPU_IOC_KICK == 0x40105207, "KICK");
_Static_assert(RGPU_IOC_WAIT == 0x40105208, "WAIT");
_Static_assert(RGPU_IOC_CONTROL == 0xc0205209, "CONTROL");
_Static_assert(RGPU_CTL_SESSION_FD == 0xc0185240, "SESSION_FD");
_Static_assert(RGPU_SES_KICKED == 0x80285250, "KICKED");
_Static_assert(RGPU_SES_CHANNEL_INFO == 0xc0185251, "CHANNEL_INFO");
_Static_assert(RGPU_SES_BO_INFO == 0xc0185252, "BO_INFO");
_Static_assert(RGPU_SES_SET == 0x40105253, "SET");

/* Windows of mmap do not meet. */
_Static_assert(RGPU_MMAP_CHANNEL(RGPU_CHANNELS_MAX - 1, RGPU_MMAP_CQ) + RGPU_RING_MAX <= RGPU_MMAP_BO(0), "channels, BOs");
_Static_assert(RGPU_MMAP_CHANNEL(0, RGPU_MMAP_SQ) + RGPU_RING_MAX <= RGPU_MMAP_CHANNEL(0, RGPU_MMAP_CQ), "SQ, CQ");
_Static_assert(RGPU_MMAP_CHANNEL(0, RGPU_MMAP_CQ) + RGPU_RING_MAX <= RGPU_MMAP_CHANNEL(1, 0), "channel, next channel");
