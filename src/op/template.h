#pragma once
/* What the door and other operations know of templates. */
#include "call/call.h"
#include "op/network.h"
#include "op/ops.h"

struct template_view {
	struct str id, created_at;
	bool ready;
	double creation_time_ms;
	struct network_view network;
};
extern const struct field_table template_view_table;

/* The result of template.list. */
struct templates_view {
	struct {
		const struct template_view *p;
		size_t n;
	} templates;
};

/* How many template.list has. */
size_t templates_count(struct call *c);
/* Whether sandboxes can be made of one that is called so. */
bool template_exists(struct ops *ops, struct str name);
/* The working directory of its sandboxes, in the call's arena. */
struct str template_cwd(struct call *c, struct str name);
/* Whether it wants a network for its sandboxes, which *ret is then, normalized; also false where
 * there is no such template. -1: it can't be read. */
int template_network(struct call *c, struct str name, struct network_request *ret,
		     struct err *e) MUST_USE;
