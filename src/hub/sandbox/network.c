/*
 * Network grants. The registry has them as text (hub/net), so a new hub serves them again. A
 * sandbox that is made with a grant is there for its client when all of it can be reached.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "hub/sandbox/internal.h"
#include "json/document/put.h"

enum { EVENTS_PER_S = 50, EVENT_MAX = 2048 };

void hub_sandboxes_serve_networks(struct hub_sandboxes *all, struct nets *nets)
{
	all->nets = nets;
}

/* ---- serving ------------------------------------------------------------------------------- */

static int network_have(struct hub_sandbox *l, struct err *e)
{
	if (!l->net)
		l->net = net_new(l->all->nets, l->box, l, e);
	return l->net ? 0 : -1;
}

int network_needs_authority(struct hub_sandboxes *all, struct str text, bool *ret, struct err *e)
{
	autogrant struct net_grant g = { .n = 0 };
	const struct net_rule *r;

	/* with certificates of the operator's, for a list of trusted ones of its own */
	*ret = text.n && all->nets && nets_ca(all->nets).n;
	if (*ret || !text.n || !memchr(text.p, '=', text.n)) /* as most have no HTTP rules */
		return 0;
	if (!all->nets)
		return err_set(e, ERR_UNSUPPORTED, "this hub grants no network");
	if (net_grant_init(&g, e) < 0 || net_grant_parse(all->nets, text, &g, e) < 0)
		return -1;
	*ret = net_grant_ends_tls(&g, NET_TLS_MAYBE, &r);
	return 0;
}

static int check_authority(const struct hub_sandbox *l, const struct net_grant *g, struct err *e)
{
	const struct net_rule *r;
	char text[NET_RULE_TEXT];

	if (l->bound || !net_grant_ends_tls(g, NET_TLS_SURE, &r))
		return 0;
	net_rule_print(r, text);
	return err_set(
		e, ERR_UNSUPPORTED,
		"network: for HTTP rules of %.100s TLS ends in the proxy, by an authority that "
		"a sandbox gets when it is made with such rules: make a new one, or grant port "
		"80",
		text);
}

static int network_grant(struct hub_sandbox *l, struct str text, net_cb on_done, void *arg,
			 struct err *e)
{
	autogrant struct net_grant g = { .n = 0 };

	if (net_grant_init(&g, e) < 0 || net_grant_parse(l->all->nets, text, &g, e) < 0 ||
	    check_authority(l, &g, e) < 0 || network_have(l, e) < 0)
		return -1;
	net_grant_start(l->net, &g, on_done, arg);
	return 0;
}

/* ---- secrets ------------------------------------------------------------------------------- */

/* Its values are read, and then handed to the proxy before anything can be reached. */
struct binding {
	struct hub_sandboxes *all;
	struct hub_sandbox *hs; /* a reference */
	unsigned turn; /* hs->binding, if no later read has begun */
	bool strict; /* all must be there */
	net_cb on_done; /* NULL: they change, and nobody waits */
	void *arg;
};

/* Those that can't be had are left out. id: of the sandbox, for the log. */
static int bind_net(struct net *net, const struct bound *b, const struct hub_secret *p, bool strict,
		    const char *id, struct err *e)
{
	struct net_secret to[BOUND_MAX * 2];
	struct nw_exchange exchanges[NW_EXCHANGES_MAX];
	struct net_secrets s = { .ca = str_of(b->ca ? b->ca : ""),
				 .p = to,
				 .exchanges = exchanges };

	for (size_t i = 0; b->key && i < b->n; i++) {
		const struct bound_secret *of = &b->p[i];
		bool begins = of->begins && p[i].n_exchanges > 0;

		if (p[i].err.code && strict && !begins) {
			*e = p[i].err;
			return -1;
		}
		if (p[i].err.code && !begins) {
			log_warn("sandbox %s has no secret %.*s: %s", id, STR_ARG(of->secret),
				 p[i].err.msg);
			continue;
		}
		if (s.n + 1 + p[i].n_tokens > NW_SECRETS_MAX ||
		    s.n_exchanges + p[i].n_exchanges > NW_EXCHANGES_MAX)
			return err_set(e, ERR_LIMIT,
				       "at most %d secrets with hosts, where each token of a "
				       "log-in is one",
				       NW_SECRETS_MAX);
		if (p[i].value.n > 0)
			to[s.n++] = (struct net_secret){ of->secret,  of->placeholder, p[i].value,
							 p[i].trust,  p[i].hosts,      p[i].n_hosts,
							 NW_IN_FIELDS };
		for (size_t k = 0; k < p[i].n_tokens; k++)
			to[s.n++] = p[i].tokens[k];
		for (size_t k = 0; k < p[i].n_exchanges; k++) {
			exchanges[s.n_exchanges] = p[i].exchanges[k];
			exchanges[s.n_exchanges++].begins = of->begins;
		}
	}
	if (b->key)
		s.ca_key = secret_expose(b->key, "handed to the egress proxy");
	else
		s.ca = STR_NONE;
	return net_bind(net, &s, e);
}

