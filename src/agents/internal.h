#pragma once
/* Between the files of agents. */
#include <stdlib.h>

#include "agents/acp/acp.h"
#include "agents/agent.h"
#include "config/agent_preset.h"
#include "mcp/connect/program.h"

enum {
	AGENTS_MAX = 64, /* live at once */
	AGENT_TERMINALS_MAX = 16,
	AGENT_SAY_MAX = 128 << 10, /* bytes of a message in one event */
	AGENT_LAST_MAX = 4096, /* bytes of its standard error that are kept */
	AGENT_CALLS_MAX = 16, /* tool calls that are known at once */
	AGENT_HOSTS_MAX = 16, /* that it could not reach, and that are told */
};

struct agents {
	uv_loop_t *loop;
	const struct program_sandbox_of *place;
	struct config *config;
	struct conversations *conversations;
	struct questions *questions;
	int (*check)(void *owner, const struct conversation *t, struct err *e);
	int (*port)(void *owner, struct err *e);
	void *owner;
	unsigned live;
	bool closing;
	uv_timer_t closed; /* calls on_closed in a turn of its own */
	void (*on_closed)(void *arg);
	void *closed_arg;
};

/* A message or a thought that has not ended. */
struct agent_say {
	struct buf text;
	enum acp_update_kind kind;
	char message_id[ACP_ID_MAX + 1];
	unsigned pieces; /* that were shown live */
};

/* What it has told of a tool call, as JSON; NULL: nothing. */
enum call_member { CALL_TITLE, CALL_KIND, CALL_INPUT, CALL_CONTENT, CALL_LOCATIONS, CALL_MEMBERS };
struct agent_call {
	char id[ACP_ID_MAX + 1]; /* "": none */
	char *members[CALL_MEMBERS]; /* owned */
	bool cut[CALL_MEMBERS]; /* it was too large to keep */
};

struct agent_terminal;

/* One process, from its conversation's prompt to the last that is left of it. */
struct agent {
	struct agents *all;
	struct conversation *conversation; /* NULL: nobody wants it any more */
	struct config *config; /* a reference, for conf */
	const struct config_agent *conf; /* with what its preset says, where it has one */
	struct agent_presets *presets; /* what conf borrows from; NULL */
	struct texts texts;
	struct program_sandbox place;
	struct net_rule hub; /* the hub, as a service of its sandbox */
	struct volume volumes[VOLUMES_MAX]; /* the workspace, and its state */
	/* Its program: one of both; none: not yet, or no more. */
	struct mcp_program *program;
	struct mcp_child *child;
	bool linked; /* it is not closed yet */
	struct acp *acp;
	struct arena arena; /* what the options of acp borrow */
	struct secret *token; /* of the conversation, in `bearer` too */
	char *bearer; /* owned, wiped */
	const char *cwd;
	char *prompt; /* owned; waits for the session, and then for its files */
	struct give *give; /* those; NULL: none */
	bool turn; /* the driver's: from its start() on */
	bool ending, gone; /* gone: the sandbox is removed */
	bool opened; /* its session is open, and has the options that are wanted */
	bool setting; /* one of them is being set */
	size_t set_at; /* the next of them */
	char set_id[ACP_ID_MAX + 1], set_value[ACP_ID_MAX + 1]; /* while one is being set */
	char title[256]; /* that it gave the conversation */
	uint64_t title_ms; /* when */
	uv_timer_t limit; /* of the start, of a cancelled turn; and the turn that ends it */
	uv_timer_t quiet; /* since it was heard last */
	/* Its words could not be kept, so it ends, once nothing of it is on the stack. */
	uv_timer_t doom;
	struct err why;
	unsigned timers; /* that are not closed */
	unsigned waits; /* questions to its person */
	unsigned jobs; /* reads and writes under way */
	uint64_t said; /* bytes of its events */
	struct agent_say say;
	struct agent_call calls[AGENT_CALLS_MAX]; /* in a ring */
	unsigned calls_at;
	size_t calls_bytes;
	char mode[ACP_ID_MAX + 1]; /* that the record does not have yet; "": none */
	uint64_t mode_ms; /* when it got one */
	struct agent_terminal *terminals;
	unsigned terminals_n, terminals_made;
	struct acp_ask *exits[ACP_ASKS_MAX]; /* wait for the end of a terminal (ask->data) */
	char last[AGENT_LAST_MAX]; /* the end of its standard error */
	size_t last_n;
	char *hosts[AGENT_HOSTS_MAX]; /* owned; that it could not reach */
	unsigned hosts_n;
};

