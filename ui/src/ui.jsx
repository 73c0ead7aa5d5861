// What all views are made of.
import { signal } from '@preact/signals';
import { Component } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { isRaw } from './json.js';
import { live, now } from './live.js';
import { filterText, setFilter } from './router.jsx';
import { flagged, Text } from './text.jsx';

// What this browser has kept as JSON, else {}.
export function stored(key) {
	try {
		return JSON.parse(localStorage.getItem(key)) ?? {};
	} catch {
		return {};
	}
}

// ---- words for numbers ------------------------------------------------------------------------

export function span(seconds) {
	const s = Math.max(0, Math.round(seconds));
	for (const [unit, size] of [['d', 86400], ['h', 3600], ['min', 60]]) {
		if (s >= 2 * size)
			return `${Math.floor(s / size)} ${unit}`;
	}
	return `${s} s`;
}

export function bytes(n) {
	if (n === undefined || n === null)
		return 'not known';
	for (const [unit, size] of [['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 2 ** 10]]) {
		if (n >= size)
			return `${(n / size).toFixed(n < 10 * size ? 1 : 0)} ${unit}`;
	}
	return `${n} B`;
}

export const many = (n, one, more = one + 's') => `${n} ${n === 1 ? one : more}`;

export const clock = (at) => new Date(at).toLocaleTimeString();

export function Ago({ at }) {
	const ms = typeof at === 'number' ? at : Date.parse(at);
	return <time dateTime={new Date(ms).toISOString()} title={new Date(ms).toLocaleString()}>
		{span((now.value - ms) / 1000)} ago</time>;
}

// ---- cards -------------------------------------------------------------------------------------

const INERT_MS = 600;

// When the person came back to this window: a click may be the second of two that were meant for
// what had covered it.
let back = 0;
const come = () => (back = performance.now());
addEventListener('focus', come);
addEventListener('visibilitychange', come);

// False for a moment after the element has appeared or moved, or stands for another number of calls,
// or the window has come to the front, so that no tap meant for something else answers.
export function useSteady(ref, count = 1) {
	const place = useRef({ top: null, since: 0 });
	const look = () => {
		if (!ref.current)
			return;
		const { top, left } = ref.current.getBoundingClientRect();
		const at = `${Math.round(top)},${Math.round(left)},${count}`;
		if (at !== place.current.at)
			place.current = { at, since: performance.now() };
	};
	useEffect(() => {
		look();
		const timer = setInterval(look, 100);
		return () => clearInterval(timer);
	}, [count]);
	return () => {
		look();
		return performance.now() - Math.max(place.current.since, back) >= INERT_MS;
	};
}

export function Deadline({ at }) {
	if (!at)
		return null;
	const left = (Date.parse(at) - now.value) / 1000;
	return <p class="deadline" title={clock(Date.parse(at))}>{left > 0 ? `expires in ${span(left)}` : 'it has expired'}</p>;
}

// ---- pieces -----------------------------------------------------------------------------------

const SHAPES = { ok: '●', warn: '▲', danger: '■', muted: '○' };

// A state: always a word and a shape, the colour only helps.
export function Chip({ kind = 'muted', children }) {
	return <span class={'state ' + kind}><span aria-hidden="true">{SHAPES[kind]}</span> {children}</span>;
}

// It is told politely; role={null}: not at all, as a part of what is read anyway.
export function Failure({ of, retry, role = 'status' }) {
	return (
		<div class="failure" role={role}>
			<strong><Text of={of.code ?? 'failed'} /></strong> <Text of={of.message} prose />
			{of.remediation && <p><Text of={of.remediation} prose /></p>}
			{retry && <button onClick={retry}>Try again</button>}
		</div>
	);
}

// What strangers have sent may be of any form. Where it can't be shown, the rest of the page is.
export class Guard extends Component {
	static getDerivedStateFromError(problem) {
		return { problem };
	}

	render({ children }, { problem }) {
		return problem ? <article class="event"><Failure of={{ code: 'not shown', message: problem.message }} /></article> : children;
	}
}

export function Empty({ children, command }) {
	return <div class="empty"><p>{children}</p>{command && <code>{command}</code>}</div>;
}

// The frame of a view's data: words after 300 ms, the old content beside a failure.
export function Loaded({ of, children }) {
	const [slow, setSlow] = useState(false);
	useEffect(() => {
		const timer = setTimeout(() => setSlow(true), 300);
		return () => clearTimeout(timer);
	}, []);
	if (of.data === undefined && !of.problem)
		return slow ? <p class="muted">Loading…</p> : null;
	return (
		<>
			{of.problem && <Failure of={of.problem} retry={of.reload} />}
			{of.data !== undefined && children(of.data)}
		</>
	);
}

export function Filter({ label, hint }) {
	const id = useId();
	return (
		<div class="filter">
			<label for={id} class="hidden">{label}</label>
			<input id={id} type="search" value={filterText()} placeholder={hint} data-filter
				autocomplete="off" spellcheck={false} onInput={(e) => setFilter(e.currentTarget.value)} />
		</div>
	);
}

// A long text, folded, with how much it hides. onOpen: the person has seen it, for the first time.
export function Fold({ text, onOpen, limit = 12 }) {
	const seen = useRef(false);
	const lines = text.split('\n').length;
	const odd = flagged(text);
	const long = lines > limit || text.length > 100 * limit;
	if (!long)
		return <Text of={text} block />;
	const look = (event) => {
		if (!event.currentTarget.open || seen.current)
			return;
		seen.current = true;
		onOpen?.();
	};
	return (
		<details class="fold" onToggle={look}>
			<summary>{lines} lines, {text.length} characters, {odd} flagged</summary>
			<Text of={text} block />
		</details>
	);
}

export const isLong = (text, limit = 12) => text.split('\n').length > limit || text.length > 100 * limit;

// A value of JSON, a row for each member.
export function Tree({ of, onOpen }) {
	if (typeof of === 'string' || isRaw(of))
		return <Fold text={of.rawJSON ?? of} onOpen={onOpen} />;
	if (of === null || typeof of !== 'object')
		return <Text of={JSON.stringify(of)} />;
	if (Array.isArray(of) && of.every((v) => typeof v === 'string') && of.length)
		return <ol class="argv">{of.map((v) => <li><Fold text={v} onOpen={onOpen} /></li>)}</ol>;
	const rows = Object.entries(of);
	if (!rows.length)
		return <span class="muted">{Array.isArray(of) ? 'none' : 'nothing'}</span>;
	return (
		<table class="tree"><tbody>
			{rows.map(([k, v]) => (
				<tr><th scope="row"><Text of={k} /></th>
					<td class="muted">{Array.isArray(v) ? 'list' : v === null ? 'null' : isRaw(v) ? 'number' : typeof v}</td>
					<td><Tree of={v} onOpen={onOpen} /></td></tr>
			))}
		</tbody></table>
	);
}

export function Dialog({ title, onClose, children }) {
	const ref = useRef();
	const id = useId();
	useEffect(() => {
		const before = document.activeElement;
		ref.current.showModal();
		return () => before?.focus?.();
	}, []);
	return (
		<dialog ref={ref} aria-labelledby={id} onClose={onClose}>
			<h2 id={id}>{title}</h2>
			{children}
		</dialog>
	);
}

// A form that sends: its button says what is under way, its failure stays below it.
export function Form({ onSend, button, children, onCancel }) {
	const [busy, setBusy] = useState(false);
	const [problem, setProblem] = useState(null);
	const send = async (event) => {
		event.preventDefault();
		setBusy(true);
		setProblem(null);
		try {
			await onSend(new FormData(event.target));
		} catch (e) {
			setProblem(e);
		}
		setBusy(false);
	};
	return (
		<form onSubmit={send}>
			{children}
			{problem && <Failure of={problem} />}
			<div class="buttons">
				{onCancel && <button type="button" onClick={onCancel}>Cancel</button>}
				<button class="main" disabled={busy}>{busy ? 'Sending…' : button}</button>
			</div>
		</form>
	);
}

export function Field({ label, ...rest }) {
	return <label class="field"><span>{label}</span><input autocomplete="off" {...rest} /></label>;
}

// A button for one request; what fails is told in a toast.
export function Do({ run, children, class: name, ...rest }) {
	const [busy, setBusy] = useState(false);
	const press = async () => {
		setBusy(true);
		try {
			await run();
		} catch (e) {
			toast(e.message, 'danger');
		}
		setBusy(false);
	};
	return <button class={name} disabled={busy} onClick={press} {...rest}>{children}</button>;
}

// Neither Enter nor a held key presses what answers.
export const noEnter = (event) => (event.key === 'Enter' || event.repeat) && event.preventDefault();

// One that does nothing for a moment after it has appeared or moved.
export function Still({ run, ...rest }) {
	const ref = useRef();
	const steady = useSteady(ref);
	return <span ref={ref} onKeyDown={noEnter}><Do run={async () => steady() && run()} {...rest} /></span>;
}

// A view whose code comes when it is needed.
export function Lazy({ load, ...rest }) {
	const [state, setState] = useState({});
	useEffect(() => {
		load().then(({ default: View }) => setState({ View }), (problem) => setState({ problem }));
	}, []);
	if (state.problem)
		return <Failure of={state.problem} />;
	return state.View ? <state.View {...rest} /> : <p class="muted">Loading…</p>;
}

// Asks once more, for what can't be taken back.
export function Sure({ ask, run, children, class: name }) {
	const [open, setOpen] = useState(false);
	return (
		<>
			<button class={name} onClick={() => setOpen(true)}>{children}</button>
			{open && (
				<Dialog title={ask} onClose={() => setOpen(false)}>
					<Form button={children} onCancel={() => setOpen(false)}
						onSend={async () => (await run(), setOpen(false))} />
				</Dialog>
			)}
		</>
	);
}

const toasts = signal([]);

export function toast(text, kind = 'ok') {
	const one = { text, kind };
	toasts.value = [...toasts.value.slice(-3), one];
	setTimeout(() => (toasts.value = toasts.value.filter((t) => t !== one)), 8000);
}

export const Toasts = () => (
	<div class="toasts" role="status">
		{toasts.value.map((t) => <div class={'toast ' + t.kind}><Text of={t.text} prose /></div>)}
	</div>
);

// Whether what is shown is still what the hub says.
export function Stale() {
	const { up, at } = live.value;
	if (up || now.value - at < 2000)
		return null;
	return (
		<p class="stale" role="status">
			{now.value - at > 30000 ? 'Offline. ' : 'Reconnecting. '}Shown as of {clock(at)}.
		</p>
	);
}

// Points are numbers, or null where nothing is known. limit: the line that they may reach.
export function Plot({ title, points, unit = String, kind = '' }) {
	const known = points.filter((p) => p !== null);
	const top = Math.max(1, ...known);
	const x = (i) => (300 * i) / Math.max(1, points.length - 1);
	const y = (v) => 60 - (56 * v) / top;
	let path = '';
	points.forEach((p, i) => {
		if (p !== null)
			path += `${path && points[i - 1] !== null ? 'L' : 'M'}${x(i).toFixed(1)} ${y(p).toFixed(1)}`;
	});
	const last = known.at(-1);
	return (
		<figure class={'plot ' + kind}>
			<figcaption>{title}: <strong>{last === undefined ? 'no data' : unit(last)}</strong></figcaption>
			<svg viewBox="0 0 300 62" preserveAspectRatio="none" role="img" aria-label={`${title} over time`}>
				<path d={path} />
			</svg>
			<small class="muted">highest {known.length ? unit(top) : 'no data'}</small>
		</figure>
	);
}
