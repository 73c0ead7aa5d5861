// What changes, as it changes. One tab of a browser follows the hub and tells the others, since a
// browser has six connections to a host for all of its tabs. A tab that becomes visible takes over,
// as hidden ones are slowed down. What is told is only that something has changed: each view then
// reads it anew, so that nothing is shown that the hub has not said.
import { signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { get, lines, loggedIn } from './api.js';
import { parseAnswer } from './json.js';

const QUIET_MS = 25000;
const SAME_MS = 1000; // within which it makes no difference when the hub was heard
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

// detail: JSON.
function hear(message) {
	const back = message.up && !live.value.up;
	cursor = message.cursor ?? cursor;
	const at = message.up ? Date.now() : live.value.at;
	if (message.up !== live.value.up || Math.abs(at - live.value.at) > SAME_MS)
		live.value = { up: message.up, at };
	const detail = message.detail && parseAnswer(message.detail);
	for (const topic of message.topics ?? [])
		listeners.get(topic)?.forEach((fn) => fn(detail));
	if (back)
		kept.forEach((one) => one.state.value.problem && one.load());
}

function tell(message) {
	hear(message);
	channel?.postMessage(message);
}

if (channel)
	channel.onmessage = (event) => hear(event.data);

const pause = (ms, stop) => new Promise((resolve) => {
	const timer = setTimeout(resolve, stop.aborted ? 0 : ms);
	stop.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true });
});

const open = new Set(); // AbortControllers of connections, and of pauses before the next one

// Nothing was heard for long, or the machine has slept: what is open may be dead.
function reconnect() {
	open.forEach((one) => one.abort());
}

// Runs step() again and again; after failures it waits longer and longer.
async function keep(step, stop) {
	for (let wait = 500; !stop.aborted && loggedIn.value;) {
		const began = Date.now();
		const one = new AbortController();
		const end = () => one.abort();
		open.add(one);
		stop.addEventListener('abort', end);
		try {
			await step(one.signal);
		} catch (e) {
			if (!stop.aborted && loggedIn.value)
				tell({ up: e.status > 0 });
		}
		wait = Date.now() - began > 5000 ? 500 : Math.min(2 * wait, 15000);
		await pause(wait * (0.75 + Math.random() / 2), one.signal);
		open.delete(one);
		stop.removeEventListener('abort', end);
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
			tell({ ...heard, topics: [SHOWN[news.topic] ?? news.topic], detail: line.slice(5) });
		else
			tell(heard);
	}, stop);
}

async function followSandboxes(stop) {
	const { newest } = await get('/v1/events?limit=1', { signal: stop });
	tell({ up: true, topics: ['sandboxes'] });
	await lines(`/v1/events?follow=true&after=${newest}`, (line) => {
		tell({ up: true, topics: JSON.parse(line).kind === 'alive' ? [] : ['sandboxes'] });
	}, stop);
}

function follow(stop) {
	return Promise.all([
		keep(followNews, stop),
		keep(followSandboxes, stop),
	]);
}

let leader = null; // the AbortController of what this tab follows for all

// Whether this is the one tab that tells the person: a visible one, where one is.
export const leads = () => leader !== null;

// Without locks (HTTP to another machine) each tab follows by itself.
async function lead(steal) {
	const stop = new AbortController();
	const begin = () => (leader = stop, follow(stop.signal));
	if (!navigator.locks)
		return begin();
	try {
		await navigator.locks.request(LOCK, { steal }, begin);
	} catch {
		stop.abort(); // another tab has taken over
		leader = leader === stop ? null : leader;
		if (loggedIn.value)
			lead(false);
	}
}

let started = false;

// After each log-in.
export function start() {
	lead(document.visibilityState === 'visible');
	if (started)
		return;
	started = true;
	document.addEventListener('visibilitychange', () => {
		if (document.visibilityState === 'visible' && loggedIn.value && navigator.locks && !leads())
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
const PAUSE_MS = 500; // from one reading to the next for news, however many come
const kept = new Map();

function resource(path) {
	let one = kept.get(path);
	if (one)
		return one;
	one = { state: signal({ data: undefined, problem: null, at: 0 }), busy: false, again: false, read: -PAUSE_MS, timer: 0 };
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
		one.read = performance.now();
		if (one.again) {
			one.again = false;
			one.load();
		}
	};
	one.soon = () => {
		const wait = one.busy ? PAUSE_MS : one.read + PAUSE_MS - performance.now();
		if (wait <= 0)
			one.load();
		else
			one.timer ||= setTimeout(() => (one.timer = 0, one.load()), wait);
	};
	kept.set(path, one);
	if (kept.size > KEPT_MAX)
		kept.delete(kept.keys().next().value);
	return one;
}

// { data, problem, at, reload } of a path, read anew when one of the topics changes, by news that it
// wants, and every so many ms. What was read before stays while it is read again, and where that fails.
export function useResource(path, { topics = [], every = 0, wants = () => true } = {}) {
	// The same one as long as this view shows it, also where others have taken its place.
	const one = useMemo(() => resource(path), [path]);
	useEffect(() => {
		const off = topics.map((topic) => listen(topic, (news) => (!news || wants(news)) && one.soon()));
		const timer = every && setInterval(() => document.hidden || one.load(), every);
		one.load();
		return () => {
			off.forEach((fn) => fn());
			clearInterval(timer);
		};
	}, [path]);
	return { ...one.state.value, reload: one.load };
}
