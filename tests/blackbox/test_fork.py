"""sandbox_fork: n copies of the files as they were at one instant, all or none."""

import json
import time

import pytest

from client import Failed, until
from test_limits import FORK

pytestmark = pytest.mark.rights


def tree(sb, path='/workspace'):
    """All that is below a path: names, kinds, modes, links, contents."""
    got = sb.exec(f'cd {path} && find . -printf "%P %y %m %n %s %l %T@\\n" | grep -v "^ " | sort; '
                  f'find . -type f | sort | xargs -r -d "\\n" md5sum')
    return got['stdout']


def test_files_diverge(sb):
    sb.write('f', 'common')
    kids = sb.fork(3)
    for i, kid in enumerate(kids):
        assert kid.content('f') == 'common'
        kid.write('f', f'kid {i}')
        kid.write(f'own-{i}', '')
    sb.write('f', 'source')
    assert [kid.content('f') for kid in kids] == ['kid 0', 'kid 1', 'kid 2']
    assert [kid.sh('ls own-*') for kid in kids] == ['own-0\n', 'own-1\n', 'own-2\n']
    assert sb.sh('ls; cat f') == 'f\nsource'


def test_everything_about_files_is_copied(sb):
    sb.sh('''
        mkdir -p d/e "sp ace" && echo 1 > d/e/one && ln d/e/one hard
        ln -s d/e/one soft && ln -s /nowhere broken
        mkfifo pipe; chmod 711 hard; chmod u+s hard 2>/dev/null; chmod 1777 d
        touch -d "2001-02-03 04:05:06" old; truncate -s 3M sparse
        echo hidden > .hidden; printf "\\377\\0" > bin; echo x > "new
line"; mkdir -m 0 closed; mkdir empty
        touch /tmp/t ~/h /var/tmp/v
    ''')
    before = tree(sb)
    kid, = sb.fork()
    assert tree(kid) == before == tree(sb)
    assert 'hard f 711 2' in before or 'hard f 4711 2' in before
    kid.sh('test -f /tmp/t && test -f ~/h && test -f /var/tmp/v')


def test_what_was_deleted_stays_deleted(sb):
    sb.sh('mkdir d; echo 1 > d/a; echo 2 > d/b; echo 3 > c')
    one, = sb.fork()
    one.sh('rm d/a c; mv d/b d/moved')
    two, = one.fork()
    two.sh('rm -rf d; mkdir d; echo new > d/only')
    three, = two.fork()
    assert three.sh('find . -type f | sort') == './d/only\n'
    assert two.sh('find . -type f | sort') == './d/only\n'
    assert one.sh('find . -type f | sort') == './d/moved\n'
    assert sb.sh('find . -type f | sort') == './c\n./d/a\n./d/b\n'
    three.sh('echo again > d/a')
    assert three.sh('ls d') == 'a\nonly\n'


def test_renamed_directories(sb):
    sb.sh('mkdir -p a/b/c; echo deep > a/b/c/f; echo top > a/t')
    one, = sb.fork()
    one.sh('mv a z; mv z/b moved; echo more > moved/c/g')
    two, = one.fork()
    two.sh('mv moved/c a; rm z/t')
    three, = two.fork()
    assert three.sh('find . -type f | sort | xargs grep .') == './a/f:deep\n./a/g:more\n'
    assert one.sh('find . -type f | sort') == './moved/c/f\n./moved/c/g\n./z/t\n'
    assert sb.sh('find . -type f | sort') == './a/b/c/f\n./a/t\n'


def test_what_the_template_has_can_be_hidden_and_stays_so(sb):
    if sb.exec('mv /etc/hosts /tmp/hosts')['exit_code']:
        pytest.skip('/etc is not writable')
    kid, = sb.fork()
    assert kid.exec('test -e /etc/hosts')['exit_code'] == 1


def test_kinds_that_replace_each_other(sb):
    sb.sh('mkdir d; touch d/x; touch f; ln -s f l')
    one, = sb.fork()
    one.sh('rm -r d; touch d; rm f; mkdir f; touch f/y; rm l; mkfifo l')
    two, = one.fork()
    assert two.sh('stat -c "%n %F" d f l').splitlines() == ['d regular empty file', 'f directory',
                                                            'l fifo']
    assert two.sh('ls f') == 'y\n'
    two.sh('rm -r f d l; mkdir d')
    three, = two.fork()
    assert three.sh('find .') == '.\n./d\n'


