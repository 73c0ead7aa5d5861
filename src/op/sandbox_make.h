#pragma once
/* New sandboxes: sandbox.create, sandbox.fork and snapshot.restore. */
#include "op/sandbox_view.h"

enum { COPIES_MAX = 64 };

/* No network, until grants are served: what else is wanted is refused. */
struct network_request {
	bool block;
	enum egress egress, inbound;
	struct field_strs allow_domains, allow_cidrs, inbound_cidrs;
};
extern const struct field_table network_request_table;
/* ERR_INVALID that names the member which wants a network. */
int network_refuse(const struct network_request *w, struct err *e) MUST_USE;
