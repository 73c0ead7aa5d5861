#include "cli/exec/session.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/exec/detach.h"
#include "cli/exec/view.h"
#include "cli/common/feed.h"
#include "cli/common/outlet.h"
#include "cli/common/safe.h"
#include "cli/common/tty.h"
#include "http/client/ws.h"

enum {
	WAITING_MAX = 256 << 10, /* of our input, before we read no further */
	LEAVE_MS = 1000, /* what was typed has to go before we do */
	/* the first bytes of binary messages */
	CHANNEL_STDIN = 0,
	CHANNEL_STDOUT = 1,
	CHANNEL_STDERR = 2,
};

#define PROTOCOL "holt.exec.v1"
#define PROTOCOL_ATTACH "holt.attach.v1"

struct session {
	const struct exec_session_spec *spec;
	uv_loop_t *loop;
	struct ws_client *ws; /* NULL once it is over */
	struct feed feed;
	struct outlet out, err;
	bool out_held, err_held;
	bool attached; /* else it is begun here */
	bool tty, input; /* what it has */
	bool keys; /* a terminal: watch for the keys that detach */
	struct detach leave;
	bool leaving;
	uv_timer_t patience; /* while we are leaving */
	uv_signal_t signals[2];
	unsigned n_signals;
	struct view view; /* of a terminal with keys */
	uint64_t offset; /* of the output that it begins with */
	bool viewed;
	int64_t status; /* of the command; -1: it is not known yet */
	bool left; /* we went away before its end */
	struct err why; /* what went wrong instead */
	bool done;
};

/* ---- the end ------------------------------------------------------------------------------- */

/* Ends the session when the command has ended and all output is written. */
static void session_settle(struct session *s)
{
	if (!s->ws && outlet_empty(&s->out) && outlet_empty(&s->err))
		s->done = true;
}

static void session_fail(struct session *s, const struct err *e)
{
	if (s->why.code == ERR_NONE)
		s->why = *e;
	ws_client_close(take_ptr(s->ws));
	s->done = true;
}

/* The one that we are attached to runs on. */
static void leave_now(struct session *s)
{
	s->left = true;
	ws_client_close(take_ptr(s->ws));
	s->done = true;
}

static void on_impatient(uv_timer_t *t)
{
	struct session *s = t->data;

	if (s->status < 0) /* Otherwise it has ended meanwhile, and the hub closes. */
		leave_now(s);
}

/* Earlier input goes first, if the hub accepts it. */
static void leave(struct session *s)
{
	feed_stop(&s->feed);
	if (s->leaving)
		return;
	if (ws_client_waiting(s->ws) == 0) {
		leave_now(s);
		return;
	}
	s->leaving = true;
	uv_timer_init(s->loop, &s->patience);
	s->patience.data = s;
	uv_timer_start(&s->patience, on_impatient, LEAVE_MS, 0);
}

/* ---- what the hub says ----------------------------------------------------------------------- */

/* Prints what an exit status alone would not explain. An error follows as `error`. */
static int take_exit(struct session *s, const struct json_val *end, struct err *e)
{
	struct str why = json_str(json_get(end, "error"));

	if (!json_int64(json_get(end, "exit_code"), &s->status))
		return err_set(e, ERR_TRANSPORT, "the hub sent something unknown");
	feed_stop(&s->feed);
	tty_restore();
	if (why.n && s->status >= 0) {
		fputs("holt: ", stderr);
		safe_puts(stderr, why);
	}
	return 0;
}

static int session_begin(struct session *s, struct err *e);

/* A killed command has both an exit status and an error. */
static int take_text(struct session *s, struct str text, struct err *e)
{
	AUTO(json_free) struct json_doc *doc = json_parse(text, NULL, e);
	const struct json_val *said = json_root(doc), *part;
	uint64_t n = 0;

	if (!doc)
		return -1;
	if ((part = json_get(said, "exit")))
		return take_exit(s, part, e);
	if ((part = json_get(said, "attached"))) {
		/* Without input our terminal stays unchanged: no key could detach. */
		s->input = s->spec->input && json_bool(json_get(part, "stdin_open"));
		s->tty = s->input && json_bool(json_get(part, "tty"));
		s->keys = s->tty && isatty(STDIN_FILENO);
		json_uint64(json_get(part, "offset"), &s->offset);
		return session_begin(s, e);
	}
	if ((part = json_get(said, "dropped"))) {
		if (json_uint64(json_get(part, "bytes"), &n) && s->viewed)
			view_skip(&s->view, n);
		else if (n)
			fprintf(stderr, "holt: %" PRIu64 " bytes of it are not kept any more\n", n);
	} else if (s->status < 0) {
		hub_link_refusal(said, &s->why);
	}
	return 0;
}

