#include "mcp_pair.h"

#include <stdlib.h>
#include <strings.h>

#include "test.h"

enum { ROUNDS_MAX = 100000, STEP_MS = 100, STEPS_MAX = 3000, HEADS = 8 };

/* What HTTP says beside one message: copies. */
struct head {
	char *version, *method, *name;
	struct mcp_client_param params[HEADS];
	size_t n;
};

/* A modern request over HTTP: its stream. */
struct pair_post {
	struct pair_post *next;
	struct pair *pair;
	struct mcp_pending *p; /* NULL: the client has let go of it */
	struct mcp_session *session; /* NULL: not begun, or done */
	struct head head;
	bool gone; /* the client closed it */
};

struct pair_item {
	struct pair_item *next;
	bool to_client;
	char *text;
	struct pair_post *post; /* NULL: lines */
};

static struct pair_item *push(struct pair *p, struct str text, bool to_client)
{
	struct pair_item *x = calloc(1, sizeof(*x));

	assert_non_null(x);
	x->text = strndup(text.p, text.n);
	assert_non_null(x->text);
	x->to_client = to_client;
	*(p->last ? &p->last->next : &p->first) = x;
	p->last = x;
	return x;
}

/* --- the server's transport --- */

static void server_send(void *transport, void *stream, const struct mcp_out *m)
{
	struct pair *p = transport;

	if (p->mute)
		return;
	push(p, m->text, true)->post = stream;
}

static void server_stream_done(void *transport, void *stream)
{
}

static const struct mcp_transport server_transport = { .send = server_send,
						       .stream_done = server_stream_done };

/* --- the client's --- */

static char *copy(const char *text)
{
	return text ? strdup(text) : NULL;
}

static void client_send(void *transport, const struct mcp_client_out *m)
{
	struct pair *p = transport;
	struct pair_item *x;

	assert_null(memchr(m->text.p, '\n', m->text.n));
	assert_true((m->kind == MCP_OUT_REQUEST) == (m->pending != NULL));
	p->to_server++;
	x = push(p, m->text, false);
	if (!p->streams || !m->modern)
		return;
	x->post = calloc(1, sizeof(*x->post));
	assert_non_null(x->post);
	*x->post = (struct pair_post){ .next = p->posts, .pair = p, .p = m->pending };
	p->posts = x->post;
	x->post->head.version = copy(m->version);
	x->post->head.method = strndup(m->method.p, m->method.n);
	x->post->head.name = copy(m->name);
	assert_in_range(m->params_n, 0, HEADS);
	for (size_t i = 0; i < m->params_n; i++)
		x->post->head.params[x->post->head.n++] = (struct mcp_client_param){
			strdup(m->params[i].name), strdup(m->params[i].value)
		};
}

static void client_let_go(void *transport, struct mcp_pending *pending)
{
	struct pair *p = transport;

	for (struct pair_post *x = p->posts; x; x = x->next) {
		if (x->p != pending)
			continue;
		x->p = NULL;
		x->gone = true;
	}
}

static struct mcp_client_transport client_transport(bool streams)
{
	return (struct mcp_client_transport){ .streams = streams,
					      .send = client_send,
					      .let_go = client_let_go };
}

/* --- the client's owner --- */

static void on_ready(void *owner)
{
	((struct pair *)owner)->ready++;
}

static void on_over(void *owner, const struct err *e)
{
	struct pair *p = owner;

	p->over++;
	p->over_err = *e;
}

static void on_asked(void *owner, struct mcp_question *q)
{
	struct pair *p = owner;
	const char *answer = p->answers[mcp_question_kind(q)];
	struct err e = ERR_INIT;

	p->asked++;
	p->question = q;
	if (!answer)
		return;
	p->question = NULL;
	if (!*answer)
		mcp_question_refuse(q, "not today");
	else if (mcp_question_answer(q, str_of(answer), &e) < 0)
		fail_msg("%s", e.msg);
}

static void on_withdrawn(void *owner, struct mcp_question *q)
{
	struct pair *p = owner;

	p->withdrawn++;
	if (p->question == q)
		p->question = NULL;
}

static void on_changed(void *owner, unsigned lists)
{
	((struct pair *)owner)->changed |= lists;
}

static void put(char to[PAIR_TEXT], struct str s)
{
	snprintf(to, PAIR_TEXT, "%.*s", STR_ARG(s));
}

static void on_updated(void *owner, struct str uri)
{
	put(((struct pair *)owner)->updated, uri);
}

static void on_log(void *owner, const struct mcp_log_message *m)
{
	struct pair *p = owner;

	p->logs++;
	p->last_level = m->level;
	put(p->last_log, json_str(m->data));
}

