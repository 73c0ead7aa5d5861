"""holt images pull: what skopeo is asked for, what comes of it,
and what is refused before it is asked."""

import json
import os
import shutil
import signal
import subprocess

import pytest

import image_files as files
from folder import REFUSED, Fake, without_programs, work  # noqa: F401
from image_files import entry
from test_images import read

SKOPEO = '''#!/bin/sh
# Stands for skopeo: says what it was asked for, and copies the layout FAKE_LAYOUT.
for word; do printf '%s|' "$word" >> "$FAKE_LOG"; done
echo >> "$FAKE_LOG"
echo progress
echo complaint >&2
[ -z "$FAKE_WAIT" ] || { mkdir layout; echo waiting >&2; exec sleep 1000; }
cp -r "$FAKE_LAYOUT" layout
exit "${FAKE_STATUS:-0}"
'''


@pytest.fixture
def skopeo(work):  # noqa: F811
    fake = Fake(work, 'skopeo', SKOPEO)
    yield fake
    fake.remove()


def pull(work, skopeo, *arguments, **more):  # noqa: F811
    return work.who.run('images', 'pull', *arguments, env={**skopeo.env, **more})


DIGEST = 'sha256:' + 'a1' * 32


@pytest.mark.parametrize('reference, source, name', [
    ('alpine', 'docker://alpine', 'alpine:latest'),
    ('alpine:3.20', 'docker://alpine:3.20', 'alpine:3.20'),
    ('docker://library/alpine:V1.0_x-y', 'docker://library/alpine:V1.0_x-y',
     'alpine:V1.0_x-y'),
    ('reg.example:5000/a/b-c_d', 'docker://reg.example:5000/a/b-c_d',
     'reg.example:5000/a/b-c_d:latest'),
    ('localhost:5000/a:1', 'docker://localhost:5000/a:1', 'localhost:5000/a:1'),
    ('a/b:1@' + DIGEST, 'docker://a/b:1@' + DIGEST, 'a/b:1')])
def test_references(work, skopeo, reference, source, name):  # noqa: F811
    done = pull(work, skopeo, reference)
    assert done.returncode == 0 and done.stdout.decode().split()[0] == name, done
    assert skopeo.asked() == [f'copy|--remove-signatures|{source}|oci:layout:holt|']
    assert done.stderr == b'complaint\n'  # its progress is for terminals
    assert (read(work.store.root(name), 'made') == b'made' and os.listdir(work.store.path + '/new')
            == [])


def test_a_name_of_our_own(work, skopeo):  # noqa: F811
    for reference, source in (('oci:/srv/l:tag', None), ('oci-archive:/srv/a.tar', None),
                              ('docker-archive:/srv/a.tar:x:1', None), ('dir:/srv/a b', None),
                              ('oci:l', 'oci:/l'), ('a@' + DIGEST, 'docker://a@' + DIGEST),
                              ('a', 'docker://a')):
        done = pull(work, skopeo, reference, 'mine:1')
        assert done.returncode == 0 and done.stdout.startswith(b'mine:1  '), done
        assert skopeo.asked()[-1].split('|')[2] == (source or reference)
    found = json.loads(pull(work, skopeo, '-o', 'json', 'a', 'mine:2').stdout)
    assert found['names'] == ['a:latest', 'mine:1', 'mine:2'] or 'mine:2' in found['names']


NO_REFERENCES = (
    '', '--all', '-', '-x', ' alpine', 'al pine', 'alpine;true', 'alpine\n', 'alpine\x1b[0m',
    '$(true)', 'a//b', '/a', 'a/', ':1', 'a:', 'a:b:c', 'a@b', 'a@sha256:12', 'a@md5:' + '0' * 32,
    'docker-daemon:alpine:3', 'containers-storage:alpine', 'ostree:a', 'sif:a', 'http://a/b',
    'docker://', 'docker:///a', 'oci:', 'dir:', 'oci:/a\nb', 'host:port/a', '../a', 'a/../b',
    'A' * 600)


def test_what_is_no_reference(work, skopeo):  # noqa: F811
    for reference in NO_REFERENCES:
        done = pull(work, skopeo, *(['--'] if reference.startswith('-') else []), reference, 'mine')
        assert (done.returncode in (2, REFUSED) and done.stdout == b''
                and done.stderr.startswith(b'holt')), done
        assert b'\x1b' not in done.stderr and skopeo.asked() == []
    assert work.store.json('ls') == []


def test_without_a_name(work, skopeo):  # noqa: F811
    for reference in ('oci:/srv/l', 'dir:/x', 'a@' + DIGEST, 'Host.Example/a'):
        done = pull(work, skopeo, reference)
        assert done.returncode == REFUSED and skopeo.asked() == [], done


def test_skopeo_fails(work, skopeo):  # noqa: F811
    before = work.store.tree()
    done = pull(work, skopeo, 'alpine', FAKE_STATUS='3')
    assert (done.returncode == REFUSED and b'complaint\n' in done.stderr
            and b'status 3' in done.stderr and done.stdout == b'')
    done = pull(work, skopeo, 'alpine', FAKE_LAYOUT='/nowhere', FAKE_STATUS='0')
    assert done.returncode == REFUSED and done.stdout == b''
    assert work.store.tree() == before


def test_what_it_copies_is_hostile(work, skopeo):  # noqa: F811
    before = work.store.tree()
    evil = files.layout(skopeo.layout + '-evil', files.layer(entry('../x')))
    try:
        done = pull(work, skopeo, 'alpine', FAKE_LAYOUT=evil)
        assert done.returncode == REFUSED and b'".."' in done.stderr and work.store.tree() == before
    finally:
        shutil.rmtree(evil)


def test_no_skopeo(work):  # noqa: F811
    done = without_programs(work.who, 'images', 'pull', 'alpine')
    assert (done.returncode == REFUSED and b'the package skopeo' in done.stderr
            and b'holt images import' in done.stderr)


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_interrupted(work, skopeo, residue, number):  # noqa: F811
    before = work.store.tree()
    with subprocess.Popen(work.who.argv('images', 'pull', 'alpine'),
                          env={**work.who.env, **skopeo.env, 'FAKE_WAIT': '1'}, cwd='/',
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as proc:
        assert proc.stderr.readline() == b'complaint\n' and proc.stderr.readline() == b'waiting\n'
        assert len(os.listdir(work.store.path + '/new')) == 1
        proc.send_signal(number)
        assert proc.wait(60) == -number
        assert proc.stdout.read() == b''
    assert work.store.tree() == before


def test_skopeo_itself(work):  # noqa: F811
    """Where it is installed, and without a registry: from a layout."""
    if not shutil.which('skopeo'):
        pytest.skip('skopeo is not installed: scripts/deps test')
    path = files.layout(work.path + '/l', files.layer(entry('a', b'of skopeo')), ref='x')
    work.give()
    done = work.who.run('images', 'pull', f'oci:{path}:x', 'real')
    assert done.returncode == 0, done
    assert read(work.store.root('real'), 'a') == b'of skopeo'
