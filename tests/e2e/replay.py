# SPDX-License-Identifier: MIT
# Records what clients send to a server, or sends it again: replay.py record PORT DIR (prints its port, then for each connection that ended
# what it was and its bytes up and down) | replay.py play PORT DIR WAIT
import os, select, socket, sys, threading

what, port, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]


def dial():
    return socket.create_connection(('127.0.0.1', port))


def kind_of(first):
    return 'data' if first[:8] == b'RGPUdata' else 'control'


def record(client, n):
    server, count, kind = dial(), [0, 0], ''
    with open(f'{folder}/{n:03}', 'wb', buffering=0) as out:
        while True:
            ready, _, _ = select.select([client, server], [], [])
            for s in ready:
                try:
                    data = s.recv(65536)
                except ConnectionError:
                    data = b''
                if not data:
                    print(kind, *count, flush=True)
                    client.close()
                    server.close()
                    return
                kind = kind or kind_of(data)
                count[s is server] += len(data)
                if s is client:
                    out.write(len(data).to_bytes(4, 'little') + data)
                (server if s is client else client).sendall(data)


def play(name, wait):
    """Each piece as it was sent, after the server's answer to the one before. What the server said to it all, in bytes."""
    heard, s = b'', dial()
    s.settimeout(wait)
    with open(f'{folder}/{name}', 'rb') as f:
        while head := f.read(4):
            try:
                s.sendall(f.read(int.from_bytes(head, 'little')))
                more = s.recv(65536)
            except TimeoutError:
                continue
            except ConnectionError:
                break
            if not more:
                break
            heard += more
    s.close()
    return len(heard)


if what == 'record':
    listener = socket.create_server(('127.0.0.1', 0))
    print(listener.getsockname()[1], flush=True)
    n = 0
    while True:
        c, _ = listener.accept()
        threading.Thread(target=record, args=(c, n), daemon=True).start()
        n += 1
else:
    for name in sorted(os.listdir(folder)):
        print(name, kind_of(open(f'{folder}/{name}', 'rb').read(12)[4:]), play(name, float(sys.argv[4])), flush=True)
