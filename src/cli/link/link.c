#include "cli/link/link.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/common/home.h"
#include "cli/link/start.h"
#include "cli/common/safe.h"
#include "cli/common/tty.h"
#include "cli/common/verb.h"
#include "http/client/client.h"
#include "http/client/ws.h"
#include "loop/await.h"

enum { URL_MAX = 16 << 10 }; /* a path inside, each byte of it escaped */
enum { SOCKET_MESSAGE_MAX = 4 << 20, STATE_MS = 2000 };

static const struct json_options hub_json = { .bytes = HUB_ANSWER_MAX, .values = HUB_VALUES_MAX };

struct hub_link {
	uv_loop_t loop;
	struct loop_await await;
	/* from the first request on: a WebSocket does without */
	struct http_client *http;
	char socket[PATH_MAX];
	char bearer[640]; /* of the header */

	unsigned idle_ms; /* of each request; 0: no limit */
	bool starts; /* where no hub is, one is started */

	/* of the request: */
	int status;
	char audit_id[64]; /* of its record */
	bool done;
	bool sent; /* some of it, so the hub may have acted on it */
	struct buf came; /* the answer, or what there is of a line */
	hub_link_take *take; /* NULL: no lines */
	hub_link_bytes *take_bytes; /* NULL: they are kept */
	hub_link_give *give; /* NULL: the body is there */
	void *arg;
	struct err err; /* what ended it early */
};

/* ---- what a hub says that it can't do ------------------------------------------------------- */

static const struct {
	const char *name; /* of docs/rest.md */
	enum err_code code;
} refusals[] = {
	{ "invalid_input", ERR_INVALID },
	{ "timeout_too_large", ERR_INVALID },
	{ "unauthorized", ERR_UNAUTHORIZED },
	{ "forbidden", ERR_DENIED },
	{ "not_found", ERR_SANDBOX_NOT_FOUND },
	{ "conflict", ERR_CONFLICT },
	{ "already_answered", ERR_ANSWERED },
	{ "sandbox_lost", ERR_GUEST },
	{ "expired", ERR_QUESTION_EXPIRED },
	{ "idle_timeout", ERR_IDLE },
	{ "body_too_large", ERR_TOO_LARGE },
	{ "rate_limited", ERR_LIMIT },
	{ "quota_exceeded", ERR_LIMIT },
	{ "too_many_streams", ERR_LIMIT },
	{ "canceled", ERR_CANCELLED },
	{ "exec_failed", ERR_COMMAND_NOT_RUN },
	{ "file_failed", ERR_NOT_A_FILE },
	{ "unsupported", ERR_UNSUPPORTED },
	{ "port_failed", ERR_PORT },
	{ "module_failed", ERR_MODULE_FAILED },
	{ "unavailable", ERR_TRANSPORT },
	{ "exec_timeout", ERR_TIMEOUT },
	{ "module_failed", ERR_MODULE_FAILED },
	{ "module_not_started", ERR_MODULE_START },
};

/* Remedies of failures that are the hub's. */
static const char *const helps[ERR_CODES] = {
	[ERR_UNAUTHORIZED] = "The hub at that socket has another token than this data folder "
			     "(HOLT_HOME).",
	[ERR_STORE_LOCKED] = "holt hub status tells of it, and holt hub stop ends it.",
	[ERR_UNSUPPORTED] = "Do what the cause names, or do without; holt doctor tells what this "
			    "host lacks.",
	[ERR_TRANSPORT] = "holt serve starts a hub and says what is in its way.",
};

int hub_link_fail(const struct err *e)
{
	const char *help = e->code < ERR_CODES ? helps[e->code] : NULL;

	if (!help)
		return cli_fail(e);
	fputs("holt: ", stderr);
	safe_line(stderr, str_of(e->msg));
	fprintf(stderr, "\n      %s\n", help);
	return err_info(e->code)->exit;
}

