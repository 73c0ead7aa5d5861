#include "config/config.h"

static const struct field redaction_fields[] = {
	FIELD(struct config_redaction, off, .doc = "Switches it off."),
	FIELD(struct config_redaction, without, .max = 128,
	      .doc = "Kinds that are not looked for, such as \"jwt\" (docs/redaction.md)."),
	FIELD(struct config_redaction, patterns, .max = 64,
	      .doc = "More kinds: expressions, each of which matches 4 to 512 bytes."),
};
const struct field_table config_redaction_table = FIELD_TABLE(struct config_redaction,
							      redaction_fields);
