"""sandbox_exec: what goes in, what comes out, how it ends."""

import base64
import json
import os
import random
import re
import time

import pytest

from client import until


# ---- what goes in --------------------------------------------------------------------------------

def test_argv_is_taken_word_by_word(sb):
    words = ['a b', '$HOME', '*', "'", '"', '\\', '', '-n', 'ünï', 'new\nline', ';true']
    got = sb.argv('printf', '[%s]', *words)
    assert got['stdout'] == ''.join(f'[{w}]' for w in words)


def test_command_is_a_shell_line(sb):
    assert sb.sh('A=1; echo $((A + 1)) | tr 2 x; cd /tmp && pwd') == 'x\n/tmp\n'


def test_command_has_bash_where_there_is_one(sb):
    if os.path.exists('/bin/bash'):
        assert sb.sh('[[ a == a ]] && echo <(:) | cut -c1-4') == '/dev\n'


def test_standard_input_is_empty_unless_given(sb):
    assert sb.sh('cat; echo end') == 'end\n'
    assert sb.sh('readlink /proc/self/fd/0') == '/dev/null\n'


@pytest.mark.parametrize('text', ['', 'x', 'one\ntwo', 'nul\0nul', 'ü' * 1000])
def test_standard_input_as_text(sb, text):
    got = sb.exec('od -An -v -tx1', stdin=text)
    assert bytes.fromhex(got['stdout']) == text.encode()


def test_standard_input_as_bytes(sb):
    data = bytes(range(256)) * 20
    got = sb.exec('cat', stdin_base64=base64.b64encode(data).decode())
    assert base64.b64decode(got['stdout_base64']) == data


def test_much_standard_input(sb):
    text = ''.join(random.Random(1).choices('abcdefgh\n', k=8 << 20))
    assert sb.exec('wc -c; cat >/dev/null', stdin=text)['stdout'].strip() == str(len(text))
    got = sb.exec('md5sum', stdin=text)['stdout']
    sb.write('same', text)
    assert got.split()[0] == sb.sh('md5sum same').split()[0]


def test_standard_input_that_nobody_reads(sb):
    assert sb.exec('true', stdin='x' * (4 << 20))['exit_code'] == 0
    assert sb.exec('exec <&-; sleep 0.2; echo on', stdin='x' * (4 << 20))['stdout'] == 'on\n'


def test_both_kinds_of_standard_input_are_too_many(sb):
    assert (sb.fails('sandbox_exec', command='cat', stdin='a', stdin_base64='YQ==')['code']
            == 'invalid_arguments')


def test_environment(sb):
    got = sb.sh('env', env={'A': 'b c', 'EMPTY': '', 'Q': "'\"$\\ =\n", 'ünï': 'ö',
                            'PATH': '/usr/bin:/bin'})
    for line in ('A=b c', 'EMPTY=', "Q='\"$\\ =\n", 'ünï=ö', 'PATH=/usr/bin:/bin'):
        assert line + '\n' in got


def test_environment_has_nothing_of_the_host(start):
    mcp = start('--pool', '0', env={'AWS_SECRET': 'hush', 'LD_PRELOAD': '',
                                    'MITOS_API_KEY': 'hush'})
    names = {line.split('=')[0] for line in mcp.create().sh('env').splitlines()}
    assert 'hush' not in mcp.create().sh('env')
    assert names <= {'PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'LC_ALL', 'TERM', 'TMPDIR',
                     'PWD', 'SHLVL', '_',
                     'HOSTNAME', 'OLDPWD'}


def test_environment_of_the_sandbox_and_of_the_command(box):
    sb = box(env={'A': 'sandbox', 'B': 'sandbox'})
    assert sb.sh('echo $A $B', env={'B': 'command'}) == 'sandbox command\n'
    assert sb.sh('echo $A $B') == 'sandbox sandbox\n'


@pytest.mark.parametrize('name', ['', 'A=B', '=', 'A\0B'])
def test_names_that_no_variable_can_have(sb, name):
    assert sb.fails('sandbox_exec', command='true', env={name: 'x'})['code'] == 'invalid_arguments'


