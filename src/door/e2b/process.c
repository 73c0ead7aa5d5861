/*
 * process.Process: programs as jobs of Holt (sandbox.exec in the background, exec.attach), so that
 * a client that goes away ends nothing. A job's id is "e2b-" and the number that clients take for
 * the process's. What they said when they started it is kept here while it runs, for List and for
 * tags.
 */
#include "door/e2b/internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/base64.h"
#include "http/message/head.h"
#include "op/exec.h"
#include "op/exec_output.h"

enum {
	ANSWER_MAX = 4 << 20,
	RECORDS_MAX = 1024, /* the oldest go */
	CONFIG_MAX = 16 << 10, /* bytes of what is kept of each */
	TAG_MAX = 128,
	ENV_MAX = 256,
	PING_MS = 30000,
	INPUT_MAX = 1 << 20,
};

struct e2b_process_record {
	struct e2b_process_record *next; /* the older one */
	uint32_t pid;
	char sandbox[SANDBOX_ID_MAX + 1], tag[TAG_MAX + 1];
	char *config; /* JSON */
};

/* ---- what is known of them ----------------------------------------------------------------- */

static void record_free(struct e2b_process_record *r)
{
	free(r->config);
	free(r);
}

void e2b_processes_free(struct e2b *x)
{
	struct e2b_process_record *r;

	while ((r = x->processes)) {
		x->processes = r->next;
		record_free(r);
	}
	x->n_processes = 0;
}

static void drop_oldest(struct e2b *x)
{
	struct e2b_process_record **at = &x->processes;

	while ((*at)->next)
		at = &(*at)->next;
	record_free(take_ptr(*at));
	x->n_processes--;
}

uint32_t e2b_new_pid(struct e2b *x)
{
	enum { FIRST = 1000 };

	if (!x->last_pid) /* jobs of an earlier hub may still be known by theirs */
		x->last_pid = FIRST + (uint32_t)(uv_hrtime() / 1000 % 1000000) * 1000;
	return ++x->last_pid;
}

/* Without memory there is none, and List tells less. */
static void record_add(struct ask *a, uint32_t pid, struct str tag, struct str config)
{
	struct e2b *x = a->x;
	struct e2b_process_record *r = calloc(1, sizeof(*r));

	if (!r)
		return;
	if (x->n_processes == RECORDS_MAX)
		drop_oldest(x);
	r->pid = pid;
	snprintf(r->sandbox, sizeof(r->sandbox), "%.*s", STR_ARG(a->sandbox));
	snprintf(r->tag, sizeof(r->tag), "%.*s", STR_ARG(tag));
	r->config = mem_dup(config.p, config.n);
	r->next = x->processes;
	x->processes = r;
	x->n_processes++;
}

static const struct e2b_process_record *record_of(const struct ask *a, uint32_t pid, struct str tag)
{
	const struct e2b_process_record *r = a->x->processes;

	while (r &&
	       !(str_is(a->sandbox, r->sandbox) && (tag.n ? str_is(tag, r->tag) : r->pid == pid)))
		r = r->next;
	return r;
}

/* ---- events -------------------------------------------------------------------------------- */

struct attached {
	uint32_t pid;
	bool terminal, started;
	bool ends_with_client; /* Connect-Timeout-Ms ends the stream alone */
	bool timed_out;
	char name[24]; /* of the job */
};

static void begin_event(struct json_writer *w, struct buf *b, const char *kind)
{
	*b = BUF_INIT(ANSWER_MAX);
	json_writer_init(w, b);
	json_write_object(w);
	json_put_object(w, "event");
	json_put_object(w, kind);
}

static void send_event(struct ask *a, struct json_writer *w)
{
	json_write_object_end(w);
	json_write_object_end(w);
	json_write_object_end(w);
	ask_send(a, w);
}

static void send_start(struct ask *a)
{
	struct attached *t = a->state;
	struct json_writer w;
	struct buf b;

	if (t->started)
		return;
	t->started = true;
	begin_event(&w, &b, "start");
	ask_arg_uint(&w, "pid", t->pid);
	send_event(a, &w);
}

static void send_data(struct ask *a, const struct exec_event *ev)
{
	const char *stream = ev->stream == EXEC_STDERR ? "stderr" : "stdout";
	const struct attached *t = a->state;
	struct json_writer w;
	struct buf b;

	begin_event(&w, &b, "data");
	json_put_base64(&w, t->terminal ? "pty" : stream, ev->bytes);
	send_event(a, &w);
}

