/* `holt exec`: a command in a sandbox of the hub. What it prints comes as it goes; a reader of ours that is slow
 * holds it, and one that goes away ends it, since the hub sees us go. */
#include <stdio.h>
#include <unistd.h>

#include "base/base64.h"
#include "cli/file.h"
#include "cli/hub_link.h"
#include "cli/safe.h"
#include "cli/verb.h"

enum { EXIT_HOLT = 125, CHUNK_MAX = 16 << 20 };

struct exec_options {
	struct verb_options common;
	struct option_list env;
	const char *cwd;
	uint64_t timeout_ms;
	bool detach;
	const char *id;
};

static const struct option_row rows[] = {
	OPTION(struct exec_options, env, OPTION_LIST, "env", .letter = 'e', .arg = "NAME[=VALUE]",
	       .doc = "Set a variable; without a value, to the one it has here. May be repeated."),
	OPTION(struct exec_options, cwd, OPTION_TEXT, "workdir", .letter = 'w', .arg = "DIR",
	       .doc = "Where to start inside; the sandbox's own if not said."),
	OPTION(struct exec_options, timeout_ms, OPTION_SECONDS, "timeout", .letter = 't',
	       .arg = "TIME", .min = 1, .max = 86400000,
	       .doc = "Kill it and its descendants after this long, a day if not said; never with -d."),
	OPTION(struct exec_options, detach, OPTION_FLAG, "detach", .letter = 'd',
	       .doc = "Leave it running, and print its id for holt logs, attach, wait and kill."),
	OPTION(struct exec_options, id, OPTION_TEXT, "id", .arg = "ID",
	       .doc = "With -d: this id, instead of one that is made."),
	HELP_ROW(struct exec_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);
enum { DAY_S = 86400 };

struct running {
	int64_t status; /* of the command; -1: it is not known yet */
	struct buf bytes;
};

static int write_body(const struct verb_input *in, struct json_writer *w, struct err *e)
{
	const struct exec_options *o = in->options;

	json_write_object(w);
	hub_link_text(w, "sandbox", in->operands[0]);
	hub_link_text(w, "command", in->rest[0]);
	hub_link_text(w, "working_dir", o->cwd);
	json_write_key(w, "timeout");
	json_write_uint(w, o->timeout_ms ? (o->timeout_ms + 999) / 1000 : o->detach ? 0 : DAY_S);
	json_write_key(w, "args");
	json_write_array(w);
	for (char **arg = in->rest + 1; *arg; arg++)
		json_write_text(w, *arg);
	json_write_array_end(w);
	if (hub_link_env(w, &o->env, e) < 0)
		return -1;
	if (o->detach) {
		json_write_key(w, "background");
		json_write_bool(w, true);
		hub_link_text(w, "exec_id", o->id);
	}
	json_write_object_end(w);
	return json_write_done(w, e);
}

static int pass_on(struct running *r, int fd, struct str text, struct err *e)
{
	r->bytes.n = 0;
	if (base64_decode(&r->bytes, text, e) < 0)
		return -1;
	return file_write_fd(fd, fd == STDOUT_FILENO ? "standard output" : "standard error",
			     buf_str(&r->bytes), e);
}

/* Without an end of its own it has failed; else what a bare exit status would leave to guess is said. */
static int take_end(struct running *r, const struct json_val *line, struct err *e)
{
	struct str why = json_str(json_get(line, "error"));

	if (!json_int64(json_get(line, "exit_code"), &r->status))
		return err_set(e, ERR_TRANSPORT, "the hub sent something unknown");
	if (r->status < 0) {
		hub_link_refused(json_str(json_get(line, "code")), why, e);
		return hub_link_dimension(json_str(json_get(line, "dimension")), e);
	}
	if (why.n) {
		fputs("holt: ", stderr);
		safe_line(stderr, why);
		fputc('\n', stderr);
	}
	return 0;
}

static int take(void *arg, const struct json_val *line, struct err *e)
{
	struct running *r = arg;
	struct str kind = json_str(json_get(line, "kind"));
	struct str stream = json_str(json_get(line, "stream"));

	if (str_is(kind, "chunk"))
		return pass_on(r, str_is(stream, "stderr") ? STDERR_FILENO : STDOUT_FILENO,
			       json_str(json_get(line, "data")), e);
	if (str_is(kind, "exit"))
		return take_end(r, line, e);
	return err_set(e, ERR_TRANSPORT, "the hub sent something unknown");
}

static int detach(struct str body, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(e);
	AUTO(json_free) struct json_doc *doc = NULL;

	if (!l || hub_link_ask(l, "POST", "/v1/exec", body, &doc, e) < 0)
		return -1;
	safe_line(stdout, json_str(json_get(json_root(doc), "exec_id")));
	putchar('\n');
	return 0;
}

static int run(const struct verb_input *in)
{
	const struct exec_options *o = in->options;
	struct err e = ERR_INIT;
	AUTO(hub_link_close) struct hub_link *l = NULL;
	autobuf struct buf text = BUF_INIT(HUB_BODY_MAX);
	struct json_writer w = json_writer(&text);
	struct running r = { .status = -1, .bytes = BUF_INIT(CHUNK_MAX) };
	int rc = -1;

	if (!in->rest || !in->rest[0]) {
		err_set(&e, ERR_INVALID, "something is missing: -- and a program to run");
		return cli_wrong_usage(in->verb, &e);
	}
	if (o->id && !o->detach) {
		err_set(&e, ERR_INVALID, "--id is for -d");
		return cli_wrong_usage(in->verb, &e);
	}
	if (write_body(in, &w, &e) < 0)
		return hub_link_fail(&e);
	if (o->detach)
		return detach(buf_str(&text), &e) < 0 ? hub_link_fail(&e) : 0;
	l = hub_link_open(&e);
	if (l)
		rc = hub_link_lines(l, "/v1/exec/stream", buf_str(&text), take, &r, &e);
	buf_fini(&r.bytes);
	if (rc == 0 && r.status < 0)
		rc = err_set(&e, ERR_TRANSPORT, "the hub did not say how it ended");
	return rc < 0 ? hub_link_fail(&e) : (int)r.status;
}

const struct verb exec_verb = {
	.name = "exec",
	.usage = "NAME [OPTION...] -- PROGRAM [ARGUMENT...]",
	.doc = "Run a command in a sandbox of the hub.",
	.more = "Its exit status is the command's, 124 where its time was over, 126 where it\n"
		"could not be run. Its standard input is empty.",
	.page = "holt-sandbox",
	.options = &options,
	.size = sizeof(struct exec_options),
	.min_operands = 1,
	.max_operands = 1,
	.usage_exit = EXIT_HOLT,
	.run = run,
};
