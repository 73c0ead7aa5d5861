// Forms of a program beside those that the parser knows: imports before a script whose value is its
// last statement, `return` outside of functions, and TypeScript. Lines stay where they are, so errors
// name the lines of the author.
host => {
	'use strict';
	const BLANK = /(?:\s|\/\/[^\n]*|\/\*[^]*?\*\/|(['"])use strict\1;?)*/y;
	const IMPORT =
		/import\s*(?:(?:([\w$]+)\s*(?:,\s*)?)?(?:\*\s*as\s+([\w$]+)|\{([^}]*)\})?\s*from\s*)?(?:"([^"\n]+)"|'([^'\n]+)')(?:[ \t]*with\s*\{[^}]*\})?[ \t]*;?/y;
	const COMMENTS = /\/\*[^]*?\*\/|\/\/[^\n]*/g;
	const NAMES = /^([\w$]+)(?:\s+as\s+([\w$]+))?$/;

	// The imports before all else, as statements that a script and a function can have. undefined: it
	// is not understood.
	const withoutImports = source => {
		let out = '',
			at = 0;
		for (;;) {
			BLANK.lastIndex = at;
			const blank = BLANK.exec(source)[0];
			out += blank;
			at += blank.length;
			IMPORT.lastIndex = at;
			const m = IMPORT.exec(source);
			if (!m) return out + source.slice(at);
			const [all, byDefault, space, names] = m,
				from = JSON.stringify(m[4] ?? m[5]);
			const parts = byDefault ? [`default: ${byDefault}`] : [];
			for (const one of (names ?? '')
				.replace(COMMENTS, '')
				.split(',')
				.map(s => s.trim())
				.filter(Boolean)) {
				const n = NAMES.exec(one);
				if (!n) return undefined;
				const missing = JSON.stringify(
					`Could not find export '${n[1]}' in module '${m[4] ?? m[5]}'`,
				);
				parts.push(
					`${n[1]}: ${n[2] ?? n[1]} = (() => { throw new SyntaxError(${missing}); })()`,
				);
			}
			out +=
				space && byDefault
					? `const ${space} = await import(${from}), ${byDefault} = ${space}.default;`
					: space
						? `const ${space} = await import(${from});`
						: parts.length
							? `const { ${parts.join(', ')} } = await import(${from});`
							: `await import(${from});`;
			out += '\n'.repeat(all.split('\n').length - 1);
			at += all.length;
		}
	};

	// The names that a module exports where it says so plainly: the engine tells them only of a module
	// that is linked, and linking wants the true exports of all that it imports.
	const exportsOf = source => {
		const names = new Set();
		const plain = source.replace(
			/\/\*[^]*?\*\/|\/\/.*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\[^]|[^`\\])*`/g,
			' ',
		);
		for (const m of plain.matchAll(
			/\bexport\s+(?:(default)\b|(?:async\s+)?function\s*\*?\s*([\w$]+)|class\s+([\w$]+)|(?:const|let|var)\s+([\w$]+)|\{([^}]*)\}|(\*))/g,
		)) {
			if (m[6] !== undefined) names.add('*');
			else if (m[5] === undefined) names.add(m[1] ?? m[2] ?? m[3] ?? m[4]);
			else
				for (const one of m[5].split(',')) {
					const name = /([\w$]+)\s*$/.exec(one)?.[1];
					if (name && !/\bas\s*$/.test(one)) names.add(name);
				}
		}
		return [...names];
	};
	host.exports = source => exportsOf(source).filter(n => n !== '*');

	const TYPED = [
		/^[ \t]*(export[ \t]+)?(interface|enum|type|declare|abstract[ \t]+class|namespace)[ \t]+[\w$]/m,
		/[\w$)\]]\??[ \t]*:[ \t]*(string|number|boolean|void|unknown|any|never|object|[A-Z]\w{0,40})(\[\]|<[^=;\n]{0,80}>)?[ \t]*[=,;){]/,
		/[ \t]as[ \t]+(const|[A-Z\w]+)|\bsatisfies[ \t]|\bimport[ \t]+type\b/,
	];
	const looksTyped = source => TYPED.some(form => form.test(source));

	const NAMESPACE = /^[ \t]*(?:export[ \t]+)?(?:namespace|module)[ \t]+[\w$.]+[ \t]*\{/m;
	// As JavaScript; an Error where it is no TypeScript.
	const plain = source => {
		try {
			if (NAMESPACE.test(source))
				throw new Error(
					`a namespace with values is not supported: use a module or an object (1:1)`,
				);
			return host.typescript()(source);
		} catch (e) {
			const m = /^(?:Error transforming [^:]*: )?([^]*?) \((\d+):(\d+)\)$/.exec(e.message);
			if (!m) return e;
			const line = NAMESPACE.test(source)
				? source.slice(0, NAMESPACE.exec(source).index).split('\n').length
				: Number(m[2]);
			return Object.assign(new SyntaxError(m[1]), {
				lineNumber: line,
				columnNumber: Number(m[3]),
			});
		}
	};

	// Where a place of a changed text is in the source: lines are the same.
	const placeIn = (source, text) => {
		const before = source.split('\n'),
			after = text.split('\n');
		return (line, column) => {
			const a = before[line - 1] ?? '',
				b = after[line - 1] ?? '';
			const both = Math.min(a.length, b.length);
			let front = 0,
				back = 0;
			while (front < both && a[front] === b[front]) front++;
			while (back < both - front && a.at(-1 - back) === b.at(-1 - back)) back++;
			if (column > b.length - back) column += a.length - b.length;
			else if (column > front + 1) column = front + 1;
			return [line, Math.max(1, column)];
		};
	};

	// The same, behind what `outer` tells of the text before.
	const through = (outer, source, text) => {
		let place;
		return (line, column) => outer(...(place ??= placeIn(source, text))(line, column));
	};

	// A block of Markdown, whose marks some leave around code.
	const FENCED = /^\s*```[\w-]*[ \t]*\n([^]*?)(?:\n[ \t]*```)?\s*$/;

	// Compiles the first form that there is. compile(text, isModule) is undefined, or its error.
	// What it gives says how places of the compiled text are told; an error is thrown.
	host.forms = (source, compile) => {
		let worst,
			place = host.same;
		const failed = (e, from) => {
			const [line, column] = from(e.lineNumber ?? 0, e.columnNumber ?? 0);
			if (!worst || line > worst.line || (line === worst.line && column >= worst.column))
				worst = { e, line, column };
			return false;
		};
		const goes = (text, isModule, from) => {
			const e = compile(text, isModule);
			return e === undefined ? ((place = from), true) : failed(e, from);
		};
		const javascript = (text, from) => {
			const hasExports = exportsOf(text).length > 0;
			const isModule = goes(text, true, from);
			const script = hasExports ? undefined : withoutImports(text);
			if (script !== undefined) {
				const wrapped = `(async () => {${script}\n})()`;
				if (goes(script, false, through(from, text, script))) return true;
				if (goes(wrapped, false, through(from, text, wrapped))) return true;
			}
			// Without exports, only where it can't be said otherwise.
			return isModule && (hasExports || goes(text, true, from));
		};
		const fenced = FENCED.exec(source);
		if (fenced) source = source.slice(0, source.indexOf('`')) + '\n' + fenced[1];
		if (javascript(source, place)) return place;
		const text = plain(source);
		if (typeof text === 'string') {
			if (text !== source && javascript(text, placeIn(source, text))) return place;
		} else if (looksTyped(source)) {
			throw text;
		}
		throw Object.assign(worst.e, { lineNumber: worst.line, columnNumber: worst.column });
	};
	// Of a module: its text as JavaScript; the error of `compile` where it is none.
	host.module = (source, compile) => {
		const e = compile(source, true);
		if (e === undefined) return source;
		const text = plain(source);
		if (typeof text !== 'string' && looksTyped(source)) throw text;
		if (typeof text !== 'string' || text === source || compile(text, true) !== undefined)
			throw e;
		return text;
	};
	host.same = (line, column) => [line, column];
};
