/*
 * The states of the program, in their order:
 *
 *	RUNNING
 *	ENDING		its input ends: now, or when the queue has been written
 *	TERMINATED	SIGTERM was sent
 *	KILLED		SIGKILL was sent
 *	GONE		it was waited for
 *
 * It is waited for only after the last signal to its group.
 */
#include "mcp/connect/child.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "loop/reader.h"
#include "loop/writer.h"
#include "mcp/connect/group.h"
#include "mcp/connect/tether.h"
#include "rpc/line.h"

enum {
	QUEUE_MAX = 128 << 20, /* for a program that does not read */
	ANSWERS_MAX = 4 << 20, /* of that, for answers to its requests */
	DRAIN_MS = 1000, /* for its last output; others may hold the pipe open */
	ENV_MAX = 1024,
};

enum state { RUNNING, ENDING, TERMINATED, KILLED, GONE };

struct mcp_child {
	const struct mcp_child_events *ev;
	void *owner;
	unsigned stop_ms;
	enum state state;
	struct mcp_group group;
	int tether; /* -1: none */
	int status;
	bool out_over, err_over; /* the end of each output was seen */
	bool told; /* on_end was called */
	bool closing, shut;
	struct err why; /* why it ended by itself */
	struct line_reader lines;
	struct loop_reader *out, *err;
	struct loop_writer *in; /* NULL once its input has ended */
	size_t answers; /* bytes of answers queued since the queue was empty */
	uv_poll_t exit;
	uv_timer_t timer; /* limit of the current state */
	unsigned handles; /* handles that are not closed yet */
	void (*on_closed)(void *owner);
	void *closed_owner;
};

/* --- the end --- */

static void on_one_closed(void *owner)
{
	struct mcp_child *c = owner;

	if (--c->handles > 0)
		return;
	close_fd(&c->group.pidfd);
	line_fini(&c->lines);
	if (c->on_closed)
		c->on_closed(c->closed_owner);
	free(c);
}

static void on_handle_closed(uv_handle_t *handle)
{
	on_one_closed(handle->data);
}

/* The writer counts among the handles from its start. */
static void end_input(struct mcp_child *c)
{
	if (c->in)
		loop_writer_close(take_ptr(c->in), on_one_closed);
}

static void shut(struct mcp_child *c)
{
	if (c->shut)
		return;
	c->shut = true;
	end_input(c);
	loop_reader_close(c->out, on_one_closed);
	loop_reader_close(c->err, on_one_closed);
	uv_close((uv_handle_t *)&c->exit, on_handle_closed);
	uv_close((uv_handle_t *)&c->timer, on_handle_closed);
}

static void tell_end(struct mcp_child *c)
{
	if (c->told || c->closing)
		return;
	c->told = true;
	c->ev->on_end(c->owner, &c->why);
}

/* Its last output has come, or took too long. */
static void on_drained(uv_timer_t *timer)
{
	tell_end(timer->data);
}

static void child_drain(struct mcp_child *c)
{
	if (c->closing)
		shut(c);
	else if (c->out_over && c->err_over)
		tell_end(c);
	else
		uv_timer_start(&c->timer, on_drained, DRAIN_MS, 0);
}

static void describe(struct mcp_child *c)
{
	if (c->status < 0)
		err_set(&c->why, ERR_TRANSPORT, "the server's program has ended");
	else if (WIFSIGNALED(c->status))
		err_set(&c->why, ERR_TRANSPORT, "the server's program was ended by signal %d (%s)",
			WTERMSIG(c->status), sigdescr_np(WTERMSIG(c->status)) ?: "unknown");
	else
		err_set(&c->why, ERR_TRANSPORT, "the server's program ended with status %d",
			WEXITSTATUS(c->status));
}

static void on_exit_seen(uv_poll_t *poll, int status, int events)
{
	struct mcp_child *c = poll->data;

	uv_poll_stop(poll);
	mcp_group_kill(&c->group, SIGKILL);
	mcp_tether_end(&c->tether);
	c->status = mcp_group_wait(&c->group);
	c->state = GONE;
	describe(c);
	child_drain(c);
}

