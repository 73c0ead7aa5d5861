#include "modules/code/names.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/sha256.h"
#include "modules/code/clean.h"

/* Words of JavaScript and Python, what every object, promise and module has, and what declarations
 * and generated modules use: each between spaces. */
static const char reserved[] =
	" "
	"Any Array Error Failure False Function Generic Infinity JSON List Literal Map "
	"Math NaN Never None NotRequired Number Object Ok Promise Proxy Record Reflect "
	"RegExp Result Set String Symbol True TypeVar TypedDict Uint8Array Union and "
	"arguments as assert async await bool break bytes case catch class console const "
	"constructor continue debugger def default del delete dict do elif else enum eval "
	"except export exports extends false finally float for from function global "
	"globalThis hasOwnProperty if implements import in instanceof int interface is "
	"isPrototypeOf lambda let list module new nonlocal not null object or package "
	"parallel pass private process propertyIsEnumerable protected prototype public "
	"raise require return static str super switch then this throw toJSON "
	"toLocaleString toString true try tuple typeof undefined valueOf var void while "
	"with yield ";

bool name_is_reserved(struct str name)
{
	char word[NAME_MAX_BYTES + 3];

	if (!name.n || name.n > NAME_MAX_BYTES || memchr(name.p, ' ', name.n))
		return false;
	snprintf(word, sizeof(word), " %.*s ", STR_ARG(name));
	return strstr(reserved, word);
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
	return is_letter(c) || is_digit(c) || c == '_';
}

bool name_is_plain(struct str name)
{
	if (!name.n || is_digit(name.p[0]) || str_starts(name, "__"))
		return false;
	for (size_t i = 0; i < name.n; i++) {
		if (!is_word(name.p[i]))
			return false;
	}
	return true;
}

/* ---- what a name would be if it were alone -------------------------------------------------- */

/* A name as it is built; what does not fit is left out. */
struct made {
	char text[NAME_MAX_BYTES + 1];
	size_t n;
	bool cut;
};

static void made_add(struct made *m, char c)
{
	if (m->n < NAME_MAX_BYTES)
		m->text[m->n++] = c;
	else
		m->cut = true;
	m->text[m->n] = '\0';
}

static void made_add_str(struct made *m, struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		made_add(m, s.p[i]);
}

static struct str made_str(const struct made *m)
{
	return (struct str){ m->text, m->n };
}

/* Every character that may not stand becomes one underscore. */
static void add_words(struct made *m, struct str name, bool dash)
{
	for (size_t at = 0; at < name.n;) {
		uint32_t c = clean_char(name, &at);

		made_add(m, c < 0x80 && (is_word((char)c) || (dash && c == '-')) ? (char)c : '_');
	}
}

static void make_function(struct str server, struct str name, struct made *m)
{
	struct made all = { .n = 0 };
	size_t from = 0;

	add_words(&all, name, false);
	while (from < all.n && all.text[from] == '_')
		from++;
	if (from == all.n || is_digit(all.text[from]))
		made_add_str(m, from == all.n ? STR_LIT("tool") : STR_LIT("tool_"));
	made_add_str(m, (struct str){ all.text + from, all.n - from });
	m->cut = m->cut || all.cut;
	if (name_is_reserved(made_str(m)))
		made_add(m, '_');
}

static void make_gateway(struct str server, struct str name, struct made *m)
{
	made_add_str(m, server);
	made_add_str(m, STR_LIT("__"));
	add_words(m, name, true);
}

static void make_type(struct str server, struct str name, struct made *m)
{
	char text[NAME_MAX_BYTES + 1];

	made_add_str(m, name_pascal(name, text));
}

struct str name_pascal(struct str text, char ret[NAME_MAX_BYTES + 1])
{
	struct made m = { .n = 0 };
	bool begins = true;

	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];

		if (!is_letter(c) && !is_digit(c)) {
			begins = true;
			continue;
		}
		if (m.n == 0 && is_digit(c))
			made_add(&m, 'T');
		made_add(&m, begins && c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c);
		begins = false;
	}
	if (m.n == 0)
		made_add_str(&m, STR_LIT("Tool"));
	memcpy(ret, m.text, m.n + 1);
	return (struct str){ ret, m.n };
}

