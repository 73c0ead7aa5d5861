// Where prompts are written, with what the agent offers: its commands, modes, models.
import { signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { base64, patch, post, remove } from './api.js';
import { path } from './conversations.jsx';
import { settings } from './settings.jsx';
import { plain, Text } from './text.jsx';
import { Chip, Do, Failure, Guard, toast } from './ui.jsx';

const ROWS_MAX = 12;
const COMMANDS_MAX = 8;

// A prompt of before that is to be edited: { session, text }.
export const again = signal(null);

// What its agent lets people choose, such as its mode.
function Options({ of: c }) {
	const set = (id) => async (e) => {
		await patch(path(c.session_id), { options: { [id]: e.currentTarget.value } }).catch((problem) => toast(problem.message, 'danger'));
	};
	return (
		<>
			{c.options?.map((o) => (
				<label key={o.id}><span class="hidden"><Text of={o.name ?? o.id} /></span>
					<select value={o.value} title={plain(`${o.name ?? o.id}: ${o.description ?? ''}`)} onChange={set(o.id)}>
						{!o.choices.some((one) => one.value === o.value) && <option value={o.value}>{plain(o.value)}</option>}
						{o.choices.map((one) => <option key={one.value} value={one.value}>{plain(one.name ?? one.value)}{one.unattended && ' (asks nobody)'}</option>)}
					</select></label>
			))}
			{c.warning && <span role="note" title={plain(c.warning)}><Chip kind="warn">asks nobody</Chip></span>}
		</>
	);
}

// The draft is kept for when the page comes again. A prompt has a key of its own, so that one whose
// answer was lost is not queued twice.
export function Composer({ of: c }) {
	const id = c.session_id;
	const off = c.archived;
	const kept = `holt-draft-${id}`;
	const [text, setText] = useState(localStorage.getItem(kept) ?? '');
	const [problem, setProblem] = useState(null);
	const [busy, setBusy] = useState(false);
	const [files, setFiles] = useState([]);
	const key = useRef(null);
	const write = (value) => {
		setText(value);
		if (value)
			localStorage.setItem(kept, value);
		else
			localStorage.removeItem(kept);
		key.current = null;
	};
	useEffect(() => {
		if (again.value?.session !== id)
			return;
		write(again.value.text);
		again.value = null;
		document.getElementById('prompt')?.focus();
	}, [again.value]);
	const stop = () => post(path(id, '/cancel')).catch((e) => toast(e.message, 'danger'));
	const send = async () => {
		if (!text.trim() || busy || off)
			return;
		setBusy(true);
		key.current ??= [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, '0')).join('');
		try {
			await post(path(id, '/queue'), { prompt: text, key: key.current, ...(files.length && { files: files.map((f) => f.file_id) }) });
			setProblem(null);
			setFiles([]);
			write('');
		} catch (e) {
			setProblem(e);
		}
		setBusy(false);
	};
	const add = async (event) => {
		const input = event.currentTarget;
		key.current = null;
		for (const file of input.files) {
			try {
				const one = await post(path(id, '/files'), { name: file.name, content: base64(await file.arrayBuffer()) });
				setFiles((all) => [...all, one]);
			} catch (e) {
				toast(e.message, 'danger');
			}
		}
		input.value = '';
	};
	const drop = async (file) => {
		key.current = null;
		setFiles((all) => all.filter((f) => f !== file));
		await remove(path(id, `/files/${encodeURIComponent(file.file_id)}`));
	};
	// On a screen without a keyboard Enter is for lines: there is a button.
	const sends = settings.value.enter && !matchMedia('(pointer: coarse)').matches;
	const keys = (event) => {
		const control = event.ctrlKey || event.metaKey;
		if (control && event.key === '.')
			stop();
		if (event.key !== 'Enter' || event.isComposing || event.shiftKey || !(control || sends))
			return;
		event.preventDefault();
		send();
	};
	const word = /^\/(\S*)$/.exec(text)?.[1];
	const commands = word === undefined ? [] : (c.commands ?? []).filter((one) => one.name.startsWith(word)).slice(0, COMMANDS_MAX);
	return (
		<div class="composer">
			{problem && <Failure of={problem} />}
			{commands.length > 0 && (
				<ul class="rows commands" aria-label="Commands of the agent">
					{commands.map((one) => (
						<li key={one.name}><button class="link" onClick={() => (write(`/${one.name} `), document.getElementById('prompt').focus())}>/<Text of={one.name} /></button>{' '}
							<small class="muted"><Text of={one.hint ?? ''} /> <Text of={one.description ?? ''} /></small></li>
					))}
				</ul>
			)}
			<label class="hidden" for="prompt">Prompt</label>
			<textarea id="prompt" rows={Math.min(ROWS_MAX, Math.max(2, text.split('\n').length))} value={text} disabled={off} readOnly={busy}
				onInput={(e) => write(e.currentTarget.value)} onKeyDown={keys}
				placeholder={off ? 'It is archived' : sends ? 'Enter sends, Shift+Enter is a new line' : 'Ctrl+Enter sends'} />
			<div class="below">
				<label class="button" title="Add files to the prompt">Attach<input type="file" multiple class="hidden" disabled={off || busy} onChange={add} /></label>
				{files.map((f) => <span class="label" key={f.file_id}><Text of={f.name} /> <Do run={() => drop(f)}>Take out</Do></span>)}
				<Guard><Options of={c} /></Guard>
				{c.is_prompting && !text.trim()
					? <button class="main" onClick={stop}>Stop</button>
					: <button class="main" disabled={!text.trim() || busy || off} onClick={send}>{busy ? 'Sending…' : c.is_prompting ? 'Queue' : 'Send'}</button>}
			</div>
		</div>
	);
}
