#include "config/config.h"

static const struct field redaction_fields[] = {
	FIELD(struct config_redaction, off, .doc = "Switches it off."),
};
const struct field_table config_redaction_table = FIELD_TABLE(struct config_redaction,
							      redaction_fields);
