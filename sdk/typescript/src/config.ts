/**
 * Which hub, and with which token.
 *
 * The hub: baseUrl; else HOLT_BASE_URL, MITOS_BASE_URL; else the local one, by its Unix socket:
 * HOLT_SOCKET, else holt.sock in HOLT_HOME, in holt/ of XDG_RUNTIME_DIR, or in the data folder, as
 * the program `holt` has it.
 *
 * The token: apiKey; else HOLT_API_KEY, MITOS_API_KEY; else of the local hub its token file, and
 * of one over HTTP the member `token` of credentials.json, unless that file names another `server`;
 * else none. credentials.json is in MITOS_CONFIG_DIR, else in Holt's configuration folder, as
 * `holt auth login` writes it, else in ~/.config/mitos. The token file is only ever sent over the
 * Unix socket. Any of these files is refused if it belongs to another user or is open to others.
 */
import * as fs from 'node:fs';
import { PolicyDeniedError, ValidationError } from './errors.js';

type Env = Record<string, string | undefined>;

const FILE_MAX = 64 << 10;

/** A token, which is no text: nothing prints it by mistake. */
export class Token {
	readonly #value: string;

	constructor(value: string) {
		if (!/^[A-Za-z0-9._~+/=-]{1,4096}$/.test(value)) {
			throw new ValidationError('apiKey: a token has letters, digits and -._~+/= only', {
				code: 'invalid_token',
			});
		}
		this.#value = value;
	}

	reveal(): string {
		return this.#value;
	}

