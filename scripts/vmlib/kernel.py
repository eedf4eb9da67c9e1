# SPDX-License-Identifier: MIT
# A guest kernel from the cache: its initramfs, its module tree with rgpu.ko in it, and whether it boots under KVM.

import fcntl, hashlib, lzma, os, shutil, subprocess, tempfile

from vmlib.common import BUILD, REPO, Failed, die_with_parent, say, setup

# What the initramfs needs before it can read modules from the host's root.
EARLY = ('virtio_pci', '9pnet_virtio', '9p', 'overlay', 'virtio_net', 'virtio_console')


class Kernel:
    def __init__(self, version):
        self.version = version
        self.release = setup('--kernel', version)
        self.root = setup('--kernel', version, 'root')
        self.image = setup('--kernel', version, 'image')
        self.modules = f'{self.root}/lib/modules/{self.release}'

    def early_modules(self):
        """Paths of EARLY and what they need, in the order to insert them."""
        deps = {}
        with open(f'{self.modules}/modules.dep') as f:
            for line in f:
                path, _, needs = line.partition(':')
                name = os.path.basename(path).split('.')[0].replace('-', '_')
                deps[name] = [path] + needs.split()
        with open(f'{self.modules}/modules.builtin') as f:
            builtin = {os.path.basename(line.strip()).split('.')[0].replace('-', '_') for line in f}
        order = []
        for name in EARLY:
            if name in builtin:
                continue
            if name not in deps:
                raise Failed(f'kernel {self.release} has no module {name}: it cannot be a guest (the cloud flavour has no 9p)')
            # modules.dep lists what a module needs, the nearest first.
            for path in reversed(deps[name]):
                if path not in order:
                    order.append(path)
        return [f'{self.modules}/{p}' for p in order]

    def initramfs(self):
        """Builds it, or finds the one that the same inputs made before."""
        init = os.path.join(REPO, 'tests/vm/init')
        busybox = '/bin/busybox'
        h = hashlib.sha256((self.release + repr(EARLY)).encode())
        for path in (init, busybox):
            with open(path, 'rb') as f:
                h.update(f.read())
        out = f'{BUILD}/vm/initramfs-{self.release}-{h.hexdigest()[:12]}'
        if os.path.exists(out):
            return out
        with tempfile.TemporaryDirectory(dir=f'{BUILD}/vm') as d:
            for sub in ('bin', 'dev', 'mods', 'new', 'proc', 'sys'):
                os.mkdir(f'{d}/{sub}')
            shutil.copy(busybox, f'{d}/bin/busybox')
            shutil.copy(init, f'{d}/init')
            os.chmod(f'{d}/init', 0o755)
            names = []
            for path in self.early_modules():
                name = os.path.basename(path).split('.')[0]
                opener = lzma.open if path.endswith('.xz') else open
                with opener(path, 'rb') as src, open(f'{d}/mods/{name}.ko', 'wb') as dst:
                    shutil.copyfileobj(src, dst)
                names.append(name)
            with open(f'{d}/mods/order', 'w') as f:
                f.write('\n'.join(names) + '\n')
            tmp = f'{d}.cpio'
            with open(tmp, 'wb') as f:
                subprocess.run('find . | cpio -o -H newc --quiet | gzip -1', shell=True, cwd=d, stdout=f, check=True)
            os.rename(tmp, out)
        return out

    def module_tree(self, into, ko):
        """Makes into/lib/modules/RELEASE: the kernel's own modules and rgpu.ko as an update, with depmod's tables."""
        needs = subprocess.run(['modinfo', '-F', 'depends', ko], stdout=subprocess.PIPE, text=True, check=True).stdout
        alias = subprocess.run(['modinfo', '-F', 'alias', ko], stdout=subprocess.PIPE, text=True, check=True).stdout
        key = hashlib.sha256((needs + alias).encode()).hexdigest()[:12]
        # depmod takes seconds and its tables depend on these fields alone: one table for all builds of rgpu.ko.
        tables = f'{BUILD}/vm/modules-{self.release}-{key}'
        rel = f'lib/modules/{self.release}'

        def lay(base):
            os.makedirs(f'{base}/{rel}/updates')
            os.symlink(f'{self.modules}/kernel', f'{base}/{rel}/kernel')
            shutil.copy(ko, f'{base}/{rel}/updates/rgpu.ko')

        if not os.path.isdir(tables):
            tmp = tempfile.mkdtemp(dir=f'{BUILD}/vm')
            lay(tmp)
            for name in ('modules.order', 'modules.builtin', 'modules.builtin.modinfo'):
                shutil.copy(f'{self.modules}/{name}', f'{tmp}/{rel}/{name}')
            subprocess.run(['depmod', '-b', tmp, self.release], check=True)
            try:
                os.rename(tmp, tables)
            except OSError:  # another run was faster
                shutil.rmtree(tmp)
        lay(into)
        for name in os.listdir(f'{tables}/{rel}'):
            if name.startswith('modules.'):
                shutil.copy(f'{tables}/{rel}/{name}', f'{into}/{rel}/{name}')


def accelerator(kernel):
    """'kvm' when a guest really boots under it, else 'tcg'; asked once per boot of the host."""
    forced = os.environ.get('RGPU_VM_ACCEL')
    if forced:
        if forced not in ('kvm', 'tcg'):
            raise Failed(f'RGPU_VM_ACCEL={forced}: want kvm or tcg')
        return forced
    if not os.access('/dev/kvm', os.R_OK | os.W_OK):
        return 'tcg'
    with open('/proc/sys/kernel/random/boot_id') as f:
        key = f'{f.read().strip()} {os.uname().release}'
    path = os.path.join(setup('--print-cache'), 'kvm-probe')
    with open(path + '.lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            with open(path) as f:
                was, _, result = f.read().strip().rpartition(' ')
            if was == key and result in ('kvm', 'tcg'):
                return result
        except FileNotFoundError:
            pass
        say('/dev/kvm is there: trying whether a guest boots under it (15 s at most)')
        result = 'kvm' if kvm_boots(kernel) else 'tcg'
        with open(path, 'w') as f:
            f.write(f'{key} {result}\n')
    return result


def kvm_boots(kernel):
    argv = ['qemu-system-x86_64', '-nodefaults', '-no-user-config', '-display', 'none', '-no-reboot', '-accel', 'kvm', '-cpu', 'host',
            '-m', '512', '-serial', 'stdio', '-kernel', kernel.image, '-initrd', kernel.initramfs(),
            '-append', 'console=ttyS0 quiet panic=-1 rgpu.probe']
    try:
        r = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           timeout=15, preexec_fn=die_with_parent)
        return b'rgpu-probe-ok' in r.stdout
    except subprocess.TimeoutExpired:
        return False
