/*
 * go test -json: events of tests that run beside each other, each with its package and test. What
 * does not build is told in plain lines: "# package" with the compiler's words, and
 * "FAIL package [build failed]"; since Go 1.24 in events, too.
 */
#include "coding/internal.h"
#include "json/document/json.h"

static struct go_open *go_find(struct test_parser *p, struct str package, struct str test)
{
	for (size_t i = p->go.n; i-- > 0;) {
		struct go_open *o = p->go.open[i];

		if (str_eq(name_str(&o->test), test) && str_eq(name_str(&o->package), package))
			return o;
	}
	return NULL;
}

static struct go_open *go_open(struct test_parser *p, struct str package, struct str test)
{
	struct go_open *o = go_find(p, package, test);

	if (o || p->go.n == GO_OPEN_MAX || package.n > TEST_ID_MAX || test.n > TEST_ID_MAX)
		return o;
	o = calloc(1, sizeof(*o));
	if (!o)
		return NULL;
	name_set(&o->package, package);
	name_set(&o->test, test);
	p->go.open[p->go.n++] = o;
	return o;
}

static void go_close(struct test_parser *p, struct go_open *o)
{
	for (size_t i = 0; o && i < p->go.n; i++) {
		if (p->go.open[i] != o)
			continue;
		p->go.open[i] = p->go.open[--p->go.n];
		free(o);
		return;
	}
}

/* "TestA/sub" is in "TestA". */
static struct go_open *go_parent(struct test_parser *p, struct str package, struct str test)
{
	const char *slash = test.n ? memrchr(test.p, '/', test.n) : NULL;

	return slash ? go_find(p, package, str_upto(test, (size_t)(slash - test.p))) : NULL;
}

/* The runner's own lines are no message. */
static bool go_frames(struct str line)
{
	struct str s = str_trim(line);

	return str_starts(s, "=== ") || str_starts(s, "--- ") || str_starts(s, "FAIL") ||
	       str_is(s, "PASS") || str_starts(s, "ok  ");
}

/* "    a_test.go:9: text" */
static void go_place(struct test_parser *p, struct test_failure *f)
{
	struct str rest = f ? f->message : STR_NONE;

	while (rest.n > 0) {
		size_t n = str_find(rest, "\n");
		struct str line = str_trim(str_upto(rest, n)), file;
		unsigned at, column;

		if (place_parse(line, &file, &at, &column) && str_ends(file, ".go") &&
		    str_find(file, "/src/testing/") == file.n &&
		    str_find(file, "/src/runtime/") == file.n) {
			test_failure_place(p, f, file, at);
			return;
		}
		rest = str_from(rest, n + 1);
	}
}

static void go_fail(struct test_parser *p, struct str package, struct str test)
{
	struct go_open *o = go_find(p, package, test), *up = go_parent(p, package, test);
	struct go_open *whole = test.n ? go_open(p, package, STR_LIT("")) : NULL;
	struct str message = o ? note_str(&o->note) : STR_LIT("");

	if (whole)
		whole->child_failed = true;
	if (up)
		up->child_failed = true;
	/* A group that fails for its children is no failure of its own. */
	if (!o || !o->child_failed)
		go_place(p, test_parser_fail(p, (struct test_id){ package, test }, message));
	go_close(p, o);
}

static void go_output(struct test_parser *p, struct str package, struct str test, struct str text)
{
	struct go_open *o = go_open(p, package, test);

	if (text.n > 0 && text.p[text.n - 1] == '\n')
		text.n--;
	if (o && !go_frames(text))
		note_line(&o->note, text);
}

static void go_event(struct test_parser *p, const struct json_val *v)
{
	struct str action = json_str(json_get(v, "Action"));
	struct str package = json_str(json_get(v, "Package")), test = json_str(json_get(v, "Test"));
	struct str of = json_str(json_get(v, "ImportPath")), text = json_str(json_get(v, "Output"));

	p->report.seen = true;
	if (str_is(action, "output")) {
		go_output(p, package, test, text);
	} else if (str_is(action, "build-output")) {
		/* "package [package.test]" */
		go_output(p, str_upto(of, str_find(of, " ")), STR_LIT(""), text);
	} else if (str_is(action, "run")) {
		struct go_open *up = go_parent(p, package, test);

		if (up)
			up->children = true;
		go_open(p, package, test);
	} else if (str_is(action, "fail")) {
		go_fail(p, package, test);
	} else if (str_is(action, "pass") || str_is(action, "skip")) {
		struct go_open *o = go_find(p, package, test);

		if (test.n > 0 && str_is(action, "skip"))
			p->report.skipped++;
		else if (test.n > 0 && !(o && o->children))
			p->report.passed++;
		go_close(p, o);
	}
}

static void go_plain(struct test_parser *p, struct str line)
{
	if (str_take(&line, "# ")) {
		name_set(&p->scope, str_upto(line, str_find(line, " ")));
	} else if (str_take(&line, "FAIL\t")) {
		size_t n = 0;

		while (n < line.n && line.p[n] != ' ' && line.p[n] != '\t')
			n++;
		go_fail(p, str_upto(line, n), STR_LIT(""));
	} else if (p->scope.n) {
		go_output(p, name_str(&p->scope), STR_LIT(""), line);
	}
}

void tests_go_line(struct test_parser *p, unsigned stream, struct str line)
{
	AUTO(json_free) struct json_doc *d = NULL;
	struct err e;

	if (line.n == 0)
		return;
	if (line.p[0] != '{') {
		go_plain(p, line);
		return;
	}
	d = json_parse(line, NULL, &e);
	if (d && json_get(json_root(d), "Action"))
		go_event(p, json_root(d));
	else if (!d)
		p->report.lost++;
}

/* What a compiler said, where it came behind the plain line of its package. */
void tests_go_end(struct test_parser *p)
{
	for (size_t i = 0; i < p->go.n; i++) {
		struct go_open *o = p->go.open[i];
		struct test_id id = { name_str(&o->package), name_str(&o->test) };
		struct test_failure *f = test_parser_find(p, id);

		if (f && !f->message.n) {
			test_failure_say(p, f, note_str(&o->note));
			go_place(p, f);
		}
	}
}

void tests_go_free(struct test_parser *p)
{
	for (size_t i = 0; i < p->go.n; i++)
		free(p->go.open[i]);
}
