#include "op/module/inlet.h"

#include <stdlib.h>

#include "base/words.h"
#include "call/profile.h"
#include "hub/core/hub.h"
#include "json/document/put.h"
#include "modules/code/inlet_request.h"
#include "op/module/module.h"
#include "op/ops.h"

enum {
	CONNECTIONS_MAX = 512, /* of all sandboxes */
	PIECE = 16 << 10,
	TAKES_MS = 10 * 1000, /* to say its request, and to take the answer */
	REQUEST_MEMORY = 4 * INLET_REQUEST_MAX,
	CALL_MEMORY = 24 << 20,
	CALLS = 2, /* of a request: module.info may need a module.test */
	WHY_MAX = 600,
};

struct inlets {
	struct ops *ops;
	uv_loop_t *loop;
	struct hub_sandboxes *sandboxes;
	struct hub_inlets hub;
	struct asking *first;
	unsigned n;
	uv_timer_t timer; /* until on_closed */
	void (*on_closed)(void *arg); /* NULL: it is open */
	void *arg;
};

/* A connection: a request of a program, and its answer. */
struct asking {
	struct asking *next;
	struct inlets *all;
	uint64_t seq; /* of the sandbox */
	char sandbox[SANDBOX_ID_MAX + 1];
	uv_tcp_t tcp;
	uv_timer_t timer;
	unsigned handles;
	struct buf in, out;
	char piece[PIECE];
	struct arena *arena; /* of the request */
	struct inlet_request q;
	char module[CONFIG_SERVER_NAME_MAX + 1];
	struct call *call; /* NULL: none is under way */
	struct arena *arenas[CALLS]; /* of calls, until the end of all */
	unsigned n_calls;
	bool asked, gone; /* gone: nobody waits for the answer */
	uv_write_t write;
};

/* ---- the end ------------------------------------------------------------------------------- */

static void inlets_on_freed(uv_handle_t *h)
{
	struct inlets *all = h->data;
	void (*on_closed)(void *arg) = all->on_closed;
	void *arg = all->arg;

	free(all);
	on_closed(arg);
}

static void inlets_on_timer(uv_timer_t *t)
{
	uv_close((uv_handle_t *)t, inlets_on_freed);
}

static void inlets_try_close(struct inlets *all)
{
	if (all->on_closed && all->n == 0)
		uv_timer_start(&all->timer, inlets_on_timer, 0, 0);
}

static void asking_on_closed(uv_handle_t *h)
{
	struct asking *k = h->data;
	struct asking **at = &k->all->first;

	if (--k->handles > 0)
		return;
	while (*at != k)
		at = &(*at)->next;
	*at = k->next;
	k->all->n--;
	inlets_try_close(k->all);
	for (size_t i = 0; i < k->n_calls; i++)
		arena_free(k->arenas[i]);
	arena_free(k->arena);
	buf_fini(&k->in);
	buf_fini(&k->out);
	free(k);
}

/* Its call has ended. */
static void asking_close(struct asking *k)
{
	if (uv_is_closing((uv_handle_t *)&k->tcp))
		return;
	uv_close((uv_handle_t *)&k->tcp, asking_on_closed);
	uv_close((uv_handle_t *)&k->timer, asking_on_closed);
}

/* The last that may be done with it: k may be closed by it. */
static void asking_leave(struct asking *k)
{
	k->gone = true;
	if (k->call)
		call_cancel(k->call);
	else
		asking_close(k);
}

static void asking_on_late(uv_timer_t *t)
{
	asking_leave(t->data);
}

/* ---- answers ------------------------------------------------------------------------------- */

static void asking_on_written(uv_write_t *w, int status)
{
	asking_close(w->data);
}

/* k->out has the answer. */
static void asking_send(struct asking *k)
{
	uv_buf_t bytes = uv_buf_init(k->out.p, (unsigned)k->out.n);

	k->asked = true;
	if (k->gone ||
	    uv_write(&k->write, (uv_stream_t *)&k->tcp, &bytes, 1, asking_on_written) < 0)
		asking_close(k);
	else
		uv_timer_start(&k->timer, asking_on_late, TAKES_MS, 0);
}

