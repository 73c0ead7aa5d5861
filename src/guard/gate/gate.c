#include "guard/gate/gate.h"

#include <stdlib.h>

#include "guard/gate/internal.h"

static const struct gate_part {
	int (*open)(struct gate *g, struct err *e);
	void (*close)(struct gate *g);
	void (*reload)(struct gate *g); /* g->config is another; NULL: it is looked at each time */
} parts[] = {
	{ gate_identity_open, gate_identity_close },
	{ gate_policy_open, gate_policy_close, gate_policy_reload },
	{ gate_approval_open, gate_approval_close, gate_approval_reload },
	{ gate_redact_open, gate_redact_close, gate_redact_reload },
	/* Expired values are redacted when they are opened. */
	{ gate_question_open, gate_question_close },
	{ gate_network_open, gate_network_close },
	{ gate_secret_open, gate_secret_close, gate_secret_reload },
	{ gate_audit_open, gate_audit_close, gate_audit_reload },
	{ gate_reload_open, gate_reload_close },
};

struct gate *gate_open(const struct gate_options *o, struct err *e)
{
	AUTO(gate_free) struct gate *g = calloc(1, sizeof(*g));

	if (!g)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	g->loop = o->loop;
	g->hub = o->hub;
	g->tools_of = o->tools_of;
	g->conversations = o->conversations;
	g->feed = o->feed;
	g->audit_folder = o->audit;
	g->on_config = o->on_config;
	g->on_ended = o->on_ended;
	g->owner = o->owner;
	g->config = o->config ? config_ref(o->config)
			      : config_parse(STR_LIT("{}"), "config.json", e);
	if (!g->config)
		return NULL;
	g->secrets_folder = o->secrets;
	g->hooks.data = g;
	g->guard.data = g;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		if (parts[i].open(g, e) < 0)
			return NULL;
	}
	gate_audit_listen(g);
	gate_network_listen(g);
	gate_policy_listen(g);
	if (o->hooks)
		g->hooks = *o->hooks;
	else
		g->guard.redactor = g->redactor;
	g->hooks.guard = &g->guard;
	return take_ptr(g);
}

const struct op_hooks *gate_hooks(const struct gate *g)
{
	return &g->hooks;
}

void gate_set_config(struct gate *g, struct config *c)
{
	struct config *was = g->config;

	g->config = config_ref(c);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		if (parts[i].reload)
			parts[i].reload(g);
	}
	gate_policy_listen(g);
	if (g->on_config)
		g->on_config(g->owner, c);
	config_unref(was);
}

const struct guard *gate_guard(const struct gate *g)
{
	return &g->guard;
}

void gate_free(struct gate *g)
{
	if (!g)
		return;
	for (size_t i = ARRAY_LEN(parts); i > 0; i--)
		parts[i - 1].close(g);
	config_unref(g->config);
	free(g);
}

struct gate_call *gate_call(struct call *c)
{
	void **state = call_hook_state(c);
	struct err e;

	if (!*state)
		*state = arena_alloc(call_arena(c), sizeof(struct gate_call), &e);
	return *state;
}
