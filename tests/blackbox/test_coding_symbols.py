"""search_code: symbols of a workspace, as it is now (docs/coding.md)."""

import os
import secrets as random
import shutil

import pytest

import host
from client import until
from test_coding_shell import Work, texts

CTAGS = shutil.which('ctags')

PROJECT = {
    'src/sum.c': '#define LIMIT_OF_SUM 3\nstruct pair { int left, right; };\n\n'
                 'int sum_pair(const struct pair *p)\n{\n\treturn p->left / p->right;\n}\n',
    'lib/parse.py': 'class ConfigParser:\n    def read_file(self, path="a\\tb"):\n        pass\n',
    'web/load.js': 'export function loadAll(x) { return 1 }\n'
                   'export class HTTPClient { get() {} }\n',
    '.gitignore': 'built/\n',
    'built/out.c': 'int generated_by_tool;\n',
}


@pytest.fixture(scope='module')
def work(me):
    if not CTAGS:
        pytest.skip('universal-ctags is not installed: scripts/deps test')
    before = host.Residue(me.trees)
    made = Work(me)
    yield made
    assert made.mcp.close(timeout=100) == 0
    shutil.rmtree(made.path)
    before.check()


def fill(work, files):
    work.clear()
    for name, text in files.items():
        work.put(name, text)


def find(work, query, **arguments):
    return texts(work.call('search_code', query=query, **arguments))


def lines(work, query, **arguments):
    found = find(work, query, **arguments)[0]
    return [] if found == 'Nothing.' else found.splitlines()


def test_symbols(work):
    """In three languages: by name, by its beginning, by words of it and of what it is in."""
    fill(work, PROJECT)
    assert find(work, 'sum_pair') == [
        'src/sum.c:4  function sum_pair  int sum_pair(const struct pair *p)\n']
    assert lines(work, 'read_file')[0].startswith('lib/parse.py:2  member read_file  def read_file')
    assert lines(work, 'loadAll')[0].startswith('web/load.js:1  function loadAll  export function')
    assert lines(work, 'load all')[0] == lines(work, 'loadAll')[0]
    assert lines(work, 'http client')[0].startswith('web/load.js:2  class HTTPClient')
    assert lines(work, 'config pars')[0].startswith('lib/parse.py:1  class ConfigParser')
    assert lines(work, 'LIMIT')[0].startswith('src/sum.c:1  macro LIMIT_OF_SUM')
    # A name that is as it was asked for stands before others with the word.
    assert lines(work, 'pair')[0].startswith('src/sum.c:2  struct pair')
    assert len(lines(work, 'pair')) > 3 and len(lines(work, 'pair', limit=2)) == 2
    assert find(work, 'pair', limit=2)[1].startswith('2 of ')
    assert find(work, 'generated_by_tool') == ['Nothing.']
    for query in ('""', '* OR *', 'a AND', '(', "'; DROP TABLE files; --", '\u2028', 'x' * 512):
        assert not work.answer('search_code', query=query).get('isError'), query
    assert work.fails('invalid_arguments', 'search_code', query='')
    assert work.fails('invalid_arguments', 'search_code', query='x', limit=101)


def test_changes_are_seen(work):
    """By Edit, by Bash, by the host; files that are gone, moved, replaced by an older one."""
    fill(work, PROJECT)
    assert lines(work, 'sum_pair')
    work.call('Read', file_path='src/sum.c')
    work.call('Edit', file_path='src/sum.c', old_string='int sum_pair', new_string='int by_edit')
    assert not lines(work, 'sum_pair') and lines(work, 'by_edit')
    work.call('Bash', command='echo "int by_bash(void);" >> src/sum.c; '
                              'echo "int by_bash() {}" > new.c')
    assert lines(work, 'by_bash')[0].startswith('new.c:1  function by_bash')
    work.call('Bash', command='mv new.c moved.c')
    assert [line.split(':')[0] for line in lines(work, 'by_bash')] == ['moved.c']
    work.call('Bash', command='echo "int of_old() {}" > o; touch -d 2001-01-01 o; mv o moved.c')
    assert not lines(work, 'by_bash') and lines(work, 'of_old')
    work.put('host.py', 'def by_host():\n    pass\n')
    assert lines(work, 'by_host')
    work.call('Bash', command='rm -rf src lib moved.c')
    assert not lines(work, 'by_edit') and not lines(work, 'of_old') and lines(work, 'by_host')


