#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "modules/code/clean.h"
#include "modules/code/print.h"

/* Objects have no types of their own inside of others: each becomes a class that is printed after
 * the one that uses it, which stubs allow. */
struct waiting {
	const struct shape *shape;
	const char *name;
	struct waiting *next;
};

struct py {
	struct printer p;
	const char *base; /* what names of classes begin with */
	unsigned classes;
	struct waiting *first, **last;
};

static void py_type(struct py *y, const struct shape *s, struct str word);

static bool is_scalar(const struct shape *s)
{
	return s->kind == SHAPE_LITERAL && json_type(s->literal) != JSON_REAL;
}

/* All literals of a union are one `Literal[]`. */
static void py_literals(struct py *y, struct shape *const *parts, size_t n)
{
	bool any = false;

	for (size_t i = 0; i < n; i++) {
		if (!is_scalar(parts[i]))
			continue;
		print(&y->p, "%s", any ? ", " : "Literal[");
		print_literal(&y->p, parts[i]->literal);
		any = true;
	}
	if (any)
		print(&y->p, "]");
}

static void py_union(struct py *y, struct shape *const *parts, size_t n, struct str word)
{
	bool any = false;

	for (size_t i = 0; i < n; i++)
		any = any || is_scalar(parts[i]);
	py_literals(y, parts, n);
	for (size_t i = 0; i < n; i++) {
		if (is_scalar(parts[i]))
			continue;
		print(&y->p, "%s", any ? " | " : "");
		py_type(y, parts[i], word);
		any = true;
	}
	if (!any)
		print(&y->p, "Any");
}

static void py_tuple(struct py *y, const struct shape *s, struct str word)
{
	print(&y->p, "list[");
	if (s->parts_n)
		py_union(y, s->parts, s->parts_n, word);
	else if (!s->rest)
		print(&y->p, "Any");
	if (s->rest) {
		print(&y->p, "%s", s->parts_n ? " | " : "");
		py_type(y, s->rest, word);
	}
	print(&y->p, "]");
}

static void py_class(struct py *y, const struct shape *s, struct str word)
{
	char pascal[NAME_MAX_BYTES + 1];
	struct waiting *w;

	if (y->p.err.code)
		return;
	w = arena_alloc(y->p.arena, sizeof(*w), &y->p.err);
	if (!w)
		return;
	name_pascal(word, pascal);
	w->shape = s;
	w->name = arena_printf(y->p.arena, &y->p.err, "%s_%u_%s", y->base, ++y->classes, pascal);
	if (!w->name)
		return;
	*y->last = w;
	y->last = &w->next;
	print(&y->p, "%s", w->name);
}

static void py_object(struct py *y, const struct shape *s, struct str word)
{
	if (s->members_n) {
		py_class(y, s, word);
		return;
	}
	print(&y->p, "dict[str, ");
	if (s->rest)
		py_type(y, s->rest, word);
	else
		print(&y->p, "Any");
	print(&y->p, "]");
}

/* There are no intersections: of objects, all that can be said is that they are one. */
static void py_both(struct py *y, const struct shape *s)
{
	for (size_t i = 0; i < s->parts_n; i++) {
		if (shape_target(s->parts[i])->kind == SHAPE_OBJECT) {
			print(&y->p, "dict[str, Any]");
			return;
		}
	}
	print(&y->p, "Any");
}

static void py_type(struct py *y, const struct shape *s, struct str word)
{
	static const char *const words[] = {
		[SHAPE_ANY] = "Any",	[SHAPE_NEVER] = "NoReturn", [SHAPE_NULL] = "None",
		[SHAPE_BOOL] = "bool",	[SHAPE_INT] = "int",	    [SHAPE_NUMBER] = "float",
		[SHAPE_STRING] = "str",
	};

	if (s->kind < ARRAY_LEN(words)) {
		print(&y->p, "%s", words[s->kind]);
	} else if (print_is_full(&y->p)) {
		print(&y->p, "Any");
	} else if (s->kind == SHAPE_LITERAL) {
		if (is_scalar(s))
			py_literals(y, (struct shape *[]){ (struct shape *)s }, 1);
		else
			print(&y->p, "float");
	} else if (s->kind == SHAPE_ARRAY) {
		print(&y->p, "list[");
		py_type(y, s->rest, word);
		print(&y->p, "]");
	} else if (s->kind == SHAPE_TUPLE) {
		py_tuple(y, s, word);
	} else if (s->kind == SHAPE_OBJECT) {
		py_object(y, s, word);
	} else if (s->kind == SHAPE_UNION) {
		py_union(y, s->parts, s->parts_n, word);
	} else if (s->kind == SHAPE_BOTH) {
		py_both(y, s);
	} else {
		print(&y->p, "%s", shape_def_of(s)->name);
	}
}

/* ---- classes -------------------------------------------------------------------------------- */

static bool has_attributes(const struct shape *s)
{
	for (size_t i = 0; i < s->members_n; i++) {
		if (!name_is_plain(s->members[i].name) || name_is_reserved(s->members[i].name))
			return false;
	}
	return true;
}

static void py_member(struct py *y, const struct shape_member *m, bool attribute)
{
	print_line_end(&y->p);
	print_comment(&y->p, m->schema, PRINT_MEMBER_CHARS);
	if (attribute)
		print_str(&y->p, m->name);
	else
		print_string(&y->p, m->name);
	print(&y->p, ": %s", m->optional ? "NotRequired[" : "");
	py_type(y, m->type, m->name);
	print(&y->p, "%s%s", m->optional ? "]" : "", attribute ? "" : ",");
}