static void asking_refuse(struct asking *k, const struct err *err)
{
	char why[WHY_MAX];
	struct err e;

	snprintf(why, sizeof(why), "%s: %s", err_info(err->code)->name, err->msg);
	buf_drop(&k->out, k->out.n);
	if (inlet_say(&k->out, INLET_FAILED, str_of(why), &e) < 0)
		asking_close(k);
	else
		asking_send(k);
}

static void asking_say(struct asking *k, struct str text)
{
	struct err e = ERR_INIT;

	if (inlet_say(&k->out, INLET_RESULT, text, &e) < 0)
		asking_refuse(k, &e);
	else
		asking_send(k);
}

/* ---- what the sandbox has ------------------------------------------------------------------ */

static struct hub_sandbox *asking_sandbox(const struct asking *k, struct hub_sandbox_info *ret,
					  struct err *e)
{
	struct hub_sandbox *l = hub_sandboxes_by_seq(k->all->sandboxes, k->seq);

	if (l)
		hub_sandbox_info(l, ret);
	else
		err_set(e, ERR_SANDBOX_NOT_FOUND, "sandbox %s has ended", k->sandbox);
	return l;
}

/* What clients have registered is JavaScript. */
static bool modules_have(struct str modules, struct str name)
{
	struct str one;

	while (!module_is_registered(name) && str_word(&modules, &one)) {
		if (str_is(one, "*") || str_eq(one, name))
			return true;
	}
	return false;
}

/* Fills in k->module. A module that is not there is refused as one that the sandbox does not have:
 * no program learns the names of others. */
static int asking_find(struct asking *k, struct err *e)
{
	struct upstreams *all = ops_upstreams(k->all->ops);
	struct hub_sandbox_info of;
	struct upstream_info i;
	struct upstream *u;
	struct err none;

	if (!asking_sandbox(k, &of, e) || upstreams_check(all, e) < 0)
		return -1;
	u = upstreams_find(all, k->q.module, &none);
	if (u)
		upstream_info(u, &i);
	if (!u || !modules_have(of.modules.names, i.name))
		return err_set(e, ERR_DENIED, "this sandbox was not made with a module %.*s",
			       STR_CUT(k->q.module, MODULE_NAME_MAX));
	snprintf(k->module, sizeof(k->module), "%.*s", STR_ARG(i.name));
	return 0;
}

/* ---- calls --------------------------------------------------------------------------------- */

static int decode_list(void *client, void *request, struct err *e)
{
	return 0;
}

static int decode_info(void *client, void *request, struct err *e)
{
	struct asking *k = client;

	if (asking_find(k, e) < 0)
		return -1;
	*(struct module_info_request *)request =
		(struct module_info_request){ .module = str_of(k->module) };
	return 0;
}

static int decode_test(void *client, void *request, struct err *e)
{
	struct asking *k = client;

	if (asking_find(k, e) < 0)
		return -1;
	*(struct module_manage_request *)request =
		(struct module_manage_request){ .module = str_of(k->module), .imports = true };
	return 0;
}

static int decode_call(void *client, void *request, struct err *e)
{
	struct asking *k = client;

	if (asking_find(k, e) < 0)
		return -1;
	*(struct module_call_request *)request =
		(struct module_call_request){ .module = str_of(k->module),
					      .tool = k->q.tool,
					      .arguments = { k->q.arguments },
					      .sandbox = str_of(k->sandbox) };
	return 0;
}

/* What is no list of names, as a registry of before has none, is the default. */
static int asking_profiles(const struct hub_modules *m, struct op_start *s, struct err *e)
{
	AUTO(json_free) struct json_doc *doc = NULL;
	struct json_iter it;
	struct str *names;
	size_t n;

	s->unprofiled = str_is(m->profiles, SANDBOX_UNPROFILED);
	doc = m->profiles.n && !s->unprofiled ? json_parse(m->profiles, NULL, e) : NULL;
	n = json_len(json_root(doc));
	names = arena_array(s->arena, n, sizeof(*names), e);
	if (!names)
		return -1;
	s->profiles.p = names;
	for (it = json_iter(json_root(doc)); json_next(&it); s->profiles.n++) {
		struct str name = json_str(it.val);

		names[s->profiles.n] = (struct str){ arena_dup(s->arena, name, e), name.n };
		if (!names[s->profiles.n].p)
			return -1;
	}
	return 0;
}

