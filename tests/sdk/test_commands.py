"""Commands: to their end, as they print, in the background, on terminals."""

import time

import pytest

import holt
from conftest import SECRET
from face import every, scenario
from holt import Output, SecretRef, Terminal


@scenario
async def test_run(face, box):
    done = await box.commands.run(['sh', '-c', 'echo "$1"; echo err >&2; exit 3', 'sh', 'a b'])
    assert (done.exit_code, done.stdout, done.stderr, done.ok) == (3, 'a b\n', 'err\n', False)
    assert done.audit_id.startswith('run_') and done.duration_ms > 0 and not done.timed_out
    record = (await face.client.audit_record(done.audit_id))['record']
    assert (record['action'], record['target']) == ('sandbox.exec', box.id)
    done = await box.commands.run('cat; pwd; echo $A; id -u', stdin='in\n', cwd='/tmp',
                                  env={'A': 'grüße'}, user='user', check=True)
    assert done.stdout == 'in\n/tmp\ngrüße\n1000\n'
    every = bytes(range(256)) * 10
    assert (await box.commands.run('cat', stdin=every)).stdout_bytes == every
    killed = await box.commands.run('kill -9 $$')
    assert (killed.exit_code, killed.signal) == (137, 9)
    with pytest.raises(holt.ValidationError):
        await box.commands.run([])
    done = await box.commands.run('echo hi; echo no >&2; exit 2')  # what print() shows
    assert repr(done) == "CommandResult(exit_code=2, stdout='hi\\n', stderr='no\\n')"
    assert len(repr(await box.commands.run('seq 100000'))) < 3000


@scenario
async def test_secrets_by_reference(face, box):
    """The program has the value; no answer has."""
    done = await box.commands.run('echo ${#KEY}; echo $KEY', secrets={'KEY': SecretRef('of-store')})
    assert done.stdout.splitlines()[0] == str(len(SECRET)) and SECRET not in done.stdout
    with pytest.raises(holt.ValidationError) as caught:
        await box.commands.run('true', secrets={'KEY': SECRET})
    assert SECRET not in str(caught.value.to_dict())
    with pytest.raises((holt.NotFoundError, holt.PolicyDeniedError)):  # the operator; the token
        await box.commands.run('true', secrets={'KEY': SecretRef('nope')})


@scenario
async def test_timeout(face, box):
    done = await box.commands.run('echo before; sleep 60', timeout_seconds=2)
    assert done.timed_out and done.exit_code == 124 and done.stdout == 'before\n'
    seen = []
    done = await box.commands.run('echo before; sleep 60', timeout_seconds=2,
                                  on_stdout=seen.append)
    assert done.timed_out and done.exit_code == 124 and b''.join(seen) == b'before\n'
    with pytest.raises(holt.TimedOutError) as caught:
        await box.commands.run('echo before; sleep 60', timeout_seconds=2, check=True)
    assert caught.value.result.stdout == 'before\n' and caught.value.failure == 'timeout'


@scenario
async def test_output_is_bounded(face, box):
    """The head and the tail of each stream, whichever way it came."""
    most = 1 << 20
    command = 'echo first; head -c 3000000 /dev/zero | tr "\\0" x; echo last; echo e >&2'
    for more in ({}, {'on_stderr': lambda data: None}):
        done = await box.commands.run(command, max_output_bytes=most, **more)
        mark = f'\n[... {done.stdout_elided_bytes} bytes elided ...]\n'
        assert mark in done.stdout and done.stderr == 'e\n'
        kept = len(done.stdout_bytes) - len(mark)
        assert kept <= most and done.stdout.startswith('first\n')
        assert done.stdout.endswith('last\n')
        assert kept + done.stdout_elided_bytes == 3000000 + len('first\nlast\n')
    done = await box.commands.run(command, max_output_bytes=1024)
    assert len(done.stdout_bytes) < 1100 and done.stdout_elided_bytes > 2900000


@scenario
async def test_as_it_prints(face, box):
    out, err = [], []
    done = await box.commands.run('echo a; echo b >&2; sleep 0.1; echo c', on_stdout=out.append,
                                  on_stderr=err.append)
    assert b''.join(out) == b'a\nc\n' == done.stdout_bytes and b''.join(err) == b'b\n'
    async with await box.commands.stream('echo a; echo b >&2; exit 4') as output:
        pieces = [piece async for piece in output]
        assert {piece.stream: piece.text for piece in pieces} == {'stdout': 'a\n', 'stderr': 'b\n'}
        assert output.result.exit_code == 4 and output.result.audit_id
    done = await (await box.commands.code('import sys; print(6 * 7); sys.exit(5)')).wait()
    assert (done.stdout, done.exit_code) == ('42\n', 5)
    done = await (await box.commands.code('echo $((1 + 1))', 'bash', timeout_seconds=5)).wait()
    assert done.stdout == '2\n'
    for failing in (box.commands.stream(['nope']), box.commands.run(['nope'])):
        with pytest.raises(holt.GuestError) as caught:
            stream = await failing
            await stream.wait()
        assert caught.value.code == 'exec_failed'


