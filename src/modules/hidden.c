/* Why a tool of a module is not offered to clients: the one table of reasons. */
#include "modules/internal.h"

const char *const upstream_hidden_names[UPSTREAM_HIDDENS] = {
	[UPSTREAM_OFFERED] = "offered",	       [UPSTREAM_HIDDEN_NEW] = "new",
	[UPSTREAM_HIDDEN_CHANGED] = "changed", [UPSTREAM_HIDDEN_WARNED] = "warned",
	[UPSTREAM_HIDDEN_ODD] = "schema",      [UPSTREAM_HIDDEN_FILE] = "file",
	[UPSTREAM_HIDDEN_POLICY] = "policy",
};

const char *const upstream_hidden_texts[UPSTREAM_HIDDENS] = {
	[UPSTREAM_OFFERED] = "offered",
	[UPSTREAM_HIDDEN_NEW] = "new since the approval",
	[UPSTREAM_HIDDEN_CHANGED] = "changed since the approval",
	[UPSTREAM_HIDDEN_WARNED] = "held, since the scan found suspicious text in them",
	[UPSTREAM_HIDDEN_ODD] = "not callable by their inputSchema",
	[UPSTREAM_HIDDEN_FILE] = "hidden by the operator's file",
	[UPSTREAM_HIDDEN_POLICY] = "denied by the policy",
};

enum upstream_hidden upstream_hidden(const struct upstream *u, const struct upstream_tool *t)
{
	static const enum upstream_hidden of_pin[UPSTREAM_PINS] = {
		[UPSTREAM_PIN_APPROVED] = UPSTREAM_OFFERED,
		[UPSTREAM_PIN_NEW] = UPSTREAM_HIDDEN_NEW,
		[UPSTREAM_PIN_CHANGED] = UPSTREAM_HIDDEN_CHANGED,
		[UPSTREAM_PIN_WARNED] = UPSTREAM_HIDDEN_WARNED,
	};

	if (!config_server_shows(u->server, t->name) ||
	    config_server_approval(u->server, t->name) == CONFIG_DENY)
		return UPSTREAM_HIDDEN_FILE;
	if (t->pin == UPSTREAM_PIN_APPROVED && t->odd)
		return UPSTREAM_HIDDEN_ODD;
	return of_pin[t->pin];
}
