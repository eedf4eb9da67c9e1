#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs a program on a terminal and prints what was sent there and what is then to be seen: terminal.py CMD…

The first lines are the progress bars that were drawn, "bar DONE TOTAL"; then "screen" and the screen's lines. It knows the few commands
that rgpu's bar is made of; with any other it fails. The status is the program's."""
import os
import pty
import re
import sys

pid, fd = pty.fork()
if pid == 0:
    os.environ['TERM'] = 'xterm'
    os.execvp(sys.argv[1], sys.argv[1:])
sent = b''
while True:
    try:
        data = os.read(fd, 65536)
    except OSError:  # the other end is closed
        break
    if not data:
        break
    sent += data
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
text = sent.decode()
for done, total in re.findall(r'rgpu: (\d+) of (\d+) MiB up', text):
    print('bar', done, total)

screen, row, col, saved = [''], 0, 0, (0, 0)
for piece in re.findall(r'\x1b7|\x1b8|\x1b\[K|\x1b\[\?7[lh]|[^\x1b]|\x1b', text):
    if piece == '\x1b7':
        saved = row, col
    elif piece == '\x1b8':
        row, col = saved
    elif piece == '\x1b[K':
        screen[row] = screen[row][:col]
    elif piece == '\r':
        col = 0
    elif piece == '\n':
        row += 1
        screen += [''] * (row + 1 - len(screen))
    elif piece == '\x1b':
        sys.exit('an unknown command to the terminal')
    elif len(piece) == 1:
        screen[row] = screen[row][:col].ljust(col) + piece + screen[row][col + 1:]
        col += 1
print('screen')
print('\n'.join(line.rstrip() for line in screen).rstrip())
sys.exit(status if status >= 0 else 128 - status)
