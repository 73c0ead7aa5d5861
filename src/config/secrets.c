#include "config/internal.h"

static const struct field secret_fields[] = {
	FIELD(struct config_secret, env, .min = 1, .max = CONFIG_TEXT_MAX,
	      .doc = "The hub's environment variable that has it."),
	FIELD(struct config_secret, file, .min = 1, .max = CONFIG_TEXT_MAX,
	      .doc = "The file that has it, which only its owner may read."),
	FIELD(struct config_secret, command, .max = 64, .item_max = CONFIG_TEXT_MAX,
	      .doc = "A program, with arguments, that prints it."),
	FIELD(struct config_secret, store, .doc = "It is in the sealed store (holt secret set)."),
	FIELD(struct config_secret, hosts, .max = CONFIG_LIST_MAX, .item_min = 1,
	      .item_max = CONFIG_TEXT_MAX,
	      .doc = "A sandbox gets a placeholder, replaced in requests to these hosts only: "
		     "HOST[:PORT] or *.DOMAIN[:PORT], at 443 without a port."),
	FIELD(struct config_secret, ca, .min = 1, .max = CONFIG_TEXT_MAX,
	      .doc = "A file with the certificates (PEM) that these hosts are trusted by, instead "
		     "of the host's."),
};
const struct field_table config_secret_table = FIELD_TABLE(struct config_secret, secret_fields);

int config_check_secrets(struct config_reader *r, struct json_pointer at,
			 const struct config_secrets *s)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct config_secret *q = &s->p[i];

		if (q->ca.p && q->hosts.n == 0) {
			at = config_at(at, q->name);
			return config_refuse(r, &at, "ca is for a secret with hosts");
		}
		if ((q->env.p != NULL) + (q->file.p != NULL) + (q->command.n > 0) + q->store == 1)
			continue;
		at = config_at(at, q->name);
		return config_refuse(r, &at, "a secret has one of env, file, command and store");
	}
	return 0;
}
