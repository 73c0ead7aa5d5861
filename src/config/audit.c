#include "config/config.h"

static const struct field audit_fields[] = {
	FIELD(struct config_audit, off, .doc = "Switches it off."),
	FIELD(struct config_audit, file_mb, .min = 1, .max = 4096, .def = DEFAULT_INT(16),
	      .doc = "MiB after which the log goes on in another file."),
	FIELD(struct config_audit, files, .min = 2, .max = 100000, .def = DEFAULT_INT(64),
	      .doc = "Files that are kept."),
	FIELD(struct config_audit, days, .max = 36500,
	      .doc = "Days after which a file is removed when another begins; 0 for never."),
};
const struct field_table config_audit_table = FIELD_TABLE(struct config_audit, audit_fields);
