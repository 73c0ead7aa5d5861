#include "config/internal.h"

enum { RESOLVERS_MAX = 16, SERVERS_MAX = 4, NAMES_MAX = 64 };

static const struct field preset_fields[] = {
	FIELD(struct config_preset, rules, .min = 1, .max = CONFIG_LIST_MAX, .item_min = 1,
	      .item_max = CONFIG_TEXT_MAX,
	      .doc = "Network rules: host names or addresses, with ports."),
};
static const struct field_table preset_table = FIELD_TABLE(struct config_preset, preset_fields,
							   .bare = true);

static const struct field resolvers_fields[] = {
	FIELD(struct config_resolvers, servers, .min = 1, .max = SERVERS_MAX, .item_min = 1,
	      .item_max = CONFIG_TEXT_MAX,
	      .doc = "Addresses of name servers, with or without a port."),
};
static const struct field_table resolvers_table = FIELD_TABLE(struct config_resolvers,
							      resolvers_fields, .bare = true);

#define N struct config_network
static const struct field network_fields[] = {
	FIELD_DICT(
		struct config_network, presets, preset_table, .max = CONFIG_LIST_MAX, .item_min = 1,
		.item_max = CONFIG_NAME_MAX,
		.doc = "Lists of network rules by name. A grant may name a list instead of hosts."),
	FIELD(N, proxy, .max = CONFIG_TEXT_MAX, .has = FIELD_HAS(N, has_proxy),
	      .doc = "The proxy through which names are reached, http://HOST:PORT. Empty: none. "
		     "Default: HTTPS_PROXY of the hub's environment. Read when the hub starts, as "
		     "all below."),
	FIELD(N, proxy_secret, .max = CONFIG_NAME_MAX,
	      .doc = "Name of a secret for the proxy: user:password."),
	FIELD(N, no_proxy, .max = NAMES_MAX / 2, .item_min = 1, .item_max = CONFIG_TEXT_MAX,
	      .doc = "Names that are reached without the proxy, each with all below it."),
	FIELD(N, ca, .max = CONFIG_TEXT_MAX,
	      .doc = "File with certificates (PEM) that are trusted beside the host's, by the "
		     "proxy of sandboxes and in them; an absolute path."),
	FIELD_DICT(N, resolvers, resolvers_table, .max = RESOLVERS_MAX, .item_min = 1,
		   .item_max = CONFIG_TEXT_MAX,
		   .doc = "Name servers of a name and of all below it, by the name."),
	FIELD(N, private, .max = NAMES_MAX, .item_min = 1, .item_max = CONFIG_TEXT_MAX,
	      .doc = "Names that may have private addresses: NAME or *.DOMAIN."),
};
#undef N
const struct field_table config_network_table = FIELD_TABLE(struct config_network, network_fields);

int config_check_network(struct config_reader *r, struct json_pointer at,
			 const struct config_network *n)
{
	at = config_at(at, STR_LIT("ca"));
	return !n->ca.n || n->ca.p[0] == '/' ? 0
					     : config_refuse(r, &at, "a path from / on is wanted");
}
