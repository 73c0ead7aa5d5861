/*
 * Programs in a sandbox. A program has two pipes for its output and one for its input, and init is
 * sent one message that starts it. Or it has one terminal for everything: the message waits until
 * the terminal is open, and the terminal is hung up when we are done with it, so that what still
 * runs in its session gets SIGHUP. When a program's timeout passes, init kills its process tree. If
 * init is silent for seconds, the whole sandbox is ended from outside.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sockios.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/programs.h"
#include "box/host/internal.h"

enum {
	READ_BYTES = 64 * 1024,
	DRAIN_READS = 32, /* more than a pipe can hold when its program has ended */
	STDIN_QUEUE_MAX = 1024 * 1024,
	KILL_GRACE_MS = 15000, /* a busy machine keeps init waiting too */
	KILL_PATIENCE_MS = 120000, /* it may have hundreds of trees to kill */
	/* base_env, an image's and its user's variables, the sandbox's, the call's */
	ENV_TOTAL_MAX = 768,
};

struct output {
	struct exec *x;
	enum exec_stream stream;
	int fd;
	uv_poll_t *poll;
};

struct exec {
	struct exec *next;
	struct sandbox *sb;
	uint32_t id;
	const struct exec_events *events;
	void *arg;
	bool on_terminal;
	struct terminal_call *opening; /* until the terminal is open */
	struct buf message; /* to init; waits for the terminal */
	int early_signal; /* a signal that came before; 0: none */
	/* the slave end of the terminal, kept so that the program may close it without a hang-up;
	 * or -1 */
	int slave;
	struct output out[2];
	int in; /* our end of stdin; -1: closed */
	uv_poll_t *in_poll;
	struct buf in_queue;
	bool in_closing;
	void (*on_drain)(void *arg);
	void *drain_arg;
	uv_timer_t *timer;
	bool timed_out;
	uint64_t started_ns;
	uint64_t killed_ms; /* when init was told to kill it */
	int was_unread; /* the last result of bytes_unread() */
	uint64_t left_ms; /* time left of its timeout while that is held; 0: it is not held */
	char last_typed;
	char name[64], cwd[128]; /* argv[0] and where it starts, for messages */
};

/* The environment of every program; variables of the sandbox and of the call override it. */
static const char *const base_env[] = {
	"PATH=" PROGRAMS_PATH_INSIDE,
	"HOME=/home/agent",
	"USER=agent",
	"LOGNAME=agent",
	"LANG=C.UTF-8",
	"TERM=dumb",
};

/* ---- ending ---------------------------------------------------------------------------------- */

static void close_output(struct output *o)
{
	if (o->poll) {
		uv_poll_stop(o->poll);
		box_close_handle(take_ptr(o->poll));
	}
	close_fd(&o->fd);
}

static void close_stdin(struct exec *x)
{
	if (x->in_poll) {
		uv_poll_stop(x->in_poll);
		box_close_handle(take_ptr(x->in_poll));
	}
	close_fd(&x->in);
	buf_fini(&x->in_queue);
}

/* Takes an ending exec off the list, so that its last callbacks can't end it again. */
static void leave_list(struct exec *x)
{
	for (struct exec **at = &x->sb->execs; *at; at = &(*at)->next) {
		if (*at == x) {
			*at = x->next;
			break;
		}
	}
}

static void free_exec(struct exec *x)
{
	leave_list(x);
	terminal_open_cancel(x->opening);
	buf_wipe(&x->message);
	close_output(&x->out[0]);
	close_output(&x->out[1]);
	close_stdin(x);
	close_fd(&x->slave);
	if (x->timer) {
		uv_timer_stop(x->timer);
		box_close_handle(x->timer);
	}
	sandbox_unref(x->sb);
	free(x);
}

static void exec_finish(struct exec *x, const struct exec_result *result, const struct err *err)
{
	const struct exec_events *events = x->events;
	void *arg = x->arg;

	free_exec(x);
	events->on_exit(arg, result, err);
}

/* ---- output ---------------------------------------------------------------------------------- */

