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


def run_cells(request, who, attempts, controls):
    """What this run knows: (row, column): text."""
    found = {}
    for name, outcome in attempts.found.items():
        found[name, who.name] = isolation_table.cell(outcome)
    for name, row in ROWS.items():
        found[name, 'control'] = isolation_table.control_cell(row, *controls(name))
    for (name, column), text in request.config.outcomes.items():
        if column in (None, who.name):
            found[name, who.name] = text
    return found


def test_table(request, who, attempts, controls, table):
    found = run_cells(request, who, attempts, controls)
    stories = flows(request.session.items)
    if request.config.getoption('--update-table'):
        for (name, column), text in found.items():
            table.set(name, column, text)
        table.save(ROWS, stories)
        return
    stale = [f'{name}, {column}: {table.get(name, column)!r} is now {text!r}'
             for (name, column), text in found.items()
             if isolation_table.differ(column, table.get(name, column), text)]
    assert not stale, '\n'.join([*stale, f'If that is as it should be: {isolation_table.AGAIN}'])


def test_every_row_is_in_the_table(request, table):
    if request.config.getoption('--update-table'):
        pytest.skip('it is being written')
    names = set(ROWS) | {name for name, *_ in flows(request.session.items)}
    assert not names - set(table.cells), f'docs/isolation.md is stale: {isolation_table.AGAIN}'
