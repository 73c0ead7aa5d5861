// Markdown of agents, by the tokens of marked's lexer alone: they become nodes, never HTML. Images do
// not load, links show where they lead, and a block that is too long or breaks the lexer is plain text.
import { Lexer } from 'marked';
import { useMemo, useState } from 'preact/hooks';
import { Text } from './text.jsx';

const BLOCK_MAX = 8192;
const HEADS = ['h3', 'h3', 'h4', 'h4', 'h5', 'h6'];

function target(href) {
	try {
		const url = new URL(href);
		return ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url : null;
	} catch {
		return null;
	}
}

// One with a query or a user shows all of its address first.
function Out({ href, children }) {
	const url = target(href);
	const [open, setOpen] = useState(false);
	if (!url)
		return <span>{children} <span class="odd chip">‹<Text of={href} />›</span></span>;
	const where = <small class="muted"> (<Text of={url.hostname || url.pathname} />)</small>;
	if ((url.search || url.username) && !open)
		return <><button class="link" onClick={() => setOpen(true)}>{children}</button>{where}</>;
	return <><a href={url.href} target="_blank" rel="noopener noreferrer">{open ? <Text of={url.href} /> : children}</a>{where}</>;
}

const inline = (tokens) => tokens?.map((t) => <Inline of={t} />);

function unescape(text) {
	return text.replace(/&(amp|lt|gt|quot|#39);/g, (_, n) => ({ amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" })[n]);
}

function Inline({ of: t }) {
	switch (t.type) {
	case 'strong': return <strong>{inline(t.tokens)}</strong>;
	case 'em': return <em>{inline(t.tokens)}</em>;
	case 'del': return <del>{inline(t.tokens)}</del>;
	case 'codespan': return <code><Text of={unescape(t.text)} /></code>;
	case 'br': return <br />;
	case 'link': return <Out href={t.href}>{inline(t.tokens)}</Out>;
	case 'image': return <span class="odd chip">image “<Text of={t.text} />” of <Text of={target(t.href)?.hostname ?? t.href} /></span>;
	case 'text': return t.tokens ? <>{inline(t.tokens)}</> : <Text of={unescape(t.text)} prose block />;
	default: return <Text of={t.raw} prose block />;
	}
}

function Block({ of: t }) {
	switch (t.type) {
	case 'space': return null;
	case 'hr': return <hr />;
	case 'paragraph': return <p>{inline(t.tokens)}</p>;
	case 'heading': {
		const Head = HEADS[t.depth - 1];
		return <Head>{inline(t.tokens)}</Head>;
	}
	case 'blockquote': return <blockquote>{blocks(t.tokens)}</blockquote>;
	case 'code': return <pre>{t.lang && <small class="muted"><Text of={t.lang} />{'\n'}</small>}<Text of={t.text} block /></pre>;
	case 'list': {
		const List = t.ordered ? 'ol' : 'ul';
		return <List start={t.ordered ? t.start : undefined}>
			{t.items.map((i) => <li>{i.task && <input type="checkbox" checked={i.checked} disabled aria-label="done" />}{blocks(i.tokens)}</li>)}
		</List>;
	}
	case 'table': return (
		<table class="list"><thead><tr>{t.header.map((c) => <th>{inline(c.tokens)}</th>)}</tr></thead>
			<tbody>{t.rows.map((r) => <tr>{r.map((c) => <td>{inline(c.tokens)}</td>)}</tr>)}</tbody></table>
	);
	case 'text': return t.tokens ? <>{inline(t.tokens)}</> : <Text of={unescape(t.text)} prose block />;
	default: return <p><Text of={t.raw} prose block /></p>;
	}
}

const blocks = (tokens) => tokens.map((t) => <Block of={t} />);

// The text in parts that end at an empty line outside of fenced code.
export function cut(text) {
	const out = [];
	let part = '';
	let fence = '';
	for (const line of text.split('\n')) {
		const mark = /^\s{0,3}(`{3,}|~{3,})/.exec(line)?.[1];
		if (mark && (!fence || line.trim().startsWith(fence)))
			fence = fence ? '' : mark;
		part += line + '\n';
		if (!fence && !line.trim()) {
			out.push(part);
			part = '';
		}
	}
	return part ? [...out, part] : out;
}

function parse(text) {
	if (text.length > BLOCK_MAX)
		return null;
	try {
		return new Lexer({ gfm: true }).lex(text);
	} catch {
		return null;
	}
}

// One that is the same is not read again, while what follows is being written.
function Part({ of }) {
	return useMemo(() => {
		const tokens = parse(of);
		return tokens ? <>{blocks(tokens)}</> : <p class="block"><Text of={of} block prose /></p>;
	}, [of]);
}

export function Markdown({ of }) {
	const parts = of.length <= BLOCK_MAX ? [of] : cut(of);
	return <div class="markdown">{parts.map((text, i) => <Part key={i} of={text} />)}</div>;
}

