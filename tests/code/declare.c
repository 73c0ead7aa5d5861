/*
 * Prints declarations for tests/blackbox/test_declarations.py: declare typescript|python|lines FILE
 * SERVER, where FILE has a JSON array of tools.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "modules/code/declare.h"

static int fail(const struct err *e)
{
	fprintf(stderr, "%s\n", e->msg);
	return 1;
}

static int read_file(const char *path, struct buf *b, struct err *e)
{
	FILE *f = fopen(path, "r");
	int r = 0;

	if (!f)
		return err_sys(e, errno, "open %s", path);
	while (r == 0 && !feof(f) && !ferror(f)) {
		char text[1 << 16];

		r = buf_add(b, text, fread(text, 1, sizeof(text), f), e);
	}
	fclose(f);
	return r;
}

static int print_lines(struct buf *to, const struct declared_tool *tools, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		if (declare_line(to, &tools[i], e) < 0 || buf_add(to, "\n", 1, e) < 0)
			return -1;
	}
	return 0;
}

static int print_all(const char *what, struct str server, const struct json_val *list,
		     struct arena *a, struct buf *to, struct err *e)
{
	size_t n = json_len(list);
	struct str *names = arena_array(a, n, sizeof(*names), e);
	struct tool_name *made = arena_array(a, n, sizeof(*made), e);
	struct declared_tool *tools = arena_array(a, n, sizeof(*tools), e);
	struct json_iter it = json_iter(list);

	if (!names || !made || !tools)
		return -1;
	while (json_next(&it)) {
		names[it.index] = json_str(json_get(it.val, "name"));
		tools[it.index] = (struct declared_tool){ &made[it.index], it.val };
	}
	if (names_make(server, names, n, a, made, e) < 0)
		return -1;
	if (what[0] == 't')
		return declare_typescript(to, server, tools, n, e);
	return what[0] == 'p' ? declare_python(to, server, tools, n, e)
			      : print_lines(to, tools, n, e);
}

int main(int argc, char **argv)
{
	const struct json_options options = { .bytes = 64 << 20, .values = 4 << 20, .depth = 1024 };
	autobuf struct buf text = BUF_INIT(64 << 20), out = BUF_INIT(64 << 20);
	AUTO(arena_free) struct arena *a = arena_new(64 << 20);
	AUTO(json_free) struct json_doc *d = NULL;
	struct err e;

	if (argc != 4 || !a)
		return 2;
	if (read_file(argv[2], &text, &e) < 0)
		return fail(&e);
	d = json_parse(buf_str(&text), &options, &e);
	if (!d || print_all(argv[1], str_of(argv[3]), json_root(d), a, &out, &e) < 0)
		return fail(&e);
	fwrite(buf_str(&out).p, 1, out.n, stdout);
	return 0;
}
