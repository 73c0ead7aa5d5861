#pragma once
/*
 * A conversation about one program, over a WebSocket: the client opens it with what is to be run, then says what
 * goes into its standard input, how large its terminal is, and which signals it gets; what the program prints, and
 * how it ended, comes back meanwhile. Both have to wait for each other: who reads slowly holds the program, and a
 * program that reads slowly holds the client. A client that goes away ends the program.
 *
 * How all that is written is a form, of which there is one for /v1 and one for Connect.
 */
#include "door/http/exec_run.h"

enum talk_kind { TALK_OPEN, TALK_STDIN, TALK_STDIN_CLOSE, TALK_RESIZE, TALK_SIGNAL };

/* What the client says in one message. Strings are borrowed from the message, the arena, and doc. */
struct talk_word {
	enum talk_kind kind;
	struct exec_wish open; /* all but the sandbox */
	struct str bytes;
	uint32_t columns, rows;
	int signal;
	struct json_doc *doc; /* what is to be freed behind it; or NULL */
};

struct talk_form {
	/* ret is zeroed before; scratch lives as long as its strings must. */
	int (*read)(struct arena *scratch, bool is_text, struct str message, struct talk_word *ret,
		    struct err *e);
	struct exec_voice voice;
};

/* Of /v1 (exec_socket.c); the first byte of its binary messages. */
extern const struct talk_form talk_v1;
enum talk_channel { TALK_CHANNEL_STDIN, TALK_CHANNEL_STDOUT, TALK_CHANNEL_STDERR };

/* What such a message has for standard input. */
int talk_bytes(struct str message, struct str *ret, struct err *e) MUST_USE;

/* What its texts can say while the program runs: rows of a struct with these members, and has_resize, has_signal, has_close. */
#define TALK_HEARD_ROWS(S)                                                                         \
	FIELD_OBJECT(S, resize, talk_size_table, .has = FIELD_HAS(S, has_resize),                  \
		     .doc = "The new size of its terminal."),                                      \
		FIELD(S, signal, .min = 1, .max = PROCESS_SIGNAL_MAX,                              \
		      .has = FIELD_HAS(S, has_signal),                                             \
		      .doc = "A signal for its process group, by number."),                        \
		FIELD(S, stdin_close, .has = FIELD_HAS(S, has_close),                              \
		      .doc = "The end of its standard input; of a terminal, its end-of-file "      \
			     "character.")

/* Upgrades the request, and ends its call. sandbox and form live as long as that. */
void talk_start(struct call *c, struct str sandbox, const struct talk_form *form);

/* ---- what both forms do ---------------------------------------------------------------------- */

/* A terminal, and its new size, as /v1 has them. */
struct talk_tty {
	uint32_t cols, rows;
	struct str term;
};
extern const struct field_table talk_tty_table;

struct talk_size {
	uint32_t cols, rows;
};
extern const struct field_table talk_size_table;

/* The end, as /v1 tells it. */
struct talk_exit {
	int32_t exit_code;
	double exec_time_ms;
	struct str error, code, dimension;
};
extern const struct field_table talk_exit_table;
struct talk_exit talk_exit(const struct exec_end_view *end);

/* A terminal's size and kind, of which 0 and none stand for the usual. */
struct exec_terminal talk_terminal(uint32_t columns, uint32_t rows, struct str term);

/* With a terminal no command need be said: it is the shell of the template. ERR_INVALID without either. */
int talk_default_command(struct exec_wish *w, struct err *e) MUST_USE;
