/* `holt js`: runs JavaScript in the sandbox that the hub has for it, or keeps a module for that. */
#include <stdio.h>

#include "cli/common/file.h"
#include "cli/common/safe.h"
#include "cli/link/ask.h"

enum { CODE_MAX = 512 << 10, BODY_MAX = 6 * CODE_MAX + (64 << 10), EXIT_FAILED = 1 };

static const struct ask_noun js_modules = {
	.path = "/v1/javascript/modules",
	.noun = "module",
	.missing = ERR_INVALID,
	.letters = ASK_LOWER,
	.max = 64,
};

struct js_options {
	struct verb_options common;
	uint64_t timeout_ms, cpu_ms;
	uint32_t heap_mb, output;
	const char *save, *description, *remove;
	struct option_list profiles;
};

static const struct option_row rows[] = {
	OPTION(struct js_options, timeout_ms, OPTION_SECONDS, "timeout", .letter = 't',
	       .arg = "TIME", .min = 10, .max = 600000, .member = "wall_ms", .unit = 1,
	       .doc = "Time limit; 30 s by default, 600 s at most."),
	OPTION(struct js_options, cpu_ms, OPTION_SECONDS, "cpu-time", .arg = "TIME", .min = 10,
	       .max = 60000, .member = "cpu_ms", .unit = 1,
	       .doc = "Limit of CPU time; 5 s by default, 60 s at most."),
	OPTION(struct js_options, heap_mb, OPTION_COUNT, "heap", .arg = "MIB", .min = 1, .max = 512,
	       .member = "heap_mb", .doc = "Memory for values in MiB; 64 by default, 512 at most."),
	PROFILE_ROW(struct js_options),
	OPTION(struct js_options, save, OPTION_TEXT, "register", .arg = "NAME",
	       .doc = "Do not run the code: store it as the module ha:NAME for later code."),
	OPTION(struct js_options, description, OPTION_TEXT, "description", .arg = "TEXT",
	       .member = "description", .doc = "With --register: description of the module."),
	OPTION(struct js_options, remove, OPTION_TEXT, "unregister", .arg = "NAME",
	       .doc = "Delete the module ha:NAME. Takes no FILE."),
	OUTPUT_ROW(struct js_options),
	HELP_ROW(struct js_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

static int js_ask(const struct verb_input *in, struct json_doc **ret, struct err *e)
{
	const struct js_options *o = in->options;
	char path[128] = "/v1/javascript";
	const char *name = in->operands[0];
	autobuf struct buf code = BUF_INIT(CODE_MAX), body = BUF_INIT(BODY_MAX);
	AUTO(hub_link_close) struct hub_link *l = NULL;
	struct json_writer w = json_writer(&body);

	if (o->save && hub_ask_path(&js_modules, path, sizeof(path), o->save, "", e) < 0)
		return -1;
	if ((strcmp(name, "-") == 0 ? file_read_fd(STDIN_FILENO, "standard input", &code, e)
				    : file_read(name, &code, e)) < 0)
		return -1;
	json_write_object(&w);
	json_write_key(&w, o->save ? "source" : "code");
	json_write_str(&w, buf_str(&code));
	if (hub_ask_members(in, &w, e) < 0)
		return -1;
	json_write_object_end(&w);
	if (json_write_done(&w, e) < 0)
		return -1;
	l = hub_link_open(e);
	return l ? hub_link_ask(l, "POST", path, buf_str(&body), ret, e) : -1;
}

static int js_unregister(const char *name, struct json_doc **ret, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = NULL;
	char path[128];

	if (hub_ask_path(&js_modules, path, sizeof(path), name, "", e) < 0 ||
	    !(l = hub_link_open(e)))
		return -1;
	return hub_link_ask(l, "DELETE", path, STR_NONE, ret, e);
}

/* As compilers and linters say where an error is. */
static void js_print_error(const char *file, const struct json_val *x)
{
	struct str stack = json_str(json_get(x, "stack")), limit = json_str(json_get(x, "limit"));
	uint64_t line, column;

	fputs(file, stderr);
	if (json_uint64(json_get(x, "line"), &line) && json_uint64(json_get(x, "column"), &column))
		fprintf(stderr, ":%llu:%llu", (unsigned long long)line, (unsigned long long)column);
	fputs(": ", stderr);
	safe_line(stderr, json_str(json_get(x, "name")));
	fputs(": ", stderr);
	safe_line(stderr, json_str(json_get(x, "message")));
	if (limit.n)
		fprintf(stderr, " [limit: %.*s]", STR_ARG(limit));
	fputc('\n', stderr);
	safe_text(stderr, stack, 0);
}

static int js_print(const char *file, const struct json_val *answer)
{
	struct json_iter lines = json_iter(json_get(answer, "console"));
	struct str value = json_str(json_get(answer, "value"));

	while (json_next(&lines)) {
		struct str level = json_str(json_get(lines.val, "level"));
		struct str text = json_str(json_get(lines.val, "text"));
		FILE *to = str_is(level, "warn") || str_is(level, "error") ? stderr : stdout;

		fwrite(text.p, 1, text.n, to);
		fputc('\n', to);
	}
	if (json_bool(json_get(answer, "ok"))) {
		if (value.n)
			printf("%.*s\n", STR_ARG(value));
		return 0;
	}
	js_print_error(file, json_get(answer, "error"));
	return EXIT_FAILED;
}

static int js_check(const struct verb_input *in, struct err *e)
{
	const struct js_options *o = in->options;

	if (o->remove ? in->n_operands || o->save : !in->n_operands)
		return err_set(e, ERR_INVALID, "it takes a FILE, or --unregister NAME");
	if (o->description && !o->save)
		return err_set(e, ERR_INVALID, "--description goes with --register");
	if (o->save && (o->timeout_ms || o->cpu_ms || o->heap_mb || o->profiles.n))
		return err_set(e, ERR_INVALID,
			       "what is registered is not run: no limits or profiles");
	return 0;
}

static int js_run(const struct verb_input *in, struct err *e)
{
	const struct js_options *o = in->options;
	AUTO(json_free) struct json_doc *doc = NULL;

	if ((o->remove ? js_unregister(o->remove, &doc, e) : js_ask(in, &doc, e)) < 0)
		return -1;
	if (o->output == OUTPUT_JSON && hub_link_print(json_root(doc), e) < 0)
		return -1;
	if (o->save || o->remove) {
		if (o->output != OUTPUT_JSON)
			safe_puts(stdout, json_str(json_get(json_root(doc), "module")));
		return 0;
	}
	if (o->output != OUTPUT_JSON)
		return js_print(in->operands[0], json_root(doc));
	return json_bool(json_get(json_root(doc), "ok")) ? 0 : EXIT_FAILED;
}

const struct verb js_verb = {
	.name = "js",
	.usage = "[OPTION...] FILE|-",
	.doc = "Run JavaScript in a sandbox for code, or keep a module for it.",
	.more = "Prints what the code prints, and its value as JSON. Exits with 1 where the code\n"
		"fails, with its error on standard error.",
	.page = "holt-js",
	.options = &options,
	.size = sizeof(struct js_options),
	.max_operands = 1,
	.check = js_check,
	.run = js_run,
	.fail = hub_link_fail,
};