static void send_ping(struct ask *a)
{
	struct json_writer w;
	struct buf b;

	begin_event(&w, &b, "keepalive");
	send_event(a, &w);
}

static const char *signal_name(int number)
{
	static const char *const names[] = {
		[1] = "hangup",	      [2] = "interrupt",    [3] = "quit",
		[6] = "aborted",      [9] = "killed",	    [11] = "segmentation fault",
		[13] = "broken pipe", [14] = "alarm clock", [15] = "terminated",
	};

	return number > 0 && number < (int)ARRAY_LEN(names) ? names[number] : NULL;
}

static void send_end(struct ask *a, const struct exec_news *n)
{
	int number = n->state == JOB_SIGNALED ? n->event.exit_code - 128 : 0;
	const char *name = signal_name(number);
	char status[64];
	struct json_writer w;
	struct buf b;

	if (number && name)
		snprintf(status, sizeof(status), "signal: %s", name);
	else if (number)
		snprintf(status, sizeof(status), "signal: signal %d", number);
	else
		snprintf(status, sizeof(status), "exit status %d", n->event.exit_code);
	begin_event(&w, &b, "end");
	json_put_int(&w, "exitCode", number ? -1 : n->event.exit_code);
	ask_arg_bool(&w, "exited", !number);
	ask_arg_str(&w, "status", str_of(status));
	if (number || n->event.exit_code)
		ask_arg_str(&w, "error", n->event.error.n ? n->event.error : str_of(status));
	send_event(a, &w);
}

static void on_news(struct ask *a, const void *event)
{
	const struct exec_news *n = event;
	struct attached *t = a->state;

	switch (n->kind) {
	case EXEC_NEWS_ATTACHED:
		t->terminal = n->tty;
		send_start(a);
		break;
	case EXEC_NEWS_CHUNK:
		send_data(a, &n->event);
		break;
	case EXEC_NEWS_DROPPED:
		break;
	case EXEC_NEWS_END:
		t->timed_out = n->event.timed_out;
		if (n->event.failed == ERR_NONE && !t->timed_out)
			send_end(a, n);
		break;
	}
}

static void on_attached_end(struct ask *a, const void *result, const struct err *err)
{
	const struct attached *t = a->state;

	if (err && (err->code == ERR_PATH_NOT_FOUND || err->code == ERR_PATH_DENIED))
		ask_fail_as(a, "invalid_argument", err->msg); /* the directory */
	else if (err)
		ask_fail(a, err);
	else if (t->timed_out)
		ask_fail_as(a, "deadline_exceeded", "the process was killed at its timeout");
	else
		ask_end_stream(a);
}

static void on_deadline(struct ask *a)
{
	ask_fail_as(a, "deadline_exceeded", "the timeout of the request is over");
	ask_cancel(a);
}

static void process_attach(struct ask *a, bool from_start)
{
	const struct attached *t = a->state;
	struct ask_args args;
	struct json_writer *w = ask_args(a, &args, true);

	ask_arg_str(w, "exec", str_of(t->name));
	if (from_start)
		ask_arg_uint(w, "offset", 0);
	if (t->ends_with_client && a->timeout_ms)
		ask_every(a, a->timeout_ms, on_deadline);
	else
		ask_every(a, PING_MS, send_ping);
	ask_follow(a, &exec_attach_op, &args, on_news, on_attached_end);
}

/* ---- Start --------------------------------------------------------------------------------- */

static bool read_words(struct ask *a, const struct json_val *v, struct field_strs *ret)
{
	struct json_iter it = json_iter(v);
	struct str *p = arena_array(a->arena, json_len(v), sizeof(*p), &(struct err){ 0 });
	size_t n = 0;

	if (!p || json_len(v) >= EXEC_ARGS_MAX)
		return false;
	while (json_next(&it)) {
		if (json_type(it.val) != JSON_STR)
			return false;
		p[n++] = json_str(it.val);
	}
	*ret = (struct field_strs){ p, n };
	return true;
}

