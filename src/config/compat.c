#include "config/config.h"

static const struct field compat_fields[] = {
	FIELD(struct config_compat, apis, .max = CONFIG_COMPAT_APIS, .item_min = 1,
	      .item_max = CONFIG_NAME_MAX,
	      .doc = "Protocols of other services to serve, in addition to those of holt serve "
		     "--compat: e2b, mitos, mitos-tokenless. Read when the hub starts."),
	FIELD(struct config_compat, templates, .max = CONFIG_LIST_MAX, .item_max = CONFIG_TEXT_MAX,
	      .doc = "Templates by the names that clients of these services use. Default: base, "
		     "code-interpreter-v1 and python stand for host."),
};
const struct field_table config_compat_table = FIELD_TABLE(struct config_compat, compat_fields);
