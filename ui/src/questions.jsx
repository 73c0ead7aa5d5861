// Questions of agents and tools to people: one card each, answerable wherever it is shown.
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { post } from './api.js';
import { live, useResource } from './live.js';
import { Markdown } from './markdown.jsx';
import { Link } from './router.jsx';
import { plain, Text } from './text.jsx';
import { Chip, Deadline, Failure, Fold, Guard, noEnter, useSteady } from './ui.jsx';

export const PROMPTS = '/api/prompts';

// Those of the hub's approvals have cards of their own.
export const questionsOf = (prompts) => prompts.filter((p) => !p.approval && p.state === 'pending');

const ROWS = 4; // of a field for a text
const LINE_MAX = 24; // characters that fit into a field on any screen

// What a field holds before anybody writes, where the field itself may not show all of it.
function Prefilled({ of: text, lines = 1 }) {
	if (typeof text !== 'string' || (/^[ -~\n]*$/.test(text) && text.length <= lines * LINE_MAX && text.split('\n').length <= lines))
		return null;
	return <div class="muted"><small>The field holds: </small><Fold text={text} /></div>;
}

// A member of a form: its schema is flat (docs/questions.md).
function Member({ name, schema, required }) {
	const label = <><Text of={schema.title ?? name} prose />{required && ' (needed)'}</>;
	const about = schema.description && <small class="muted"><Text of={schema.description} prose /></small>;
	const choices = schema.enum ?? schema.oneOf?.map((o) => o.const);
	const names = schema.enumNames ?? schema.oneOf?.map((o) => o.title);
	if (schema.type === 'boolean')
		return <label class="field"><input type="checkbox" name={name} defaultChecked={schema.default === true} /> {label} {about}</label>;
	if (schema.type === 'array') {
		const items = schema.items?.enum ?? schema.items?.anyOf?.map((o) => o.const) ?? [];
		return <fieldset><legend>{label}</legend>{about}{items.map((v) => <label key={v}><input type="checkbox" name={name} value={v} /> <Text of={v} /></label>)}</fieldset>;
	}
	if (choices)
		return <label class="field"><span>{label} {about}</span><select name={name} required={required}>
			{!required && <option value="">none</option>}{choices.map((v, i) => <option key={v} value={v} selected={v === schema.default}>{plain(String(names?.[i] ?? v))}</option>)}</select></label>;
	const number = schema.type === 'number' || schema.type === 'integer';
	return <><label class="field"><span>{label} {about}</span><input name={name} required={required} autocomplete="off"
		type={number ? 'number' : 'text'} step={schema.type === 'number' ? 'any' : undefined} min={schema.minimum} max={schema.maximum}
		minLength={schema.minLength} maxLength={schema.maxLength} defaultValue={schema.default} /></label>
		<Prefilled of={schema.default} /></>;
}

export function valuesOf(schema, data) {
	const values = {};
	for (const [name, s] of Object.entries(schema.properties ?? {})) {
		const text = data.get(name);
		if (s.type === 'boolean')
			values[name] = text !== null;
		else if (s.type === 'array')
			values[name] = data.getAll(name);
		else if (text !== null && text !== '')
			values[name] = s.type === 'number' || s.type === 'integer' ? Number(text) : text;
	}
	return values;
}

function schemaOf(schema) {
	try {
		return typeof schema === 'string' ? JSON.parse(schema) : schema ?? {};
	} catch {
		return {};
	}
}

const membersOf = (form) => [...form.elements].filter((e) => e.name);

// A form whose half-written answer this tab keeps until it has been sent.
function useDraft(id) {
	const form = useRef();
	const kept = `holt-answer-${id}`;
	useEffect(() => {
		const all = form.current ? membersOf(form.current) : [];
		JSON.parse(sessionStorage.getItem(kept) ?? '[]').forEach((value, i) => {
			if (all[i])
				all[i][typeof value === 'boolean' ? 'checked' : 'value'] = value;
		});
	}, []);
	return {
		form,
		keep: () => sessionStorage.setItem(kept, JSON.stringify(membersOf(form.current).map((e) => e.type === 'checkbox' ? e.checked : e.value))),
		drop: () => sessionStorage.removeItem(kept),
	};
}

// What an option does, in the page's words: an agent may call its options what it likes.
const KINDS = { allow_once: 'Allow once', allow_always: 'Always allow', reject_once: 'Reject', reject_always: 'Always reject' };
const labelOf = (o) => KINDS[o.kind] ?? o.label;

// Who asks, and in which conversation.
function From({ of: q }) {
	const all = useResource('/api/sessions?limit=200');
	const talk = q.session_id && all.data?.conversations.find((c) => c.session_id === q.session_id);
	return (
		<span class="muted">of <Text of={talk?.acp_server || q.principal} />
			{q.session_id && <> in <Link to={`/c/${encodeURIComponent(q.session_id)}`}>{talk?.title ? <Text of={talk.title} prose /> : 'its conversation'}</Link></>}</span>
	);
}