static bool read_env(struct ask *a, const struct json_val *v, struct field_map *ret)
{
	struct json_iter it = json_iter(v);
	struct field_pair *p = arena_array(a->arena, json_len(v), sizeof(*p), &(struct err){ 0 });
	size_t n = 0;

	if (!p || json_len(v) > ENV_MAX)
		return false;
	while (json_next(&it)) {
		if (json_type(it.val) != JSON_STR)
			return false;
		p[n++] = (struct field_pair){ it.key, json_str(it.val) };
	}
	*ret = (struct field_map){ p, n };
	return true;
}

static bool has_nul(const struct exec_request *r)
{
	bool found = memchr(r->command.p, '\0', r->command.n) ||
		     (r->cwd.n && memchr(r->cwd.p, '\0', r->cwd.n));

	for (size_t i = 0; i < r->args.n; i++)
		found |= r->args.p[i].n && memchr(r->args.p[i].p, '\0', r->args.p[i].n);
	for (size_t i = 0; i < r->env.n; i++)
		found |= r->env.p[i].value.n &&
			 memchr(r->env.p[i].value.p, '\0', r->env.p[i].value.n);
	return found;
}

static void read_terminal(const struct json_val *pty, struct exec_request *r)
{
	const struct json_val *size = json_get(pty, "size");
	uint64_t cols = 0, rows = 0;

	r->has_tty = json_type(pty) == JSON_OBJECT;
	ask_uint(size, "cols", &cols);
	ask_uint(size, "rows", &rows);
	r->tty.cols = cols > EXEC_SIDE_MAX ? EXEC_SIDE_MAX : (uint32_t)cols;
	r->tty.rows = rows > EXEC_SIDE_MAX ? EXEC_SIDE_MAX : (uint32_t)rows;
}

static int read_start(struct ask *a, struct exec_request *r, struct err *e)
{
	const struct json_val *p = json_get(a->body, "process");
	const struct json_val *in = json_get(a->body, "stdin");
	struct str cwd = ask_str(p, "cwd");

	field_defaults(sandbox_exec_op.request, r);
	r->sandbox = a->sandbox;
	r->command = ask_str(p, "cmd");
	r->has_args = true;
	r->background = true;
	r->how.user = a->as_root ? EXEC_AS_ROOT : EXEC_AS_SANDBOX;
	r->timeout_seconds = (uint32_t)((a->timeout_ms + 999) / 1000);
	r->stdin_open = json_type(in) != JSON_BOOL || json_bool(in);
	read_terminal(json_get(a->body, "pty"), r);
	if (!r->command.n)
		return err_set(e, ERR_INVALID, "process.cmd is missing");
	if (!read_words(a, json_get(p, "args"), &r->args) ||
	    !read_env(a, json_get(p, "envs"), &r->env))
		return err_set(e, ERR_INVALID,
			       "process: args are texts, and envs an object of texts");
	if (r->timeout_seconds > EXEC_TIMEOUT_MAX)
		r->timeout_seconds = EXEC_TIMEOUT_MAX;
	if (cwd.n) {
		r->cwd = ask_path(a, cwd);
		if (!r->cwd.p)
			return err_set(e, ERR_INVALID, "process.cwd");
	}
	return has_nul(r) ? err_set(e, ERR_INVALID, "process: a text has a NUL") : 0;
}

static void on_started(struct ask *a, const void *result, const struct err *err)
{
	const struct attached *t = a->state;
	const struct json_val *p = json_get(a->body, "process");
	autobuf struct buf b = BUF_INIT(CONFIG_MAX);
	struct json_writer w = json_writer(&b);
	struct err e;

	if (err) {
		ask_fail(a, err);
		return;
	}
	json_write_val(&w, p);
	record_add(a, t->pid, ask_str(a->body, "tag"),
		   json_write_done(&w, &e) == 0 ? buf_str(&b) : STR_LIT(""));
	if (a->left) {
		ask_fail_as(a, "canceled", "the client has gone");
		return;
	}
	if (ask_open(a, &e) < 0) {
		ask_fail(a, &e);
		return;
	}
	send_start(a);
	process_attach(a, true);
}

static struct attached *attached_new(struct ask *a, uint32_t pid)
{
	struct attached *t = a->state = arena_alloc(a->arena, sizeof(*t), &(struct err){ 0 });

	if (!t) {
		ask_fail_with(a, ERR_LIMIT, "out of memory");
		return NULL;
	}
	t->pid = pid;
	snprintf(t->name, sizeof(t->name), "e2b-%u", pid);
	return t;
}

