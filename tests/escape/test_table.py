"""docs/isolation.md says what this run found; see isolation_table.py.
With --update-table it is written."""

import pytest

import isolation_table
import world

ROWS = world.rows()


def flows(items):
    """(name, what, by, control) of the tests that tell a longer story."""
    found = {}
    for item in items:
        marker = item.get_closest_marker('tries')
        if marker:
            found[item.originalname] = (item.originalname, marker.kwargs['what'],
                                        marker.kwargs['by'],
                                        marker.kwargs.get('control', '—'))
    return list(found.values())


def story_cells(request, who):
    return {(name, who.name): text for (name, column), text in request.config.outcomes.items()
            if column in (None, who.name)}


def row_cells(who, attempts, controls):
    found = {}
    for name, outcome in attempts.found.items():
        found[name, who.name] = isolation_table.cell(outcome)
    for name, row in ROWS.items():
        found[name, 'control'] = isolation_table.control_cell(row, *controls(name))
    return found


def compare(table, found):
    """What this run knows, (row, column): text, with the file."""
    stale = [f'{name}, {column}: {table.get(name, column)!r} is now {text!r}'
             for (name, column), text in found.items()
             if isolation_table.differ(column, table.get(name, column), text)]
    assert not stale, '\n'.join([*stale, f'If that is as it should be: {isolation_table.AGAIN}'])


def test_table(request, who, attempts, controls, table):
    found = row_cells(who, attempts, controls)
    if not request.config.getoption('--update-table'):
        compare(table, found)
        return
    for (name, column), text in {**found, **story_cells(request, who)}.items():
        table.set(name, column, text)
    table.save(ROWS, flows(request.session.items))


def test_stories(request, who, table):
    """By itself, since scripts/test runs the bombs apart from the others."""
    if request.config.getoption('--update-table'):
        pytest.skip('it is being written')
    compare(table, story_cells(request, who))


def test_every_row_is_in_the_table(request, table):
    if request.config.getoption('--update-table'):
        pytest.skip('it is being written')
    names = set(ROWS) | {name for name, *_ in flows(request.session.items)}
    assert not names - set(table.cells), f'docs/isolation.md is stale: {isolation_table.AGAIN}'
