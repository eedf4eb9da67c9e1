# SPDX-License-Identifier: MIT
# The GPU's side of a run: rgpu-server with softgpu on the host.

import os, re, socket, subprocess, time

from vmlib.common import BUILD, Failed, die_with_parent, say, tail


class Server:
    """rgpu-server on the host, on a free port of the loopback, with a key of its own."""

    def __init__(self, run, log, devices, args):
        self.log = log
        exe = f'{BUILD}/bin/rgpu-server'
        if not os.access(exe, os.X_OK):
            raise Failed(f'there is no {exe}: run make, or give --module-only')
        key = f'{run}/key'
        r = subprocess.run([exe, '--pair', '--key', key], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if r.returncode:
            raise Failed(f'rgpu-server --pair failed: {r.stdout.strip()}')
        env = dict(os.environ, RGPU_SOFTGPU_DEVICES=str(devices))
        for attempt in range(3):
            with socket.socket() as s:
                s.bind(('127.0.0.1', 0))
                self.port = s.getsockname()[1]
            with open(log, 'ab') as f:
                self.proc = subprocess.Popen([exe, '--softgpu', '--drain', '0', '--listen', f'127.0.0.1:{self.port}', '--key', key,
                                              *args], env=env, stdin=subprocess.DEVNULL,
                                             stdout=f, stderr=f, preexec_fn=die_with_parent)
            if self.wait_listening():
                return
            self.stop()
        raise Failed(f'rgpu-server did not start to listen; the end of its log:\n{tail(log)}')

    def wait_listening(self):
        # Read from the kernel's table: a trial connection would be a failed handshake in the server's log.
        want = re.compile(rf'^ *\d+: 0100007F:{self.port:04X} \S+ 0A ', re.M)
        for _ in range(100):
            if self.proc.poll() is not None:
                return False
            with open('/proc/net/tcp') as f:
                if want.search(f.read()):
                    return True
            time.sleep(0.1)
        return False

    def workers(self):
        """Processes that the server has now."""
        try:
            with open(f'/proc/{self.proc.pid}/task/{self.proc.pid}/children') as f:
                return [int(p) for p in f.read().split()]
        except FileNotFoundError:
            r = subprocess.run(['pgrep', '-P', str(self.proc.pid)], stdout=subprocess.PIPE, text=True)
            return [int(p) for p in r.stdout.split()]

    def stop(self):
        if self.proc.poll() is None:
            self.proc.terminate()
            try:
                self.proc.wait(10)
            except subprocess.TimeoutExpired:
                say('the server did not end within 10 s of SIGTERM: killing it')
                self.proc.kill()
                self.proc.wait()