def test_working_directory(box):
    sb = box()
    assert sb.sh('pwd') == '/workspace\n'
    assert sb.sh('pwd', cwd='/tmp') == '/tmp\n'
    sb.sh('mkdir -p "a b/ü"')
    assert sb.sh('pwd', cwd='/workspace/a b/ü') == '/workspace/a b/ü\n'
    assert sb.sh('pwd', cwd='a b') == '/workspace/a b\n'
    assert box(cwd='/tmp').sh('pwd') == '/tmp\n'


def test_working_directory_that_is_none(sb):
    sb.write('file', '')
    for cwd in ('/nowhere', 'file', '/root/x'):
        assert sb.fails('sandbox_exec', command='true', cwd=cwd)['code'] == 'command_not_executable'


def test_programs_that_are_none(sb):
    assert (sb.fails('sandbox_exec', command='no-such-program', args=[])['code']
            == 'command_not_found')
    assert sb.fails('sandbox_exec', command='./nothing', args=[])['code'] == 'command_not_found'
    sb.write('plain', '#!/bin/sh\necho hi\n')
    assert sb.fails('sandbox_exec', command='./plain', args=[])['code'] == 'command_not_executable'
    assert sb.fails('sandbox_exec', command='/tmp', args=[])['code'] == 'command_not_executable'
    sb.sh('chmod +x plain')
    assert sb.argv('./plain')['stdout'] == 'hi\n'
    sb.write('odd', '#!/no/such/interpreter\n', mode='0755')
    assert sb.fails('sandbox_exec', command='./odd', args=[])['code'] in ('command_not_found',
                                                                          'command_not_executable')


def test_a_shell_that_finds_no_program_is_a_result(sb):
    got = sb.exec('no-such-program')
    assert got['exit_code'] == 127 and 'not found' in got['stderr']


def test_a_program_of_the_sandboxs_own_path(sb):
    sb.write('/workspace/bin/mine', '#!/bin/sh\necho mine\n', mode='0755')
    assert sb.argv('mine', env={'PATH': '/workspace/bin:/usr/bin:/bin'})['stdout'] == 'mine\n'


def test_many_arguments(sb):
    words = ['w'] * 4000
    assert sb.argv('sh', '-c', 'echo $#', 'sh', *words)['stdout'] == '4000\n'
    assert sb.argv('sh', '-c', 'printf %s "$1" | wc -c', 'sh', 'x' * 90_000)['stdout'] == '90000\n'
    assert (sb.fails('sandbox_exec', command='true', args=['x' * 90_000, 'y' * 90_000])['code']
            in ('too_large', 'invalid_arguments'))


# ---- what comes out ------------------------------------------------------------------------------

def test_streams_are_apart(sb):
    got = sb.exec('echo a; echo b >&2; echo c; echo d >&2')
    assert (got['stdout'], got['stderr']) == ('a\nc\n', 'b\nd\n')


def test_ten_thousand_lines_in_order(sb):
    got = sb.exec('i=0; while [ $i -lt 10000 ]; do echo $i; echo e$i >&2; i=$((i+1)); done')
    assert got['stdout'] == ''.join(f'{i}\n' for i in range(10_000))
    assert got['stderr'] == ''.join(f'e{i}\n' for i in range(10_000))


def test_binary_output(sb):
    got = sb.exec("printf '\\0\\377\\376ok\\n'; printf good >&2")
    assert got['stdout'] == '\0\ufffd\ufffdok\n'
    assert base64.b64decode(got['stdout_base64']) == b'\0\xff\xfeok\n'
    assert got['stderr'] == 'good' and 'stderr_base64' not in got


def test_control_characters_and_unicode(sb):
    text = ''.join(chr(c) for c in range(1, 0x300)) + '\u2028\U0001f600\ufffd"\\/'
    got = sb.exec('cat', stdin=text)
    assert got['stdout'] == text and 'stdout_base64' not in got


