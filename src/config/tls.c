#include "config/internal.h"

static const struct field tls_fields[] = {
	FIELD(struct config_tls, certificate, .flags = FIELD_REQUIRED, .min = 1,
	      .max = CONFIG_TEXT_MAX,
	      .doc = "File with the certificate chain (PEM), an absolute path."),
	FIELD(struct config_tls, key, .flags = FIELD_REQUIRED, .min = 1, .max = CONFIG_TEXT_MAX,
	      .doc = "File with the private key (PEM), an absolute path. It must not be accessible "
		     "to others."),
	FIELD(struct config_tls, client_ca, .min = 1, .max = CONFIG_TEXT_MAX,
	      .doc = "File with the CA certificates (PEM) of clients. A client without a "
		     "certificate of one of them is refused at the handshake."),
};
const struct field_table config_tls_table = FIELD_TABLE(struct config_tls, tls_fields);

int config_check_tls(struct config_reader *r, struct json_pointer at, const struct config_tls *t)
{
	const struct {
		const char *name;
		struct str path;
	} paths[] = { { "certificate", t->certificate },
		      { "key", t->key },
		      { "client_ca", t->client_ca } };

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		if (!paths[i].path.n || paths[i].path.p[0] == '/')
			continue;
		at = config_at(at, str_of(paths[i].name));
		return config_refuse(r, &at, "a path from / on is wanted");
	}
	return 0;
}
