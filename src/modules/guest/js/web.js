// What browsers, Deno and Node.js have beside the language, and what this engine lacks of it.
host => {
	'use strict';
	const make = (name, value) =>
		Object.defineProperty(globalThis, name, {
			value,
			writable: true,
			configurable: true,
		});
	const add = (to, methods) => {
		for (const name of Reflect.ownKeys(methods))
			if (!(name in to))
				Object.defineProperty(to, name, {
					value: methods[name],
					writable: true,
					configurable: true,
				});
	};

	// ---- errors and events ----

	const codes = {
		IndexSizeError: 1,
		NotFoundError: 8,
		NotSupportedError: 9,
		InvalidStateError: 11,
		SyntaxError: 12,
		InvalidCharacterError: 5,
		InvalidAccessError: 15,
		AbortError: 20,
		URLMismatchError: 21,
		QuotaExceededError: 22,
		TimeoutError: 23,
		DataCloneError: 25,
	};
	class DOMException extends Error {
		#name;
		constructor(message = '', options = 'Error') {
			super(message);
			this.#name = typeof options === 'string' ? options : (options?.name ?? 'Error');
			if (typeof options === 'object' && 'cause' in options)
				Object.defineProperty(this, 'cause', {
					value: options.cause,
					configurable: true,
					writable: true,
				});
		}
		get name() {
			return this.#name;
		}
		get code() {
			return codes[this.#name] ?? 0;
		}
	}
	make('DOMException', DOMException);

	const states = new WeakMap(); // of events
	class Event {
		constructor(type, { bubbles = false, cancelable = false } = {}) {
			states.set(this, {
				type: `${type}`,
				bubbles,
				cancelable,
				target: null,
				prevented: false,
				stopped: false,
				at: host.now(),
			});
		}
		get type() {
			return states.get(this).type;
		}
		get bubbles() {
			return states.get(this).bubbles;
		}
		get cancelable() {
			return states.get(this).cancelable;
		}
		get target() {
			return states.get(this).target;
		}
		get currentTarget() {
			return states.get(this).target;
		}
		get timeStamp() {
			return states.get(this).at;
		}
		get defaultPrevented() {
			return states.get(this).prevented;
		}
		preventDefault() {
			const s = states.get(this);
			s.prevented = s.cancelable;
		}
		stopPropagation() {}
		stopImmediatePropagation() {
			states.get(this).stopped = true;
		}
	}
	class CustomEvent extends Event {
		#detail;
		constructor(type, options = {}) {
			super(type, options);
			this.#detail = options.detail ?? null;
		}
		get detail() {
			return this.#detail;
		}
	}
	class EventTarget {
		#listeners = [];
		addEventListener(type, listener, options) {
			const {
				once = false,
				signal,
				capture = false,
			} = typeof options === 'object' && options ? options : { capture: !!options };
			if (
				listener === null ||
				listener === undefined ||
				signal?.aborted ||
				this.#listeners.some(
					l => l.type === type && l.listener === listener && l.capture === capture,
				)
			)
				return;
			this.#listeners.push({ type, listener, once, capture });
			signal?.addEventListener(
				'abort',
				() => this.removeEventListener(type, listener, { capture }),
				{ once: true },
			);
		}
		removeEventListener(type, listener, options) {
			const capture = typeof options === 'object' && options ? !!options.capture : !!options;
			this.#listeners = this.#listeners.filter(
				l => l.type !== type || l.listener !== listener || l.capture !== capture,
			);
		}
		dispatchEvent(event) {
			const s = states.get(event);
			if (!s) throw new TypeError('dispatchEvent() takes an Event');
			s.target = this;
			for (const l of [...this.#listeners]) {
				if (l.type !== s.type || !this.#listeners.includes(l)) continue;
				if (l.once) this.#listeners = this.#listeners.filter(other => other !== l);
				if (typeof l.listener === 'function') l.listener.call(this, event);
				else l.listener.handleEvent(event);
				if (s.stopped) break;
			}
			return !s.prevented;
		}
	}
	make('Event', Event);
	make('CustomEvent', CustomEvent);
	make('EventTarget', EventTarget);

	const secret = Symbol();
	let abort;
	class AbortSignal extends EventTarget {
		#reason;
		#aborted = false;
		onabort = null;
		constructor(key) {
			super();
			if (key !== secret)
				throw new TypeError(
					'Illegal constructor: use AbortController, AbortSignal.timeout() or AbortSignal.any()',
				);
			Object.defineProperty(this, 'onabort', { enumerable: false });
		}
		get aborted() {
			return this.#aborted;
		}
		get reason() {
			return this.#reason;
		}
		throwIfAborted() {
			if (this.#aborted) throw this.#reason;
		}
		static {
			abort = (
				signal,
				reason = new DOMException('This operation was aborted', 'AbortError'),
			) => {
				if (signal.#aborted) return;
				signal.#aborted = true;
				signal.#reason = reason;
				const event = new Event('abort');
				if (typeof signal.onabort === 'function') signal.onabort(event);
				signal.dispatchEvent(event);
			};
		}
		static abort(reason) {
			const signal = new AbortSignal(secret);
			abort(signal, reason);
			return signal;
		}
		static timeout(ms) {
			const signal = new AbortSignal(secret);
			host.weakTimeout(
				() =>
					abort(
						signal,
						new DOMException(
							'The operation was aborted due to timeout',
							'TimeoutError',
						),
					),
				ms,
			);
			return signal;
		}
		static any(signals) {
			const all = [...signals],
				any = new AbortSignal(secret),
				first = all.find(s => s.aborted);
			if (first) abort(any, first.reason);
			else
				for (const s of all)
					s.addEventListener('abort', () => abort(any, s.reason), {
						once: true,
					});
			return any;
		}
	}
	class AbortController {
		#signal = new AbortSignal(secret);
		get signal() {
			return this.#signal;
		}
		abort(reason) {
			abort(this.#signal, reason);
		}
	}
	make('AbortSignal', AbortSignal);
	make('AbortController', AbortController);

	make('queueMicrotask', function queueMicrotask(callback) {
		if (typeof callback !== 'function')
			throw new TypeError('queueMicrotask() takes a function');
		host.enqueue(callback);
	});

	// ---- texts and bytes ----

	const bytesOf = source => {
		if (ArrayBuffer.isView(source))
			return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
		if (source instanceof ArrayBuffer || host.kind(source) === 'ArrayBuffer')
			return new Uint8Array(source);
		throw new TypeError('it takes an ArrayBuffer, a typed array or a DataView');
	};
	class TextEncoder {
		get encoding() {
			return 'utf-8';
		}
		encode(text = '') {
			return host.encode(`${text}`.toWellFormed());
		}
		encodeInto(text, to) {
			let read = 0,
				written = 0;
			for (const c of `${text}`) {
				const bytes = this.encode(c);
				if (written + bytes.length > to.length) break;
				to.set(bytes, written);
				written += bytes.length;
				read += c.length;
			}
			return { read, written };
		}
	}
	const labels = {
		'utf-8': 'utf-8',
		utf8: 'utf-8',
		'unicode-1-1-utf-8': 'utf-8',
		'utf-16le': 'utf-16le',
		'utf-16': 'utf-16le',
		'ucs-2': 'utf-16le',
		'iso-8859-1': 'windows-1252',
		latin1: 'windows-1252',
		l1: 'windows-1252',
		'us-ascii': 'windows-1252',
		ascii: 'windows-1252',
		'windows-1252': 'windows-1252',
		cp1252: 'windows-1252',
	};
	const high =
		'\u20ac\x81\u201a\u0192\u201e\u2026\u2020\u2021\u02c6\u2030\u0160\u2039\u0152\x8d\u017d\x8f\x90\u2018\u2019\u201c\u201d\u2022\u2013\u2014\u02dc\u2122\u0161\u203a\u0153\x9d\u017e\u0178';
	const chars = (n, at) => {
		let out = '';
		for (let i = 0; i < n; i += 8192) {
			const codes = [];
			for (let j = i; j < n && j < i + 8192; j++) codes.push(at(j));
			out += String.fromCharCode.apply(null, codes);
		}
		return out;
	};
	// How many bytes at the end begin a character that is not whole.
	const unfinished = bytes => {
		for (let back = 1; back <= 3 && back <= bytes.length; back++) {
			const b = bytes[bytes.length - back];
			if (b >= 0x80 && b < 0xc0) continue;
			return b >= 0xc2 && b < 0xf5 && back < (b < 0xe0 ? 2 : b < 0xf0 ? 3 : 4) ? back : 0;
		}
		return 0;
	};
	class TextDecoder {
		#encoding;
		#fatal;
		#keep;
		#held = new Uint8Array(0);
		#begun = false;
		constructor(label = 'utf-8', { fatal = false, ignoreBOM = false } = {}) {
			this.#encoding = labels[`${label}`.trim().toLowerCase()];
			if (!this.#encoding)
				throw new RangeError(
					`TextDecoder has no encoding "${label}" here: it has utf-8, utf-16le and latin1`,
				);
			this.#fatal = !!fatal;
			this.#keep = !!ignoreBOM;
		}
		get encoding() {
			return this.#encoding;
		}
		get fatal() {
			return this.#fatal;
		}
		get ignoreBOM() {
			return this.#keep;
		}
		decode(source = new Uint8Array(0), { stream = false } = {}) {
			let bytes = bytesOf(source),
				text;
			if (this.#held.length) {
				const all = new Uint8Array(this.#held.length + bytes.length);
				all.set(this.#held);
				all.set(bytes, this.#held.length);
				bytes = all;
			}
			this.#held = new Uint8Array(0);
			const left = !stream
				? 0
				: this.#encoding === 'utf-8'
					? unfinished(bytes)
					: this.#encoding === 'utf-16le'
						? bytes.length % 2
						: 0;
			if (left) {
				this.#held = bytes.slice(bytes.length - left);
				bytes = bytes.subarray(0, bytes.length - left);
			}
			if (this.#encoding === 'utf-8') {
				text = host.decode(bytes, this.#fatal);
			} else if (this.#encoding === 'utf-16le') {
				text = chars(bytes.length >> 1, i => bytes[2 * i] | (bytes[2 * i + 1] << 8));
				if (bytes.length % 2) text += '\ufffd';
				if (this.#fatal && (bytes.length % 2 || !text.isWellFormed())) text = undefined;
				else text = text.toWellFormed();
			} else {
				text = chars(bytes.length, i =>
					bytes[i] >= 0x80 && bytes[i] < 0xa0
						? high.charCodeAt(bytes[i] - 0x80)
						: bytes[i],
				);
			}
			if (text === undefined)
				throw new TypeError(
					`The encoded data was not valid for encoding ${this.#encoding}`,
				);
			if (
				!this.#begun &&
				!this.#keep &&
				text[0] === '\ufeff' &&
				this.#encoding !== 'windows-1252'
			)
				text = text.slice(1);
			this.#begun = stream && (this.#begun || text.length > 0);
			return text;
		}
	}
	make('TextEncoder', TextEncoder);
	make('TextDecoder', TextDecoder);

	const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
	make('btoa', function btoa(data) {
		const text = `${data}`;
		let out = '';
		for (let i = 0; i < text.length; i += 3) {
			const [a, b, c] = [text.charCodeAt(i), text.charCodeAt(i + 1), text.charCodeAt(i + 2)];
			if (a > 255 || b > 255 || c > 255)
				throw new DOMException(
					'btoa() takes characters up to U+00FF: encode other text first, with new TextEncoder().encode(text).toBase64()',
					'InvalidCharacterError',
				);
			out +=
				digits[a >> 2] +
				digits[((a & 3) << 4) | (b >> 4)] +
				(i + 1 < text.length ? digits[((b & 15) << 2) | (c >> 6)] : '=') +
				(i + 2 < text.length ? digits[c & 63] : '=');
		}
		return out;
	});
	make('atob', function atob(data) {
		let text = `${data}`.replace(/[\t\n\f\r ]/g, '');
		if (text.length % 4 === 0) text = text.replace(/==?$/, '');
		if (text.length % 4 === 1 || /[^A-Za-z0-9+/]/.test(text))
			throw new DOMException(
				'The string to be decoded is not correctly encoded.',
				'InvalidCharacterError',
			);
		let out = '',
			bits = 0,
			n = 0;
		for (let i = 0; i < text.length; i++) {
			bits = ((bits << 6) | digits.indexOf(text[i])) & 0xfff;
			n += 6;
			if (n >= 8) out += String.fromCharCode((bits >> (n -= 8)) & 255);
		}
		return out;
	});
	const binary = bytes => chars(bytes.length, i => bytes[i]);
	add(Uint8Array.prototype, {
		toBase64({ alphabet = 'base64', omitPadding = false } = {}) {
			let text = btoa(binary(this));
			if (alphabet === 'base64url') text = text.replaceAll('+', '-').replaceAll('/', '_');
			return omitPadding ? text.replace(/=+$/, '') : text;
		},
		toHex() {
			return Array.from(this, b => b.toString(16).padStart(2, '0')).join('');
		},
	});
	add(Uint8Array, {
		fromBase64(text, { alphabet = 'base64' } = {}) {
			if (alphabet === 'base64url') text = text.replaceAll('-', '+').replaceAll('_', '/');
			return Uint8Array.from(atob(text), c => c.charCodeAt(0));
		},
		fromHex(text) {
			if (text.length % 2 || /[^0-9a-fA-F]/.test(text))
				throw new SyntaxError('Uint8Array.fromHex() takes pairs of hexadecimal digits');
			return Uint8Array.from(text.match(/../g) ?? [], b => parseInt(b, 16));
		},
	});

	// ---- crypto, performance ----

	const algorithms = { 'SHA-1': 1, 'SHA-256': 256, 'SHA-384': 384, 'SHA-512': 512 };
	const absent = (what, has) =>
		new Proxy(
			{},
			{
				get: (_, name) =>
					has[name] ??
					(typeof name === 'string' && name !== 'then' && name !== 'toJSON'
						? () => {
								throw new DOMException(
									`${what}.${name}() is not here: it has ${Object.keys(has).join(', ')}`,
									'NotSupportedError',
								);
							}
						: undefined),
				ownKeys: () => Reflect.ownKeys(has),
				getOwnPropertyDescriptor: (_, name) =>
					name in has
						? {
								value: has[name],
								configurable: true,
								enumerable: true,
							}
						: undefined,
			},
		);
	const subtle = absent('crypto.subtle', {
		async digest(algorithm, data) {
			const name = `${algorithm?.name ?? algorithm}`.toUpperCase();
			if (!Object.hasOwn(algorithms, name))
				throw new DOMException(
					`crypto.subtle.digest() has no ${name} here: it has ${Object.keys(algorithms).join(', ')}`,
					'NotSupportedError',
				);
			return host.digest(algorithms[name], bytesOf(data));
		},
	});
	make('crypto', {
		subtle,
		getRandomValues(to) {
			if (
				!ArrayBuffer.isView(to) ||
				to instanceof DataView ||
				/^Float/.test(to.constructor.name)
			)
				throw new DOMException(
					'crypto.getRandomValues() takes an array of integers, such as a Uint8Array',
					'TypeMismatchError',
				);
			if (to.byteLength > 65536)
				throw new DOMException(
					'crypto.getRandomValues() takes 65,536 bytes at most',
					'QuotaExceededError',
				);
			host.random(bytesOf(to));
			return to;
		},
		randomUUID() {
			const b = host.random(new Uint8Array(16));
			b[6] = (b[6] & 15) | 64;
			b[8] = (b[8] & 63) | 128;
			return b.toHex().replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
		},
	});
	make('performance', {
		now: () => host.now(),
		get timeOrigin() {
			return Date.now() - host.now();
		},
		toJSON() {
			return { timeOrigin: this.timeOrigin };
		},
	});

	// ---- structuredClone ----

	make('structuredClone', function structuredClone(value, { transfer = [] } = {}) {
		const seen = new Map();
		const refuse = v => {
			throw new DOMException(
				`${typeof v === 'symbol' ? v.toString() : typeof v === 'function' ? v.name || 'a function' : host.inspect(v, { depth: 0 })} could not be cloned.`,
				'DataCloneError',
			);
		};
		const keep = (v, made) => (seen.set(v, made), made);
		const members = (v, made) => {
			for (const key of Object.keys(v)) made[key] = copy(v[key]);
			return made;
		};
		const copy = v => {
			if (typeof v === 'function' || typeof v === 'symbol') refuse(v);
			if (typeof v !== 'object' || v === null) return v;
			v = host.settled(v);
			if (seen.has(v)) return seen.get(v);
			switch (host.kind(v)) {
				case 'Date':
					return keep(v, new Date(v.getTime()));
				case 'RegExp':
					return keep(v, new RegExp(v.source, v.flags));
				case 'Boxed':
					return keep(v, Object(v.valueOf()));
				case 'ArrayBuffer':
					return keep(v, v.slice(0));
				case 'TypedArray': {
					const { buffer, byteOffset, length } = v,
						by = globalThis[v[Symbol.toStringTag]];
					return keep(v, new by(copy(buffer), byteOffset, length));
				}
				case 'DataView':
					return keep(v, new DataView(copy(v.buffer), v.byteOffset, v.byteLength));
				case 'Map': {
					const made = keep(v, new Map());
					for (const [k, one] of [...v]) made.set(copy(k), copy(one));
					return made;
				}
				case 'Set': {
					const made = keep(v, new Set());
					for (const one of [...v]) made.add(copy(one));
					return made;
				}
				case 'Error': {
					const by =
						{
							EvalError,
							RangeError,
							ReferenceError,
							SyntaxError,
							TypeError,
							URIError,
						}[v.name] ?? Error;
					const made = keep(v, new by(v.message));
					Object.defineProperty(made, 'stack', {
						value: v.stack,
						configurable: true,
						writable: true,
					});
					if ('cause' in v)
						Object.defineProperty(made, 'cause', {
							value: copy(v.cause),
							configurable: true,
							writable: true,
						});
					return made;
				}
				case 'Array':
					return members(v, keep(v, new Array(v.length)));
				case 'Object':
					return members(v, keep(v, {}));
				default:
					return refuse(v);
			}
		};
		const made = copy(value);
		if (transfer.length && host.detach) transfer.forEach(host.detach);
		return made;
	});

	// ---- of the language ----

	const setOf = other => {
		if (typeof other !== 'object' || other === null || Number.isNaN(Number(other.size)))
			throw new TypeError('it takes a Set, or an object with size, has() and keys()');
		return {
			size: Number(other.size),
			has: v => !!other.has(v),
			*keys() {
				const it = other.keys();
				for (let n; !(n = it.next()).done;) yield n.value;
			},
		};
	};
	add(Set.prototype, {
		union(other) {
			const o = setOf(other);
			return new Set([...this, ...o.keys()]);
		},
		intersection(other) {
			const o = setOf(other);
			return new Set(
				this.size <= o.size
					? [...this].filter(o.has)
					: [...o.keys()].filter(v => this.has(v)),
			);
		},
		difference(other) {
			const o = setOf(other);
			return new Set([...this].filter(v => !o.has(v)));
		},
		symmetricDifference(other) {
			const o = setOf(other),
				made = new Set(this);
			for (const v of o.keys()) this.has(v) ? made.delete(v) : made.add(v);
			return made;
		},
		isSubsetOf(other) {
			const o = setOf(other);
			return this.size <= o.size && [...this].every(o.has);
		},
		isSupersetOf(other) {
			const o = setOf(other);
			return [...o.keys()].every(v => this.has(v));
		},
		isDisjointFrom(other) {
			const o = setOf(other);
			return ![...this].some(o.has);
		},
	});
	add(Array, {
		async fromAsync(items, map, self) {
			const made = typeof this === 'function' ? new this() : [];
			let i = 0;
			if (items[Symbol.asyncIterator] || items[Symbol.iterator])
				for await (const v of items) {
					made[i] = map ? await map.call(self, v, i) : v;
					i++;
				}
			else
				for (; i < items.length; i++) {
					const v = await items[i];
					made[i] = map ? await map.call(self, v, i) : v;
				}
			made.length = i;
			return made;
		},
	});
	add(Promise, {
		try(f, ...args) {
			return new this(resolve => resolve(f(...args)));
		},
	});
	add(RegExp, {
		escape(text) {
			return text
				.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
				.replace(
					/^[0-9a-zA-Z]|[,\-=<>#&!%:;@~'`"\s]/g,
					c => `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`,
				);
		},
	});
	add(Error, {
		isError: v => host.kind(v) === 'Error',
		captureStackTrace(to) {
			Object.defineProperty(to, 'stack', {
				value: new Error().stack,
				configurable: true,
				writable: true,
			});
		},
	});
	add(Math, {
		sumPrecise: all => {
			let sum = 0,
				left = 0;
			for (const n of all) {
				const t = sum + n;
				left += Math.abs(sum) >= Math.abs(n) ? sum - t + n : n - t + sum;
				sum = t;
			}
			return sum + left;
		},
	});
	// Iterators: map(), filter() and the like give an iterator.
	const iterators = Object.getPrototypeOf(Object.getPrototypeOf([][Symbol.iterator]()));
	const count = n => {
		n = Math.trunc(Number(n));
		if (!(n >= 0)) throw new RangeError('it takes a number of 0 or more');
		return n;
	};
	add(iterators, {
		*map(f) {
			let i = 0;
			for (const v of this) yield f(v, i++);
		},
		*filter(f) {
			let i = 0;
			for (const v of this) if (f(v, i++)) yield v;
		},
		*flatMap(f) {
			let i = 0;
			for (const v of this) yield* f(v, i++);
		},
		take(n) {
			n = count(n);
			const all = this;
			return (function* () {
				if (n > 0)
					for (const v of all) {
						yield v;
						if (--n <= 0) return;
					}
			})();
		},
		drop(n) {
			n = count(n);
			const all = this;
			return (function* () {
				for (const v of all)
					if (n > 0) n--;
					else yield v;
			})();
		},
		toArray() {
			return [...this];
		},
		forEach(f) {
			let i = 0;
			for (const v of this) f(v, i++);
		},
		reduce(...args) {
			return [...this].reduce(...args);
		},
		some(f) {
			let i = 0;
			for (const v of this) if (f(v, i++)) return true;
			return false;
		},
		every(f) {
			let i = 0;
			for (const v of this) if (!f(v, i++)) return false;
			return true;
		},
		find(f) {
			let i = 0;
			for (const v of this) if (f(v, i++)) return v;
		},
	});
	if (typeof Iterator === 'undefined') {
		make('Iterator', function Iterator() {
			throw new TypeError('Iterator is abstract');
		});
		Iterator.prototype = iterators;
		Iterator.from = all =>
			all[Symbol.iterator]?.() ??
			(function* () {
				for (let n; !(n = all.next()).done;) yield n.value;
			})();
	}

	// ---- what is refused ----

	make('fetch', async function fetch() {
		throw new TypeError(
			'fetch failed: code has no network. Call a function of a module instead (list_modules and search_modules show which there are), or run a program in a sandbox that may reach the host',
		);
	});

	// ---- values that JSON has no form for ----

	host.plain = (v, is) => {
		if (is === 'Set') return [...v];
		if (is === 'Map')
			return [...v.keys()].every(k => typeof k === 'string' || typeof k === 'number')
				? Object.fromEntries(v)
				: [...v];
		if (is === 'RegExp') return `${v}`;
		if (is === 'DataView') return bytesOf(v).toBase64();
		const { name, message, cause } = v;
		return { name, message, ...(cause === undefined ? {} : { cause }), ...v };
	};
};
