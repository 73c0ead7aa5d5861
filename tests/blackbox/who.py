"""Which Holt is tested, and the identities that run it."""

import json
import os
import shutil
import subprocess
import tempfile

import pytest

from client import Client

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get('HOLT_BUILD') or os.path.join(os.path.dirname(os.path.dirname(HERE)),
                                                     'build')
HOLT = os.path.join(BUILD, 'src/bin/holt')
# A uid and gid that belong to nobody: no passwd entry, no subordinate ids. Suites beside each other
# have one each, since the kernel counts what a user has.
NOBODY = int(os.environ.get('HOLT_TEST_UID', '61234'))

# Node.js from npm: what Debian 12 has is too old for many programs.
NEW_NODE = os.path.join(os.path.dirname(HERE), 'conformance', 'node_modules', 'node-linux-'
                        + {'x86_64': 'x64', 'aarch64': 'arm64'}[os.uname().machine], 'bin', 'node')


def node_program(least=18):
    """Node.js of that version at least."""
    program = shutil.which('node')
    if not program or not os.path.isdir(os.path.join(HERE, 'node_modules')):
        pytest.skip('Node.js or its packages are missing: scripts/deps test')
    version = subprocess.run([program, '--version'], capture_output=True, text=True,
                             check=True).stdout
    return program if int(version.strip('v').split('.')[0]) >= least else NEW_NODE


def node(script, asked, timeout=250, least=18):
    """Runs a script of sdk/ with a JSON value on its standard input; what it prints, decoded."""
    done = subprocess.run([node_program(least), os.path.join(HERE, 'sdk', script)],
                          input=json.dumps(asked), timeout=timeout, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    return json.loads(done.stdout)


class Who:
    """An identity to run Holt with, and directories that are its alone."""

    def __init__(self, name):
        self.name = name
        self.uid = os.getuid()
        self.prefix = []
        if name == 'user' and self.uid == 0:
            self.uid = NOBODY
            self.prefix = ['setpriv', f'--reuid={NOBODY}', f'--regid={NOBODY}', '--clear-groups',
                           '--inh-caps=-all']
        self.top = tempfile.mkdtemp(prefix='blackbox.')
        os.chmod(self.top, 0o755)
        self.logs = os.path.join(self.top, 'logs')
        os.mkdir(self.logs)
        self.n_logs = 0
        self.trees = []
        for kind in ('home', 'runtime', 'tmp', 'work'):
            path = os.path.join(self.top, kind)
            os.mkdir(path, 0o700)
            os.chown(path, self.uid, self.uid)
            self.trees.append(path)
        home, runtime, tmp, self.work = self.trees
        for below in ('data', 'data/holt'):  # which stays, with the audit log in it
            os.mkdir(os.path.join(home, below), 0o700)
            os.chown(os.path.join(home, below), self.uid, self.uid)
        self.env = {
            'PATH': '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
            'LANG': 'C.UTF-8',
            'HOME': home, 'XDG_RUNTIME_DIR': runtime, 'TMPDIR': tmp,
            'XDG_CONFIG_HOME': home + '/config', 'XDG_DATA_HOME': home + '/data',
            'XDG_STATE_HOME': home + '/state', 'XDG_CACHE_HOME': home + '/cache',
            **{k: v for k, v in os.environ.items() if k.endswith('SAN_OPTIONS')
               or k == 'HOLT_TEST_RUN'}}

    def argv(self, *arguments):
        return [*self.prefix, HOLT, *arguments]

    def log(self):
        self.n_logs += 1
        return os.path.join(self.logs, str(self.n_logs))

    def mcp(self, *arguments, env=None):
        return Client(self.argv('mcp', *arguments), {**self.env, **(env or {})}, self.log())

    def run(self, *arguments, timeout=60, env=None, **options):
        """Runs holt with these arguments; stdout and stderr are captured unless told."""
        options.setdefault('stdout', subprocess.PIPE)
        options.setdefault('stderr', subprocess.PIPE)
        options.setdefault('cwd', '/')
        if 'input' not in options:
            options.setdefault('stdin', subprocess.DEVNULL)
        return subprocess.run(self.argv(*arguments), env={**self.env, **(env or {})},
                              timeout=timeout,
                              check=False, **options)

    def reaches_holt(self):
        return subprocess.run([*self.prefix, 'test', '-x', HOLT], check=False).returncode == 0


# ---- a user with ids of /etc/subuid --------------------------------------------------------------

WITH_IDS = ('for f in passwd subuid subgid; do mount --bind "$0/$f" "/etc/$f" || exit 125; done; '
            'exec "$@"')


def with_ids(top, count=65536):
    """What runs a program as the user without rights, who has that many ids."""
    etc = os.path.join(top, 'etc')
    os.makedirs(etc, exist_ok=True)
    shutil.copy('/etc/passwd', etc + '/passwd')
    with open(etc + '/passwd', 'a', encoding='ascii') as f:
        f.write(f'ranger:x:{NOBODY}:{NOBODY}::/nonexistent:/bin/sh\n')
    for name in ('subuid', 'subgid'):
        with open(f'{etc}/{name}', 'w', encoding='ascii') as f:
            f.write(f'somebody:1000000:65536\nranger:2000000:{count}\n')
    return ['unshare', '-m', 'sh', '-c', WITH_IDS, etc]


def ranger(count=65536):
    if not shutil.which('newuidmap') or not os.path.exists('/etc/subuid'):
        pytest.skip('newuidmap is not installed: scripts/deps test')
    who = Who('user')
    if not who.reaches_holt():
        pytest.skip('the build directory is closed to users without rights')
    who.prefix = [*with_ids(who.top, count), *who.prefix]
    return who
