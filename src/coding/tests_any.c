/*
 * Lines that test programs print without being asked: the Test Anything Protocol with subtests
 * (indented by four, as node --test and others write it) and YAML blocks; Automake's "FAIL: name";
 * the "[  FAILED  ] name" of GoogleTest and cmocka. What is around them is not looked at.
 */
#include "coding/internal.h"

/* ---- TAP ----------------------------------------------------------------------------------- */

/* Ends the point whose YAML may have followed. */
static void tap_close(struct test_parser *p)
{
	struct test_id id = { name_str(&p->tap.file), name_str(&p->name) };
	struct test_failure *f;

	if (!p->tap.open)
		return;
	p->tap.open = false;
	p->inside = false;
	if (p->tap.skip) {
		p->report.skipped++;
	} else if (p->tap.ok) {
		/* A group is no test of its own. */
		p->report.passed += !p->tap.children;
	} else if (!p->tap.group) {
		/* The test of a file has its path for a name. */
		if (str_eq(test_parser_relative(p, id.name), id.scope))
			id.name = STR_LIT("");
		f = test_parser_fail(p, id, note_str(&p->note));
		if (p->tap.line)
			test_failure_place(p, f, id.scope, p->tap.line);
	}
}

/* "adds \# two # SKIP why": the name, unescaped, behind the groups that hold it. */
static void tap_name(struct test_parser *p, struct name *n, struct str s, unsigned depth)
{
	size_t room = sizeof(n->text);

	n->n = 0;
	for (unsigned d = 0; d < depth; d++) {
		struct str up = name_str(&p->tap.levels[d].name);

		if (up.n == 0 || n->n + up.n + 3 > room)
			continue;
		memcpy(n->text + n->n, up.p, up.n);
		memcpy(n->text + n->n + up.n, " > ", 3);
		n->n += up.n + 3;
	}
	if (n->n + s.n > room) {
		n->n = 0;
		return;
	}
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '\\' && i + 1 < s.n)
			i++;
		n->text[n->n++] = s.p[i];
	}
}

/* Where the directive begins: a " #" that is not escaped. */
static size_t tap_directive(struct str s)
{
	for (size_t i = 0; i + 1 < s.n; i++) {
		if (s.p[i] == '\\')
			i++;
		else if (s.p[i] == ' ' && s.p[i + 1] == '#')
			return i;
	}
	return s.n;
}

static bool is_script(struct str file)
{
	static const char *const ends[] = { ".js",  ".ts",  ".jsx", ".tsx", ".mjs",
					    ".mts", ".cjs", ".cts", ".vue" };

	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		if (str_ends(file, ends[i]))
			return true;
	}
	return false;
}

static bool tap_point(struct test_parser *p, struct str s, size_t indent)
{
	unsigned depth = (unsigned)(indent / 4), number;
	bool ok = !str_take(&s, "not ok");
	struct str directive;
	size_t cut;

	if ((ok && !str_take(&s, "ok")) || (s.n > 0 && s.p[0] != ' ') || depth >= TAP_DEPTH_MAX)
		return false;
	s = str_trim(s);
	if (!str_take_number(&s, &number) && s.n > 0 && !str_starts(s, "-"))
		return false; /* "ok then" is no point */
	tap_close(p);
	s = str_trim(s);
	str_take(&s, "- ");
	cut = tap_directive(s);
	directive = str_trim(str_from(s, cut + 2));
	tap_name(p, &p->name, str_upto(s, cut), depth);
	p->tap.open = true;
	p->tap.ok = ok ||
		    strncasecmp(directive.p, "todo", directive.n < 4 ? directive.n + 1 : 4) == 0;
	p->tap.skip = directive.n >= 4 && strncasecmp(directive.p, "skip", 4) == 0;
	p->tap.depth = depth;
	p->tap.children = depth + 1 < TAP_DEPTH_MAX && p->tap.levels[depth + 1].children;
	p->tap.group = false;
	p->tap.said = false;
	p->tap.line = 0;
	p->tap.file.n = 0;
	p->note.n = 0;
	p->report.seen = true;
	p->tap.levels[depth].children = true;
	for (unsigned d = depth + 1; d < TAP_DEPTH_MAX; d++)
		p->tap.levels[d].children = false;
	/* The test of a runner that names the file: "file > group > name". */
	cut = str_find(name_str(&p->name), " > ");
	if (depth == 0 && cut < p->name.n && is_script(str_upto(name_str(&p->name), cut))) {
		name_set(&p->tap.file, str_upto(name_str(&p->name), cut));
		p->name.n -= cut + 3;
		memmove(p->name.text, p->name.text + cut + 3, p->name.n);
	}
	return true;
}