/* Which limit of a sandbox it was, or that the host's disk is full. */
static enum err_code limit_of(struct str dimension)
{
	static const struct {
		const char *name;
		enum err_code code;
	} dimensions[] = {
		{ "disk", ERR_DISK_FULL },
		{ "pids", ERR_PIDS_FULL },
		{ "memory", ERR_MEMORY_FULL },
		{ "host_disk", ERR_STORE_FULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(dimensions); i++) {
		if (str_is(dimension, dimensions[i].name))
			return dimensions[i].code;
	}
	return ERR_LIMIT;
}

static enum err_code code_of(const struct json_val *error)
{
	struct str code = json_str(json_get(error, "code"));
	enum err_code limit = limit_of(json_str(json_get(json_get(error, "context"), "dimension")));
	int64_t status = 0;

	json_int64(json_get(json_get(error, "context"), "exit_code"), &status);
	if (status == err_info(ERR_COMMAND_NOT_FOUND)->exit)
		return ERR_COMMAND_NOT_FOUND;
	if (status == err_info(ERR_COMMAND_NOT_RUN)->exit)
		return ERR_COMMAND_NOT_RUN;
	for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
		if (!str_is(code, refusals[i].name))
			continue;
		if (refusals[i].code == ERR_DENIED && json_get(json_get(error, "context"), "path"))
			return ERR_PATH_DENIED;
		return refusals[i].code != ERR_LIMIT ? refusals[i].code : limit;
	}
	return limit == ERR_STORE_FULL ? limit : ERR_IO;
}

int hub_link_refusal(const struct json_val *answer, struct err *e)
{
	const struct json_val *error = json_get(answer, "error");
	struct str cause = json_str(json_get(error, "cause"));

	if (!cause.n)
		cause = json_str(json_get(error, "message"));
	return err_set(e, code_of(error), "%.*s", STR_CUT(cause, 240));
}

/* ---- one request ---------------------------------------------------------------------------- */

static void end_early(struct hub_link *l, struct http_exchange *x)
{
	http_exchange_cancel(x);
	l->done = true;
}

static int take_line(struct hub_link *l, struct str text)
{
	AUTO(json_free) struct json_doc *doc = json_parse(text, &hub_json, &l->err);
	const struct json_val *error = json_get(json_root(doc), "error");

	if (!doc)
		return -1;
	if (json_type(error) == JSON_OBJECT)
		return hub_link_refusal(json_root(doc), &l->err);
	return l->take(l->arg, json_root(doc), &l->err);
}

/* A line may be one of Server-Sent Events, which an empty line follows. */
static int take_lines(struct hub_link *l)
{
	static const char name[] = "data: ", id[] = "id: ";
	char *end;

	while (l->came.n && (end = memchr(l->came.p, '\n', l->came.n))) {
		size_t n = (size_t)(end - l->came.p);
		struct str text = { l->came.p, n };

		if (str_starts(text, name))
			text = (struct str){ text.p + sizeof(name) - 1, n - sizeof(name) + 1 };
		else if (str_starts(text, id))
			text.n = 0;
		if (text.n && take_line(l, text) < 0)
			return -1;
		buf_drop(&l->came, n + 1);
	}
	return 0;
}

static void on_head(void *owner, struct http_exchange *x, int status)
{
	struct hub_link *l = owner;

	l->status = status;
	snprintf(l->audit_id, sizeof(l->audit_id), "%.*s",
		 STR_CUT(http_exchange_header(x, "Audit-Id"), sizeof(l->audit_id) - 1));
}

static void on_bytes(void *owner, struct http_exchange *x, struct str bytes)
{
	struct hub_link *l = owner;

	if (l->take_bytes && l->status == 200) {
		if (l->take_bytes(l->arg, bytes, &l->err) < 0)
			end_early(l, x);
		return;
	}
	if (buf_add(&l->came, bytes.p, bytes.n, &l->err) < 0 ||
	    (l->take && l->status == 200 && take_lines(l) < 0))
		end_early(l, x);
}

static size_t on_give(void *owner, char *to, size_t n)
{
	struct hub_link *l = owner;

	return l->give(l->arg, to, n, &l->err);
}