def test_hundred_megabytes(sb):
    sb.sh('head -c 104857600 /dev/urandom > big')
    digest = sb.sh('sha256sum big')
    begun = time.monotonic()
    got = sb.client.call('sandbox_fork', sandbox=sb.id, replicas=3)
    assert got['milliseconds'] < 1000 * (time.monotonic() - begun) + 1
    kids = [type(sb)(sb.client, {'sandbox': i}) for i in got['sandboxes']]
    kids[0].sh('printf x | dd of=big bs=1 seek=1000 conv=notrunc 2>/dev/null')
    assert kids[0].sh('sha256sum big') != digest
    assert (kids[1].sh('sha256sum big') == kids[2].sh('sha256sum big') == sb.sh('sha256sum big')
            == digest)
    sb.sh('rm big')
    assert kids[1].sh('sha256sum big') == digest
    for kid in kids:
        kid.terminate()


def test_a_busy_source_is_copied_at_one_instant(sb):
    """The writer lengthens b only after a: a copy in which it is otherwise was not made at one
    instant."""
    sb.exec("""(while :; do echo >> a; echo >> b; done) >/dev/null 2>&1 &
               (while :; do date +%N >> grows; sleep 0.001; done) >/dev/null 2>&1 &""")
    until(lambda: sb.exec('test -s b')['exit_code'] == 0, what='the writer')
    for _ in range(5):
        for kid in sb.fork(2):
            a, b = map(int, kid.sh('stat -c %s a b').split())
            assert b > 0 and a - b in (0, 1)
            # processes are not copied
            assert kid.running('date') == 0 and kid.running('sleep') == 0
            kid.terminate()
    before = sb.sh('stat -c %s b')
    until(lambda: sb.sh('stat -c %s b') != before, what='the writer to go on')


def test_a_busy_source_keeps_its_open_files(sb):
    run = sb.start('exec 3>log; i=0; while [ $i -lt 20 ]; do until [ $i -lt 10 -o -e go ]; '
                   'do sleep 0.05; done; '
                   'echo $i >&3; i=$((i+1)); sleep 0.05; done; echo end')
    until(lambda: sb.exec('cat log')['stdout'], what='the first line')
    kids = sb.fork(2)
    sb.write('go', '')
    assert sb.client.result(run)['stdout'] == 'end\n'
    assert sb.sh('wc -l < log') == '20\n'
    for kid in kids:
        assert 0 < int(kid.sh('wc -l < log')) <= 10
        kid.sh('echo mine >> log')
    assert sb.sh('wc -l < log') == '20\n'


def test_writes_during_a_fork_are_not_lost(sb):
    """Files written through the tools while forks are under way are in the source, all of them."""
    calls = []
    for i in range(60):
        calls.append(sb.client.start_tool('sandbox_write_file', sandbox=sb.id, path=f'f{i}',
                                          content=str(i)))
        if i % 10 == 5:
            calls.append(sb.client.start_tool('sandbox_fork', sandbox=sb.id, replicas=2))
    for one in calls:
        try:
            made = sb.client.result(one).get('sandboxes', [])
        except Failed as e:
            assert e.code == 'conflict', e  # one fork of a sandbox at a time
            made = []
        for kid in made:
            assert sb.client.call('sandbox_exec', sandbox=kid,
                                  command='ls -A | grep -v "^f[0-9]*$"')['stdout'] == ''
            sb.client.call('sandbox_write_file', sandbox=kid, path='f', content='')
            sb.client.call('sandbox_terminate', sandbox=kid)
    assert sb.sh('cat f* | wc -c').strip() == str(sum(len(str(i)) for i in range(60)))


def test_execs_during_a_fork_go_on(sb):
    runs = [sb.start(f'sleep 0.3; echo {i}') for i in range(10)]
    kids = sb.fork(4)
    runs += [sb.start(f'echo {i}') for i in range(10, 20)]
    assert [sb.client.result(r)['stdout'] for r in runs] == [f'{i}\n' for i in range(20)]
    assert [kid.sh('echo up') for kid in kids] == ['up\n'] * 4


def test_processes_are_not_copied(sb):
    sb.exec('sleep 1000 >/dev/null 2>&1 &')
    until(lambda: sb.running('sleep') == 1, what='the sleep')
    kid, = sb.fork()
    assert kid.running('sleep') == 0 and sb.running('sleep') == 1


def test_eight_at_once(sb):
    sb.write('f', 'x')
    kids = sb.fork(8)
    assert [kid.content('f') for kid in kids] == ['x'] * 8
    for kid in kids:
        kid.terminate()
    assert sb.content('f') == 'x'


def test_all_or_none(spawn):
    mcp = spawn('--pool', '0', '--max-sandboxes', '8')
    sb = mcp.create()
    sb.write('f', 'x')
    kids = sb.fork(4)
    for n in (8, 4):
        error = sb.fails('sandbox_fork', replicas=n)
        assert error['code'] == 'limit_exceeded' and error['retryable']
    more = sb.fork(3)
    assert [kid.content('f') for kid in kids + more] == ['x'] * 7
    assert mcp.fails('sandbox_create', pool='host')['code'] == 'limit_exceeded'
    kids[0].terminate()
    mcp.create()


