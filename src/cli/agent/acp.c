/*
 * `holt agent acp NAME`: an agent of the operator's file as the ACP agent of an editor, over
 * standard input and output. Each of the editor's sessions is a conversation of the hub, so the
 * agent is in its sandbox, with the file's folders, hosts and secrets, and what it asks is in the
 * inbox, too. The editor has none of the agent's own requests for files and terminals: those would
 * be answered outside of the sandbox.
 *
 * One process reads the editor and the hub's events in turn. A follower, a child for each session,
 * passes events on through a pipe. When the editor is gone, its conversations are archived, which
 * ends their agents; session/load takes one out again.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/agent/editor.h"
#include "cli/common/verb.h"
#include "json/document/put.h"

enum { ACP_VERSION = 1, PIECE = 64 << 10, PAGE = 200 };

/* ---- messages -------------------------------------------------------------------------------- */

static void editor_begin(struct editor_out *m)
{
	m->b = BUF_INIT(EDITOR_LINE_MAX);
	m->w = json_writer(&m->b);
}

void editor_result(struct editor_out *m, const struct rpc_id *id)
{
	editor_begin(m);
	rpc_write_result(&m->w, id);
}

void editor_request(struct editor_out *m, uint64_t id, const char *method)
{
	editor_begin(m);
	rpc_write_request(&m->w, id, method);
}

void editor_notify(struct editor_out *m, const char *method)
{
	editor_begin(m);
	rpc_write_notification(&m->w, method);
}

/* The editor is gone if it can't be written to: standard input says so, too. */
void editor_end(struct editor_out *m)
{
	struct err e;

	rpc_write_end(&m->w);
	if (json_write_done(&m->w, &e) < 0)
		fprintf(stderr, "holt: a message is left out: %s\n", e.msg);
	else if (buf_add(&m->b, "\n", 1, &e) == 0)
		(void)!fd_write(STDOUT_FILENO, m->b.p, m->b.n);
	buf_fini(&m->b);
}

void editor_fault(const struct rpc_id *id, int code, const char *text)
{
	struct editor_out m;
	struct rpc_fault f;

	rpc_fault_set(&f, code, "%s", text);
	f.code = code;
	editor_begin(&m);
	rpc_write_fault(&m.w, id, &f);
	if (buf_add(&m.b, "\n", 1, &(struct err){ 0 }) == 0)
		(void)!fd_write(STDOUT_FILENO, m.b.p, m.b.n);
	buf_fini(&m.b);
}

static void editor_fail(const struct rpc_id *id, const struct err *e)
{
	char text[512];

	snprintf(text, sizeof(text), "%s. %s", e->msg, err_info(e->code)->remediation);
	editor_fault(id, e->code == ERR_INVALID ? RPC_INVALID_PARAMS : RPC_INTERNAL_ERROR, text);
}

int editor_ask_hub(struct editor *d, const struct editor_session *s, const char *method,
		   const char *more, struct str body, struct json_doc **ret, struct err *e)
{
	char path[EDITOR_PATH];

	snprintf(path, sizeof(path), "/api/sessions/%s%s", s->id, more);
	return hub_link_ask(d->hub, method, path, body, ret, e);
}

/* ---- followers ------------------------------------------------------------------------------- */

static int follower_take(void *arg, const struct json_val *line, struct err *e)
{
	const int *fd = arg;
	autobuf struct buf b = BUF_INIT(EDITOR_LINE_MAX);
	struct json_writer w = json_writer(&b);

	json_write_val(&w, line);
	if (json_write_done(&w, e) < 0 || buf_add(&b, "\n", 1, e) < 0)
		return -1;
	return fd_write(*fd, b.p, b.n) < 0 ? err_sys(e, errno, "write to the parent") : 0;
}

/* Ends the agent of a session whose editor is gone. */
static void session_archive(struct hub_link *l, const char *id)
{
	char path[EDITOR_PATH];
	struct err e;

	snprintf(path, sizeof(path), "/api/sessions/%s", id);
	if (hub_link_ask(l, "PATCH", path, STR_LIT("{\"archived\":true}"), NULL, &e) < 0)
		fprintf(stderr, "holt: conversation %s is not archived: %s\n", id, e.msg);
}

