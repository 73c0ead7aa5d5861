// What the page asks the hub: the same requests as any client's, with the key of this log-in
// beside the cookie. Everything that may change, and everything that is shown, comes from here.
import { signal } from '@preact/signals';
import { parseAnswer } from './json.js';

const KEPT = 'holt-key';

export const loggedIn = signal(localStorage.getItem(KEPT) !== null);

// A failure as docs/rest.md has it; status 0: the hub was not reached.
export class Problem extends Error {
	constructor(status, body) {
		const error = body?.error ?? {};
		super(error.cause || error.message || 'the hub does not answer');
		this.status = status;
		this.code = error.code || 'unreachable';
		this.remediation = error.remediation || '';
	}
}

function forget() {
	localStorage.removeItem(KEPT);
	loggedIn.value = false;
}

// Another tab has logged in or out. What this one shows may be of another principal.
addEventListener('storage', (event) => {
	if (event.key !== KEPT)
		return;
	if (event.oldValue !== null && event.newValue !== null)
		location.reload();
	loggedIn.value = event.newValue !== null;
});

async function ask(method, path, { body, signal: stop, type = 'application/json' } = {}) {
	const headers = { 'Holt-Page': localStorage.getItem(KEPT) ?? '' };
	let answer;
	if (body !== undefined)
		headers['Content-Type'] = type;
	try {
		answer = await fetch(path, {
			method,
			headers,
			body: body === undefined || type !== 'application/json' ? body : JSON.stringify(body),
			signal: stop,
			credentials: 'same-origin',
			cache: 'no-store',
			redirect: 'error',
		});
	} catch (e) {
		if (e.name === 'AbortError')
			throw e;
		throw new Problem(0);
	}
	if (answer.ok)
		return answer;
	// A wrong code ends no log-in that is there.
	if (answer.status === 401 && !(method === 'POST' && path === '/session'))
		forget();
	throw new Problem(answer.status, await answer.json().catch(() => null));
}

export const get = async (path, options) => parseAnswer(await (await ask('GET', path, options)).text());
export const post = async (path, body = {}) => (await ask('POST', path, { body })).json();
export const put = async (path, body, type) => (await ask('PUT', path, { body, type })).json();
export const patch = async (path, body) => (await ask('PATCH', path, { body })).json();
export const remove = async (path) => (await ask('DELETE', path)).json();
export const text = async (path) => (await ask('GET', path)).text();
export const blob = async (path) => (await ask('GET', path)).blob();

// Calls take(line) for each line of an answer that goes on, until it ends.
export async function lines(path, take, stop) {
	const answer = await ask('GET', path, { signal: stop });
	const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
	let rest = '';
	for (;;) {
		const { value, done } = await reader.read();
		if (done)
			return;
		const parts = (rest + value).split('\n');
		rest = parts.pop();
		parts.forEach(take);
	}
}

// A WebSocket has no headers; the key is one of the protocols that it names.
export function socket(path, protocol) {
	const url = new URL(path, location.href);
	url.protocol = url.protocol.replace('http', 'ws');
	return new WebSocket(url, [protocol, 'holt.page.' + localStorage.getItem(KEPT)]);
}

// By the code of a link.
export async function logIn(code) {
	localStorage.setItem(KEPT, (await post('/session', { code })).key);
	loggedIn.value = true;
}

// As whom the link would log this browser in instead, if that is somebody else: [name, name].
export async function othersLink(code) {
	const was = loggedIn.value && await get('/session').catch((problem) => {
		if (problem.status !== 401)
			throw problem;
	});
	const { name } = was ? await post('/session', { code, look: true }) : {};
	return was && was.name !== name ? [was.name, name] : null;
}

export async function logOut() {
	await remove('/session');
	forget();
}

export function base64(buffer) {
	let text = '';
	for (const byte of new Uint8Array(buffer))
		text += String.fromCharCode(byte);
	return btoa(text);
}
export const bytesOf = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

// Saves bytes as a file of the person's.
export function save(name, bytes) {
	const link = document.createElement('a');
	link.href = URL.createObjectURL(bytes);
	link.download = name;
	link.click();
	setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}