/* Passes on one piece of output. 1: there may be more, 0: not now, -1: the end. */
static int read_output(struct output *o)
{
	static char bytes[READ_BYTES];
	ssize_t n;

	do {
		n = read(o->fd, bytes, sizeof(bytes));
	} while (n < 0 && errno == EINTR);
	if (n > 0) {
		sandbox_count(o->x->sb, 0, (uint64_t)n);
		o->x->events->on_output(o->x->arg, o->stream, bytes, (size_t)n);
	}
	return n > 0 ? 1 : n < 0 && errno == EAGAIN ? 0 : -1;
}

static void on_output_ready(uv_poll_t *poll, int status, int events)
{
	struct output *o = poll->data;

	if (read_output(o) >= 0)
		return;
	close_output(o);
	if (!o->x->on_terminal)
		return;
	close_stdin(o->x); /* the same terminal, hung up at its leader's end */
	if (o->x->on_drain)
		o->x->on_drain(o->x->drain_arg);
}

void exec_hold(struct exec *x, enum exec_stream stream, bool hold)
{
	struct output *o = &x->out[stream == EXEC_STDOUT ? 0 : 1];

	if (o->poll && hold)
		uv_poll_stop(o->poll);
	else if (o->poll)
		uv_poll_start(o->poll, UV_READABLE, on_output_ready);
}

/* When a program ends, all its output is in its pipes. Others may keep the pipes open and write on;
 * they are not waited for. */
static void exec_drain(struct output *o)
{
	for (int i = 0; o->fd >= 0 && i < DRAIN_READS; i++) {
		if (read_output(o) <= 0)
			return;
	}
}

/* ---- the answer of init ---------------------------------------------------------------------- */

static void start_error(const struct exec *x, const struct im_exit *m, struct err *e)
{
	if (m->stage == IM_STAGE_CWD) {
		err_sys(e, m->errnum, "enter the working directory %s", x->cwd);
		e->code = ERR_COMMAND_NOT_RUN;
	} else if (m->stage == IM_STAGE_FORK) {
		err_sys(e, m->errnum, "start a process in the sandbox");
		e->code = m->errnum == EAGAIN ? ERR_PIDS_FULL
			: m->errnum == ENOMEM ? ERR_MEMORY_FULL
					      : ERR_LIMIT;
	} else {
		err_sys(e, m->errnum, "run \"%s\"", x->name);
		e->code = m->errnum == ENOENT ? ERR_COMMAND_NOT_FOUND
			: m->errnum == E2BIG  ? ERR_TOO_LARGE
					      : ERR_COMMAND_NOT_RUN;
	}
}

static void fill_result(const struct exec *x, const struct im_exit *m, struct exec_result *r)
{
	r->wall_us = (clock_ns() - x->started_ns) / 1000;
	r->cpu_us = m->cpu_us;
	r->peak_bytes = m->peak_bytes;
	r->hit_memory = m->oom_kills > 0;
	r->hit_pids = m->pids_hits > 0;
	r->hit_disk = m->disk_full != 0;
	if (WIFSIGNALED(m->status)) {
		r->end = EXEC_SIGNALED;
		r->signal = WTERMSIG(m->status);
		r->exit_code = 128 + r->signal;
	} else {
		r->exit_code = WEXITSTATUS(m->status);
	}
	if (x->timed_out) {
		r->end = EXEC_TIMED_OUT;
		r->exit_code = 124;
	}
}

uint64_t exec_count(const struct sandbox *sb)
{
	uint64_t n = 0;

	for (const struct exec *x = sb->execs; x; x = x->next)
		n++;
	return n;
}

void exec_exited(struct sandbox *sb, const struct im_exit *m)
{
	struct exec_result r = { .end = EXEC_EXITED };
	struct exec *x = sb->execs;
	struct err err = ERR_INIT;

	while (x && x->id != m->h.id)
		x = x->next;
	if (!x)
		return;
	leave_list(x);
	if (m->stage != IM_STAGE_RAN) {
		start_error(x, m, &err);
		exec_finish(x, NULL, &err);
		return;
	}
	fill_result(x, m, &r);
	exec_drain(&x->out[0]);
	exec_drain(&x->out[1]);
	exec_finish(x, &r, NULL);
}