static void on_end(void *owner, struct http_exchange *x, const struct err *e)
{
	struct hub_link *l = owner;

	if (e && l->err.code == ERR_NONE && l->take_bytes && l->status == 200) {
		err_set(&l->err, ERR_IO,
			"the hub ended its answer in the middle: what came is not whole, and the "
			"hub's log says why");
	} else if (e && l->err.code == ERR_NONE) {
		l->err = *e;
		err_wrap(&l->err, "the hub at %.100s", l->socket);
	}
	l->sent = http_exchange_sent(x);
	l->done = true;
}

static const struct http_exchange_events events = { on_head, on_bytes, on_end };

int hub_link_where(char ret[PATH_MAX], struct err *e)
{
	const char *said = getenv("HOLT_SOCKET");

	if (!said || !*said)
		return home_socket(ret, e) < 0 ? -1 : hub_start(ret, e);
	if (snprintf(ret, PATH_MAX, "%s", said) >= PATH_MAX)
		return err_set(e, ERR_INVALID, "HOLT_SOCKET is too long");
	return access(ret, F_OK) < 0 ? err_set(e, ERR_TRANSPORT, "no hub serves %.200s", ret) : 0;
}

/* Until its end: -1 where there is no whole answer. */
static int link_request(struct hub_link *l, const char *method, const char *path, struct str body,
			struct err *e)
{
	const struct http_header headers[] = {
		{ "Authorization", str_of(l->bearer) },
		{ "Content-Type", str_of(l->give ? "application/x-tar" : "application/json") },
	};
	const struct http_client_options o = { .unix_socket = l->socket,
					       .own_only = true,
					       .connections = 1 };
	char url[URL_MAX];
	const struct http_spec spec = { .method = method,
					.url = url,
					.headers = headers,
					.n_headers = body.p || l->give ? 2 : 1,
					.body = body,
					.give = l->give ? on_give : NULL,
					.idle_ms = l->idle_ms };

	if (snprintf(url, sizeof(url), "http://localhost%s", path) >= (int)sizeof(url))
		return err_set(e, ERR_INVALID, "a name of that length can't be asked for");
	if (!l->http)
		l->http = http_client_new(&l->loop, &o, e);
	if (!l->http)
		return -1;
	l->done = false;
	l->status = 0;
	l->audit_id[0] = '\0';
	l->err = ERR_INIT;
	buf_fini(&l->came);
	if (!http_exchange_start(l->http, &spec, &events, l, e))
		return -1;
	loop_await(&l->await, &l->done);
	/* A hub that is killed takes connections for another moment. */
	if (l->starts && l->err.code == ERR_TRANSPORT && !l->give && !l->status &&
	    (!l->sent || strcmp(method, "GET") == 0) && !hub_serves(l->socket)) {
		int rc;

		l->starts = false;
		rc = hub_link_where(l->socket, e) < 0 ? -1 : link_request(l, method, path, body, e);
		l->starts = true;
		return rc;
	}
	/* what is refused in the middle of a body is known before that has gone out */
	if (l->err.code == ERR_NONE || (l->give && l->status >= 400))
		return 0;
	*e = l->err;
	return -1;
}

static struct json_doc *answer_of_any_status(struct hub_link *l, struct err *e)
{
	AUTO(json_free) struct json_doc *doc = json_parse(buf_str(&l->came), &hub_json, e);

	if (!doc && e->code == ERR_TOO_LARGE) {
		err_wrap(e, "the hub's answer");
		return NULL;
	}
	if (!doc) {
		err_set(e, ERR_TRANSPORT, "what serves %.100s is no hub", l->socket);
		return NULL;
	}
	return take_ptr(doc);
}

static struct json_doc *answer(struct hub_link *l, struct err *e)
{
	AUTO(json_free) struct json_doc *doc = answer_of_any_status(l, e);

	if (!doc)
		return NULL;
	if (l->status != 200) {
		hub_link_refusal(json_root(doc), e);
		return NULL;
	}
	return take_ptr(doc);
}

static void reset(struct hub_link *l)
{
	l->take = NULL;
	l->take_bytes = NULL;
	l->give = NULL;
}

int hub_link_ask(struct hub_link *l, const char *method, const char *path, struct str body,
		 struct json_doc **ret, struct err *e)
{
	struct json_doc *doc;