def test_thirty_deep(sb):
    """Each generation adds a file, changes one and deletes one;
    past some depth layers are squashed."""
    chain = [sb]
    sb.sh('mkdir keep; echo 0 > keep/0; echo gen 0 > gen; touch gone-0')
    for i in range(1, 31):
        kid, = chain[-1].fork()
        kid.sh(f'echo {i} > keep/{i}; echo gen {i} > gen; rm gone-{i - 1}; touch gone-{i}; '
               f'rm -rf d; mkdir d; touch d/{i}')
        chain.append(kid)
    for _ in range(2):  # while it is squashed, and when it may be
        for i in (0, 1, 15, 25, 30):
            expected = (''.join(f'{n}\n' for n in sorted(map(str, range(i + 1))))
                        + f'gen {i}\ngone-{i}\n' + (f'{i}\n' if i else ''))
            assert (chain[i].sh('ls keep; cat gen; ls | grep gone; ls d 2>/dev/null; true')
                    == expected), i
            assert chain[i].sh('cat keep/*').split() == sorted(map(str, range(i + 1)))
        time.sleep(0.3)
    for old in chain[:30:2]:  # what others stand on may end
        old.terminate()
    assert chain[30].sh('cat gen; ls keep | wc -l').split() == ['gen', '30', '31']
    chain[30].write('still', 'writable')
    for old in chain[1:31:2] + [chain[30]]:
        old.terminate()


def test_many_forks_of_one(sb):
    """The source is frozen again and again, and stays right."""
    for i in range(40):
        sb.write('f', str(i))
        kid, = sb.fork()
        assert kid.content('f') == str(i)
        kid.terminate()
    assert sb.sh('ls -A; cat f') == 'f\n39'


def test_limits_are_inherited(box):
    kid, = box(disk_mb=3, pids=16, memory_mb=64).fork()
    assert 'No space left' in kid.exec('head -c 10000000 /dev/zero > f')['stderr']
    kid.sh('rm f')
    assert int(kid.exec(FORK)['stdout'].split()[0]) < 16
    kid.terminate()


def test_memory_limit_is_inherited(box, exact):
    kid, = box(memory_mb=64).fork()
    assert kid.exec("python3 -c 'x = bytearray(200 << 20)'")['hit_memory']
    kid.terminate()


def test_environment_and_directory_are_inherited(box):
    kid, = box(env={'A': 'inherited'}, cwd='/tmp').fork()
    grand, = kid.fork()
    for one in (kid, grand):
        assert one.sh('echo $A; pwd') == 'inherited\n/tmp\n'
        one.write('rel', 'x')
        assert one.sh('cat /tmp/rel') == 'x'
        one.terminate()


def test_forks_outlive_their_source(box):
    sb = box()
    sb.write('f', 'x')
    kid, = sb.fork()
    sb.terminate()
    assert kid.content('f') == 'x'
    kid.write('f', 'y')
    grand, = kid.fork()
    kid.terminate()
    assert grand.content('f') == 'y'
    grand.terminate()


def test_a_full_disk_can_be_forked(box):
    sb = box(disk_mb=2)
    sb.exec('head -c 9000000 /dev/zero > f')
    size = sb.sh('stat -c %s f')
    kid, = sb.fork()
    assert kid.sh('stat -c %s f') == size
    kid.sh('rm f; echo room > g')
    kid.terminate()


def test_forks_of_what_is_gone(sb):
    sb.terminate()
    assert sb.fails('sandbox_fork', replicas=2)['code'] == 'sandbox_not_found'


def test_text_is_a_json_array(sb):
    ids = json.loads(sb.client.text('sandbox_fork', sandbox=sb.id, replicas=2))
    assert len(ids) == 2
    for i in ids:
        sb.client.call('sandbox_terminate', sandbox=i)


def test_fork_and_terminate_race(hub):
    for _ in range(10):
        sb = hub.create()
        fork = hub.start_tool('sandbox_fork', sandbox=sb.id, replicas=2)
        end = hub.start_tool('sandbox_terminate', sandbox=sb.id)
        try:
            kids = hub.result(fork)['sandboxes']
        except Failed as e:
            assert e.code in ('sandbox_not_found', 'cancelled', 'conflict', 'sandbox_lost'), e
            kids = []
        try:
            hub.result(end)
        except Failed as e:
            assert e.code == 'conflict', e
            kids.append(sb.id)
        for kid in kids:
            hub.call('sandbox_terminate', sandbox=kid)
