#include "modules/code/print.h"

#include <stdarg.h>
#include <stdio.h>

#include "json/document/utf8.h"
#include "json/document/write.h"
#include "modules/code/clean.h"

enum { TAG_CHARS = 200 };

void print_str(struct printer *p, struct str s)
{
	if (!p->err.code)
		(void)!buf_add(p->to, s.p, s.n, &p->err);
}

void print(struct printer *p, const char *fmt, ...)
{
	char text[512];
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (n < 0 || (size_t)n >= sizeof(text))
		err_set(&p->err, ERR_BUG, "a declaration's line is too long");
	else
		print_str(p, (struct str){ text, (size_t)n });
}

void print_line_end(struct printer *p)
{
	print(p, "\n");
	for (unsigned i = 0; i < p->indent; i++)
		print(p, "%s", p->language == PRINT_PYTHON ? "    " : "\t");
}

/* ---- literals ------------------------------------------------------------------------------- */

static void print_escape(struct printer *p, uint32_t c)
{
	if (c <= 0xffff)
		print(p, "\\u%04x", c);
	else
		print(p, p->language == PRINT_PYTHON ? "\\U%08x" : "\\u{%x}", c);
}

/* Characters that are joined or chosen by others are escaped as well: alone they are not seen. */
static bool needs_escape(uint32_t c)
{
	return c < ' ' || clean_hides(c) || c == 0x200c || c == 0x200d ||
	       (c >= 0xfe00 && c <= 0xfe0f) || (c >= 0xe000 && c <= 0xf8ff) || c >= 0xe0000;
}

void print_string(struct printer *p, struct str s)
{
	uint32_t before = 0;

	print(p, "\"");
	for (size_t at = 0; at < s.n;) {
		size_t from = at;
		uint32_t c = clean_char(s, &at);

		if (c == '"' || c == '\\')
			print(p, "\\%c", (char)c);
		else if (c == '/' && (before == '<' || before == '*'))
			print(p, "\\x2f");
		else if (needs_escape(c))
			print_escape(p, c);
		else
			print_str(p, (struct str){ s.p + from, at - from });
		before = c;
	}
	print(p, "\"");
}

void print_literal(struct printer *p, const struct json_val *v)
{
	autobuf struct buf b = BUF_INIT(64);
	struct json_writer w = json_writer(&b);

	if (json_type(v) == JSON_STR) {
		print_string(p, json_str(v));
		return;
	}
	if (json_type(v) == JSON_BOOL && p->language == PRINT_PYTHON) {
		print(p, "%s", json_bool(v) ? "True" : "False");
		return;
	}
	json_write_val(&w, v);
	if (!p->err.code && json_write_done(&w, &p->err) == 0)
		print_str(p, buf_str(&b));
}

/* ---- comments ------------------------------------------------------------------------------- */

/* Keywords of a schema that are shown beside the type. */
static const char *const tags[] = {
	"default",	    "format",	  "minimum",	"maximum",   "exclusiveMinimum",
	"exclusiveMaximum", "multipleOf", "minLength",	"maxLength", "pattern",
	"minItems",	    "maxItems",	  "deprecated",
};

static int add_tag(struct buf *b, const char *tag, const struct json_val *v, enum clean_mode mode,
		   struct err *e)
{
	autobuf struct buf json = BUF_INIT(JSON_BYTES_MAX), text = BUF_INIT(TAG_CHARS * 4);
	struct json_writer w = json_writer(&json);
	int r = 0;

	json_write_val(&w, v);
	if (json_write_done(&w, e) < 0)
		return -1;
	if (clean_text(&text, buf_str(&json), mode, TAG_CHARS, e) < 0)
		return -1;
	if (b->n)
		r = buf_add(b, "\n", 1, e);
	return r < 0 ? -1 : buf_addf(b, e, "@%s %.*s", tag, STR_ARG(buf_str(&text)));
}

static int comment_text(struct buf *b, const struct json_val *schema, size_t chars,
			enum print_language language, struct err *e)
{
	enum clean_mode mode = language == PRINT_PYTHON ? CLEAN_TEXT : CLEAN_COMMENT;
	struct str text = json_str(json_get(schema, "description"));

	if (!text.n)
		text = json_str(json_get(schema, "title"));
	if (clean_text(b, text, mode, chars, e) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(tags); i++) {
		const struct json_val *v = json_get(schema, tags[i]);

		if (json_type(v) != JSON_ABSENT && add_tag(b, tags[i], v, mode, e) < 0)
			return -1;
	}
	return 0;
}

void print_comment(struct printer *p, const struct json_val *schema, size_t chars)
{
	autobuf struct buf b = BUF_INIT(chars * 4 + ARRAY_LEN(tags) * (TAG_CHARS + 8) * 4);
	struct str rest;
	bool lines, script = p->language == PRINT_TYPESCRIPT;

	if (p->err.code || comment_text(&b, schema, chars, p->language, &p->err) < 0 || !b.n)
		return;
	rest = buf_str(&b);
	lines = memchr(b.p, '\n', b.n);
	if (script)
		print(p, "/**");
	if (script && lines)
		print_line_end(p);
	while (rest.n) {
		const char *end = memchr(rest.p, '\n', rest.n);
		struct str line = { rest.p, end ? (size_t)(end - rest.p) : rest.n };

		print(p, "%s%s", script ? (lines ? " *" : "") : "#", line.n ? " " : "");
		print_str(p, line);
		if (lines || !script)
			print_line_end(p);
		rest = (struct str){ rest.p + line.n + (end != NULL),
				     rest.n - line.n - (end != NULL) };
	}
	if (script) {
		print(p, " */");
		print_line_end(p);
	}
}

/* ---- names ---------------------------------------------------------------------------------- */

const char *print_name(struct printer *p, struct shapes *s, const char *base, struct str word)
{
	char pascal[NAME_MAX_BYTES + 1];
	const char *name = NULL;

	name_pascal(word, pascal);
	for (unsigned number = 1; !name && !p->err.code; number++) {
		if (number == 1)
			name = arena_printf(p->arena, &p->err, "%s_%s", base, pascal);
		else
			name = arena_printf(p->arena, &p->err, "%s_%s_%u", base, pascal, number);
		for (size_t i = 0; name && i < s->defs_n; i++) {
			if (s->defs[i].name && strcmp(s->defs[i].name, name) == 0) {
				name = NULL;
				break;
			}
		}
	}
	return name ? name : "";
}

void print_name_defs(struct printer *p, struct shapes *s, const char *base)
{
	for (size_t i = 0; i < s->defs_n; i++)
		s->defs[i].name = print_name(p, s, base, s->defs[i].word);
}

int print_read(struct printer *p, const struct json_val *tool, struct shapes *ret_in,
	       struct shapes *ret_out)
{
	if (shape_read(json_get(tool, "inputSchema"), p->arena, ret_in, &p->err) < 0)
		return -1;
	return shape_read(json_get(tool, "outputSchema"), p->arena, ret_out, &p->err);
}

bool print_needs_name(const struct shape *s)
{
	bool map = s->kind == SHAPE_OBJECT && !s->members_n;

	return s->kind >= SHAPE_LITERAL && !(map && (!s->rest || s->rest->kind < SHAPE_LITERAL));
}

bool print_is_optional(const struct shape *s)
{
	s = shape_target(s);
	for (size_t i = 0; s->kind == SHAPE_OBJECT && i < s->members_n; i++) {
		if (!s->members[i].optional)
			return false;
	}
	return s->kind == SHAPE_OBJECT || s->kind == SHAPE_ANY;
}
