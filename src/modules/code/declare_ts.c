#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "modules/code/clean.h"
#include "modules/code/print.h"

enum {
	LINE_DEPTH = 3, /* of a summary */
};

/* On one line a definition stands where it is used; else it has a name. */
struct ts {
	struct printer p;
	bool line;
};

static void ts_type(struct ts *t, const struct shape *s, unsigned depth, bool inside);

static void ts_parts(struct ts *t, const struct shape *s, unsigned depth)
{
	for (size_t i = 0; i < s->parts_n; i++) {
		if (i > 0)
			print(&t->p, s->kind == SHAPE_BOTH ? " & " : " | ");
		if (print_is_full(&t->p)) {
			print(&t->p, "unknown");
			return;
		}
		ts_type(t, s->parts[i], depth + 1, true);
	}
}

static void ts_tuple(struct ts *t, const struct shape *s, unsigned depth)
{
	print(&t->p, "[");
	for (size_t i = 0; i < s->parts_n; i++) {
		if (i > 0)
			print(&t->p, ", ");
		ts_type(t, s->parts[i], depth + 1, true);
		if (i >= s->needed)
			print(&t->p, "?");
	}
	if (s->rest) {
		print(&t->p, "%s...", s->parts_n ? ", " : "");
		ts_type(t, s->rest, depth + 1, true);
		print(&t->p, "[]");
	}
	print(&t->p, "]");
}

static void ts_member_end(struct ts *t, bool first)
{
	if (!t->line)
		print_line_end(&t->p);
	else if (!first)
		print(&t->p, "; ");
}

static void ts_member(struct ts *t, const struct shape_member *m, unsigned depth)
{
	if (!t->line)
		print_comment(&t->p, m->schema, PRINT_MEMBER_CHARS);
	if (name_is_plain(m->name))
		print_str(&t->p, m->name);
	else
		print_string(&t->p, m->name);
	print(&t->p, "%s: ", m->optional ? "?" : "");
	ts_type(t, m->type, depth + 1, false);
	if (!t->line)
		print(&t->p, ";");
}

static void ts_object(struct ts *t, const struct shape *s, unsigned depth)
{
	bool cut = false;
	size_t i;

	if (!s->members_n) {
		print(&t->p, "{");
		if (s->rest) {
			print(&t->p, " [key: string]: ");
			ts_type(t, s->rest, depth + 1, false);
			print(&t->p, " ");
		}
		print(&t->p, "}");
		return;
	}
	print(&t->p, "{");
	t->p.indent++;
	for (i = 0; i < s->members_n && !cut; i++) {
		cut = print_is_full(&t->p);
		if (cut)
			break;
		ts_member_end(t, i == 0);
		ts_member(t, &s->members[i], depth);
	}
	/* The type of other members must be one that all named ones are. */
	if (s->rest || cut) {
		ts_member_end(t, i == 0);
		print(&t->p, "[key: string]: unknown%s", t->line ? "" : ";");
	}
	t->p.indent--;
	if (!t->line)
		print_line_end(&t->p);
	print(&t->p, "}");
}

static void ts_type(struct ts *t, const struct shape *s, unsigned depth, bool inside)
{
	static const char *const words[] = {
		[SHAPE_ANY] = "unknown",   [SHAPE_NEVER] = "never", [SHAPE_NULL] = "null",
		[SHAPE_BOOL] = "boolean",  [SHAPE_INT] = "number",  [SHAPE_NUMBER] = "number",
		[SHAPE_STRING] = "string",
	};
	bool list = s->kind == SHAPE_UNION || s->kind == SHAPE_BOTH;

	if (s->kind < ARRAY_LEN(words)) {
		print(&t->p, "%s", words[s->kind]);
		return;
	}
	if (print_is_full(&t->p) || (t->line && depth > LINE_DEPTH)) {
		print(&t->p, "unknown");
		return;
	}
	if (list && inside)
		print(&t->p, "(");
	if (list)
		ts_parts(t, s, depth);
	else if (s->kind == SHAPE_LITERAL)
		print_literal(&t->p, s->literal);
	else if (s->kind == SHAPE_ARRAY)
		ts_type(t, s->rest, depth + 1, true), print(&t->p, "[]");
	else if (s->kind == SHAPE_TUPLE)
		ts_tuple(t, s, depth);
	else if (s->kind == SHAPE_OBJECT)
		ts_object(t, s, depth);
	else if (t->line)
		ts_type(t, s->def->type, depth + 1, inside);
	else
		print(&t->p, "%s", shape_def_of(s)->name);
	if (list && inside)
		print(&t->p, ")");
}

