#include "config/config.h"

static const struct field audit_fields[] = {
	FIELD(struct config_audit, off, .doc = "Turn the audit log off."),
	FIELD(struct config_audit, file_mb, .min = 1, .max = 4096, .def = DEFAULT_INT(16),
	      .doc = "Size of a log file in MiB. After that the log continues in another file."),
	FIELD(struct config_audit, files, .min = 2, .max = 100000, .def = DEFAULT_INT(64),
	      .doc = "Number of log files to keep."),
	FIELD(struct config_audit, days, .max = 36500,
	      .doc = "Days to keep a log file; 0: no limit. Old files are removed when a new one "
		     "begins."),
};
const struct field_table config_audit_table = FIELD_TABLE(struct config_audit, audit_fields);
