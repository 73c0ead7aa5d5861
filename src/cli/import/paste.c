/* What people paste from the page of a server: its block, or a part of it, as they copied it. */
#include "cli/import/foreign.h"
#include "json/document/raw.h"
#include "json/document/where.h"
#include "json/document/write.h"

/* ---- around it ------------------------------------------------------------------------------- */

static bool paste_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* The next line that begins with a fence of Markdown; ret_end: behind it. */
static const char *paste_fence(const char *at, const char *end, const char **ret_end)
{
	while (at < end) {
		const char *line = memchr(at, '\n', (size_t)(end - at)), *p = at;

		while (p < end && (*p == ' ' || *p == '\t'))
			p++;
		*ret_end = line ? line + 1 : end;
		if (end - p >= 3 && (memcmp(p, "```", 3) == 0 || memcmp(p, "~~~", 3) == 0))
			return at;
		at = *ret_end;
	}
	return NULL;
}

/* Takes the only block of code out of Markdown. */
static int paste_unfence(struct buf *text, struct err *e)
{
	const char *end = text->p + text->n, *begin, *stop, *behind, *more;

	if (!paste_fence(text->p, end, &begin))
		return 0;
	stop = paste_fence(begin, end, &behind);
	if (stop && paste_fence(behind, end, &more))
		return err_set(e, ERR_INVALID, "it has several blocks of code: paste one of them");
	text->n = (size_t)((stop ? stop : end) - begin);
	memmove(text->p, begin, text->n);
	return 0;
}

/* ---- characters that editors and pages put in place of others -------------------------------- */

/* How long the character is where it is a quote, "“" and the like, or a blank of no width or a
 * fixed one. */
static size_t paste_odd(struct str s, bool *ret_quote)
{
	static const struct {
		const char *text;
		bool quote;
	} odd[] = {
		{ "\u201c", true },  { "\u201d", true },  { "\u201e", true },  { "\u201f", true },
		{ "\u2018", true },  { "\u2019", true },  { "\u00ab", true },  { "\u00bb", true },
		{ "\uff02", true },  { "\u00a0", false }, { "\u202f", false }, { "\u2003", false },
		{ "\u200b", false }, { "\ufeff", false },
	};

	for (size_t i = 0; (*s.p & 0x80) && i < ARRAY_LEN(odd); i++) {
		if (!str_starts(s, odd[i].text))
			continue;
		*ret_quote = odd[i].quote;
		return strlen(odd[i].text);
	}
	return 0;
}

static size_t paste_column(struct str text, size_t at)
{
	size_t column = 1;

	while (at > 0 && text.p[at - 1] != '\n')
		column += (text.p[--at] & 0xc0) != 0x80;
	return column;
}

/* Outside of strings, where comments are blanks already. */
static int paste_characters(struct buf *text, struct err *e)
{
	struct str all = buf_str(text);

	for (size_t i = 0; i < all.n; i++) {
		bool quote;
		size_t n;

		if (all.p[i] == '"') {
			i = json_string_end(all, i + 1) - 1;
			continue;
		}
		n = paste_odd((struct str){ all.p + i, all.n - i }, &quote);
		if (n && quote)
			return err_set(
				e, ERR_INVALID,
				"line %u, column %zu: %.*s is no quote of JSON, which takes \"",
				json_line(all, i), paste_column(all, i), (int)n, all.p + i);
		memset(text->p + i, ' ', n);
	}
	return 0;
}

/* ---- what it is ------------------------------------------------------------------------------ */

static bool paste_is_entry(const struct json_val *v)
{
	static const char *const names[] = { "command", "url", "serverUrl", "httpUrl" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (json_type(json_get(v, names[i])) == JSON_STR)
			return true;
	}
	return false;
}

static bool paste_is_map(const struct json_val *v)
{
	struct json_iter it = json_iter(v);

	while (json_next(&it)) {
		if (!paste_is_entry(it.val))
			return false;
	}
	return json_type(v) == JSON_OBJECT && json_len(v) > 0;
}

/* The text with some before and behind it. */
static int paste_wrap(struct buf *text, struct str before, const char *behind, struct err *e)
{
	autowipe struct buf was = BUF_INIT(text->max);

	if (!buf_reserve(&was, text->n, e) || buf_add(&was, text->p, text->n, e) < 0)
		return -1;
	text->n = 0;
	return buf_add(text, before.p, before.n, e) < 0 || buf_add(text, was.p, was.n, e) < 0 ||
			       buf_addf(text, e, "\n%s", behind) < 0
		     ? -1
		     : 0;
}

static int paste_name(struct buf *text, struct str name, struct err *e)
{
	autobuf struct buf before = BUF_INIT(64 << 10);
	struct json_writer w = json_writer(&before);

	if (buf_addf(&before, e, "{\"mcpServers\":{") < 0)
		return -1;
	json_write_str(&w, name);
	return json_write_done(&w, e) < 0 || buf_addf(&before, e, ":") < 0
		     ? -1
		     : paste_wrap(text, buf_str(&before), "}}", e);
}

static int paste_other(struct str text, struct err *e)
{
	if (!text.n)
		return err_set(e, ERR_INVALID, "there is nothing in it");
	if (*text.p == '[')
		return err_set(e, ERR_INVALID,
			       "it is no JSON object; TOML, as Codex has it, is not read: "
			       "holt mcp add NAME -- COMMAND ARGUMENT...");
	return err_set(e, ERR_INVALID,
		       "it is no JSON. A command line stands behind two dashes: holt mcp add NAME "
		       "-- COMMAND ARGUMENT...");
}

/* An entry, or servers, without what is around them in a file. */
static int paste_complete(struct buf *text, struct str name, struct err *e)
{
	AUTO(json_free) struct json_doc *doc = foreign_parse(text, e);
	const struct json_val *root = json_root(doc);
	struct str own = json_str(json_get(root, "name"));

	if (!doc)
		return -1;
	if (paste_is_entry(root)) {
		if (!name.p && !own.p)
			return err_set(
				e, ERR_INVALID,
				"the entry has no name: put one before it, as in holt mcp add "
				"NAME -");
		return paste_name(text, name.p ? name : own, e);
	}
	if (name.p)
		return err_set(e, ERR_INVALID,
			       "what names its servers itself takes no NAME: leave out %.*s",
			       STR_CUT(name, 64));
	if (foreign_client_of(root))
		return 0;
	if (paste_is_map(root))
		return paste_wrap(text, STR_LIT("{\"mcpServers\":"), "}", e);
	return err_set(e, ERR_INVALID, "it has no MCP servers that are known");
}

int foreign_paste(struct buf *text, struct str name, struct err *e)
{
	struct str all;

	if (paste_unfence(text, e) < 0 || foreign_strip(text, e) < 0 ||
	    paste_characters(text, e) < 0)
		return -1;
	all = buf_str(text);
	while (all.n && paste_blank(*all.p))
		all = (struct str){ all.p + 1, all.n - 1 };
	if (!all.n || (*all.p != '{' && *all.p != '"'))
		return paste_other(all, e);
	if (*all.p == '"' && paste_wrap(text, STR_LIT("{"), "}", e) < 0)
		return -1;
	return paste_complete(text, name, e);
}
