#pragma once
/*
 * Questions to people: what an agent, a tool or the hub itself wants to know of a person. A
 * question is kept in memory and in the registry until its deadline, whether or not somebody waits
 * for the answer: a hub that was killed has its questions again. Several may be pending at once.
 * The first answer wins. An answer is one of what was offered, and its label is the one that was
 * offered, whatever the person's client says.
 *
 * One thread, the loop's. Callbacks come from inside the functions named below, and from the loop.
 */
#include "ask/asks.h"
#include "json/field/field.h"

enum {
	QUESTION_OPTIONS_MAX = 20,
	QUESTION_ID_MAX = 64, /* characters of an option's id */
	QUESTION_LABEL_MAX = 200, /* characters */
	QUESTION_TEXT_MAX = 16 << 10, /* characters of a text, bytes of a form's schema */
	QUESTION_WHOLE_MAX = 64 << 10, /* characters of the text that a permission is about */
	QUESTION_FIELDS_MAX = 32, /* of a form */
	QUESTION_SECONDS_MAX = 7 * 24 * 3600,
	QUESTION_CLOSED_MAX = 256, /* that are kept after their end */
	QUESTION_NOTES_MAX = 16, /* notifications of one principal; the oldest gives way */
	QUESTION_NOTES_PAID_MAX = 64, /* likewise of all of one payer */
};

enum question_kind {
	QUESTION_YES_NO, /* two options, "yes" and "no" */
	QUESTION_BUTTONS, /* one of four options at most */
	QUESTION_SELECT, /* one of ten at most */
	QUESTION_PERMISSION, /* one of what an agent offers, to let it go on or not */
	QUESTION_FORM, /* values by a schema of flat members */
	QUESTION_TEXTBOX, /* a text */
	QUESTION_NOTIFY, /* nothing, but that it was seen */
	QUESTION_KINDS
};
extern const char *const question_kind_names[QUESTION_KINDS];

enum question_origin { QUESTION_OF_MCP, QUESTION_OF_ACP, QUESTION_OF_HUB, QUESTION_ORIGINS };
extern const char *const question_origin_names[QUESTION_ORIGINS]; /* "mcp", "acp", "hub" */

enum question_state {
	QUESTION_PENDING,
	QUESTION_ANSWERED,
	QUESTION_EXPIRED, /* nobody answered in time */
	QUESTION_CANCELLED, /* who asked, or a person, wants no answer any more */
	QUESTION_SUPERSEDED, /* something that came later stands for it */
	QUESTION_STATES
};
extern const char *const question_state_names[QUESTION_STATES];

enum question_style {
	QUESTION_INFO,
	QUESTION_SUCCESS,
	QUESTION_WARNING,
	QUESTION_ERROR,
	QUESTION_STYLES
};
extern const char *const question_style_names[QUESTION_STYLES];

struct question_option {
	struct str id, label, description, kind; /* kind: of a permission, as its agent says */
};
extern const struct field_table question_option_table;

/* What a person is shown. */
struct question_spec {
	struct str title, question;
	struct {
		const struct question_option *p;
		size_t n;
	} options;
	bool allow_free_text; /* instead of an option */
	struct str text; /* what a textbox begins with; what a permission is about */
	/* Of a form: JSON Schema of an object, whose members are strings, numbers, booleans, or
	 * lists of strings out of an enum. */
	struct field_json schema;
	enum question_style style; /* of a notification */
	struct str tool_call_id; /* of the agent */
};

/* What the person said. */
struct question_reply {
	struct str option_id, label; /* label: as it was offered */
	struct str free_text; /* STR_NONE: none */
	struct field_json values; /* of a form */
};

struct questions;
struct question_wait;