/* ---- names that differ ---------------------------------------------------------------------- */

/* The names that are taken: open addressing, at least half empty. */
struct taken {
	struct str *slots;
	size_t mask;
};

static struct str *taken_slot(const struct taken *t, struct str name)
{
	uint64_t h = 0xcbf29ce484222325u;
	size_t i;

	for (i = 0; i < name.n; i++)
		h = (h ^ (unsigned char)name.p[i]) * 0x100000001b3u;
	for (i = h & t->mask; t->slots[i].p && !str_eq(t->slots[i], name); i = (i + 1) & t->mask)
		;
	return &t->slots[i];
}

static bool taken_add(struct taken *t, struct str name)
{
	struct str *slot = taken_slot(t, name);

	if (slot->p)
		return false;
	*slot = name;
	return true;
}

static int taken_init(struct taken *t, size_t n, struct arena *a, struct err *e)
{
	size_t size = 16;

	while (size < n * 4)
		size *= 2;
	t->mask = size - 1;
	t->slots = arena_array(a, size, sizeof(t->slots[0]), e);
	return t->slots ? 0 : -1;
}

/* One kind of name, for all tools. */
struct kind {
	void (*make)(struct str server, struct str name, struct made *ret);
	size_t offset; /* of struct tool_name */
	bool served; /* the server's name stands before */
};

static struct str *name_at(const struct kind *k, struct tool_name *ret, size_t i)
{
	return (struct str *)(void *)((char *)&ret[i] + k->offset);
}

/* A name that its tool brought along, or that no other would have. */
static int names_keep(struct str name, struct arena *a, struct str *ret, struct err *e)
{
	ret->p = arena_dup(a, name, e);
	ret->n = name.n;
	return ret->p ? 0 : -1;
}

/* Longer and longer digests: a hostile server may have names that end in the shorter ones. */
static int distinguish(struct str base, struct str tool, struct taken *t, struct arena *a,
		       struct str *ret, struct err *e)
{
	char hex[SHA256_HEX];

	sha256_hex(tool, hex);
	for (size_t digits = 4; digits <= 32; digits += 4) {
		size_t room = NAME_MAX_BYTES - digits - 1;
		char text[NAME_MAX_BYTES + 1];
		int n = snprintf(text, sizeof(text), "%.*s_%.*s", STR_CUT(base, room), (int)digits,
				 hex);
		struct str name = { text, (size_t)n };

		if (taken_slot(t, name)->p)
			continue;
		if (names_keep(name, a, ret, e) < 0)
			return -1;
		taken_add(t, *ret);
		return 0;
	}
	return err_set(e, ERR_INVALID, "the names of two tools can't be told apart");
}

struct base {
	struct made made;
	struct str tool;
	size_t index;
	bool exact; /* it ends in the tool's own name, unchanged */
};

/* By the derived name, then the one that was so from the start, then the tool's own name. */
static int base_compare(const void *a, const void *b)
{
	const struct base *const *x = a, *const *y = b;
	int c = str_cmp(made_str(&(*x)->made), made_str(&(*y)->made));

	if (c == 0)
		c = (int)(*y)->exact - (int)(*x)->exact;
	return c ? c : str_cmp((*x)->tool, (*y)->tool);
}

static int make_kind(const struct kind *k, struct str server, const struct str *tools, size_t n,
		     struct arena *a, struct tool_name *ret, struct err *e)
{
	struct base *bases = arena_array(a, n, sizeof(*bases), e);
	struct base **sorted = arena_array(a, n, sizeof(struct base *), e);
	size_t before = k->served ? server.n + 2 : 0;
	struct taken taken;

