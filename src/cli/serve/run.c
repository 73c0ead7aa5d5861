#include "cli/common/verb.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <uv.h>

#include "base/log.h"
#include "base/worktree.h"
#include "cli/serve/elsewhere.h"
#include "cli/serve/engine.h"
#include "cli/serve/request.h"
#include "cli/serve/run_hub.h"
#include "cli/images/store.h"
#include "cli/common/env.h"
#include "cli/common/feed.h"
#include "cli/common/outlet.h"
#include "cli/common/safe.h"
#include "cli/common/secret.h"
#include "cli/common/tty.h"
#include "cli/common/volume.h"
#include "cli/common/verb_call.h"
#include "hub/core/output.h"
#include "hub/core/report.h"
#include "op/secret.h"

/*
 * One command in a sandbox of its own: create, exec, end. Its streams are ours: one that its reader
 * leaves full holds the command back as a pipe would, while signals and timeouts go on.
 */

enum { JSON_OUTPUT = 1024 * 1024, EXIT_HOLT = 125, MOUNTS_MAX = 32, FULL = 128 << 10 };

/* The request as policy and audit see it. */
struct run_request {
	struct str image, cwd;
	struct field_strs command, volumes, hosts, env, network, services;
	struct secret_refs secrets;
	struct exec_how how;
	uint64_t timeout_ms, memory, disk;
	uint32_t pids, cpu_milli, open_files;
	bool root, debug;
	struct str allow;
	bool interactive, tty;
	const struct net_grant *grant; /* what network and services say */
};

/* said: of the request, what an option says as it is. */
struct run_options {
	struct verb_options common;
	struct run_request said;
	struct engine_options engine;
	struct option_list mounts, modules;
	struct network_options network;
	struct env_options env;
	struct secret_options secrets;
	const char *cwd, *image, *config, *request;
	uint32_t user, no_network;
	bool json, schema, remove;
};

static const struct option_row rows[] = {
	OPTION(struct run_options, said.interactive, OPTION_FLAG, "interactive", .letter = 'i',
	       .doc = "Pass on standard input. Without this it is not read."),
	OPTION(struct run_options, said.tty, OPTION_FLAG, "tty", .letter = 't',
	       .doc = "Run on a terminal. With -i it is connected to yours."),
	OPTION(struct run_options, mounts, OPTION_LIST, "volume", .letter = 'v',
	       .arg = "HOST:INSIDE[:ro|rw|rw-all[,size=N]]",
	       .doc = "Make a directory or file of the host visible inside, read-only by default. "
		      "size= needs a file system that is no larger. May be repeated."),
	ENV_ROWS(struct run_options, env),
	SECRET_OPTION_ROWS(struct run_options, secrets),
	OPTION(struct run_options, cwd, OPTION_TEXT, "workdir", .letter = 'w', .arg = "DIR",
	       .doc = "Working directory inside; by default the image's, else /workspace."),
	OPTION(struct run_options, said.timeout_ms, OPTION_SECONDS, "timeout", .arg = "TIME",
	       .min = 1, .max = 31536000000,
	       .doc = "Kill the command and its descendants after this time: 30, 1.5, 5m; by "
		      "default never."),
	CONFIG_ROW(struct run_options, config),
	ENGINE_ROWS(struct run_options, engine),
	OPTION(struct run_options, image, OPTION_TEXT, "template", .arg = "NAME",
	       .doc = "Template of the sandbox: an image, or host, the default."),
	OPTION(struct run_options, image, OPTION_TEXT, "image", .arg = "NAME",
	       .doc = "The same as --template."),
	USER_ROW(struct run_options),
	OPTION(struct run_options, said.debug, OPTION_FLAG, "debug",
	       .doc = "Let its programs trace each other, for gdb, strace and sanitizers."),
	OWN_NETWORK_ROWS(struct run_options, network),
	NO_NETWORK_ROW(struct run_options),
	OPTION(struct run_options, modules, OPTION_LIST, "module", .arg = "NAME",
	       .doc = "Let it call this module's tools; '*' for all modules. It then runs in a "
		      "sandbox of the hub. May be repeated."),
	OPTION(struct run_options, json, OPTION_FLAG, "json",
	       .doc = "Print one JSON object with result, output and usage."),
	OPTION(struct run_options, remove, OPTION_FLAG, "rm",
	       .doc = "Changes nothing: the sandbox always ends with its command."),
	OPTION(struct run_options, request, OPTION_TEXT, "request", .arg = "FILE|-",
	       .doc = "Send the hub this file, a request of the contract for agents, and print the "
		      "answer. Other options are ignored."),
	OPTION(struct run_options, schema, OPTION_FLAG, "schema",
	       .doc = "Print the JSON Schema of such requests and answers."),
	HELP_ROW(struct run_options),
};
static const struct option_table options = OPTION_TABLE(rows);