static int bind_values(struct hub_sandbox *l, const struct hub_secret *p, bool strict,
		       struct err *e)
{
	return network_have(l, e) < 0 ? -1 : bind_net(l->net, l->bound, p, strict, l->id, e);
}

static int binding_go_on(const struct binding *b, const struct hub_secret *p, struct err *e)
{
	struct hub_sandbox *l = b->hs;

	if (!l->box || l->ending || !l->bound)
		return err_set(e, ERR_SANDBOX_NOT_FOUND, "sandbox %s has ended", l->id);
	if (b->turn == l->binding && bind_values(l, p, b->strict, e) < 0)
		return -1;
	return b->on_done ? network_grant(l, str_of(l->network), b->on_done, b->arg, e) : 0;
}

static void binding_on_read(void *arg, const struct hub_secret *p)
{
	struct binding *b = arg;
	struct hub_sandboxes *all = b->all;
	struct err e = ERR_INIT;

	if (binding_go_on(b, p, &e) < 0) {
		if (b->on_done)
			b->on_done(b->arg, &e);
		else
			log_warn("sandbox %s keeps its secrets: %s", b->hs->id, e.msg);
	}
	hub_sandbox_unref(b->hs);
	free(b);
	all->later--;
	hub_sandboxes_try_close(all);
}

static void binding_start(struct hub_sandbox *l, bool strict, net_cb on_done, void *arg)
{
	struct binding *b = calloc(1, sizeof(*b));
	struct str names[BOUND_MAX];

	if (!b)
		abort(); /* out of memory: no callback could report it */
	*b = (struct binding){ l->all, hub_sandbox_ref(l), ++l->binding, strict, on_done, arg };
	for (size_t i = 0; i < l->bound->n; i++)
		names[i] = l->bound->p[i].secret;
	l->all->later++;
	l->all->secrets->read_start(l->all->secrets->data, l->bound->who, l->bound->by_operator,
				    names, l->bound->n, binding_on_read, b);
}

/* One that is made or adopted right now gets what its own read finds, or the change. */
void hub_sandboxes_secrets_changed(struct hub_sandboxes *all)
{
	for (struct hub_sandbox *l = all->oldest; l && all->secrets; l = l->newer) {
		if (l->bound && l->bound->n && l->box && !l->ending && l->binding)
			binding_start(l, false, NULL, NULL);
	}
}

void hub_sandboxes_secrets_from(struct hub_sandboxes *all, const struct hub_secrets *from)
{
	all->secrets = from;
	for (struct hub_sandbox *l = all->oldest; l; l = l->newer) {
		if (l->bound && l->bound->n && l->box)
			network_adopt(l);
	}
}

/* ---- of programs that the operator's file names --------------------------------------------- */

struct unlisted {
	const struct bound *bound; /* borrowed, as all up to arg: the caller waits */
	struct net *net;
	const struct net_grant *reach;
	void (*on_bound)(void *arg, const struct err *err);
	void *arg;
	struct hub_sandboxes *all;
};

struct bound *hub_sandboxes_bind(struct hub_sandboxes *all, const struct bound_spec *s,
				 struct err *e)
{
	if (!all->jobs.folder || !all->nets)
		return err_set(e, ERR_UNSUPPORTED, "this hub grants no network"), NULL;
	return bound_new(all->jobs.folder, all->store != NULL, s, nets_ca(all->nets), e);
}

static bool unlisted_reaches(const struct net_grant *g, const struct hub_secret *p)
{
	for (size_t i = 0; i < g->n; i++) {
		for (size_t k = 0; k < p->n_hosts; k++) {
			if (net_rule_meets(&g->rules[i], &p->hosts[k]))
				return true;
		}
	}
	return false;
}

