#include "coding/findings.h"

#include <ctype.h>

#include "coding/eslint.h"
#include "coding/internal.h"

enum { FINDINGS_ARENA_MAX = 2 << 20, RULE_MAX = 96 };

struct findings_parser {
	struct lines lines;
	struct arena arena;
	struct findings found;
	struct name root;
	struct name file; /* of an eslint block */
	struct eslint eslint;
	/* Standard output begins with "[{" or "[]": it is JSON of eslint. */
	enum { BEGIN_NONE, BEGIN_BRACKET, BEGIN_LINES, BEGIN_JSON } begin;
};

static struct str findings_keep(struct findings_parser *p, struct str s)
{
	struct err e;
	char *copy = s.n ? arena_dup(&p->arena, s, &e) : NULL;

	return copy ? (struct str){ copy, s.n } : STR_LIT("");
}

static struct str findings_relative(struct findings_parser *p, struct str file)
{
	struct str root = name_str(&p->root);

	if (root.n && file.n > root.n && memcmp(file.p, root.p, root.n) == 0 &&
	    file.p[root.n] == '/')
		return str_from(file, root.n + 1);
	str_take(&file, "./");
	/* A compiler starts in the build folder. */
	while (str_take(&file, "../"))
		;
	return file;
}

static void findings_add(struct findings_parser *p, const struct finding *f)
{
	struct findings *r = &p->found;

	if (f->warning)
		r->warnings++;
	else
		r->errors++;
	if (r->n == FINDINGS_MAX)
		return;
	r->p[r->n] = *f;
	r->p[r->n].file = findings_keep(p, str_upto(findings_relative(p, f->file), TEST_ID_MAX));
	r->p[r->n].rule = findings_keep(p, str_upto(f->rule, RULE_MAX));
	r->p[r->n].text = findings_keep(
		p, str_upto(str_upto(f->text, str_find(f->text, "\n")), FINDING_TEXT_MAX));
	r->n++;
}

/* ---- "file:line:column: severity: text [rule]" --------------------------------------------- */

/* False for a note, which belongs to the finding before it. */
static bool take_severity(struct str *s, bool *ret_warning, bool *ret_known)
{
	if (str_take(s, "error: ") || str_take(s, "fatal error: ") || str_take(s, "error[")) {
		*ret_known = true;
	} else if (str_take(s, "warning: ") || str_take(s, "style: ") ||
		   str_take(s, "performance: ") || str_take(s, "portability: ")) {
		*ret_known = true;
		*ret_warning = true;
	} else if (str_starts(*s, "note: ") || str_starts(*s, "information: ")) {
		return false;
	}
	return true;
}

static bool is_rule(struct str s)
{
	size_t letters = 0;

	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		letters += isalpha((unsigned char)c) != 0;
		if (!isalnum((unsigned char)c) && !strchr("-_+=:/.@", c))
			return false;
	}
	return letters > 0;
}

/* "… [rule]" and "… (rule)" at the end, "E501 …" in front. */
static void take_rule(struct finding *f, bool severity)
{
	char last = f->text.n ? f->text.p[f->text.n - 1] : 0;
	const char *open = last == ']'		    ? memrchr(f->text.p, '[', f->text.n)
			 : last == ')' && !severity ? memrchr(f->text.p, '(', f->text.n)
						    : NULL;
	size_t at = open ? (size_t)(open - f->text.p) : 0, space = str_find(f->text, " ");
	struct str word = str_upto(f->text, space);

	if (open && at > 0 && is_rule((struct str){ open + 1, f->text.n - at - 2 })) {
		f->rule = (struct str){ open + 1, f->text.n - at - 2 };
		f->text = str_trim(str_upto(f->text, at));
		return;
	}
	if (severity || word.n < 2 || !isupper((unsigned char)word.p[0]) ||
	    !isdigit((unsigned char)word.p[word.n - 1]) || !is_rule(word))
		return;
	f->rule = word;
	f->text = str_trim(str_from(f->text, space));
	str_take(&f->text, "[*] ");
}

static bool has_letter(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (isalpha((unsigned char)s.p[i]) || (unsigned char)s.p[i] >= 0x80)
			return true;
	}
	return false;
}

