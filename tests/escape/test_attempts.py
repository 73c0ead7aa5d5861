"""Every row of the probe: in a sandbox, and in its control. A row is one promise."""

import subprocess

import pytest

import world

ROWS = world.rows()


@pytest.mark.parametrize('name', ROWS)
def test_attempt(name, attempts):
    row = ROWS[name]
    assert name not in attempts.unhealthy, attempts.unhealthy[name]
    found = attempts.found[name]
    if row['policy']:
        assert found['result'] == 'open', f'{row["what"]}: {found}; the table calls it policy'
    else:
        assert found['result'] in ('denied', 'absent'), f'{row["what"]}: {found}'


@pytest.mark.parametrize('name', ROWS)
def test_control(name, controls):
    outcome, reason = controls(name)
    if outcome is None:
        pytest.skip(reason)
    assert outcome['result'] == 'open', ('the attempt fails where it must work, so it shows '
                                         f'nothing: {outcome}')


def test_host_is_unchanged(attempts):
    assert not attempts.changed, attempts.changed


def test_nobody_came_to_a_socket_of_the_host(attempts):
    assert attempts.reached == 0


def test_the_probe_refuses_to_do_harm_outside(world):
    """The guard of the probe: without being told, and told a lie."""
    for name in [n for n, row in ROWS.items() if row['harm']]:
        for env in ({}, {'HOLT_PROBE_CONFINED': world.namespaces},
                    {'HOLT_PROBE_CONFINED': 'user:[1] pid:[1]'}):
            if 'user:[1]' in env.get('HOLT_PROBE_CONFINED', '') and world.user.uid == 0:
                continue
            done = subprocess.run([world.probe, name], env=env, capture_output=True, check=False)
            assert (done.returncode, done.stdout) == (3, b''), name
