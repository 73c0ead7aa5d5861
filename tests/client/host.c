/*
 * A host of MCP servers for the tests of the client's role: as many links as it is told to open, in
 * one process and one thread. Each line of JSON on standard input is a command, each on standard
 * output an event:
 *
 *	{"do":"connect","link":L,"target":{argv|url, env, known, …}}	ready, over
 *	{"do":"request","link":L,"id":I,"method":M,"params":P}		done, progress, task
 *	{"do":"call","link":L,"id":I,"tool":T,"arguments":A}		the same
 *	{"do":"list","link":L,"id":I,"what":W}				listed
 *	{"do":"cancel","link":L,"id":I}
 *	{"do":"notify","link":L,"method":M,"params":P}
 *	{"do":"watch","link":L,"lists":N,"uris":[…]}			changed, updated
 *	{"do":"level","link":L,"level":N}				log
 *	{"do":"about","link":L}						about
 *	{"do":"close","link":L}						closed
 *	{"do":"close_at","link":L,"event":E}	the same, from inside of the event
 *
 * It accepts forms with their defaults, and URLs; a model says "sampled"; there is one root. At the
 * end of input all links are closed.
 */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "json/document/write.h"
#include "loop/reader.h"
#include "mcp/connect/connect.h"
#include "rpc/line.h"

enum { LINE_MAX_BYTES = 64 << 20, LIST_MAX = 64, NAME_MAX_BYTES = 64 };

struct link {
	struct link *next, **at;
	char name[NAME_MAX_BYTES];
	struct mcp_link *link;
	struct ask *asks;
	char close_at[NAME_MAX_BYTES];
};

/* A request that has no answer yet. */
struct ask {
	struct ask *next, **at;
	struct link *link;
	char id[NAME_MAX_BYTES];
	struct mcp_pending *pending;
};

static void do_close(struct link *l, const struct json_val *v);

static uv_loop_t loop;
static struct link *links;
static struct loop_reader *input;
static struct line_reader lines;

/* --- events --- */

static struct buf out = { .max = 256 << 20 };

static struct json_writer begin(const char *event, const struct link *l)
{
	struct json_writer w;

	out.n = 0;
	w = json_writer(&out);
	json_write_object(&w);
	json_write_key(&w, "event");
	json_write_text(&w, event);
	json_write_key(&w, "link");
	json_write_text(&w, l->name);
	return w;
}

static void end(struct json_writer *w)
{
	struct err e;

	json_write_object_end(w);
	if (json_write_done(w, &e) < 0)
		abort();
	printf("%.*s\n", STR_ARG(buf_str(&out)));
	fflush(stdout);
}

static void close_at(struct link *l, const char *event)
{
	if (strcmp(l->close_at, event) == 0)
		do_close(l, NULL);
}

static void put_text(struct json_writer *w, const char *key, struct str text)
{
	json_write_key(w, key);
	json_write_str(w, text);
}

static void put_err(struct json_writer *w, const struct err *e)
{
	put_text(w, "error", str_of(err_info(e->code)->name));
	put_text(w, "message", str_of(e->msg));
}

static void put_answer(struct json_writer *w, const struct mcp_answer *a)
{
	if (a->result) {
		json_write_key(w, "result");
		json_write_val(w, a->result);
	} else if (a->fault) {
		json_write_key(w, "fault");
		json_write_val(w, a->fault);
	} else {
		put_err(w, a->e);
	}
}

/* --- what a server does --- */

static void on_ready(void *owner)
{
	static const char *const wires[] = { "", "stdio", "http", "sse" };
	struct link *l = owner;
	struct mcp_found found = mcp_link_found(l->link);
	struct json_writer w = begin("ready", l);

	put_text(&w, "version", str_of(mcp_client_version(mcp_link_client(l->link))));
	put_text(&w, "era", found.era == MCP_MODERN ? STR_LIT("modern") : STR_LIT("legacy"));
	put_text(&w, "wire", str_of(wires[found.wire]));
	end(&w);
	close_at(l, "ready");
}

