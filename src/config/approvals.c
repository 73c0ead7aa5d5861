#include "config/config.h"

static const struct field approval_fields[] = {
	FIELD(struct config_approvals, elicitation, .max = CONFIG_LIST_MAX, .item_min = 1,
	      .item_max = CONFIG_TEXT_MAX,
	      .doc = "Principals, as patterns, whose MCP clients may show their user a form to "
		     "approve calls. Default: none, since an agent could answer the form itself."),
	FIELD(struct config_approvals, webhook, .min = 1, .max = CONFIG_TEXT_MAX,
	      .doc = "URL to which each new request for approval is posted: https, or http at "
		     "127.0.0.1 or [::1]."),
	FIELD(struct config_approvals, expire_seconds, .min = 1, .max = 604800,
	      .def = DEFAULT_INT(3600),
	      .doc = "Seconds until a request for approval that nobody answers is denied."),
};
const struct field_table config_approvals_table = FIELD_TABLE(struct config_approvals,
							      approval_fields);