void exec_end_all(struct sandbox *sb, const struct err *err)
{
	while (sb->execs) {
		struct exec *x = sb->execs;

		leave_list(x);
		exec_drain(&x->out[0]);
		exec_drain(&x->out[1]);
		exec_finish(x, NULL, err);
	}
}

/* ---- killing --------------------------------------------------------------------------------- */

static void send_signal(struct exec *x, int signal, uint32_t flags)
{
	const struct im_signal m = {
		.h = { IM_SIGNAL, x->id },
		.signal = signal,
		.flags = flags,
	};
	struct err e = ERR_INIT;

	if (x->opening)
		x->early_signal = signal;
	else if (sandbox_send(x->sb, &m, sizeof(m), NULL, 0, &e) < 0)
		log_warn("sandbox %s: signal %d: %s", x->sb->id, signal, e.msg);
}

static void on_kill_timeout(uv_timer_t *t);

/* Bytes that init has not read yet, as the kernel counts them. */
static int bytes_unread(const struct sandbox *sb)
{
	int n = 0;

	return ioctl(sb->socket, SIOCOUTQ, &n) < 0 ? 0 : n;
}

/* Init is judged by its silence. If it has many programs to start and trees to kill, or is held
 * back by a fork, it may need longer than the grace period for one of them, but not for ever.
 * Reading messages does not count as silence. */
static bool wait_on(struct exec *x)
{
	uint64_t now = clock_ms(), silent_ms = now - x->sb->heard_ms;
	int left = bytes_unread(x->sb);
	bool reads = left < x->was_unread;

	x->was_unread = left;
	if (!sandbox_stands(x->sb) &&
	    ((silent_ms >= KILL_GRACE_MS && !reads) || now - x->killed_ms >= KILL_PATIENCE_MS))
		return false;
	uv_timer_start(x->timer, on_kill_timeout,
		       silent_ms < KILL_GRACE_MS ? KILL_GRACE_MS - silent_ms : KILL_GRACE_MS, 0);
	return true;
}

/* The sandbox's first process did not do as told, so it is no longer trusted. */
static void on_kill_timeout(uv_timer_t *t)
{
	struct exec *x = t->data;
	struct exec_result r = {
		.end = x->timed_out ? EXEC_TIMED_OUT : EXEC_SIGNALED,
		.exit_code = x->timed_out ? 124 : 128 + SIGKILL,
		.signal = SIGKILL,
		.wall_us = (clock_ns() - x->started_ns) / 1000,
	};
	struct sandbox *sb;

	if (wait_on(x))
		return;
	sb = sandbox_ref(x->sb);
	log_error("sandbox %s: its first process does not answer; ending it", sb->id);
	exec_finish(x, &r, NULL);
	if (sb->live)
		sandbox_destroy_start(sb, NULL, NULL);
	sandbox_unref(sb);
}

void exec_kill(struct exec *x)
{
	const struct wm_sleep hurry = { .h = { WM_HURRY, 0 }, .key = x->sb->key };
	struct err e;

	if (box_send(x->sb->box, &hurry, sizeof(hurry), &e) < 0)
		log_debug("a program ends without haste: %s", e.msg);
	x->killed_ms = clock_ms();
	x->left_ms = 0; /* also ends a held timeout */
	send_signal(x, SIGKILL, IM_SIGNAL_TREE);
	x->was_unread = bytes_unread(x->sb);
	if (x->timer)
		uv_timer_start(x->timer, on_kill_timeout, KILL_GRACE_MS, 0);
}

static void on_timeout(uv_timer_t *t)
{
	struct exec *x = t->data;

	x->timed_out = true;
	exec_kill(x);
}

/* A timeout must not run out early: the time that the loop keeps may be old, and it counts whole
 * milliseconds. */
