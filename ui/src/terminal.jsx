// Terminals of a sandbox. The hub keeps each, with the last MiB of what it has printed by offset,
// so that a page that comes again shows it as it is.
import { useEffect, useRef, useState } from 'preact/hooks';
import { FitAddon } from '@xterm/addon-fit';
import { Unicode11Addon } from '@xterm/addon-unicode11';
import { Terminal } from '@xterm/xterm';
import { get, post, remove, socket } from './api.js';
import { useResource } from './live.js';
import { Text } from './text.jsx';
import { Ago, Chip, Dialog, Do, Empty, Failure, Loaded } from './ui.jsx';

const KEEP = 1 << 20;
const BEHIND_MAX = 2 << 20; // bytes that are not drawn yet; above that it reads later
const SHELL = 'command -v bash >/dev/null && exec bash; exec sh';
const IGNORED = [8, 52]; // links that show other text than they open; the clipboard

// Its style elements need the nonce of this page.
const create = document.createElement;
document.createElement = function (name, ...rest) {
	const element = create.call(this, name, ...rest);
	if (String(name).toLowerCase() === 'style')
		element.nonce = document.querySelector('style[nonce]').nonce;
	return element;
};

function colours() {
	const style = getComputedStyle(document.documentElement);
	const of = (name) => style.getPropertyValue(name).trim();
	return { background: of('--surface'), foreground: of('--text'), cursor: of('--accent'),
		selectionBackground: of('--control') };
}

// Attaches a terminal to an exec, and attaches it again wherever the connection broke. tell():
// what became of it.
function attach(term, base, tell) {
	const state = { offset: 0, end: 0, behind: 0, replaying: true, closed: false, ws: null };
	const encoder = new TextEncoder();

	const send = (message) => state.ws?.readyState === WebSocket.OPEN && state.ws.send(message);
	const type = (text) => {
		if (state.replaying) // answers to what it was asked long ago
			return;
		const bytes = encoder.encode(text);
		const message = new Uint8Array(bytes.length + 1);
		message.set(bytes, 1);
		send(message);
	};
	const resize = () => send(JSON.stringify({ resize: { cols: term.cols, rows: term.rows } }));
	const draw = (bytes) => {
		state.offset += bytes.length;
		state.behind += bytes.length;
		const at = state.offset;
		term.write(bytes, () => {
			state.behind -= bytes.length;
			state.replaying &&= at < state.end;
			if (state.behind === 0 && !state.ws && !state.closed)
				connect();
		});
		if (state.behind > BEHIND_MAX) {
			state.ws.onclose = null;
			state.ws.close();
			state.ws = null;
		}
	};
	const said = (message) => {
		if (message.attached) {
			state.offset = message.attached.offset;
			state.replaying &&= state.offset < state.end;
			resize();
		}
		if (message.dropped) {
			state.offset = message.dropped.offset + message.dropped.bytes;
			state.replaying &&= state.offset < state.end;
			term.write(`\r\n[${message.dropped.bytes} bytes are not kept]\r\n`);
		}
		if (message.exit || message.error) {
			state.closed = true;
			tell(message.exit ? `It has ended with ${message.exit.exit_code}.` : 'It is gone.');
		}
	};
	const connect = () => {
		const ws = socket(`${base}/attach?offset=${state.offset}`, 'holt.attach.v1');
		state.ws = ws;
		ws.binaryType = 'arraybuffer';
		ws.onmessage = ({ data }) => typeof data === 'string' ? said(JSON.parse(data)) : draw(new Uint8Array(data, 1));
		ws.onclose = () => {
			state.ws = null;
			if (!state.closed)
				setTimeout(() => state.closed || state.ws || connect(), 1000);
		};
	};
	get(base).then((exec) => {
		state.offset = exec.first_offset;
		state.end = exec.next_offset;
		state.replaying = state.offset < state.end;
		if (!state.closed)
			connect();
	}, (e) => tell(e.message));
	return {
		type,
		resize,
		close: () => {
			state.closed = true;
			state.ws?.close();
		},
	};
}