static void on_over(void *owner, const struct err *e)
{
	struct link *l = owner;
	struct json_writer w = begin("over", l);

	put_err(&w, e);
	json_write_key(&w, "status");
	json_write_int(&w, l->link ? mcp_link_status(l->link) : -1);
	end(&w);
	close_at(l, "over");
}

static void answer(struct mcp_question *q, struct str text)
{
	struct err e;

	if (mcp_question_answer(q, text, &e) < 0)
		mcp_question_refuse(q, e.msg);
}

static void answer_form(struct mcp_question *q)
{
	autobuf struct buf text = BUF_INIT(1 << 20);
	struct err e;

	if (buf_addf(&text, &e, "{\"action\":\"accept\",\"content\":") < 0 ||
	    mcp_form_defaults(mcp_question_params(q), &text, &e) < 0 ||
	    buf_add(&text, "}", 1, &e) < 0)
		mcp_question_refuse(q, e.msg);
	else
		answer(q, buf_str(&text));
}

static void on_asked(void *owner, struct mcp_question *q)
{
	static const struct str roots = STR_LIT("{\"roots\":[{\"uri\":\"file:///tmp\"}]}");
	static const struct str sampled = STR_LIT(
		"{\"role\":\"assistant\",\"model\":\"m\",\"stopReason\":\"endTurn\","
		"\"content\":{\"type\":\"text\",\"text\":\"sampled\"}}");
	struct json_writer w = begin("asked", owner);

	json_write_key(&w, "params");
	json_write_val(&w, mcp_question_params(q));
	end(&w);
	if (str_is(str_of(((struct link *)owner)->close_at), "asked")) {
		do_close(owner, NULL);
		return;
	}
	switch (mcp_question_kind(q)) {
	case MCP_ASK_FORM:
		answer_form(q);
		break;
	case MCP_ASK_URL:
		answer(q, STR_LIT("{\"action\":\"accept\"}"));
		break;
	case MCP_ASK_SAMPLING:
		answer(q, sampled);
		break;
	default:
		answer(q, roots);
	}
}

static void on_changed(void *owner, unsigned lists)
{
	struct json_writer w = begin("changed", owner);

	json_write_key(&w, "lists");
	json_write_uint(&w, lists);
	end(&w);
}

static void on_updated(void *owner, struct str uri)
{
	struct json_writer w = begin("updated", owner);

	put_text(&w, "uri", uri);
	end(&w);
}

static void on_log(void *owner, const struct mcp_log_message *m)
{
	struct json_writer w = begin("log", owner);

	json_write_key(&w, "data");
	json_write_val(&w, m->data);
	end(&w);
}

static void on_notified(void *owner, struct str method, const struct json_val *params)
{
	struct json_writer w = begin("notified", owner);

	put_text(&w, "method", method);
	end(&w);
	close_at(owner, "notified");
}

static void on_stderr(void *owner, struct str bytes)
{
	struct json_writer w = begin("stderr", owner);

	json_write_key(&w, "bytes");
	json_write_uint(&w, bytes.n);
	put_text(&w, "text", bytes.n < 4096 ? bytes : STR_LIT(""));
	end(&w);
}

static const struct mcp_client_handler handler = {
	.ready = on_ready,
	.over = on_over,
	.asked = on_asked,
	.changed = on_changed,
	.updated = on_updated,
	.log = on_log,
	.notified = on_notified,
};

/* --- requests --- */

static void ask_free(struct ask *a)
{
	*a->at = a->next;
	if (a->next)
		a->next->at = a->at;
	free(a);
}

static struct ask *ask_new(struct link *l, struct str id)
{
	struct ask *a = calloc(1, sizeof(*a));