	reset(l);
	if (link_request(l, method, path, body, e) < 0)
		return -1;
	doc = answer(l, e);
	if (!doc)
		return -1;
	if (ret)
		*ret = doc;
	else
		json_free(doc);
	return 0;
}

int hub_link_ask_whole(struct hub_link *l, const char *method, const char *path, struct str body,
		       struct json_doc **ret, int *ret_status, struct err *e)
{
	reset(l);
	if (link_request(l, method, path, body, e) < 0)
		return -1;
	*ret = answer_of_any_status(l, e);
	*ret_status = l->status;
	return *ret ? 0 : -1;
}

const char *hub_link_audit_id(const struct hub_link *l)
{
	return l->audit_id;
}

/* The answer was handed on, or is what the hub refuses it with. */
static int check_status(struct hub_link *l, struct err *e)
{
	if (l->status == 200)
		return 0;
	json_free(answer(l, e));
	return -1;
}

int hub_link_follow(struct hub_link *l, const char *path, hub_link_take *take, void *arg,
		    struct err *e)
{
	reset(l);
	l->take = take;
	l->arg = arg;
	return link_request(l, "GET", path, STR_NONE, e) < 0 ? -1 : check_status(l, e);
}

struct ws_client *hub_link_socket(struct hub_link *l, const char *path, const char *protocol,
				  const struct ws_client_events *ev, void *owner, struct err *e)
{
	const struct http_header header = { "Authorization", str_of(l->bearer) };
	const struct ws_client_options o = {
		.unix_socket = l->socket,
		.path = path,
		.protocol = protocol,
		.headers = &header,
		.n_headers = 1,
		.message_max = SOCKET_MESSAGE_MAX,
	};

	return ws_client_open(&l->loop, &o, ev, owner, e);
}

uv_loop_t *hub_link_loop(struct hub_link *l)
{
	return &l->loop;
}

void hub_link_await(struct hub_link *l, const bool *done)
{
	loop_await(&l->await, done);
}

static int download(struct hub_link *l, const char *path, hub_link_bytes *take, void *arg,
		    struct err *e)
{
	reset(l);
	l->take_bytes = take;
	l->arg = arg;
	return link_request(l, "GET", path, STR_NONE, e) < 0 ? -1 : check_status(l, e);
}

int hub_link_download(struct hub_link *l, const char *path, hub_link_bytes *take, void *arg,
		      struct err *e)
{
	static const char raw[] = "raw=true";
	size_t n = strlen(path), own = sizeof("?") - 1 + sizeof(raw) - 1;
	autofree char *without = NULL;

	if (download(l, path, take, arg, e) == 0)
		return 0;
	/* A key's holder is not the operator (call_check_raw()). A rule refuses in other words. */
	if (e->code != ERR_DENIED || strncmp(e->msg, "raw: ", strlen("raw: ")) != 0 || n <= own ||
	    strcmp(path + n - strlen(raw), raw) != 0)
		return -1;
	without = mem_dup(path, n - own);
	if (!without)
		return err_set(e, ERR_LIMIT, "out of memory");
	fputs("holt: a copy for a key is redacted: what looks like a secret in it is replaced\n",
	      stderr);
	return download(l, without, take, arg, e);
}

int hub_link_upload(struct hub_link *l, const char *path, hub_link_give *give, void *arg,
		    struct err *e)
{
	reset(l);
	l->give = give;
	l->arg = arg;
	return link_request(l, "PUT", path, STR_NONE, e) < 0 ? -1 : check_status(l, e);
}

int hub_link_send(struct hub_link *l, const char *path, hub_link_give *give, void *arg,
		  struct json_doc **ret, struct err *e)
{
	reset(l);
	l->give = give;
	l->arg = arg;
	if (link_request(l, "POST", path, STR_NONE, e) < 0)
		return -1;
	*ret = answer(l, e);
	return *ret ? 0 : -1;
}

/* ---- the link ------------------------------------------------------------------------------- */

static int find_token(struct hub_link *l, struct err *e)
{
	AUTO(secret_free) struct secret *token = home_token(e);
	struct str text;

	if (!token)
		return -1;
	text = secret_expose(token, "sent to the hub of the data folder");
	snprintf(l->bearer, sizeof(l->bearer), "Bearer %.*s", STR_ARG(text));
	return 0;
}