static void await_timeout(struct exec *x, uint64_t ms)
{
	uv_update_time(x->sb->box->loop);
	uv_timer_start(x->timer, on_timeout, ms + 1, 0);
}

void exec_hold_timeouts(struct sandbox *sb, bool hold)
{
	for (struct exec *x = sb->execs; x; x = x->next) {
		if (hold && !x->killed_ms && uv_is_active((uv_handle_t *)x->timer)) {
			x->left_ms = uv_timer_get_due_in(x->timer) + 1; /* 0 means none */
			uv_timer_stop(x->timer);
		} else if (!hold && x->left_ms) {
			await_timeout(x, x->left_ms);
			x->left_ms = 0;
		}
	}
}

void exec_signal(struct exec *x, int signal)
{
	send_signal(x, signal, 0);
}

void exec_signal_start(struct exec *x, int signal, process_cb on_done, void *arg)
{
	if (!x->opening) {
		process_signal_exec(x->sb, x->id, signal, on_done, arg);
		return;
	}
	exec_signal(x, signal);
	on_done(arg, NULL);
}

/* ---- stdin ----------------------------------------------------------------------------------- */

static void on_stdin_ready(uv_poll_t *poll, int status, int events)
{
	struct exec *x = poll->data;
	ssize_t n = write(x->in, x->in_queue.p, x->in_queue.n);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		close_stdin(x); /* the program no longer reads */
	} else {
		sandbox_count(x->sb, (uint64_t)n, 0);
		buf_drop(&x->in_queue, (size_t)n);
		if (x->in_queue.n)
			return;
		uv_poll_stop(x->in_poll);
		if (x->in_closing)
			close_stdin(x);
	}
	if (x->on_drain)
		x->on_drain(x->drain_arg);
}

bool exec_reads(const struct exec *x)
{
	return (x->in >= 0 || x->opening) && !x->in_closing;
}

size_t exec_waiting(const struct exec *x)
{
	return x->in_queue.n;
}

/* Writes to the pipe before it queues: waiting costs five system calls. A failure is
 * left to on_stdin_ready(), since this is a call of x's owner. */
static int enqueue(struct exec *x, const char *p, size_t n, struct err *e)
{
	ssize_t done = x->in_poll && !x->in_queue.n ? write(x->in, p, n) : 0;

	x->last_typed = p[n - 1];
	if (done > 0) {
		sandbox_count(x->sb, (uint64_t)done, 0);
		p += done;
		n -= (size_t)done;
	}
	if (n == 0)
		return 0;
	if (buf_add(&x->in_queue, p, n, e) < 0)
		return -1;
	if (x->in_poll)
		uv_poll_start(x->in_poll, UV_WRITABLE, on_stdin_ready);
	return 0;
}

int exec_write(struct exec *x, const char *p, size_t n, struct err *e)
{
	if (!exec_reads(x) || n == 0)
		return 0;
	if (x->in_queue.n + n > STDIN_QUEUE_MAX && x->in_queue.n)
		return err_set(e, ERR_LIMIT, "the program reads its input too slowly");
	x->in_queue.max = x->in_queue.n + n > STDIN_QUEUE_MAX ? n : STDIN_QUEUE_MAX;
	return enqueue(x, p, n, e);
}

void exec_on_drain(struct exec *x, void (*on_drain)(void *arg), void *arg)
{
	x->on_drain = on_drain;
	x->drain_arg = arg;
}

/* Types the character that ends input. In the middle of a line the first one only submits the line,
 * and a second one ends the input. */
static void type_end(struct exec *x)
{
	char end = terminal_end_of_file(x->in);
	bool in_line = x->last_typed && x->last_typed != '\n' && x->last_typed != '\r';
	const char both[] = { end, end };
	struct err e;

	if (x->in_queue.n + sizeof(both) > STDIN_QUEUE_MAX)
		return;
	x->in_queue.max = x->in_queue.n + sizeof(both);
	if (end && enqueue(x, both, in_line ? 2 : 1, &e) < 0)
		log_warn("sandbox %s: the end of a terminal's input: %s", x->sb->id, e.msg);
}

