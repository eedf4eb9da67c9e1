# SPDX-License-Identifier: MIT
# What the parts of scripts/vm share: where things lie, how a failure is told, a log's end.

import ctypes, os, signal, subprocess, sys

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
BUILD = os.path.join(REPO, os.environ.get('B') or 'build')


class Failed(Exception):
    """A cause, and the status that scripts/vm exits with."""

    def __init__(self, text, status=125):
        super().__init__(text)
        self.status = status


def say(text):
    print(f'vm: {text}', file=sys.stderr, flush=True)


def setup(*args):
    r = subprocess.run([os.path.join(REPO, 'scripts/setup'), *args], stdout=subprocess.PIPE, text=True)
    if r.returncode:
        raise Failed('scripts/setup has to run first')
    return r.stdout.strip()


def die_with_parent():
    """In a child before exec: no process of ours survives us, not even when we are killed with -9."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def tail(path, lines=40):
    try:
        with open(path, errors='replace') as f:
            text = f.read().replace('\r', '')
    except FileNotFoundError:
        return '  | (no log)'
    # A guest that got as far as its first process has nothing to tell about the boot before it.
    text = text.rpartition('Run /init as init process\n')[2]
    return '\n'.join(f'  | {line}' for line in text.splitlines()[-lines:])