/* The parent was killed: this child ends the session in its place. */
static void follower_on_orphaned(uv_signal_t *h, int number)
{
	struct err e;
	struct hub_link *l = hub_link_open(&e);

	if (l)
		session_archive(l, h->data);
	_exit(0);
}

/* In a child of parent. */
static void follower_run(char *id, int fd, uint64_t after, pid_t parent)
{
	uv_signal_t orphaned = { .data = id };
	char path[EDITOR_PATH];
	struct err e;
	struct hub_link *l = hub_link_open(&e);

	signal(SIGPIPE, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	if (!l)
		_exit(1);
	uv_signal_init(hub_link_loop(l), &orphaned);
	uv_signal_start(&orphaned, follower_on_orphaned, SIGTERM);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		follower_on_orphaned(&orphaned, SIGTERM);
	snprintf(path, sizeof(path), "/api/sessions/%s/events?follow=true&after_seq=%llu", id,
		 (unsigned long long)after);
	_exit(hub_link_follow(l, path, follower_take, &fd, &e) < 0);
}

static int session_follow(struct editor *d, struct editor_session *s, uint64_t after, struct err *e)
{
	const pid_t parent = getpid();
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "pipe");
	s->follower = fork();
	if (s->follower == 0) {
		for (size_t i = 0; i < EDITOR_SESSIONS_MAX; i++) {
			if (d->sessions[i].fd >= 0 && *d->sessions[i].id)
				close(d->sessions[i].fd);
		}
		close(ends[0]);
		close(STDIN_FILENO);
		close(STDOUT_FILENO);
		follower_run(s->id, ends[1], after, parent);
	}
	close(ends[1]);
	if (s->follower < 0) {
		close(ends[0]);
		return err_sys(e, errno, "fork");
	}
	s->fd = ends[0];
	line_init(&s->lines, EDITOR_LINE_MAX);
	return 0;
}

static void session_unfollow(struct editor_session *s)
{
	if (s->follower > 0) {
		kill(s->follower, SIGKILL);
		waitpid(s->follower, NULL, 0);
	}
	if (s->fd >= 0) {
		close(s->fd);
		line_fini(&s->lines);
	}
	s->follower = 0;
	s->fd = -1;
}

static void session_end(struct editor *d, struct editor_session *s)
{
	session_unfollow(s);
	for (size_t i = 0; i < EDITOR_ASKS_MAX; i++) {
		if (d->asks[i].of == s)
			d->asks[i] = (struct editor_ask){ 0 };
	}
	session_archive(d->hub, s->id);
	free(s->offered);
	*s = (struct editor_session){ .fd = -1 };
}

static struct editor_session *session_find(struct editor *d, struct str id)
{
	for (size_t i = 0; i < EDITOR_SESSIONS_MAX; i++) {
		if (id.n && str_is(id, d->sessions[i].id))
			return &d->sessions[i];
	}
	return NULL;
}

static struct editor_session *session_place(struct editor *d, struct str id, struct err *e)
{
	for (size_t i = 0; i < EDITOR_SESSIONS_MAX; i++) {
		struct editor_session *s = &d->sessions[i];

		if (*s->id)
			continue;
		snprintf(s->id, sizeof(s->id), "%.*s", STR_CUT(id, EDITOR_ID));
		return s;
	}
	return err_set(e, ERR_LIMIT, "more than %d sessions are open", EDITOR_SESSIONS_MAX), NULL;
}

/* ---- what the editor asks -------------------------------------------------------------------- */