def test_hostile_files(work):
    """Names and contents of any bytes; options for ctags in the workspace; links out of it."""
    fill(work, {'.ctags.d/evil.ctags': '--_echo=owned\n--exclude=*\n',
                '.ctags': '--exclude=*\n', '-x.c': 'int from_dash() { return 0; }\n',
                'big.c': 'int too_big;\n' + '/* x */\n' * 200_000,
                'bad.py': 'def broken(:\n' * 500 + '\0' * 100,
                'tags': '!_TAG_FILE_FORMAT\t2\nfoo\tbar\t1\n',
                'many.c': ''.join(f'int many_{n};\n' for n in range(5000))})
    odd = os.path.join(os.fsencode(work.path), b'\xff\n\t"; rm -rf *.c')
    with open(odd, 'wb') as f:
        f.write(b'int of_odd_name(void) { return 1; }\n')
    os.chown(odd, work.me.uid, work.me.uid)
    work.call('Bash', command='ln -s /etc/passwd link.c; ln -s . loop; mkfifo fifo.c')
    assert lines(work, 'from_dash')[0].startswith('-x.c:1  function from_dash')
    assert lines(work, 'of_odd_name')[0].startswith('file:///workspace/%FF%0A%09')
    assert find(work, 'too_big') == ['Nothing.'] and find(work, 'many_4999') == ['Nothing.']
    assert lines(work, 'many_1500')
    assert os.path.exists(odd)


def test_secrets(work):
    token = 'ghp_' + ''.join(random.choice('abcdefghijkABCDEFGHIJK0123456789') for _ in range(36))
    fill(work, {'key.py': f'API_TOKEN = "{token}"\n'})
    shown = ''.join(find(work, 'API_TOKEN'))
    assert 'key.py:1' in shown and token not in shown and 'REDACTED' in shown


def test_many_files_and_searches_at_once(work):
    """Ten thousand files; what comes at once is one after the other, and the same."""
    fill(work, {})
    work.call('Bash', timeout=300, command='mkdir d; cd d; for i in $(seq 10000); do '
              'echo "int unique_of_$i(void) { return $i; }" > f$i.c; done')

    def known():
        found = find(work, 'unique_of_9999')
        if work.facts('search_code', query='x')['unread'] == 0:
            return True
        assert 'not known yet' in found[-1]
        return False
    until(known, timeout=200, what='all files')
    assert lines(work, 'unique_of_9999')[0].startswith('d/f9999.c:1  function unique_of_9999')
    asked = {n: work.mcp.start('tools/call', {'name': 'search_code', 'arguments': {
        'query': f'unique_of_{n}', 'limit': 1}}) for n in range(1, 33)}
    for n in (1, 2, 3, 30):
        work.mcp.notify('notifications/cancelled', {'requestId': asked.pop(n)})
    for n, one in asked.items():
        assert texts(work.mcp.wait(one, timeout=100)['result'])[0].startswith(f'd/f{n}.c:1'), n
    work.call('Bash', command='echo "int unique_of_edit(void) { return 0; }" > d/f5000.c')
    assert lines(work, 'unique_of_edit') and not lines(work, 'unique_of_5000')


def test_readonly(me):
    work = Work(me, '--readonly')
    work.put('a.py', 'def of_readonly():\n    pass\n')
    found = find(work, 'of_readonly')[0]
    assert found.startswith('a.py:1  ')
    assert work.mcp.close() == 0
    shutil.rmtree(work.path)


def test_without_ctags(me):
    """Words instead, and it says so."""
    if os.getuid() != 0 or not CTAGS:
        pytest.skip('another program can only stand in for ctags where root tests')
    hidden = os.path.realpath(CTAGS)
    prefix = me.prefix
    me.prefix = ['unshare', '-m', 'sh', '-c', 'mount --bind /bin/false "$0" && exec "$@"', hidden,
                 *prefix]
    try:
        work = Work(me)
    finally:
        me.prefix = prefix
    work.put('a.c', 'int one_name(void);\nint other_name = one_name();\n')
    work.put('bin', 'one_name\0')
    found, note = find(work, 'one_name')
    assert found == 'a.c:1  word one_name\n' and 'no Universal Ctags' in note
    assert lines(work, 'other')[0] == 'a.c:2  word other_name'
    work.call('Bash', command='echo fresh_word > note.txt')
    assert lines(work, 'fresh_word') == ['note.txt:1  word fresh_word']
    work.put('env', 'DB_PASSWORD=kx9Lq2vTzz\n\nlast_word=1\n')
    assert lines(work, 'last_word') == ['env:3  word last_word']
    assert not lines(work, 'kx9') and lines(work, 'DB_PASSWORD')
    assert work.mcp.close() == 0
    shutil.rmtree(work.path)