	if (!a)
		abort();
	snprintf(a->id, sizeof(a->id), "%.*s", STR_ARG(id));
	a->link = l;
	a->next = l->asks;
	a->at = &l->asks;
	if (a->next)
		a->next->at = &a->next;
	l->asks = a;
	return a;
}

static struct json_writer begin_ask(const char *event, const struct ask *a)
{
	struct json_writer w = begin(event, a->link);

	put_text(&w, "id", str_of(a->id));
	return w;
}

static void on_done(void *owner, const struct mcp_answer *answer)
{
	struct ask *a = owner;
	struct link *l = a->link;
	struct json_writer w = begin_ask("done", a);

	put_answer(&w, answer);
	end(&w);
	ask_free(a);
	close_at(l, "done");
}

static void on_progress(void *owner, const struct mcp_progress *p)
{
	struct json_writer w = begin_ask("progress", owner);

	json_write_key(&w, "progress");
	json_write_real(&w, p->progress);
	end(&w);
}

static void on_task(void *owner, struct str id)
{
	struct json_writer w = begin_ask("task", owner);

	put_text(&w, "task", id);
	end(&w);
}

static void on_listed(void *owner, const struct mcp_listed *listed)
{
	struct ask *a = owner;
	struct json_writer w = begin_ask("listed", a);

	if (listed->failed) {
		put_answer(&w, listed->failed);
	} else {
		json_write_key(&w, "items");
		json_write_array(&w);
		for (size_t i = 0; i < listed->n; i++)
			json_write_val(&w, listed->items[i]);
		json_write_array_end(&w);
	}
	end(&w);
	ask_free(a);
}

static void refused(struct ask *a, const struct err *e)
{
	struct json_writer w = begin_ask("done", a);

	put_err(&w, e);
	end(&w);
	ask_free(a);
}

/* --- commands --- */

static struct str get(const struct json_val *v, const char *key)
{
	return json_str(json_get(v, key));
}

static unsigned number(const struct json_val *v, const char *key)
{
	uint64_t n = 0;

	json_uint64(json_get(v, key), &n);
	return (unsigned)n;
}

/* A member as JSON text, or STR_NONE. */
static struct str raw(const struct json_val *v, const char *key, struct buf *to)
{
	struct json_writer w = json_writer(to);
	struct err e;

	if (!json_get(v, key))
		return STR_NONE;
	json_write_val(&w, json_get(v, key));
	if (json_write_done(&w, &e) < 0)
		abort();
	return buf_str(to);
}

/* Members of a list as C strings, which end in NUL in their document. */
static const char *const *list(const struct json_val *v, const char *key, const char *to[LIST_MAX])
{
	struct json_iter it = json_iter(json_get(v, key));
	size_t n = 0;

	if (!json_get(v, key))
		return NULL;
	while (json_next(&it) && n < LIST_MAX - 1)
		to[n++] = json_str(it.val).p;
	to[n] = NULL;
	return to;
}

static enum mcp_era era(struct str name)
{
	return str_is(name, "modern") ? MCP_MODERN
	     : str_is(name, "legacy") ? MCP_LEGACY
				      : MCP_BROKEN;
}

static enum mcp_wire wire(struct str name)
{
	return str_is(name, "stdio") ? MCP_WIRE_STDIO
	     : str_is(name, "http")  ? MCP_WIRE_HTTP
	     : str_is(name, "sse")   ? MCP_WIRE_SSE
				     : MCP_WIRE_FIND;
}