static struct str unquoted(struct str s)
{
	if (s.n >= 2 && (s.p[0] == '\'' || s.p[0] == '"') && s.p[s.n - 1] == s.p[0])
		return (struct str){ s.p + 1, s.n - 2 };
	return s;
}

static void tap_place(struct test_parser *p, struct str value)
{
	struct str file;
	unsigned column;

	if (!place_parse(unquoted(value), &file, &p->tap.line, &column))
		return;
	if (!p->tap.file.n)
		name_set(&p->tap.file, test_parser_relative(p, file));
}

/* A line of a point's YAML block. */
static void tap_yaml(struct test_parser *p, struct str s, size_t indent)
{
	static const char *const said[] = { "error", "message", "expected", "actual", "operator" };
	size_t colon = str_find(s, ":");
	struct str key = str_upto(s, colon), value = str_trim(str_from(s, colon + 1));

	if (indent == p->tap.indent && colon < s.n) {
		p->tap.said = false;
		for (size_t i = 0; i < ARRAY_LEN(said); i++)
			p->tap.said |= str_is(key, said[i]);
		if (str_is(key, "location") || str_is(key, "at"))
			tap_place(p, value);
		else if (str_is(key, "failureType") && str_is(unquoted(value), "subtestsFailed"))
			p->tap.group = true;
		if (p->tap.said && (str_is(value, "|-") || str_is(value, "|") || !value.n))
			return;
		if (p->tap.said && str_is(key, "error"))
			s = unquoted(value);
	} else if (p->tap.said && str_is(key, "message")) {
		s = unquoted(value);
	}
	if (p->tap.said)
		note_line(&p->note, s);
}

/* True if it is a line of TAP. */
static bool tap_line(struct test_parser *p, struct str line)
{
	size_t indent = 0;
	struct str s;

	while (indent < line.n && line.p[indent] == ' ')
		indent++;
	s = str_from(line, indent);
	if (p->inside) {
		if (str_is(s, "...") && indent == p->tap.indent)
			tap_close(p);
		else
			tap_yaml(p, s, indent);
		return true;
	}
	if (p->tap.open && str_is(s, "---")) {
		p->inside = true;
		p->tap.indent = indent;
		return true;
	}
	if (str_take(&s, "# Subtest: ") && indent / 4 < TAP_DEPTH_MAX) {
		tap_close(p);
		tap_name(p, &p->tap.levels[indent / 4].name, s, 0);
		return true;
	}
	return indent % 4 == 0 && tap_point(p, s, indent);
}

/* ---- others -------------------------------------------------------------------------------- */

static void any_fail(struct test_parser *p, struct str name)
{
	/* GoogleTest adds a parameter and a time; its summary repeats names. */
	size_t cut = str_find(name, " (");
	struct str value = str_from(name, str_find(name, ", where "));

	if (value.n)
		cut = name.n - value.n;
	test_parser_fail(p, (struct test_id){ STR_LIT(""), str_trim(str_upto(name, cut)) },
			 STR_LIT(""));
}

static bool automake_line(struct test_parser *p, struct str s)
{
	struct str name = s;

	if (str_take(&name, "PASS: ") || str_take(&name, "XFAIL: "))
		p->report.passed++;
	else if (str_take(&name, "SKIP: "))
		p->report.skipped++;
	else if (str_take(&name, "FAIL: ") || str_take(&name, "XPASS: ") ||
		 str_take(&name, "ERROR: "))
		any_fail(p, name);
	else
		return false;
	p->report.seen = true;
	return true;
}

/* "[  FAILED  ] Suite.name (3 ms)"; the summary begins with "[  PASSED  ] 2 tests". */
static void bracket_line(struct test_parser *p, struct str s)
{
	size_t close = str_find(s, "] ");
	struct str word = str_trim(str_upto(str_from(s, 1), close - 1));
	struct str name = str_from(s, close + 2);

	if (close == s.n)
		return;
	if (str_is(word, "PASSED"))
		p->tap.summary = true;
	else if (str_starts(word, "===="))
		p->tap.summary = false;
	if (p->tap.summary)
		return;
	if (str_is(word, "OK"))
		p->report.passed++;
	else if (str_is(word, "SKIPPED"))
		p->report.skipped++;
	else if (str_is(word, "FAILED"))
		any_fail(p, name);
	else
		return;
	p->report.seen = true;
}

void tests_any_line(struct test_parser *p, unsigned stream, struct str line)
{
	if (tap_line(p, line))
		return;
	if (!automake_line(p, line) && str_starts(line, "["))
		bracket_line(p, line);
}

void tests_any_end(struct test_parser *p)
{
	tap_close(p);
}