/* Without a way to the hub yet. */
static struct hub_link *link_new(struct err *e)
{
	struct hub_link *l = calloc(1, sizeof(*l));

	if (!l || uv_loop_init(&l->loop) != 0) {
		free(l);
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	l->came = BUF_INIT(HUB_ANSWER_MAX);
	loop_await_init(&l->await, &l->loop);
	return l;
}

struct hub_link *hub_link_open(struct err *e)
{
	struct hub_link *l = link_new(e);

	if (l)
		l->starts = true;
	if (!l || (hub_link_where(l->socket, e) == 0 && find_token(l, e) == 0))
		return l;
	hub_link_close(l);
	return NULL;
}

struct json_doc *hub_link_state(const char *socket, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = link_new(e);

	if (!l)
		return NULL;
	snprintf(l->socket, sizeof(l->socket), "%s", socket);
	l->idle_ms = STATE_MS;
	if (find_token(l, e) < 0 || link_request(l, "GET", "/readyz", STR_NONE, e) < 0)
		return NULL;
	return answer_of_any_status(l, e);
}

void hub_link_counts(const char *socket, struct hub_counts *ret)
{
	struct err e = ERR_INIT;
	AUTO(json_free)
	struct json_doc *doc = *socket && strcmp(socket, "none") != 0 ? hub_link_state(socket, &e)
								      : NULL;
	const struct json_val *state = json_root(doc);

	*ret = (struct hub_counts){ 0 };
	json_uint64(json_get(state, "sandboxes"), &ret->sandboxes);
	json_uint64(json_get(state, "staying"), &ret->staying);
	json_uint64(json_get(state, "commands"), &ret->commands);
	json_uint64(json_get(state, "forwards"), &ret->forwards);
}

void hub_counts_ends(const struct hub_counts *c, char ret[HUB_ENDS_MAX])
{
	char commands[40] = "", forwards[40] = "";

	if (c->commands)
		snprintf(commands, sizeof(commands), "%" PRIu64 " command%s", c->commands,
			 c->commands == 1 ? "" : "s");
	if (c->forwards)
		snprintf(forwards, sizeof(forwards), "%" PRIu64 " forward%s", c->forwards,
			 c->forwards == 1 ? "" : "s");
	snprintf(ret, HUB_ENDS_MAX, "%s%s%s", commands, *commands && *forwards ? " and " : "",
		 forwards);
}

void hub_link_close(struct hub_link *l)
{
	if (!l)
		return;
	if (l->http)
		http_client_close(l->http, NULL, NULL);
	uv_close((uv_handle_t *)&l->await.prepare, NULL);
	uv_run(&l->loop, UV_RUN_DEFAULT);
	uv_loop_close(&l->loop);
	buf_fini(&l->came);
	explicit_bzero(l->bearer, sizeof(l->bearer));
	free(l);
}

int hub_link_path(char *ret, size_t size, const char *id, const char *more, struct err *e)
{
	static const char chars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789_-";

	if (!*id || id[strspn(id, chars)] ||
	    snprintf(ret, size, "/v1/sandboxes/%s%s", id, more) >= (int)size)
		return err_set(e, ERR_SANDBOX_NOT_FOUND, "no sandbox can be called \"%.80s\"", id);
	return 0;
}

int hub_link_query(char *at, size_t size, const char *name, const char *text, struct err *e)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./";
	size_t n = strlen(at);

	if (n + strlen(name) + 3 * strlen(text) + 3 > size)
		return err_set(e, ERR_INVALID, "a %s of that length can't be asked for", name);
	n += (size_t)sprintf(at + n, "%c%s=", strchr(at, '?') ? '&' : '?', name);
	for (; *text; text++) {
		if (strchr(plain, *text))
			at[n++] = *text;
		else
			n += (size_t)sprintf(at + n, "%%%02X", (unsigned char)*text);
	}
	at[n] = '\0';
	return 0;
}

int hub_link_raw(char *at, size_t size, bool to_stdout, struct err *e)
{
	return to_stdout && isatty(STDOUT_FILENO) ? 0 : hub_link_query(at, size, "raw", "true", e);
}