	hideIn(text: string): string {
		return text.replaceAll(this.#value, '[token]');
	}

	toJSON(): string {
		return 'set';
	}
}

export interface Endpoint {
	/** Path of the socket; absent: TCP. */
	unix?: string;
	host: string;
	port: number;
	tls: boolean;
	/** In front of each path. */
	prefix: string;
	/** To name it in errors. */
	url: string;
}

const absolute = (path: string | undefined): path is string => !!path && path.startsWith('/');

function folderOf(env: Env, xdg: string | undefined, home: string, last: string): string {
	if (absolute(env.HOLT_HOME)) return env.HOLT_HOME;
	if (absolute(xdg)) return xdg + '/holt';
	return absolute(env.HOME) ? env.HOME + home + '/holt' : last;
}

/** Of the hub of this user (holt-serve(1)). */
function dataFolder(env: Env): string {
	return folderOf(env, env.XDG_DATA_HOME, '/.local/share', '/var/lib/holt');
}

function socketPath(env: Env): string {
	if (env.HOLT_SOCKET) return env.HOLT_SOCKET;
	if (!absolute(env.HOLT_HOME) && absolute(env.XDG_RUNTIME_DIR))
		return env.XDG_RUNTIME_DIR + '/holt/holt.sock';
	return dataFolder(env) + '/holt.sock';
}

export function findEndpoint(baseUrl: string | undefined, env: Env): Endpoint {
	const url = baseUrl || env.HOLT_BASE_URL || env.MITOS_BASE_URL || 'unix:' + socketPath(env);
	if (url.startsWith('unix:')) {
		return {
			unix: url.slice(5).replace(/^\/\/(?=\/)/, ''),
			host: 'localhost',
			port: 0,
			tls: false,
			prefix: '',
			url,
		};
	}
	let parts: URL | undefined;
	try {
		parts = new URL(url);
	} catch {
		// below
	}
	if (
		!parts ||
		!/^https?:$/.test(parts.protocol) ||
		parts.username ||
		parts.password ||
		parts.search ||
		parts.hash
	) {
		throw new ValidationError(
			'baseUrl: http://HOST[:PORT], https://HOST[:PORT] or unix:/PATH, no user, no query',
			{
				code: 'invalid_base_url',
			},
		);
	}
	const tls = parts.protocol === 'https:';
	const host = parts.hostname.replace(/^\[(.*)\]$/, '$1');
	return {
		host,
		port: Number(parts.port) || (tls ? 443 : 80),
		tls,
		prefix: parts.pathname.replace(/\/+$/, ''),
		url,
	};
}

function tokenFile(path: string): Token | undefined {
	let fd: number;
	try {
		fd = fs.openSync(
			path,
			fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK,
		);
	} catch {
		return undefined;
	}
	try {
		const st = fs.fstatSync(fd);
		if (!st.isFile() || st.uid !== process.geteuid?.() || st.mode & 0o077) {
			throw new PolicyDeniedError(`${path} must belong to you and be closed to others`, {
				code: 'token_file',
				remediation: `chmod 600 ${path}, or remove it: \`holt serve\` makes a new one.`,
			});
		}
		const text = Buffer.alloc(FILE_MAX);
		return new Token(text.toString('ascii', 0, fs.readSync(fd, text)).trim());
	} finally {
		fs.closeSync(fd);
	}
}

function checkPrivate(path: string, st: fs.Stats): void {
	const me = process.geteuid?.(); // Windows has neither such owners nor such modes
	let why: string;
	if (!st.isFile()) why = 'is not a regular file';
	else if (me !== undefined && st.uid !== me && st.uid !== 0) why = 'belongs to another user';
	else if (me !== undefined && st.mode & 0o077) why = 'is open to other users';
	else return;
	throw new PolicyDeniedError(`${path} ${why}`, {
		code: 'credentials_file',
		remediation:
			`Make ${path} a file of your own and chmod 600 it, ` +
			'remove it, or set HOLT_API_KEY.',
	});
}

/** Whether a token that was stored for this server is for that endpoint, too. */
function isFor(server: unknown, endpoint: Endpoint): boolean {
	if (server === undefined || server === null || server === '') return true;
	if (typeof server !== 'string') return false;
	let of: Endpoint;
	try {
		of = findEndpoint(server, {});
	} catch {
		return false;
	}
	return (
		of.unix === endpoint.unix &&
		of.tls === endpoint.tls &&
		of.host === endpoint.host &&
		of.port === endpoint.port
	);
}

/** The file's text; throws if there is none. */
function readPrivate(path: string): string {
	// Not to wait at a FIFO; Windows has neither flag.
	const flags = fs.constants.O_RDONLY | fs.constants.O_NONBLOCK | fs.constants.O_NOCTTY;
	const fd = fs.openSync(path, flags);
	try {
		checkPrivate(path, fs.fstatSync(fd));
		const text = Buffer.alloc(FILE_MAX);
		return text.toString('utf8', 0, fs.readSync(fd, text));
	} finally {
		fs.closeSync(fd);
	}
}

function credentialFolders(env: Env): string[] {
	if (env.MITOS_CONFIG_DIR) return [env.MITOS_CONFIG_DIR];
	return [
		folderOf(env, env.XDG_CONFIG_HOME, '/.config', '/etc/holt'),
		(env.HOME ?? '/') + '/.config/mitos',
	];
}

function credentials(folder: string, endpoint: Endpoint): Token | undefined {
	let token: unknown;
	let server: unknown;
	try {
		({ token, server } = JSON.parse(readPrivate(folder + '/credentials.json')));
	} catch (e) {
		if (e instanceof PolicyDeniedError) throw e;
		return undefined; // no file is no error
	}
	if (typeof token !== 'string' || !token || !isFor(server, endpoint)) return undefined;
	return new Token(token);
}

export function findToken(
	apiKey: string | undefined,
	endpoint: Endpoint,
	env: Env,
): Token | undefined {
	const said = apiKey || env.HOLT_API_KEY || env.MITOS_API_KEY;
	if (said) return new Token(said);
	if (endpoint.unix) return tokenFile(dataFolder(env) + '/token');
	for (const folder of credentialFolders(env)) {
		const token = credentials(folder, endpoint);
		if (token) return token;
	}
	return undefined;
}