void exec_close_stdin(struct exec *x)
{
	if (!exec_reads(x))
		return;
	if (x->on_terminal) { /* only a key: the terminal stays open for others */
		type_end(x);
		return;
	}
	x->in_closing = true;
	if (x->in_queue.n == 0)
		close_stdin(x);
}

int exec_resize(struct exec *x, unsigned columns, unsigned rows, struct err *e)
{
	if (!x->on_terminal)
		return err_set(e, ERR_INVALID, "the program has no terminal");
	if (terminal_check(columns, rows, e) < 0)
		return -1;
	if (x->opening)
		terminal_open_resize(x->opening, columns, rows);
	return x->in < 0 ? 0 : terminal_resize(x->in, columns, rows, e);
}

/* ---- starting -------------------------------------------------------------------------------- */

/* Builds "NAME=value" strings with each name once: later ones override earlier ones. */
struct env_list {
	struct str vars[ENV_TOTAL_MAX];
	size_t n;
};

static struct str env_name(struct str var)
{
	const char *eq = memchr(var.p, '=', var.n);

	return (struct str){ var.p, eq ? (size_t)(eq - var.p) : var.n };
}

static void env_put(struct env_list *l, struct str var)
{
	for (size_t i = 0; i < l->n; i++) {
		if (str_eq(env_name(l->vars[i]), env_name(var))) {
			l->vars[i] = var;
			return;
		}
	}
	if (l->n < ENV_TOTAL_MAX)
		l->vars[l->n++] = var;
}

static void env_drop(struct env_list *l, struct str name)
{
	for (size_t i = 0; i < l->n; i++) {
		if (str_eq(env_name(l->vars[i]), name))
			l->vars[i--] = l->vars[--l->n];
	}
}

/* A shell on a terminal shows in which sandbox it is. Debian's bash.bashrc sets its own PS1, with
 * debian_chroot in front; other shells take PS1 as it is. Of a generated id the beginning is
 * enough. */
enum { PROMPTS = 2, PROMPT_MAX = SANDBOX_ID_MAX + 32 };

static void env_put_prompt(struct env_list *l, const char *id, char text[PROMPTS][PROMPT_MAX])
{
	int n = strncmp(id, "sbx-", 4) == 0 && strlen(id) == 36 ? 12 : SANDBOX_ID_MAX;

	snprintf(text[0], PROMPT_MAX, "debian_chroot=%.*s", n, id);
	snprintf(text[1], PROMPT_MAX, "PS1=%.*s:$PWD$ ", n, id);
	for (size_t i = 0; i < PROMPTS; i++)
		env_put(l, str_of(text[i]));
}

static int add_string(struct buf *b, struct str s, struct err *e)
{
	if (s.n && memchr(s.p, 0, s.n))
		return err_set(e, ERR_INVALID, "arguments hold no NUL");
	if (buf_add(b, s.p, s.n, e) < 0 || buf_add(b, "", 1, e) < 0)
		return -1;
	return 0;
}

/* Over what a sandbox with root has for that. */
static const char *const other_env[] = { "HOME=/home/agent", "USER=agent", "LOGNAME=agent" };

/* Whether the program is not who the others of its sandbox are. */
static bool is_other(const struct exec *x, const struct exec_spec *spec)
{
	return spec->how.user == EXEC_AS_USER && x->sb->limits.root;
}

static int check_secrets(const struct exec_spec *spec, struct err *e)
{
	if (spec->n_secrets > WIRE_SECRETS_MAX)
		return err_set(e, ERR_INVALID, "secrets: at most %d", WIRE_SECRETS_MAX);
	for (size_t i = 0; i < spec->n_secrets; i++) {
		const struct exec_secret *s = &spec->secrets[i];

		if (env_check(&(struct env_var){ s->name, s->value }, 1, e) < 0)
			return -1;
		if (s->name.n > WIRE_SECRET_NAME_MAX)
			return err_set(e, ERR_INVALID,
				       "secrets: a variable's name has at most %d bytes",
				       WIRE_SECRET_NAME_MAX);
	}
	return 0;
}

