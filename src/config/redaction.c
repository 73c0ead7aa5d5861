#include "config/config.h"

static const struct field redaction_fields[] = {
	FIELD(struct config_redaction, off, .doc = "Turn redaction off."),
	FIELD(struct config_redaction, without, .max = 128,
	      .doc = "Kinds of secrets to ignore, such as \"jwt\" (docs/redaction.md)."),
	FIELD(struct config_redaction, patterns, .max = 64,
	      .doc = "Additional kinds, as regular expressions that each match 4 to 512 bytes."),
};
const struct field_table config_redaction_table = FIELD_TABLE(struct config_redaction,
							      redaction_fields);
