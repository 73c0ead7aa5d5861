#include "door/rest/exec_end.h"

#include "base/failure.h"
#include "json/document/json.h"

static const struct field exit_fields[] = {
	FIELD(struct exit_view, exit_code, .flags = FIELD_REQUIRED,
	      .doc = "Exit code of the command; 124 after its timeout, -1 if it did not start."),
	FIELD(struct exit_view, exec_time_ms, .flags = FIELD_REQUIRED,
	      .doc = "Duration in milliseconds."),
	FIELD(struct exit_view, error,
	      .doc = "What went wrong, if the command did not end normally."),
	FIELD(struct exit_view, code, .doc = "Error code, if exec would answer one."),
	FIELD_ENUM(struct exit_view, failure, err_failure_names,
		   .has = FIELD_HAS(struct exit_view, fails), .doc = "Class of that error."),
	FIELD(struct exit_view, dimension,
	      .doc = "Limit of the sandbox that the command reached, if any: memory, pids, disk or "
		     "wall."),
};
const struct field_table exit_view_table = FIELD_TABLE(struct exit_view, exit_fields);

struct exit_view exit_view(const struct exec_event *end)
{
	enum api_code code = end->timed_out ? API_EXEC_TIMEOUT : api_code_of(end->failed);
	bool fails = end->timed_out || end->failed != ERR_NONE;
	enum err_code of = end->timed_out ? ERR_TIMEOUT : end->failed;

	return (struct exit_view){
		.exit_code = end->exit_code,
		.exec_time_ms = end->exec_time_ms,
		.error = end->error,
		.code = fails ? str_of(api_codes[code].name) : STR_NONE,
		.fails = fails,
		.failure = err_info(of)->failure,
		.dimension = end->dimension.n ? end->dimension : api_dimension_of(end->failed),
	};
}

const void *exec_show(struct call *c, const void *result, const struct field_table **t,
		      struct err *e)
{
	const struct exec_answer *a = result;

	if (!a->report.timed_out)
		return result;
	api_exec_timeout(c, e);
	return NULL;
}

/* The first byte of a binary message. */
enum socket_channel { SOCKET_STDIN, SOCKET_STDOUT, SOCKET_STDERR };

struct str socket_output(enum exec_stream stream, struct str bytes, struct buf *to)
{
	const char channel = stream == EXEC_STDOUT ? SOCKET_STDOUT : SOCKET_STDERR;
	struct err e;

	if (buf_add(to, &channel, 1, &e) < 0 || buf_add(to, bytes.p, bytes.n, &e) < 0)
		to->n = 0;
	return buf_str(to);
}

struct socket_size {
	uint32_t cols, rows;
};
static const struct field size_fields[] = {
	FIELD(struct socket_size, cols, .flags = FIELD_REQUIRED, .min = 1, .max = EXEC_SIDE_MAX,
	      .doc = "Width in columns."),
	FIELD(struct socket_size, rows, .flags = FIELD_REQUIRED, .min = 1, .max = EXEC_SIDE_MAX,
	      .doc = "Height in rows."),
};
static const struct field_table socket_size_table = FIELD_TABLE(struct socket_size, size_fields);

struct socket_word {
	bool has_resize, has_signal, has_close;
	struct socket_size resize;
	int32_t signal;
	bool stdin_close;
};
#define W struct socket_word
static const struct field word_fields[] = {
	FIELD_OBJECT(W, resize, socket_size_table, .has = FIELD_HAS(W, has_resize),
		     .doc = "New size of the terminal."),
	FIELD(W, signal, .min = 1, .max = PROCESS_SIGNAL_MAX, .has = FIELD_HAS(W, has_signal),
	      .doc = "Number of a signal to send to its process group."),
	FIELD(W, stdin_close, .has = FIELD_HAS(W, has_close),
	      .doc = "Closes standard input; on a terminal, sends its end-of-file character."),
};
#undef W
const struct field_table socket_word_table = FIELD_TABLE(
	struct socket_word, word_fields, .doc = "Each text message has exactly one member.");

/* The one thing that it says. */
static int socket_word(const struct socket_word *w, struct exec_word *ret, struct err *e)
{
	if (w->has_resize + w->has_signal + w->has_close != 1)
		return err_set(e, ERR_INVALID, "a text has one of resize, signal, stdin_close");
	if (w->has_close && !w->stdin_close)
		return err_set(e, ERR_INVALID, "stdin_close can only be true");
	*ret = (struct exec_word){ .kind = w->has_resize ? EXEC_WORD_RESIZE
					 : w->has_signal ? EXEC_WORD_SIGNAL
							 : EXEC_WORD_INPUT_END,
				   .cols = w->resize.cols,
				   .rows = w->resize.rows,
				   .signal = w->signal };
	return 0;
}

int socket_hear(struct call *c, struct arena *scratch, bool is_text, struct str message,
		struct err *e)
{
	AUTO(json_free) struct json_doc *doc = is_text ? json_parse(message, NULL, e) : NULL;
	struct exec_word w = { .kind = EXEC_WORD_INPUT };
	struct socket_word said;

	if (is_text) {
		if (!doc ||
		    field_decode(&socket_word_table, json_root(doc), scratch, &said, e) < 0 ||
		    socket_word(&said, &w, e) < 0)
			return -1;
	} else {
		if (message.n == 0 || message.p[0] != SOCKET_STDIN)
			return err_set(
				e, ERR_INVALID,
				"a binary message begins with the byte %d, for standard input",
				SOCKET_STDIN);
		w.bytes = (struct str){ message.p + 1, message.n - 1 };
	}
	return call_hear(c, &w, e);
}
