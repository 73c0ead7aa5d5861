"""Files: text, bytes, odd names, large ones, archives, and what happens to them."""

import io
import os
import pathlib
import tarfile

import pytest

import holt
from face import scenario

ODD = ['two words', "quote' \" and `tick`", 'grüße-日本語', 'tab\tand\nline', '-rf', '%2F%00',
       'a?b=c&d#e', 'x' * 200]


@scenario
async def test_text_and_bytes(face, box):
    await box.files.write('deep/er/text.txt', 'grüße\r\n')
    assert await box.files.read('deep/er/text.txt') == 'grüße\r\n'
    every = bytes(range(256))
    await box.files.write('bytes', every)
    assert await box.files.read_bytes('bytes') == every
    with pytest.raises(holt.ValidationError) as caught:
        await box.files.read('bytes')
    assert caught.value.code == 'not_text'
    await box.files.write(pathlib.PurePosixPath('empty'), '')
    assert await box.files.read('empty') == ''
    await box.files.write('run.sh', 'echo ran', mode=0o755)
    assert (await box.commands.run('./run.sh')).stdout == 'ran\n'


@scenario
async def test_large(face, box):
    data = os.urandom((2 << 20) + 5)
    await box.files.write('large', data)
    assert await box.files.read_bytes('large') == data
    with pytest.raises(holt.ValidationError) as caught:
        await box.files.read_bytes('large', max_bytes=1 << 20)
    assert caught.value.code == 'too_large'
    process = await box.commands.start('sleep 300', stdin_open=True)
    with pytest.raises(holt.ValidationError) as caught:  # refused by its head
        await process.write(b'x' * (3 << 20))
    assert caught.value.code == 'body_too_large'


@scenario
async def test_odd_names(face, box):
    for i, name in enumerate(ODD):
        await box.files.write(f'odd/{name}', str(i))
    listed = await box.files.list('odd')
    assert sorted(one.name for one in listed) == sorted(ODD)
    for one in listed:
        assert await box.files.read(one.path) == str(ODD.index(one.name))
    await box.files.rename(f'odd/{ODD[0]}', f'odd/{ODD[0]}.new')
    assert await box.files.exists(f'odd/{ODD[0]}.new') and not await box.files.exists(
        f'odd/{ODD[0]}')
    with pytest.raises(holt.ValidationError):
        await box.files.write('a\0b', 'x')


@scenario
async def test_tree(face, box):
    await box.files.mkdir('tree/below')
    await box.files.mkdir('tree/below')
    await box.files.write('tree/file', 'abc')
    listed = {one.name: one for one in await box.files.list('tree')}
    assert listed['below'].is_dir and listed['below'].type == 'directory'
    assert listed['file'].size == 3 and listed['file'].mode == 0o644
    assert [one.path for one in await box.files.list()] == ['tree']
    assert len(await box.files.list('tree', limit=1)) == 1
    what = await box.files.stat('/workspace/tree/file')
    assert (what.name, what.type, what.size) == ('file', 'file', 3) and what.modified_at > 0
    with pytest.raises(holt.ValidationError):
        await box.files.remove('tree')
    await box.files.remove('tree/file')
    await box.files.remove('tree', recursive=True)
    for lost in (box.files.stat('tree'), box.files.read('tree'), box.files.remove('tree'),
                 box.files.rename('tree', 'other'), box.files.list('tree')):
        with pytest.raises(holt.NotFoundError) as caught:
            await lost
        assert caught.value.context['path'] and caught.value.audit_id


def archive(**files):
    to = io.BytesIO()
    with tarfile.open(fileobj=to, mode='w') as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return to.getvalue()


@scenario
async def test_archives(face, box):
    data = os.urandom(3 << 20)
    tar = archive(one=data, two=b'2')
    for name in ('whole', 'pieces'):
        await box.files.mkdir(name)
    await box.files.upload('whole', tar)
    await box.files.upload('pieces', (tar[at:at + 100000] for at in range(0, len(tar), 100000)))
    assert await box.files.read_bytes('pieces/one') == data
    got = await (await box.files.download('whole')).read()
    with tarfile.open(fileobj=io.BytesIO(got)) as back:
        assert back.extractfile('one').read() == data
    pieces = await box.files.download('whole')  # and a part of it
    async for piece in pieces:
        assert piece
        break
    await pieces.close()
    with pytest.raises(holt.NotFoundError):
        await box.files.download('nowhere')
    with pytest.raises(holt.ValidationError):
        await box.files.upload('whole', b'no archive at all' * 100)


@scenario
async def test_watch(face, box):
    async with await box.files.watch(recursive=True) as events:
        assert await events.get(timeout=0.05) is None
        await box.files.write('new', '1')
        event = await events.get(timeout=60)
        assert (event.kind, event.path, event.is_dir) == ('created', 'new', False)
        await box.files.write('new', '2')
        assert (await events.get(timeout=60)).kind == 'modified'
        await box.files.rename('new', 'newer')
        moved = [await events.get(timeout=60) for _ in range(2)]
        assert {one.kind: one.path for one in moved} == {'moved_from': 'new', 'moved_to': 'newer'}
        assert moved[0].cookie == moved[1].cookie
        await box.files.mkdir('below')
        assert (await events.get(timeout=60)).is_dir
        await box.files.remove('newer')
        async for event in events:
            if event.kind == 'removed':
                break
    with pytest.raises(holt.NotFoundError):
        await box.files.watch('nowhere')