static void do_connect(struct link *l, const struct json_val *v)
{
	const struct json_val *t = json_get(v, "target"), *known = json_get(t, "known");
	const char *argv[LIST_MAX], *env[LIST_MAX];
	struct mcp_target target = {
		.argv = list(t, "argv", argv),
		.env = list(t, "env", env),
		.cwd = get(t, "cwd").p,
		.on_stderr = json_bool(json_get(t, "stderr")) ? on_stderr : NULL,
		.url = get(t, "url").p,
		.unix_socket = get(t, "unix_socket").p,
		.public_only = json_bool(json_get(t, "public_only")),
		.known = { wire(get(known, "wire")), era(get(known, "era")) },
		.version = get(t, "version").p,
		.probe_ms = number(t, "probe_ms"),
		.start_ms = number(t, "start_ms"),
		.stop_ms = number(t, "stop_ms"),
		.owner = l,
	};
	struct mcp_client_options o = {
		.name = "host",
		.version = "1",
		.can = MCP_CAN_ROOTS | MCP_CAN_SAMPLING | MCP_CAN_FORM | MCP_CAN_URL |
		       MCP_CAN_TASKS,
		.handler = &handler,
		.owner = l,
		.timeout_ms = number(t, "timeout_ms"),
		.message_max = number(t, "message_max"),
		.memory_max = number(t, "memory_max"),
	};
	struct err e = ERR_INIT;

	if (json_get(t, "can"))
		o.can = number(t, "can");
	l->link = mcp_connect(&loop, &target, &o, &e);
	if (!l->link)
		on_over(l, &e);
}

static void do_request(struct link *l, const struct json_val *v)
{
	autobuf struct buf params = BUF_INIT(LINE_MAX_BYTES);
	struct ask *a = ask_new(l, get(v, "id"));
	struct mcp_request_spec s = {
		.method = get(v, "method").p,
		.timeout_ms = number(v, "timeout_ms"),
		.log_level = (int)number(v, "log_level"),
		.task_ttl_ms = number(v, "task_ttl_ms"),
		.on_progress = json_bool(json_get(v, "progress")) ? on_progress : NULL,
		.on_task = on_task,
		.on_done = on_done,
		.owner = a,
	};
	struct err e;

	s.params = raw(v, s.method ? "params" : "arguments", &params);
	if (s.method)
		a->pending = mcp_client_request(mcp_link_client(l->link), &s, &e);
	else
		a->pending = mcp_client_call(mcp_link_client(l->link), get(v, "tool").p, s.params,
					     &s, &e);
	if (!a->pending)
		refused(a, &e);
}

static void do_list(struct link *l, const struct json_val *v)
{
	struct ask *a = ask_new(l, get(v, "id"));
	struct err e;

	a->pending = mcp_client_list(mcp_link_client(l->link), get(v, "what").p, on_listed, a, &e);
	if (!a->pending)
		refused(a, &e);
}

static void do_cancel(struct link *l, const struct json_val *v)
{
	struct ask *a = l->asks;

	while (a && !str_is(get(v, "id"), a->id))
		a = a->next;
	if (!a)
		return;
	mcp_pending_cancel(a->pending);
	ask_free(a);
}

static void complain(const struct link *l, const struct err *e)
{
	struct json_writer w = begin("refused", l);

	put_err(&w, e);
	end(&w);
}

static void do_notify(struct link *l, const struct json_val *v)
{
	autobuf struct buf params = BUF_INIT(LINE_MAX_BYTES);
	struct err e;

	if (mcp_client_notify(mcp_link_client(l->link), get(v, "method").p,
			      raw(v, "params", &params), &e) < 0)
		complain(l, &e);
}

static void do_watch(struct link *l, const struct json_val *v)
{
	struct json_iter it = json_iter(json_get(v, "uris"));
	struct str uris[LIST_MAX];
	size_t n = 0;
	struct err e;

	while (json_next(&it) && n < LIST_MAX)
		uris[n++] = json_str(it.val);
	if (mcp_client_watch(mcp_link_client(l->link), number(v, "lists"), uris, n, &e) < 0)
		complain(l, &e);
}

static void do_level(struct link *l, const struct json_val *v)
{
	struct err e;

	if (mcp_client_set_level(mcp_link_client(l->link), (enum mcp_level)number(v, "level"), &e) <
	    0)
		complain(l, &e);
}

