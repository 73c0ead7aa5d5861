#pragma once
/*
 * The hub of the user who runs this program, for verbs that are its clients (docs/rest.md). The hub
 * is found by its Unix socket: HOLT_SOCKET, else the path of cli/common/home.h. There a hub is
 * started if none is running (start.c). There is one request at a time: every call waits for its
 * answer without a limit. Ending the program ends the request.
 */
#include <uv.h>

#include "base/buf.h"
#include "cli/common/env.h"
#include "cli/common/secret.h"
#include "json/document/json.h"
#include "json/document/write.h"

struct hub_link;
struct ws_client;
struct ws_client_events;

/* The path of its socket: HOLT_SOCKET, or else that of a hub of this user, which is started if none
 * runs. */
int hub_link_where(char ret[PATH_MAX], struct err *e) MUST_USE;

/* ERR_TRANSPORT: there is no hub and none could be started; else the errors of home_token(). */
struct hub_link *hub_link_open(struct err *e) MUST_USE;
void hub_link_close(struct hub_link *l); /* NULL-safe */
AUTO_DEFINE(hub_link_close, struct hub_link)

/* What the hub at this socket says of itself at /readyz, which the caller frees; whether it has the
 * token of the data folder. None is started. Waits for 2 s at most. */
struct json_doc *hub_link_state(const char *socket, struct err *e) MUST_USE;

/* Numbers of what runs in the hub; zeros where it does not tell. */
struct hub_counts {
	uint64_t sandboxes, staying, commands, forwards;
};
void hub_link_counts(const char *socket, struct hub_counts *ret);
/* Writes what ends with the hub, such as "2 commands and 1 forward"; "": nothing. */
enum { HUB_ENDS_MAX = 96 };
void hub_counts_ends(const struct hub_counts *c, char ret[HUB_ENDS_MAX]);

enum {
	HUB_BODY_MAX = 32 << 20, /* bytes of a request */
	HUB_ANSWER_MAX = 64 << 20, /* bytes of an answer, or of one line of it */
	/* JSON values of an answer: the 50,000 changes of a diff have seven each. */
	HUB_VALUES_MAX = 1 << 20,
};

/* body: JSON, or STR_NONE. *ret is the answer, which the caller frees; ret may be NULL. If the hub
 * refuses, *e has the cause that it names; ERR_TRANSPORT: the hub can't be reached or went away. */
int hub_link_ask(struct hub_link *l, const char *method, const char *path, struct str body,
		 struct json_doc **ret, struct err *e) MUST_USE;

/* The same, but whatever the hub answers is *ret; *ret_status: that of HTTP. */
int hub_link_ask_whole(struct hub_link *l, const char *method, const char *path, struct str body,
		       struct json_doc **ret, int *ret_status, struct err *e) MUST_USE;
/* The id of the record of the last call; "": it has none. */
const char *hub_link_audit_id(const struct hub_link *l);

/* A GET whose answer is lines of JSON objects. Calls take for each as it comes; -1 of take ends the
 * request. */
typedef int hub_link_take(void *arg, const struct json_val *line, struct err *e);
int hub_link_follow(struct hub_link *l, const char *path, hub_link_take *take, void *arg,
		    struct err *e) MUST_USE;

/* hub_link_download() is a GET whose answer is bytes, passed on as they come. hub_link_upload() is
 * a PUT whose body is a tar archive, supplied by `give` as in http_spec. -1 of take, or SIZE_MAX of
 * give, with *e set, ends the request. */
typedef int hub_link_bytes(void *arg, struct str bytes, struct err *e);
typedef size_t hub_link_give(void *arg, char *to, size_t n, struct err *e);
int hub_link_download(struct hub_link *l, const char *path, hub_link_bytes *take, void *arg,
		      struct err *e) MUST_USE;
int hub_link_upload(struct hub_link *l, const char *path, hub_link_give *give, void *arg,
		    struct err *e) MUST_USE;

/* Opens a WebSocket as ws_client_open() does. */
struct ws_client *hub_link_socket(struct hub_link *l, const char *path, const char *protocol,
				  const struct ws_client_events *events, void *owner,
				  struct err *e) MUST_USE;
/* Runs the loop until a callback has set *done. */
uv_loop_t *hub_link_loop(struct hub_link *l);
void hub_link_await(struct hub_link *l, const bool *done);

/* Fills *e with the failure that a refusal of the hub, {"error":{…}}, means here, by its code in
 * docs/rest.md. Always returns -1. */
int hub_link_refusal(const struct json_val *answer, struct err *e);

/* Prints the failure and what helps, in terms of this command line; returns the exit status. */
int hub_link_fail(const struct err *e);

/* Writes "/v1/sandboxes/ID" and `more`. ERR_SANDBOX_NOT_FOUND if id is not an id. */
int hub_link_path(char *ret, size_t size, const char *id, const char *more, struct err *e) MUST_USE;

/* A POST of the bytes that `give` supplies; the answer as in hub_link_ask(). */
int hub_link_send(struct hub_link *l, const char *path, hub_link_give *give, void *arg,
		  struct json_doc **ret, struct err *e) MUST_USE;

/* Appends a parameter with this text, escaped, to a path. ERR_INVALID where it is too long. */
int hub_link_query(char *at, size_t size, const char *name, const char *text,
		   struct err *e) MUST_USE;

/* Appends that content comes as it is: it goes into files of the user's own. What is shown on a
 * terminal is redacted. */
int hub_link_raw(char *at, size_t size, bool to_stdout, struct err *e) MUST_USE;

/* Appends that what is sent is what is kept: it comes from files of the user's own, in which a mark
 * of redaction is text. */
int hub_link_literal(char *at, size_t size, struct err *e) MUST_USE;

/* Says on standard error what a revision does not have, where an answer tells it. */
void hub_link_tell_left_out(const struct json_val *answer);

/* Writes a member of the open object, unless text is NULL. */
void hub_link_text(struct json_writer *w, const char *name, const char *text);

/* Writes the member env, as env_read() has it. */
int hub_link_env(struct json_writer *w, const struct env_options *o, bool tty,
		 struct err *e) MUST_USE;
/* Writes the member tty of an exec: a terminal as large as ours. */
void hub_link_tty(struct json_writer *w);

/* A row of a struct S with a member m, a struct option_list. */
#define LABEL_ROW(S, m)                                                                            \
	OPTION(S, m, OPTION_LIST, "label", .letter = 'l', .arg = "KEY[=VALUE]",                    \
	       .doc = "Label, which holt ls shows and filters by. May be repeated.")

/* Writes the member secrets, of references. */
int hub_link_secrets(struct json_writer *w, const struct secret_options *o, struct err *e) MUST_USE;

/* Writes the member labels, of options KEY=VALUE or KEY. The last of a key counts. */
int hub_link_labels(struct json_writer *w, const struct option_list *labels,
		    struct err *e) MUST_USE;

/* A row of a struct S with a member profiles, a struct option_list. */
#define PROFILE_ROW(S)                                                                             \
	OPTION(S, profiles, OPTION_LIST, "profile", .arg = "NAME", .member = "profiles",           \
	       .doc = "Use this profile of the operator's file. May be repeated.")

/* Writes the member network, of hosts as HOST[:PORT]; none: nothing is granted. */
void hub_link_network(struct json_writer *w, const char *const *hosts, size_t n);

/* Prints a value on standard output, and a line break. */
int hub_link_print(const struct json_val *v, struct err *e) MUST_USE;