static void run_start(struct ask *a)
{
	struct exec_request r;
	struct err e = ERR_INIT;
	struct attached *t = attached_new(a, e2b_new_pid(a->x));
	struct str tag = ask_str(a->body, "tag");

	if (!t)
		return;
	if (tag.n > TAG_MAX || (tag.n && memchr(tag.p, '\0', tag.n))) {
		ask_fail_with(a, ERR_INVALID, "tag: at most %d bytes without NUL", TAG_MAX);
		return;
	}
	if (read_start(a, &r, &e) < 0) {
		ask_fail(a, &e);
		return;
	}
	t->terminal = r.has_tty;
	r.exec_id = str_of(t->name);
	ask_call_with(a, &sandbox_exec_op, &r, on_started);
}

/* ---- the others ---------------------------------------------------------------------------- */

/* {"process":{"pid":101}} or {"process":{"tag":"…"}}: false, and the ask has failed. */
static bool read_selector(struct ask *a, uint32_t *ret)
{
	const struct json_val *p = json_get(a->body, "process");
	struct str tag = ask_str(p, "tag");
	const struct e2b_process_record *r = tag.n ? record_of(a, 0, tag) : NULL;
	uint64_t pid = r ? r->pid : 0;

	if (!tag.n && (!ask_uint(p, "pid", &pid) || pid > UINT32_MAX)) {
		ask_fail_with(a, ERR_INVALID, "process: pid or tag");
		return false;
	}
	if (!pid) {
		ask_fail_with(a, ERR_PROCESS_NOT_FOUND, "there is no such process");
		return false;
	}
	*ret = (uint32_t)pid;
	return true;
}

static void run_connect(struct ask *a)
{
	uint32_t pid;
	struct attached *t;

	if (!read_selector(a, &pid))
		return;
	t = attached_new(a, pid);
	if (!t)
		return;
	t->ends_with_client = true;
	process_attach(a, false);
}

static void reply_nothing(struct ask *a)
{
	struct buf b = BUF_INIT(64);
	struct json_writer w = json_writer(&b);

	json_write_object(&w);
	json_write_object_end(&w);
	ask_reply(a, 200, &w);
}

/* Clients expect "not found" for a process that has ended. */
static void on_done(struct ask *a, const void *result, const struct err *err)
{
	if (err && err->code == ERR_CONFLICT)
		ask_fail_as(a, "not_found", err->msg);
	else if (err)
		ask_fail(a, err);
	else
		reply_nothing(a);
}

/* Begins a request about the job; NULL: the ask has failed. */
static struct json_writer *job_args(struct ask *a, struct ask_args *args)
{
	struct json_writer *w;
	uint32_t pid;

	if (!read_selector(a, &pid))
		return NULL;
	w = ask_args(a, args, true);
	ask_arg_str(w, "exec", ask_printf(a, "e2b-%u", pid));
	return w;
}

static void run_send_input(struct ask *a)
{
	const struct json_val *in = json_get(a->body, "input");
	struct str data = ask_str(in, "stdin");
	struct ask_args args;
	struct json_writer *w;

	data = data.p ? data : ask_str(in, "pty");
	if (!data.p || data.n > INPUT_MAX) {
		ask_fail_with(a, ERR_INVALID, "input: stdin or pty, of base64, at most 1 MiB");
		return;
	}
	w = job_args(a, &args);
	if (!w)
		return;
	ask_arg_str(w, "data_base64", data);
	ask_call(a, &exec_stdin_op, &args, on_done);
}

static void run_close_stdin(struct ask *a)
{
	struct ask_args args;
	struct json_writer *w = job_args(a, &args);

	if (!w)
		return;
	ask_arg_bool(w, "close", true);
	ask_call(a, &exec_stdin_op, &args, on_done);
}

static void run_signal(struct ask *a)
{
	struct str name = ask_str(a->body, "signal");
	uint64_t number = str_is(name, "SIGNAL_SIGKILL") ? 9
			: str_is(name, "SIGNAL_SIGTERM") ? 15
							 : 0;
	struct ask_args args;
	struct json_writer *w;

	if (!number && (!ask_uint(a->body, "signal", &number) || (number != 9 && number != 15))) {
		ask_fail_with(a, ERR_INVALID, "signal: SIGNAL_SIGKILL or SIGNAL_SIGTERM");
		return;
	}
	w = job_args(a, &args);
	if (!w)
		return;
	ask_arg_uint(w, "signal", number);
	ask_call(a, &exec_signal_op, &args, on_done);
}