/* Valid until the next call that changes any. */
struct question {
	struct ask ask; /* open: pending */
	struct str session; /* id of a conversation; "": none */
	enum question_kind kind;
	enum question_origin origin;
	enum question_state state;
	struct question_spec spec;
	struct question_reply reply; /* once it is answered */
	struct str who, surface; /* of its end: by whom, through which door */
	int64_t ended_ms;
	/* private: */
	struct question_wait *waiters;
	bool unawaited; /* nobody waited for it from the first: no caller was cut off */
	struct question_part {
		struct arena *arena;
		struct json_doc *doc;
	} asked, said; /* what spec and reply borrow from */
};

/* The number of the option that was chosen; -1: none was. */
int question_chosen(const struct question *q);

/* Reads the registry. store: borrowed until questions_free(); NULL: nothing outlives this process.
 * Questions whose deadline has passed are expired. o: max_open [0: 512], max_each [0: 64]. */
struct questions *questions_new(uv_loop_t *loop, struct store *store, const struct asks_options *o,
				struct err *e) MUST_USE;
/* Nobody waits. NULL-safe. The loop runs once more. */
void questions_free(struct questions *all);

/* ---- who asks ------------------------------------------------------------------------------ */

/* Borrowed for the call. */
struct question_ask {
	struct str principal; /* its owner */
	struct str session;
	enum question_kind kind;
	enum question_origin origin;
	struct question_spec spec; /* a notification needs no options */
	uint64_t timeout_ms; /* until its deadline; at most QUESTION_SECONDS_MAX */
};

/* Who waits; the caller's. */
struct question_wait {
	/* It has ended; the waiter is free before. */
	void (*on_end)(void *data, const struct question *q);
	void *data;
	/* private: */
	struct questions *of;
	struct question *on;
	struct question_wait *next;
};

/* Asks, and w->on_end follows unless question_give_up() is called. w NULL: nobody waits. A pending
 * question of the same principal and conversation that is equal, and that nobody waits for any
 * more, is taken up instead, with its deadline: its caller was cut off. One that nobody waited for
 * from the first is left alone, as far as this hub knows: its answer is for who asked it.
 * ERR_INVALID: it can't be shown or answered; ERR_LIMIT: too many are open; or the registry
 * failed. */
int question_ask(struct questions *all, const struct question_ask *ask, struct question_wait *w,
		 const struct question **ret, struct err *e) MUST_USE;

/* Waits for the end of one that was asked before. 1: it has ended, and nothing follows. */
int question_join(struct questions *all, struct str id, struct question_wait *w,
		  const struct question **ret, struct err *e) MUST_USE;

/* Waits no more; no callback follows. to: what becomes of a pending question; QUESTION_PENDING: it
 * stays, for question_join(). */
void question_give_up(struct question_wait *w, enum question_state to);

/* ---- who answers --------------------------------------------------------------------------- */

struct question_answer {
	struct str id;
	struct question_reply reply; /* but for the label */
	struct str who, surface; /* who answers, through which door */
};

/* ERR_QUESTION_NOT_FOUND. ERR_ANSWERED: it was answered or cancelled before; the message says by
 * whom and when. ERR_QUESTION_EXPIRED. ERR_INVALID: that was not offered. Who waits for it is
 * called back from here, at the end. */
int question_answer(struct questions *all, const struct question_answer *a, struct err *e) MUST_USE;

/* Nobody is to answer it any more. Failures as of question_answer(). */
int question_cancel(struct questions *all, struct str id, struct str who, struct str surface,
		    struct err *e) MUST_USE;

/* ERR_QUESTION_NOT_FOUND. */
const struct question *question_find(const struct questions *all, struct str id,
				     struct err *e) MUST_USE;

/* As ask/asks.h has them; what it lists is a struct question. */
static inline struct asks *questions_asks(struct questions *all)
{
	return (struct asks *)all; /* its first member */
}

/* The first with a seq above this; NULL: none. */
static inline const struct question *question_after(const struct questions *all, uint64_t seq)
{
	return (const struct question *)asks_after((const struct asks *)all, seq);
}