struct asking_way {
	const struct op *op;
	int (*decode)(void *client, void *request, struct err *e);
	struct op_sink sink;
};

/* The last that may be done with k: the call may have ended when this returns. */
static void asking_start(struct asking *k, const struct asking_way *way)
{
	struct op_start s = { .agent = true,
			      .op = way->op,
			      .decode = way->decode,
			      .sink = &way->sink,
			      .client = k,
			      .arena = arena_new(CALL_MEMORY),
			      .label = "module" };
	struct hub_sandbox_info of;
	struct err e = ERR_INIT;

	if (!s.arena) {
		err_set(&e, ERR_LIMIT, "out of memory");
		asking_refuse(k, &e);
		return;
	}
	k->arenas[k->n_calls++] = s.arena;
	s.session = asking_sandbox(k, &of, &e);
	if (s.session && asking_profiles(&of.modules, &s, &e) == 0) {
		s.who = ops_owner(k->all->ops, of.owner);
		k->call = op_new(k->all->ops, &s, &e);
	}
	if (k->call)
		op_start(k->call);
	else
		asking_refuse(k, &e);
}

static void asking_on_fail(void *client, const struct err *err)
{
	struct asking *k = client;

	k->call = NULL;
	asking_refuse(k, err);
}

/* ---- module.list --------------------------------------------------------------------------- */

static int list_text(const struct modules_view *v, struct str modules, struct buf *to,
		     struct err *e)
{
	for (size_t i = 0; i < v->modules.n; i++) {
		struct str name = v->modules.p[i].module;

		if (modules_have(modules, name) &&
		    buf_addf(to, e, "%s%.*s", to->n ? "\n" : "", STR_ARG(name)) < 0)
			return -1;
	}
	return 0;
}

static int list_json(const struct modules_view *v, struct str modules, struct buf *to,
		     struct err *e)
{
	struct json_writer w = json_writer(to);

	json_write_object(&w);
	json_put_array(&w, "modules");
	for (size_t i = 0; i < v->modules.n; i++) {
		if (modules_have(modules, v->modules.p[i].module)) {
			char python[NAME_SERVER_MAX + 2];

			name_python(v->modules.p[i].module, python);
			json_write_object(&w);
			json_put_str(&w, "module", v->modules.p[i].module);
			json_put_text(&w, "python", python);
			json_write_object_end(&w);
		}
	}
	json_write_array_end(&w);
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

static void list_on_answer(void *client, const struct field_table *t, const void *result)
{
	struct asking *k = client;
	autobuf struct buf text = BUF_INIT(INLET_ANSWER_MAX);
	struct hub_sandbox_info of;
	struct err e = ERR_INIT;

	k->call = NULL;
	if (!asking_sandbox(k, &of, &e) ||
	    (k->q.text ? list_text(result, of.modules.names, &text, &e) < 0
		       : list_json(result, of.modules.names, &text, &e) < 0))
		asking_refuse(k, &e);
	else
		asking_say(k, buf_str(&text));
}

static const struct asking_way way_list = { &module_list_op,
					    decode_list,
					    { .answer = list_on_answer, .fail = asking_on_fail } };

/* ---- module.info --------------------------------------------------------------------------- */

static int info_json(const struct module_info *m, struct str declaration, struct buf *to,
		     struct err *e)
{
	struct json_writer w = json_writer(to);