static bool colon_finding(struct str line, struct finding *f)
{
	bool severity = false;
	size_t at;

	str_take(&line, "vet: ");
	if (!place_parse(line, &f->file, &f->line, &f->column) || !has_letter(f->file))
		return false;
	at = (size_t)(f->file.p + f->file.n - line.p);
	f->text = str_from(line, at + 1 + str_find(str_from(line, at + 1), ": ") + 2);
	if (!f->text.n || !take_severity(&f->text, &f->warning, &severity))
		return false;
	/* Without a severity there is a column, and no blank in the name: else it may be any text.
	 */
	if (!severity && (!f->column || str_find(f->file, " ") < f->file.n))
		return false;
	take_rule(f, severity);
	return true;
}

/* ---- "file(line,column): error TS1: text" -------------------------------------------------- */

static bool tsc_finding(struct str line, struct finding *f)
{
	size_t at = str_find(line, "): error TS"), open;
	struct str rest;

	if (at == line.n) {
		rest = line; /* "error TS18003: No inputs were found …" has no place */
		if (!str_starts(rest, "error TS"))
			return false;
		rest = str_from(rest, 6);
	} else {
		for (open = at; open > 0 && line.p[open] != '('; open--)
			;
		f->file = str_upto(line, open);
		rest = str_from(line, open + 1);
		if (!open || !str_take_number(&rest, &f->line) || !str_take(&rest, ",") ||
		    !str_take_number(&rest, &f->column))
			return false;
		rest = str_from(line, at + strlen("): error "));
	}
	f->rule = str_upto(rest, str_find(rest, ":"));
	f->text = str_trim(str_from(rest, f->rule.n + 1));
	return true;
}

/* ---- blocks of eslint ---------------------------------------------------------------------- */

