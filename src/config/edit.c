/* Edits of a file, whose text stays as it is otherwise. */
#include <stdio.h>

#include "config/internal.h"
#include "json/document/where.h"

enum { EDIT_VALUES_MAX = 1 << 20 };

/* A file that is edited: comments of `bare` are blanks, so places are those of the text. */
struct edit {
	struct str text;
	struct buf bare;
	struct json_doc *doc;
};

static int edit_init(struct edit *d, struct str text, struct err *e)
{
	const struct json_options limits = { .values = EDIT_VALUES_MAX };

	*d = (struct edit){ .text = text, .bare = BUF_INIT(text.n + 1) };
	if (buf_add(&d->bare, text.p, text.n, e) < 0 ||
	    config_strip_loosely(d->bare.p, d->bare.n, e) < 0)
		return -1;
	d->doc = json_parse(buf_str(&d->bare), &limits, e);
	if (!d->doc)
		return -1;
	return json_type(json_root(d->doc)) == JSON_OBJECT
		     ? 0
		     : err_set(e, ERR_INVALID, "the file is not an object");
}

static void edit_fini(struct edit *d)
{
	json_free(d->doc);
	buf_fini(&d->bare);
}
#define autoedit __attribute__((cleanup(edit_fini)))

static bool edit_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* A value as it stands in the text without comments. */
static struct str edit_value(const struct edit *d, const char *pointer)
{
	struct str bare = buf_str(&d->bare), value;
	size_t at = json_where(d->doc, bare, pointer);
	/* as the only element of an array, which ends it */
	struct json_raw raw = { .rest = { bare.p + at, bare.n - at } };

	return json_raw_next(&raw, &value) ? value : (struct str){ bare.p + at, 0 };
}

static size_t edit_at(const struct edit *d, const char *p)
{
	return (size_t)(p - d->bare.p);
}

/* ---- more ------------------------------------------------------------------------------------ */

/* Behind the opening bracket, where comments can't stand in the way. */
int config_insert(struct str text, const char *name, const char brackets[2], struct str what,
		  struct buf *to, struct err *e)
{
	const struct json_val *in, *root;
	char pointer[CONFIG_NAME_MAX];
	autoedit struct edit d = { .doc = NULL };
	size_t at;

	if (!text.n)
		text = STR_LIT("{}\n");
	if (edit_init(&d, text, e) < 0)
		return -1;
	root = json_root(d.doc);
	in = json_get(root, name);
	if (in && json_type(in) != (*brackets == '{' ? JSON_OBJECT : JSON_ARRAY))
		return err_set(e, ERR_INVALID, "\"%s\" is not what it should be", name);
	snprintf(pointer, sizeof(pointer), "/%s", name);
	at = 1 + edit_at(&d, edit_value(&d, in ? pointer : "").p);
	if (buf_add(to, text.p, at, e) < 0 ||
	    (!in && buf_addf(to, e, "\n  \"%s\": %c", name, brackets[0]) < 0) ||
	    buf_add(to, what.p, what.n, e) < 0 ||
	    (!in && buf_addf(to, e, "\n  %c", brackets[1]) < 0) ||
	    buf_add(to, json_len(in ? in : root) ? "," : "\n", 1, e) < 0)
		return -1;
	return buf_add(to, text.p + at, text.n - at, e);
}

/* Behind the last member or element of what is at the pointer, on a line of its own where the first
 * has one. */
static int edit_append(const struct edit *d, const char *pointer, struct str what, struct buf *to,
		       struct err *e)
{
	struct str in = edit_value(d, pointer), value, line = STR_NONE;
	struct json_raw raw = json_raw(in);
	size_t at = edit_at(d, in.p) + 1, n = 1;
	bool any = false;

	while (n < in.n && (edit_blank(in.p[n]) || in.p[n] == '\n'))
		n++;
	for (size_t i = 1; i < n; i++) {
		if (in.p[i] == '\n')
			line = (struct str){ in.p + i, n - i };
	}
	while (json_raw_next(&raw, &value)) {
		at = edit_at(d, value.p) + value.n;
		any = true;
	}
	if (buf_add(to, d->text.p, at, e) < 0 || buf_addf(to, e, "%s", any ? "," : "") < 0 ||
	    buf_addf(to, e, "%.*s", STR_ARG(any ? line : STR_NONE)) < 0 ||
	    buf_addf(to, e, "%s%.*s", any && !line.p ? " " : "", STR_ARG(what)) < 0)
		return -1;
	return buf_add(to, d->text.p + at, d->text.n - at, e);
}

int config_add(struct str text, struct str servers, struct str inputs, struct buf *to,
	       struct err *e)
{
	autobuf struct buf with = BUF_INIT(CONFIG_BYTES_MAX);

	if (inputs.n && config_insert(text, "inputs", "[]", inputs, &with, e) < 0)
		return -1;
	return config_insert(inputs.n ? buf_str(&with) : text, "mcpServers", "{}", servers, to, e);
}

/* ---- less ------------------------------------------------------------------------------------ */

/* The quote with which the name of a member begins. */
static size_t edit_name(const struct edit *d, size_t value)
{
	size_t quote = value;

	for (unsigned quotes = 0; quotes < 2;)
		quotes += d->bare.p[--quote] == '"';
	return quote;
}

