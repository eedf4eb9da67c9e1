#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs a program on a terminal: terminal.py SECONDS KEYS CMD…: types KEYS after SECONDS, prints what the screen was sent, without its
commands, and ends with the program's status."""
import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time

secs, keys, cmd = float(sys.argv[1]), sys.argv[2].encode(), sys.argv[3:]
pid, fd = pty.fork()
if pid == 0:
    os.environ['TERM'] = 'xterm-256color'
    os.execvp(cmd[0], cmd)
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack('HHHH', 50, 160, 0, 0))
out, until, typed = b'', time.time() + secs, False
while True:
    if select.select([fd], [], [], 0.1)[0]:
        try:
            data = os.read(fd, 65536)
        except OSError:  # the other end is closed
            break
        if not data:
            break
        out += data
    if time.time() > until and not typed:
        os.write(fd, keys)
        typed, until = True, time.time() + 20
    elif time.time() > until:
        os.kill(pid, 9)
        break
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
text = re.sub(rb'\x1b\[[0-9;?]*[a-zA-Z]|\x1b[()][A-Z0-9]|\x1b[=>]', b' ', out).decode('utf-8', 'replace')
print(re.sub(r'\s+', ' ', text))
sys.exit(status if status >= 0 else 128 - status)
