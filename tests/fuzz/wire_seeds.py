#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# Seeds for the fuzzers of the link: well-formed connections of a few frames. usage: wire_seeds.py DIR; fills DIR/frames, …
import hashlib, os, struct, sys

OUT = sys.argv[1]
ZEROS_64K, ZEROS_66000 = 0x33b202d302b65caa, 0xbb429228aa1dc28e  # XXH3 of so many zeros


def put(kind, name, data):
    os.makedirs(f'{OUT}/{kind}', exist_ok=True)
    with open(f'{OUT}/{kind}/{name}', 'wb') as f:
        f.write(data)


def frame(kind, channel, body=b'', length=None, flags=0):
    return struct.pack('<IHHII', len(body) if length is None else length, kind, flags, channel, 0) + body


def rec(op, seq, after=0, stamp=0, fence=True, segs=(), body=b''):
    n = (32 + 24 * len(segs) + len(body) + 15) // 16 * 16
    b = struct.pack('<IHBBQQQ', n, op, fence, len(segs), seq, after, stamp)
    for bo, d, off, length in segs:
        b += struct.pack('<IIQQ', bo, d, off, length)
    return (b + body).ljust(n, b'\0')


def rep(rseq, seq, body=b'', flags=0, bulk=0):
    n = (56 + len(body) + 15) // 16 * 16
    return (struct.pack('<IHHQQiiIIQ', n, 1, flags, rseq, seq, 0, 0, 0, len(body), bulk) + body).ljust(n, b'\0')


ATTACH, ATTACHED, RECORDS, PAYLOAD, ACK, GRANT, DATA, REPLY, PING, PONG, BYE, CLOSE = range(32, 44)
ECHO, LOG, GATE, FAIL, FILL, LATER, SUM, COUNT = range(1, 9)
bye = struct.pack('<i252s', 0, b'the end')

# What a client sends. Two bytes before it: where it breaks, and in what pieces it comes.
attach = frame(ATTACH, 0)
small = frame(RECORDS, 0, rec(ECHO, 1, body=b'hello') + rec(COUNT, 2) + rec(FAIL, 3, fence=False, body=b'\7\0\0\0'))
stamps = frame(RECORDS, 0, rec(LOG, 1, 0, 1, False)) + frame(RECORDS, 1, rec(LOG, 1, 1, 2, False) + rec(LOG, 2, 2, 0)) + \
    frame(RECORDS, 0, rec(LOG, 2, 2, 3))
up = frame(RECORDS, 2, rec(SUM, 1, segs=[(1, 1, 0, 300)])) + frame(PAYLOAD, 2, b'u' * 100) + frame(PAYLOAD, 2, b'v' * 200)
down = frame(RECORDS, 1, rec(FILL, 1, segs=[(1, 2, 0, 500), (1, 2, 600, 10)], body=b'\1\0\0\0') +
             rec(LATER, 2, 0, 1, False, segs=[(2, 2, 0, 64)], body=b'\2\0\0\0\0\0\0\0') + rec(ECHO, 3, body=b'x' * 2000))
