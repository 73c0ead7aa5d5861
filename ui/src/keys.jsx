// Keys: "g" and a letter go somewhere, "j" and "k" move along cards and rows. None acts while
// something is typed, in a terminal, or where the person has switched them off.
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { go, route } from './router.jsx';
import { settings } from './settings.jsx';
import { Dialog } from './ui.jsx';

const PLACES = { i: '/inbox', c: '/c', s: '/s', m: '/m', a: '/audit', h: '/health' };
const HELP = [
	['g i, g c, g s', 'inbox, conversations, sandboxes'],
	['g m, g a, g h', 'modules, audit, health'],
	['j, k', 'next and previous card or row'],
	['n', 'the first that waits'],
	['Enter', 'open what has the focus'],
	['/', 'filter'],
	['Shift+A, Shift+D', 'on a card that has the focus: allow once, deny'],
	['?', 'this list'],
];

const help = signal(false);
let leader = 0;

const typing = (element) => element.closest('input, textarea, select, [contenteditable], .screen, dialog');
const steps = () => [...document.querySelectorAll('main .card, main .rows > .row a, main .rows > .row > button, main .tool > summary')];

function move(by) {
	const all = steps();
	const at = all.findIndex((e) => e === document.activeElement || e.contains(document.activeElement));
	const next = all[Math.min(all.length - 1, Math.max(0, at + by))];
	next?.focus();
	next?.scrollIntoView({ block: 'nearest' });
}

const ACTS = {
	j: () => move(1),
	k: () => move(-1),
	n: () => (route.value.path === '/inbox' ? document.querySelector('[data-card]')?.focus() : go('/inbox')),
	'/': () => document.querySelector('[data-filter]')?.focus(),
	'?': () => (help.value = true),
	g: () => (leader = Date.now()),
};

function press(event) {
	if (!settings.value.letters || event.ctrlKey || event.metaKey || event.altKey || typing(event.target))
		return;
	const led = Date.now() - leader < 1500;
	leader = 0;
	const act = led && PLACES[event.key] ? () => go(PLACES[event.key]) : ACTS[event.key];
	if (!act)
		return;
	event.preventDefault();
	act();
}

export function useKeys() {
	useEffect(() => {
		document.addEventListener('keydown', press);
		return () => document.removeEventListener('keydown', press);
	}, []);
}

export function Keys() {
	return help.value && (
		<Dialog title="Keys" onClose={() => (help.value = false)}>
			<dl>{HELP.map(([k, what]) => <><dt><kbd>{k}</kbd></dt><dd>{what}</dd></>)}</dl>
			<div class="buttons"><button onClick={() => (help.value = false)}>Close</button></div>
		</Dialog>
	);
}