static void run_update(struct ask *a)
{
	const struct json_val *size = json_get(json_get(a->body, "pty"), "size");
	uint64_t cols = 0, rows = 0;
	struct ask_args args;
	struct json_writer *w;

	ask_uint(size, "cols", &cols);
	ask_uint(size, "rows", &rows);
	w = job_args(a, &args);
	if (!w)
		return;
	ask_arg_uint(w, "cols", cols);
	ask_arg_uint(w, "rows", rows);
	ask_call(a, &exec_resize_op, &args, on_done);
}

static void write_process(struct ask *a, struct json_writer *w, const struct job_view *v)
{
	uint32_t pid = (uint32_t)strtoul(v->exec_id.p + 4, NULL, 10);
	const struct e2b_process_record *r = record_of(a, pid, STR_NONE);
	struct err e;
	/* Redacted text by text: as JSON a secret may look another way. */
	AUTO(json_free)
	struct json_doc *config = r && r->config && *r->config
					? json_parse(str_of(r->config), NULL, &e)
					: NULL;

	json_write_object(w);
	ask_arg_uint(w, "pid", pid);
	if (r && *r->tag)
		ask_arg_str(w, "tag", str_of(r->tag));
	json_write_key(w, "config");
	if (config) {
		e2b_write_redacted(a, w, json_root(config));
	} else {
		json_write_object(w);
		ask_arg_str(w, "cmd", v->command);
		json_write_object_end(w);
	}
	json_write_object_end(w);
}

static void on_listed(struct ask *a, const void *result, const struct err *err)
{
	const struct field_list *jobs = result; /* as exec.list answers */
	const struct job_view *v = jobs ? jobs->p : NULL;
	struct buf b = BUF_INIT(ANSWER_MAX);
	struct json_writer w = json_writer(&b);

	if (err) {
		ask_fail(a, err);
		return;
	}
	json_write_object(&w);
	json_put_array(&w, "processes");
	for (size_t i = 0; i < jobs->n; i++) {
		if (v[i].state == JOB_RUNNING && str_starts(v[i].exec_id, "e2b-"))
			write_process(a, &w, &v[i]);
	}
	json_write_array_end(&w);
	json_write_object_end(&w);
	ask_reply(a, 200, &w);
}

static void run_list(struct ask *a)
{
	struct ask_args args;

	ask_args(a, &args, true);
	ask_call(a, &exec_list_op, &args, on_listed);
}

enum { INPUT_BODY_MAX = 4 << 20 };

static const struct e2b_member members[] = {
	{ "process", JSON_OBJECT },
	{ "process.pid", JSON_INT, UINT32_MAX },
	{ "process.tag", JSON_STR },
	{ "process.cmd", JSON_STR },
	{ "process.args", JSON_ARRAY },
	{ "process.envs", JSON_OBJECT },
	{ "process.cwd", JSON_STR },
	{ "tag", JSON_STR },
	{ "stdin", JSON_BOOL },
	{ "input", JSON_OBJECT },
	{ "pty", JSON_OBJECT },
	{ "pty.size", JSON_OBJECT },
	{ "pty.size.cols", JSON_INT, UINT32_MAX },
	{ "pty.size.rows", JSON_INT, UINT32_MAX },
	{ 0 },
};

#define AT(name) "/process.Process/" name
static const struct e2b_row rows[] = {
	{ HTTP_POST, AT("Start"), E2B_STREAM, 0, run_start, "Starts a program, and follows it.",
	  members },
	{ HTTP_POST, AT("Connect"), E2B_STREAM, 0, run_connect, "Follows a program.", members },
	{ HTTP_POST, AT("SendInput"), E2B_UNARY, INPUT_BODY_MAX, run_send_input, "Input.",
	  members },
	{ HTTP_POST, AT("CloseStdin"), E2B_UNARY, 0, run_close_stdin, "Ends its input.", members },
	{ HTTP_POST, AT("SendSignal"), E2B_UNARY, 0, run_signal, "Signals a program.", members },
	{ HTTP_POST, AT("Update"), E2B_UNARY, 0, run_update, "The size of its terminal.", members },
	{ HTTP_POST, AT("List"), E2B_UNARY, 0, run_list, "Programs that run.", members },
};
const struct e2b_rows e2b_process = { rows, ARRAY_LEN(rows) };