	if (!bases || !sorted || taken_init(&taken, n, a, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		struct base *b = sorted[i] = &bases[i];
		struct str made, own;

		b->tool = tools[i];
		b->index = i;
		k->make(server, tools[i], &b->made);
		made = made_str(&b->made);
		own = (struct str){ made.p + before, made.n - before };
		b->exact = !b->made.cut && str_eq(own, tools[i]);
	}
	qsort(sorted, n, sizeof(struct base *), base_compare);
	for (size_t i = 0; i < n; i++) {
		struct base *b = sorted[i];

		if (!b->made.cut && taken_add(&taken, made_str(&b->made)) &&
		    names_keep(made_str(&b->made), a, name_at(k, ret, b->index), e) < 0)
			return -1;
	}
	for (size_t i = 0; i < n; i++) {
		struct base *b = sorted[i];
		struct str *to = name_at(k, ret, b->index);

		if (!to->p && distinguish(made_str(&b->made), b->tool, &taken, a, to, e) < 0)
			return -1;
	}
	return 0;
}

static int same_compare(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static int refuse_repeated(const struct str *tools, size_t n, struct arena *a, struct err *e)
{
	struct str *sorted = arena_array(a, n, sizeof(*sorted), e);

	if (!sorted)
		return -1;
	for (size_t i = 0; i < n; i++)
		sorted[i] = tools[i];
	qsort(sorted, n, sizeof(*sorted), same_compare);
	if (n > 0 && sorted[0].n == 0)
		return err_set(e, ERR_INVALID, "the server lists a tool without a name");
	for (size_t i = 1; i < n; i++) {
		if (str_eq(sorted[i - 1], sorted[i]))
			return err_set(e, ERR_INVALID, "the server lists two tools of one name");
	}
	return 0;
}

int names_make(struct str server, const struct str *tools, size_t n, struct arena *a,
	       struct tool_name *ret, struct err *e)
{
	static const struct kind kinds[] = {
		{ make_function, offsetof(struct tool_name, function), false },
		{ make_type, offsetof(struct tool_name, type), false },
		{ make_gateway, offsetof(struct tool_name, gateway), true },
	};

	if (n > NAMES_MAX)
		return err_set(e, ERR_TOO_LARGE, "the server lists more than %d tools", NAMES_MAX);
	if (refuse_repeated(tools, n, a, e) < 0)
		return -1;
	memset(ret, 0, n * sizeof(*ret));
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (make_kind(&kinds[i], server, tools, n, a, ret, e) < 0)
			return -1;
	}
	return 0;
}

/* ---- servers -------------------------------------------------------------------------------- */

/* Holt's own names: tools, modules, folders of its commands. */
static const char *const server_names[] = {
	"approval", "code",    "coding", "fetch", "fs-read",  "fs-write", "holt",      "host",
	"mcp",	    "sandbox", "secret", "shell", "snapshot", "template", "workspace",
};
static const char *const server_beginnings[] = { "ha-", "holt-", "host-", "mcp-", "sandbox-" };

int name_server(struct str name, struct err *e)
{
	if (!name.n || name.n > NAME_SERVER_MAX || name.p[0] < 'a' || name.p[0] > 'z')
		return err_set(e, ERR_INVALID,
			       "a name begins with a lower-case letter and has at most %d "
			       "characters",
			       NAME_SERVER_MAX);
	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];

		if (!(c >= 'a' && c <= 'z') && !is_digit(c) && c != '-')
			return err_set(e, ERR_INVALID,
				       "a name has lower-case letters, digits and hyphens");
	}
	for (size_t i = 0; i < ARRAY_LEN(server_names); i++) {
		if (str_is(name, server_names[i]))
			return err_set(e, ERR_INVALID, "the name '%s' is Holt's own",
				       server_names[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(server_beginnings); i++) {
		if (str_starts(name, server_beginnings[i]))
			return err_set(e, ERR_INVALID, "names that begin with '%s' are Holt's own",
				       server_beginnings[i]);
	}
	return 0;
}

void name_python(struct str server, char ret[NAME_SERVER_MAX + 2])
{
	size_t n = server.n < NAME_SERVER_MAX ? server.n : NAME_SERVER_MAX;

	for (size_t i = 0; i < n; i++)
		ret[i] = server.p[i] == '-' ? '_' : server.p[i];
	if (name_is_reserved((struct str){ ret, n }))
		ret[n++] = '_';
	ret[n] = '\0';
}
