/*
 * What a server says of its tools. The first byte picks the reader: cleaning (t, l, c, r) or
 * scanning (s) a text, pinning (p) two tools, of which the second stands behind a NUL, or
 * declaring (d) a tool with this schema.
 */
#include <string.h>

#include "base/buf.h"
#include "fuzz.h"
#include "json/document/utf8.h"
#include "json/document/write.h"
#include "modules/code/brief.h"
#include "modules/code/clean.h"
#include "modules/code/declare.h"
#include "modules/code/pin.h"
#include "modules/code/scan.h"

/* Cleaned texts are valid, short, not changed by cleaning again, and hide nothing. */
static void check_clean(struct str text, enum clean_mode mode)
{
	autobuf struct buf b = BUF_INIT(CLEAN_CHARS * 4), c = BUF_INIT(CLEAN_CHARS * 4);
	struct err e;

	MUST(clean_text(&b, text, mode, CLEAN_CHARS, &e) == 0);
	MUST(utf8_valid(buf_str(&b)) && utf8_count(buf_str(&b)) <= CLEAN_CHARS);
	MUST(!clean_changes(buf_str(&b)));
	for (size_t at = 0; at < b.n;)
		MUST(!clean_hides(clean_char(buf_str(&b), &at)) || b.p[at - 1] == '\n');
	MUST(clean_text(&c, buf_str(&b), mode, CLEAN_CHARS, &e) == 0);
	MUST(str_eq(buf_str(&b), buf_str(&c)));
	if (mode == CLEAN_COMMENT)
		MUST(!b.p || !strstr(b.p, "*/"));
	if (mode == CLEAN_LINE || mode == CLEAN_REVEAL)
		MUST(!b.p || !strchr(b.p, '\n'));
}

/* A tool is as its canonical text, and two are the same exactly if no difference is shown. */
static void check_pin(struct str text)
{
	const char *nul = memchr(text.p, '\0', text.n);
	struct str first = { text.p, nul ? (size_t)(nul - text.p) : text.n };
	struct str second = { nul ? nul + 1 : text.p, nul ? text.n - first.n - 1 : text.n };
	autobuf struct buf b = BUF_INIT(1 << 24);
	struct err e;
	AUTO(json_free) struct json_doc *x = json_parse(first, NULL, &e);
	AUTO(json_free) struct json_doc *y = json_parse(second, NULL, &e);
	AUTO(json_free) struct json_doc *again = NULL;
	AUTO(arena_free) struct arena *a = arena_new(1 << 24);
	char one[SHA256_HEX], two[SHA256_HEX];
	struct pin_diff diff;

	if (!x || !y || pin_tool(json_root(x), one, &e) < 0 || pin_tool(json_root(y), two, &e) < 0)
		return;
	MUST(a && pin_diff(json_root(x), json_root(y), a, &diff, &e) == 0);
	MUST((diff.n == 0) == (strcmp(one, two) == 0) && diff.n <= PIN_CHANGES_MAX);
	for (size_t i = 0; i < diff.n; i++)
		MUST(!clean_changes(diff.changes[i].old) && !clean_changes(diff.changes[i].now));
	MUST(pin_canonical(&b, json_root(x), &e) == 0);
	again = json_parse(buf_str(&b), NULL, &e);
	MUST(again && pin_tool(json_root(again), two, &e) == 0 && strcmp(one, two) == 0);
	b.n = 0;
	MUST(clean_json(&b, json_root(x), CLEAN_TEXT, &e) == 0);
}

/* Of whatever is called a schema, short forms are JSON, and those of arguments say object. */
static void check_brief(struct str text)
{
	autobuf struct buf b = BUF_INIT(1 << 24), c = BUF_INIT(1 << 24), line = BUF_INIT(1 << 20);
	struct err e;
	AUTO(json_free) struct json_doc *x = json_parse(text, NULL, &e);
	AUTO(json_free) struct json_doc *object = NULL;
	AUTO(json_free) struct json_doc *brief = NULL;

	MUST(brief_text(&line, text, BRIEF_TEXT_CHARS, &e) == 0);
	MUST(line.n <= BRIEF_TEXT_CHARS * 4 + 8);
	if (!x || brief_object(&b, json_root(x), &e) < 0)
		return;
	object = json_parse(buf_str(&b), NULL, &e);
	MUST(object && str_is(json_str(json_get(json_root(object), "type")), "object"));
	MUST(brief_schema(&c, json_root(object), &e) == 0);
	brief = json_parse(buf_str(&c), NULL, &e);
	MUST(brief && str_is(json_str(json_get(json_root(brief), "type")), "object"));
}