/* Those that go into files come last. */
static int add_secrets(const struct exec_spec *spec, bool as_file, struct buf *b, uint32_t *n,
		       struct err *e)
{
	for (size_t i = 0; i < spec->n_secrets; i++) {
		const struct exec_secret *s = &spec->secrets[i];

		if (s->as_file != as_file)
			continue;
		if (buf_add(b, s->name.p, s->name.n, e) < 0 || buf_add(b, "=", 1, e) < 0 ||
		    add_string(b, s->value, e) < 0)
			return -1;
		++*n;
	}
	return 0;
}

static int add_env(struct exec *x, const struct exec_spec *spec, struct buf *b, struct im_exec *m,
		   struct err *e)
{
	autobuf struct buf own = BUF_INIT(EXEC_BYTES_MAX);
	struct str term = spec->terminal ? spec->terminal->term : STR_NONE;
	struct env_list l;
	char prompt[PROMPTS][PROMPT_MAX];
	size_t at = 0;

	l.n = 0; /* alone: its array has 12 KiB */
	if (env_check(spec->env, spec->n_env, e) < 0 || check_secrets(spec, e) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(base_env); i++)
		env_put(&l, str_of(base_env[i]));
	if (spec->terminal)
		env_put_prompt(&l, x->sb->id, prompt);
	for (size_t i = 0; i < x->sb->n_env; i++)
		env_put(&l, str_of(x->sb->env[i]));
	for (size_t i = 0; is_other(x, spec) && i < ARRAY_LEN(other_env); i++)
		env_put(&l, str_of(other_env[i]));
	if (term.p &&
	    (buf_addf(&own, e, "TERM=%.*s", STR_ARG(term)) < 0 || buf_add(&own, "", 1, e) < 0))
		return -1;
	for (size_t i = 0; i < spec->n_env; i++) {
		if (buf_addf(&own, e, "%.*s=%.*s", STR_ARG(spec->env[i].name),
			     STR_ARG(spec->env[i].value)) < 0 ||
		    buf_add(&own, "", 1, e) < 0)
			return -1;
	}
	while (at < own.n) {
		env_put(&l, str_of(own.p + at));
		at += strlen(own.p + at) + 1;
	}
	for (size_t i = 0; i < spec->n_secrets; i++)
		env_drop(&l, spec->secrets[i].name);
	for (size_t i = 0; i < l.n; i++) {
		if (add_string(b, l.vars[i], e) < 0)
			return -1;
	}
	m->envc = (uint32_t)l.n;
	if (add_secrets(spec, false, b, &m->envc, e) < 0 ||
	    add_secrets(spec, true, b, &m->secret_files, e) < 0)
		return -1;
	m->envc += m->secret_files;
	return 0;
}

/* The working directory of the call; relative ones are below that of the sandbox. */
static int add_cwd(struct exec *x, const struct exec_spec *spec, struct buf *b, struct err *e)
{
	struct str cwd = spec->cwd.p ? spec->cwd : str_of(x->sb->cwd);
	char path[PATH_MAX];
	int n = sandbox_path(x->sb, cwd, path, e);

	if (n < 0)
		return err_wrap(e, "cwd");
	snprintf(x->cwd, sizeof(x->cwd), "%.*s", (int)sizeof(x->cwd) - 1, path);
	return buf_add(b, path, (size_t)n, e);
}

/* The template's arguments, if the call has none. */
static struct str word_of(const struct exec *x, const struct exec_spec *spec, size_t i)
{
	return spec->n_argv ? spec->argv[i] : str_of(x->sb->argv[i]);
}

