/* A person is asked about a request of a sandbox's program, as about a call: where a rule of its
 * network grant wants that. The request waits in the egress proxy. */
#include <stdlib.h>

#include "ask/approval.h"
#include "base/sha256.h"
#include "guard/gate/internal.h"
#include "hub/core/hub.h"
#include "json/document/put.h"

enum { ARGUMENTS_MAX = 16 << 10 };

struct asked {
	struct asked *next;
	struct gate *gate;
	uint64_t id; /* of the hub's question */
	struct approval_wait wait;
};

struct gate_network {
	struct hub_asker asker;
	struct asked *first;
};

static void asked_free(struct asked *a)
{
	struct asked **at = &a->gate->network->first;

	while (*at != a)
		at = &(*at)->next;
	*at = a->next;
	free(a);
}

static void asked_on_end(void *data, const struct err *e)
{
	struct asked *a = data;
	struct hub_sandboxes *all = hub_sandboxes(a->gate->hub);
	uint64_t id = a->id;

	asked_free(a);
	hub_sandboxes_answer(all, id, !e, e ? e->msg : "");
}

/* The query is not what rules are about, but it is what the person allows. */
static int asked_arguments(const struct hub_question *q, struct buf *to, struct err *e)
{
	struct json_writer w = json_writer(to);
	const char *query = memchr(q->target.p, '?', q->target.n);
	size_t n = query ? (size_t)(query - q->target.p) : q->target.n;

	json_write_object(&w);
	json_put_str(&w, "sandbox", q->sandbox);
	json_put_str(&w, "method", q->method);
	json_put_str(&w, "host", q->host);
	json_put_uint(&w, "port", q->port);
	json_put_str(&w, "path", (struct str){ q->target.p, n });
	if (query) {
		json_put_str(&w, "query", (struct str){ query + 1, q->target.n - n - 1 });
	}
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

static int asked_begin(struct asked *a, const struct hub_question *q, struct err *e)
{
	autobuf struct buf b = BUF_INIT(ARGUMENTS_MAX);
	const struct approval *found;
	char digest[SHA256_HEX];
	struct approval_ask ask = {
		.principal = q->owner,
		.action = STR_LIT("network.request"),
		.target = q->sandbox,
		.sandbox = q->seq,
		.rule = q->rule,
	};
	struct arena arena;
	int rc;

	if (!hub_store(a->gate->hub))
		return err_set(e, ERR_DENIED, "nobody can be asked: the hub has no data folder");
	if (asked_arguments(q, &b, e) < 0)
		return -1;
	sha256_hex(buf_str(&b), digest);
	ask.digest = str_of(digest);
	arena_init(&arena, 4 * ARGUMENTS_MAX);
	ask.arguments = gate_redact_asked(a->gate->redactor, buf_str(&b), &arena, &ask.hides);
	rc = approval_ask(a->gate->guard.approvals, &ask, &a->wait, &found, e);
	arena_fini(&arena);
	return rc;
}

static void network_ask(void *data, const struct hub_question *q)
{
	struct gate *g = data;
	struct hub_sandboxes *all = hub_sandboxes(g->hub);
	struct asked *a = calloc(1, sizeof(*a));
	struct err e = ERR_INIT;
	int rc;

	if (!a) {
		hub_sandboxes_answer(all, q->id, false, "out of memory");
		return;
	}
	*a = (struct asked){ .next = g->network->first,
			     .gate = g,
			     .id = q->id,
			     .wait = { .on_end = asked_on_end, .data = a } };
	g->network->first = a;
	rc = asked_begin(a, q, &e);
	if (rc == 0)
		return;
	asked_free(a);
	hub_sandboxes_answer(all, q->id, rc > 0, e.msg);
}

/* A program that gives up may ask for the same again, and finds the answer. */
static void network_leave(void *data, uint64_t id, bool ended)
{
	struct gate *g = data;
	struct asked *a = g->network->first;

	while (a && a->id != id)
		a = a->next;
	if (!a)
		return;
	approval_leave(&a->wait, !ended);
	asked_free(a);
}

/* Withdraws a request that nobody waits for any more. */
static void network_gone(void *data, uint64_t seq)
{
	const struct gate *g = data;

	approvals_end_of(g->guard.approvals, seq);
}

/* Withdraws requests of sandboxes that ended while no hub ran. */
static void network_sweep(struct gate *g)
{
	struct hub_sandboxes *all = hub_sandboxes(g->hub);
	const struct approval *a = NULL;
	uint64_t seq = 0;

	while ((a = approval_after(g->guard.approvals, seq))) {
		seq = a->ask.seq;
		if (a->row.sandbox && !hub_sandboxes_by_seq(all, a->row.sandbox))
			approvals_end_of(g->guard.approvals, a->row.sandbox);
	}
}

int gate_network_open(struct gate *g, struct err *e)
{
	if (!g->approval)
		return 0;
	g->network = calloc(1, sizeof(*g->network));
	if (!g->network)
		return err_set(e, ERR_LIMIT, "out of memory");
	g->network->asker = (struct hub_asker){ network_ask, network_leave, network_gone, g };
	return 0;
}

void gate_network_listen(struct gate *g)
{
	if (!g->network)
		return;
	network_sweep(g);
	hub_sandboxes_ask_by(hub_sandboxes(g->hub), &g->network->asker);
}

void gate_network_close(struct gate *g)
{
	while (g->network && g->network->first) {
		approval_leave(&g->network->first->wait, true);
		asked_free(g->network->first);
	}
	free(take_ptr(g->network));
}