static int unlisted_bind(const struct unlisted *u, const struct hub_secret *p, struct err *e)
{
	char host[NET_RULE_TEXT];

	for (size_t i = 0; i < u->bound->n; i++) {
		if (p[i].err.code || unlisted_reaches(u->reach, &p[i]))
			continue;
		net_rule_print(&p[i].hosts[0], host);
		return err_set(e, ERR_INVALID,
			       "the secret %.*s is for requests to %.100s%s, which the sandbox "
			       "can't reach: add it to sandbox.network",
			       STR_ARG(u->bound->p[i].secret), host,
			       p[i].n_hosts > 1 ? " and others" : "");
	}
	return bind_net(u->net, u->bound, p, true, "", e);
}

static void unlisted_on_read(void *arg, const struct hub_secret *p)
{
	struct unlisted *u = arg;
	struct err e = ERR_INIT;

	u->all->later--;
	u->on_bound(u->arg, unlisted_bind(u, p, &e) < 0 ? &e : NULL);
	hub_sandboxes_try_close(u->all);
	free(u);
}

int hub_sandboxes_bind_values(struct hub_sandboxes *all, const struct bound *b, struct net *to,
			      const struct net_grant *reach,
			      void (*on_bound)(void *arg, const struct err *err), void *arg,
			      struct err *e)
{
	struct str names[BOUND_MAX];
	struct unlisted *u;

	if (!all->secrets)
		return err_set(e, ERR_UNSUPPORTED, "there are no secrets here");
	u = malloc(sizeof(*u));
	if (!u)
		return err_set(e, ERR_LIMIT, "out of memory");
	*u = (struct unlisted){ b, to, reach, on_bound, arg, all };
	for (size_t i = 0; i < b->n; i++)
		names[i] = b->p[i].secret;
	all->later++;
	all->secrets->read_start(all->secrets->data, STR_NONE, true, names, b->n, unlisted_on_read,
				 u);
	return 0;
}

/* ---- all of it ------------------------------------------------------------------------------ */

static bool network_start(struct hub_sandbox *l, bool strict, net_cb on_done, void *arg,
			  struct err *e)
{
	if (!l->network)
		return false;
	if (!l->all->nets) {
		err_set(e, ERR_UNSUPPORTED, "this hub grants no network");
	} else if (!l->bound || !l->bound->n) {
		return (!l->bound || bind_values(l, NULL, strict, e) == 0) &&
		       network_grant(l, str_of(l->network), on_done, arg, e) == 0;
	} else if (!l->all->secrets) {
		err_set(e, ERR_UNSUPPORTED, "there are no secrets here");
	} else {
		binding_start(l, strict, on_done, arg);
		return true;
	}
	return false;
}

bool network_serve(struct hub_sandbox *l, net_cb on_done, void *arg, struct err *e)
{
	return network_start(l, true, on_done, arg, e);
}

static void on_served(void *arg, const struct err *err)
{
	struct hub_sandbox *l = arg;

	if (err)
		log_warn("sandbox %s has no network: %s", l->id, err->msg);
	hub_sandbox_unref(l);
}

void network_adopt(struct hub_sandbox *l)
{
	struct err e = ERR_INIT;

	if (l->bound && l->bound->n && !l->all->secrets)
		return; /* until hub_sandboxes_secrets_from() */
	hub_sandbox_ref(l);
	if (network_start(l, false, on_served, l, &e))
		return;
	on_served(l, e.code ? &e : NULL);
}

/* ---- a change ------------------------------------------------------------------------------ */

struct change {
	struct hub_sandbox *hs; /* a reference */
	char *text; /* owned: what was granted before; NULL: nothing */
	hub_sandbox_cb on_done;
	void *arg;
};

static void change_free(struct change *c)
{
	hub_sandbox_unref(c->hs);
	free(c->text);
	free(c);
}

static void change_swap(struct change *c)
{
	char *was = c->hs->network;

	c->hs->network = c->text;
	c->text = was;
}

static int change_save(const struct change *c, struct err *e)
{
	return hub_sandbox_save(c->hs, "network", str_of(c->hs->network), e);
}

