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
					d <= Math.floor(want.length / 3)
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
	const lineTo = ({ source, line, column }) =>
		(source.split('\n')[(line ?? 0) - 1] ?? '').slice(0, (column ?? 1) - 1);
	const before = place => {
		const text = lineTo(place).trimEnd();
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

	const functions = () => host.modules().flatMap(m => m.functions);

	// What is said of an error by its message: a hint that follows it, or another message.
	const rules = [
		[
			/^'([\w$]+)' is not defined$/,
			(at, name) => {
				if (Object.hasOwn(absent, name)) return { hint: absent[name] };
				const of = host.modules().find(m => m.functions.includes(name));
				const declared = /\b(?:const|let|var|function|class)\s{1,8}([\w$]{1,64})/g;
				const own = Array.from(at.source.matchAll(declared), m => m[1]).slice(0, 1000);
				const all = [...Object.getOwnPropertyNames(globalThis), ...functions(), ...own];
				return of
					? { hint: `it is of ${of.name}: import { ${name} } from "${of.name}"` }
					: { hint: meant(name, all) };
			},
		],
		[
			/^Could not find export '(.+)' in module '(.+)'$/,
			(at, name, module) => {
				const has = host.modules().find(m => m.name === module)?.functions ?? [];
				const hint = [meant(name, has), has.length ? `it has ${someOf(has)}` : ''];
				return { hint: hint.filter(Boolean).join(' ') };
			},
		],
		[
			/^not a function$/,
			at => {
				const name = before(at);
				const last = /([\w$]+)$|\[["']([^"'\]]+)["']\]$/.exec(name);
				const first = /^[\w$]*/.exec(name)[0];
				if (!name) return {};
				return {
					message: `${name} is not a function`,
					hint: Object.hasOwn(absent, first)
						? absent[first]
						: last && meant(last[1] ?? last[2], functions()),
				};
			},
		],
		[
			/^cannot (?:read|set) property(?: '(.*)')? of (undefined|null)$/,
			(at, name, of) => {
				const what = before(at);
				if (name === 'Symbol.iterator') return { message: `${of} is not iterable` };
				return what && what !== of ? { message: `${at.message}: ${what} is ${of}` } : {};
			},
		],
		[
			/^cannot convert to object$/,
			() => ({ hint: 'what is taken apart, or given to a method of Object, is undefined' }),
		],
		[
			/^cannot convert bigint to number$/,
			() => ({
				hint: 'an integer beyond 2^53 in a result is a BigInt: Number(x) rounds it',
			}),
		],
		[
			/^return not in a function$/,
			() => ({ hint: 'code with exports is a module: export default its value' }),
		],
		[
			/^expecting '/,
			at =>
				/\bawait\s*$/.test(lineTo(at).slice(-40))
					? { message: 'await stands in a function that is not async' }
					: {},
		],
	];

	const placeOf = (source, name) => {
		const lines = source.split('\n');
		const imports = lines.findIndex(l => l.includes(name) && l.includes('import'));
		const line = imports < 0 ? lines.findIndex(l => l.includes(name)) : imports;
		return line < 0 ? undefined : [line + 1, lines[line].indexOf(name) + 1];
	};

	// e: {name, message, stack, line, column, cause, errors} of the compiled text.
	host.explain = (e, source, place) => {
		let { message, line, column } = e;
		const stack = e.stack?.replace(
			/\bcode\.js:(\d+):(\d+)/g,
			(_, l, c) => `code.js:${place(Number(l), Number(c)).join(':')}`,
		);
		if (line) [line, column] = place(line, column);
		const missing = /^Could not find export '(.+)' in module/.exec(message)?.[1];
		if (missing) [line, column] = placeOf(source, missing) ?? [line, column];
		for (const [form, say] of rules) {
			const m = form.exec(e.message);
			const told = m ? say({ message, source, line, column }, ...m.slice(1)) : {};
			message = told.message ?? message;
			if (told.hint) message += /[.?!:;]$/.test(message) ? ` ${told.hint}` : `; ${told.hint}`;
		}
		const causes = [e.cause ?? e.errors ?? []]
			.flat()
			.map(c => (c instanceof Error ? `${c}` : host.inspect(c)));
		if (causes.length) message += ` (cause: ${causes.slice(0, 4).join('; ').slice(0, 500)})`;
		const failed = host.failed();
		if (failed && e.name === 'TypeError') message += `; before that, ${failed}`;
		return { name: e.name, message, stack, line, column };
	};
};