/* Those of our own terminal come last: without one of the command's they are not watched. */
static const int watched[] = { SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGCONT };
enum { WATCHED_OF_TTY = 2 };

struct run {
	const struct verb_input *in;
	const struct run_options *o;
	uv_loop_t loop;
	uv_signal_t signals[ARRAY_LEN(watched)];
	size_t n_signals;
	struct verb_call *call;
	struct network_options network; /* with what the image wants */
	struct image image; /* zeros: it is not asked what it wants */
	struct grants grants;
	struct box *box;
	struct nets *nets; /* NULL: nothing is granted */
	struct net *net;
	struct sandbox *sandbox;
	struct exec *exec; /* while it runs */
	struct feed feed;
	struct outlet to_out, to_err;
	struct output out, err; /* --json */
	bool signalled; /* the command had one from us */
	int lost; /* the exit status when our output can't be written any more; 0: it can */
	bool exited, folder_full;
	struct exec_result result;
	int status;
	bool ending;

	struct volume_words volumes[MOUNTS_MAX];
	struct sandbox_mount mounts[MOUNTS_MAX];
	size_t n_mounts; /* those of volumes, then of commons */
	char commons[MOUNTS_MAX][PATH_MAX]; /* worktree_common() of volumes */
	struct env_words vars;
	struct env_var env[ENV_VARS_MAX];
	struct secret_words secret_words;
	struct secret_ref refs[SECRET_WORDS_MAX];
	const struct exec_secret *secrets;
	size_t n_secrets;
	struct str argv[EXEC_ARGS_MAX];
	size_t n_argv;

	struct run_request request;
	struct str texts[4 * OPTION_LIST_MAX + MOUNTS_MAX];
	size_t n_texts;
	struct err failed;
};

/* ---- what the options say ------------------------------------------------------------------ */

static int fill_mount(struct run *r, size_t i, struct err *e)
{
	struct volume_words *v = &r->volumes[i];

	if (volume_read(r->o->mounts.p[i], v, e) < 0)
		return -1;
	r->mounts[i] = (struct sandbox_mount){
		.host = str_of(v->host),
		.guest = v->inside,
		.writable = v->writable,
		.all = v->all,
		.state = true,
		.size = v->size,
	};
	return 0;
}

/* same: at the same path inside. */
static bool run_mounts(const struct run *r, const char *path, bool same)
{
	for (size_t i = 0; i < r->n_mounts; i++) {
		struct str host = r->mounts[i].host;

		if ((!same || str_eq(host, r->mounts[i].guest)) &&
		    strncmp(path, host.p, host.n) == 0 && (path[host.n] == '/' || !path[host.n]))
			return true;
	}
	return false;
}

/* worktree_given.has */
static bool has_path(const void *data, const char *path)
{
	return run_mounts(data, path, true);
}

static void tell_of_git(const struct run *r)
{
	for (size_t i = 0; i < r->o->mounts.n; i++) {
		const struct worktree_given g = { .top = r->volumes[i].host,
						  .inside = r->volumes[i].inside,
						  .has = has_path,
						  .data = r };
		char why[WORKTREE_WHY_MAX];

		if (worktree_explain(&g, why))
			fprintf(stderr, "holt: git does not work in %.*s: %s\n",
				STR_CUT(r->volumes[i].inside, 200), why);
	}
}

/* Git in a worktree needs the repository that it is of, at the same path. */
static void fill_commons(struct run *r)
{
	r->n_mounts = r->o->mounts.n;
	for (size_t i = 0; i < r->o->mounts.n && r->n_mounts < MOUNTS_MAX; i++) {
		char *path = r->commons[r->n_mounts];

		if (worktree_common(r->volumes[i].host, path) && !run_mounts(r, path, false))
			r->mounts[r->n_mounts++] = (struct sandbox_mount){
				.host = str_of(path),
				.guest = str_of(path),
				.writable = r->mounts[i].writable,
			};
	}
}

