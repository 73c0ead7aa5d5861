// An error as its reader needs it: with its place in the source, what was meant, and what there is.
host => {
	'use strict';
	const absent = {
		Buffer: 'use Uint8Array, with toBase64(), fromBase64() and toHex(), TextEncoder and TextDecoder',
		process: 'code has no process: no environment, arguments or exit code; return the result',
		module: 'return the value, or export default it',
		exports: 'return the value, or export default it',
		__dirname: 'code has no files of its own: call a module that has',
		__filename: 'code has no files of its own: call a module that has',
		setImmediate: 'use setTimeout(f, 0) or queueMicrotask(f)',
		XMLHttpRequest: 'code has no network: call a module',
		WebSocket: 'code has no network: call a module',
		EventSource: 'code has no network: call a module',
		Request: 'code has no network: call a module',
		Response: 'code has no network: call a module',
		Headers: 'code has no network: use a Map or an object',
		window: 'code has no page: globalThis has what there is',
		document: 'code has no page',
		localStorage: 'nothing is kept from run to run but by a module',
		alert: 'use console.log()',
		prompt: 'nobody can be asked from code',
		Blob: 'use Uint8Array',
		File: 'use Uint8Array',
		Deno: 'nothing of Deno is here',
		Bun: 'nothing of Bun is here',
		Worker: 'use Promise.all() of calls',
		WebAssembly: 'it has no place here',
	};

	const plain = s => s.toLowerCase().replace(/[^a-z0-9]/g, '');
	const distance = (a, b) => {
		// Levenshtein
		let row = Array.from({ length: b.length + 1 }, (_, i) => i);
		for (let i = 1; i <= a.length; i++) {
			const next = [i];
			for (let j = 1; j <= b.length; j++)
				next[j] = Math.min(
					row[j] + 1,
					next[j - 1] + 1,
					row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1),
				);
			row = next;
		}
		return row[b.length];
	};
	const nearest = (name, names) => {
		const want = plain(name).slice(0, 64);
		return [...new Set(names)]
			.filter(n => n !== name && n.length <= 128)
			.map(n => {
				const have = plain(n);
				const d = distance(want, have);
				return [
					d <= Math.max(1, Math.floor(want.length / 3))
						? d
						: want.length > 3 && have && (have.includes(want) || want.includes(have))
							? 20 + Math.abs(have.length - want.length)
							: 99,
					n,
				];
			})
			.filter(([d]) => d < 99)
			.sort((a, b) => a[0] - b[0])
			.slice(0, 3)
			.map(([, n]) => n);
	};
	const someOf = names =>
		names.length <= 16
			? names.join(', ')
			: `${names.slice(0, 16).join(', ')} and ${names.length - 16} more`;
	const meant = (name, names) => {
		const near = nearest(name, names);
		return near.length ? `did you mean ${near.join(' or ')}?` : '';
	};

	// What stands before a place of the source and names a value: data.items[0]
	const before = (source, line, column) => {
		const text = (source.split('\n')[line - 1] ?? '').slice(0, column - 1).trimEnd();
		const closes = { ')': '(', ']': '[' };
		let at = text.length;
		for (let wantsWord = true; at > 0;) {
			const c = text[at - 1];
			if (Object.hasOwn(closes, c)) {
				let depth = 0;
				do {
					at--;
					depth += text[at] === c ? 1 : text[at] === closes[c] ? -1 : 0;
				} while (depth > 0 && at > 0);
				if (depth > 0) return '';
			} else if (/[\w$]/.test(c)) {
				if (!wantsWord) break;
				while (at > 0 && /[\w$]/.test(text[at - 1])) at--;
				wantsWord = false;
			} else if (c === '.') {
				at -= text[at - 2] === '?' ? 2 : 1;
				wantsWord = true;
			} else {
				break;
			}
		}
		return text.slice(at).slice(-200);
	};

	const modules = () => host.modules();
	const more = (e, source, line, column) => {
		let m;
		if ((m = /^'([\w$]+)' is not defined$/.exec(e.message))) {
			if (Object.hasOwn(absent, m[1])) return absent[m[1]];
			const of = modules().find(x => x.functions.includes(m[1]));
			if (of) return `it is a function of ${of.name}: import { ${m[1]} } from "${of.name}"`;
			return meant(m[1], [
				...Object.getOwnPropertyNames(globalThis),
				...modules().flatMap(x => x.functions),
				...Array.from(
					source.matchAll(/\b(?:const|let|var|function|class)\s{1,8}([\w$]{1,64})/g),
					of => of[1],
				).slice(0, 1000),
			]);
		}
		if ((m = /^Could not find export '(.+)' in module '(.+)'$/.exec(e.message))) {
			const of = modules().find(x => x.name === m[2]);
			return of
				? [meant(m[1], of.functions), `it has ${someOf(of.functions)}`]
						.filter(Boolean)
						.join(' ')
				: '';
		}
		if (e.message === 'not a function' && line) {
			const name = before(source, line, column);
			if (!name) return '';
			const last = /([\w$]+)$/.exec(name)?.[1] ?? '';
			const functions = modules().flatMap(x => x.functions);
			const near = last && !functions.includes(last) ? nearest(last, functions) : [];
			return {
				message: `${name} is not a function`,
				hint: Object.hasOwn(absent, name.split('.')[0])
					? absent[name.split('.')[0]]
					: near.length
						? `did you mean ${near.join(' or ')}?`
						: '',
			};
		}
		if (
			(m = /^cannot (read|set) property(?: '(.*)')? of (undefined|null)$/.exec(e.message)) &&
			line
		) {
			const name = before(source, line, column);
			if (m[2] === 'Symbol.iterator') return { message: `${m[3]} is not iterable`, hint: '' };
			return name ? { message: `${e.message}: ${name} is ${m[3]}`, hint: '' } : '';
		}
		if (e.message === 'cannot convert to object')
			return 'what is taken apart here, or given to a method of Object, is undefined or null';
		if (/^cannot convert bigint to number$/.test(e.message))
			return 'an integer beyond 2^53 in a result is a BigInt, to be exact: Number(x) rounds it, and 1n is the BigInt of 1';
		return '';
	};

	const lineOf = (source, name) => {
		const at = source
			.split('\n')
			.findIndex(
				l =>
					new RegExp(`\\bimport\\b|^[^=]*\\b${name.replace(/[^\w]/g, '.')}\\b`).test(l) &&
					l.includes(name),
			);
		const line = at < 0 ? source.split('\n').findIndex(l => l.includes(name)) : at;
		return line < 0 ? undefined : [line + 1, source.split('\n')[line].indexOf(name) + 1];
	};

	// e: {name, message, stack, line, column} of the compiled text.
	host.explain = (e, source, place) => {
		let { message, line, column } = e;
		const stack = e.stack?.replace(
			/\bcode\.js:(\d+):(\d+)/g,
			(_, l, c) => `code.js:${place(Number(l), Number(c)).join(':')}`,
		);
		if (line) [line, column] = place(line, column);
		const missing = /^Could not find export '(.+)' in module/.exec(message)?.[1];
		if (missing) [line, column] = lineOf(source, missing) ?? [line, column];
		const told = more(e, source, line, column);
		const hint = typeof told === 'string' ? told : told.hint;
		message = typeof told === 'string' ? message : told.message;
		if (hint) message += /[.?!:;]$/.test(message) ? ` ${hint}` : `; ${hint}`;
		const failed = host.failed();
		if (failed && e.name === 'TypeError') message += `; before that, ${failed}`;
		return { name: e.name, message, stack, line, column };
	};
};