/* Findings are bounded, and what is shown of them hides nothing. */
static void check_scan(struct str text)
{
	AUTO(arena_free) struct arena *a = arena_new(1 << 20);
	AUTO(json_free) struct json_doc *doc = NULL;
	autobuf struct buf b = BUF_INIT(JSON_BYTES_MAX);
	struct json_writer w = json_writer(&b);
	struct scan_findings all = { .n = 0 };
	struct err e;

	json_write_str(&w, text);
	MUST(json_write_done(&w, &e) == 0);
	doc = json_parse(buf_str(&b), NULL, &e);
	MUST(a && doc &&
	     scan_tool(json_root(doc), &(struct scan_names){ NULL, 0 }, a, &all, &e) == 0 &&
	     all.n <= SCAN_KINDS);
	for (size_t i = 0; i < all.n; i++) {
		MUST(all.p[i].excerpt.n > 0 && !clean_changes(all.p[i].excerpt));
		for (size_t k = 0; k < i; k++)
			MUST(all.p[i].kind != all.p[k].kind);
	}
}

/* Quotes and brackets outside of comments and strings are closed. */
static void check_balance(struct str text, const char *comment)
{
	size_t open = 0, comment_n = strlen(comment);
	bool quoted = false;

	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];

		if (quoted && c == '\\')
			i++;
		else if (c == '"')
			quoted = !quoted;
		else if (quoted)
			MUST(c != '\n' || comment_n == 1);
		else if (text.n - i >= comment_n && memcmp(text.p + i, comment, comment_n) == 0)
			while (i < text.n &&
			       (comment_n == 1 ? text.p[i] != '\n'
					       : text.p[i] != '/' || text.p[i - 1] != '*' || i < 3))
				i++;
		else if (strchr("({[", c))
			open++;
		else if (strchr(")}]", c))
			MUST(open-- > 0);
	}
	MUST(!quoted && open == 0);
}

static void check_declare(struct str text)
{
	struct err e;
	AUTO(json_free) struct json_doc *d = json_parse(text, NULL, &e);
	AUTO(arena_free) struct arena *a = arena_new(1 << 20);
	const struct str tool = STR_LIT("a tool");
	autobuf struct buf b = BUF_INIT(1 << 22);
	struct tool_name name;
	struct declared_tool one = { &name, json_root(d) };

	MUST(a && names_make(STR_LIT("srv"), &tool, 1, a, &name, &e) == 0);
	MUST(declare_typescript(&b, STR_LIT("srv"), &one, 1, &e) == 0);
	MUST(b.n < 4 * DECLARE_TOOL_BYTES && utf8_valid(buf_str(&b)));
	check_balance(buf_str(&b), "/**");
	b.n = 0;
	MUST(declare_python(&b, STR_LIT("srv"), &one, 1, &e) == 0);
	MUST(b.n < 4 * DECLARE_TOOL_BYTES && utf8_valid(buf_str(&b)));
	check_balance(buf_str(&b), "#");
	b.n = 0;
	MUST(declare_line(&b, &one, &e) == 0);
	MUST(b.n < 16 * DECLARE_LINE && !memchr(b.p, '\n', b.n));
	check_balance(buf_str(&b), "/**");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const char modes[] = "tlcr";
	struct str text = { (const char *)data + 1, n - 1 };
	const char *at = n ? memchr(modes, data[0], sizeof(modes) - 1) : NULL;

	if (at)
		check_clean(text, (enum clean_mode)(at - modes));
	else if (n > 0 && data[0] == 'p')
		check_pin(text);
	else if (n > 0 && data[0] == 'b')
		check_brief(text);
	else if (n > 0 && data[0] == 's')
		check_scan(text);
	else if (n > 0 && data[0] == 'd')
		check_declare(text);
	return 0;
}