/* e: why. */
static void change_undo(struct change *c, struct err *e)
{
	struct err failed = ERR_INIT;

	change_swap(c);
	if (!hub_sandbox_is_gone(c->hs) && change_save(c, &failed) < 0)
		err_unsure(e);
}

static void on_changed(void *arg, const struct err *err)
{
	struct change *c = arg;
	struct hub_sandbox *l = c->hs;
	struct err e = err ? *err : (struct err)ERR_INIT;

	l->network_revision++;
	l->network_changes = false;
	if (err) {
		change_undo(c, &e);
		err = &e;
	}
	c->on_done(c->arg, err ? NULL : l, err);
	change_free(c);
}

static int change_start(struct change *c, struct str text, uint64_t revision, struct err *e)
{
	struct hub_sandbox *l = c->hs;

	if (!l->all->nets)
		return err_set(e, ERR_UNSUPPORTED, "this hub grants no network");
	if (l->state != SANDBOX_PAUSED && hub_sandbox_check_runs(l, e) < 0)
		return -1;
	if (revision && revision != l->network_revision)
		return err_set(e, ERR_CONFLICT, "what sandbox %s may reach was changed meanwhile",
			       l->id);
	if (l->network_changes)
		return err_set(e, ERR_CONFLICT, "what sandbox %s may reach is being changed",
			       l->id);
	if (text.n && !(c->text = strndup(text.p, text.n)))
		return err_set(e, ERR_LIMIT, "out of memory");
	/* Stored before anything can be reached, or ends: a registry without room refuses it. */
	change_swap(c);
	if (change_save(c, e) < 0) {
		change_swap(c);
		return -1;
	}
	if (network_grant(l, text, on_changed, c, e) < 0) {
		change_undo(c, e);
		return -1;
	}
	l->network_revision++;
	l->network_changes = true;
	return 0;
}

void hub_sandbox_set_network_start(struct hub_sandbox *l, struct str text, uint64_t revision,
				   hub_sandbox_cb on_done, void *arg)
{
	struct change *c = calloc(1, sizeof(*c));
	struct err e = ERR_INIT;

	if (!c)
		abort(); /* out of memory: no callback could report it */
	*c = (struct change){ hub_sandbox_ref(l), NULL, on_done, arg };
	if (change_start(c, text, revision, &e) == 0)
		return;
	hub_sandbox_later(l->all, l, on_done, arg, &e);
	change_free(c);
}

/* ---- flows --------------------------------------------------------------------------------- */

static void flow_text_member(struct json_writer *w, const char *name, const char *text)
{
	if (!text[0])
		return;
	json_put_str(w, name, str_of(text));
}