ack = frame(ACK, 1, struct.pack('<QQ', 1, 70000)) + frame(ACK, 1, struct.pack('<QQ', 2, 80000))
rest = frame(PING, 0, b'12345678') + frame(PONG, 0, b'12345678') + frame(CLOSE, 0) + frame(BYE, 0, bye)
again = frame(ATTACH, 0, struct.pack('<IIQIIQ', 0, 0, 1, 2, 0, 0))
one = lambda b: b'\0\0' + b
put('frames', 'small', one(attach + small + rest))
put('frames', 'stamps', one(attach + stamps))
put('frames', 'up', one(attach + up + rest))
put('frames', 'pieces', b'\0\7' + attach + up + small)
put('frames', 'down', b'\0\xff' + attach + down + ack + rest)
first = attach + small + up[:-50]
second = again + small + up
# Where it breaks is told in 256ths: zeros behind the second, until that is just behind the first.
while not (at := [b for b in range(2, 256) if len(first + second) * b // 256 == len(first)]):
    second += b'\0'
put('frames', 'resumed', bytes([at[0], 0]) + first + second)
put('frames', 'long', one(attach + b''.join(frame(RECORDS, 3, rec(LOG, i, 0, i, False)) for i in range(1, 60))))
for n, bad in enumerate([frame(RECORDS, 0), frame(99, 0), frame(ATTACH, 0), frame(ACK, 0, b'123'), frame(PING, 0, b'1'), frame(BYE, 0, b''),
                         frame(PAYLOAD, 0, b'x'), frame(RECORDS, 300, rec(1, 1)), frame(RECORDS, 0, b'', 1 << 21),
                         frame(RECORDS, 0, rec(1, 5)), frame(RECORDS, 0, rec(1, 1, 5, 3)), frame(RECORDS, 0, rec(1, 1, 0, 1 << 60)),
                         frame(RECORDS, 0, rec(1, 1, segs=[(1, 3, 0, 1)])), frame(RECORDS, 0, rec(1, 1, segs=[(1, 1, 0, 1 << 40)])),
                         frame(RECORDS, 0, rec(SUM, 1, segs=[(1, 1, 0, 9)]) + rec(1, 2)), frame(CLOSE, 0, b'1'),
                         frame(RECORDS, 0, rec(LOG, 1, 0, 1)) + frame(RECORDS, 1, rec(LOG, 1, 0, 1)), frame(RECORDS, 0, rec(1, 1)[:16]),
                         frame(ACK, 0, struct.pack('<QQ', 9, 9)), frame(RECORDS, 0, rec(1, 1).replace(b'\1', b'\x81', 1)),
                         frame(RECORDS, 0, rec(ECHO, 1)) + frame(ACK, 0, struct.pack('<QQ', 99, 9))]):
    put('frames', f'bad{n:02}', one(attach + bad))

# Blocks that are named: 64 KiB of zeros are there, by their XXH3 and SHA-256.
KNOWN, REF, NEED, REWIND = range(0x2e0, 0x2e4)
zeros = struct.pack('<Q', ZEROS_64K) + hashlib.sha256(bytes(65536)).digest()
ref = lambda name, n=65536: frame(REF, 2, name + struct.pack('<II', n, 0))
attach = frame(ATTACH, 0, flags=0x100)
sum64 = lambda seq, n=65536: frame(RECORDS, 2, rec(SUM, seq, segs=[(1, 1, 0, n)]))
gone = b'g' + zeros[1:]
rewind = lambda seq: frame(REWIND, 2, struct.pack('<Q', seq))
put('frames', 'cache-there', one(attach + sum64(1) + ref(zeros) + sum64(2, 131172) + ref(zeros) + ref(zeros) + frame(PAYLOAD, 2, b'p' * 100) + rest))
put('frames', 'cache-gone', one(attach + sum64(1) + ref(gone) + sum64(2) + ref(zeros) + rewind(1) + sum64(1) + ref(zeros) + sum64(2) + ref(zeros) + rest))
put('frames', 'cache-liar', one(attach + sum64(1) + ref(zeros[:8] + bytes(32)) + rewind(1) + sum64(1) + ref(zeros) + rest))
for n, bad in enumerate([ref(zeros), sum64(1) + ref(zeros, 65535), sum64(1) + ref(zeros, 65537), rewind(1), sum64(1) + ref(gone) + rewind(2),
                         sum64(1) + frame(REF, 2, b'short'), frame(REWIND, 2, b'1')]):
    put('frames', f'cache-bad{n}', one(attach + bad))

# Compressed frames: an LZ4 block of literals alone, and one that goes on and on.
PACKED, LZ4 = 0x2e4, 0x200
literals = lambda b: (bytes([len(b) << 4]) if len(b) < 15 else b'\xf0' + bytes([len(b) - 15])) + b
packed = lambda ch, kind, n, b, how=LZ4: frame(PACKED, ch, struct.pack('<IHH', n, kind, how) + b)
attach = frame(ATTACH, 0, flags=0x600)
head = rec(SUM, 1, segs=[(1, 1, 0, 300)])
run = b'\x1fx\x01\x00' + bytes([255, 11]) + literals(b'yyyyy')  # x, a match of 285, then 5
put('frames', 'packed-payload', one(attach + frame(RECORDS, 2, head) + packed(2, PAYLOAD, 100, literals(b'p' * 100)) + packed(2, PAYLOAD, 200, literals(b'q' * 200)) + rest))
put('frames', 'packed-records', one(attach + packed(2, RECORDS, len(head), literals(head)) + frame(PAYLOAD, 2, b'u' * 300) + rest))
put('frames', 'packed-run', one(attach + frame(RECORDS, 2, head) + packed(2, PAYLOAD, 291, run) + rest))
for n, bad in enumerate([packed(2, PAYLOAD, 9, b'x'), packed(2, ACK, 16, literals(b'a' * 16)), frame(PACKED, 0, b'1'), packed(2, RECORDS, 64, b'\x00', 0x400),
                         frame(RECORDS, 2, head) + packed(2, PAYLOAD, 300, run), frame(RECORDS, 2, head) + packed(2, PAYLOAD, 1 << 20, run)]):
    put('frames', f'packed-bad{n}', one(attach + bad))
for name, how in ('lz4', 0x200), ('zstd', 0x400):
    put('frames', 'packed-down-' + name, b'\0\x60' + (frame(ATTACH, 0, flags=how) + frame(RECORDS, 1, rec(FILL, 1, segs=[(1, 2, 0, 20000), (1, 2, 30000, 300000)], body=b'\1\0\0\0')) + ack + rest))
put('frames', 'packed-off', one(frame(ATTACH, 0) + packed(2, RECORDS, len(head), literals(head))))

# Requests of a control connection.
magic = int(os.environ['MAGIC'], 0)
hello = frame(1, 0, struct.pack('<IHHQ64s', magic, 1, 0, 0, b'a client'))
start = lambda t, flags=0, data=b'greeting': frame(t, 0, struct.pack('<16sIIII16sII', b'0123456789abcdef', 1, 2, 3, 0, b'prog', len(data), flags) + data)
join = struct.pack('<16sII', b'0123456789abcdef', 1, 1)
put('control', 'all', hello + frame(4, 0) + start(6) + start(8) + frame(9, 0, join) + frame(10, 0, join) + frame(12, 0) * 3)
put('control', 'again', hello + start(6) + start(6, 1) + start(6, 1, b'') + frame(9, 0, join) * 3 + frame(10, 0, join) * 3)
for n, bad in enumerate([frame(4, 0), frame(1, 0, b'1'), frame(1, 0, struct.pack('<IHHQ64s', 1, 1, 0, 0, b'x')),
                         frame(1, 0, struct.pack('<IHHQ64s', magic, 9, 0, 0, b'x')), hello + frame(6, 0, b'1'), hello + start(6, 8),
                         hello + frame(6, 0, start(6)[16:] + b'more'), hello + frame(9, 0, b''), hello + frame(77, 0),
                         hello + frame(12, 0, b'', 1 << 20), hello + frame(10, 0, b'22')]):
    put('control', f'bad{n:02}', bad)

# What a server answers. The first byte: odd, the connection is attached already; in pieces of the rest × 64 and one.
attached = lambda flags=0, received=0, second=1: frame(ATTACHED, 0, struct.pack('<IIQIIQ', 0, 8 << 20, received, second, 8 << 20, 0), flags=flags)
answers = frame(GRANT, 0, struct.pack('<QQ', 3, 9 << 20)) + frame(DATA, 0, struct.pack('<QIIQ', 1, 1, 0, 100) + b'd' * 300) + \
    frame(REPLY, 0, rep(1, 1, b'', 1, 300) + rep(2, 2, b'body')) + frame(REPLY, 1, rep(1, 1)) + frame(PING, 0, b'12345678')
many = b''.join(frame(REPLY, 0, rep(i, 1 + i % 8, b'b' * 900)) for i in range(1, 16))
for name, first in ('small', 1), ('large', 255):
    put('relay', 'answers-' + name, bytes([first]) + answers + frame(PONG, 0, b'12345678') + frame(BYE, 0, bye))
    put('relay', 'many-' + name, bytes([first]) + frame(GRANT, 0, struct.pack('<QQ', 8, 9 << 20)) + many)
put('relay', 'attach', b'\xfe' + attached() + answers)
put('relay', 'attach-received', b'\xfe' + attached(received=2) + frame(REPLY, 0, rep(1, 3)))
put('relay', 'attach-ahead', b'\xfe' + attached(received=9))
put('relay', 'attach-other', b'\xfe' + attached(second=2))
put('relay', 'attach-none', b'\xfe' + frame(ATTACHED, 0))
put('relay', 'data-word', b'\x41' + frame(DATA, 0, struct.pack('<QIIQQ', 1, 1, 0, 104, 7)) + frame(DATA, 0, struct.pack('<QIIQ', 1, 1, 0, 200) + b'd' * 8000) + frame(PING, 0, b'12345678'))
put('relay', 'replies-too-many', b'\xff' + b''.join(frame(REPLY, 0, rep(i, 1 + i % 8, b'b' * 2000)) for i in range(1, 13)))
put('relay', 'attach-bye', b'\0' + frame(BYE, 0, struct.pack('<i252s', 116, b'the session is over')))
put('relay', 'attach-bad', b'\0' + frame(REPLY, 0, rep(1, 1)))
for n, bad in enumerate([frame(GRANT, 0, b'1'), frame(GRANT, 9, b'1' * 16), frame(GRANT, 0, struct.pack('<QQ', 99, 1)), frame(REPLY, 0, b'1'),
                         frame(REPLY, 0, rep(5, 1)), frame(REPLY, 0, rep(1, 99)), frame(REPLY, 0, rep(1, 1)[:40]),
                         frame(REPLY, 0, rep(1, 1).replace(b'\1', b'\2', 1)), frame(PING, 0, b'1'), frame(BYE, 0, b'1'), frame(99, 0),
                         frame(DATA, 0, b'1'), frame(DATA, 0, struct.pack('<QIIQ', 9, 1, 0, 0) + b'1'), frame(DATA, 7, b'1' * 40),
                         frame(DATA, 0, struct.pack('<QIIQ', 1, 9, 0, 0) + b'1'), frame(DATA, 0, struct.pack('<QIIQ', 1, 1, 0, 1 << 40) + b'1'),
                         frame(REPLY, 0, b'', 1 << 21), frame(BYE, 0, struct.pack('<i252s', 71, b'why'))]):
    put('relay', f'bad{n:02}', b'\xff' + bad)

known = frame(KNOWN, 0, struct.pack('<QQ', ZEROS_66000, 1), flags=1)
need = lambda ch, seq: frame(NEED, ch, struct.pack('<Q', seq))
put('relay', 'attach-cache', b'\x02' + attached(0x100) + known + need(0, 6) + known + answers)
put('relay', 'cache', b'\x03' + known + need(0, 6) + known + need(1, 6) + answers)
put('relay', 'cache-many', b'\xff' + frame(KNOWN, 0, struct.pack('<700Q', *range(1 << 32, 701 << 32, 1 << 32)), flags=1) + need(0, 6) + known)
put('relay', 'cache-same-place', b'\xff' + frame(KNOWN, 0, struct.pack('<3Q', 5, 6, 5)) + need(0, 3))
for n, bad in enumerate([frame(KNOWN, 0, b'1'), need(0, 9), need(0, 0), need(0, 6) * 2, frame(NEED, 0, b'1'), need(7, 1)]):
    put('relay', f'cache-bad{n}', b'\xff' + bad)
    put('relay', f'cache-off{n}', b'\xfd' + bad)

data = struct.pack('<QIIQ', 1, 1, 0, 100)
down = lambda b, n: frame(PACKED, 0, struct.pack('<IHH', n, DATA, LZ4) + data + b)
put('relay', 'packed', b'\xfe' + attached(0x600) + down(literals(b'd' * 100), 100) + down(run, 291) + answers)
for n, bad in enumerate([down(b'x', 9), down(run, 290), down(run, 1 << 20), frame(PACKED, 9, b'1' * 40), frame(PACKED, 0, b'1'),
                         frame(PACKED, 0, struct.pack('<IHH', 9, 1, LZ4) + data + b'1')]):
    put('relay', f'packed-bad{n}', b'\xfd' + bad)
    put('relay', f'packed-off{n}', b'\xfb' + bad)

# Handshakes: raw bytes to either end, and changes in between (way and offset, xor).
put('handshake', 'raw-server', b'\1GET / HTTP/1.0\r\n\r\n')
put('handshake', 'raw-client', b'\0HTTP/1.0 400 Bad Request\r\n\r\n')
put('handshake', 'raw-hello', b'\1\x16\3\1\0\x20\1\0\0\x1c\3\3' + bytes(40))
put('handshake', 'raw-alert', b'\0\x15\3\3\0\2\2\x28')
put('handshake', 'raw-stays-server', b'\3\x16\3\1')
put('handshake', 'raw-stays-client', b'\2\x16\3\3')
for kind in range(16):
    put('handshake', f'talk{kind:02}', bytes([64, kind, 0, 0, 0, 0]))
put('handshake', 'wrong-key', bytes([64, 0x80, 0, 0, 0, 0]))
put('handshake', 'wrong-name', bytes([64, 0x40, 0, 0, 0, 0]))
for at in 5, 50, 120, 250, 400, 1500, 20000:
    for way in 0, 1:
        put('handshake', f'changed-{way}-{at:05}', bytes([64, 1 + 8 * way, at >> 8 << 1 | way, at & 255, 0x55, 0]))

# Texts.
put('config', 'server', b'# a comment\n[server]\nlisten = 0.0.0.0:7478\nkey = /etc/key ; the first\n key=/b\nsoftgpu = yes\nverbose = off\nbad = 1\n')
put('config', 'bad', b'x = 1\n[server\n[other]\na = b\n[server]\nno equals sign\n' + b'l' * 300 + b'\n= 3\n')
put('config', 'key', b'# mine\nrgpu-key-1\n' + b'0123456789abcdefABCDEF0123456789' * 2 + b'\n')
put('config', 'key-short', b'rgpu-key-1\n00\n')
put('config', 'key-more', b'rgpu-key-1\n' + b'00' * 32 + b'\nmore\n')
put('config', 'key-nul', b'rgpu-key-1\n\0')
put('config', 'key-long', b'#' * 5000)
for n, a in enumerate([b'gpu:7478', b'[::1]:80', b'::1', b'10.0.0.1', b'[gpu]:1', b'a b', b':80', b'h:99999', b'h:x', b'[::1', b'h:0', b'x' * 300]):
    put('config', f'addr{n:02}', a)
