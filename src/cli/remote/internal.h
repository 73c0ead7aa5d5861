#pragma once
/*
 * Between the files of cli/remote:
 *
 *	remote.c	the program: its server of MCP, its tools, the life of a call
 *	ask.c		one request to the other server, and what its refusals mean
 *	six.c		the tools that any server has: what they ask, in the newer way and the older
 *	stream.c	Connect streams, for the newer way
 *	rest.c		the tools that only a server of ours has, by the rows of door/rest
 */
#include <uv.h>

#include "base/budget.h"
#include "cli/remote/remote.h"
#include "door/http/routes.h"
#include "door/mcp/tools.h"
#include "http/client/client.h"
#include "http/client/redirect.h"
#include "mcp/server/server.h"

enum {
	REMOTE_ANSWER_MAX = 16 << 20, /* bytes of an answer, or of one message of a stream */
	REMOTE_CAME_MAX = 128 << 20, /* of all answers at once */
	REMOTE_TEXT_MAX = 32 << 20, /* of a tool's text: an answer with every byte escaped */
	REMOTE_PATH_MAX = 8192,
	REMOTE_TIME_S = 120, /* of a request that runs no command */
	REMOTE_SLACK_S = 30, /* beyond the time of a command */
};

struct remote_call;

/* A step of a call, which ends or asks on; -1: the call fails with *e. */
typedef int remote_step(struct remote_call *c, struct err *e);

/* A tool, and how it is done here. */
struct remote_row {
	const struct tool *tool;
	remote_step *run;
	/* of rest.c: the route of a server of ours, by its id */
	const char *route;
	/* other members than the tool's: where that route has not all of them */
	const struct op_members *members;
	bool workspace; /* listed with --enable-workspace-tools */
};

extern const struct remote_row remote_rows[];
extern const size_t remote_rows_n;

struct remote_tool {
	const struct remote_row *row;
	struct op_shape shape; /* of the arguments */
	const struct api_route *route; /* NULL: run() knows */
	struct op_shape asked; /* what the route takes */
	struct mcp_tool mcp;
};

/* How a server does something, as far as is known. */
enum remote_way { REMOTE_WAY_UNKNOWN, REMOTE_WAY_OLD, REMOTE_WAY_NEW };

struct remote {
	uv_loop_t loop;
	const struct remote_options *o;
	char *url; /* owned, as server_url() */
	struct http_client_options known; /* how it is known by TLS */
	struct secret *token; /* NULL: none */
	const char *token_from;
	struct http_client *http;
	struct budget came; /* of answers */
	bool asked_who; /* it was asked whether it is a server of ours */
	bool is_ours;
	enum remote_way fork, exec, files;
	struct mcp_server *server;
	struct mcp_stdio *stdio;
	struct remote_tool *tools; /* one for each row */
	const struct mcp_tool **list; /* as a session was told last */
	uv_signal_t signals[3];
	bool stopping;
	struct remote_call *probe; /* the question that stdio waits for; NULL: it was answered */
};

struct remote_call {
	struct remote *r;
	struct mcp_call *mc; /* NULL: the question who the server is */
	const struct remote_tool *tool;
	const struct json_val *args; /* decoded into request, which checked them */
	void *request;

	/* of the request to the server: */
	struct http_exchange *x; /* NULL: none is on the way */
	int status;
	char place[HTTP_PLACE_MAX]; /* where a redirect leads; it is not followed */
	bool acts; /* it may have been done once it was sent, and is not to be repeated blindly */
	bool sent; /* any of it, where it failed */
	struct buf came;
	struct err err; /* what ended it early */
	/* gets the body of an answer with status 200 as it comes, and says whether it wants more;
	 * -1 with c->err. NULL: it is kept in `came`. */
	int (*take)(struct remote_call *c, struct str bytes);
	remote_step *then;
	struct json_doc *answer; /* of remote_answer() */

	/* of six.c: */
	struct str *ids; /* of what is made */
	size_t n_ids, made;
	void *state; /* in the arena */
	void (*free_state)(void *state); /* what it holds; may be NULL */
};

/* ---- remote.c ---- */
/* Each ends the call and frees c. The token is taken out of texts and messages. Returns 0. */
int remote_end(struct remote_call *c, struct str text, struct str note);
void remote_fail(struct remote_call *c, const struct err *e);
struct arena *remote_arena(struct remote_call *c);

/* ---- ask.c ---- */
struct remote_question {
	const char *method;
	const char *path; /* from the server's URL on */
	const struct http_header *headers; /* besides the token */
	size_t n_headers;
	struct str body; /* JSON unless type says otherwise; STR_NONE: none */
	const char *type;
	unsigned seconds; /* 0: REMOTE_TIME_S */
	bool once; /* a repetition has the same effect: it gets a key */
};
/* then() is called when there is an answer of whatever status; where there is none, the call
 * fails. */
int remote_ask(struct remote_call *c, const struct remote_question *q,
	       int (*take)(struct remote_call *c, struct str bytes), remote_step *then,
	       struct err *e) MUST_USE;
/* The answer's JSON, which lives as long as the call. NULL with *e: it is a refusal, or no JSON. */
const struct json_val *remote_answer(struct remote_call *c, struct err *e);
/* The same of a refusal alone; -1 with *e unless the status says success. */
int remote_check(struct remote_call *c, struct err *e);
/* The answer's JSON whatever the status; NULL where it is none. */
const struct json_val *remote_document(struct remote_call *c);
/* Whether the server has no such route, as far as its answer tells. */
bool remote_has_no_route(struct remote_call *c);
/* The path of a sandbox, "/v1/sandboxes/ID" and `more`. */
int remote_path(char ret[REMOTE_PATH_MAX], struct str id, const char *more, struct err *e) MUST_USE;
/* Appends a text to a path or query, with escapes; false: it is too long. */
bool remote_escape(char ret[REMOTE_PATH_MAX], struct str text);

/* ---- six.c ---- */
remote_step six_create;
remote_step six_exec;
remote_step six_read;
remote_step six_write;
remote_step six_fork;
remote_step six_terminate;

/* ---- stream.c ---- */
/* Both run over what a server of Connect sends; six.c has what they gather. */
struct remote_stream {
	struct buf part; /* of a message that is not complete */
	bool ended; /* its last message came */
	/* 1: go on; 0: that is enough; -1 with *e */
	int (*on_message)(struct remote_call *c, const struct json_val *v, struct err *e);
};
/* For remote_call.take: c->state begins with a struct remote_stream. */
int remote_stream_take(struct remote_call *c, struct str bytes);
/* Appends one message. */
int remote_stream_put(struct buf *to, struct str json, struct err *e) MUST_USE;

/* ---- rest.c ---- */
remote_step rest_run;
/* The body for the tool's route of ours. name: of a member besides, or NULL. */
int rest_body(struct remote_call *c, const char *name, struct str value, struct buf *to,
	      struct err *e) MUST_USE;
