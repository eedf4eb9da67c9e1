# SPDX-License-Identifier: MIT
# One run of a guest: its folder, its QEMU, the command's output and status, the look at what it left.

import os, re, shlex, shutil, subprocess, sys, tempfile, threading, time

from vmlib.common import BUILD, REPO, Failed, die_with_parent, say, tail
from vmlib.kernel import Kernel, accelerator
from vmlib.server import Server

# What no kernel log may hold after a run.
DIRTY = re.compile(r'WARNING:|BUG:|Oops|Kernel panic|general protection fault|blocked for more than|detected (expedited )?stall|'
                   r'KASAN: |UBSAN|KCSAN: |unreferenced object|suspected memory leaks|refcount_t|scheduling while atomic|Call Trace:')

# RCU's own flag of a processor, which cond_resched() reads and the timer's interrupt writes, whoever called that.
KERNELS_OWN = re.compile(r'KCSAN: data-race in rcu_all_qs / rcu_report_qs_rdp')


def complaints(lines):
    """What is dirty, but for data races that the module has no part in: the kernel has some of its own."""
    for i, line in enumerate(lines):
        if not DIRTY.search(line):
            continue
        if 'KCSAN: data-race' in line:
            end = next((j for j in range(i, len(lines)) if '======' in lines[j]), len(lines))
            if KERNELS_OWN.search(line) or not any('[rgpu]' in x for x in lines[i:end]):
                say(f'not ours: {line}')
                continue
        yield line


def pump(fd, out):
    """Copies until the end; when the reader of our output has gone, goes on reading so that the guest is not stopped by it."""
    while True:
        data = os.read(fd, 65536)
        if not data:
            return
        try:
            while data:
                data = data[os.write(out, data):]
        except BrokenPipeError:
            out = os.open(os.devnull, os.O_WRONLY)


# Two things that new processors are quick at and the emulator is slow at: `rep movsb`, which glibc and the kernel then copy with and
# which it does byte by byte, and AES instructions. Without them, copies in the kernel take a fifth of the time, and TLS, which
# takes ChaCha20 then, a quarter.
EMULATED_CPU = 'max,-erms,-fsrm,-aes,-vaes'