/* The line break before a place with blanks between, unless a comment may end with it; else
 * SIZE_MAX. */
static size_t edit_line(const struct edit *d, size_t at)
{
	size_t end;

	while (at > 0 && edit_blank(d->text.p[at - 1]))
		at--;
	if (at == 0 || d->text.p[at - 1] != '\n')
		return SIZE_MAX;
	for (end = at - 1; end > 0 && edit_blank(d->text.p[end - 1]);)
		end--;
	return end > 0 && d->text.p[end - 1] != d->bare.p[end - 1] ? SIZE_MAX : at - 1;
}

static int edit_keep(const struct edit *d, size_t from, size_t to_, struct buf *to, struct err *e)
{
	return from < to_ ? buf_add(to, d->text.p + from, to_ - from, e) : 0;
}

/* Takes a member out, from its name to the end of its value, with one comma; comments stay. */
static int edit_cut(const struct edit *d, size_t from, size_t end, struct buf *to, struct err *e)
{
	const char *bare = d->bare.p, *text = d->text.p;
	size_t line = edit_line(d, from), before = from, after = end, first = from, next;

	while (edit_blank(bare[before - 1]) || bare[before - 1] == '\n')
		before--;
	while (edit_blank(bare[after]) || bare[after] == '\n')
		after++;
	while (first > 0 && edit_blank(text[first - 1]))
		first--;
	first = line != SIZE_MAX ? line : first;
	next = bare[after] == ',' ? after + 1 : end;
	if (bare[after] != ',' && bare[before - 1] == ',') { /* the last one takes that before it */
		if (edit_keep(d, 0, before - 1, to, e) < 0 ||
		    edit_keep(d, before, first, to, e) < 0)
			return -1;
	} else if (edit_keep(d, 0, first, to, e) < 0) {
		return -1;
	} else if (bare[after] != ',' && text[next] == '\n') {
		next++; /* the only one: that behind it, which config_insert() writes */
	}
	if (bare[after] == ',' && edit_keep(d, end, after, to, e) < 0)
		return -1;
	return edit_keep(d, next, d->text.n, to, e);
}

/* Whether the section was made for its only member, as config_insert() does. */
static bool edit_made(const struct edit *d, const char *name, struct str section, size_t from,
		      size_t end)
{
	static const char close[] = "\n  }";
	size_t in = edit_at(d, section.p) + 1, n;
	char open[CONFIG_NAME_MAX];

	n = (size_t)snprintf(open, sizeof(open), "\n  \"%s\": {", name);
	if (json_len(json_get(json_root(d->doc), name)) != 1 || in < n ||
	    memcmp(d->text.p + in - n, open, n) != 0 ||
	    !str_is((struct str){ d->text.p + end, in - 1 + section.n - end }, close))
		return false;
	for (size_t i = in; i < from; i++) {
		if (!edit_blank(d->text.p[i]) && d->text.p[i] != '\n')
			return false;
	}
	return true;
}

int config_remove(struct str text, const char *of, struct str name, struct buf *to, struct err *e)
{
	struct json_pointer at = JSON_POINTER_INIT;
	size_t from, end;
	autoedit struct edit d = { .doc = NULL };
	struct str value, section;

	if (edit_init(&d, text, e) < 0)
		return -1;
	at = config_at(at, str_of(of));
	section = edit_value(&d, at.text);
	at = config_at(at, name);
	value = edit_value(&d, at.text);
	from = edit_name(&d, edit_at(&d, value.p));
	end = edit_at(&d, value.p) + value.n;
	if (edit_made(&d, of, section, from, end)) {
		from = edit_name(&d, edit_at(&d, section.p));
		end = edit_at(&d, section.p) + section.n;
	}
	return edit_cut(&d, from, end, to, e);
}

/* ---- networks -------------------------------------------------------------------------------- */

int config_allow(struct str text, struct str name, struct str rule, struct buf *to, struct err *e)
{
	struct json_pointer at = JSON_POINTER_INIT;
	const struct json_val *sandbox, *network;
	char what[CONFIG_TEXT_MAX + 64];
	autoedit struct edit d = { .doc = NULL };

	if (edit_init(&d, text, e) < 0)
		return -1;
	at = config_at(config_at(at, STR_LIT("mcpServers")), name);
	sandbox = json_get(json_get_str(json_get(json_root(d.doc), "mcpServers"), name), "sandbox");
	network = json_get(sandbox, "network");
	if (sandbox && json_type(sandbox) != JSON_OBJECT)
		return err_set(e, ERR_INVALID,
			       "the server has no sandbox, so nothing keeps it from the network");
	snprintf(what, sizeof(what), "%s%s\"%.*s\"%s%s", sandbox ? "" : "\"sandbox\": {",
		 network ? "" : "\"network\": [", STR_ARG(rule), network ? "" : "]",
		 sandbox ? "" : "}");
	if (sandbox)
		at = config_at(at, STR_LIT("sandbox"));
	if (network)
		at = config_at(at, STR_LIT("network"));
	return edit_append(&d, at.text, str_of(what), to, e);
}