static void on_late(uv_timer_t *timer)
{
	struct mcp_child *c = timer->data;
	bool again = c->state == TERMINATED;

	end_input(c);
	log_debug("mcp child: %s", again ? "SIGKILL" : "SIGTERM");
	c->state = again ? KILLED : TERMINATED;
	mcp_group_kill(&c->group, again ? SIGKILL : SIGTERM);
	if (!again)
		uv_timer_start(timer, on_late, c->stop_ms, 0);
	tell_end(c);
}

static void start_ending(struct mcp_child *c)
{
	c->state = ENDING;
	if (c->in && loop_writer_queued(c->in) == 0)
		end_input(c);
	uv_timer_start(&c->timer, on_late, c->stop_ms, 0);
}

/* The program is ending, or of no more use. Its exit status may say more than `why`. */
static void child_lose(struct mcp_child *c, const char *why)
{
	if (c->state != RUNNING)
		return;
	err_set(&c->why, ERR_TRANSPORT, "%s", why);
	end_input(c);
	start_ending(c);
}

void mcp_child_close(struct mcp_child *c, unsigned stop_ms, void (*on_closed)(void *owner),
		     void *owner)
{
	c->closing = true;
	c->stop_ms = stop_ms;
	c->on_closed = on_closed;
	c->closed_owner = owner;
	if (c->state == RUNNING)
		start_ending(c);
	else if (c->state == GONE)
		shut(c);
}

void mcp_child_kill(struct mcp_child *c)
{
	if (c->state != GONE)
		mcp_group_kill(&c->group, SIGKILL);
}

int mcp_child_status(const struct mcp_child *c)
{
	return c->state == GONE ? c->status : -1;
}

/* --- what it says --- */

static void take_event(struct mcp_child *c, enum line_event event, struct str line)
{
	struct err e;

	if (event == LINE_TEXT && line.n > 0)
		c->ev->on_line(c->owner, line);
	if (event == LINE_TEXT || event == LINE_MORE)
		return;
	if (event == LINE_TOO_LONG)
		err_set(&e, ERR_TOO_LARGE, "a message of more than %zu bytes", c->lines.max);
	else
		err_set(&e, ERR_LIMIT, "out of memory");
	c->ev->on_long(c->owner, &c->lines.sniff, &e);
}

static bool is_heard(const struct mcp_child *c)
{
	return !c->closing && !c->told;
}

/* Output is read, and dropped, even after the end was reported: otherwise the program could block
 * and not end. */
static void on_out(void *owner, struct str bytes)
{
	struct mcp_child *c = owner;
	enum line_event event = LINE_TEXT;
	struct str line = STR_NONE;

	while (is_heard(c) && event != LINE_MORE) {
		event = line_next(&c->lines, &bytes, &line);
		take_event(c, event, line);
	}
	loop_reader_next(c->out);
}

static void on_out_end(void *owner, const struct err *e)
{
	struct mcp_child *c = owner;
	struct str line = STR_NONE;

	c->out_over = true;
	if (is_heard(c))
		take_event(c, line_last(&c->lines, &line), line);
	if (c->state == GONE && !c->closing)
		child_drain(c);
	else
		child_lose(c, "the server's program has closed its output");
}

static const struct loop_reader_events out_events = { on_out, on_out_end };

static void on_err(void *owner, struct str bytes)
{
	struct mcp_child *c = owner;

	if (is_heard(c))
		c->ev->on_stderr(c->owner, bytes);
	loop_reader_next(c->err);
}

static void on_err_end(void *owner, const struct err *e)
{
	struct mcp_child *c = owner;

	c->err_over = true;
	if (c->state == GONE && !c->closing)
		child_drain(c);
}

static const struct loop_reader_events err_events = { on_err, on_err_end };

/* --- what it is told --- */

