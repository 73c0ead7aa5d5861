// How values are shown, and the console: as Node.js shows them (util.inspect, console).
host => {
	'use strict';
	const WIDTH = 80,
		ITEMS_MAX = 100,
		TEXT_MAX = 10000,
		COMPACT = 3,
		DEPTH = 2;
	const KEY = /^[a-zA-Z_$][\w$]*$/;

	const quoted = text => {
		const mark = !text.includes("'")
			? "'"
			: !text.includes('"')
				? '"'
				: text.includes('`') || text.includes('${')
					? "'"
					: '`';
		const escapes = {
			'\n': '\\n',
			'\t': '\\t',
			'\r': '\\r',
			'\b': '\\b',
			'\f': '\\f',
			'\v': '\\v',
			'\\': '\\\\',
		};
		return (
			mark +
			text.replace(/[\x00-\x1f\x7f-\x9f\\'"`]/g, c =>
				c === mark
					? '\\' + c
					: '\'"`'.includes(c)
						? c
						: (escapes[c] ??
							'\\x' + c.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')),
			) +
			mark
		);
	};

	const number = n => (Object.is(n, -0) ? '-0' : String(n));

	const primitive = (v, c) => {
		if (typeof v === 'string') {
			const cut = v.length > TEXT_MAX ? v.length - TEXT_MAX : 0;
			const more = cut ? `... ${cut} more character${cut > 1 ? 's' : ''}` : '';
			if (cut) v = v.slice(0, TEXT_MAX);
			if (v.length > 16 && v.length > WIDTH - c.indent - 4 && v.includes('\n'))
				return (
					v
						.match(/[^\n]*\n|[^\n]+/g)
						.map(quoted)
						.join(` +\n${' '.repeat(c.indent + 2)}`) + more
				);
			return quoted(v) + more;
		}
		return typeof v === 'number'
			? number(v)
			: typeof v === 'bigint'
				? `${v}n`
				: typeof v === 'symbol'
					? v.toString()
					: String(v);
	};

	// The class that made it; null where nothing did.
	const maker = v => {
		for (let o = v; o !== null; o = Object.getPrototypeOf(o)) {
			const d = Object.getOwnPropertyDescriptor(o, 'constructor');
			if (d && typeof d.value === 'function' && d.value.name !== '') return d.value.name;
		}
		return null;
	};

	const prefix = (v, kind, size) => {
		const by = maker(v);
		const count = size === undefined ? '' : `(${size})`;
		let tag = '';
		try {
			tag = v[Symbol.toStringTag];
		} catch {}
		tag = typeof tag === 'string' && tag && tag !== by && tag !== kind ? ` [${tag}]` : '';
		return by === null ? `[${kind}${count}: null prototype]${tag} ` : `${by}${count}${tag} `;
	};

	const group = (c, out, list) => {
		const n = list.length > ITEMS_MAX ? out.length - 1 : out.length,
			sizes = [];
		let total = 0,
			most = 0;
		for (let i = 0; i < n; i++) {
			sizes.push(out[i].length);
			total += out[i].length + 2;
			most = Math.max(most, out[i].length);
		}
		const wide = most + 2;
		if (!(wide * 3 + c.indent < WIDTH && (total / wide > 5 || most <= 6))) return out;
		const biased = Math.max(wide - 3 - Math.sqrt(wide - total / out.length), 1);
		const columns = Math.min(
			Math.round(Math.sqrt(2.5 * biased * n) / biased),
			Math.floor((WIDTH - c.indent) / wide),
			COMPACT * 4,
			15,
		);
		if (columns <= 1) return out;
		const lines = [],
			widths = [];
		for (let i = 0; i < columns; i++) {
			let width = 0;
			for (let j = i; j < n; j += columns) width = Math.max(width, sizes[j]);
			widths.push(width + 2);
		}
		const start = out.every(
			(_, i) => typeof list[i] === 'number' || typeof list[i] === 'bigint',
		);
		for (let i = 0; i < n; i += columns) {
			const end = Math.min(i + columns, n);
			let line = '';
			for (let j = i; j < end - 1; j++)
				line += start
					? `${out[j]}, `.padStart(widths[j - i])
					: `${out[j]}, `.padEnd(widths[j - i]);
			lines.push(
				line + (start ? out[end - 1].padStart(widths[end - 1 - i] - 2) : out[end - 1]),
			);
		}
		if (n < out.length) lines.push(out[n]);
		return lines;
	};

	const join = (c, out, base, open, close, depth, list) => {
		const entries = out.length;
		if (list && entries > 6) out = group(c, out, list);
		if (c.deepest - depth < COMPACT && entries === out.length) {
			const start = out.length + c.indent + open.length + base.length + 10;
			const length = out.reduce((n, s) => n + s.length, out.length + start);
			if (length <= WIDTH && !base.includes('\n')) {
				const line = out.join(', ');
				if (!line.includes('\n'))
					return `${base ? `${base} ` : ''}${open} ${line} ${close}`;
			}
		}
		const indent = `\n${' '.repeat(c.indent)}`;
		return `${base ? `${base} ` : ''}${open}${indent}  ${out.join(`,${indent}  `)}${indent}${close}`;
	};

	const property = (c, v, key, depth, isItem) => {
		const d = Object.getOwnPropertyDescriptor(v, key);
		let text,
			by = 2;
		if (!d) {
			text = 'undefined';
		} else if ('value' in d) {
			c.indent += by;
			text = show(c, d.value, depth);
			c.indent -= by;
		} else {
			text = d.get ? (d.set ? '[Getter/Setter]' : '[Getter]') : '[Setter]';
		}
		if (isItem) return text;
		const name = typeof key === 'symbol' ? key.toString() : KEY.test(key) ? key : quoted(key);
		return `${d && !d.enumerable ? `[${name}]` : name}: ${text}`;
	};

	const item = (c, v, depth) => {
		c.indent += 2;
		const text = show(c, v, depth);
		c.indent -= 2;
		return text;
	};

	const more = n => (n > 0 ? [`... ${n} more item${n > 1 ? 's' : ''}`] : []);

	const items = (c, v, depth) => {
		const out = [];
		let i = 0;
		for (; i < v.length && out.length < ITEMS_MAX; i++) {
			if (Object.hasOwn(v, i)) {
				out.push(property(c, v, String(i), depth, true));
				continue;
			}
			let holes = 1;
			while (i + 1 < v.length && !Object.hasOwn(v, i + 1)) (holes++, i++);
			out.push(`<${holes} empty item${holes > 1 ? 's' : ''}>`);
		}
		return [...out, ...more(v.length - i)];
	};

	const limited = function* (all) {
		let i = 0;
		for (const one of all) {
			if (i++ === ITEMS_MAX) return;
			yield one;
		}
	};

	const error = (c, v, keys, depth) => {
		let stack = '';
		const d = Object.getOwnPropertyDescriptor(v, 'stack');
		const by = maker(v) ?? 'Error',
			named = `${v.name}`;
		const name = named.includes(by) ? named : by.includes(named) ? by : `${by} [${named}]`;
		const said = `${name}${v.message ? `: ${v.message}` : ''}`;
		if (d && typeof d.value === 'string') stack = d.value.replace(/\n+$/, '');
		let text = stack ? `${said}\n${stack}` : `[${said}]`;
		if (c.indent) text = text.replaceAll('\n', `\n${' '.repeat(c.indent)}`);
		if ('cause' in v && !keys.includes('cause')) keys.push('cause');
		if (Array.isArray(v.errors) && !keys.includes('errors')) keys.push('errors');
		return text;
	};

	const kind = host.kind; // of an object: what the engine knows, whatever its prototype is

	const raw = (c, v, depth) => {
		const is = kind(v),
			tag = maker(v);
		let keys = Object.keys(v).concat(
			Object.getOwnPropertySymbols(v).filter(s =>
				Object.prototype.propertyIsEnumerable.call(v, s),
			),
		);
		let open = '{',
			close = '}',
			base = '',
			list,
			items_of = () => [];
		if (is === 'Array' || is === 'TypedArray') {
			keys = keys.filter(k => typeof k === 'symbol' || !/^(0|[1-9]\d*)$/.test(k));
			open =
				is === 'Array'
					? tag === 'Array'
						? '['
						: `${prefix(v, 'Array', v.length)}[`
					: `${prefix(v, tag, v.length)}[`;
			close = ']';
			list = v;
			if (v.length === 0 && keys.length === 0) return `${open}]`;
			items_of =
				is === 'Array'
					? () => items(c, v, depth)
					: () => [
							...Array.from(v.subarray(0, ITEMS_MAX), n => primitive(n, c)),
							...more(v.length - ITEMS_MAX),
						];
		} else if (is === 'Set' || is === 'Map') {
			open = `${prefix(v, is, v.size)}{`;
			if (v.size === 0 && keys.length === 0) return `${open}}`;
			items_of = () => [
				...(is === 'Set'
					? Array.from(limited(Set.prototype.values.call(v)), one => item(c, one, depth))
					: Array.from(
							limited(Map.prototype.entries.call(v)),
							([k, one]) => `${item(c, k, depth)} => ${item(c, one, depth)}`,
						)),
				...more(v.size - ITEMS_MAX),
			];
		} else if (is === 'Function') {
			const isClass = /^class\b/.test(Function.prototype.toString.call(v));
			const by = Object.getPrototypeOf(v);
			base = isClass
				? `[class ${v.name || '(anonymous)'}${by?.name ? ` extends ${by.name}` : ''}]`
				: `[${tag && tag !== 'Function' ? tag : 'Function'}${v.name ? `: ${v.name}` : ' (anonymous)'}]`;
		} else if (is === 'Error') {
			keys = keys.filter(k => k !== 'stack' && k !== 'message' && k !== 'name');
			base = error(c, v, keys, depth);
		} else if (is === 'Date') {
			base = Number.isNaN(v.getTime()) ? 'Invalid Date' : v.toISOString();
		} else if (is === 'RegExp') {
			base = RegExp.prototype.toString.call(v);
		} else if (is === 'Promise') {
			open = `${prefix(v, 'Promise')}{`;
			items_of = () => {
				const [state, value] = host.promise(v);
				return [
					state === 'pending'
						? '<pending>'
						: `${state === 'rejected' ? '<rejected> ' : ''}${item(c, value, depth)}`,
				];
			};
		} else if (is === 'ArrayBuffer') {
			open = `${prefix(v, 'ArrayBuffer')}{`;
			items_of = () => [
				`[Uint8Contents]: <${Array.from(new Uint8Array(v, 0, Math.min(50, v.byteLength)), b => b.toString(16).padStart(2, '0')).join(' ')}${v.byteLength > 50 ? ` ... ${v.byteLength - 50} more bytes` : ''}>`,
				`[byteLength]: ${v.byteLength}`,
			];
		} else if (is === 'Boxed') {
			const inner = v.valueOf();
			base = `[${tag}: ${primitive(inner, c)}]`;
			if (typeof inner === 'string')
				keys = keys.filter(k => typeof k === 'symbol' || !/^\d+$/.test(k));
		} else if (is === 'WeakMap' || is === 'WeakSet') {
			return `${tag} { <items unknown> }`;
		} else if (is === 'Generator') {
			open = 'Object [Generator] {';
		} else if (is === 'Arguments') {
			open = '[Arguments] [';
			close = ']';
			list = v;
			keys = keys.filter(k => typeof k === 'symbol' || !/^\d+$/.test(k));
			items_of = () => items(c, v, depth);
		} else if (tag !== 'Object' || Symbol.toStringTag in v) {
			open = `${prefix(v, 'Object')}{`;
		}
		if (base && keys.length === 0) return base;
		if (
			!base &&
			keys.length === 0 &&
			open.endsWith('{') &&
			!['Set', 'Map', 'Promise', 'ArrayBuffer'].includes(is)
		)
			return `${open}}`;
		if (depth > c.depth)
			return `[${is === 'Array' ? 'Array' : (open.replace(/ ?[[{]$/, '') || 'Object').replace(/\(\d+\) ?$/, '')}]`;
		c.seen.push(v);
		c.deepest = depth;
		const out = [...items_of(), ...keys.map(k => property(c, v, k, depth, false))];
		c.seen.pop();
		const at = c.circular.indexOf(v);
		if (at >= 0) {
			if (base) base = `<ref *${at + 1}> ${base}`;
			else open = `<ref *${at + 1}> ${open}`;
		}
		return join(c, out, base, open, close, depth, list);
	};

	// depth: how deep the object is that holds v.
	const show = (c, v, depth) => {
		if (v === null || (typeof v !== 'object' && typeof v !== 'function'))
			return primitive(v, c);
		v = host.settled(v);
		if (c.seen.includes(v)) {
			if (!c.circular.includes(v)) c.circular.push(v);
			return `[Circular *${c.circular.indexOf(v) + 1}]`;
		}
		const own = v[Symbol.for('nodejs.util.inspect.custom')];
		if (typeof own === 'function') {
			const said = own.call(v, c.depth - depth, {}, inspect);
			return typeof said === 'string' ? said : show(c, said, depth);
		}
		return raw(c, v, depth + 1);
	};

	const inspect = (v, { depth = DEPTH } = {}) =>
		show({ depth: depth ?? Infinity, indent: 0, seen: [], circular: [], deepest: 0 }, v, -1);

	const text = v => (typeof v === 'string' ? v : inspect(v));

	const formats = {
		s: v =>
			typeof v === 'bigint'
				? `${v}n`
				: typeof v === 'object' &&
					  v !== null &&
					  kind(v) !== 'Error' &&
					  !Object.hasOwn(v, 'toString')
					? inspect(v, { depth: 0 })
					: typeof v === 'number'
						? number(v)
						: String(v),
		d: v =>
			typeof v === 'bigint'
				? `${v}n`
				: typeof v === 'symbol' || (typeof v === 'object' && v !== null)
					? 'NaN'
					: number(Number(v)),
		i: v =>
			typeof v === 'bigint'
				? `${v}n`
				: typeof v === 'symbol' || (typeof v === 'object' && v !== null)
					? 'NaN'
					: number(parseInt(v)),
		f: v => (typeof v === 'symbol' ? 'NaN' : number(parseFloat(v))),
		j: v => JSON.stringify(v),
		o: v => inspect(v, { depth: 4 }),
		O: v => inspect(v, { depth: 4 }),
		c: () => '',
	};

	const format = args => {
		let used = 0,
			out = '';
		if (typeof args[0] === 'string' && args.length > 1) {
			used = 1;
			out = args[0].replace(/%([sdifjoOc%])/g, (all, letter) =>
				letter === '%' ? '%' : used < args.length ? formats[letter](args[used++]) : all,
			);
		}
		for (let i = used; i < args.length; i++) out += (i ? ' ' : '') + text(args[i]);
		return out;
	};

	// ---- console ----

	let indent = '';
	const counts = new Map(),
		times = new Map();
	const write = (level, out) =>
		host.write(level, indent ? indent + out.replaceAll('\n', `\n${indent}`) : out);
	const say =
		level =>
		(...args) =>
			write(level, format(args));

	const table = (rows, columns) => {
		if (rows === null || typeof rows !== 'object') return write('log', text(rows));
		rows = host.settled(rows);
		const is = kind(rows);
		const cell = v => inspect(v, { depth: 0 });
		const head =
			is === 'Map'
				? ['(iteration index)', 'Key']
				: [is === 'Set' ? '(iteration index)' : '(index)'];
		const list =
			is === 'Map'
				? [...rows].map(([k, v], i) => [[String(i), cell(k)], v])
				: is === 'Set'
					? [...rows].map((v, i) => [[String(i)], v])
					: Object.keys(rows).map(k => [[k], rows[k]]);
		const names = columns ? [...columns] : [];
		const isList = v =>
			is !== 'Map' &&
			is !== 'Set' &&
			((v !== null && typeof v === 'object') || typeof v === 'function');
		let plain = false;
		for (const [, v] of list) {
			if (!isList(v)) plain = true;
			else if (!columns) for (const k of Object.keys(v)) names.includes(k) || names.push(k);
		}
		const all = [[...head, ...names, ...(plain ? ['Values'] : [])]];
		for (const [first, v] of list)
			all.push([
				...first,
				...names.map(k => (isList(v) && Object.hasOwn(v, k) ? cell(v[k]) : '')),
				...(plain ? [isList(v) ? '' : cell(v)] : []),
			]);
		const wide = s => [...s].length;
		const widths = all[0].map((_, i) => Math.max(...all.map(r => wide(r[i]))) + 2);
		const rule = (l, m, r) => l + widths.map(w => '─'.repeat(w)).join(m) + r;
		const row = r =>
			`│${r.map((s, i) => ` ${s}${' '.repeat(widths[i] - wide(s) - 1)}`).join('│')}│`;
		write(
			'log',
			[
				rule('┌', '┬', '┐'),
				row(all[0]),
				rule('├', '┼', '┤'),
				...all.slice(1).map(row),
				rule('└', '┴', '┘'),
			].join('\n'),
		);
	};

	const elapsed = ms =>
		ms >= 1000 ? `${(ms / 1000).toFixed(3)}s` : `${Number(ms.toFixed(3))}ms`;
	const lapse = (label, args) => {
		if (!times.has(label)) return write('warn', `Timer '${label}' does not exist`);
		write(
			'log',
			`${label}: ${elapsed(host.now() - times.get(label))}${args.length ? ` ${format(args)}` : ''}`,
		);
	};

	const console = {
		log: say('log'),
		info: say('info'),
		warn: say('warn'),
		error: say('error'),
		debug: say('debug'),
		trace(...args) {
			const stack = new Error().stack.split('\n').slice(1).join('\n').trimEnd();
			write('error', `Trace${args.length ? `: ${format(args)}` : ''}\n${stack}`);
		},
		dir: (v, options) =>
			write(
				'log',
				inspect(v, {
					depth: options?.depth === undefined ? DEPTH : options.depth,
				}),
			),
		dirxml: say('log'),
		table,
		assert(ok, ...args) {
			if (!ok)
				write(
					'warn',
					args.length === 0
						? 'Assertion failed'
						: typeof args[0] === 'string'
							? format([`Assertion failed: ${args[0]}`, ...args.slice(1)])
							: format(['Assertion failed:', ...args]),
				);
		},
		count(label = 'default') {
			counts.set(`${label}`, (counts.get(`${label}`) ?? 0) + 1);
			write('log', `${label}: ${counts.get(`${label}`)}`);
		},
		countReset: (label = 'default') => void counts.delete(`${label}`),
		time: (label = 'default') =>
			times.has(`${label}`)
				? write('warn', `Label '${label}' already exists for console.time()`)
				: void times.set(`${label}`, host.now()),
		timeLog: (label = 'default', ...args) => lapse(`${label}`, args),
		timeEnd(label = 'default') {
			lapse(`${label}`, []);
			times.delete(`${label}`);
		},
		group(...args) {
			if (args.length) write('log', format(args));
			indent += '  ';
		},
		groupEnd: () => void (indent = indent.slice(2)),
		clear() {},
	};
	console.groupCollapsed = console.group;
	Object.defineProperty(globalThis, 'console', {
		value: console,
		writable: true,
		configurable: true,
	});
	host.inspect = inspect;
};