static int fill_env(struct run *r, struct err *e)
{
	if (env_read(&r->vars, &r->o->env, r->o->said.tty, e) < 0)
		return -1;
	for (size_t i = 0; i < r->vars.n; i++)
		r->env[i] = (struct env_var){ r->vars.all[i].name, r->vars.all[i].value };
	if (secret_words_read(&r->secret_words, &r->o->secrets, e) < 0)
		return -1;
	for (size_t i = 0; i < r->secret_words.n; i++) {
		const struct secret_word *w = &r->secret_words.all[i];

		r->refs[i] = (struct secret_ref){ str_of(w->variable), w->ref, w->file };
	}
	return 0;
}

static int run_fill(struct run *r, struct err *e)
{
	if (r->in->n_operands == 0 && (!r->o->image || strcmp(r->o->image, "host") == 0))
		return err_set(e, ERR_INVALID, "something is missing: a program to run");
	if (r->o->said.tty && r->o->json)
		return err_set(e, ERR_INVALID,
			       "--json keeps the output, which -t shows: choose one");
	if (r->o->mounts.n > MOUNTS_MAX)
		return err_set(e, ERR_INVALID, "-v: at most %d times", MOUNTS_MAX);
	for (size_t i = 0; i < r->o->mounts.n; i++) {
		if (fill_mount(r, i, e) < 0)
			return -1;
	}
	fill_commons(r);
	tell_of_git(r);
	for (size_t i = 0; i < r->o->mounts.n && !volume_tell(&r->volumes[i]); i++)
		continue;
	if (fill_env(r, e) < 0)
		return -1;
	for (int i = 0; i < r->in->n_operands; i++)
		r->argv[r->n_argv++] = str_of(r->in->operands[i]);
	return 0;
}

/* ---- the end ------------------------------------------------------------------------------- */

static void on_box_closed(void *arg)
{
	struct run *r = arg;

	for (size_t i = 0; i < r->n_signals; i++)
		uv_close((uv_handle_t *)&r->signals[i], NULL);
}

static void on_nets_closed(void *arg)
{
	struct run *r = arg;

	box_close(r->box, on_box_closed, r);
}

static void finish(struct run *r, int status)
{
	if (r->ending)
		return;
	r->ending = true;
	r->status = status;
	r->exec = NULL;
	tty_restore();
	feed_stop(&r->feed);
	outlet_close(&r->to_out);
	outlet_close(&r->to_err);
	net_free(take_ptr(r->net));
	sandbox_unref(take_ptr(r->sandbox));
	if (r->nets)
		nets_close(r->nets, on_nets_closed, r);
	else if (r->box)
		box_close(r->box, on_box_closed, r);
	/* while the warden ends */
	verb_call_end(take_ptr(r->call), r->failed.code ? &r->failed : NULL);
}

static int run_fail(const struct run *r, const struct err *e)
{
	return r->o->json ? cli_fail_json(e) : cli_fail(e);
}

static void finish_error(struct run *r, const struct err *e)
{
	if (r->ending)
		return;
	r->failed = *e;
	tty_restore();
	finish(r, run_fail(r, e));
}

/* ---- streams and signals ------------------------------------------------------------------- */

/* While we are stopped, a shell gives our terminal its own mode. */
static void run_match_tty(struct run *r)
{
	unsigned columns, rows_;
	struct err e;

	if (!r->exec || (r->o->said.interactive && tty_raw(&e) < 0))
		return;
	if (tty_size(&columns, &rows_) && exec_resize(r->exec, columns, rows_, &e) < 0)
		log_debug("the terminal's size: %s", e.msg);
}

/* The first signal is the command's; the second is ours. */
static void on_signal(uv_signal_t *h, int number)
{
	struct run *r = h->data;

	if (number == SIGWINCH || number == SIGCONT) {
		run_match_tty(r);
		return;
	}
	if (!r->exec)
		finish(r, 128 + number);
	else if (!r->signalled)
		exec_signal(r->exec, number);
	else
		exec_kill(r->exec);
	r->signalled = true;
}