void mcp_child_send(struct mcp_child *c, struct str text, bool answer)
{
	if (!c->in || c->state != RUNNING)
		return;
	if (loop_writer_queued(c->in) == 0)
		c->answers = 0;
	c->answers += answer ? text.n : 0;
	if (c->answers > ANSWERS_MAX) {
		child_lose(c, "the server's program asks and asks, and reads no answers");
		return;
	}
	loop_writer_put(c->in, text);
	loop_writer_put(c->in, STR_LIT("\n"));
}

static void on_written(void *owner)
{
	struct mcp_child *c = owner;

	if (c->state != RUNNING && c->in && loop_writer_queued(c->in) == 0)
		end_input(c);
}

static void on_broken(void *owner, const struct err *e)
{
	struct mcp_child *c = owner;

	if (c->state == RUNNING)
		child_lose(c, "the server's program reads no more");
	else
		end_input(c);
}

static const struct loop_writer_events in_events = { on_written, on_broken };

/* --- the beginning --- */

/* Variables that describe the program's user and environment. Others may be secrets. */
static const char *const inherited[] = {
	"HOME",
	"LANG",
	"LC_ALL",
	"LC_CTYPE",
	"LC_MESSAGES",
	"LOGNAME",
	"PATH",
	"SHELL",
	"TERM",
	"TMPDIR",
	"TZ",
	"USER",
	"XDG_CACHE_HOME",
	"XDG_CONFIG_HOME",
	"XDG_DATA_HOME",
	"XDG_RUNTIME_DIR",
	"XDG_STATE_HOME",
};

static struct str env_name(const char *variable)
{
	return (struct str){ variable, strcspn(variable, "=") };
}

static bool is_inherited(const char *variable)
{
	for (size_t i = 0; i < ARRAY_LEN(inherited); i++) {
		if (str_is(env_name(variable), inherited[i]))
			return true;
	}
	return false;
}

static bool has_name(const char *const *list, struct str name)
{
	for (; list && *list; list++) {
		if (str_eq(env_name(*list), name))
			return true;
	}
	return false;
}

static int fill_env(const char *const *more, const char *ret[ENV_MAX], struct err *e)
{
	size_t n = 0;

	for (char **at = environ; at && *at && n < ENV_MAX - 1; at++) {
		if (is_inherited(*at) && !has_name(more, env_name(*at)))
			ret[n++] = *at;
	}
	for (; more && *more; more++) {
		if (n == ENV_MAX - 1)
			return err_set(e, ERR_LIMIT, "more than %d variables", ENV_MAX - 1);
		ret[n++] = *more;
	}
	ret[n] = NULL;
	return 0;
}

/* Descriptors above the standard three, at any free number: the child's are moved there. */
static int new_pipe(int *ret_read, int *ret_write, struct err *e)
{
	autoclose int r = -1, w = -1;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "make a pipe");
	r = fcntl(ends[0], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	w = fcntl(ends[1], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	close(ends[0]);
	close(ends[1]);
	if (r < 0 || w < 0)
		return err_sys(e, errno, "make a pipe");
	*ret_read = take_fd(&r);
	*ret_write = take_fd(&w);
	return 0;
}

static int set_spawn(posix_spawn_file_actions_t *acts, posix_spawnattr_t *attr,
		     const struct mcp_child_options *o, const int fds[3])
{
	sigset_t none, all;
	int rc = 0;

	sigemptyset(&none);
	sigfillset(&all);
	for (int i = 0; i < 3 && rc == 0; i++)
		rc = posix_spawn_file_actions_adddup2(acts, fds[i], i);
	if (rc == 0)
		rc = posix_spawn_file_actions_addclosefrom_np(acts, STDERR_FILENO + 1);
	if (rc == 0 && o->cwd)
		rc = posix_spawn_file_actions_addchdir_np(acts, o->cwd);
	posix_spawnattr_setsigmask(attr, &none);
	posix_spawnattr_setsigdefault(attr, &all);
	posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
					       POSIX_SPAWN_SETSIGDEF);
	return rc;
}