static void take_initialize(struct editor *d, const struct rpc_msg *q)
{
	struct editor_out m;
	char text[256];

	editor_result(&m, &q->id);
	json_write_object(&m.w);
	json_put_uint(&m.w, "protocolVersion", ACP_VERSION);
	json_put_object(&m.w, "agentCapabilities");
	json_put_bool(&m.w, "loadSession", true);
	json_put_object(&m.w, "promptCapabilities");
	json_put_bool(&m.w, "image", true);
	json_put_bool(&m.w, "embeddedContext", true);
	json_write_object_end(&m.w);
	json_put_object(&m.w, "sessionCapabilities");
	json_put_object(&m.w, "close");
	json_write_object_end(&m.w);
	json_write_object_end(&m.w);
	json_write_object_end(&m.w);
	json_put_object(&m.w, "agentInfo");
	json_put_text(&m.w, "name", "holt");
	snprintf(text, sizeof(text), "%s in a sandbox of Holt", d->agent);
	json_put_text(&m.w, "title", text);
	json_put_text(&m.w, "version", HOLT_VERSION);
	json_write_object_end(&m.w);
	json_put_array(&m.w, "authMethods");
	json_write_object(&m.w);
	json_put_text(&m.w, "id", "holt");
	json_put_text(&m.w, "name", "Log in with Holt");
	snprintf(text, sizeof(text), "Run `holt agent login %s` in a terminal, then go on.",
		 d->agent);
	json_put_text(&m.w, "description", text);
	json_write_object_end(&m.w);
	json_write_array_end(&m.w);
	json_write_object_end(&m.w);
	editor_end(&m);
}

/* The person has logged in by a command, or the next prompt says again what is missing. */
static void take_authenticate(struct editor *d, const struct rpc_msg *q)
{
	struct editor_out m;

	editor_result(&m, &q->id);
	json_write_object(&m.w);
	json_write_object_end(&m.w);
	editor_end(&m);
}

static void editor_note_servers(struct editor *d, const struct json_val *params)
{
	if (d->told_servers || json_len(json_get(params, "mcpServers")) == 0)
		return;
	d->told_servers = true;
	fprintf(stderr, "holt: MCP servers of the editor are not in the sandbox; `holt mcp add` "
			"gives some to agents\n");
}

static int new_body(const struct editor *d, const struct json_val *params, struct buf *body,
		    struct err *e)
{
	struct json_writer w = json_writer(body);

