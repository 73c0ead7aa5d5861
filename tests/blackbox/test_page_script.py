"""What of the page's script needs no browser, in one process of Node.js."""

import os
import subprocess

import pytest

from who import HERE, NEW_NODE

TOP = os.path.dirname(os.path.dirname(HERE))


def test_the_script():
    ui = os.path.join(TOP, 'ui')
    if not os.path.exists(NEW_NODE) or not os.path.isdir(os.path.join(ui, 'node_modules')):
        pytest.skip('Node.js or packages are missing: scripts/deps test')
    done = subprocess.run([NEW_NODE, os.path.join(TOP, 'tests', 'page', 'script.mjs'), ui],
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
