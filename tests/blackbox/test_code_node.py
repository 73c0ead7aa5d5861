"""What code prints, and what URL, Intl and the like of the sandbox give: the same as in Node.js."""

import json
import os
import subprocess

import pytest

from mcp_cli import NEW_NODE
from test_code import Hub

HERE = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(HERE, '../code/as-node.txt'), encoding='utf-8') as file:
    CASES = file.read().splitlines()
# I, F and T print: a value, a format, a table. D is a date.
RUN = r"""
globalThis.I = v => console.log(Array.isArray(v) || typeof v !== 'string' ? v : [v]);
globalThis.F = (...all) => console.log(...all);
globalThis.T = (...all) => console.table(...all);
globalThis.D = new Date('2026-09-05T14:07:09.045Z');
for (const one of CASES) {
  console.log('\0' + one);
  try {
    const v = (0, eval)(one);
    if (v !== undefined) console.log(String(v));
  } catch (e) {
    console.log(`threw ${e}`);
  }
}
undefined
"""


def answers(text):
    """By case. Of errors, where they were is another matter; nor does it matter how blank a space
    is."""
    text = text.replace('\u202f', ' ')
    return {case: '\n'.join(line for line in rest.rstrip('\n').split('\n')
                            if not line.strip().startswith('at '))
            for case, _, rest in (part.partition('\n') for part in text.split('\0')[1:])}


@pytest.fixture(scope='module')
def both(who):
    if not os.path.exists(NEW_NODE):
        pytest.skip('there is no Node.js of npm: scripts/deps test')
    code = f'const CASES = {json.dumps(CASES)};\n{RUN}'
    done = subprocess.run([NEW_NODE, '-'], input=code.encode(), env={**os.environ, 'TZ': 'UTC'},
                          check=True, capture_output=True, timeout=60)
    home = f'{who.work}/as-node'
    os.mkdir(home, 0o700)
    os.chown(home, who.uid, who.uid)
    with Hub(who, home, '--pool', '1') as hub:
        told = hub.js(code, cpu_ms=60000, wall_ms=60000)
    assert told['ok'], told
    return (answers('\n'.join(line['text'] for line in told['console'])),
            answers(done.stdout.decode()))


@pytest.mark.parametrize('case', CASES)
def test_it_is_as_in_node(both, case):
    ours, nodes = both
    assert ours[case] == nodes[case]
