// URL and URLSearchParams, of the URL standard (url.spec.whatwg.org), whose tables of international
// names are not here: a name beyond ASCII is only lowercased and normalized.
host => {
	'use strict';
	const ports = {
		'http:': '80',
		'https:': '443',
		'ws:': '80',
		'wss:': '443',
		'ftp:': '21',
		'file:': '',
	};
	const special = scheme => Object.hasOwn(ports, scheme);
	const fragment = ' "<>`',
		query = ' "#<>',
		path = query + '?^`{}',
		userinfo = path + '/:;=@[\\]|';
	const form = /[^A-Za-z0-9*\-._]/;

	const percent = b => `%${b.toString(16).toUpperCase().padStart(2, '0')}`;
	const encode = (text, set) => {
		let out = '';
		for (const c of text.toWellFormed())
			out +=
				c > '~' || c < ' ' || set.includes(c)
					? Array.from(host.encode(c), percent).join('')
					: c;
		return out;
	};
	const bytesOf = text => {
		const bytes = host.encode(text),
			out = [];
		for (let i = 0; i < bytes.length; i++) {
			const hex = bytes[i] === 37 ? String.fromCharCode(bytes[i + 1], bytes[i + 2]) : '';
			if (/^[0-9a-fA-F]{2}$/.test(hex)) {
				out.push(parseInt(hex, 16));
				i += 2;
			} else {
				out.push(bytes[i]);
			}
		}
		return new Uint8Array(out);
	};
	const decode = text =>
		text.includes('%') ? host.decode(bytesOf(text.toWellFormed()), false) : text.toWellFormed();

	// ---- hosts ----

	const punycode = label => {
		// RFC 3492
		const points = Array.from(label, c => c.codePointAt(0));
		let out = points
				.filter(p => p < 128)
				.map(p => String.fromCharCode(p))
				.join(''),
			done = out.length;
		const basic = done,
			digit = d => String.fromCharCode(d + (d < 26 ? 97 : 22));
		let n = 128,
			delta = 0,
			bias = 72;
		if (basic) out += '-';
		while (done < points.length) {
			const next = Math.min(...points.filter(p => p >= n));
			delta += (next - n) * (done + 1);
			n = next;
			for (const p of points) {
				if (p < n) delta++;
				if (p !== n) continue;
				let q = delta;
				for (let k = 36; ; k += 36) {
					const t = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
					if (q < t) break;
					out += digit(t + ((q - t) % (36 - t)));
					q = Math.floor((q - t) / (36 - t));
				}
				out += digit(q);
				delta = done === basic ? Math.floor(delta / 700) : delta >> 1;
				delta += Math.floor(delta / (done + 1));
				let k = 0;
				for (; delta > 455; k += 36) delta = Math.floor(delta / 35);
				bias = k + Math.floor((36 * delta) / (delta + 38));
				delta = 0;
				done++;
			}
			delta++;
			n++;
		}
		return 'xn--' + out;
	};

	const ipv4 = name => {
		const parts = name.split('.');
		if (parts.at(-1) === '' && parts.length > 1) parts.pop();
		if (!/^(\d+|0x[0-9a-f]*)$/i.test(parts.at(-1))) return name;
		const numbers = parts.map(p =>
			p === ''
				? NaN
				: /^0x/i.test(p)
					? p.length === 2
						? 0
						: Number(p)
					: /^0\d/.test(p)
						? /^[0-7]+$/.test(p)
							? parseInt(p, 8)
							: NaN
						: /^\d+$/.test(p)
							? Number(p)
							: NaN,
		);
		if (
			numbers.length > 4 ||
			numbers.some(Number.isNaN) ||
			numbers.slice(0, -1).some(n => n > 255) ||
			numbers.at(-1) >= 256 ** (5 - numbers.length)
		)
			return undefined;
		const all = numbers
			.slice(0, -1)
			.reduce((sum, n, i) => sum + n * 256 ** (3 - i), numbers.at(-1));
		return [24, 16, 8, 0].map(s => Math.floor(all / 2 ** s) % 256).join('.');
	};

	const ipv6 = text => {
		const tail = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(text);
		if (tail) {
			const b = tail.slice(2).map(Number);
			if (b.some((n, i) => n > 255 || (tail[i + 2].length > 1 && tail[i + 2][0] === '0')))
				return undefined;
			text = `${tail[1]}${(b[0] * 256 + b[1]).toString(16)}:${(b[2] * 256 + b[3]).toString(16)}`;
		}
		const halves = text.split('::');
		const read = half =>
			half === ''
				? []
				: half.split(':').map(p => (/^[0-9a-f]{1,4}$/i.test(p) ? parseInt(p, 16) : NaN));
		const [a, b] = [read(halves[0]), read(halves[1] ?? '')];
		const missing = 8 - a.length - b.length;
		if (halves.length > 2 || (halves.length === 2 ? missing < 1 : missing !== 0))
			return undefined;
		const all = [...a, ...Array(halves.length === 2 ? missing : 0).fill(0), ...b];
		if (all.some(Number.isNaN)) return undefined;
		let at = -1,
			most = 1;
		for (let i = 0; i < 8; i++) {
			let n = 0;
			while (all[i + n] === 0) n++;
			if (n > most) [at, most] = [i, n];
		}
		const hex = list => list.map(n => n.toString(16)).join(':');
		return `[${at < 0 ? hex(all) : `${hex(all.slice(0, at))}::${hex(all.slice(at + most))}`}]`;
	};

	const hostOf = (text, isSpecial) => {
		if (text[0] === '[') return text.at(-1) === ']' ? ipv6(text.slice(1, -1)) : undefined;
		if (!isSpecial) return /[\0\t\n\r #/<>?@[\\\]^|]/.test(text) ? undefined : encode(text, '');
		let name = decode(text)
			.normalize('NFKC')
			.toLowerCase()
			.replaceAll('\u3002', '.')
			.replaceAll('\u00ad', '');
		if (/[^\0-\x7f]/.test(name))
			name = name
				.split('.')
				.map(label => (/[^\0-\x7f]/.test(label) ? punycode(label) : label))
				.join('.');
		return name === '' || /[\0-\x20"#%/:<>?@[\\\]^`{|}\x7f]/.test(name)
			? undefined
			: ipv4(name);
	};

	// ---- parsing ----

	const isDrive = s => /^[A-Za-z][:|]$/.test(s);
	const pathOf = (text, u, base) => {
		const isSpecial = special(u.protocol),
			list = [...base];
		const parts = (isSpecial ? text.replaceAll('\\', '/') : text).split('/');
		parts.forEach((part, i) => {
			const last = i === parts.length - 1,
				plain = part.replace(/%2e/gi, '.');
			if (plain === '..') {
				if (!(u.protocol === 'file:' && list.length === 1 && /^[A-Za-z]:$/.test(list[0])))
					list.pop();
				if (last) list.push('');
			} else if (plain === '.') {
				if (last) list.push('');
			} else {
				if (u.protocol === 'file:' && list.length === 0 && isDrive(part))
					part = part[0] + ':';
				list.push(encode(part, path));
			}
		});
		return list;
	};

	const authority = (u, text) => {
		const isSpecial = special(u.protocol),
			at = text.lastIndexOf('@');
		if (at >= 0) {
			const user = text.slice(0, at),
				colon = user.indexOf(':');
			u.username = encode(colon < 0 ? user : user.slice(0, colon), userinfo);
			u.password = colon < 0 ? '' : encode(user.slice(colon + 1), userinfo);
			text = text.slice(at + 1);
			if (text === '') return false;
		}
		const m = /^(\[[^\]]*\]|[^:]*)(?::(.*))?$/s.exec(text);
		if (!m || (m[1] === '' && (isSpecial || m[2]))) return false;
		u.host = m[1] === '' ? '' : hostOf(m[1], isSpecial);
		return u.host !== undefined && (m[2] === undefined || portOf(u, m[2]));
	};
	const portOf = (u, text) => {
		if (!/^\d*$/.test(text) || Number(text) > 65535) return false;
		const port = text === '' ? '' : String(Number(text));
		u.port = port === ports[u.protocol] ? '' : port;
		return true;
	};

	const cut = (u, text) => {
		// takes query and fragment off
		const hash = text.indexOf('#');
		u.hash = hash < 0 ? null : encode(text.slice(hash + 1), fragment);
		if (hash >= 0) text = text.slice(0, hash);
		const mark = text.indexOf('?');
		u.search =
			mark < 0
				? null
				: encode(text.slice(mark + 1), special(u.protocol) ? query + "'" : query);
		return mark < 0 ? text : text.slice(0, mark);
	};

	const file = (u, rest, base) => {
		rest = rest.replaceAll('\\', '/');
		u.host = '';
		if (rest.startsWith('//')) {
			const end = rest.indexOf('/', 2),
				name = end < 0 ? rest.slice(2) : rest.slice(2, end);
			if (!isDrive(name)) {
				u.host = name === '' ? '' : hostOf(name, true);
				if (u.host === undefined) return null;
				if (u.host === 'localhost') u.host = '';
				rest = end < 0 ? '' : rest.slice(end);
			} else {
				rest = rest.slice(1);
			}
			u.path = pathOf(rest.replace(/^\//, ''), u, []);
		} else if (base?.protocol === 'file:') {
			u.host = base.host;
			if (rest === '') {
				u.path = base.path;
				u.search ??= base.search;
			} else if (rest[0] === '/') {
				u.path = pathOf(
					rest.slice(1),
					u,
					/^[A-Za-z]:$/.test(base.path[0]) && !isDrive(rest.split('/')[1] ?? '')
						? [base.path[0]]
						: [],
				);
			} else {
				u.path = pathOf(
					rest,
					u,
					/^[A-Za-z][:|](\/|$)/.test(rest) ? [] : base.path.slice(0, -1),
				);
			}
		} else {
			u.path = pathOf(rest.replace(/^\//, ''), u, []);
		}
		return u;
	};

	const parse = (text, base) => {
		text = text
			.toWellFormed()
			.replace(/^[\0-\x20]+|[\0-\x20]+$/g, '')
			.replace(/[\t\n\r]/g, '');
		const u = {
			protocol: '',
			username: '',
			password: '',
			host: null,
			port: '',
			path: [],
			search: null,
			hash: null,
		};
		const scheme = /^([A-Za-z][A-Za-z0-9+\-.]*):/.exec(text);
		let rest = text;
		if (scheme) {
			u.protocol = scheme[1].toLowerCase() + ':';
			rest = text.slice(scheme[0].length);
		} else {
			if (!base || (typeof base.path === 'string' && text[0] !== '#')) return null;
			u.protocol = base.protocol;
		}
		rest = cut(u, rest);
		const isSpecial = special(u.protocol);
		if (!scheme && typeof base.path === 'string') return { ...base, hash: u.hash };
		if (u.protocol === 'file:') return file(u, rest, base);
		if (isSpecial) rest = rest.replaceAll('\\', '/');
		if (
			scheme &&
			isSpecial &&
			!(base && base.protocol === u.protocol && !rest.startsWith('//'))
		)
			rest = '//' + rest.replace(/^\/*/, '');
		if (rest.startsWith('//')) {
			if (isSpecial) rest = '//' + rest.replace(/^\/*/, '');
			const end = rest.indexOf('/', 2);
			if (!authority(u, end < 0 ? rest.slice(2) : rest.slice(2, end))) return null;
			rest = end < 0 ? '' : rest.slice(end);
			u.path = rest === '' && !isSpecial ? [] : pathOf(rest.replace(/^\//, ''), u, []);
			return u;
		}
		if (scheme && !isSpecial) {
			if (rest[0] !== '/') u.path = encode(rest, '');
			else u.path = pathOf(rest.slice(1), u, []);
			return u;
		}
		Object.assign(u, {
			username: base.username,
			password: base.password,
			host: base.host,
			port: base.port,
		});
		if (rest === '') {
			u.path = base.path;
			u.search ??= base.search;
		} else {
			u.path =
				rest[0] === '/'
					? pathOf(rest.slice(1), u, [])
					: pathOf(rest, u, base.path.slice(0, -1));
		}
		return u;
	};

	const pathname = u => (typeof u.path === 'string' ? u.path : u.path.map(p => '/' + p).join(''));
	const hostPort = u => (u.host ?? '') + (u.port && `:${u.port}`);
	const href = u => {
		const user =
			u.username || u.password ? `${u.username}${u.password && `:${u.password}`}@` : '';
		const before =
			u.host !== null
				? `//${user}${hostPort(u)}`
				: typeof u.path !== 'string' && u.path.length > 1 && u.path[0] === ''
					? '/.'
					: '';
		return `${u.protocol}${before}${pathname(u)}${u.search === null ? '' : `?${u.search}`}${u.hash === null ? '' : `#${u.hash}`}`;
	};

	// ---- URLSearchParams ----

	const formEncode = text =>
		Array.from(host.encode(text), b =>
			b === 32
				? '+'
				: form.test(String.fromCharCode(b))
					? percent(b)
					: String.fromCharCode(b),
		).join('');
	const formRead = text =>
		text
			.split('&')
			.filter(Boolean)
			.map(pair => {
				const at = pair.indexOf('=');
				return (at < 0 ? [pair, ''] : [pair.slice(0, at), pair.slice(at + 1)]).map(s =>
					decode(s.replaceAll('+', ' ')),
				);
			});
	let link, refill;
	class URLSearchParams {
		#list = [];
		#url;
		constructor(init = '') {
			if (typeof init === 'object' && init !== null) {
				const pairs =
					typeof init[Symbol.iterator] === 'function'
						? [...init].map(p => [...p])
						: Object.entries(init);
				for (const pair of pairs) {
					if (pair.length !== 2)
						throw new TypeError('URLSearchParams takes pairs of a name and a value');
					this.#list.push(pair.map(v => `${v}`.toWellFormed()));
				}
			} else {
				this.#list = formRead(`${init}`.toWellFormed().replace(/^\?/, ''));
			}
		}
		static {
			link = (params, url) => {
				params.#url = url;
			};
			refill = (params, text) => {
				params.#list = formRead(text);
			};
		}
		#changed() {
			if (this.#url) this.#url.search = this.toString() || null;
		}
		get size() {
			return this.#list.length;
		}
		append(name, value) {
			this.#list.push([`${name}`.toWellFormed(), `${value}`.toWellFormed()]);
			this.#changed();
		}
		delete(name, value) {
			this.#list = this.#list.filter(
				p => p[0] !== `${name}` || (value !== undefined && p[1] !== `${value}`),
			);
			this.#changed();
		}
		get(name) {
			return this.#list.find(p => p[0] === `${name}`)?.[1] ?? null;
		}
		getAll(name) {
			return this.#list.filter(p => p[0] === `${name}`).map(p => p[1]);
		}
		has(name, value) {
			return this.#list.some(
				p => p[0] === `${name}` && (value === undefined || p[1] === `${value}`),
			);
		}
		set(name, value) {
			const at = this.#list.findIndex(p => p[0] === `${name}`);
			if (at < 0) this.#list.push([`${name}`.toWellFormed(), `${value}`.toWellFormed()]);
			else
				this.#list = this.#list
					.filter((p, i) => i <= at || p[0] !== `${name}`)
					.map((p, i) => (i === at ? [p[0], `${value}`.toWellFormed()] : p));
			this.#changed();
		}
		sort() {
			this.#list.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0));
			this.#changed();
		}
		forEach(f, self) {
			for (const [k, v] of this.#list) f.call(self, v, k, this);
		}
		*entries() {
			for (const p of this.#list) yield [...p];
		}
		*keys() {
			for (const p of this.#list) yield p[0];
		}
		*values() {
			for (const p of this.#list) yield p[1];
		}
		[Symbol.iterator]() {
			return this.entries();
		}
		toString() {
			return this.#list.map(([k, v]) => `${formEncode(k)}=${formEncode(v)}`).join('&');
		}
		get [Symbol.toStringTag]() {
			return 'URLSearchParams';
		}
		[Symbol.for('nodejs.util.inspect.custom')]() {
			const list = this.#list.map(([k, v]) => `${host.inspect(k)} => ${host.inspect(v)}`);
			return list.length ? `URLSearchParams { ${list.join(', ')} }` : 'URLSearchParams {}';
		}
	}

	// ---- URL ----

	const shown = [
		'href',
		'origin',
		'protocol',
		'username',
		'password',
		'host',
		'hostname',
		'port',
		'pathname',
		'search',
		'searchParams',
		'hash',
	];
	class URL {
		#u;
		#params = new URLSearchParams();
		constructor(text, base) {
			const from = base === undefined ? undefined : parse(`${base}`, undefined);
			const u = from === null ? null : parse(`${text}`, from);
			if (!u) {
				const e = new TypeError(
					`Invalid URL: ${host.inspect(`${text}`)}${base === undefined ? (/^[A-Za-z][\w+.-]*:/.test(`${text}`) ? '' : ', which has no scheme such as https://, and no base was given') : ` with the base ${host.inspect(`${base}`)}`}`,
				);
				throw Object.assign(e, {
					code: 'ERR_INVALID_URL',
					input: `${text}`,
				});
			}
			this.#set(u);
		}
		static canParse(text, base) {
			return URL.parse(text, base) !== null;
		}
		static parse(text, base) {
			try {
				return new URL(text, base);
			} catch {
				return null;
			}
		}
		#set(u) {
			this.#u = u;
			refill(this.#params, u.search ?? '');
			link(this.#params, u);
		}
		#part(change) {
			const u = { ...this.#u };
			if (change(u) !== false) this.#set(u);
		}
		get href() {
			return href(this.#u);
		}
		set href(v) {
			this.#set(new URL(v).#u);
		}
		get origin() {
			const u = this.#u;
			return special(u.protocol) && u.protocol !== 'file:'
				? `${u.protocol}//${hostPort(u)}`
				: 'null';
		}
		get protocol() {
			return this.#u.protocol;
		}
		set protocol(v) {
			this.#part(u => {
				const m = /^([A-Za-z][A-Za-z0-9+\-.]*)(:|$)/.exec(`${v}`),
					to = m && m[1].toLowerCase() + ':';
				if (
					!m ||
					special(to) !== special(u.protocol) ||
					(to === 'file:' && (u.username || u.password || u.port))
				)
					return false;
				u.protocol = to;
				return portOf(u, u.port);
			});
		}
		get username() {
			return this.#u.username;
		}
		set username(v) {
			this.#part(u => (u.host ? void (u.username = encode(`${v}`, userinfo)) : false));
		}
		get password() {
			return this.#u.password;
		}
		set password(v) {
			this.#part(u => (u.host ? void (u.password = encode(`${v}`, userinfo)) : false));
		}
		get host() {
			return hostPort(this.#u);
		}
		set host(v) {
			this.#part(u => {
				const text = `${v}`.replace(special(u.protocol) ? /[/?#\\].*$/s : /[/?#].*$/s, ''),
					old = u.port;
				if (typeof u.path === 'string' || text.includes('@') || !authority(u, text))
					return false;
				if (!/:\d+$/.test(text)) u.port = old;
			});
		}
		get hostname() {
			return this.#u.host ?? '';
		}
		set hostname(v) {
			this.#part(u => {
				const name =
					typeof u.path === 'string'
						? undefined
						: hostOf(`${v}`.replace(/[/?#\\].*$/s, ''), special(u.protocol));
				if (name === undefined || (!`${v}`.startsWith('[') && `${v}`.includes(':')))
					return false;
				u.host = name;
			});
		}
		get port() {
			return this.#u.port;
		}
		set port(v) {
			this.#part(u => {
				const m = /^\d*/.exec(`${v}`)[0];
				return u.host && u.protocol !== 'file:' && (m !== '' || `${v}` === '')
					? portOf(u, m)
					: false;
			});
		}
		get pathname() {
			return pathname(this.#u);
		}
		set pathname(v) {
			this.#part(u =>
				typeof u.path === 'string'
					? false
					: void (u.path = pathOf(
							`${v}`
								.replaceAll('?', '%3F')
								.replaceAll('#', '%23')
								.replace(special(u.protocol) ? /^[/\\]/ : /^\//, ''),
							u,
							[],
						)),
			);
		}
		get search() {
			return this.#u.search ? `?${this.#u.search}` : '';
		}
		set search(v) {
			this.#part(
				u =>
					void (u.search =
						`${v}` === ''
							? null
							: encode(
									`${v}`.replace(/^\?/, ''),
									special(u.protocol) ? query + "'" : query,
								)),
			);
		}
		get searchParams() {
			return this.#params;
		}
		get hash() {
			return this.#u.hash ? `#${this.#u.hash}` : '';
		}
		set hash(v) {
			this.#part(
				u =>
					void (u.hash =
						`${v}` === '' ? null : encode(`${v}`.replace(/^#/, ''), fragment)),
			);
		}
		toString() {
			return this.href;
		}
		toJSON() {
			return this.href;
		}
		get [Symbol.toStringTag]() {
			return 'URL';
		}
		[Symbol.for('nodejs.util.inspect.custom')]() {
			return `URL {\n${shown.map(k => `  ${k}: ${host.inspect(this[k])}`).join(',\n')}\n}`;
		}
	}
	for (const [name, value] of [
		['URL', URL],
		['URLSearchParams', URLSearchParams],
	])
		Object.defineProperty(globalThis, name, {
			value,
			writable: true,
			configurable: true,
		});
};