static void on_message(void *owner, bool is_text, struct str message)
{
	struct session *s = owner;
	struct err e = ERR_INIT;
	int rc = 0;

	if (is_text)
		rc = take_text(s, message, &e);
	else if (message.n > 0 && message.p[0] == CHANNEL_STDOUT && s->viewed)
		view_write(&s->view, message.p + 1, message.n - 1);
	else if (message.n > 0 && message.p[0] == CHANNEL_STDOUT)
		outlet_write(&s->out, message.p + 1, message.n - 1);
	else if (message.n > 0 && message.p[0] == CHANNEL_STDERR)
		outlet_write(&s->err, message.p + 1, message.n - 1);
	else
		rc = err_set(&e, ERR_TRANSPORT, "the hub sent something unknown");
	if (rc < 0)
		session_fail(s, &e);
}

static void on_closed(void *owner, unsigned code, const struct err *why)
{
	struct session *s = owner;

	s->ws = NULL;
	feed_stop(&s->feed);
	if (s->status < 0 && s->why.code == ERR_NONE)
		err_set(&s->why, ERR_TRANSPORT, "the hub did not say how it ended: %s", why->msg);
	session_settle(s);
}

static void on_refused(void *owner, int status, struct str body)
{
	struct session *s = owner;
	struct err e = ERR_INIT;
	AUTO(json_free) struct json_doc *doc = json_parse(body, NULL, &e);

	s->ws = NULL;
	if (doc)
		hub_link_refusal(json_root(doc), &s->why);
	else
		err_set(&s->why, ERR_TRANSPORT, "the server at this socket is no hub");
	s->done = true;
}

/* ---- what goes in and out -------------------------------------------------------------------- */

static bool reads(void *arg)
{
	const struct session *s = arg;

	return s->ws && s->status < 0 && !s->leaving;
}

static bool take_input(void *arg, const char *p, size_t n)
{
	struct session *s = arg;
	static char message[1 + sizeof(s->feed.held) + DETACH_KEYS_MAX];
	bool leaves = false;

	if (ws_client_waiting(s->ws) > WAITING_MAX || ws_client_full(s->ws))
		return false; /* many small ones are many, too */
	message[0] = CHANNEL_STDIN;
	if (s->keys)
		leaves = detach_scan(&s->leave, p, n, message + 1, &n);
	else
		memcpy(message + 1, p, n);
	if (n > 0)
		ws_client_send(s->ws, false, (struct str){ message, n + 1 });
	if (leaves)
		leave(s);
	return true;
}

static void end_input(void *arg)
{
	struct session *s = arg;

	ws_client_send(s->ws, true, STR_LIT("{\"stdin_close\":true}"));
}

static const struct feed_to to_hub = { reads, take_input, end_input };

static void on_drained(void *owner)
{
	struct session *s = owner;

	if (s->leaving && s->status < 0)
		leave_now(s);
	else if (!s->leaving)
		feed_resume(&s->feed);
}

static void on_open(void *owner)
{
	struct session *s = owner;
	struct err e;

	if (s->attached)
		return; /* the hub says first what it is */
	ws_client_send(s->ws, true, s->spec->open);
	if (session_begin(s, &e) < 0)
		session_fail(s, &e);
}

static const struct ws_client_events events = { on_open, on_message, on_drained, on_refused,
						on_closed };

/* Both streams share one WebSocket, so either slow reader holds both. */
static void session_hold(void *arg, int fd, bool on)
{
	struct session *s = arg;

	*(fd == STDOUT_FILENO ? &s->out_held : &s->err_held) = on;
	if (s->ws)
		ws_client_hold(s->ws, s->out_held || s->err_held);
}

static void on_written(void *arg)
{
	struct session *s = arg;
	struct err e;

	if (s->out.errnum || s->err.errnum) {
		err_sys(&e, s->out.errnum ? s->out.errnum : s->err.errnum, "standard output");
		session_fail(s, &e);
	}
	session_settle(s);
}

/* ---- signals ------------------------------------------------------------------------------- */

