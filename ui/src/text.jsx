// Texts of strangers: agents, tools, servers, names of files. Nothing in them is ever HTML, and
// nothing in them is invisible: what a person could not see, or not tell apart, becomes a chip. All
// but prose is drawn in the order of its characters: right-to-left letters would move its parts.
import { isRaw } from './json.js';

const MARKS_MAX = 4;
const SPACES_MAX = 8;
const PARTS_MAX = 1000; // of a text; each may be an element

const STRANGE = new RegExp([
	'\\r?\\n', '\\t',
	`\\p{M}{${MARKS_MAX + 1},}`,
	` {${SPACES_MAX + 1},}`,
	'([\\p{Cc}\\p{Cf}\\p{Cs}\\p{Co}\\p{Cn}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}\\u2800])\\1*',
	'((?! )\\p{Zs})\\2*',
].join('|'), 'gu');
const JOINERS = /^[\u200d\ufe0e\ufe0f]$/u;
const EMOJI = /\p{Extended_Pictographic}$/u;
const WORD = /[\p{L}\p{M}]+/gu;

function name(c) {
	return 'U+' + c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0');
}

function chipOf(found) {
	if (found[0] === ' ')
		return `‹${found.length} spaces›`;
	if (/^\p{M}{2,}$/u.test(found))
		return `‹${[...found].length} marks›`;
	const n = [...found].length;
	return n > 1 ? `‹${n} × ${name(found)}›` : `‹${name(found)}›`;
}

// A word that mixes letters that look alike.
function isMixed(word) {
	return /\p{Script=Latin}/u.test(word) && /[\p{Script=Cyrillic}\p{Script=Greek}]/u.test(word);
}

// [text | { chip, title, kind }]. block: line breaks stay; prose: emoji may be joined.
export function pieces(text, { block = false, prose = false } = {}) {
	const out = [];
	let at = 0;
	const plain = (to) => {
		let from = at;
		for (const m of text.slice(at, to).matchAll(WORD)) {
			if (!isMixed(m[0]))
				continue;
			const start = at + m.index;
			if (start > from)
				out.push(text.slice(from, start));
			out.push({ chip: m[0], kind: 'mixed', title: 'This word mixes alphabets' });
			from = start + m[0].length;
		}
		if (to > from)
			out.push(text.slice(from, to));
	};
	for (const m of text.matchAll(STRANGE)) {
		const found = m[0];
		if (block && (found === '\n' || found === '\t'))
			continue;
		if (prose && JOINERS.test(found) && EMOJI.test(text.slice(Math.max(0, m.index - 4), m.index)))
			continue;
		plain(m.index);
		at = m.index + found.length;
		if (found === '\n' || found === '\r\n')
			out.push({ chip: block ? '‹U+000D›\n' : '↵', kind: 'break', title: 'line break' });
		else if (found === '\t')
			out.push({ chip: '→', kind: 'break', title: 'tab' });
		else
			out.push({ chip: chipOf(found), kind: 'chip', title: 'shown, as it is invisible' });
	}
	plain(text.length);
	return out;
}

// How many chips a text has.
export const flagged = (text) =>
	pieces(text, { block: true }).filter((p) => p.kind === 'chip' || p.kind === 'mixed').length;

// A text for where there is nothing but text, such as a notification.
export function plain(text, max) {
	const all = pieces(text).map((p) => p.chip ?? p).join('');
	return all.length > max ? [...all].slice(0, max - 1).join('') + '…' : all;
}

// Complete escape sequences of terminals. A text ends none of the others, so they hide nothing of it.
const SEQUENCES = /\x1b(?:\[[0-?]*[ -/]*[@-~]|\]\d+(?:;[^\x07\x1b\r\n]*)?(?:\x07|\x1b\\)|[@-OQ-WYZ\\])/g;

// A program's output as text.
export const printed = (text) => text.replace(SEQUENCES, '').replace(/\r\n/g, '\n');

// A text that is mostly odd is one element, since thousands of them would hold the page for seconds.
function drawn(parts) {
	if (parts.length <= PARTS_MAX)
		return parts;
	return [{ chip: parts.map((p) => p.kind === 'mixed' ? `‹${p.chip}›` : p.chip ?? p).join(''), kind: 'chip', title: 'has invisible characters' }];
}

export function Text({ of, block, prose, class: name = '' }) {
	const parts = drawn(pieces(String((isRaw(of) ? of.rawJSON : of) ?? ''), { block, prose }));
	return (
		<bdi dir={prose ? undefined : 'ltr'} class={(block ? 'block ' : '') + (prose ? '' : 'exact ') + name}>
			{parts.map((p) => typeof p === 'string' ? p
				: <span class={'odd ' + p.kind} title={p.title}>{p.chip}</span>)}
		</bdi>
	);
}
