"""Three tools of a sandbox, for whatever model: the examples beside this file show them to models
of three kinds.

The application decides what may be done: image, network, times and sizes are its own, and a model
chooses paths, contents and commands. What fails is told to the model in terms that help it.
"""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, List

from holt import HoltError, NetworkPolicy, Sandbox

Tool = Dict[str, Any]  # name, description, parameters (a JSON Schema)


def text(description: str) -> Dict[str, Any]:
    return {'type': 'string', 'description': description}


def tool(name: str, description: str, **properties: Any) -> Tool:
    parameters = {'type': 'object', 'properties': properties, 'required': list(properties),
                  'additionalProperties': False}
    return {'name': name, 'description': description, 'parameters': parameters}


TOOLS: List[Tool] = [
    tool('write_file', 'Writes a text file.', path=text('Such as main.py.'),
         content=text('All that is in it then.')),
    tool('read_file', 'Reads a text file.', path=text('Such as main.py.')),
    tool('run_command', 'Runs a program without a shell, for 20 s at most.',
         command={'type': 'array', 'items': {'type': 'string'},
                  'description': 'The program and its arguments.'})]


class SandboxTools:
    """The tools of one conversation. As a context manager its sandbox ends with the block."""

    def __init__(self) -> None:
        self.sandbox = Sandbox.create(image='host', network=NetworkPolicy.deny_by_default(),
                                      ttl_seconds=600)
        self._calls: Dict[str, Callable[..., Any]] = {
            'write_file': self.write_file, 'read_file': self.read_file,
            'run_command': self.run_command}

    def __enter__(self) -> 'SandboxTools':
        return self

    def __exit__(self, *ended: Any) -> None:
        self.sandbox.__exit__(*ended)

    def call(self, name: str, arguments: Dict[str, Any]) -> str:
        """What to answer the model: JSON, also of what failed."""
        try:
            return json.dumps(self._calls[name](**arguments))
        except (KeyError, TypeError) as e:
            return json.dumps({'code': 'invalid_arguments', 'cause': str(e)})
        except HoltError as e:
            return json.dumps(e.to_dict())

    def write_file(self, path: str, content: str) -> Dict[str, Any]:
        self.sandbox.files.write(path, content)
        return {'written': path}

    def read_file(self, path: str) -> Dict[str, Any]:
        return {'content': self.sandbox.files.read(path, max_bytes=64 << 10)}

    def run_command(self, command: List[str]) -> Dict[str, Any]:
        done = self.sandbox.commands.run(command, timeout_seconds=20, max_output_bytes=16 << 10)
        return {'exit_code': done.exit_code, 'stdout': done.stdout, 'stderr': done.stderr,
                'timed_out': done.timed_out, 'audit_id': done.audit_id}


# What the scripted models of the examples want, one step after the other.
PROGRAM = 'a, b = 0, 1\nfor _ in range(10):\n    a, b = b, a + b\nprint(a)\n'
SCRIPT = [('read_file', {'path': 'fibonacci.py'}),
          ('write_file', {'path': 'fibonacci.py', 'content': PROGRAM}),
          ('run_command', {'command': ['python3', 'fibonacci.py']})]


def conclusion(results: List[str]) -> str:
    """What they say at the end, of what they were answered."""
    first, last = json.loads(results[0]), json.loads(results[-1])
    return f'There was no such file ({first["code"]}); now it prints {last["stdout"].strip()}.'
