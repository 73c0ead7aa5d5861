/** The client of a Holt hub: sandboxes for AI agents (docs/sdk.md). */
import './dispose.js';

export { Client, type ClientOptions } from './client.js';
export {
	CleanupError,
	CommandError,
	ConflictError,
	type Failure,
	GuestError,
	HoltError,
	LimitError,
	NotFoundError,
	PolicyDeniedError,
	TimedOutError,
	TransportError,
	ValidationError,
} from './errors.js';
export {
	type CommandOptions,
	Commands,
	type CopyOptions,
	type CreateOptions,
	Files,
	Network,
	Ports,
	Process,
	type RunOptions,
	Sandbox,
	type StartOptions,
} from './sandbox.js';
export { Channel, CommandStream, Events } from './streams.js';
export {
	type CallOptions,
	type Change,
	type Command,
	CommandResult,
	type Data,
	type FileInfo,
	type Forward,
	type Host,
	type HttpRule,
	type Limits,
	type NetworkInfo,
	NetworkPolicy,
	Output,
	type PortResponse,
	type Preview,
	type ProcessInfo,
	type RunRequest,
	RunResult,
	type SandboxInfo,
	SecretRef,
	type Secrets,
	type SnapshotInfo,
	type Terminal,
	type Volume,
	type WatchEvent,
} from './types.js';