export function Question({ of: q, onDone }) {
	const draft = useDraft(q.request_id);
	const ref = useRef();
	const id = useId();
	const steady = useSteady(ref);
	const [sent, setSent] = useState(null);
	const schema = schemaOf(q.schema);
	const off = sent?.busy || sent?.word || !live.value.up;
	const send = async (what, body, word) => {
		if (!steady() || off)
			return;
		setSent({ busy: true });
		try {
			await post(`${PROMPTS}/${encodeURIComponent(q.request_id)}/${what}`, body);
			draft.drop();
			setSent({ word });
			setTimeout(onDone, 1500);
		} catch (problem) {
			setSent({ problem });
			onDone();
		}
	};
	const submit = (event) => {
		event.preventDefault();
		const data = new FormData(event.target);
		if (q.kind === 'form')
			send('answer', { values: valuesOf(schema, data) }, 'Sent');
		else
			send('answer', { free_text: data.get('text') }, 'Sent');
	};
	const permits = q.kind === 'permission';
	const asks = permits && q.origin === 'acp' && q.title; // the heading is the hub's own
	const option = (kind) => permits && q.options.find((o) => o.kind === kind);
	const keys = (event) => {
		if (event.target !== ref.current || !event.shiftKey || event.repeat)
			return;
		const chosen = event.key === 'A' ? option('allow_once') : event.key === 'D' ? option('reject_once') : null;
		if (chosen)
			send('answer', { option_id: chosen.id }, labelOf(chosen));
	};
	const typed = q.kind === 'form' || q.kind === 'textbox' || q.allow_free_text;

	return (
		<article class="card" ref={ref} tabIndex={0} data-card={q.request_id} aria-labelledby={id} onKeyDown={keys}>
			<header>
				{/* in the page's words alone, so that none looks like a request for approval */}
				<p class="kind">{permits ? 'Permission' : 'Question'} <From of={q} /></p>
				<Deadline at={q.expires_at} />
			</header>
			<h3 id={id}>{asks ? <Text of={q.title} /> : q.title ? <Text of={q.title} prose={!permits} /> : <span class="hidden">{permits ? 'A permission' : 'A question'}</span>}</h3>
			{asks && <p class="muted">What follows is in the words of the agent.</p>}
			{/* what is allowed is shown as it is: Markdown would leave out a part of a command */}
			{permits ? <pre class="log"><Text of={q.question} block /></pre> : <div class={q.title ? '' : 'asked'}><Markdown of={q.question} /></div>}
			{permits && q.text && <pre class="log"><Text of={q.text} block /></pre>}
			{sent?.problem && <Failure of={sent.problem} />}
			{sent?.word ? <p role="status"><Chip kind="ok">{sent.word}</Chip></p> : (
				<>
					<div class="answers" onKeyDown={noEnter}>
						{q.options.map((o) => (
							<button key={o.id} disabled={off} onClick={() => send('answer', { option_id: o.id }, o.label)}>
								<Text of={labelOf(o)} prose={!permits} />{o.kind && o.label !== labelOf(o) && <small class="muted"> <Text of={o.label} /></small>}
								{o.description && <small class="muted"> <Text of={o.description} prose={q.kind !== 'permission'} /></small>}</button>
						))}
						{q.kind === 'notify' && <button disabled={off} onClick={() => send('answer', {}, 'Seen')}>Seen</button>}
					</div>
					{typed && (
						<form ref={draft.form} onInput={draft.keep} onSubmit={submit}>
							{q.kind === 'form' ? Object.entries(schema.properties ?? {}).map(([name, s]) => (
								<Member key={name} name={name} schema={s} required={schema.required?.includes(name)} />
							)) : <><label class="field"><span>Text</span><textarea name="text" rows={ROWS} defaultValue={q.text ?? ''} /></label>
								<Prefilled of={q.text} lines={ROWS} /></>}
							<button class="main" disabled={off}>{sent?.busy ? 'Sending…' : 'Send'}</button>
						</form>
					)}
					{q.kind !== 'notify' && <details><summary class="muted">More</summary>
						<button disabled={off} onClick={() => send('cancel', {}, 'Dismissed')}>Dismiss without an answer</button></details>}
				</>
			)}
		</article>
	);
}

// Those of one conversation, pinned where it is shown.
export function Questions({ of }) {
	const all = useResource(PROMPTS, { topics: ['prompts'] });
	const mine = questionsOf(all.data?.prompts ?? []).filter((p) => p.session_id === of);
	return mine.map((q) => <Guard key={q.request_id}><Question of={q} onDone={all.reload} /></Guard>);
}
