/* Sends requests to the server, one at a time, and prints messages until it answers. */
#include <stdio.h>

#include "cli/peer/internal.h"
#include "cli/common/safe.h"

enum { TASK_MS = 600000 };

static void request_on_done(void *owner, const struct mcp_answer *a)
{
	struct peer *p = owner;

	p->pending = NULL;
	if (p->ending)
		return;
	peer_err(p);
	if (a->result)
		p->then(p, a->result);
	else
		peer_fail_answer(p, a);
}

static void on_listed(void *owner, const struct mcp_listed *l)
{
	struct peer *p = owner;

	p->pending = NULL;
	if (p->ending)
		return;
	if (l->dropped > 0)
		fprintf(peer_err(p),
			"holt mcp: %zu of the list %s left out: without a name, or with an "
			"x-mcp-header that is not as it must be\n",
			l->dropped, l->dropped > 1 ? "are" : "is");
	if (!l->failed)
		p->then_list(p, l);
	else
		peer_fail_answer(p, l->failed);
}

static void on_progress(void *owner, const struct mcp_progress *g)
{
	struct peer *p = owner;
	bool terminal = isatty(STDERR_FILENO);

	if (p->ending || (!terminal && !p->o->progress))
		return;
	fprintf(stderr, terminal ? "\r\033[K" : "");
	if (g->total > 0)
		fprintf(stderr, "%.15g of %.15g", g->progress, g->total);
	else
		fprintf(stderr, "%.15g", g->progress);
	fputs(g->message.n ? ": " : "", stderr);
	safe_short(stderr, g->message, 200);
	p->line_open = terminal;
	if (!terminal)
		fputc('\n', stderr);
}

static void on_task(void *owner, struct str id)
{
	struct peer *p = owner;

	if (p->ending || (!isatty(STDERR_FILENO) && !p->o->progress))
		return;
	fputs("It has become the task ", peer_err(p));
	safe_short(stderr, id, 200);
	fputc('\n', stderr);
}

static struct mcp_request_spec spec_of(struct peer *p)
{
	return (struct mcp_request_spec){
		.on_progress = isatty(STDERR_FILENO) || p->o->progress ? on_progress : NULL,
		.log_level = (int)p->o->log,
		.on_task = on_task,
		.on_done = request_on_done,
		.owner = p,
	};
}

/* The request was invalid; the server has not seen it. */
static void started(struct peer *p, struct mcp_pending *pending, const struct err *e)
{
	p->pending = pending;
	if (!pending)
		peer_fail(p, e->code == ERR_INVALID ? PEER_USAGE : peer_meaning(p, e), e);
}

void peer_request(struct peer *p, const char *method, struct str params, peer_then *then)
{
	struct mcp_request_spec s = spec_of(p);
	struct err e = ERR_INIT;

	s.method = method;
	s.params = params;
	p->then = then;
	started(p, mcp_client_request(peer_client(p), &s, &e), &e);
}

void peer_call(struct peer *p, const char *tool, struct str arguments, bool task, peer_then *then)
{
	struct mcp_request_spec s = spec_of(p);
	struct err e = ERR_INIT;

	s.task_ttl_ms = task ? TASK_MS : 0;
	p->then = then;
	started(p, mcp_client_call(peer_client(p), tool, arguments, &s, &e), &e);
}

void peer_tools(struct peer *p, void (*then)(struct peer *p, const struct mcp_listed *l))
{
	const struct json_val *can = json_get(mcp_client_about(peer_client(p)), "capabilities");
	struct err e = ERR_INIT;

	p->then_list = then;
	/* A server that does not announce tools is not asked for them. */
	if (json_get(can, "tools"))
		started(p, mcp_client_list(peer_client(p), "tools", on_listed, p, &e), &e);
	else
		then(p, &(struct mcp_listed){ .n = 0 });
}