static int build_message(struct exec *x, const struct exec_spec *spec, struct buf *b, struct err *e)
{
	bool by_default = !spec->shell.p && spec->n_argv == 0;
	size_t words = by_default ? x->sb->n_argv : spec->n_argv;
	struct im_exec m = {
		.h = { IM_EXEC, x->id },
		.argc = spec->shell.p ? 1 : (uint32_t)words,
		.has_stdin = spec->stdin_open,
		.shell = spec->shell.p != NULL,
		.terminal = spec->terminal != NULL,
		.files = x->sb->limits.files,
		.how = spec->how,
	};

	if (spec->how.user == EXEC_AS_ROOT && !x->sb->limits.root)
		return err_set(e, ERR_INVALID, "user: the sandbox was made without root");
	m.how.user = is_other(x, spec) ? EXEC_AS_USER : EXEC_AS_SANDBOX;
	if (by_default && words == 0)
		return err_set(e, ERR_INVALID,
			       "argv: the template names no program to run by default");
	if (!spec->shell.p && (words > EXEC_ARGS_MAX || word_of(x, spec, 0).n == 0))
		return err_set(e, ERR_INVALID, "argv: 1 to %d words, the first not empty",
			       EXEC_ARGS_MAX);
	if (buf_add(b, &m, sizeof(m), e) < 0 || add_cwd(x, spec, b, e) < 0)
		return -1;
	if (spec->shell.p && add_string(b, spec->shell, e) < 0)
		return -1;
	for (size_t i = 0; !spec->shell.p && i < words; i++) {
		if (add_string(b, word_of(x, spec, i), e) < 0)
			return -1;
	}
	if (add_env(x, spec, b, &m, e) < 0)
		return -1;
	memcpy(b->p, &m, sizeof(m));
	return 0;
}

/* Our end is non-blocking, the program's is not. The program, which is another user, may open its
 * end again by its name in /proc (/dev/stdout), which requires this mode. */
static int make_pipe(int *ours, int *theirs, bool we_read)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	*ours = ends[we_read ? 0 : 1];
	*theirs = ends[we_read ? 1 : 0];
	if (fchmod(*theirs, 0666) < 0 || fcntl(*ours, F_SETFL, O_NONBLOCK) < 0)
		return -1;
	return 0;
}

static int watch_output(struct exec *x, int i, enum exec_stream stream)
{
	struct output *o = &x->out[i];

	o->x = x;
	o->stream = stream;
	o->poll = calloc(1, sizeof(*o->poll));
	if (!o->poll)
		return -1;
	uv_poll_init(x->sb->box->loop, o->poll, o->fd);
	o->poll->data = o;
	uv_poll_start(o->poll, UV_READABLE, on_output_ready);
	return 0;
}

static int watch_input(struct exec *x)
{
	x->in_poll = calloc(1, sizeof(*x->in_poll));
	if (!x->in_poll)
		return -1;
	uv_poll_init(x->sb->box->loop, x->in_poll, x->in);
	x->in_poll->data = x;
	if (x->in_queue.n)
		uv_poll_start(x->in_poll, UV_WRITABLE, on_stdin_ready);
	return 0;
}

static int start_timer(struct exec *x, const struct exec_spec *spec)
{
	x->timer = calloc(1, sizeof(*x->timer));
	if (!x->timer)
		return -1;
	uv_timer_init(x->sb->box->loop, x->timer);
	x->timer->data = x;
	if (spec->timeout_ms)
		await_timeout(x, spec->timeout_ms);
	return 0;
}

static int watch_all(struct exec *x, const struct exec_spec *spec, struct err *e)
{
	if (watch_output(x, 0, EXEC_STDOUT) < 0 || watch_output(x, 1, EXEC_STDERR) < 0 ||
	    (spec->stdin_open && watch_input(x) < 0) || start_timer(x, spec) < 0)
		return err_set(e, ERR_LIMIT, "out of memory");
	return 0;
}

/* Both directions are one descriptor, but the loop needs two. */
static int attach_terminal(struct exec *x, int master, int slave, struct err *e)
{
	x->out[0].fd = master;
	x->slave = slave;
	x->in = fcntl(master, F_DUPFD_CLOEXEC, 0);
	if (x->in < 0)
		return err_sys(e, errno, "a terminal");
	if (watch_output(x, 0, EXEC_STDOUT) < 0 || watch_input(x) < 0)
		return err_set(e, ERR_LIMIT, "out of memory");
	return sandbox_send(x->sb, x->message.p, x->message.n, &slave, 1, e);
}

