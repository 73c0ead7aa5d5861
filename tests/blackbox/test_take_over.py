"""What is wrong with a `holt serve` is found before it takes the place of the hub that runs."""

import os
import re
import shutil
import socket

import pytest

from test_hub_verbs import home, home_of  # noqa: F401

# Of each option, arguments that are wrong. {name}: a file or address of the test's.
BAD = {
    '--listen': ['nonsense', '127.0.0.1', '127.0.0.1:99999', '192.0.2.1:1', '{taken}'],
    '--socket': ['{file}', '{there}/' + 'x' * 200, '{missing}/s'],
    '--tls-cert': ['{file}', '{file} --tls-key {file}', '{missing} --tls-key {key}',
                   '{file} --tls-key {missing}'],
    '--tls-key': ['{key}'],
    '--tls-client-ca': ['{file}'],
    '--allow-host': ['a/b'],
    '--allow-origin': ['nonsense', 'https://A'],
    '--public-url': ['nonsense'],
    '--preview': ['nonsense', '{taken}', '192.0.2.1:1'],
    '--preview-domain': ['a.example --preview 127.0.0.1:0', '.. --preview 127.0.0.1:0'],
    '--compat': ['nonsense', 'e2b,nonsense', 'mitos-tokenless --allow-host a'],
    '--tools': ['nonsense'],
    '--workspace': ['{missing}', '{file}'],
    '--readonly': ['yes'],
    '--rate': ['x', '-1', '10000001'],
    '--exit-idle': ['x', '1d1', '99999h'],
    '--yield': [''],  # to one that yields itself
    '--pool': ['x', '65'],
    '--max-sandboxes': ['0', '8001'],
    '--sleep-after': ['x', '9999h'],
    '--allow-volumes': ['{missing}', '{there}:rx'],
    '--allow': ['a b', ':1', 'http://'],
    '--service': ['nonsense', 'a.holt:80', 'a.example:80=127.0.0.1:1'],
    '--resolver': ['nonsense'],
    '--config': ['{missing}', '{file}', '{unknown}', '{tls}', '{compat}'],
    '--memory': ['1', 'x', '9999T'],
    '--disk': ['x', '9999T', '2G --memory 1G'],
    '--pids': ['0', 'x'],
    '--cpus': ['0', 'x'],
    '--open-files': ['0', 'x'],
    '--allow-missing': [],  # every name is one of a feature that may be missing
    '--help': [],
}


def test_nothing_wrong_ends_a_hub(home_of, tmp_path):  # noqa: F811
    """Each option, its file and its address: its commands run on, as the same hub."""
    shown = home_of.who.run('serve', '--help', text=True).stdout
    assert set(re.findall(r'^ {2,6}(?:-\w, )?(--[\w-]+)', shown, re.M)) == set(BAD)
    os.chmod(tmp_path, 0o755)
    taken = socket.create_server(('127.0.0.1', 0))
    known = {'taken': '127.0.0.1:%d' % taken.getsockname()[1], 'there': home_of.path,
             'missing': os.path.join(home_of.path, 'missing')}
    for name, text in {'file': 'nonsense', 'key': 'nonsense', 'unknown': '{"unknown": 1}',
                       'tls': '{"tls": {"certificate": "/missing", "key": "/missing"}}',
                       'compat': '{"compat": {"apis": ["nonsense"]}}'}.items():
        known[name] = os.path.join(home_of.path, name)
        with open(known[name], 'w') as f:
            f.write(text)
        os.chmod(known[name], 0o600)
        os.chown(known[name], home_of.who.uid, home_of.who.uid)
    home_of.run('up', '--name', 'box')
    home_of.run('exec', '-d', 'box', '--', 'sleep', '1000')
    before, runs = home_of.pid(), home_of.run('execs', 'box')
    for option, values in BAD.items():
        for value in values:
            more = [] if option in ('--listen', '--help') else ['--listen', 'none']
            done = home_of.who.run('serve', *more, option,
                                   *[v.format_map(known) for v in value.split()],
                                   env=home_of.env, text=True)
            said = (option, value, done)
            assert done.returncode not in (0, -9) and done.stderr.startswith('holt'), said
            assert 'hub before has ended' not in done.stderr, said
            assert home_of.pid() == before, said
            if (option, value) == ('--config', '{missing}'):
                assert known['missing'] in done.stderr and 'sandbox' not in done.stderr, said
    assert home_of.run('execs', 'box') == runs and 'running' in runs
    taken.close()


