/* `holt exec`: runs a command in a sandbox of the hub, in the foreground (session.h) or detached
 * (-d). */
#include <stdio.h>

#include "cli/exec/session.h"
#include "cli/common/safe.h"
#include "cli/common/secret.h"
#include "cli/link/ask.h"
#include "box/host/box.h"

enum { EXIT_HOLT = 125, DAY_S = 86400 };

struct exec_options {
	struct verb_options common;
	struct env_options env;
	struct secret_options secrets;
	const char *cwd;
	struct exec_how how;
	uint64_t timeout_ms;
	bool interactive, tty, detach;
	const char *id;
};

static const struct option_row rows[] = {
	OPTION(struct exec_options, interactive, OPTION_FLAG, "interactive", .letter = 'i',
	       .doc = "Pass on standard input. Without this it is not read. With -d, keep it open "
		      "for holt attach."),
	OPTION(struct exec_options, tty, OPTION_FLAG, "tty", .letter = 't',
	       .doc = "Run on a terminal. With -i it is connected to yours, with -d holt attach "
		      "connects it."),
	ENV_ROWS(struct exec_options, env),
	SECRET_OPTION_ROWS(struct exec_options, secrets),
	OPTION(struct exec_options, cwd, OPTION_TEXT, "workdir", .letter = 'w', .arg = "DIR",
	       .member = "working_dir", .doc = "Working directory; by default the sandbox's."),
	OPTION(struct exec_options, how.user, OPTION_CHOICE, "user", .letter = 'u',
	       .arg = "user|root", .same = "1000|0", .member = "user",
	       .doc = "User of the program; by default the sandbox's."),
	OPTION(struct exec_options, timeout_ms, OPTION_SECONDS, "timeout", .arg = "TIME", .min = 1,
	       .max = 86400000,
	       .doc = "Kill the program and its descendants after this time. Default: a day, or "
		      "with -d never."),
	OPTION(struct exec_options, detach, OPTION_FLAG, "detach", .letter = 'd',
	       .doc = "Run in the background, and print the id for holt logs and holt attach."),
	OPTION(struct exec_options, id, OPTION_TEXT, "id", .arg = "ID", .member = "exec_id",
	       .doc = "With -d: use this id instead of a generated one."),
	HELP_ROW(struct exec_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true, .program_at = 1);

static void write_flag(struct json_writer *w, const char *name, bool value)
{
	json_write_key(w, name);
	json_write_bool(w, value);
}

/* Members of the request that both ways share. */
static int write_command(const struct verb_input *in, struct json_writer *w, struct err *e)
{
	const struct exec_options *o = in->options;

	if (in->rest && in->rest[0]) {
		hub_link_text(w, "command", in->rest[0]);
		json_write_key(w, "args");
		json_write_array(w);
		for (char **arg = in->rest + 1; *arg; arg++)
			json_write_text(w, *arg);
		json_write_array_end(w);
	} else if (o->detach) {
		hub_link_text(w, "command", "exec \"$0\" -i"); /* the shell that runs this */
	}
	json_write_key(w, "timeout");
	json_write_uint(w, o->timeout_ms ? (o->timeout_ms + 999) / 1000 : o->detach ? 0 : DAY_S);
	if (hub_ask_members(in, w, e) < 0 || hub_link_secrets(w, &o->secrets, e) < 0)
		return -1;
	return hub_link_env(w, &o->env, o->tty, e);
}

/* ---- left running -------------------------------------------------------------------------- */

static int write_detached(const struct verb_input *in, struct json_writer *w, struct err *e)
{
	const struct exec_options *o = in->options;

	json_write_object(w);
	hub_link_text(w, "sandbox", in->operands[0]);
	if (write_command(in, w, e) < 0)
		return -1;
	write_flag(w, "background", true);
	if (o->tty)
		hub_link_tty(w);
	else if (o->interactive)
		write_flag(w, "stdin_open", true);
	json_write_object_end(w);
	return json_write_done(w, e);
}

static int detach(const struct verb_input *in, struct err *e)
{
	autobuf struct buf text = BUF_INIT(HUB_BODY_MAX);
	struct json_writer w = json_writer(&text);
	AUTO(hub_link_close) struct hub_link *l = NULL;
	AUTO(json_free) struct json_doc *doc = NULL;

	if (write_detached(in, &w, e) == 0)
		l = hub_link_open(e);
	if (!l || hub_link_ask(l, "POST", "/v1/exec", buf_str(&text), &doc, e) < 0)
		return -1;
	safe_puts(stdout, json_str(json_get(json_root(doc), "exec_id")));
	return 0;
}

/* ---- followed ------------------------------------------------------------------------------ */

static int write_open(const struct verb_input *in, struct json_writer *w, struct err *e)
{
	const struct exec_options *o = in->options;

	json_write_object(w);
	json_write_key(w, "open");
	json_write_object(w);
	if (write_command(in, w, e) < 0)
		return -1;
	write_flag(w, "stdin", o->interactive);
	if (o->tty)
		hub_link_tty(w);
	json_write_object_end(w);
	json_write_object_end(w);
	return json_write_done(w, e);
}

static int follow(const struct verb_input *in, struct err *e)
{
	const struct exec_options *o = in->options;
	autobuf struct buf open = BUF_INIT(HUB_BODY_MAX);
	struct json_writer w = json_writer(&open);
	AUTO(hub_link_close) struct hub_link *l = NULL;
	char path[512];

	if (write_open(in, &w, e) == 0 &&
	    hub_link_path(path, sizeof(path), in->operands[0], "/exec", e) == 0)
		l = hub_link_open(e);
	return l ? exec_session(l,
				&(struct exec_session_spec){ path, buf_str(&open), o->interactive,
							     o->tty },
				e)
		 : -1;
}

/* ---- the verb ------------------------------------------------------------------------------ */

static int exec_check(const struct verb_input *in, struct err *e)
{
	const struct exec_options *o = in->options;

	if (o->id && !o->detach)
		return err_set(e, ERR_INVALID, "--id is for -d");
	if (!(in->rest && in->rest[0]) && !(o->tty && (o->interactive || o->detach)))
		return err_set(e, ERR_INVALID,
			       "a program to run is missing; with -it it may be: then it is a "
			       "shell");
	return 0;
}

static int exec_run(const struct verb_input *in, struct err *e)
{
	const struct exec_options *o = in->options;

	return o->detach ? detach(in, e) : follow(in, e);
}

const struct verb exec_verb = {
	.name = "exec",
	.usage = "[OPTION...] NAME [--] [PROGRAM [ARGUMENT...]]",
	.doc = "Run a command in a sandbox of the hub.",
	.more = "The exit status is the command's; 124 after a timeout, 127 if it is not there,\n"
		"126 if it can't be run, 125 if Holt failed. Standard input is read only with\n"
		"-i. With -it and no PROGRAM it runs a shell.",
	.page = "holt-sandbox",
	.options = &options,
	.size = sizeof(struct exec_options),
	.min_operands = 1,
	.usage_exit = EXIT_HOLT,
	.check = exec_check,
	.run = exec_run,
	.fail = hub_link_fail,
};
