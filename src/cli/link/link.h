#pragma once
/*
 * The hub of whoever runs this, for verbs that ask it, over the routes of docs/rest.md. It is found by its Unix
 * socket: where HOLT_SOCKET says, else where cli/common/home.h has it, and there it is started if nobody serves it
 * (start.c). One request at a time: every call waits for its answer, as long as that takes; ending the
 * program ends the request.
 */
#include <uv.h>

#include "base/buf.h"
#include "cli/common/env.h"
#include "json/document/json.h"
#include "json/document/write.h"

struct hub_link;
struct ws_client;
struct ws_client_events;

/* ERR_TRANSPORT where there is no hub and none could be started; else as home_token(). */
struct hub_link *hub_link_open(struct err *e) MUST_USE;
void hub_link_close(struct hub_link *l); /* NULL-safe */
AUTO_DEFINE(hub_link_close, struct hub_link)

enum {
	HUB_BODY_MAX = 32 << 20, /* of a request */
	HUB_ANSWER_MAX = 64 << 20, /* of what is read at once: an answer, or a line of one */
	/* JSON values of it: the 50,000 changes of a diff have seven each. */
	HUB_VALUES_MAX = 1 << 20,
};

/* body: JSON, or STR_NONE. *ret is the answer, the caller's; ret may be NULL. What the hub refuses is *e with the
 * cause that it names; ERR_TRANSPORT where it can't be reached or goes away. */
int hub_link_ask(struct hub_link *l, const char *method, const char *path, struct str body,
		 struct json_doc **ret, struct err *e) MUST_USE;

/* A GET whose answer is a JSON object a line: each as it comes. -1 of take ends it. */
typedef int hub_link_take(void *arg, const struct json_val *line, struct err *e);
int hub_link_follow(struct hub_link *l, const char *path, hub_link_take *take, void *arg,
		    struct err *e) MUST_USE;

/* A GET whose answer is bytes, handed on as they come; a PUT whose body is a tar archive, asked for as http_spec's give.
 * -1 and SIZE_MAX end it, with *e set. */
typedef int hub_link_bytes(void *arg, struct str bytes, struct err *e);
typedef size_t hub_link_give(void *arg, char *to, size_t n, struct err *e);
int hub_link_download(struct hub_link *l, const char *path, hub_link_bytes *take, void *arg,
		      struct err *e) MUST_USE;
int hub_link_upload(struct hub_link *l, const char *path, hub_link_give *give, void *arg,
		    struct err *e) MUST_USE;

/* A WebSocket, as ws_client_open() has it. */
struct ws_client *hub_link_socket(struct hub_link *l, const char *path, const char *protocol,
				  const struct ws_client_events *events, void *owner,
				  struct err *e) MUST_USE;
/* For what else is to happen on its loop: runs it until *done, which callbacks set. */
uv_loop_t *hub_link_loop(struct hub_link *l);
void hub_link_await(struct hub_link *l, const bool *done);

/* What the hub says that it refuses, {"error":{…}}: the failure that its code of docs/rest.md is here. -1 always. */
int hub_link_refusal(const struct json_val *answer, struct err *e);

/* Prints what went wrong and what helps, in the words of this command line; the exit status. */
int hub_link_fail(const struct err *e);

/* "/v1/sandboxes/ID" and `more`, where the id is one: ERR_SANDBOX_NOT_FOUND else. */
int hub_link_path(char *ret, size_t size, const char *id, const char *more, struct err *e) MUST_USE;

/* A POST of bytes, whose answer is *ret, as of hub_link_ask(). */
int hub_link_send(struct hub_link *l, const char *path, hub_link_give *give, void *arg,
		  struct json_doc **ret, struct err *e) MUST_USE;

/* Behind a path: "?path=" and the text, escaped. ERR_INVALID where it is too long. */
int hub_link_query(char *at, size_t size, const char *path, struct err *e) MUST_USE;

/* A member of the object that is being written; none where text is NULL. */
void hub_link_text(struct json_writer *w, const char *name, const char *text);

/* Writes the member env, as env_read() has it. */
int hub_link_env(struct json_writer *w, const struct env_options *o, struct err *e) MUST_USE;

/* A value on standard output, and a line break. */
int hub_link_print(const struct json_val *v, struct err *e) MUST_USE;