class Guest:
    def __init__(self, args):
        self.args = args
        os.makedirs(f'{BUILD}/vm', exist_ok=True)
        self.kernel = Kernel(args.kernel)
        self.accel = 'tcg' if args.icount else accelerator(self.kernel)
        self.name = args.name or f'{args.kernel}-{os.getpid()}'
        self.log = args.keep_log or f'{BUILD}/vm/{self.name}.log'
        base = os.path.splitext(self.log)[0]
        self.server_log, self.proxy_log = f'{base}.server.log', f'{base}.proxy.log'
        self.run = tempfile.mkdtemp(prefix=f'run-{self.name}-', dir=f'{BUILD}/vm')
        if re.search(r'[\s,]', self.run + REPO):
            raise Failed(f'{REPO}: a path with spaces or commas cannot be shared with a guest')
        self.ctl, self.problem, self.status, self.server, self.qemu = [], None, None, None, None

    def prepare(self):
        a = self.args
        if a.module:
            ko = f'{BUILD}/kmod/{self.kernel.release}/rgpu.ko' if a.ko is None else a.ko.replace('%r', self.kernel.release)
            if not os.path.exists(ko):
                raise Failed(f'there is no {ko}: run make, or give --no-module')
            self.kernel.module_tree(self.run, ko)
        self.forget_old_logs()
        for path in (self.log, self.server_log, self.proxy_log):
            if os.path.exists(path):
                os.unlink(path)
        if a.server:
            self.server = Server(self.run, self.server_log, a.devices, a.server_arg)
        elif a.proxy:
            r = subprocess.run([f'{BUILD}/bin/rgpu-server', '--pair', '--key', f'{self.run}/key'], stdout=subprocess.DEVNULL)
            if r.returncode:
                raise Failed('rgpu-server --pair failed')
        port = self.server.port if self.server else 9  # discard: nothing answers there
        module_args = [f'max_devices={a.devices}'] if a.devices > 4 else []
        config = {
            'VM_REPO': REPO, 'VM_BUILD': BUILD, 'VM_CWD': os.getcwd(), 'VM_ACCEL': self.accel,
            'VM_MODULE': int(a.module), 'VM_MODULE_ARGS': ' '.join(module_args + a.module_arg), 'VM_PROXY': int(a.proxy),
            'VM_SERVER': int(a.server), 'VM_DEVICES': a.devices, 'VM_SERVER_ADDR': f'10.0.2.2:{port}', 'VM_SHELL': int(a.shell),
        }
        env = {
            'PATH': f'{BUILD}/bin:{os.environ["PATH"]}', 'HOME': os.environ.get('HOME', '/root'), 'TERM': os.environ.get('TERM', 'dumb'),
            'LANG': 'C.UTF-8', 'RGPU_TEST_TRANSPORT': 'kmod', 'RGPU_VM_SERVER': config['VM_SERVER_ADDR'], 'RGPU_VM_KEY': '/run/rgpu-vm/key',
            'CUDA_HOME': os.environ.get('CUDA_HOME', ''), 'B': os.environ.get('B') or 'build',
        }
        env.update(pair.split('=', 1) for pair in a.env)
        self.write('config', ''.join(f'{k}={shlex.quote(str(v))}\n' for k, v in config.items()))
        self.write('env', ''.join(f'export {k}={shlex.quote(v)}\n' for k, v in env.items()))
        self.write('cmd', 'exec ' + shlex.join(a.cmd) + '\n')
        shutil.copy(os.path.join(REPO, 'tests/vm/guest-systemd' if a.root else 'tests/vm/guest'), f'{self.run}/guest')
        if a.ram:
            shutil.copy(a.cmd[0], f'{self.run}/program')
            shutil.copy(ko, f'{self.run}/rgpu.ko')
        if a.out:
            os.makedirs(a.out, exist_ok=True)
            self.write('out', '')

    def write(self, name, text):
        with open(f'{self.run}/{name}', 'w') as f:
            f.write(text)

    def argv(self, ports):
        a = self.args
        tcg = self.accel == 'tcg'
        # Emulation on a busy host is slow, and that is not the kernel's fault: longer watchdogs, but not none. The timer's
        # check at boot counts ticks of the host's time and panics where they come late.
        append = 'console=ttyS0 panic=-1 loglevel=7 mitigations=off random.trust_cpu=on'
        append += ' watchdog_thresh=60 rcupdate.rcu_cpu_stall_timeout=180 no_timer_check' if tcg else ''
        # What the emulator has translated goes by its address: with libraries at another one in each process, every process's start
        # is translated anew (/bin/true: 0.4 s of user time, and 0.03 without).
        append += ' norandmaps' if tcg else ''
        # A debug kernel interprets ACPI's interrupt routing for minutes; the MP tables tell it the same.
        append += ' pci=noacpi' if '-' in a.kernel else ''
        append += ' rgpu.ram' if a.ram else ''
        # Nothing of ext4 or of another processor's is here, and looking for it takes more than a minute when emulated.
        append += ' systemd.mask=e2scrub_reap.service modprobe.blacklist=kvm_amd,kvm_intel,powernow_k8' if a.root else ''
        share = 'security_model=none,multidevs=remap'
        argv = ['qemu-system-x86_64', '-name', f'rgpu-{self.name}', '-nodefaults', '-no-user-config', '-display', 'none', '-no-reboot',
                '-accel', ('tcg,thread=single' if a.icount else 'tcg,thread=multi') if tcg else 'kvm', '-cpu', EMULATED_CPU if tcg else 'host',
                '-smp', '1' if a.icount else str(a.cpus), '-m', str(a.memory),
                '-kernel', self.kernel.image, '-initrd', self.kernel.initramfs(), '-append', append,
                '-chardev', f'file,id=log,path={self.log}', '-serial', 'chardev:log',
                '-virtfs', f'local,path={a.root or "/"},mount_tag=root,readonly=on,{share}',
                '-virtfs', f'local,path={self.run},mount_tag=run,readonly=on,{share}',
                '-netdev', 'user,id=net', '-device', 'virtio-net-pci,netdev=net,romfile=',
                '-object', 'rng-random,id=rng,filename=/dev/urandom', '-device', 'virtio-rng-pci,rng=rng',
                '-device', 'virtio-serial-pci', '-chardev', f'file,id=proxy,path={self.proxy_log}',
                '-device', 'virtserialport,chardev=proxy,name=proxy']
        if a.root:
            argv += ['-virtfs', f'local,path={REPO},mount_tag=repo,readonly=on,{share}']
        if a.icount:
            argv += ['-icount', 'shift=0,sleep=off']
        if a.out:
            argv += ['-virtfs', f'local,path={os.path.realpath(a.out)},mount_tag=out,{share}']
        for n, (name, fd) in enumerate(ports.items(), 1):
            argv += ['-add-fd', f'set={n},fd={fd}', '-chardev', f'file,id={name},path=/dev/fdset/{n},append=on',
                     '-device', f'virtserialport,chardev={name},name={name}']
        if a.shell:
            argv += ['-chardev', 'stdio,id=tty,signal=off', '-device', 'virtconsole,chardev=tty']
        return argv

    def read_ctl(self, fd):
        with os.fdopen(fd, errors='replace') as f:
            for line in f:
                word, _, text = line.rstrip('\n').partition(' ')
                if word == 'exit':
                    self.status = int(text)
                elif word == 'fail':
                    self.problem = text
                elif word == 'step' and self.args.verbose:
                    say(f'{text} after {time.monotonic() - self.began:.1f} s')

    def boot(self):
        a = self.args
        readers, ports = {}, {}
        for name in ('ctl',) if a.shell else ('ctl', 'out', 'err'):
            readers[name], ports[name] = os.pipe()
        if a.verbose:
            say(f'kernel {self.kernel.release} under {self.accel}, log {os.path.relpath(self.log)}')
        self.began = time.monotonic()
        self.qemu = subprocess.Popen(self.argv(ports), stdin=None if a.shell else subprocess.DEVNULL, stdout=None if a.shell else 2,
                                     pass_fds=ports.values(), preexec_fn=die_with_parent)
        for fd in ports.values():
            os.close(fd)
        threads = [threading.Thread(target=self.read_ctl, args=(readers['ctl'],), daemon=True)]
        if not a.shell:
            threads += [threading.Thread(target=pump, args=(readers['out'], 1), daemon=True),
                        threading.Thread(target=pump, args=(readers['err'], 2), daemon=True)]
        for t in threads:
            t.start()
        try:
            code = self.qemu.wait(None if a.shell else a.time_limit)
        except subprocess.TimeoutExpired:
            raise Failed(f'the guest was still running after {a.time_limit} s (--time-limit): killed', 124)
        for t in threads:
            t.join(10)
        if code and self.status is None:
            raise Failed(f'QEMU ended with status {code}')

    def verdict(self):
        with open(self.log, errors='replace') as f:
            lines = f.read().replace('\r', '').splitlines()
        dirty = list(complaints(lines))
        if self.problem:
            raise Failed(self.problem)
        if dirty:
            raise Failed(f'the kernel complained (the command had ended with {self.status}): {dirty[0]}')
        if self.status is None:
            raise Failed('the guest ended before the command did')
        if self.server and not self.args.shell:
            self.check_server()
        return self.status

    def check_server(self):
        if self.server.proc.poll() is not None:
            raise Failed(f'the server ended by itself with status {self.server.proc.returncode}')
        # A worker outlives a connection by the grace period only if its session was not ended; all were.
        for _ in range(50):
            left = self.server.workers()
            if not left:
                return
            time.sleep(0.1)
        raise Failed(f'{len(left)} worker(s) left at the server 5 s after the guest ended')

    def forget_old_logs(self):
        """Logs that nobody named are kept for a day."""
        for name in os.listdir(f'{BUILD}/vm'):
            path = f'{BUILD}/vm/{name}'
            if re.match(r'6\.\d+-\d+\..*log$', name) and time.time() - os.path.getmtime(path) > 86400:
                os.unlink(path)

    def close(self):
        if self.qemu and self.qemu.poll() is None:
            self.qemu.kill()
            self.qemu.wait()
        if self.server:
            self.server.stop()
        shutil.rmtree(self.run, ignore_errors=True)
        for path in (self.server_log, self.proxy_log):
            if os.path.exists(path) and not os.path.getsize(path):
                os.unlink(path)

    def show_logs(self):
        for path in (self.log, self.proxy_log, self.server_log):
            if os.path.exists(path) and os.path.getsize(path):
                print(f'vm: the end of {os.path.relpath(path)}:\n{tail(path)}', file=sys.stderr)