/* Says what a bare exit status would leave to guess. */
static int run_explain(const struct run *r)
{
	tty_restore();
	if (!r->o->json && r->result.hit_memory)
		fprintf(stderr, "holt: a process was killed: the sandbox's memory is used up "
				"(--memory)\n");
	if (!r->o->json && r->result.hit_pids)
		fprintf(stderr, "holt: the sandbox had no more processes to give (--pids)\n");
	if (!r->o->json && r->folder_full && r->result.exit_code != 0)
		fprintf(stderr, "holt: a folder of -v is full (size=)\n");
	return r->result.exit_code;
}

/* Ends once the command has and all that it said is written. */
static void run_settle(struct run *r)
{
	if (r->exited && r->lost)
		finish(r, r->lost);
	else if (r->exited && outlet_empty(&r->to_out) && outlet_empty(&r->to_err))
		finish(r, run_explain(r));
}

/* Nobody reads our output any more: the command ends as one that wrote there would. */
static void lose_output(struct run *r, int errnum)
{
	struct err e = ERR_INIT;

	if (r->lost)
		return;
	r->lost = 128 + SIGPIPE;
	if (errnum != EPIPE) {
		err_set(&e, ERR_IO, "standard output: %s", strerror(errnum));
		r->lost = cli_fail(&e);
	}
	if (r->exec)
		exec_kill(r->exec);
}

static void on_written(void *arg)
{
	struct run *r = arg;

	if (r->to_out.errnum)
		lose_output(r, r->to_out.errnum);
	else if (r->to_err.errnum)
		lose_output(r, r->to_err.errnum);
	run_settle(r);
}

static void on_output(void *arg, enum exec_stream stream, const char *p, size_t n)
{
	struct run *r = arg;
	struct str bytes = verb_call_redact(r->call, (struct str){ p, n });

	if (r->o->json)
		output_add(stream == EXEC_STDOUT ? &r->out : &r->err, bytes.p, bytes.n);
	else
		outlet_write(stream == EXEC_STDOUT ? &r->to_out : &r->to_err, bytes.p, bytes.n);
}

static int print_json(const struct run *r, const struct exec_result *result, struct err *e)
{
	struct report report;
	autofree char *text = NULL;
	int status = report_init(&report, result, &r->out, &r->err, e);

	if (status == 0)
		text = field_encode_text(&report_table, &report, (size_t)64 << 20, e);
	report_fini(&report);
	if (!text)
		return -1;
	safe_json_puts(stdout, str_of(text));
	return 0;
}

/* A folder with size= counts as full with little room left: a larger write did not fit. */
static bool has_full_folder(const struct run *r)
{
	struct statvfs s;

	for (size_t i = 0; i < r->o->mounts.n; i++) {
		if (r->mounts[i].size && statvfs(r->volumes[i].host, &s) == 0 &&
		    (s.f_bavail * s.f_frsize < FULL || (s.f_files > 0 && s.f_favail == 0)))
			return true;
	}
	return false;
}

static void on_exit_(void *arg, const struct exec_result *result, const struct err *err)
{
	struct run *r = arg;
	struct err e = ERR_INIT;

	r->exec = NULL;
	if (r->ending)
		return;
	if (result) {
		r->result = *result;
		r->folder_full = has_full_folder(r);
		r->result.hit_disk |= r->folder_full;
	}
	if (err && !r->lost) {
		e = *err;
		if (e.code == ERR_COMMAND_NOT_FOUND &&
		    (!r->o->image || strcmp(r->o->image, "host") == 0))
			elsewhere_tell(r->o->config, r->argv[0], &e);
		finish_error(r, &e);
	} else if (!err && r->o->json && print_json(r, &r->result, &e) < 0) {
		finish_error(r, &e);
	} else {
		r->exited = true;
		run_settle(r);
	}
}

static const struct exec_events events = { .on_output = on_output, .on_exit = on_exit_ };

/* ---- the beginning ------------------------------------------------------------------------- */

static void on_drain(void *arg)
{
	struct run *r = arg;

	feed_resume(&r->feed);
}

static bool reads(void *arg)
{
	const struct run *r = arg;

	return exec_reads(r->exec);
}