def test_output_over_the_budget_is_head_and_tail(sb):
    got = sb.exec('seq 1 100000', max_output_bytes=1024)
    whole = ''.join(f'{i}\n' for i in range(1, 100_001))
    head, line, tail = re.fullmatch(r'(.*)\n(\[\.\.\. \d+ bytes elided \.\.\.\])\n(.*)',
                                    got['stdout'], re.S).groups()
    assert whole.startswith(head) and whole.endswith(tail)
    assert len(head) == len(tail) == 512
    assert got['stdout_elided_bytes'] == len(whole) - 1024
    assert line == f'[... {len(whole) - 1024} bytes elided ...]'
    assert 'stderr_elided_bytes' not in got


def test_output_at_the_budget_is_whole(sb):
    for n, elided in ((1024, None), (1025, 1)):
        got = sb.exec(f'head -c {n} /dev/zero | tr "\\0" x >&2', max_output_bytes=1024)
        assert got.get('stderr_elided_bytes') == elided
        assert len(got['stderr']) == 1024 + (len('\n[... 1 bytes elided ...]\n') if elided else 0)


@pytest.mark.parametrize('n', [4095, 4096, 4097, 5001, 12_000, 70_000])
def test_one_long_word_without_a_line_end(sb, n):
    """Redaction holds its end back until the program ends."""
    got = sb.exec(f'head -c {n} /dev/zero | tr "\\0" x | tee /dev/stderr')
    assert got['stdout'] == got['stderr'] == 'x' * n


def test_no_character_is_cut_by_the_budget(sb):
    got = sb.exec('yes ü€😀 | head -c 100000', max_output_bytes=1025)
    assert '\ufffd' not in got['stdout'].rstrip('\ufffd') and got['stdout_elided_bytes'] > 98_000


def test_a_flood_is_bounded_and_ends_at_its_timeout(sb):
    got = sb.exec('yes', timeout_seconds=4)
    assert (got['timed_out'] and got['stdout_elided_bytes'] > 1 << 20
            and len(got['stdout']) < (1 << 20) + 100)


def test_the_largest_output_that_may_be_asked_for(sb):
    got = sb.exec('head -c 2097152 /dev/zero | tr "\\0" "\\1"; head -c 2097152 /dev/zero >&2',
                  max_output_bytes=2 << 20)
    assert got['stdout'] == '\x01' * (2 << 20) and got['stderr'] == '\0' * (2 << 20)


# ---- how it ends ---------------------------------------------------------------------------------

@pytest.mark.parametrize('code', [0, 1, 2, 42, 124, 125, 126, 127, 128, 137, 255])
def test_exit_codes(sb, code):
    got = sb.exec(f'exit {code}')
    assert got['exit_code'] == code and 'signal' not in got and not got['timed_out']


@pytest.mark.parametrize('number', [1, 2, 6, 9, 11, 15, 34])
def test_signals(sb, number):
    got = sb.exec(f'kill -{number} $$')
    assert (got['exit_code'], got['signal']) == (128 + number, number)
    assert not got['hit_memory'] and not got['timed_out']


def test_usage(sb):
    begun = time.monotonic()
    got = sb.argv('python3', '-c',
                  'import time; x = bytearray(50_000_000)\nwhile time.process_time() < 0.3: pass')
    assert 290 <= got['cpu_ms'] <= got['wall_ms'] + 10
    assert got['wall_ms'] <= 1000 * (time.monotonic() - begun) + 10
    assert 50_000_000 <= got['peak_memory_bytes'] < 100_000_000


def test_sleep_costs_no_cpu(sb):
    got = sb.exec('sleep 0.5')
    assert got['cpu_ms'] < 400 and got['wall_ms'] >= 500


HIDE = '''
import os, sys, time
def hide(depth):
    if os.fork(): os._exit(0)
    os.setsid()
    if depth: hide(depth - 1)
for _ in range(3):
    if not os.fork():
        hide(2)
        for fd in range(3): os.close(fd)
        time.sleep(1000)
'''


