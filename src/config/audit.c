#include "config/config.h"

static const struct field audit_fields[] = {
	FIELD(struct config_audit, off, .doc = "Switches it off."),
};
const struct field_table config_audit_table = FIELD_TABLE(struct config_audit, audit_fields);