static bool take_input(void *arg, const char *p, size_t n)
{
	struct run *r = arg;
	struct err e;

	if (exec_write(r->exec, p, n, &e) == 0)
		return true;
	exec_on_drain(r->exec, on_drain, r);
	return false;
}

static void end_input(void *arg)
{
	struct run *r = arg;

	exec_close_stdin(r->exec);
}

static const struct feed_to command = { reads, take_input, end_input };

static void run_hold(void *arg, int fd, bool on)
{
	struct run *r = arg;

	if (r->exec)
		exec_hold(r->exec, fd == STDOUT_FILENO ? EXEC_STDOUT : EXEC_STDERR, on);
}

static int start_command(struct run *r, struct err *e)
{
	struct exec_terminal tty = { .columns = 80, .rows = 24, .term = str_of(getenv("TERM")) };
	struct exec_spec spec = {
		.argv = r->argv,
		.n_argv = r->n_argv,
		.secrets = r->secrets,
		.n_secrets = r->n_secrets,
		.how = r->o->said.how,
		.timeout_ms = r->o->said.timeout_ms,
		.stdin_open = r->o->said.interactive,
		.terminal = r->o->said.tty ? &tty : NULL,
	};

	tty_size(&tty.columns, &tty.rows);
	r->exec = exec_start(r->sandbox, &spec, &events, r, e);
	if (!r->exec)
		return -1;
	if (!r->o->said.interactive)
		return 0;
	if (r->o->said.tty && tty_raw(e) < 0)
		return -1;
	return feed_start(&r->feed, &r->loop, &command, r, e);
}

static void on_granted(void *arg, const struct err *err)
{
	struct run *r = arg;
	struct err e = ERR_INIT;

	if (r->ending)
		return;
	if (err)
		finish_error(r, err);
	else if (start_command(r, &e) < 0)
		finish_error(r, &e);
}

static int grant(struct run *r, struct err *e)
{
	const struct grants_to to = { &r->loop, r->box, r->sandbox };

	return grants_give(&r->grants, &to, &r->nets, &r->net, on_granted, r, e);
}

static void on_created(void *arg, struct sandbox *sb, const struct err *err)
{
	struct run *r = arg;
	struct box_stats stats;
	struct err e = ERR_INIT;

	if (r->ending)
		return;
	if (err) {
		finish_error(r, err);
		return;
	}
	box_stats(r->box, &stats);
	if (r->o->engine.memory && strcmp(stats.limits, "rlimit") == 0)
		fputs(MEMORY_NOTE, stderr);
	cpus_check(r->o->engine.cpu_milli);
	r->sandbox = sandbox_ref(sb);
	if ((r->grants.allow.n ? grant(r, &e) : start_command(r, &e)) < 0)
		finish_error(r, &e);
}

/* Adds the network that the image wants to the request, so that policy and audit see it. A missing
 * image is reported when the sandbox is made. */
static int find_network(struct run *r, struct err *e)
{
	const struct run_options *o = r->o;
	const struct network_hosts *wants = &r->image.record.network;
	struct option_list *to = &r->network.allow;

	r->network = o->network;
	if (no_network_check(o->no_network, to->n, e) < 0)
		return -1;
	if (to->n || o->no_network || !o->image || strcmp(o->image, "host") == 0)
		return 0;
	if (image_cli_look(str_of(o->image), &r->image, e) < 0) {
		if (e->code != ERR_TEMPLATE_NOT_FOUND)
			return -1;
		*e = ERR_INIT;
	}
	static_assert(NETWORK_HOSTS_MAX * 2 <= OPTION_LIST_MAX, "all of an image's fit");
	for (size_t i = 0; i < wants->n; i++) {
		to->p[to->n] = network_host_text(&wants->p[i], r->image.doc.arena, e);
		if (!to->p[to->n++])
			return -1;
	}
	return 0;
}

static int run_prepare(struct run *r, struct err *e)
{
	r->to_out = (struct outlet){ .hold = run_hold, .on_ready = on_written, .arg = r };
	r->to_err = r->to_out;
	signal(SIGPIPE, SIG_IGN);
	if (find_network(r, e) < 0 ||
	    grants_read_own(&r->network, r->o->config, &r->grants, e) < 0 || run_fill(r, e) < 0 ||
	    outlet_init(&r->to_out, &r->loop, STDOUT_FILENO, e) < 0)
		return -1;
	return outlet_init(&r->to_err, &r->loop, STDERR_FILENO, e);
}

