/*
 * holt-egress: the only way out of a sandbox's network.
 *
 * A sandbox has a network namespace with a loopback device and nothing else. For each host and port
 * that it is granted, the warden makes a listening socket inside, at a loopback address that stands
 * for the host, and the hub hands it to this process, which has no privileges. So what is not
 * granted does not exist in there: no route, no address, no name.
 *
 *	sandbox					this process			the world
 *	program --> 127.1.0.2:443 --> listener.c --> flow.c --> dial.c --> pypi.org:443
 *		--> 127.0.0.1:3128 -----------------> flow_ask.c
 *		--> 127.0.0.1:53 --> stub.c, wild.c	resolve.c --> resolver
 *
 * A connection (flow.h) that comes in at such a socket is one to the name that the address stands
 * for, and to its port. At the explicit proxy the client says what it wants (HTTP or SOCKS), and
 * the rules are looked up. Then at the same time
 *
 *  - dial.c resolves the name, drops forbidden addresses and connects to one of the others. The
 *    address that is checked is the one that is dialled, so an answer that changes later changes
 *    nothing.
 *  - flow_look.c looks at the first bytes: the server name of TLS, in the first ClientHello and in
 *    the one after a HelloRetryRequest; or the host of each HTTP request (flow_http.c), where all
 *    is refused that two parsers could read differently. At ports 80 and 443 nothing else passes.
 *    At others the bytes of other protocols do.
 *
 * Hosts that secrets are bound to (vault.c) are spoken to in flow_bound.c: TLS ends here on both
 * sides, placeholders in requests become values, and values in answers placeholders.
 *
 * What has passed is relayed (relay.c) by splice(2), so it is not copied to this process. What is
 * denied is reset at once, or told why in its own protocol (flow_deny.c), and the hub hears of it.
 *
 * Names are resolved inside by stub.c from the grants alone; no query is ever forwarded. For names
 * of a wildcard wild.c asks the hub for an address and sockets when they are first asked for.
 *
 * All is bounded for each sandbox: flows, new flows and queries in a second, names, bytes of heads,
 * times. Who exceeds that is refused with a reason; others don't notice. Events for the hub are
 * dropped and counted if it does not read. The process ends with the hub, and keeps nothing: a new
 * one is told all again.
 */
#include "net/egress/internal.h"

#include <stdio.h>

#include "base/log.h"
#include "base/version.h"
#include "net/egress/own.h"

enum { SWEEP_MS = 500, REFILL_MS = 20 };

static void on_sweep(uv_timer_t *timer)
{
	struct egress *g = timer->data;
	uint64_t now = uv_now(&g->loop);
	bool any = g->n_flows > 0;

	for (struct sandbox *s = g->sandboxes; s; s = s->next) {
		for (struct flow *f = s->flows, *next; f; f = next) {
			next = flow_next(f);
			flow_sweep(f, now);
		}
		if (wild_sweep(s, now))
			any = true;
	}
	if (!any)
		uv_timer_stop(timer);
}

void egress_wake(struct egress *g)
{
	if (!uv_is_active((uv_handle_t *)&g->sweep))
		uv_timer_start(&g->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
}

static void on_refill(uv_timer_t *timer)
{
	struct egress *g = timer->data;

	for (struct sandbox *s = g->sandboxes; s; s = s->next) {
		if (!s->paused)
			continue;
		s->paused = false;
		for (struct flow *f = s->flows, *next; f; f = next) {
			next = flow_next(f);
			flow_refill(f);
		}
	}
}

void egress_pause(struct egress *g)
{
	if (!uv_is_active((uv_handle_t *)&g->refill))
		uv_timer_start(&g->refill, on_refill, REFILL_MS, 0);
}

static int main_start(struct egress *g, struct err *e)
{
	if (confine_start(e) < 0)
		return -1;
	if (uv_loop_init(&g->loop) < 0 || uv_timer_init(&g->loop, &g->sweep) < 0 ||
	    uv_timer_init(&g->loop, &g->refill) < 0)
		return err_set(e, ERR_IO, "start the loop");
	g->sweep.data = g->refill.data = g;
	g->own = own_open(e);
	if (g->own < 0)
		return -1;
	g->spare = dup(0);
	g->link = link_new(g, NW_FD, e);
	return g->link ? 0 : -1;
}

int main(int argc, char **argv)
{
	static struct egress g = { .own = -1, .spare = -1 };
	struct err e = ERR_INIT;

	if (VERSION_TOLD("holt-egress", argc, argv))
		return 0;
	log_init("holt-egress");
	if (main_start(&g, &e) < 0) {
		log_error("%s", e.msg);
		return 1;
	}
	return uv_run(&g.loop, UV_RUN_DEFAULT);
}