	json_write_object(&w);
	json_put_text(&w, "acp_server", d->agent);
	json_put_str(&w, "working_dir", json_str(json_get(params, "cwd")));
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

static void session_answer(const struct rpc_id *id, const struct editor_session *s,
			   const struct json_val *view, bool named)
{
	struct editor_out m;

	editor_result(&m, id);
	json_write_object(&m.w);
	if (named)
		json_put_text(&m.w, "sessionId", s->id);
	editor_write_options(&m.w, view);
	json_write_object_end(&m.w);
	editor_end(&m);
}

static void take_new(struct editor *d, const struct rpc_msg *q)
{
	autobuf struct buf body = BUF_INIT(16 << 10);
	AUTO(json_free) struct json_doc *doc = NULL;
	struct editor_session *s;
	uint64_t last = 0;
	struct err e;

	editor_note_servers(d, q->params);
	if (new_body(d, q->params, &body, &e) < 0 ||
	    hub_link_ask(d->hub, "POST", "/api/sessions", buf_str(&body), &doc, &e) < 0) {
		editor_fail(&q->id, &e);
		return;
	}
	s = session_place(d, json_str(json_get(json_root(doc), "session_id")), &e);
	json_uint64(json_get(json_root(doc), "last_seq"), &last);
	if (!s || session_follow(d, s, last, &e) < 0)
		editor_fail(&q->id, &e);
	else
		session_answer(&q->id, s, json_root(doc), true);
}

/* Shows all of its log, page by page. */
static int session_replay(struct editor *d, struct editor_session *s, uint64_t *last, struct err *e)
{
	char more[64];
	bool some = true;

	for (*last = 0; some;) {
		AUTO(json_free) struct json_doc *doc = NULL;
		struct json_iter it;

		snprintf(more, sizeof(more), "/events?limit=%d&after_seq=%llu", PAGE,
			 (unsigned long long)*last);
		if (editor_ask_hub(d, s, "GET", more, STR_NONE, &doc, e) < 0)
			return -1;
		it = json_iter(json_get(json_root(doc), "events"));
		some = false;
		while (json_next(&it)) {
			some = json_uint64(json_get(it.val, "seq"), last);
			editor_replay(d, s, it.val);
		}
	}
	return 0;
}

static void take_load(struct editor *d, const struct rpc_msg *q)
{
	struct str id = json_str(json_get(q->params, "sessionId"));
	AUTO(json_free) struct json_doc *doc = NULL;
	struct editor_session *s = session_find(d, id);
	uint64_t last;
	struct err e;

	editor_note_servers(d, q->params);
	for (size_t i = 0; i < id.n; i++) {
		if (!strchr("0123456789abcdef-", id.p[i]))
			id.n = 0;
	}
	if (s)
		session_unfollow(s);
	else
		s = id.n ? session_place(d, id, &e)
			 : (err_set(&e, ERR_INVALID, "sessionId: that is no session"), NULL);
	if (!s) {
		editor_fail(&q->id, &e);
		return;
	}
	if (editor_ask_hub(d, s, "PATCH", "", STR_LIT("{\"archived\":false}"), &doc, &e) < 0 ||
	    session_replay(d, s, &last, &e) < 0 || session_follow(d, s, last, &e) < 0) {
		*s = (struct editor_session){ .fd = -1 };
		editor_fail(&q->id, &e);
		return;
	}
	session_answer(&q->id, s, json_root(doc), false);
}

/* ---- prompts --------------------------------------------------------------------------------- */

/* Adds an image as a file of the conversation. */
static int prompt_add_image(struct editor *d, const struct editor_session *s,
			    const struct json_val *block, struct json_writer *files, struct err *e)
{
	autobuf struct buf body = BUF_INIT(EDITOR_LINE_MAX);
	struct json_writer w = json_writer(&body);
	AUTO(json_free) struct json_doc *doc = NULL;

	json_write_object(&w);
	json_put_text(&w, "name", "image");
	json_put_str(&w, "content", json_str(json_get(block, "data")));
	json_write_object_end(&w);
	if (json_write_done(&w, e) < 0 ||
	    editor_ask_hub(d, s, "POST", "/files", buf_str(&body), &doc, e) < 0)
		return -1;
	json_write_str(files, json_str(json_get(json_root(doc), "file_id")));
	return 0;
}

static int prompt_add_text(struct buf *text, const struct json_val *block, struct err *e)
{
	struct str type = json_str(json_get(block, "type"));
	const struct json_val *resource = json_get(block, "resource");
	struct str uri = json_str(json_get(resource ?: block, "uri"));
	struct str inside = json_str(json_get(resource, "text"));

	if (str_is(type, "text"))
		inside = json_str(json_get(block, "text"));
	else if (buf_addf(text, e, "%s[%.*s](%.*s)%s", text->n ? "\n" : "",
			  STR_ARG(json_str(json_get(block, "name"))), STR_ARG(uri),
			  inside.n ? ":\n" : "") < 0)
		return -1;
	return buf_add(text, inside.p, inside.n, e);
}

static int prompt_body(struct editor *d, const struct editor_session *s,
		       const struct json_val *params, struct buf *body, struct err *e)
{
	autobuf struct buf text = BUF_INIT(EDITOR_LINE_MAX);
	struct json_iter it = json_iter(json_get(params, "prompt"));
	struct json_writer w = json_writer(body);

	json_write_object(&w);
	json_put_array(&w, "files");
	while (json_next(&it)) {
		bool image = str_is(json_str(json_get(it.val, "type")), "image");

		if ((image ? prompt_add_image(d, s, it.val, &w, e)
			   : prompt_add_text(&text, it.val, e)) < 0)
			return -1;
	}
	json_write_array_end(&w);
	json_put_str(&w, "prompt", buf_str(&text));
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

static void take_prompt(struct editor *d, const struct rpc_msg *q)
{
	struct editor_session *s = session_find(d, json_str(json_get(q->params, "sessionId")));
	autobuf struct buf body = BUF_INIT(EDITOR_LINE_MAX);
	AUTO(json_free) struct json_doc *doc = NULL;
	struct err e = ERR_INIT;

	if (!s)
		err_set(&e, ERR_INVALID, "sessionId: no such session is open");
	else if (s->prompt.n)
		err_set(&e, ERR_CONFLICT, "a prompt of this session is not answered yet");
	else if (s->fd < 0)
		err_set(&e, ERR_TRANSPORT, "the hub has ended; load the session again");
	if (e.code || prompt_body(d, s, q->params, &body, &e) < 0 ||
	    editor_ask_hub(d, s, "POST", "/queue", buf_str(&body), &doc, &e) < 0) {
		editor_fail(&q->id, &e);
		return;
	}
	s->prompt = q->id;
	*s->error = '\0';
	s->needs_login = false;
	snprintf(s->prompt_id, sizeof(s->prompt_id), "%.*s",
		 STR_CUT(json_str(json_get(json_root(doc), "message_id")), EDITOR_ID));
}

/* ---- other requests -------------------------------------------------------------------------- */

/* {"options":{ID:VALUE}}, by a mode or an option. */
static void take_set(struct editor *d, const struct rpc_msg *q)
{
	struct editor_session *s = session_find(d, json_str(json_get(q->params, "sessionId")));
	const struct json_val *value = json_get(q->params, "value");
	struct str id = json_str(json_get(q->params, "configId"));
	struct str mode = json_str(json_get(q->params, "modeId"));
	autobuf struct buf body = BUF_INIT(16 << 10);
	struct json_writer w = json_writer(&body);
	AUTO(json_free) struct json_doc *doc = NULL;
	struct err e;

	json_write_object(&w);
	json_put_object(&w, "options");
	json_write_key_str(&w, mode.n ? STR_LIT("mode") : id);
	if (json_type(value) == JSON_BOOL)
		json_write_text(&w, json_bool(value) ? "true" : "false");
	else
		json_write_str(&w, mode.n ? mode : json_str(value));
	json_write_object_end(&w);
	json_write_object_end(&w);
	if (!s)
		err_set(&e, ERR_INVALID, "sessionId: no such session is open");
	if (!s || json_write_done(&w, &e) < 0 ||
	    editor_ask_hub(d, s, "PATCH", "", buf_str(&body), &doc, &e) < 0)
		editor_fail(&q->id, &e);
	else
		session_answer(&q->id, s, json_root(doc), false);
}

static void take_close(struct editor *d, const struct rpc_msg *q)
{
	struct editor_session *s = session_find(d, json_str(json_get(q->params, "sessionId")));

	if (s)
		session_end(d, s);
	take_authenticate(d, q); /* {} */
}

/* The hub ends the turn, and withdraws what it asks; a prompt that has no turn yet goes. */
static void take_cancel(struct editor *d, const struct rpc_msg *q)
{
	struct editor_session *s = session_find(d, json_str(json_get(q->params, "sessionId")));
	struct err e;

	if (s && s->prompt.n &&
	    editor_ask_hub(d, s, "POST", "/cancel", STR_LIT("{}"), NULL, &e) < 0) {
		editor_drop_prompt(d, s);
		editor_turn_end(s, STR_LIT("cancelled"));
	}
}

static const struct take_row {
	const char *method;
	void (*take)(struct editor *d, const struct rpc_msg *q);
	bool notified; /* it has no answer */
} takes[] = {
	{ "initialize", take_initialize },
	{ "authenticate", take_authenticate },
	{ "session/new", take_new },
	{ "session/load", take_load },
	{ "session/prompt", take_prompt },
	{ "session/set_mode", take_set },
	{ "session/set_config_option", take_set },
	{ "session/close", take_close },
	{ "session/cancel", take_cancel, .notified = true },
};

static void editor_take(struct editor *d, struct str line)
{
	static const struct json_options limits = { .bytes = EDITOR_LINE_MAX };
	AUTO(json_free) struct json_doc *doc = NULL;
	struct rpc_fault f;
	struct rpc_msg m = { 0 };
	struct rpc_id id;
	bool silent = false;

	if (!line.n)
		return;
	if (rpc_parse(line, &limits, &doc, &f, &id) < 0) {
		editor_fault(&id, f.code, f.message);
		return;
	}
	if (rpc_read(json_root(doc), &m, &f, &silent) < 0) {
		if (!silent)
			editor_fault(&m.id, f.code, f.message);
		return;
	}
	if (m.kind == RPC_RESPONSE) {
		editor_answered(d, &m);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(takes); i++) {
		if (!str_is(m.method, takes[i].method) ||
		    takes[i].notified != (m.kind == RPC_NOTIFICATION))
			continue;
		takes[i].take(d, &m);
		return;
	}
	if (m.kind == RPC_REQUEST)
		editor_fault(&m.id, RPC_METHOD_NOT_FOUND, "there is no such method here");
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* False: the end. */
static bool read_some(int fd, char *room, struct str *ret)
{
	ssize_t n;

	do
		n = read(fd, room, PIECE);
	while (n < 0 && errno == EINTR);
	*ret = (struct str){ room, n > 0 ? (size_t)n : 0 };
	return n > 0;
}

static void session_read(struct editor *d, struct editor_session *s)
{
	char room[PIECE];
	struct str input, line;
	enum line_event what;
	struct err e;

	if (!read_some(s->fd, room, &input)) {
		session_unfollow(s);
		if (s->prompt.n)
			editor_fault(&s->prompt, RPC_INTERNAL_ERROR,
				     "the hub has ended, and the turn with it");
		s->prompt.n = 0;
		return;
	}
	while (s->fd >= 0 && (what = line_next(&s->lines, &input, &line)) != LINE_MORE) {
		AUTO(json_free)
		struct json_doc *doc = what == LINE_TEXT ? json_parse(line, NULL, &e) : NULL;

		if (doc)
			editor_event(d, s, json_root(doc));
	}
}

static bool editor_read(struct editor *d)
{
	char room[PIECE];
	struct str input, line;
	enum line_event what;
	struct rpc_id id;

	if (!read_some(STDIN_FILENO, room, &input))
		return false;
	while ((what = line_next(&d->in, &input, &line)) != LINE_MORE) {
		if (what == LINE_TEXT) {
			editor_take(d, line);
			continue;
		}
		rpc_sniff_id(&d->in.sniff, &id);
		editor_fault(&id, RPC_INVALID_REQUEST, "a message has at most 10 MiB");
	}
	return true;
}

static void editor_run(struct editor *d)
{
	bool on = true;

	while (on) {
		struct pollfd p[EDITOR_SESSIONS_MAX + 1] = { { STDIN_FILENO, POLLIN, 0 } };

		for (size_t i = 0; i < EDITOR_SESSIONS_MAX; i++)
			p[i + 1] = (struct pollfd){ d->sessions[i].fd, POLLIN, 0 };
		if (poll(p, ARRAY_LEN(p), -1) < 0 && errno != EINTR)
			break;
		for (size_t i = 0; i < EDITOR_SESSIONS_MAX; i++) {
			if (p[i + 1].revents && d->sessions[i].fd == p[i + 1].fd)
				session_read(d, &d->sessions[i]);
		}
		if (p[0].revents)
			on = editor_read(d);
	}
	for (size_t i = 0; i < EDITOR_SESSIONS_MAX; i++) {
		if (*d->sessions[i].id)
			session_end(d, &d->sessions[i]);
	}
}

/* An editor shows what a program says before it ends, and hardly what a session fails with. */
static int acp_check(struct hub_link *l, const char *agent, struct err *e)
{
	AUTO(json_free) struct json_doc *doc = NULL;
	struct json_iter it;

	if (hub_link_ask(l, "GET", "/api/config", STR_NONE, &doc, e) < 0)
		return -1;
	it = json_iter(json_get(json_root(doc), "acp_servers"));
	while (json_next(&it)) {
		if (str_is(json_str(json_get(it.val, "name")), agent))
			return 0;
	}
	return err_set(e, ERR_INVALID, "the operator's file has no agent %.80s", agent);
}

static int agent_acp(const struct verb_input *in, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(e);
	struct editor *d;

	if (!l || acp_check(l, in->operands[0], e) < 0)
		return -1;
	d = calloc(1, sizeof(*d));
	if (!d)
		return err_set(e, ERR_LIMIT, "out of memory");
	d->hub = l;
	d->agent = in->operands[0];
	for (size_t i = 0; i < EDITOR_SESSIONS_MAX; i++)
		d->sessions[i].fd = -1;
	line_init(&d->in, EDITOR_LINE_MAX);
	signal(SIGPIPE, SIG_IGN);
	editor_run(d);
	line_fini(&d->in);
	free(d);
	return 0;
}

const struct verb agent_acp_verb = {
	.name = "agent acp",
	.usage = "NAME",
	.doc = "Be an editor's agent: an agent of yours in a sandbox, by ACP.",
	.options = &verb_bare,
	.size = sizeof(struct verb_options),
	.min_operands = 1,
	.max_operands = 1,
	.run = agent_acp,
	.fail = hub_link_fail,
};
