#include "config/internal.h"

static const struct field login_fields[] = {
	FIELD(struct config_login, urls, .flags = FIELD_REQUIRED, .min = 1, .max = 8, .item_min = 1,
	      .item_max = CONFIG_TEXT_MAX,
	      .doc = "URLs (https) that give tokens. The egress proxy puts the refresh token into "
		     "requests there, and keeps the tokens of answers out of the sandbox."),
	FIELD(struct config_login, members, .max = 8, .item_min = 1, .item_max = 32,
	      .doc = "Members of these answers that are tokens, the one for requests to the hosts "
		     "first. By default access_token, refresh_token and id_token."),
};
static const struct field_table login_table = FIELD_TABLE(struct config_login, login_fields);

static const struct field secret_fields[] = {
	FIELD(struct config_secret, env, .min = 1, .max = CONFIG_TEXT_MAX,
	      .doc = "Environment variable of the hub that has the value."),
	FIELD(struct config_secret, file, .min = 1, .max = CONFIG_TEXT_MAX,
	      .doc = "File that has the value. It must be readable by its owner only."),
	FIELD(struct config_secret, command, .max = 64, .item_max = CONFIG_TEXT_MAX,
	      .doc = "Program, with its arguments, that prints the value."),
	FIELD(struct config_secret, store,
	      .doc = "The value is in the sealed store (holt secret set)."),
	FIELD(struct config_secret, hosts, .max = CONFIG_LIST_MAX, .item_min = 1,
	      .item_max = CONFIG_TEXT_MAX,
	      .doc = "Hosts that get the value: HOST[:PORT] or *.DOMAIN[:PORT], by default at port "
		     "443. A sandbox gets a placeholder, which is replaced in requests to these "
		     "hosts only."),
	FIELD(struct config_secret, ca, .min = 1, .max = CONFIG_TEXT_MAX,
	      .doc = "File with the CA certificates (PEM) that verify these hosts, instead of the "
		     "system's."),
	FIELD_OBJECT(
		struct config_secret, login, login_table,
		.has = FIELD_HAS(struct config_secret, has_login),
		.doc = "The secret is the tokens of a log-in, which holt agent login stores and "
		       "the egress proxy renews."),
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
		if (q->has_login && (q->hosts.n == 0 || !q->store)) {
			at = config_at(at, q->name);
			return config_refuse(r, &at,
					     "login is for a secret of the store with hosts");
		}
		if ((q->env.p != NULL) + (q->file.p != NULL) + (q->command.n > 0) + q->store == 1)
			continue;
		at = config_at(at, q->name);
		return config_refuse(r, &at, "a secret has one of env, file, command and store");
	}
	return 0;
}

const struct config_secret *config_secret_bound(const struct config_file *f, struct str name)
{
	for (size_t i = 0; i < f->secrets.n; i++) {
		if (str_eq(f->secrets.p[i].name, name))
			return f->secrets.p[i].hosts.n > 0 ? &f->secrets.p[i] : NULL;
	}
	return NULL;
}
