"""What is wrong with a `holt serve` is found before it takes the place of the hub that runs."""

import os
import re
import socket

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
    assert home_of.run('execs', 'box') == runs and 'running' in runs
    taken.close()


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
