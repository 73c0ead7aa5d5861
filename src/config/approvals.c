#include "config/config.h"

static const struct field approval_fields[] = {
	FIELD(struct config_approvals, webhook, .min = 1, .max = CONFIG_TEXT_MAX,
	      .doc = "URL that is told of each question."),
	FIELD(struct config_approvals, expire_seconds, .min = 1, .max = 604800,
	      .def = DEFAULT_INT(3600), .doc = "A question that nobody answers is then denied."),
};
const struct field_table config_approvals_table = FIELD_TABLE(struct config_approvals,
							      approval_fields);