/* "  1:15  warning  Missing semicolon    semi", below a line with the file */
static bool stylish_finding(struct findings_parser *p, struct str line, struct finding *f)
{
	struct str s = str_trim(line);

	if (!str_starts(line, "  ") || !p->file.n || !str_take_number(&s, &f->line) ||
	    !str_take(&s, ":") || !str_take_number(&s, &f->column) || !str_starts(s, " "))
		return false;
	s = str_trim(s);
	f->warning = str_starts(s, "warning ");
	if (!str_take(&s, "warning ") && !str_take(&s, "error "))
		return false;
	s = str_trim(s);
	for (size_t i = s.n; i > 2; i--) {
		if (s.p[i - 1] != ' ')
			continue;
		if (s.p[i - 2] == ' ' && is_rule(str_from(s, i))) {
			f->rule = str_from(s, i);
			s = str_trim(str_upto(s, i));
		}
		break;
	}
	f->file = name_str(&p->file);
	f->text = s;
	return true;
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static unsigned number_of(const struct json_val *v)
{
	uint64_t u = 0;

	return json_uint64(v, &u) && u < 1u << 30 ? (unsigned)u : 0;
}

static void on_eslint(void *arg, struct str path, const struct json_val *v)
{
	uint64_t severity = 2;
	struct finding f = {
		.file = path,
		.line = number_of(json_get(v, "line")),
		.column = number_of(json_get(v, "column")),
		.rule = json_str(json_get(v, "ruleId")),
		.text = json_str(json_get(v, "message")),
	};

	json_uint64(json_get(v, "severity"), &severity);
	f.warning = severity == 1;
	findings_add(arg, &f);
}

static void on_eslint_lost(void *arg)
{
	findings_parser_lost(arg);
}

/* {"reason":"compiler-message","message":{"level":…,"spans":[…]}}; a summary has no
 * span. */
static void cargo_message(struct findings_parser *p, const struct json_val *message)
{
	struct str level = json_str(json_get(message, "level"));
	struct json_iter spans = json_iter(json_get(message, "spans"));
	struct finding f = {
		.warning = str_is(level, "warning"),
		.rule = json_str(json_get(json_get(message, "code"), "code")),
		.text = json_str(json_get(message, "message")),
	};

	if (!f.warning && !str_starts(level, "error"))
		return;
	while (json_next(&spans)) {
		if (!json_bool(json_get(spans.val, "is_primary")))
			continue;
		f.file = json_str(json_get(spans.val, "file_name"));
		f.line = number_of(json_get(spans.val, "line_start"));
		f.column = number_of(json_get(spans.val, "column_start"));
		/* A library is checked once for itself and once for its tests. */
		for (size_t i = 0; i < p->found.n; i++) {
			struct finding *o = &p->found.p[i];

			if (o->line == f.line && o->column == f.column && str_eq(o->file, f.file) &&
			    str_eq(o->text, str_upto(f.text, str_find(f.text, "\n"))))
				return;
		}
		findings_add(p, &f);
		return;
	}
}

static void json_finding(struct findings_parser *p, struct str line)
{
	struct err e;
	AUTO(json_free) struct json_doc *d = json_parse(line, NULL, &e);

	if (!d)
		p->found.lost++;
	else if (str_is(json_str(json_get(json_root(d), "reason")), "compiler-message"))
		cargo_message(p, json_get(json_root(d), "message"));
}

/* ---- the parser ---------------------------------------------------------------------------- */

static void findings_on_line(void *arg, unsigned stream, struct str line, bool cut)
{
	struct findings_parser *p = arg;
	struct finding f = { .file = STR_LIT(""), .rule = STR_LIT("") };
	struct str missing = line;

	if (str_starts(line, "{\"")) {
		if (cut)
			p->found.lost++;
		else
			json_finding(p, line);
	} else if (str_take(&missing, "#holt-missing ")) {
		p->found.missing = findings_keep(p, str_upto(missing, 64));
	} else if (tsc_finding(line, &f) || stylish_finding(p, line, &f)) {
		findings_add(p, &f);
	} else if (colon_finding(line, &f)) {
		p->file.n = 0;
		findings_add(p, &f);
	} else if (line.n > 0 && line.p[0] != ' ') {
		name_set(&p->file, line);
	}
}

struct findings_parser *findings_parser_new(struct str root, struct err *e)
{
	struct findings_parser *p = calloc(1, sizeof(*p));

	if (!p)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	arena_init(&p->arena, FINDINGS_ARENA_MAX);
	lines_init(&p->lines, findings_on_line, p);
	eslint_init(&p->eslint);
	p->eslint.on_message = on_eslint;
	p->eslint.on_lost = on_eslint_lost;
	p->eslint.arg = p;
	p->found.missing = STR_LIT("");
	name_set(&p->root, root);
	p->found.p = arena_array(&p->arena, FINDINGS_MAX, sizeof(*p->found.p), e);
	if (!p->found.p) {
		findings_parser_free(p);
		return NULL;
	}
	return p;
}

void findings_parser_free(struct findings_parser *p)
{
	if (!p)
		return;
	eslint_fini(&p->eslint);
	lines_fini(&p->lines);
	arena_fini(&p->arena);
	free(p);
}

/* The first bytes tell what it is. */
static void findings_begin(struct findings_parser *p, struct str *bytes)
{
	char c = bytes->p[0];

	if (p->begin == BEGIN_NONE && c != '[') {
		if (!isspace((unsigned char)c))
			p->begin = BEGIN_LINES;
		else
			*bytes = str_from(*bytes, 1);
	} else if (p->begin == BEGIN_NONE) {
		p->begin = BEGIN_BRACKET;
		*bytes = str_from(*bytes, 1);
	} else {
		p->begin = c == '{' || c == ']' ? BEGIN_JSON : BEGIN_LINES;
		if (p->begin == BEGIN_JSON)
			eslint_feed(&p->eslint, STR_LIT("["));
		else
			lines_feed(&p->lines, 0, STR_LIT("["));
	}
}

void findings_parser_feed(struct findings_parser *p, unsigned stream, struct str bytes)
{
	while (stream == 0 && p->begin < BEGIN_LINES && bytes.n > 0)
		findings_begin(p, &bytes);
	if (stream == 0 && p->begin == BEGIN_JSON)
		eslint_feed(&p->eslint, bytes);
	else
		lines_feed(&p->lines, stream, bytes);
}

void findings_parser_lost(struct findings_parser *p)
{
	p->found.lost++;
}

const struct findings *findings_parser_end(struct findings_parser *p)
{
	lines_end(&p->lines);
	if (p->begin == BEGIN_JSON && !p->eslint.ended)
		p->found.lost++;
	return &p->found;
}

enum findings_verdict findings_verdict(const struct findings *f, int exit_code)
{
	if (f->errors + f->warnings > 0)
		return FINDINGS_SOME;
	return exit_code == 0 && !f->lost ? FINDINGS_CLEAN : FINDINGS_UNPARSED;
}
