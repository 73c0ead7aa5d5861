"""The documents as a whole: each example in them is right (JSON parses, what is of the operator's
file passes its check, verbs and options exist), the tutorial runs from the top to the bottom, and
the site is built without a broken link. test_docs and others run the rest of the examples."""

import json
import os
import re
import shlex
import shutil
import subprocess

import pytest

from who import BUILD, HERE, HOLT

TOP = os.path.dirname(os.path.dirname(HERE))
PAGES = sorted(f'docs/{name}' for name in os.listdir(os.path.join(TOP, 'docs'))
               if name.endswith('.md')) + ['README.md', 'skills/holt/SKILL.md']
COMMANDS = ('run', 'exec')  # behind whose first argument stands a command of somebody else


def read(path):
    with open(os.path.join(TOP, path), encoding='utf-8') as f:
        return f.read()


def blocks(path):
    return re.findall(r'^```(\w*)\n(.*?)^```$', read(path), re.M | re.S)


def holt(*words, **options):
    return subprocess.run([HOLT, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, timeout=60, **options)


@pytest.fixture(scope='module')
def schema():
    return json.loads(holt('config', 'schema').stdout)


def value(text):
    """Of JSON with comments; what is members without an object is one of these."""
    text = re.sub(r'(^|[\s,{}\]])//.*$', r'\1', text, flags=re.M).strip()
    return json.loads(text if text[0] in '{[' else '{' + text + '}')


@pytest.mark.parametrize('path', PAGES)
def test_json(path, schema, tmp_path):
    for language, text in blocks(path):
        if language not in ('json', 'jsonc'):
            continue
        one = value(text)
        ours = isinstance(one, dict) and one and one.keys() <= schema['properties'].keys()
        # entries of a client's file, and the network of a request
        if ours and 'holt' not in one.get('mcpServers', {}) \
                and 'mode' not in one.get('network', {}):
            file = tmp_path / 'config.json'
            file.write_text(json.dumps(one))
            file.chmod(0o600)
            said = holt('config', 'check', '--config', str(file))
            # What an example names is not on this machine.
            doubts = [line for line in said.stdout.splitlines()
                      if not line.endswith(' is not there') and 'no program "holt"' not in line]
            assert said.returncode == 0 or said.returncode == 1 and not doubts, (text, said)


def lines(path):
    """The words of each command line of Holt, up to what is of a shell."""
    for language, text in blocks(path):
        if language in ('', 'sh', 'text'):
            for line in re.findall(r'^(?:\$ )?(holt .*)$', text.replace('\\\n', ''), re.M):
                yield shlex.split(re.sub(r'\s#\s.*', '', line).replace('…', ''))


def options_of(words, known={}):
    """Of the verb that the words begin with: its options, and how many words name it."""
    for n in 3, 2, 1:
        verb = tuple(words[1:1 + n])
        if len(verb) == n and all(re.fullmatch(r'[a-z][a-z-]*', w) for w in verb):
            if verb not in known:
                told = holt('help', *verb)
                usage = told.stdout.startswith(f'Usage: holt {" ".join(verb)}')
                known[verb] = told.stdout if told.returncode == 0 and usage else None
            if known[verb]:
                return n, set(re.findall(r'(?<![\w-])--?[a-z][a-z-]*', known[verb]))
    return 0, set()


@pytest.mark.parametrize('path', PAGES)
def test_verbs_and_options(path):
    for words in lines(path):
        n, options = options_of(words)
        assert n, f'{path}: no such verb: {words}'
        for word in words[1 + n:]:
            if word in ('--', '|', '&&', ';', '>', '&'):
                break
            if word.startswith('-') and len(word) > 1:
                named = word.partition('=')[0]
                assert named in options or named[:2] in options and len(named) > 2 and \
                    named[1] != '-' or re.fullmatch(r'-\d+', named), f'{path}: {word} of {words}'
            elif words[1] in COMMANDS:
                break


@pytest.fixture
def person(tmp_path):
    """Somebody with a home and nothing of Holt in it."""
    (tmp_path / 'bin').mkdir()
    (tmp_path / 'bin/holt').symlink_to(HOLT)
    run = tmp_path / 'run'
    run.mkdir(mode=0o700)
    plain = {k: v for k, v in os.environ.items() if not k.startswith(('HOLT_', 'XDG_'))}
    env = {**plain, 'HOME': str(tmp_path), 'XDG_RUNTIME_DIR': str(run),
           'PATH': f'{tmp_path}/bin:{os.environ["PATH"]}'}
    yield env
    holt('hub', 'stop', env=env)


def test_the_tutorial(person, tmp_path):
    script = ''.join(text for language, text in blocks('docs/tutorial.md') if not language)
    done = subprocess.run(['bash', '-e', '-c', script], cwd=tmp_path, env=person, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=280, check=False)
    assert done.returncode == 0, (done.stdout, done.stderr)
    for said in ('42\n', '"exit_code":3', 'ended with 3', 'hello.py', 'pypi.org', 'keeps',
                 'sandbox_create'):
        assert said in done.stdout, (said, done.stdout)
    assert done.stdout.count('hello from a file\n') >= 2


def test_the_site(tmp_path):
    if not shutil.which('mkdocs'):
        pytest.fail('mkdocs is missing: scripts/deps test')
    done = subprocess.run([os.path.join(TOP, 'scripts/site'), '--build', BUILD,
                           str(tmp_path / 'site')], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False, timeout=280)
    assert done.returncode == 0, done.stdout
    reference = tmp_path / 'site/reference'
    for page, said in (('cli', '--allow'), ('tools', 'sandbox_exec'), ('routes', '/v1/sandboxes'),
                       ('failures', 'limit_exceeded'), ('config', 'mcpServers'),
                       ('flags', 'can_send_prompt')):
        assert said in (reference / f'{page}.html').read_text(), page
    assert (tmp_path / 'site/search/search_index.json').stat().st_size > 100_000
    assert 'tutorial.md' in (tmp_path / 'site/llms.txt').read_text()