static void on_terminal(void *arg, int master, int slave, const struct err *err)
{
	struct exec *x = arg;
	struct err e;

	x->opening = NULL;
	if (!err && attach_terminal(x, master, slave, &e) < 0)
		err = &e;
	buf_wipe(&x->message);
	if (err) {
		exec_finish(x, NULL, err);
	} else if (x->killed_ms) {
		exec_kill(x);
	} else if (x->early_signal) {
		send_signal(x, x->early_signal, 0);
	}
}

/* The message waits until the terminal is open. */
static int start_on_terminal(struct exec *x, const struct exec_spec *spec, struct buf *message,
			     struct err *e)
{
	x->on_terminal = true;
	if (start_timer(x, spec) < 0)
		return err_set(e, ERR_LIMIT, "out of memory");
	x->opening = terminal_open_start(x->sb, spec->terminal, on_terminal, x, e);
	if (!x->opening)
		return -1;
	x->message = *message;
	*message = BUF_INIT(0);
	return 0;
}

static int start(struct exec *x, const struct exec_spec *spec, struct err *e)
{
	autowipe struct buf b = BUF_INIT(EXEC_BYTES_MAX + PATH_MAX + 4096);
	int fds[3] = { -1, -1, -1 }, failed;

	/* A buffer that grows leaves copies behind. */
	if (spec->n_secrets && !buf_reserve(&b, b.max, e))
		return -1;
	if (build_message(x, spec, &b, e) < 0)
		return e->code == ERR_TOO_LARGE
			     ? err_set(e, ERR_TOO_LARGE,
				       "arguments and environment: at most %d bytes together",
				       EXEC_BYTES_MAX)
			     : -1;
	if (spec->terminal)
		return start_on_terminal(x, spec, &b, e);
	failed = (spec->stdin_open && make_pipe(&x->in, &fds[0], false) < 0) ||
		 make_pipe(&x->out[0].fd, &fds[1], true) < 0 ||
		 make_pipe(&x->out[1].fd, &fds[2], true) < 0;
	if (failed)
		err_sys(e, errno, "make pipes");
	else if (watch_all(x, spec, e) < 0)
		failed = 1;
	else if (spec->stdin_open)
		failed = sandbox_send(x->sb, b.p, b.n, fds, 3, e);
	else
		failed = sandbox_send(x->sb, b.p, b.n, fds + 1, 2, e);
	for (int i = 0; i < 3; i++)
		close_fd(&fds[i]);
	return failed ? -1 : 0;
}

struct exec *exec_start(struct sandbox *sb, const struct exec_spec *spec,
			const struct exec_events *events, void *arg, struct err *e)
{
	struct str name = spec->shell.p ? STR_LIT("sh")
			: spec->n_argv	? spec->argv[0]
			: sb->n_argv	? str_of(sb->argv[0])
					: STR_LIT("");
	struct exec *x;

	if (!sb->live || sb->destroying) {
		err_set(e, ERR_SANDBOX_NOT_FOUND, "sandbox %s has ended", sb->id);
		return NULL;
	}
	x = calloc(1, sizeof(*x));
	if (!x) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	x->sb = sandbox_ref(sb);
	x->id = ++sb->last_id;
	x->events = events;
	x->arg = arg;
	x->in = -1;
	x->slave = -1;
	x->out[0].fd = -1;
	x->out[1].fd = -1;
	x->started_ns = clock_ns();
	snprintf(x->name, sizeof(x->name), "%.*s", STR_ARG(name));
	x->next = sb->execs;
	sb->execs = x;
	if (start(x, spec, e) == 0) {
		sb->n_execs++;
		sb->box->stats.execs++;
		return x;
	}
	free_exec(x);
	return NULL;
}
