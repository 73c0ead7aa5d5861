#include "door/mcp/tools.h"

#include "door/mcp/common.h"

struct write_params {
	struct str sandbox, path, content, mode;
	enum encoding encoding;
	bool make_parents;
};

static const struct field write_fields[] = {
	SANDBOX_ROW(struct write_params),
	FIELD(struct write_params, path, .flags = FIELD_REQUIRED, .min = 1, .max = TOOL_PATH_MAX,
	      .doc = "Path inside; relative ones start at the sandbox's working directory."),
	FIELD(struct write_params, content, .flags = FIELD_REQUIRED | FIELD_NUL_OK,
	      .doc = "The whole new content of the file."),
	FIELD_ENUM(struct write_params, encoding, encoding_names,
		   .def = DEFAULT_ENUM(ENCODING_UTF8),
		   .doc = "What content is: text, or any bytes in base64."),
	FIELD(struct write_params, mode, .min = 3, .max = 5,
	      .doc = "Permission bits of a new file in octal, such as 0755; 0644 if absent. A file "
		     "that is there keeps its own."),
	FIELD(struct write_params, make_parents, .def = DEFAULT_BOOL(true),
	      .doc = "Make the directories above it that are missing."),
};
static const struct field_table write_input = FIELD_TABLE(struct write_params, write_fields);

struct write_result {
	struct str sandbox, path;
	uint64_t bytes;
};

static const struct field result_fields[] = {
	FIELD(struct write_result, sandbox, .flags = FIELD_REQUIRED,
	      .doc = "Where it was written."),
	FIELD(struct write_result, path, .flags = FIELD_REQUIRED,
	      .doc = "The path, as it was given."),
	FIELD(struct write_result, bytes, .flags = FIELD_REQUIRED, .doc = "Bytes written."),
};
static const struct field_table write_output = FIELD_TABLE(struct write_result, result_fields);

struct write_run {
	struct call *call;
	const struct write_params *params;
	struct str bytes;
};

/* Three or four octal digits, with or without a leading 0 or 0o. */
static int parse_mode(struct str text, uint32_t *ret, struct err *e)
{
	uint32_t mode = 0;
	size_t i = str_starts(text, "0o") ? 2 : 0;

	for (; i < text.n; i++) {
		if (text.p[i] < '0' || text.p[i] > '7')
			return err_set(e, ERR_INVALID, "mode: octal digits, such as \"0755\"");
		mode = mode * 8 + (uint32_t)(text.p[i] - '0');
	}
	if (mode > 0777 || (text.n > 0 && mode == 0))
		return err_set(e, ERR_INVALID, "mode: from 0001 to 0777");
	*ret = mode;
	return 0;
}

static void on_written(void *arg, const struct err *err)
{
	struct write_run *r = arg;
	const struct write_params *p = r->params;
	struct write_result result = { .sandbox = p->sandbox,
				       .path = p->path,
				       .bytes = r->bytes.n };

	if (err)
		call_fail(r->call, err);
	else
		call_answer(r->call, &result);
}

static void run(struct call *c, const void *params)
{
	const struct write_params *p = params;
	struct file_write_opts opts = { .mode = 0, .make_parents = p->make_parents };
	struct err e = ERR_INIT;
	struct sandbox *sb = call_sandbox(c, p->sandbox, &e);
	struct write_run *r = sb ? arena_alloc(call_arena(c), sizeof(*r), &e) : NULL;

	if (!r || tool_bytes(c, "content", p->content, p->encoding, &r->bytes, &e) < 0 ||
	    parse_mode(p->mode, &opts.mode, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	r->call = c;
	r->params = p;
	file_write_start(sb, p->path, r->bytes, &opts, on_written, r);
}

const struct tool sandbox_write_file_tool = {
	.op =
		&(const struct op){
			.action = "files.write",
			.effect = OP_WRITE,
			.flags = OP_REPLACES | OP_IDEMPOTENT,
			.request = &write_input,
			.target = OP_TARGET(struct write_params, sandbox),
			.result = &write_output,
			.run = run,
		},
	.name = "sandbox_write_file",
	.title = "Write a file",
	.doc = "Writes a whole file in a sandbox, new or in place of the old one. Others see the old "
	       "or the new content, never a part.",
	.says = "Wrote {bytes} bytes to {path} in sandbox {sandbox}",
};