static void on_url_done(void *owner, struct str id)
{
	((struct pair *)owner)->url_done++;
}

static void on_notified(void *owner, struct str method, const struct json_val *params)
{
	struct pair *p = owner;

	p->notified++;
	put(p->last_notified, method);
}

static const struct mcp_client_handler handler = {
	.ready = on_ready,
	.over = on_over,
	.asked = on_asked,
	.withdrawn = on_withdrawn,
	.changed = on_changed,
	.updated = on_updated,
	.log = on_log,
	.url_done = on_url_done,
	.notified = on_notified,
};

/* --- life --- */

static uint64_t now_ms(void)
{
	return peer_clock;
}

void pair_init(struct pair *p, const struct mcp_server_options *server,
	       const struct mcp_client_options *client, bool streams)
{
	static struct peer nobody = { .principal = "pair" };
	struct mcp_client_options o = client ? *client : (struct mcp_client_options){ .can = 0 };
	struct err e;

	*p = (struct pair){ .streams = streams };
	p->server = server ? peer_server(server) : NULL;
	if (p->server) {
		p->session = mcp_session_new(p->server, &server_transport, p, MCP_ROAD_LINES,
					     &nobody);
		assert_non_null(p->session);
	}
	o.name = "pair";
	o.title = "A pair";
	o.version = "1";
	o.handler = &handler;
	o.owner = p;
	o.now_ms = now_ms;
	p->client = mcp_client_new(&o, &e);
	assert_non_null(p->client);
}

