#pragma once
/* Between the files of `holt agent acp`: an agent of the operator's file as an editor's. */
#include <sys/types.h>

#include "cli/link/link.h"
#include "rpc/line.h"
#include "rpc/rpc.h"

enum {
	EDITOR_SESSIONS_MAX = 16,
	EDITOR_ASKS_MAX = 64, /* questions that the editor has not answered */
	EDITOR_ID = 64, /* bytes of ids of the hub */
	EDITOR_LINE_MAX = 10 << 20,
	EDITOR_PATH = 512,
};

enum editor_says { EDITOR_MESSAGE, EDITOR_THOUGHT, EDITOR_SAYS };

/* One of the editor's sessions: a conversation of the hub, whose id it has. */
struct editor_session {
	char id[EDITOR_ID + 1]; /* "": none */
	pid_t follower; /* writes the conversation's events into a pipe */
	int fd; /* its reading end; -1: it has ended */
	struct line_reader lines;
	struct rpc_id prompt; /* the editor's request that waits for the end of a turn; n 0: none */
	char prompt_id[EDITOR_ID + 1]; /* the hub's name for it */
	char error[256]; /* why the turn failed; "": it did not */
	bool needs_login; /* that is why */
	size_t streamed[EDITOR_SAYS]; /* bytes that were shown before their event came */
	char *offered; /* owned: options and commands, as they were told last */
};

/* A question of a session, as a request to the editor. */
struct editor_ask {
	uint64_t id; /* 0: none */
	char question[EDITOR_ID + 1];
	struct editor_session *of;
};

struct editor {
	struct hub_link *hub;
	const char *agent;
	struct line_reader in;
	struct editor_session sessions[EDITOR_SESSIONS_MAX];
	struct editor_ask asks[EDITOR_ASKS_MAX];
	uint64_t ids;
	bool told_servers; /* that its MCP servers are not for this agent */
};

/* ---- acp.c ---------------------------------------------------------------------------------- */

/* A message to the editor: editor_out_X(), one value, editor_out_end(). */
struct editor_out {
	struct buf b;
	struct json_writer w;
};
void editor_result(struct editor_out *m, const struct rpc_id *id);
void editor_request(struct editor_out *m, uint64_t id, const char *method);
void editor_notify(struct editor_out *m, const char *method);
void editor_end(struct editor_out *m);
/* code: of JSON-RPC, or -32000: it needs a log-in. */
void editor_fault(const struct rpc_id *id, int code, const char *text);

/* Asks the hub about a session. ret may be NULL. */
int editor_ask_hub(struct editor *d, const struct editor_session *s, const char *method,
		   const char *more, struct str body, struct json_doc **ret,
		   struct err *e) MUST_USE;

/* ---- shown.c: what the editor is shown ------------------------------------------------------- */

/* An event, or a line that is none, of a session's follower. */
void editor_event(struct editor *d, struct editor_session *s, const struct json_val *line);
/* An event of a session that the editor loads. */
void editor_replay(struct editor *d, struct editor_session *s, const struct json_val *event);
/* Writes the member configOptions and, if there is one, modes, of a conversation's view. */
void editor_write_options(struct json_writer *w, const struct json_val *view);
/* The editor has answered a question. */
void editor_answered(struct editor *d, const struct rpc_msg *m);
/* A turn has ended: answers the prompt, by s->error or by why. */
void editor_turn_end(struct editor_session *s, struct str why);
/* Takes the prompt out of the queue of the hub, where that has it still. */
void editor_drop_prompt(struct editor *d, struct editor_session *s);