static void session_resize(void *arg, unsigned columns, unsigned rows_)
{
	struct session *s = arg;
	char text[64];
	int n;

	if (!s->ws || s->status >= 0)
		return;
	n = snprintf(text, sizeof(text), "{\"resize\":{\"cols\":%u,\"rows\":%u}}", columns, rows_);
	ws_client_send(s->ws, true, (struct str){ text, (size_t)n });
}

static void on_resized(uv_signal_t *h, int number)
{
	struct session *s = h->data;
	unsigned columns, rows_;

	if (s->viewed)
		view_resized(&s->view);
	else if (tty_size(&columns, &rows_))
		session_resize(s, columns, rows_);
}

/* While we are stopped, the terminal has its old mode. */
static void on_continued(uv_signal_t *h, int number)
{
	struct session *s = h->data;
	struct err e;

	if (s->ws && s->status < 0 && (!s->input || tty_raw(&e) == 0))
		on_resized(h, number);
}

static void on_interrupted(uv_signal_t *h, int number)
{
	struct session *s = h->data;

	if (s->ws && s->status < 0)
		ws_client_send(s->ws, true, STR_LIT("{\"signal\":2}"));
}

static void on_quit(uv_signal_t *h, int number)
{
	struct session *s = h->data;

	if (s->ws)
		leave(s);
}

static void session_watch(struct session *s, int number, uv_signal_cb f)
{
	uv_signal_t *h = &s->signals[s->n_signals++];

	uv_signal_init(s->loop, h);
	h->data = s;
	uv_signal_start(h, f, number);
}

/* Now it is known what the command has. Keys are sent as bytes or as signals; without input our
 * terminal keeps its mode, and its keys mean what they always do. If we are attached to a terminal,
 * it gets the size of ours. */
static int session_begin(struct session *s, struct err *e)
{
	if (s->tty) {
		session_watch(s, SIGWINCH, on_resized);
		session_watch(s, SIGCONT, on_continued);
	} else if (s->attached) {
		session_watch(s, SIGINT, on_interrupted);
		session_watch(s, SIGQUIT, on_quit);
	}
	if (s->tty && s->input && tty_raw(e) < 0)
		return -1;
	if (s->keys && isatty(STDOUT_FILENO)) {
		s->view = (struct view){ .out = &s->out, .resize = session_resize, .arg = s };
		view_start(&s->view, s->loop, s->offset, s->spec->seen,
			   s->spec->news ? s->spec->news : -1);
		s->viewed = true;
	}
	if (s->attached && s->tty)
		on_resized(&s->signals[0], SIGWINCH);
	return s->input ? feed_start(&s->feed, s->loop, &to_hub, s, e) : 0;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int session_start(struct session *s, struct hub_link *l, struct err *e)
{
	s->loop = hub_link_loop(l);
	s->out = (struct outlet){ .hold = session_hold, .on_ready = on_written, .arg = s };
	s->err = s->out;
	if (outlet_init(&s->out, s->loop, STDOUT_FILENO, e) < 0 ||
	    outlet_init(&s->err, s->loop, STDERR_FILENO, e) < 0)
		return -1;
	s->ws = hub_link_socket(l, s->spec->path, s->attached ? PROTOCOL_ATTACH : PROTOCOL, &events,
				s, e);
	return s->ws ? 0 : -1;
}

static void session_finish(struct session *s)
{
	if (s->viewed)
		view_stop(&s->view, s->left);
	tty_restore();
	feed_stop(&s->feed);
	outlet_close(&s->out);
	outlet_close(&s->err);
	ws_client_close(take_ptr(s->ws));
	for (unsigned i = 0; i < s->n_signals; i++)
		uv_close((uv_handle_t *)&s->signals[i], NULL);
	if (s->leaving)
		uv_close((uv_handle_t *)&s->patience, NULL);
	if (s->left && s->tty)
		fprintf(stderr, "\nholt: it runs on%s%s\n",
			s->spec->again ? "; to come back: " : "",
			s->spec->again ? s->spec->again : "");
}

int exec_session(struct hub_link *l, const struct exec_session_spec *spec, struct err *e)
{
	static struct session s; /* its handles live until the loop has ended */

	s = (struct session){ .spec = spec,
			      .status = -1,
			      .attached = spec->leave != NULL,
			      .tty = spec->tty,
			      .input = spec->input };
	if (spec->leave)
		s.leave = *spec->leave;
	if (session_start(&s, l, &s.why) == 0)
		hub_link_await(l, &s.done);
	session_finish(&s);
	if (s.why.code == ERR_NONE)
		return s.left ? 0 : (int)s.status;
	*e = s.why;
	return -1;
}