void pair_start(struct pair *p, const char *version)
{
	static struct mcp_client_transport t[2];
	bool modern = strcmp(version, "2026-07-28") == 0;
	struct err e;

	t[p->streams] = client_transport(p->streams);
	if (mcp_client_start(p->client, &t[p->streams], p, modern ? MCP_MODERN : MCP_LEGACY,
			     version, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(p->ready, 0);
	pair_run(p);
	assert_int_equal(p->ready, 1);
	assert_string_equal(mcp_client_version(p->client), version);
	assert_int_equal(mcp_client_era(p->client), modern ? MCP_MODERN : MCP_LEGACY);
}

static void free_post(struct pair_post *x)
{
	mcp_session_close(x->session);
	free(x->head.version);
	free(x->head.method);
	free(x->head.name);
	for (size_t i = 0; i < x->head.n; i++) {
		free(x->head.params[i].name);
		free(x->head.params[i].value);
	}
	free(x);
}

void pair_fini(struct pair *p)
{
	mcp_client_free(p->client);
	mcp_session_close(p->session);
	while (p->posts) {
		struct pair_post *x = p->posts;

		p->posts = x->next;
		free_post(x);
	}
	mcp_server_free(p->server);
	while (p->first) {
		struct pair_item *x = p->first;

		p->first = x->next;
		free(x->text);
		free(x);
	}
}

/* --- on the way --- */

static struct str param_of(void *data, struct str name)
{
	const struct head *h = data;

	for (size_t i = 0; i < h->n; i++) {
		if (strlen(h->params[i].name) == name.n &&
		    strncasecmp(h->params[i].name, name.p, name.n) == 0)
			return str_of(h->params[i].value);
	}
	return STR_NONE;
}

static void post(struct pair *p, struct pair_item *x)
{
	static struct peer nobody = { .principal = "pair" };
	struct pair_post *to = x->post;
	struct mcp_http_head head = { .protocol_version = str_of(to->head.version),
				      .method = str_of(to->head.method),
				      .name = str_of(to->head.name),
				      .param = param_of,
				      .data = &to->head };
	struct mcp_inbound *in = mcp_inbound_new(p->server, str_of(x->text), &head);

	assert_non_null(in);
	assert_int_equal(mcp_inbound_era(in), MCP_MODERN);
	if (!mcp_inbound_is_answered(in)) {
		mcp_inbound_free(in);
		return;
	}
	to->session = mcp_session_new(p->server, &server_transport, p, MCP_ROAD_POST, &nobody);
	assert_non_null(to->session);
	mcp_session_take(to->session, in, to);
}

/* What the client closed since the server looked last. */
static void close_posts(struct pair *p)
{
	for (struct pair_post *x = p->posts; x; x = x->next) {
		if (!x->gone || !x->session)
			continue;
		mcp_session_cancel_stream(x->session, x);
		mcp_session_close(take_ptr(x->session));
	}
}

static void deliver(struct pair *p, struct pair_item *x)
{
	if (x->to_client) {
		if (x->post && x->post->gone)
			return;
		p->to_client++;
		mcp_client_message(p->client, x->post ? x->post->p : NULL, str_of(x->text));
	} else if (x->post) {
		if (!x->post->gone)
			post(p, x);
	} else if (p->session) {
		mcp_session_message(p->session, str_of(x->text));
	}
}

void pair_run(struct pair *p)
{
	unsigned rounds = 0;

	while (p->first) {
		struct pair_item *x = p->first;

		assert_in_range(++rounds, 1, ROUNDS_MAX);
		p->first = x->next;
		if (!p->first)
			p->last = NULL;
		deliver(p, x);
		free(x->text);
		free(x);
		close_posts(p);
	}
	close_posts(p);
}

void pair_wait(struct pair *p, struct want *w)
{
	for (unsigned i = 0; i < STEPS_MAX; i++) {
		pair_run(p);
		if (w->done)
			return;
		peer_clock += STEP_MS;
		mcp_client_tick(p->client);
	}
	fail_msg("no answer");
}

/* --- requests --- */

void want_done(void *want, const struct mcp_answer *a)
{
	struct want *w = want;
	struct err e;

	assert_false(w->done);
	assert_int_equal((a->result != NULL) + (a->fault != NULL) + (a->e != NULL), 1);
	w->done = true;
	w->code = a->code;
	if (a->e)
		w->e = *a->e;
	if (a->result) {
		autobuf struct buf b = BUF_INIT(64 << 20);
		struct json_writer writer = json_writer(&b);

		w->text = strndup(a->text.p, a->text.n);
		w->result = json_parse(a->text, NULL, &e);
		assert_non_null(w->result);
		json_write_val(&writer, a->result);
		assert_int_equal(json_write_done(&writer, &e), 0);
	}
	if (a->fault) {
		autobuf struct buf b = BUF_INIT(64 << 20);
		struct json_writer writer = json_writer(&b);

		json_write_val(&writer, a->fault);
		assert_int_equal(json_write_done(&writer, &e), 0);
		w->fault = json_parse(buf_str(&b), NULL, &e);
	}
}

void want_progress(void *want, const struct mcp_progress *now)
{
	struct want *w = want;

	w->progress++;
	w->last_progress = now->progress;
}

void want_task(void *want, struct str id)
{
	put(((struct want *)want)->task, id);
}

void want_listed(void *want, const struct mcp_listed *l)
{
	static const char *const keys[] = { "name", "uri", "uriTemplate", "taskId" };
	struct want *w = want;

	if (l->failed) {
		want_done(w, l->failed);
		return;
	}
	w->done = true;
	w->listed = l->n;
	w->dropped = l->dropped;
	for (size_t i = 0; i < l->n; i++) {
		struct str name = STR_NONE;
		size_t n = strlen(w->names);

		for (size_t k = 0; k < ARRAY_LEN(keys) && !name.p; k++)
			name = json_str(json_get(l->items[i], keys[k]));
		snprintf(w->names + n, sizeof(w->names) - n, "%.*s ", STR_ARG(name));
	}
}

void want_fini(struct want *w)
{
	json_free(w->result);
	json_free(w->fault);
	free(w->text);
	*w = (struct want){ .done = false };
}

static const struct mcp_request_spec plain = { .on_progress = want_progress,
					       .on_task = want_task,
					       .on_done = want_done };

void pair_call(struct pair *p, const char *tool, const char *args, struct want *w)
{
	struct mcp_request_spec s = plain;
	struct err e;

	want_fini(w);
	s.owner = w;
	if (!mcp_client_call(p->client, tool, str_of(args), &s, &e))
		fail_msg("%s: %s", tool, e.msg);
	assert_false(w->done);
	pair_wait(p, w);
}

void pair_request(struct pair *p, const char *method, const char *params, struct want *w)
{
	struct mcp_request_spec s = plain;
	struct err e;

	want_fini(w);
	s.owner = w;
	s.method = method;
	s.params = str_of(params);
	if (!mcp_client_request(p->client, &s, &e))
		fail_msg("%s: %s", method, e.msg);
	assert_false(w->done);
	pair_wait(p, w);
}

void pair_list(struct pair *p, const char *what, struct want *w)
{
	struct err e;

	want_fini(w);
	if (!mcp_client_list(p->client, what, want_listed, w, &e))
		fail_msg("%s: %s", what, e.msg);
	assert_false(w->done);
	pair_wait(p, w);
}

const char *want_text(const struct want *w)
{
	struct json_iter it = json_iter(json_get(json_root(w->result), "content"));

	return w->result && json_next(&it) ? text_at(it.val, "text") : "";
}