int hub_link_literal(char *at, size_t size, struct err *e)
{
	return hub_link_query(at, size, "literal", "true", e);
}

/* ---- what verbs write and print -------------------------------------------------------------- */

void hub_link_text(struct json_writer *w, const char *name, const char *text)
{
	if (!text)
		return;
	json_write_key(w, name);
	json_write_text(w, text);
}

void hub_link_tell_left_out(const struct json_val *answer)
{
	double n = json_real(json_get(answer, "left_out"));

	if (n < 1)
		return;
	fprintf(stderr, "holt: files left out, as they hold credentials (%.0f): ", n);
	safe_puts(stderr, json_str(json_get(answer, "left_out_names")));
}

void hub_link_network(struct json_writer *w, const char *const *hosts, size_t n)
{
	json_write_key(w, "network");
	json_write_object(w);
	hub_link_text(w, "mode", n ? "bridge" : "none");
	json_write_key(w, "allow_domains");
	json_write_array(w);
	for (size_t i = 0; i < n; i++)
		json_write_text(w, hosts[i]);
	json_write_array_end(w);
	json_write_object_end(w);
}

int hub_link_env(struct json_writer *w, const struct env_options *o, bool tty, struct err *e)
{
	autofree struct env_words *l = calloc(1, sizeof(*l));
	int rc = l ? env_read(l, o, tty, e) : err_set(e, ERR_LIMIT, "out of memory");

	json_write_key(w, "env");
	json_write_object(w);
	for (size_t i = 0; rc == 0 && i < l->n; i++) {
		json_write_key_str(w, l->all[i].name);
		json_write_str(w, l->all[i].value);
	}
	json_write_object_end(w);
	if (l)
		env_fini(l);
	return rc;
}

void hub_link_tty(struct json_writer *w)
{
	unsigned columns, rows_;

	json_write_key(w, "tty");
	json_write_object(w);
	if (tty_size(&columns, &rows_)) {
		json_write_key(w, "cols");
		json_write_uint(w, columns);
		json_write_key(w, "rows");
		json_write_uint(w, rows_);
	}
	hub_link_text(w, "term", getenv("TERM"));
	json_write_object_end(w);
}

static bool is_said_again(const struct option_list *labels, size_t i, size_t n)
{
	for (size_t k = i + 1; k < labels->n; k++) {
		if (strcspn(labels->p[k], "=") == n && memcmp(labels->p[k], labels->p[i], n) == 0)
			return true;
	}
	return false;
}

int hub_link_secrets(struct json_writer *w, const struct secret_options *o, struct err *e)
{
	struct secret_words words;

	if (secret_words_read(&words, o, e) < 0)
		return -1;
	json_write_key(w, "secrets");
	json_write_object(w);
	for (size_t i = 0; i < words.n; i++) {
		json_write_key(w, words.all[i].variable);
		json_write_object(w);
		json_write_key(w, "ref");
		json_write_str(w, words.all[i].ref);
		json_write_key(w, "file");
		json_write_bool(w, words.all[i].file);
		if (words.all[i].begin) {
			json_write_key(w, "begin");
			json_write_bool(w, true);
		}
		json_write_object_end(w);
	}
	json_write_object_end(w);
	return 0;
}

int hub_link_labels(struct json_writer *w, const struct option_list *labels, struct err *e)
{
	json_write_key(w, "labels");
	json_write_object(w);
	for (size_t i = 0; i < labels->n; i++) {
		const char *text = labels->p[i];
		size_t n = strcspn(text, "=");

		if (n == 0)
			return err_set(e, ERR_INVALID,
				       "--label takes KEY=VALUE or KEY, not '%.80s'", text);
		if (is_said_again(labels, i, n))
			continue;
		json_write_key_str(w, (struct str){ text, n });
		json_write_text(w, text[n] ? text + n + 1 : "");
	}
	json_write_object_end(w);
	return 0;
}

int hub_link_print(const struct json_val *v, struct err *e)
{
	if (safe_json(stdout, v, e) < 0)
		return -1;
	putchar('\n');
	return 0;
}