static void do_about(struct link *l, const struct json_val *v)
{
	struct mcp_client *c = mcp_link_client(l->link);
	struct mcp_client_counts n;
	struct json_writer w = begin("about", l);

	mcp_client_counts(c, &n);
	json_write_key(&w, "about");
	json_write_val(&w, mcp_client_about(c));
	json_write_key(&w, "pending");
	json_write_uint(&w, n.pending);
	json_write_key(&w, "strays");
	json_write_uint(&w, n.strays);
	json_write_key(&w, "garbage");
	json_write_uint(&w, n.garbage);
	end(&w);
}

static void link_free(struct link *l)
{
	*l->at = l->next;
	if (l->next)
		l->next->at = l->at;
	free(l);
}

static void on_closed(void *owner)
{
	struct json_writer w = begin("closed", owner);

	end(&w);
	link_free(owner);
}

static void do_close(struct link *l, const struct json_val *v)
{
	struct mcp_link *link = take_ptr(l->link);

	while (l->asks)
		ask_free(l->asks);
	if (link)
		mcp_link_close(link, on_closed, l);
	else
		on_closed(l);
}

static void do_close_at(struct link *l, const struct json_val *v)
{
	snprintf(l->close_at, sizeof(l->close_at), "%.*s", STR_ARG(get(v, "event")));
}

static const struct {
	const char *name;
	void (*run)(struct link *l, const struct json_val *v);
	bool open; /* wants a link that is not closed */
} commands[] = {
	{ "connect", do_connect },
	{ "request", do_request, .open = true },
	{ "call", do_request, .open = true },
	{ "list", do_list, .open = true },
	{ "cancel", do_cancel, .open = true },
	{ "notify", do_notify, .open = true },
	{ "watch", do_watch, .open = true },
	{ "level", do_level, .open = true },
	{ "about", do_about, .open = true },
	{ "close", do_close },
	{ "close_at", do_close_at },
};

static struct link *find_link(struct str name)
{
	struct link *l = links;

	while (l && !str_is(name, l->name))
		l = l->next;
	if (l)
		return l;
	l = calloc(1, sizeof(*l));
	if (!l)
		abort();
	snprintf(l->name, sizeof(l->name), "%.*s", STR_ARG(name));
	l->next = links;
	l->at = &links;
	if (l->next)
		l->next->at = &l->next;
	links = l;
	return l;
}

static void take_line(struct str line)
{
	const struct json_options any = { .bytes = LINE_MAX_BYTES, .values = 1 << 24 };
	AUTO(json_free) struct json_doc *doc = NULL;
	const struct json_val *v;
	struct err e;

	doc = json_parse(line, &any, &e);
	if (!doc) {
		fprintf(stderr, "host: %s\n", e.msg);
		return;
	}
	v = json_root(doc);
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		struct link *l = find_link(get(v, "link"));

		if (str_is(get(v, "do"), commands[i].name) && (l->link || !commands[i].open))
			commands[i].run(l, v);
	}
}

static void on_bytes(void *owner, struct str bytes)
{
	struct str line;

	while (line_next(&lines, &bytes, &line) == LINE_TEXT)
		take_line(line);
	loop_reader_next(input);
}

static void on_end(void *owner, const struct err *e)
{
	struct link *next;

	for (struct link *l = links; l; l = next) {
		next = l->next;
		do_close(l, NULL);
	}
	loop_reader_close(input, NULL);
}

int main(void)
{
	static const struct loop_reader_events events = { on_bytes, on_end };
	struct err e;

	uv_loop_init(&loop);
	line_init(&lines, LINE_MAX_BYTES);
	input = loop_reader_new(&loop, STDIN_FILENO, &events, NULL, &e);
	if (!input)
		return 1;
	loop_reader_next(input);
	uv_run(&loop, UV_RUN_DEFAULT);
	line_fini(&lines);
	buf_fini(&out);
	return uv_loop_close(&loop) == 0 ? 0 : 1;
}