@scenario
async def test_a_stream_that_is_left_ends_its_command(face, box):
    async with await box.commands.stream('echo $$; sleep 300') as output:
        async for piece in output:
            pid = int(piece.text)
            break
    deadline = time.monotonic() + 60
    while (await box.commands.run(f'kill -0 {pid} 2>/dev/null')).ok:
        assert time.monotonic() < deadline, 'it goes on'


@scenario
async def test_in_the_background(face, box):
    process = await box.commands.start('echo ready; read line; echo got $line; exit 6',
                                       stdin_open=True, id='mine', keep_bytes=1 << 20)
    assert process.id == 'mine' and process.audit_id
    assert await process.wait_for('ready') and (await process.info()).state == 'running'
    assert await process.wait_for(pattern='^rea.y$', timeout_seconds=5)
    with pytest.raises(holt.TimedOutError) as caught:
        await process.wait_for('never', timeout_seconds=1)
    assert caught.value.code == 'wait_timeout'
    with pytest.raises(holt.TimedOutError):
        await process.wait(1)
    same = box.commands.connect('mine')
    await same.write('grüße\n', close=True)
    done = await process.wait(60)
    assert (done.exit_code, done.stdout) == (6, 'ready\ngot grüße\n')
    assert (await same.wait()).audit_id is None  # found by its id alone
    with pytest.raises(holt.CommandError):
        await process.wait(check=True)
    chunks, offset, eof = await process.output(6, limit=4)
    assert (b''.join(c.data for c in chunks), offset, eof) == (b'got ', 10, False)
    pieces = [piece async for piece in await process.follow(6, stream='stdout')]
    assert b''.join(piece.data for piece in pieces) == 'got grüße\n'.encode()
    assert pieces[0] == Output('stdout', pieces[0].data, 6)
    assert b''.join([piece.data async for piece in process]) == done.stdout_bytes
    listed, = await box.commands.list()
    assert (listed.id, listed.state, listed.exit_code) == ('mine', 'exited', 6)
    assert await process.wait_for('never') is False
    assert await process.kill() is True and await process.kill() is False


@scenario
async def test_signals(face, box):
    process = await box.commands.start('trap "echo caught; exit 7" USR1; echo on; '
                                       'while :; do sleep 0.1; done')
    await process.wait_for('on')
    await process.signal(10)
    done = await process.wait(60)
    assert (done.exit_code, done.stdout) == (7, 'on\ncaught\n')
    process = await box.commands.start(['sleep', '300'])
    await process.signal()
    done = await process.wait(60)
    assert (done.exit_code, done.signal) == (143, 15)
    never = await box.commands.start('sleep 300', timeout_seconds=1)
    assert (await never.wait(60)).timed_out


@scenario
async def test_a_terminal(face, box):
    async with await box.pty(terminal=Terminal(100, 30), env={'PS1': '> '}) as terminal:
        await terminal.write('stty size\n')
        seen = ''
        while '30 100' not in seen:
            seen += (await terminal.read(20)).text
        await terminal.resize(90, 25)
        await terminal.write('stty size; tty; exit 5\n')
        done = await terminal.wait(60)
    assert '25 90' in done.stdout and '/dev/pts/' in done.stdout and done.exit_code == 5
    async with await box.pty(['tty']) as terminal:
        assert b'/dev/pts/' in b''.join([piece.data async for piece in terminal])
        assert (await terminal.wait()).exit_code == 0


@every
@scenario
async def test_a_channel(face, box):
    every = bytes(range(256)) * 4096  # 1 MiB both ways
    async with await box.commands.open(['cat'], cwd='/tmp') as channel:
        await channel.write(every[:100])
        got = b''
        while len(got) < 100:  # what may be the beginning of a secret is held back a little
            got += (await channel.read(20)).data
        assert got == every[:100] and await channel.read(0.05) is None
        for at in range(100, len(every), 65536):
            await channel.write(every[at:at + 65536])
            await channel.read(20)
        await channel.close_stdin()
        done = await channel.wait(60)
    assert done.stdout_bytes == every and done.exit_code == 0 and done.audit_id
    async with await box.commands.open('echo $$; sleep 300') as channel:
        await channel.read(20)
        await channel.signal(9)
        assert (await channel.wait(60)).exit_code == 137
    async with await box.commands.open('sleep 300', terminal=Terminal()) as channel:
        with pytest.raises(holt.TimedOutError):
            await channel.wait(0.05)
    async with await box.commands.open(['nope']) as channel:
        with pytest.raises(holt.GuestError):
            await channel.wait(60)
    gone = await face.Sandbox.connect(box.id, client=face.client)
    process = await gone.commands.start('cat', terminal=Terminal())
    async with await process.attach(0) as channel:
        await process.resize(70, 20)
        await channel.write('typed\n')
        seen = b''
        while seen.count(b'typed') < 2:
            seen += (await channel.read(20)).data
        await channel.write(b'\x04')
        assert (await channel.wait(60)).exit_code == 0
    with pytest.raises(holt.NotFoundError):
        await box.commands.connect('nope').attach()