def test_timeout_kills_the_whole_tree(sb):
    sb.write('hide.py', HIDE)
    got = sb.exec('setsid sleep 1000 & (sleep 1000 &) ; '
                  'python3 hide.py; nohup sleep 1000 & trap "" TERM INT HUP; '
                  'while :; do sleep 1000; done', timeout_seconds=1)
    assert got['timed_out'] and got['exit_code'] == 124
    until(lambda: sb.running('sleep') == 0 and sb.running('python3') == 0,
          what='the end of what was killed')


def test_timeout_of_one_command_spares_the_others(sb):
    other = sb.start('sleep 2; echo other')
    sb.exec('sleep 1000 >/dev/null 2>&1 & echo $! > pid')
    assert sb.exec('sleep 1000', timeout_seconds=1)['timed_out']
    assert sb.client.result(other)['stdout'] == 'other\n'
    assert sb.sh('kill -0 $(cat pid) && echo lives') == 'lives\n'


def test_output_before_the_timeout_is_kept(sb):
    got = sb.exec('echo early; echo err >&2; sleep 1000', timeout_seconds=3)
    assert (got['stdout'], got['stderr'], got['timed_out']) == ('early\n', 'err\n', True)


def test_the_text_tells_a_timeout_from_an_own_124(sb):
    def text(command, **more):
        return json.loads(sb.client.text('sandbox_exec', sandbox=sb.id, command=command, **more))
    own = text('exit 124')
    assert list(own) == ['exit_code', 'stdout', 'stderr'] and own['exit_code'] == 124
    late = text('echo early; sleep 1000', timeout_seconds=3)
    assert list(late) == ['exit_code', 'stdout', 'stderr', 'timed_out']
    assert (late['exit_code'], late['stdout'], late['timed_out']) == (124, 'early\n', True)
    assert text('kill -9 $$')['signal'] == 9
    assert text('head -c 5000 /dev/zero | tr "\\0" x',
                max_output_bytes=1024)['stdout_elided_bytes'] == 5000 - 1024


def test_a_fork_bomb_ends_at_its_timeout(box):
    sb = box(pids=64)
    got = sb.exec(':(){ :|:& };:; sleep 1000', timeout_seconds=2)
    assert got['timed_out'] or got['exit_code']
    until(lambda: sb.exec('echo fine').get('stdout') == 'fine\n' if sb.gone() is None else None,
          what='a usable sandbox')


def test_background_processes_survive_and_hold_nobody_up(sb):
    got = sb.exec('sleep 1000 & echo started')  # it holds stdout
    assert got['stdout'] == 'started\n' and not got['timed_out']
    until(lambda: sb.running('sleep') == 1, what='it')
    sb.exec('(while :; do date +%s%N > clock; sleep 0.05; done) >/dev/null 2>&1 &')
    first = until(lambda: sb.exec('cat clock')['stdout'])
    until(lambda: sb.sh('cat clock') not in ('', first), what='a running clock')


def test_zombies_of_orphans_are_reaped(sb):
    sb.exec('for i in 1 2 3 4 5 6 7 8; do (sleep 0.05 &) ; done')
    until(lambda: sb.running('sleep') == 0, what='their end')
    until(lambda: 'Z' not in sb.sh("cut -d')' -f2 /proc/[0-9]*/stat | cut -c2"),
          what='their collection')


def test_it_has_no_terminal_and_no_descriptor_too_many(sb):
    assert sb.sh('ls /proc/self/fd').split() == ['0', '1', '2', '3']  # 3 is ls's own
    assert sb.exec('exec 3</dev/tty')['exit_code'] != 0
    assert sb.sh('ps -o sid= -p $$ 2>/dev/null || cut -d" " -f6 /proc/$$/stat').strip() != '0'


def test_signals_are_at_their_defaults(sb):
    for line in ('SigBlk', 'SigIgn'):
        assert sb.sh(f'grep {line} /proc/self/status').split()[1] == '0' * 16


def test_identity_inside(sb):
    assert sb.sh('id -u; id -g; hostname') .split()[:2] == ['1000', '1000']
    assert (sb.sh('echo ~; test -w ~ && test -w /tmp && test -w /workspace && test ! -w /usr && '
                  'echo as it should')
            .endswith('as it should\n'))