/* ---- agent.c: its process ------------------------------------------------------------------- */

extern const struct conversation_driver agent_driver;
void agent_on_job(struct agent *a); /* one of its jobs has ended */
/* It is of no use any more: its turn fails, and it ends. */
void agent_fail(struct agent *a, const struct err *e);
/* The same, from the loop. */
void agent_fail_later(struct agent *a, const struct err *e);
/* The time since it was heard begins anew, or stands still while a person is asked. */
void agent_heard(struct agent *a);

/* ---- options.c: what it offers, and the values that are wanted ------------------------------- */

/* Sets those that differ, one after the other, and then calls agent_is_open(). */
void agent_options_start(struct agent *a);
void agent_on_set(void *owner, const struct json_val *result, const struct err *e);
/* An update of what it offers. */
void agent_offer(struct agent *a, const struct acp_update *u);
/* agent.c */
void agent_is_open(struct agent *a);

/* ---- trouble.c: what hinders it, and its last words ------------------------------------------ */

void agent_on_stderr(void *owner, struct str bytes);
/* Puts the line of its standard error that tells most before e, and all that is kept of it into an
 * event. */
void agent_last_words(struct agent *a, struct err *e);
/* It could not reach a host. */
void agent_on_refused(void *owner, const struct nw_flow *f);
/* A message of it was dropped. */
void agent_on_dropped(struct agent *a, const struct err *why);

/* ---- preset.c: what its entry leaves to its preset ------------------------------------------- */

/* Sets conf, presets, and adds folders of its state to its sandbox. */
int agent_fill(struct agent *a, const struct config_agent *conf, struct err *e) MUST_USE;

/* ---- agents.c ------------------------------------------------------------------------------- */

void agents_try_close(struct agents *all);

/* ---- say.c: what it reports becomes events -------------------------------------------------- */

void agent_update(struct agent *a, const struct acp_update *u);
/* The type of the event that it is saying. */
const char *agent_say_type(const struct agent *a);
/* The message that it has begun is whole. */
void agent_say_end(struct agent *a);
/* Puts its mode into the record. */
void agent_keep_mode(struct agent *a);
/* Counts bytes of its events. ERR_LIMIT: too many. */
int agent_said(struct agent *a, size_t n, struct err *e) MUST_USE;
/* Appends an event: w has all of its data, whose room is b. */
void agent_event(struct agent *a, const char *type, struct json_writer *w, struct buf *b);

/* ---- give.c: files that go with a prompt ----------------------------------------------------- */

struct give;
/* ids: of attachments of the conversation. NULL without *e where there are none. */
struct give *give_new(const struct field_strs *ids, struct err *e) MUST_USE;
void give_free(struct give *g); /* NULL-safe; later, if a file is being written */
AUTO_DEFINE(give_free, struct give)
/* Brings them to where the agent sees them, and then calls agent_given(), or agent_not_given(). */
void give_start(struct agent *a);
const struct acp_block *give_blocks(const struct give *g, size_t *ret_n);
/* agent.c. Not given: this turn fails alone; the agent goes on. Frees its give. */
void agent_given(struct agent *a);
void agent_not_given(struct agent *a, const struct err *e);

/* ---- calls.c: its tool calls ----------------------------------------------------------------- */

void agent_call_note(struct agent *a, const struct acp_update *u);
void agent_calls_free(struct agent *a);

/* What a permission is about, by the request and by what was told before. */
struct call_about {
	const struct json_val *v[CALL_MEMBERS];
	struct json_doc *docs[CALL_MEMBERS]; /* owned */
};
/* ret: to call_about_fini() in any case. ERR_TOO_LARGE: a part of it is not known any more. */
int agent_call_about(struct agent *a, const struct acp_ask *q, struct call_about *ret,
		     struct err *e) MUST_USE;
void call_about_fini(struct call_about *c);

/* ---- asks.c: permissions and files ----------------------------------------------------------- */

void agent_asked(struct agent *a, struct acp_ask *q);
void agent_withdrawn(struct agent *a, struct acp_ask *q);

/* ---- terminal.c ----------------------------------------------------------------------------- */

void agent_terminal_asked(struct agent *a, struct acp_ask *q);
void agent_terminal_withdrawn(struct agent *a, struct acp_ask *q);
void agent_terminals_kill(struct agent *a);
void agent_terminals_free(struct agent *a); /* all have ended */
