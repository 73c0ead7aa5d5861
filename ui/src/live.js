// What changes, as it changes. One tab of a browser follows the hub and tells the others, since a
// browser has six connections to a host for all of its tabs. A tab that becomes visible takes over,
// as hidden ones are slowed down. What is told is only that something has changed: each view then
// reads it anew, so that nothing is shown that the hub has not said.
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
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

function hear(message) {
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

// Runs step() again and again; after failures it waits longer and longer.
async function keep(step, stop) {
	for (let wait = 500; !stop.aborted;) {
		const began = Date.now();
		try {
			await step();
		} catch (e) {
			if (stop.aborted || !loggedIn.value)
				return;
			tell({ up: e.status > 0 });
		}
		wait = Date.now() - began > 5000 ? 500 : Math.min(2 * wait, 15000);
		await pause(wait * (0.75 + Math.random() / 2), stop);
	}
}

async function followApprovals(stop) {
	let { rev } = await get('/v1/approvals', { signal: stop });
	tell({ up: true, topics: ['approvals'] }); // what was missed before
	for (;;) {
		const answer = await get(`/v1/approvals?after=${rev}&wait_seconds=20`, { signal: stop });
		tell({ up: true, topics: answer.approvals.length ? ['approvals'] : [] });
		rev = answer.rev;
	}
}

// Conversations: each event with its number, and pieces of what comes. detail absent: all may be new.
async function followConversations(stop) {
	tell({ up: live.value.up, topics: ['conversation'] });
	await lines('/api/events?topics=conversation', (line) => {
		const news = line.startsWith('data:') && JSON.parse(line.slice(5));
		if (news)
			tell({ up: true, topics: news.kind === 'alive' ? [] : ['conversation'], detail: news.kind === 'news' ? news : undefined });
	}, stop);
}

async function followSandboxes(stop) {
	tell({ up: live.value.up, topics: ['sandboxes'] });
	await lines('/v1/events?follow=true', (line) => {
		const event = JSON.parse(line);
		tell({ up: true, topics: event.kind === 'alive' ? [] : ['sandboxes'], detail: event });
	}, stop);
}

function follow(stop) {
	return Promise.all([
		keep(() => followApprovals(stop), stop),
		keep(() => followConversations(stop), stop),
		keep(() => followSandboxes(stop), stop),
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
		if (now.value - live.value.at > QUIET_MS && live.value.up)
			live.value = { ...live.value, up: false };
	}, 1000);
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
	const one = resource(path);
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
