"""docs/security.md and docs/threat-model.md: each threat names tests, and they are there."""

import os
import re

import pytest

from who import HERE

TESTS = os.path.dirname(HERE)
TOP = os.path.dirname(TESTS)
# Each table with tests: its page, the head of its first column, and the first column where it is
# known, else how many rows there are at least.
TABLES = [
    ('security.md', 'threat', 20), ('threat-model.md', 'threat', 20),
    ('threat-model.md', 'point', [str(i) for i in range(1, 11)]),
    ('threat-model.md', 'number', [str(i) for i in range(1, 38)]),
]


def read(path):
    with open(path, encoding='utf-8') as f:
        return f.read()


def rows(page, head):
    table = read(os.path.join(TOP, 'docs', page)).split(f'\n| {head} |')[1].split('\n\n')[0]
    return [[cell.strip() for cell in line.strip('|').split(' | ')]
            for line in table.splitlines()[2:] if line.startswith('|')]


def is_there(name):
    path, _, test = name.partition('::')
    where = os.path.join(TESTS, path)
    return os.path.isfile(where) and (not test or re.search(
        rf'^(static void|def) {re.escape(test)}\(', read(where), re.M) is not None)


def named(cell):
    return [name for name in re.findall(r'`([^`]+)`', cell) if '/' in name]


@pytest.mark.parametrize('page, head, known', TABLES)
def test_each_threat_has_tests(page, head, known):
    found = rows(page, head)
    assert len(found) >= known if isinstance(known, int) else [r[0] for r in found] == known
    for row in found:
        assert len(row) == 3, row
        assert named(row[2]) and [n for n in named(row[2]) if not is_there(n)] == [], row[0]


def test_the_plans_threats_are_all_there():
    first = ' '.join(row[0] for row in rows('threat-model.md', 'threat'))
    assert [f'T{i}' for i in range(1, 11)] == re.findall(r'\bT\d+', first)


def test_the_check_sees_what_is_missing():
    assert is_there('blackbox/test_gate.py') and not is_there('blackbox/test_nothing.py')
    assert not is_there('blackbox/test_gate.py::test_nothing')
