/*
 * What a program in a sandbox prints instead of a test's or linter's report: the first byte picks
 * the reader. However it is cut into pieces, the report is the same and within its bounds.
 */
#include <string.h>

#include "coding/command.h"
#include "coding/findings.h"
#include "coding/tags.h"
#include "fuzz.h"
#include "json/document/json.h"

enum { TAG_BYTES = 64 << 10 };

static struct str piece_of(struct str *s, size_t piece)
{
	struct str p = { s->p, s->n < piece ? s->n : piece };

	*s = (struct str){ s->p + p.n, s->n - p.n };
	return p;
}

static struct test_parser *read_tests(enum test_format format, struct str text, size_t piece)
{
	struct err e;
	struct test_parser *p = test_parser_new(format, STR_LIT("/workspace"), &e);

	MUST(p);
	while (text.n > 0)
		test_parser_feed(p, 0, piece_of(&text, piece));
	return p;
}

static void check_tests(enum test_format format, struct str text)
{
	struct test_parser *p = read_tests(format, text, text.n + 1);
	struct test_parser *q = read_tests(format, text, 3);
	const struct test_report *r = test_parser_end(p), *s = test_parser_end(q);
	struct err e;

	MUST(r->n <= TEST_FAILURES_MAX && r->n <= r->failed);
	MUST(r->n == s->n && r->failed == s->failed && r->passed == s->passed);
	MUST(test_report_verdict(r, 0) != TESTS_FAILED || r->failed > 0);
	MUST(test_report_verdict(r, 1) == TESTS_FAILED ||
	     test_report_verdict(r, 1) == TESTS_UNPARSED);
	for (size_t i = 0; i < r->n; i++) {
		const struct test_failure *f = &r->failures[i];
		autobuf struct buf b = BUF_INIT(TEST_ID_MAX + 2);
		struct command c;
		struct project go = { .kind = PROJECT_GO }, node = { .kind = PROJECT_NODE };

		MUST(test_id_eq(f->id, s->failures[i].id) && f->message.n <= TEST_MESSAGE_MAX);
		MUST(test_id_text(f->id, &b, &e) == 0);
		command_init(&c);
		MUST(command_rerun(i & 1 ? &go : &node, NULL, &f->id, 1, &c, &e) == 0);
		command_fini(&c);
	}
	test_parser_free(p);
	test_parser_free(q);
}

static struct findings_parser *read_findings(struct str text, size_t piece)
{
	struct err e;
	struct findings_parser *p = findings_parser_new(STR_LIT("/workspace"), &e);

	MUST(p);
	while (text.n > 0)
		findings_parser_feed(p, 0, piece_of(&text, piece));
	return p;
}

static void check_findings(struct str text)
{
	struct findings_parser *p = read_findings(text, text.n + 1);
	struct findings_parser *q = read_findings(text, 3);
	const struct findings *f = findings_parser_end(p), *g = findings_parser_end(q);

	MUST(f->n <= FINDINGS_MAX && f->n <= f->errors + f->warnings);
	MUST(f->n == g->n && f->errors == g->errors && f->lost == g->lost);
	MUST(findings_verdict(f, 1) != FINDINGS_CLEAN);
	for (size_t i = 0; i < f->n; i++)
		MUST(f->p[i].text.n <= FINDING_TEXT_MAX);
	findings_parser_free(p);
	findings_parser_free(q);
}

static void check_projects(struct str names)
{
	static struct projects all;
	static struct package package;
	struct err e;
	struct json_doc *d = json_parse(names, NULL, &e);

	package_read(json_root(d), &package);
	projects_find(names, &all);
	MUST(all.n <= PROJECTS_MAX);
	for (size_t i = 0; i < all.n; i++) {
		const struct project *p = projects_choose(
			&all, str_of(project_kind_names[all.p[i].kind]), str_of(all.p[i].dir), &e);
		struct command c;

		MUST(p == &all.p[i]);
		command_init(&c);
		if (command_for(p, d ? &package : NULL, TASK_TEST, &c, &e) == 0)
			MUST(c.line.n > 0);
		command_fini(&c);
	}
	json_free(d);
}

static void check_tag(struct str line)
{
	struct buf room = BUF_INIT(TAG_BYTES);
	struct tag t;

	if (tag_read(line, &room, &t))
		MUST(t.line > 0 && t.name.n + t.path.n + t.text.n + t.kind.n <= line.n);
	buf_fini(&room);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const char formats[TEST_FORMATS + 1] = "gcpjmta";
	struct str text = { (const char *)data + 1, n - 1 };
	const char *at = n ? memchr(formats, data[0], TEST_FORMATS) : NULL;

	if (at)
		check_tests((enum test_format)(at - formats), text);
	else if (n > 0 && data[0] == 'f')
		check_findings(text);
	else if (n > 0 && data[0] == 'd')
		check_projects(text);
	else if (n > 0 && data[0] == 'y')
		check_tag(text);
	return 0;
}