static int flow_text(const struct nw_flow *f, uint64_t lost, struct buf *to, struct err *e)
{
	struct json_writer w = json_writer(to);
	char addr[NET_ADDR_TEXT];

	json_write_object(&w);
	json_put_str(&w, "host", str_of(f->host));
	json_put_uint(&w, "port", f->port);
	if (f->addr.family) {
		net_addr_print(&f->addr, addr);
		json_put_str(&w, "address", str_of(addr));
	}
	if (f->reason != NW_REASON_NONE)
		json_put_str(&w, "reason", str_of(nw_reason_name(f->reason)));
	flow_text_member(&w, "secret", f->secret);
	flow_text_member(&w, "method", f->method);
	flow_text_member(&w, "path", f->path);
	flow_text_member(&w, "rule", f->http);
	if (f->what == NW_FLOW_CLOSED) {
		json_put_uint(&w, "bytes_sent", f->up);
		json_put_uint(&w, "bytes_received", f->down);
		json_put_uint(&w, "ms", f->ms);
	}
	if (lost)
		json_put_uint(&w, "events_left_out", lost);
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

/* A program that is denied again and again must not fill the registry. */
static bool may_tell(struct hub_sandbox *l)
{
	uint64_t now = clock_ms();

	if (now - l->flows_since_ms >= 1000) {
		l->flows_since_ms = now;
		l->flows_told = 0;
	}
	return l->flows_told++ < EVENTS_PER_S;
}

void hub_sandboxes_tell_flows(struct hub_sandboxes *all,
			      void (*on_flow)(void *data, const struct hub_flow *f), void *data)
{
	all->on_flow = on_flow;
	all->on_flow_data = data;
}

void hub_sandboxes_tell_denied(struct hub_sandboxes *all, struct str module, struct str detail)
{
	if (all->on_flow)
		all->on_flow(all->on_flow_data, &(struct hub_flow){ .kind = "network.denied",
								    .sandbox = module,
								    .owner = STR_LIT("local"),
								    .detail = detail,
								    .denied = true });
}

static void tell_flow(struct hub_sandbox *l, const char *kind, const struct nw_flow *f,
		      struct str detail)
{
	struct hub_sandbox_info i;

	if (!l->all->on_flow)
		return;
	hub_sandbox_info(l, &i);
	l->all->on_flow(l->all->on_flow_data, &(struct hub_flow){
						      .kind = kind,
						      .sandbox = i.id,
						      .owner = i.owner,
						      .detail = detail,
						      .denied = f->what == NW_FLOW_DENIED,
						      .failed = f->what == NW_FLOW_FAILED,
						      .ms = f->ms,
						      .bytes = f->up + f->down,
					      });
}

void hub_sandboxes_on_flow(void *sandboxes, void *of, const struct nw_flow *f)
{
	static const char *const kinds[] = {
		[NW_FLOW_CLOSED] = "network.flow",
		[NW_FLOW_DENIED] = "network.denied",
		[NW_FLOW_FAILED] = "network.failed",
		[NW_FLOW_SECRET] = "network.secret",
		[NW_FLOW_PLACEHOLDER] = "network.placeholder",
	};
	struct hub_sandbox *l = of;
	autobuf struct buf text = BUF_INIT(EVENT_MAX);
	struct err e = ERR_INIT;

	if (!l) /* of a module */
		return;
	l->network_counts.opened += f->what == NW_FLOW_OPENED;
	l->network_counts.denied += f->what == NW_FLOW_DENIED;
	l->network_counts.failed += f->what == NW_FLOW_FAILED;
	l->network_counts.sent += f->new_up;
	l->network_counts.received += f->new_down;
	budget_sent(l, f->new_up);
	l->flows_lost += f->lost;
	if (f->what >= ARRAY_LEN(kinds) || !kinds[f->what])
		return;
	if (!may_tell(l)) {
		l->flows_lost++;
		return;
	}
	if (flow_text(f, l->flows_lost, &text, &e) == 0) {
		hub_sandbox_tell(l, kinds[f->what], buf_str(&text));
		tell_flow(l, kinds[f->what], f, buf_str(&text));
	}
	l->flows_lost = 0;
}

/* ---- questions ----------------------------------------------------------------------------- */

void hub_sandboxes_ask_by(struct hub_sandboxes *all, const struct hub_asker *by)
{
	all->asker = by;
}

void hub_sandboxes_answer(struct hub_sandboxes *all, uint64_t id, bool allow, const char *why)
{
	nets_answer(all->nets, id, allow, why);
}

void hub_sandboxes_on_ask(void *sandboxes, void *of, uint64_t id, const struct nw_ask *m)
{
	struct hub_sandboxes *all = sandboxes;
	struct hub_sandbox_info i;

	if (!all->asker || !of) {
		hub_sandboxes_answer(all, id, false,
				     of ? "nobody can be asked here"
					: "nobody is asked about requests of a module");
		return;
	}
	hub_sandbox_info(of, &i);
	all->asker->ask(all->asker->data, &(struct hub_question){
						  .id = id,
						  .sandbox = i.id,
						  .owner = i.owner,
						  .method = str_of(m->method),
						  .host = str_of(m->host),
						  .target = str_of(m->target),
						  .rule = str_of(m->http),
						  .seq = i.seq,
						  .port = m->port,
					  });
}

int hub_sandboxes_on_tokens(void *sandboxes, struct str name, bool begins, struct str body,
			    struct buf *ret, struct err *e)
{
	const struct hub_sandboxes *all = sandboxes;
	struct hub_secret now;

	if (!all->secrets)
		return err_set(e, ERR_UNSUPPORTED, "there are no secrets here");
	if (all->secrets->keep(all->secrets->data, name, begins, body, &now, ret, e) < 0)
		return -1;
	if (now.n_tokens > 0)
		nets_renew(all->nets, name, now.tokens, now.n_tokens, now.value);
	return 0;
}

void hub_sandboxes_on_leave(void *sandboxes, uint64_t id, bool ended)
{
	struct hub_sandboxes *all = sandboxes;

	if (all->asker)
		all->asker->leave(all->asker->data, id, ended);
}
