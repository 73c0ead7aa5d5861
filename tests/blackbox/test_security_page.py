"""docs/security.md: each threat names tests, and they are there."""

import os
import re

from who import HERE

TESTS = os.path.dirname(HERE)
TOP = os.path.dirname(TESTS)


def read(path):
    with open(path, encoding='utf-8') as f:
        return f.read()


def rows():
    table = read(os.path.join(TOP, 'docs/security.md')).split('| threat |')[1]
    return [[cell.strip() for cell in line.strip('|').split(' | ')]
            for line in table.splitlines()[2:] if line.startswith('|')]


def is_there(name):
    path, _, test = name.partition('::')
    where = os.path.join(TESTS, path)
    return os.path.isfile(where) and (not test or re.search(
        rf'^(static void|def) {re.escape(test)}\(', read(where), re.M) is not None)


def test_each_threat_has_tests():
    found = rows()
    assert len(found) >= 20
    for row in found:
        assert len(row) == 3, row
        named = re.findall(r'`([^`]+)`', row[2])
        assert named and [name for name in named if not is_there(name)] == [], row[0]


def test_the_check_sees_what_is_missing():
    assert is_there('blackbox/test_gate.py') and not is_there('blackbox/test_nothing.py')
    assert not is_there('blackbox/test_gate.py::test_nothing')