# Of the data folder, a path's that can't be judged.
UNJUDGED = {
    'hub': 'the lock by which one knows who runs: another file is not locked',
    'warden/lock': 'the same of the warden',
    'hub.log': 'nothing reads it, and a hub that was started by hand has none',
}


def spoil(path, aside, how, who):
    """The original is then at aside."""
    os.rename(path, aside)
    if how == 'link':
        return os.symlink(aside, path)
    if how == 'folder':
        os.mkdir(path, 0o700)
    else:
        with open(path, 'w') as f:
            f.write('nonsense' * 100)
        os.chmod(path, 0o600)
    os.chown(path, who.uid, who.uid)


def mend(path, aside):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)
    os.rename(aside, path)


def parts_of(path):
    """Each file and folder below, relative."""
    found = []
    for at, folders, files in os.walk(path):
        found += [os.path.relpath(os.path.join(at, name), path) for name in folders + files]
    return sorted(p for p in found if p not in UNJUDGED)


@pytest.mark.parametrize('how', ['folder', 'nonsense', 'link'])
def test_nothing_broken_leaves_none(home_of, how):  # noqa: F811
    """Each file and folder of the data folder is something else: the hub before goes on with its
    command, or the next one has its sandbox."""
    home_of.run('up', '--name', 'box')
    home_of.run('ws', 'create', 'w')
    home_of.run('snapshot', 'create', 'box')
    home_of.run('secret', 'set', 'a', input='the value')
    aside, before = home_of.path + '.aside', None
    for name in parts_of(home_of.path):
        path = os.path.join(home_of.path, name)
        # an empty folder for a folder is no damage that one could see
        if not os.path.lexists(path) or (how == 'folder' and os.path.isdir(path)):
            continue
        if before is None or home_of.pid() != before:  # one for each hub
            home_of.run('exec', '-d', 'box', '--', 'sleep', '1000')
        before = home_of.pid()
        spoil(path, aside, how, home_of.who)
        served = home_of.serve()
        if served.poll() is None and home_of.pid() == served.pid:
            assert home_of.run('exec', 'box', '--', 'echo', 'on') == 'on\n', name
            served.kill()
        failed, said = served.wait(), served.stderr.read()
        served.stdout.close()
        served.stderr.close()
        mend(path, aside)
        assert failed and 'hub before has ended' not in said, (name, said)
        if failed > 0:
            assert home_of.pid() == before and 'running' in home_of.run('execs', 'box'), name


def test_an_address_of_the_hub_before(home_of):  # noqa: F811
    """It is free as soon as that has yielded."""
    with socket.create_server(('127.0.0.1', 0)) as free:
        at = '127.0.0.1:%d' % free.getsockname()[1]
    first = home_of.serve('--yield', '--listen', at, '--preview', '127.0.0.1:0')
    box = home_of.run('up').strip()
    again = home_of.who.run('serve', '--yield', '--listen', at, env=home_of.env, text=True)
    assert again.returncode == 125 and 'another hub' in again.stderr
    second = home_of.serve('--listen', at)
    assert first.wait() == 0 and home_of.pid() == second.pid
    assert home_of.run('exec', box, '--', 'echo', 'on') == 'on\n'
    third = home_of.who.run('serve', '--listen', at, env=home_of.env, text=True)
    assert third.returncode == 125 and f'pid {second.pid}' in third.stderr
    home_of.run('hub', 'stop')
    assert second.wait() == 0
    for p in (first, second):
        p.stdout.close()
        p.stderr.close()
