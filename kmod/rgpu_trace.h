/* SPDX-License-Identifier: GPL-2.0 */
/* Tracepoints: changes of state, doorbells, the way of a request, proxies coming and going. */
/* clang-format off */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rgpu

#if !defined(RGPU_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define RGPU_TRACE_H

#include <linux/tracepoint.h>

#define rgpu_show_state(s) \
	__print_symbolic(s, { 0, "STARTING" }, { 1, "LIVE" }, { 2, "RECOVERING" }, { 3, "FAILED" })
#define rgpu_show_type(t) __print_symbolic(t, { 1, "START" }, { 2, "JOIN" }, { 3, "CONTROL" }, { 4, "GONE" })
#define rgpu_show_req(s) \
	__print_symbolic(s, { 0, "PENDING" }, { 1, "DELIVERED" }, { 2, "DONE" }, { 3, "ABANDONED" })

TRACE_EVENT(rgpu_session_state,
	TP_PROTO(u64 session, u32 from, u32 to, s32 reason, u32 epoch),
	TP_ARGS(session, from, to, reason, epoch),
	TP_STRUCT__entry(
		__field(u64, session)
		__field(u32, from)
		__field(u32, to)
		__field(s32, reason)
		__field(u32, epoch)
	),
	TP_fast_assign(
		__entry->session = session;
		__entry->from = from;
		__entry->to = to;
		__entry->reason = reason;
		__entry->epoch = epoch;
	),
	TP_printk("session=%llx %s -> %s reason=%d epoch=%u", __entry->session, rgpu_show_state(__entry->from),
		  rgpu_show_state(__entry->to), __entry->reason, __entry->epoch)
);

TRACE_EVENT(rgpu_kick,
	TP_PROTO(u64 session, u32 channel, bool to_proxy),
	TP_ARGS(session, channel, to_proxy),
	TP_STRUCT__entry(
		__field(u64, session)
		__field(u32, channel)
		__field(bool, to_proxy)
	),
	TP_fast_assign(
		__entry->session = session;
		__entry->channel = channel;
		__entry->to_proxy = to_proxy;
	),
	TP_printk("session=%llx channel=%u to=%s", __entry->session, __entry->channel, __entry->to_proxy ? "proxy" : "app")
);

TRACE_EVENT(rgpu_request,
	TP_PROTO(u64 id, u32 type, u64 session, u32 state, int status),
	TP_ARGS(id, type, session, state, status),
	TP_STRUCT__entry(
		__field(u64, id)
		__field(u64, session)
		__field(u32, type)
		__field(u32, state)
		__field(int, status)
	),
	TP_fast_assign(
		__entry->id = id;
		__entry->type = type;
		__entry->session = session;
		__entry->state = state;
		__entry->status = status;
	),
	TP_printk("request=%llu %s session=%llx %s status=%d", __entry->id, rgpu_show_type(__entry->type), __entry->session,
		  rgpu_show_req(__entry->state), __entry->status)
);

TRACE_EVENT(rgpu_proxy,
	TP_PROTO(u32 epoch, bool there),
	TP_ARGS(epoch, there),
	TP_STRUCT__entry(
		__field(u32, epoch)
		__field(bool, there)
	),
	TP_fast_assign(
		__entry->epoch = epoch;
		__entry->there = there;
	),
	TP_printk("epoch=%u %s", __entry->epoch, __entry->there ? "registered" : "gone")
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE rgpu_trace
#include <trace/define_trace.h>
