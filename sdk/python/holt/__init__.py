"""The client of a Holt hub: sandboxes for AI agents (docs/sdk.md)."""

from .async_client import AsyncBytes, AsyncChannel, AsyncClient, AsyncCommandStream, AsyncEvents
from .async_sandbox import (AsyncCommands, AsyncFiles, AsyncNetwork, AsyncPorts, AsyncProcess,
                            AsyncSandbox)
from .client import Bytes, Channel, Client, CommandStream, Events
from .errors import (CleanupError, CommandError, ConflictError, GuestError, HoltError, LimitError,
                     NotFoundError, PolicyDeniedError, TimedOutError, TransportError,
                     ValidationError)
from .sandbox import Commands, Files, Network, Ports, Process, Sandbox
from .types import (Change, Command, CommandOptions, CommandResult, Data, FileInfo, Forward, Host,
                    HttpRule, Limits, NetworkInfo, NetworkPolicy, Output, PortResponse, Preview,
                    ProcessInfo, RunFile, RunRequest, RunResult, RunState, SandboxInfo, SecretRef,
                    SnapshotInfo, Terminal, Volume, WatchEvent)

__all__ = [
    'AsyncBytes', 'AsyncChannel', 'AsyncClient', 'AsyncCommandStream', 'AsyncCommands',
    'AsyncEvents', 'AsyncFiles', 'AsyncNetwork', 'AsyncPorts', 'AsyncProcess', 'AsyncSandbox',
    'Bytes', 'Change', 'Channel', 'CleanupError', 'Client', 'Command', 'CommandError',
    'CommandResult', 'CommandStream', 'Commands', 'ConflictError', 'Data', 'Events', 'FileInfo',
    'Files', 'Forward', 'GuestError', 'HoltError', 'Host', 'HttpRule', 'LimitError', 'Limits',
    'Network', 'NetworkInfo', 'NetworkPolicy', 'NotFoundError', 'Output', 'PolicyDeniedError',
    'PortResponse', 'Ports', 'Preview', 'Process', 'ProcessInfo', 'RunFile', 'RunRequest',
    'RunResult', 'RunState', 'Sandbox', 'SandboxInfo', 'SecretRef', 'SnapshotInfo', 'Terminal',
    'TimedOutError', 'TransportError', 'ValidationError', 'Volume', 'WatchEvent'
]