/* Names that are no attributes stand in the other form of a TypedDict. */
static void py_members(struct py *y, const char *name, const struct shape *s)
{
	bool attributes = has_attributes(s);
	size_t i;

	print(&y->p, attributes ? "class %s(TypedDict):" : "%1$s = TypedDict(\"%1$s\", {", name);
	y->p.indent = 1;
	for (i = 0; i < s->members_n && !print_is_full(&y->p); i++)
		py_member(y, &s->members[i], attributes);
	if (i < s->members_n || s->rest) {
		print_line_end(&y->p);
		print(&y->p, "# and others");
	}
	if (attributes && i == 0) {
		print_line_end(&y->p);
		print(&y->p, "pass");
	}
	y->p.indent = 0;
	print_line_end(&y->p);
	print(&y->p, attributes ? "" : "})\n");
	print(&y->p, "\n");
}

/* The type and all classes that it needs. */
static void py_named(struct py *y, const char *name, const struct shape *s)
{
	y->first = NULL;
	y->last = &y->first;
	if (s->kind == SHAPE_OBJECT && s->members_n) {
		py_members(y, name, s);
	} else {
		print(&y->p, "%s: TypeAlias = ", name);
		py_type(y, s, STR_LIT("Part"));
		print(&y->p, "\n\n");
	}
	for (struct waiting *w = y->first; w && !y->p.err.code; w = w->next)
		py_members(y, w->name, w->shape);
}

static void py_types(struct py *y, const char *name, struct shapes *s)
{
	y->base = name;
	y->classes = 0;
	print_name_defs(&y->p, s, name);
	if (print_needs_name(s->root))
		py_named(y, name, s->root);
	for (size_t i = 0; i < s->defs_n; i++) {
		if (s->defs[i].schema)
			py_named(y, s->defs[i].name, s->defs[i].type);
	}
}

static void py_use(struct py *y, const char *name, const struct shapes *s)
{
	if (print_needs_name(s->root))
		print(&y->p, "%s", name);
	else
		py_type(y, s->root, STR_NONE);
}

static void py_doc(struct py *y, const struct json_val *tool)
{
	autobuf struct buf b = BUF_INIT(CLEAN_CHARS * 4);
	struct str text = json_str(json_get(tool, "description"));

	if (y->p.err.code || clean_text(&b, text, CLEAN_TEXT, CLEAN_CHARS, &y->p.err) < 0 || !b.n)
		return;
	print_line_end(&y->p);
	print(&y->p, "\"\"\"");
	for (size_t i = 0; i < b.n; i++) {
		if (b.p[i] == '\n' && b.p[i + 1] == '\n')
			print(&y->p, "\n");
		else if (b.p[i] == '\n')
			print_line_end(&y->p);
		else if (b.p[i] == '"' || b.p[i] == '\\')
			print(&y->p, "\\%c", b.p[i]);
		else
			print_str(&y->p, (struct str){ b.p + i, 1 });
	}
	print(&y->p, "\"\"\"");
}

static void py_tool(struct py *y, const struct declared_tool *d)
{
	char in_name[NAME_MAX_BYTES + 8], out_name[NAME_MAX_BYTES + 8];
	struct shapes in, out;

	if (print_read(&y->p, d->tool, &in, &out) < 0)
		return;
	snprintf(in_name, sizeof(in_name), "%sInput", d->name->type.p);
	snprintf(out_name, sizeof(out_name), "%sOutput", d->name->type.p);
	py_types(y, in_name, &in);
	py_types(y, out_name, &out);
	print(&y->p, "def %s(input: ", d->name->function.p);
	py_use(y, in_name, &in);
	print(&y->p, "%s) -> Result[", print_is_optional(in.root) ? " = ..." : "");
	py_use(y, out_name, &out);
	print(&y->p, "]:");
	y->p.indent = 1;
	if (!print_is_full(&y->p))
		py_doc(y, d->tool);
	print_line_end(&y->p);
	y->p.indent = 0;
	print(&y->p, "...\n\n");
}

int declare_python(struct buf *to, struct str server, const struct declared_tool *tools, size_t n,
		   struct err *e)
{
	size_t end = to->n + DECLARE_BYTES;
	struct py y = { .p = { .to = to, .language = PRINT_PYTHON } };
	char module[NAME_SERVER_MAX + 2];

	name_python(server, module);
	print(&y.p, "# holt.mcp.%s\n", module);
	print(&y.p,
	      "from typing import Any, Generic, Literal, NoReturn, TypedDict, TypeVar, Union\n"
	      "from typing_extensions import NotRequired, TypeAlias\n\n"
	      "_T = TypeVar(\"_T\")\n\n"
	      "class Ok(TypedDict, Generic[_T]):\n"
	      "    ok: Literal[True]\n    data: _T\n    text: str\n\n"
	      "class Failure(TypedDict):\n"
	      "    ok: Literal[False]\n    error: str\n\n"
	      "Result = Union[Ok[_T], Failure]\n\n");
	for (size_t i = 0; i < n && !y.p.err.code; i++) {
		AUTO(arena_free) struct arena *a = arena_new(PRINT_ARENA);

		if (!a)
			return err_set(e, ERR_LIMIT, "out of memory");
		y.p.arena = a;
		y.p.soft = to->n + DECLARE_TOOL_BYTES < end ? to->n + DECLARE_TOOL_BYTES : end;
		py_tool(&y, &tools[i]);
	}
	if (y.p.err.code)
		*e = y.p.err;
	return y.p.err.code ? -1 : 0;
}
