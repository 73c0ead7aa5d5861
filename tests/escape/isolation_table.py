"""docs/isolation.md: what was tried, what became of it, what holds it.

The file is made from a run, and a run compares itself with the file: one column for each identity
that Holt runs as, so that a run without root compares its own.
"""

import os
import re

FILE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
                    'docs',
                    'isolation.md')
AGAIN = 'HOLT_BUILD=$PWD/build /usr/bin/python3 -m pytest -q tests/escape --update-table'

CONTROLS = {
    'plain': 'open to any user outside',
    'jail': 'open to root of new namespaces',
    'root': 'open to root outside',
    'look': 'root outside has the right',
}
COLUMNS = ('root', 'user', 'control')
HEAD = '| attempt | Holt as root | Holt as a user | held by | control |'

INTRO = f"""# What a sandbox keeps in

`tests/escape` makes this page from what really happened, and the tests fail when it is stale.
To make it again:

```
{AGAIN}
```

Each row is one attempt, made by a program inside a sandbox with the default limits:
once with Holt running as root, once as an unprivileged user with user namespaces.
A sandbox promises *denied* and *absent* (what the attempt wants is not there).
*Open* stands only where that is the policy, and *held by* then says why it is no way out.
After each attempt the sandbox had to be healthy, and after all of them the host unchanged.

The *control* is the same attempt where it must work, so that a denial means something:
by an unprivileged user without any jail; by root of new namespaces (`unshare(1)`)
with nothing else taken away and an ordinary process in the place of PID 1; or by root outside.
What would harm the machine is not tried there. The control then only checks
that root has the right, by capability or by the permissions of the file.

## With debug

Programs of a sandbox that is made with `debug` (`holt run --debug`)
may call ptrace, process_vm_readv and process_vm_writev on each other.
All rows are tried in such a sandbox, too:
`ptrace_self` and `vm_readv_own` are open there, all others as below.

- *Wider:* each program of the sandbox can read and change each other one,
  so a secret that one exec is given is no secret from what runs beside it.
  More of the kernel's code can be reached: that of tracing.
- *As ever:* a tracer gains nothing that it had not.
  The kernel asks the filter about the call that is made in the end,
  whatever the tracer has made of it;
  to suspend a filter takes a capability;
  there is no program in the sandbox with more rights than another.
  PID 1 and the processes that it forks are not dumpable,
  and the filter refuses calls that name PID 1.
  A program that makes PID 1 its tracer is let go.

## With root inside

Programs of a sandbox that is made with `--user root` (`"user": "root"`) are uid 0 there,
with 65536 ids and nine capabilities over files, identities and signals:
chown, dac_override, fowner, fsetid, kill, setgid, setuid, net_bind_service and setfcap
(not setfcap, if a folder of the host is mounted writable).
All rows are tried in such a sandbox, too.
These are open with root, as intended: `setuid`, `setgid`, `setgroups`, `chown_root`,
`capabilities`, `setcap`, `no_new_privs`, and all `suid_` and `sgid_` rows except `suid_openat2`.
`pid1_fd` and `pid1_map_files` are open, too: they reveal the numbers of PID 1's descriptors,
but no descriptor can be opened. All others are as below.

- *Wider:* programs may become other users of the sandbox,
  also by set-user-id programs and file capabilities (`no_new_privs` is off).
  The nine capabilities reach more of the kernel's code,
  though only for objects of the sandbox's own user namespace.
  Without privileges, uid 0 inside is the user who runs Holt, as uid 1000 is in other sandboxes,
  and all of that user's sandboxes with root share the ids of `/etc/subuid`.
- *As ever:* mounts, network, host name and processes outside belong to user namespaces above,
  in which nobody inside has a capability. The filter is the same but for set-id bits;
  Landlock, `/proc` and `/dev` are the same. As root, each sandbox and its forks have ids
  that no other sandbox has, of this hub or another, and that no user of the host is.
  What the kernel counts for a user is bounded for all users of the sandbox together.
- *Host folders* (`-v`): their owner is uid 0 inside. Set-id bits never count there (nosuid).
  A sandbox with a writable one can't set such bits at all, nor file capabilities,
  since they would count on the host.
"""

FLOWS = """## Longer stories

These tests take more than one call. *Denied* means that the test passed: the attempt failed,
the sandbox (or its neighbour, if it ended itself) was healthy afterwards, and the host unchanged.
*Not bounded by rlimits* stands where an unprivileged user has no control groups.
Memory is then limited for each process only, as `sandbox_create` says in `enforced_by`;
`holt doctor` says how to get control groups.
"""


UNBOUNDED = 'not bounded by rlimits'


def cell(outcome):
    how = outcome['errno'] or ('SIGSYS' if 'SIGSYS' in outcome['detail'] else '')
    return ' '.join(filter(None, (outcome['result'], how)))


def control_cell(row, outcome, reason):
    if outcome is None:
        return f'— ({reason})'
    return CONTROLS[row['control']] if outcome['result'] == 'open' else 'does not work here'


def escape(text):
    return text.replace('|', '\\|').replace('\n', ' ')


def differ(column, committed, now):
    """What can't be tried on one of two machines, or control groups on only one,
    is no difference."""
    if column == 'control' and '—' in committed + now:
        return False
    if 'absent ENOSYS' in (committed, now) and 'denied' in committed + now:
        return False
    if UNBOUNDED in (committed, now) and 'denied' in (committed, now):
        return False
    return committed != now


class Table:
    """The cells by name of a row and column; what is not known is ''."""

    def __init__(self):
        self.cells = {}
        if os.path.exists(FILE):
            with open(FILE, encoding='utf-8') as f:
                self.read(f)

    def read(self, lines):
        for line in lines:
            got = re.match(r'\| .*<!--(\S+)--> \| (.*) \| (.*) \| .* \| (.*) \|$', line)
            if got:
                self.cells[got.group(1)] = dict(zip(COLUMNS, got.groups()[1:]))

    def get(self, name, column):
        return self.cells.get(name, {}).get(column, '')

    def set(self, name, column, text):
        self.cells.setdefault(name, {})[column] = text

    def line(self, name, what, by, control=None):
        row = [self.get(name, column) for column in COLUMNS]
        return (f'| {escape(what)} <!--{name}--> | {row[0]} | {row[1]} | {escape(by)} | '
                f'{control or row[2]} |')

    def text(self, rows, flows):
        """rows: of the probe; flows: (name, what, by, control)."""
        out, title = [INTRO], None
        for name, row in rows.items():
            if row['title'] != title:
                title = row['title']
                out.append(f'\n## {title}\n\n{HEAD}\n|---|---|---|---|---|\n')
            out.append(self.line(name, row['what'], row['by']) + '\n')
        out.append(f'\n{FLOWS}\n{HEAD}\n|---|---|---|---|---|\n')
        out += [self.line(*flow) + '\n' for flow in flows]
        return ''.join(out)

    def save(self, rows, flows):
        with open(FILE, 'w', encoding='utf-8') as f:
            f.write(self.text(rows, flows))
