#pragma once
/* Between the files of a conversation. */
#include <uv.h>

#include "base/arena.h"
#include "base/secret.h"
#include "cli/peer/peer.h"
#include "loop/reader.h"
#include "mcp/oauth/oauth.h"
#include "mcp/connect/connect.h"

enum { PEER_SIGNALS = 3, PEER_TAIL = 4096, PEER_HEADERS_MAX = 64, PEER_QUESTIONS = 32 };

struct peer_form; /* form.c's */

struct peer {
	const struct verb_input *in;
	const struct peer_options *o;
	void (*ready)(struct peer *p);
	void *state;
	int first; /* of the operands that are arguments */
	struct args *arguments, *answers;
	uv_loop_t loop;
	uv_signal_t signals[PEER_SIGNALS];
	uv_timer_t settling; /* before ready(), see peer_settle() */
	uv_timer_t whole; /* looks at how long all of it has taken */
	uint64_t looked_ms, taken_ms;
	bool logging_in; /* a person is to log in */

	/* which server */
	struct arena *arena;
	struct mcp_target target;
	struct http_header headers[PEER_HEADERS_MAX];
	struct secret *token;
	const char *module; /* of the hub, whose gateway it is; NULL: none */
	struct mcp_oauth_store *store; /* NULL: log-ins are not kept, and why */
	struct err store_why;
	struct mcp_oauth *oauth;
	struct mcp_link *link;
	uint64_t key; /* of what was found out about it */

	/* what is asked of it */
	struct mcp_pending *pending;
	peer_then *then;
	void (*then_list)(struct peer *p, const struct mcp_listed *l);
	bool spoke; /* it was ready once */
	bool line_open; /* a line of progress stands on the terminal */

	/* what it asks */
	struct mcp_question *questions[PEER_QUESTIONS]; /* for people, in order */
	size_t questions_n;
	struct peer_form *form;
	struct loop_reader *tty;
	char line[4096]; /* that is typed */
	size_t line_n;

	char tail[PEER_TAIL]; /* the last output of its program on standard error */
	size_t tail_n;
	unsigned saved; /* the number of the last file that --out made */
	bool ending;
	int status;
};

/* Standard error, for a whole line: an unfinished line is ended first. */
FILE *peer_err(struct peer *p);

/* The server has received the folders that it asked for. */
void peer_settle(struct peer *p);
/* Ends it with this exit status, once. */
void peer_finish(struct peer *p, int status);

/* --- fail.c --- */
enum peer_end peer_meaning(const struct peer *p, const struct err *e);
/* Says why it fails, and does not end it. */
void peer_tell(struct peer *p, enum peer_end how, const struct err *e);
/* Ends it because of an answer that is no result. */
void peer_fail_answer(struct peer *p, const struct mcp_answer *a);

/* --- target.c --- */
int peer_target(struct peer *p, struct err *e) MUST_USE;
/* The text of a file, without a final line break, as a secret. */
struct secret *peer_secret_file(const char *path, struct err *e) MUST_USE;

/* --- login.c --- */
/* The target's auth, if the options give none. */
int peer_login(struct peer *p, struct err *e) MUST_USE;

/* --- cache.c --- */
/* Reads what is known of the target, zeroes if nothing; and stores what was found out. Never
 * fails. */
struct mcp_found peer_cache_find(uint64_t key);
void peer_cache_keep(uint64_t key, struct mcp_found found);
uint64_t peer_cache_key(const struct mcp_target *t);

/* --- ask.c --- */
/* Reads the answers, and checks the folders of the options. */
int peer_ask_prepare(struct peer *p, struct err *e) MUST_USE;
/* The kinds of questions that the options allow. */
unsigned peer_can(const struct peer *p);
void peer_asked(struct peer *p, struct mcp_question *q);
void peer_withdrawn(struct peer *p, struct mcp_question *q);
/* The question was answered or declined; asks the next one. */
void peer_ask_next(struct peer *p);
/* Asks nobody any more. */
void peer_ask_stop(struct peer *p);
void peer_answer_action(struct peer *p, struct mcp_question *q, const char *action);
/* Prints which server asks, and its message. */
void peer_ask_head(struct peer *p, const struct mcp_question *q);

/* --- form.c --- */
/* Asks the user at the terminal; NULL with ERR_LIMIT. */
struct peer_form *peer_form_start(struct peer *p, struct mcp_question *q, struct err *e) MUST_USE;
void peer_form_free(struct peer_form *f);
/* A line that was typed, or the end of input. */
void peer_form_line(struct peer_form *f, struct str line);
void peer_form_end(struct peer_form *f);