static int spawn(const struct mcp_child_options *o, const int fds[3], pid_t *ret, struct err *e)
{
	posix_spawn_file_actions_t acts;
	posix_spawnattr_t attr;
	const char *env[ENV_MAX];
	int rc;

	if (fill_env(o->env_more, env, e) < 0)
		return -1;
	posix_spawn_file_actions_init(&acts);
	posix_spawnattr_init(&attr);
	rc = set_spawn(&acts, &attr, o, fds);
	if (rc == 0)
		rc = posix_spawnp(ret, o->argv[0], &acts, &attr, (char *const *)o->argv,
				  (char *const *)(o->env ? o->env : env));
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&acts);
	if (rc == ENOENT)
		return err_set(e, ERR_COMMAND_NOT_FOUND,
			       "%s: there is no such program, or directory", o->argv[0]);
	if (rc == EACCES || rc == ENOEXEC)
		return err_set(e, ERR_COMMAND_NOT_RUN, "%s: not a program that can be run",
			       o->argv[0]);
	return rc ? err_sys(e, rc, "run %s", o->argv[0]) : 0;
}

/* Watches our ends. A half-made child is returned as it is, with pid set if the program runs. */
static int child_start(struct mcp_child *c, uv_loop_t *loop, const struct mcp_child_options *o,
		       struct err *e)
{
	autoclose int in_r = -1, in_w = -1, out_r = -1, out_w = -1, err_r = -1, err_w = -1;

	if (new_pipe(&in_r, &in_w, e) < 0 || new_pipe(&out_r, &out_w, e) < 0 ||
	    new_pipe(&err_r, &err_w, e) < 0)
		return -1;
	if (fcntl(in_w, F_SETFL, O_NONBLOCK) < 0 || fcntl(out_r, F_SETFL, O_NONBLOCK) < 0 ||
	    fcntl(err_r, F_SETFL, O_NONBLOCK) < 0)
		return err_sys(e, errno, "set the flags of a descriptor");
	c->in = loop_writer_new(loop, take_fd(&in_w), QUEUE_MAX, &in_events, c, e);
	c->out = c->in ? loop_reader_new(loop, take_fd(&out_r), &out_events, c, e) : NULL;
	c->err = c->out ? loop_reader_new(loop, take_fd(&err_r), &err_events, c, e) : NULL;
	if (!c->err || spawn(o, (int[]){ in_r, out_w, err_w }, &c->group.pid, e) < 0 ||
	    mcp_group_open(&c->group, e) < 0)
		return -1;
	c->tether = o->tethered ? mcp_tether_new(&c->group, e) : -1;
	if (o->tethered && c->tether < 0)
		return -1;
	if (uv_poll_init(loop, &c->exit, c->group.pidfd) < 0)
		return err_sys(e, EIO, "watch %s", o->argv[0]);
	return 0;
}

static void child_abandon(struct mcp_child *c)
{
	if (c->group.pid > 0) {
		mcp_group_kill(&c->group, SIGKILL);
		mcp_tether_end(&c->tether);
		mcp_group_wait(&c->group);
	}
	close_fd(&c->group.pidfd);
	if (c->err)
		loop_reader_close(c->err, NULL);
	if (c->out)
		loop_reader_close(c->out, NULL);
	if (c->in)
		loop_writer_close(c->in, NULL);
	free(c);
}

struct mcp_child *mcp_child_start(uv_loop_t *loop, const struct mcp_child_options *o,
				  const struct mcp_child_events *ev, void *owner, struct err *e)
{
	struct mcp_child *c = calloc(1, sizeof(*c));

	if (!c)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	*c = (struct mcp_child){ .ev = ev,
				 .owner = owner,
				 .stop_ms = o->stop_ms,
				 .group = MCP_GROUP_INIT,
				 .tether = -1,
				 .status = -1,
				 .handles = 5 };
	if (child_start(c, loop, o, e) < 0) {
		child_abandon(c);
		return NULL;
	}
	line_init(&c->lines, o->line_max);
	uv_timer_init(loop, &c->timer);
	c->timer.data = c->exit.data = c;
	uv_poll_start(&c->exit, UV_READABLE, on_exit_seen);
	loop_reader_next(c->out);
	loop_reader_next(c->err);
	return c;
}