	json_write_object(&w);
	json_put_str(&w, "module", m->view.module);
	json_put_array(&w, "functions");
	for (size_t i = 0; i < m->tools.n; i++) {
		const struct module_tool_view *t = &m->tools.p[i];

		if (!t->function.n)
			continue;
		json_write_object(&w);
		json_put_str(&w, "function", t->function);
		json_put_str(&w, "tool", t->name);
		json_put_str(&w, "description", t->description.p ? t->description : STR_LIT(""));
		json_write_object_end(&w);
	}
	json_write_array_end(&w);
	json_put_str(&w, "declaration", declaration);
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

static void info_on_answer(void *client, const struct field_table *t, const void *result)
{
	struct asking *k = client;
	autobuf struct buf declaration = BUF_INIT(INLET_ANSWER_MAX);
	autobuf struct buf json = BUF_INIT(INLET_ANSWER_MAX);
	struct err e = ERR_INIT;

	k->call = NULL;
	if (module_declare(result, declare_python, &declaration, &e) < 0 ||
	    (!k->q.text && info_json(result, buf_str(&declaration), &json, &e) < 0))
		asking_refuse(k, &e);
	else
		asking_say(k, buf_str(k->q.text ? &declaration : &json));
}

static const struct asking_way way_info = { &module_info_op,
					    decode_info,
					    { .answer = info_on_answer, .fail = asking_on_fail } };

/* It is connected: its tools are known now. */
static void test_on_answer(void *client, const struct field_table *t, const void *result)
{
	struct asking *k = client;

	k->call = NULL;
	if (k->gone)
		asking_close(k);
	else
		asking_start(k, &way_info);
}

static const struct asking_way way_test = { &module_test_op,
					    decode_test,
					    { .answer = test_on_answer, .fail = asking_on_fail } };

/* What is not known yet is learnt by connecting it, as an import of code does. */
static const struct asking_way *info_way(struct asking *k)
{
	struct upstream_info i = { .listed = true };
	struct upstream *u = NULL;
	struct err none;

	if (asking_find(k, &none) == 0)
		u = upstreams_find(ops_upstreams(k->all->ops), str_of(k->module), &none);
	if (u)
		upstream_info(u, &i);
	return i.listed ? &way_info : &way_test;
}

/* ---- module.call --------------------------------------------------------------------------- */

static void call_on_answer(void *client, const struct field_table *t, const void *result)
{
	struct asking *k = client;
	const struct module_result *r = result;
	struct err e = ERR_INIT;

	k->call = NULL;
	if (k->q.text ? inlet_say_text(&k->out, r->result.text, &e) < 0
		      : inlet_say(&k->out, INLET_RESULT, r->result.text, &e) < 0)
		asking_refuse(k, &e);
	else
		asking_send(k);
}

static const struct asking_way way_call = { &module_call_op,
					    decode_call,
					    { .answer = call_on_answer, .fail = asking_on_fail } };

/* ---- module.result ------------------------------------------------------------------------- */

/* Only what programs of this sandbox have called. */
static int decode_result(void *client, void *request, struct err *e)
{
	struct asking *k = client;
	AUTO(json_free) struct json_doc *doc = json_parse(k->q.arguments, NULL, e);
	struct module_result_request *q = request;

	if (!doc || field_decode(&module_result_request_table, json_root(doc), k->arena, q, e) < 0)
		return -1;
	q->result = (struct str){ arena_dup(k->arena, q->result, e), q->result.n };
	q->sandbox = str_of(k->sandbox);
	return q->result.p ? 0 : -1;
}

static void result_on_answer(void *client, const struct field_table *t, const void *result)
{
	struct asking *k = client;
	const struct module_result_part *p = result;
	autobuf struct buf b = BUF_INIT(INLET_ANSWER_MAX);
	struct err e = ERR_INIT;

	k->call = NULL;
	if (k->q.text)
		asking_say(k, p->text);
	else if (module_result_write(&b, p, &e) < 0)
		asking_refuse(k, &e);
	else
		asking_say(k, buf_str(&b));
}

static const struct asking_way way_result = {
	&module_result_op, decode_result, { .answer = result_on_answer, .fail = asking_on_fail }
};

static bool asking_wants_result(const struct asking *k)
{
	return k->q.what == INLET_CALL && str_is(k->q.module, MODULE_OWN) &&
	       str_is(k->q.tool, MODULE_OWN_RESULT);
}

/* ---- a connection -------------------------------------------------------------------------- */

static void asking_take(struct asking *k)
{
	struct err e = ERR_INIT;
	int got = inlet_read(buf_str(&k->in), k->arena, &k->q, &e);

	if (got == 0)
		return;
	k->asked = true;
	uv_timer_stop(&k->timer);
	if (got < 0)
		asking_refuse(k, &e);
	else
		asking_start(k, asking_wants_result(k)	  ? &way_result
				: k->q.what == INLET_LIST ? &way_list
				: k->q.what == INLET_INFO ? info_way(k)
							  : &way_call);
}

static void asking_on_room(uv_handle_t *h, size_t wanted, uv_buf_t *ret)
{
	struct asking *k = h->data;

	*ret = uv_buf_init(k->piece, sizeof(k->piece));
}

/* Behind its request a program has nothing to say; and its end takes the call along. */
static void asking_on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *piece)
{
	struct asking *k = stream->data;
	struct err e;

	if (n == 0)
		return;
	if (n < 0 || k->asked || buf_add(&k->in, k->piece, (size_t)n, &e) < 0) {
		uv_read_stop(stream);
		asking_leave(k);
	} else {
		asking_take(k);
	}
}

static bool has_room(const struct inlets *all, uint64_t seq)
{
	unsigned n = 0;

	for (const struct asking *k = all->first; k; k = k->next)
		n += k->seq == seq;
	return !all->on_closed && all->n < CONNECTIONS_MAX && n < INLET_TOGETHER_MAX;
}

static struct asking *asking_new(struct inlets *all, uint64_t seq, struct str sandbox)
{
	struct asking *k = has_room(all, seq) ? calloc(1, sizeof(*k)) : NULL;

