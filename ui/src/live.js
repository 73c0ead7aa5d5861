// What changes, as it changes. One tab of a browser follows the hub and tells the others, since a
// browser has six connections to a host for all of its tabs. A tab that becomes visible takes over,
// as hidden ones are slowed down. What is told is only that something has changed: each view then
// reads it anew, so that nothing is shown that the hub has not said.
import { signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { get, lines, loggedIn } from './api.js';

const QUIET_MS = 25000;
const LOCK = 'holt-live';

// up: the hub was heard lately; at: when it was heard last.
export const live = signal({ up: true, at: Date.now() });
// The clock of ages and deadlines.
export const now = signal(Date.now());

const listeners = new Map();
const channel = typeof BroadcastChannel === 'function' ? new BroadcastChannel(LOCK) : null;

export function listen(topic, fn) {
	if (!listeners.has(topic))
		listeners.set(topic, new Set());
	listeners.get(topic).add(fn);
	return () => listeners.get(topic).delete(fn);
}

let cursor = ''; // of the news that were heard last, by whichever tab

function hear(message) {
	cursor = message.cursor ?? cursor;
	live.value = { up: message.up, at: message.up ? Date.now() : live.value.at };
	for (const topic of message.topics ?? [])
		listeners.get(topic)?.forEach((fn) => fn(message.detail));
}

function tell(message) {
	hear(message);
	channel?.postMessage(message);
}

if (channel)
	channel.onmessage = (event) => hear(event.data);

const pause = (ms, stop) => new Promise((resolve) => {
	const timer = setTimeout(resolve, ms);
	stop.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true });
});

const open = new Set(); // AbortControllers of connections

// Nothing was heard for long, or the machine has slept: what is open may be dead.
function reconnect() {
	open.forEach((one) => one.abort());
}

// Runs step() again and again; after failures it waits longer and longer.
async function keep(step, stop) {
	for (let wait = 500; !stop.aborted;) {
		const began = Date.now();
		const one = new AbortController();
		const end = () => one.abort();
		open.add(one);
		stop.addEventListener('abort', end);
		try {
			await step(one.signal);
		} catch (e) {
			if (stop.aborted || !loggedIn.value)
				return;
			tell({ up: e.status > 0 });
		} finally {
			open.delete(one);
			stop.removeEventListener('abort', end);
		}
		wait = Date.now() - began > 5000 ? 500 : Math.min(2 * wait, 15000);
		await pause(wait * (0.75 + Math.random() / 2), stop);
	}
}

// What the hub has news of, by what is shown of it.
const SHOWN = { conversation: 'conversation', question: 'prompts', approval: 'prompts' };

// The news of the hub, on from where they were left. Where some are gone, and at first, all may be
// new: then there is no detail.
async function followNews(stop) {
	await lines(`/api/events${cursor && `?after=${encodeURIComponent(cursor)}`}`, (line) => {
		if (!line.startsWith('data:'))
			return;
		const news = JSON.parse(line.slice(5));
		const anew = !cursor || news.kind === 'reset';
		const heard = { up: true, cursor: news.cursor };
		if (anew)
			tell({ ...heard, topics: Object.values(SHOWN) });
		else if (news.kind === 'news')
			tell({ ...heard, topics: [SHOWN[news.topic] ?? news.topic], detail: news });
		else
			tell(heard);
	}, stop);
}

async function followSandboxes(stop) {
	const { newest } = await get('/v1/events?limit=1', { signal: stop });
	tell({ up: true, topics: ['sandboxes'] });
	await lines(`/v1/events?follow=true&after=${newest}`, (line) => {
		const event = JSON.parse(line);
		tell({ up: true, topics: event.kind === 'alive' ? [] : ['sandboxes'], detail: event });
	}, stop);
}

function follow(stop) {
	return Promise.all([
		keep(followNews, stop),
		keep(followSandboxes, stop),
	]);
}

// Without locks (HTTP to another machine) each tab follows by itself.
async function lead(steal) {
	const stop = new AbortController();
	if (!navigator.locks)
		return follow(stop.signal);
	try {
		await navigator.locks.request(LOCK, { steal }, () => follow(stop.signal));
	} catch {
		stop.abort(); // another tab has taken over
		if (loggedIn.value)
			lead(false);
	}
}

export function start() {
	lead(document.visibilityState === 'visible');
	document.addEventListener('visibilitychange', () => {
		if (document.visibilityState === 'visible' && loggedIn.value && navigator.locks)
			lead(true);
	});
	setInterval(() => {
		now.value = Date.now();
		if (now.value - live.value.at > QUIET_MS && live.value.up) {
			live.value = { ...live.value, up: false };
			reconnect();
		}
	}, 1000);
	addEventListener('online', reconnect);
	addEventListener('pageshow', (event) => event.persisted && reconnect());
}

// ---- what views show -----------------------------------------------------------------------

const KEPT_MAX = 60;
const kept = new Map();

function resource(path) {
	let one = kept.get(path);
	if (one)
		return one;
	one = { state: signal({ data: undefined, problem: null, at: 0 }), busy: false, again: false };
	one.load = async () => {
		if (one.busy) {
			one.again = true;
			return;
		}
		one.busy = true;
		try {
			const data = await get(path);
			one.state.value = { data, problem: null, at: Date.now() };
		} catch (problem) {
			one.state.value = { ...one.state.value, problem };
		}
		one.busy = false;
		if (one.again) {
			one.again = false;
			one.load();
		}
	};
	kept.set(path, one);
	if (kept.size > KEPT_MAX)
		kept.delete(kept.keys().next().value);
	return one;
}

// { data, problem, at, reload } of a path, read anew when one of the topics changes, and every
// so many ms. What was read before stays while it is read again, and where that fails.
export function useResource(path, { topics = [], every = 0 } = {}) {
	// The same one as long as this view shows it, also where others have taken its place.
	const one = useMemo(() => resource(path), [path]);
	useEffect(() => {
		const off = topics.map((topic) => listen(topic, one.load));
		const timer = every && setInterval(() => document.hidden || one.load(), every);
		one.load();
		return () => {
			off.forEach((fn) => fn());
			clearInterval(timer);
		};
	}, [path]);
	return { ...one.state.value, reload: one.load };
}
