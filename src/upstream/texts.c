/* What a program is started with: the secrets of its texts are read, and then the texts. */
#include <stdlib.h>

#include "config/variables.h"
#include "guard/secret/secrets.h"
#include "upstream/place.h"

enum { SECRETS_MAX_OF = SECRETS_READ_MAX };

struct str texts_variable(struct str name)
{
	char z[CONFIG_NAME_MAX + 1];

	if (name.n >= sizeof(z))
		return STR_NONE;
	memcpy(z, name.p, name.n);
	z[name.n] = '\0';
	return str_of(getenv(z));
}

struct texts_secrets {
	struct str names[SECRETS_MAX_OF];
	size_t n;
	struct secret *const *values; /* NULL: not read */
};

static int texts_note(void *data, enum config_text what, struct str text, struct err *e)
{
	struct texts_secrets *s = data;
	struct config_part part;
	int more;

	while ((more = config_part_next(&text, &part, e)) > 0) {
		size_t i = 0;

		if (part.kind != CONFIG_PART_SECRET)
			continue;
		while (i < s->n && !str_eq(s->names[i], part.text))
			i++;
		if (i == SECRETS_MAX_OF)
			return err_set(e, ERR_LIMIT, "more than %d secrets", SECRETS_MAX_OF);
		s->names[i] = part.text;
		s->n += i == s->n;
	}
	return more;
}

static int texts_value(void *data, enum config_part_kind kind, struct str name, struct buf *to,
		       struct err *e)
{
	const struct texts_secrets *s = data;
	struct str value = STR_NONE;

	if (kind == CONFIG_PART_ENV)
		value = texts_variable(name);
	for (size_t i = 0; kind == CONFIG_PART_SECRET && i < s->n; i++) {
		if (str_eq(s->names[i], name))
			value = secrets_text(secret_expose(s->values[i], "given to a program"));
	}
	return !value.p ? 0 : buf_add(to, value.p, value.n, e) < 0 ? -1 : 1;
}

static void texts_done(struct texts *t, struct texts_secrets *s, struct err *e)
{
	const struct config_values values = { s, texts_value };

	t->has_target = config_target_init(&t->target, t->config, t->server, &values, e) == 0;
	t->on_texts(t->owner, t->has_target ? NULL : e);
}

static void texts_on_secrets(void *data, struct secret *const *values, const struct err *err)
{
	struct texts *t = data;
	const struct place_of *of = t->of;
	struct texts_secrets s = { .n = 0 };
	struct err e = ERR_INIT;
	int rc = 0;

	t->reading = NULL;
	if (err) {
		t->on_texts(t->owner, err);
		return;
	}
	rc = config_server_texts(t->config, t->server, texts_note, &s, &e);
	s.values = values;
	for (size_t i = 0; rc == 0 && of->gave_secret && i < s.n; i++)
		rc = of->gave_secret(of->data, s.names[i],
				     secret_expose(values[i], "given to a program"), &e);
	if (rc < 0)
		t->on_texts(t->owner, &e);
	else
		texts_done(t, &s, &e);
}

void texts_start(struct texts *t)
{
	struct texts_secrets s = { .n = 0 };
	struct err e = ERR_INIT;

	if (config_server_texts(t->config, t->server, texts_note, &s, &e) < 0) {
		t->on_texts(t->owner, &e);
	} else if (s.n == 0) {
		texts_done(t, &s, &e);
	} else if (!t->of->secrets) {
		err_set(&e, ERR_UNSUPPORTED, "there are no secrets here");
		t->on_texts(t->owner, &e);
	} else {
		t->reading = secrets_read_start(t->of->secrets, t->of->loop, s.names, s.n,
						texts_on_secrets, t, &e);
		if (!t->reading)
			t->on_texts(t->owner, &e);
	}
}

void texts_cancel(struct texts *t)
{
	if (t->reading)
		secrets_read_cancel(take_ptr(t->reading));
}

void texts_fini(struct texts *t)
{
	texts_cancel(t);
	if (t->has_target)
		config_target_fini(&t->target);
	t->has_target = false;
}
