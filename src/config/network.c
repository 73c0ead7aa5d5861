#include "config/config.h"

static const struct field preset_fields[] = {
	FIELD(struct config_preset, rules, .min = 1, .max = CONFIG_LIST_MAX, .item_min = 1,
	      .item_max = CONFIG_TEXT_MAX,
	      .doc = "Network rules: host names or addresses, with ports."),
};
static const struct field_table preset_table = FIELD_TABLE(struct config_preset, preset_fields,
							   .bare = true);

static const struct field network_fields[] = {
	FIELD_DICT(
		struct config_network, presets, preset_table, .max = CONFIG_LIST_MAX, .item_min = 1,
		.item_max = CONFIG_NAME_MAX,
		.doc = "Lists of network rules by name. A grant may name a list instead of hosts."),
};
const struct field_table config_network_table = FIELD_TABLE(struct config_network, network_fields);