function One({ id, exec, reader }) {
	const ref = useRef();
	const term = useRef();
	const [end, setEnd] = useState('');
	const [paste, setPaste] = useState(null);
	useEffect(() => {
		const t = new Terminal({ allowProposedApi: true, fontSize: 13, scrollback: 5000, theme: colours(),
			fontFamily: 'ui-monospace, monospace', cursorBlink: false, linkHandler: null });
		const fit = new FitAddon();
		let left = false;
		term.current = t;
		t.loadAddon(fit);
		t.loadAddon(new Unicode11Addon());
		t.unicode.activeVersion = '11';
		IGNORED.forEach((code) => t.parser.registerOscHandler(code, () => true));
		t.open(ref.current);
		fit.fit();
		const line = attach(t, `/v1/sandboxes/${encodeURIComponent(id)}/execs/${encodeURIComponent(exec)}`, setEnd);
		t.onData(line.type);
		t.onResize(line.resize);
		// Esc, then Tab, leaves it.
		t.attachCustomKeyEventHandler((event) => {
			const leaves = left && event.key === 'Tab';
			left = event.key === 'Escape' || (left && event.type === 'keyup');
			return !leaves;
		});
		const onPaste = (event) => {
			const text = event.clipboardData.getData('text');
			if (!text.includes('\n'))
				return;
			event.preventDefault();
			event.stopPropagation();
			setPaste(text);
		};
		ref.current.addEventListener('paste', onPaste, true);
		const watch = new ResizeObserver(() => fit.fit());
		watch.observe(ref.current);
		t.focus();
		return () => {
			watch.disconnect();
			line.close();
			t.dispose();
		};
	}, [exec]);
	useEffect(() => {
		term.current.options.screenReaderMode = reader;
	}, [reader, exec]);
	return (
		<>
			<div class="screen" ref={ref} />
			{end && <p role="status">{end}</p>}
			{paste !== null && (
				<Dialog title={`Paste ${paste.split('\n').length} lines?`} onClose={() => setPaste(null)}>
					<pre><Text of={paste} block /></pre>
					<div class="buttons"><button onClick={() => setPaste(null)}>Cancel</button>
						<button class="main" onClick={() => (term.current.paste(paste), setPaste(null))}>Paste</button></div>
				</Dialog>
			)}
		</>
	);
}

export default function Terminals({ id }) {
	const base = `/v1/sandboxes/${encodeURIComponent(id)}/execs`;
	const all = useResource(base, { topics: ['sandboxes'] });
	const [open, setOpen] = useState(null);
	const [reader, setReader] = useState(false);
	const [problem, setProblem] = useState(null);
	const start = async () => {
		setProblem(null);
		try {
			const made = await post('/v1/exec', { sandbox: id, command: SHELL, background: true, stdin_open: true,
				timeout: 86400, keep_bytes: KEEP, tty: { cols: 80, rows: 24, term: 'xterm-256color' } });
			all.reload();
			setOpen(made.exec_id);
		} catch (e) {
			setProblem(e);
		}
	};
	return (
		<>
			<div class="bar-of-buttons">
				<Do class="main" run={start}>New terminal</Do>
				<label><input type="checkbox" checked={reader} onChange={(e) => setReader(e.currentTarget.checked)} /> Screen reader</label>
				<span class="muted">Esc, then Tab, leaves a terminal.</span>
			</div>
			{problem && <Failure of={problem} />}
			<Loaded of={all}>
				{(execs) => {
					const terminals = execs.filter((e) => e.tty && e.state === 'running');
					return terminals.length ? (
						<ul class="rows">
							{terminals.map((e) => (
								<li class="row" key={e.exec_id}>
									<button class="link" aria-pressed={open === e.exec_id} onClick={() => setOpen(e.exec_id)}>
										<Text of={e.exec_id} /></button> <Chip kind="ok">running</Chip> <small class="muted"><Ago at={e.started_at} /></small>{' '}
									<Do run={async () => (await remove(`${base}/${encodeURIComponent(e.exec_id)}`), all.reload())}>End</Do>
								</li>
							))}
						</ul>
					) : open ? null : <Empty>No terminal is open in it.</Empty>;
				}}
			</Loaded>
			{open && <One key={open} id={id} exec={open} reader={reader} />}
		</>
	);
}
