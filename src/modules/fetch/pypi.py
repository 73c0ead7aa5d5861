"""What was fetched, for modules/package.c: package.holt.json. Nothing of it has run so far."""

import hashlib
import importlib.metadata
import json
import os
import re
import sys


def fail(text):
    sys.exit('ERROR: ' + text)


def canonical(name):
    return re.sub(r'[-_.]+', '-', name).lower()


with open('wanted.json', encoding='utf-8') as f:
    holt = json.load(f)
with open('report.json', encoding='utf-8') as f:
    installed = json.load(f)['install']

wanted = canonical(holt['name'].split('[')[0])
lines, dependencies, own = [], [], None
for one in installed:
    about = one['metadata']
    digest = one['download_info'].get('archive_info', {}).get('hashes', {}).get('sha256')
    if not digest:
        fail(f'{about["name"]} has no digest, so it is of no index')
    lines.append(f'{canonical(about["name"])} {about["version"]} {digest}\n')
    if canonical(about['name']) == wanted:
        own = about
    else:
        dependencies.append(f'{about["name"]}@{about["version"]}')
if not own:
    fail(f'{holt["name"]} is not among what was fetched')

of = next(d for d in importlib.metadata.distributions(path=['lib'])
          if canonical(d.metadata['Name']) == wanted)
programs = {e.name: e.value for e in of.entry_points if e.group == 'console_scripts'}
name = holt.get('program') or (list(programs)[0] if len(programs) == 1
                               else holt['name'].split('[')[0])
match = [n for n in programs if n == name or canonical(n) == canonical(name)]
if not match:
    fail(f'it has no program "{name}", but {", ".join(list(programs)[:8])}: '
         f'uvx --from {holt["name"]} PROGRAM' if programs else
         'it has no program, so it is no server')
file = os.path.join(os.getcwd(), 'lib', 'bin', match[0])
if os.path.realpath(file) != file or not os.path.isfile(file):
    fail(f'its program "{match[0]}" is missing')

size = files = 0
for at, folders, names in os.walk('lib'):
    files += len(folders) + len(names)
    size += sum(os.lstat(os.path.join(at, one)).st_size for one in names)
repository = [u.split(',', 1)[1].strip() for u in own.get('project_url', []) if ',' in u]
with open('package.holt.json', 'w', encoding='utf-8') as f:
    json.dump({key: value for key, value in {
        'wanted': holt['wanted'],
        'kind': 'PyPI',
        'name': own['name'],
        'version': own['version'][:300],
        'license': (own.get('license_expression') or own.get('license') or '')[:300] or None,
        'author': (own.get('author') or own.get('author_email') or '')[:300] or None,
        'maintainers': [m[:300] for m in [own.get('maintainer') or own.get('maintainer_email')]
                        if m],
        'repository': (repository[0] if repository else own.get('home_page') or '')[:300] or None,
        'bytes': size,
        'files': files,
        'dependencies': sorted(dependencies)[:4000],
        'scripts': [],
        'lock': hashlib.sha256(''.join(sorted(lines)).encode()).hexdigest(),
        'program': [sys.executable, file],
    }.items() if value is not None}, f)
