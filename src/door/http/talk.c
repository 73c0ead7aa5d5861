#include "door/http/talk.h"

#include "json/document/json.h"

enum {
	SCRATCH_MAX = 4 << 20, /* what one message of the door's size can decode to */
	COLUMNS = 80,
	ROWS = 24,
};

struct talk {
	struct call *call;
	struct str sandbox;
	const struct talk_form *form;
	struct exec_run *run; /* NULL: it is not opened */
};

/* ---- what is said ---------------------------------------------------------------------------- */

/* 1: the call has failed, and with it t is gone. */
static int open_run(struct talk *t, struct talk_word *w, struct err *e)
{
	if (w->kind != TALK_OPEN)
		return err_set(e, ERR_INVALID, "the first message has open");
	w->open.sandbox = t->sandbox;
	if (exec_refuses(t->call, &w->open))
		return 1;
	t->run = exec_run_start(t->call, &w->open, &t->form->voice, e);
	return t->run ? 0 : -1;
}

static int act(struct talk *t, struct talk_word *w, struct err *e)
{
	struct exec *x = t->run ? exec_run_exec(t->run) : NULL;

	if (!t->run)
		return open_run(t, w, e);
	if (!x)
		return 0; /* it is ending */
	switch (w->kind) {
	case TALK_OPEN:
		return err_set(e, ERR_INVALID, "only the first message has open");
	case TALK_STDIN:
		exec_run_input(t->run, w->bytes);
		return 0;
	case TALK_STDIN_CLOSE:
		exec_close_stdin(x);
		return 0;
	case TALK_RESIZE:
		return exec_resize(x, w->columns, w->rows, e);
	case TALK_SIGNAL:
		if (w->signal < 1 || w->signal > PROCESS_SIGNAL_MAX)
			return err_set(e, ERR_INVALID, "signal: a number from 1 to %d",
				       PROCESS_SIGNAL_MAX);
		exec_signal(x, w->signal);
		return 0;
	}
	return 0;
}

static void on_message(void *data, bool is_text, struct str message)
{
	struct talk *t = data;
	AUTO(arena_free) struct arena *scratch = arena_new(SCRATCH_MAX);
	struct talk_word w = { .doc = NULL };
	struct err e = ERR_INIT;
	int rc = -1;

	if (!scratch)
		err_set(&e, ERR_LIMIT, "out of memory");
	else if (t->form->read(scratch, is_text, message, &w, &e) == 0)
		rc = act(t, &w, &e);
	json_free(w.doc);
	if (rc >= 0)
		return;
	if (t->run)
		exec_run_refuse(t->run, &e);
	else
		call_fail(t->call, &e);
}

static void on_room(void *data)
{
	struct talk *t = data;

	if (t->run)
		exec_run_room(t->run);
}

static const struct ask_socket socket_events = { on_message, on_room };

/* ---- the beginning --------------------------------------------------------------------------- */

/* The client left, or said nothing, before it said what to run. */
static void on_cancel(void *data)
{
	struct talk *t = data;
	struct err e;

	err_set(&e, ERR_CANCELLED, "nothing was asked to be run");
	call_fail(t->call, &e);
}

void talk_start(struct call *c, struct str sandbox, const struct talk_form *form)
{
	struct err e = ERR_INIT;
	struct talk *t = arena_alloc(call_arena(c), sizeof(*t), &e);

	if (t)
		*t = (struct talk){ .call = c, .sandbox = sandbox, .form = form };
	if (!t || !ask_sandbox(c, sandbox, &e) || ask_socket_start(c, &socket_events, t, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	call_on_cancel(c, on_cancel, t);
}

/* ---- what both forms do ---------------------------------------------------------------------- */

enum { SIDE_MAX = 9999, TERM_MAX = 64 };

static const struct field tty_fields[] = {
	FIELD(struct talk_tty, cols, .max = SIDE_MAX, .doc = "Its columns; 80 if absent or 0."),
	FIELD(struct talk_tty, rows, .max = SIDE_MAX, .doc = "Its rows; 24 if absent or 0."),
	FIELD(struct talk_tty, term, .max = TERM_MAX,
	      .doc = "The variable TERM; xterm-256color if absent or empty."),
};
const struct field_table talk_tty_table = FIELD_TABLE(struct talk_tty, tty_fields);

static const struct field size_fields[] = {
	FIELD(struct talk_size, cols, .flags = FIELD_REQUIRED, .min = 1, .max = SIDE_MAX,
	      .doc = "Columns."),
	FIELD(struct talk_size, rows, .flags = FIELD_REQUIRED, .min = 1, .max = SIDE_MAX,
	      .doc = "Rows."),
};
const struct field_table talk_size_table = FIELD_TABLE(struct talk_size, size_fields);

struct exec_terminal talk_terminal(uint32_t columns, uint32_t rows, struct str term)
{
	return (struct exec_terminal){
		.columns = columns ? columns : COLUMNS,
		.rows = rows ? rows : ROWS,
		.term = term.n ? term : STR_LIT("xterm-256color"),
	};
}

int talk_default_command(struct exec_wish *w, struct err *e)
{
	if (w->command.n)
		return 0;
	if (w->terminal.columns == 0 || w->has_args)
		return err_set(e, ERR_INVALID, "open.command is missing");
	w->command = STR_LIT("exec \"$0\" -i"); /* bash, or sh where there is none */
	return 0;
}