/* ---- the call ------------------------------------------------------------------------------ */

static const struct field request_fields[] = {
	FIELD(struct run_request, image, .doc = "Template of the sandbox; host if absent."),
	FIELD(struct run_request, command, .doc = "The program and its arguments."),
	FIELD(struct run_request, volumes, .doc = "Folders of the host inside, as for -v."),
	FIELD(struct run_request, hosts, .doc = "The same folders, with links resolved."),
	FIELD(struct run_request, memory, .doc = "Memory in bytes; 0 for the default."),
	FIELD(struct run_request, disk, .doc = "Disk space in bytes; 0 for the default."),
	FIELD(struct run_request, pids, .doc = "Number of processes; 0 for the default."),
	FIELD(struct run_request, cpu_milli, .doc = "Thousandths of a processor; 0 for all."),
	FIELD(struct run_request, open_files,
	      .doc = "Number of open files; 0 for the host's limit."),
	FIELD(struct run_request, root, .doc = "Whether programs run as root in a user namespace."),
	FIELD(struct run_request, debug, .doc = "Whether programs may trace each other."),
	FIELD(struct run_request, allow, .doc = "Isolation features that may be missing."),
	FIELD(struct run_request, network, .doc = "Hosts that it may reach, as for --allow."),
	FIELD(struct run_request, services, .doc = "Services of the host, as for --service."),
	FIELD(struct run_request, env, .doc = "Environment variables, NAME=VALUE."),
	SECRETS_ROW(struct run_request),
	FIELD(struct run_request, cwd, .flags = FIELD_PATH, .doc = "Working directory."),
	FIELD(struct run_request, timeout_ms, .doc = "Time limit in milliseconds; 0 for none."),
	FIELD(struct run_request, interactive, .doc = "Whether standard input is passed on."),
	FIELD(struct run_request, tty, .doc = "Whether it runs on a terminal."),
};
static const struct field_table request_table = FIELD_TABLE(struct run_request, request_fields);

static int run_command(const void *request, struct arena *a, struct str *ret, struct err *e)
{
	return op_join_command(STR_NONE, &((const struct run_request *)request)->command, a, ret,
			       e);
}

static int run_normalize(void *request, struct arena *a, struct err *e)
{
	return secret_refs_normalize(&((struct run_request *)request)->secrets, NULL, a, e);
}

static void run_begin(struct call *c, const void *request)
{
	const struct run_request *q = request;
	struct err e = ERR_INIT;

	if (network_check(c, q->grant, &e) < 0)
		call_fail(c, &e);
	else
		local_run(c, request);
}

static const struct op run_verb_op = {
	.action = "sandbox.run",
	.doc = "Runs a command in a sandbox of its own, and ends it.",
	.effect = OP_EXECUTE,
	.flags = OP_WAITS | OP_COMMANDS,
	.request = &request_table,
	.normalize = run_normalize,
	.command = run_command,
	.run = run_begin,
};

static struct field_strs texts_of(struct run *r, const struct option_list *l)
{
	struct str *begin = r->texts + r->n_texts;

	for (size_t i = 0; i < l->n; i++)
		r->texts[r->n_texts++] = str_of(l->p[i]);
	return (struct field_strs){ begin, l->n };
}

static struct field_strs hosts_of(struct run *r)
{
	struct str *begin = r->texts + r->n_texts;

	for (size_t i = 0; i < r->o->mounts.n; i++)
		r->texts[r->n_texts++] = r->mounts[i].host;
	return (struct field_strs){ begin, r->o->mounts.n };
}

static struct field_strs variables_of(struct run *r)
{
	struct str *begin = r->texts + r->n_texts;

	for (size_t i = 0; i < r->vars.n; i++)
		r->texts[r->n_texts++] = r->vars.all[i].text;
	return (struct field_strs){ begin, r->vars.n };
}