/* An interface or an alias, and those of its definitions. */
static void ts_named(struct ts *t, const char *name, const struct shape *s)
{
	bool object = s->kind == SHAPE_OBJECT && s->members_n;

	print_line_end(&t->p);
	print(&t->p, object ? "interface %s " : "type %s = ", name);
	if (object)
		ts_object(t, s, 0);
	else
		ts_type(t, s, 0, false);
	print(&t->p, "%s", object ? "" : ";");
}

static void ts_types(struct ts *t, const char *name, struct shapes *s)
{
	print_name_defs(&t->p, s, name);
	if (print_needs_name(s->root))
		ts_named(t, name, s->root);
	for (size_t i = 0; i < s->defs_n; i++) {
		if (s->defs[i].schema)
			ts_named(t, s->defs[i].name, s->defs[i].type);
	}
}

static void ts_use(struct ts *t, const char *name, const struct shapes *s)
{
	if (print_needs_name(s->root))
		print(&t->p, "%s", name);
	else if (s->root->kind == SHAPE_OBJECT && !s->root->rest)
		print(&t->p, "Record<string, never>");
	else
		ts_type(t, s->root, 0, false);
}

static void ts_tool(struct ts *t, const struct declared_tool *d)
{
	char in_name[NAME_MAX_BYTES + 8], out_name[NAME_MAX_BYTES + 8];
	struct shapes in, out;

	if (print_read(&t->p, d->tool, &in, &out) < 0)
		return;
	snprintf(in_name, sizeof(in_name), "%sInput", d->name->type.p);
	snprintf(out_name, sizeof(out_name), "%sOutput", d->name->type.p);
	ts_types(t, in_name, &in);
	ts_types(t, out_name, &out);
	print_line_end(&t->p);
	if (!print_is_full(&t->p))
		print_comment(&t->p, d->tool, CLEAN_CHARS);
	print(&t->p, "export function %s(input%s: ", d->name->function.p,
	      print_is_optional(in.root) ? "?" : "");
	ts_use(t, in_name, &in);
	print(&t->p, "): Promise<Result<");
	ts_use(t, out_name, &out);
	print(&t->p, ">>;");
}

int declare_typescript(struct buf *to, struct str server, const struct declared_tool *tools,
		       size_t n, struct err *e)
{
	size_t end = to->n + DECLARE_BYTES;
	struct ts t = { .p = { .to = to, .language = PRINT_TYPESCRIPT, .indent = 1 } };

	print(&t.p, "declare module \"host:mcp-%.*s\" {", STR_CUT(server, NAME_SERVER_MAX));
	print_line_end(&t.p);
	print(&t.p, "export type Result<T> = { ok: true; data: T; text: string } | "
		    "{ ok: false; error: string };");
	for (size_t i = 0; i < n && !t.p.err.code; i++) {
		AUTO(arena_free) struct arena *a = arena_new(PRINT_ARENA);

		if (!a)
			return err_set(e, ERR_LIMIT, "out of memory");
		t.p.arena = a;
		t.p.soft = to->n + DECLARE_TOOL_BYTES < end ? to->n + DECLARE_TOOL_BYTES : end;
		ts_tool(&t, &tools[i]);
	}
	print(&t.p, "\n}\n");
	if (t.p.err.code)
		*e = t.p.err;
	return t.p.err.code ? -1 : 0;
}

int declare_line(struct buf *to, const struct declared_tool *tool, struct err *e)
{
	AUTO(arena_free) struct arena *a = arena_new(PRINT_ARENA);
	struct ts t = { .p = { .to = to, .language = PRINT_TYPESCRIPT, .arena = a }, .line = true };
	struct shapes in, out;

	if (!a)
		return err_set(e, ERR_LIMIT, "out of memory");
	t.p.soft = to->n + DECLARE_LINE;
	if (print_read(&t.p, tool->tool, &in, &out) == 0) {
		print(&t.p, "%s(", tool->name->function.p);
		if (in.root->kind != SHAPE_OBJECT || in.root->members_n || in.root->rest) {
			print(&t.p, "input%s: ", print_is_optional(in.root) ? "?" : "");
			ts_type(&t, in.root, 0, false);
		}
		print(&t.p, "): Promise<Result<");
		ts_type(&t, out.root, 0, false);
		print(&t.p, ">>");
	}
	if (t.p.err.code)
		*e = t.p.err;
	return t.p.err.code ? -1 : 0;
}