	if (k)
		k->arena = arena_new(REQUEST_MEMORY);
	if (!k || !k->arena || uv_tcp_init(all->loop, &k->tcp) < 0) {
		arena_free(k ? k->arena : NULL);
		free(k);
		return NULL;
	}
	uv_timer_init(all->loop, &k->timer);
	k->tcp.data = k->timer.data = k->write.data = k;
	k->handles = 2;
	k->all = all;
	k->seq = seq;
	snprintf(k->sandbox, sizeof(k->sandbox), "%.*s", STR_ARG(sandbox));
	k->in = BUF_INIT(INLET_HEAD + INLET_REQUEST_MAX + PIECE);
	k->out = BUF_INIT(INLET_HEAD + 1 + INLET_ANSWER_MAX);
	k->next = all->first;
	all->first = k;
	all->n++;
	return k;
}

static void turned_away(uv_handle_t *h)
{
	free(h);
}

/* One that is not accepted would stay in the backlog, and no other would be heard of. */
static void turn_away(struct inlets *all, uv_stream_t *listener)
{
	uv_tcp_t *tcp = malloc(sizeof(*tcp));

	if (!tcp || uv_tcp_init(all->loop, tcp) < 0) {
		free(tcp);
		return;
	}
	if (uv_accept(listener, (uv_stream_t *)tcp) == 0)
		uv_tcp_close_reset(tcp, turned_away);
	else
		uv_close((uv_handle_t *)tcp, turned_away);
}

static void inlets_on_connection(void *data, struct hub_sandbox *l, uv_stream_t *listener)
{
	struct inlets *all = data;
	struct hub_sandbox_info i;
	struct asking *k;

	hub_sandbox_info(l, &i);
	k = asking_new(all, i.seq, i.id);
	if (!k) {
		turn_away(all, listener);
		return;
	}
	uv_timer_start(&k->timer, asking_on_late, TAKES_MS, 0);
	if (uv_accept(listener, (uv_stream_t *)&k->tcp) < 0 || uv_tcp_nodelay(&k->tcp, 1) < 0 ||
	    uv_read_start((uv_stream_t *)&k->tcp, asking_on_room, asking_on_read) < 0)
		asking_close(k);
}

/* ---- all of them --------------------------------------------------------------------------- */

struct inlets *inlets_new(struct ops *ops, struct err *e)
{
	struct inlets *all = calloc(1, sizeof(*all));

	if (!all)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	all->ops = ops;
	all->loop = hub_loop(ops_hub(ops));
	all->sandboxes = hub_sandboxes(ops_hub(ops));
	all->hub =
		(struct hub_inlets){ { INLET_IP, INLET_PORT, false }, inlets_on_connection, all };
	uv_timer_init(all->loop, &all->timer);
	all->timer.data = all;
	hub_sandboxes_inlets_to(all->sandboxes, &all->hub);
	return all;
}

void inlets_close(struct inlets *all, void (*on_closed)(void *arg), void *arg)
{
	struct asking *next;

	hub_sandboxes_inlets_to(all->sandboxes, NULL);
	all->on_closed = on_closed;
	all->arg = arg;
	for (struct asking *k = all->first; k; k = next) {
		next = k->next; /* they are freed later, from the loop */
		asking_leave(k);
	}
	inlets_try_close(all);
}