static int ask_for(struct run *r, struct err *e)
{
	struct run_request *q = &r->request;

	*q = r->o->said;
	q->image = str_of(r->o->image);
	q->cwd = str_of(r->o->cwd);
	q->command = (struct field_strs){ r->argv, r->n_argv };
	q->volumes = texts_of(r, &r->o->mounts);
	q->network = texts_of(r, &r->network.allow);
	q->services = texts_of(r, &r->network.services);
	q->env = variables_of(r);
	q->secrets = (struct secret_refs){ r->refs, r->secret_words.n };
	q->hosts = hosts_of(r);
	q->memory = r->o->engine.memory;
	q->disk = r->o->engine.disk;
	q->pids = r->o->engine.pids;
	q->cpu_milli = r->o->engine.cpu_milli;
	q->open_files = r->o->engine.files;
	q->root = r->o->user == USER_ROOT;
	q->allow = str_of(r->o->engine.allow);
	q->grant = &r->grants.allow;
	r->call = verb_call_begin(r->in->cli, r->o->config, &run_verb_op, q, e);
	return r->call ? verb_call_grant(r->call, &q->secrets, &r->secrets, &r->n_secrets, e) : -1;
}

static int start(struct run *r, struct err *e)
{
	struct engine_closed own;
	struct box_config config = { .allow = r->o->engine.allow,
				     .find_template = image_cli_find,
				     .root = r->o->user == USER_ROOT };
	struct sandbox_spec spec = {
		.template = str_of(r->o->image),
		.limits = engine_limits(&r->o->engine),
		.env = r->env,
		.n_env = r->vars.n,
		.cwd = str_of(r->o->cwd),
		.mounts = r->mounts,
		.n_mounts = r->n_mounts,
	};

	spec.limits.debug = r->o->said.debug;
	spec.limits.root = r->o->user == USER_ROOT;
	engine_close_own(&own, r->o->config);
	config.closed = own.paths;
	config.n_closed = own.n;
	/* the warden starts while policy decides */
	r->box = box_new(&r->loop, &config, e);
	if (!r->box || ask_for(r, e) < 0)
		return -1;
	r->n_signals = ARRAY_LEN(watched) - (r->o->said.tty ? 0 : WATCHED_OF_TTY);
	for (size_t i = 0; i < r->n_signals; i++) {
		uv_signal_init(&r->loop, &r->signals[i]);
		r->signals[i].data = r;
		uv_signal_start(&r->signals[i], on_signal, watched[i]);
	}
	sandbox_create_start(r->box, &spec, on_created, r);
	return 0;
}

/* ---- the verb ------------------------------------------------------------------------------ */

static int run(const struct verb_input *in, struct err *e)
{
	const struct run_options *o = in->options;
	autofree struct run *r = NULL;

	if (o->schema)
		return request_print_schema();
	if (o->request)
		return request_run(o->request,
				   &(struct request_given){ &o->network, &o->secrets, o->config });
	if (o->modules.n)
		return run_in_hub(in, o->image);
	r = calloc(1, sizeof(*r));
	if (!r || uv_loop_init(&r->loop) < 0) {
		err_set(e, ERR_LIMIT, "out of memory");
		return -1;
	}
	r->in = in;
	r->o = in->options;
	output_init(&r->out, JSON_OUTPUT);
	output_init(&r->err, JSON_OUTPUT);
	if (run_prepare(r, e) < 0 || start(r, e) < 0)
		finish_error(r, e);
	uv_run(&r->loop, UV_RUN_DEFAULT);
	uv_loop_close(&r->loop);
	output_fini(&r->out);
	output_fini(&r->err);
	env_fini(&r->vars);
	grants_fini(&r->grants);
	image_fini(&r->image);
	return r->status;
}

const struct verb run_verb = {
	.name = "run",
	.usage = "[OPTION...] [--] [PROGRAM [ARGUMENT...]]",
	.doc = "Run a command in a sandbox of its own, and end it.",
	.more = "Without a PROGRAM it is the one that the image names (--template).\n"
		"Standard input is read only with -i.\n"
		"The exit status is the command's; 124 when it ran into --timeout, 125 when Holt\n"
		"itself failed, 126 or 127 when it can't be run or is not there, 128+N when\n"
		"signal N ended it.",
	.page = "holt-run",
	.options = &options,
	.size = sizeof(struct run_options),
	.max_operands = EXEC_ARGS_MAX,
	.usage_exit = EXIT_HOLT,
	.run = run,
};
