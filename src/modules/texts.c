/* The texts that start a program: first their secrets are read, and then the texts. */
#include <stdlib.h>

#include "config/variables.h"
#include "guard/secret/secrets.h"
#include "http/client/url.h"
#include "hub/core/hub.h"
#include "hub/sandbox/bound.h"
#include "modules/program_sandbox.h"

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

/* Secrets of one program; all texts are of its file. */
struct texts_secrets {
	struct texts *of;
	struct str names[SECRETS_MAX_OF]; /* whose values are needed */
	size_t n;
	struct bound_ref bound[BOUND_MAX]; /* of which it gets placeholders */
	size_t n_bound;
	const struct config_secret *sent[SECRETS_MAX_OF]; /* those with hosts that the hub sends */
	size_t n_sent;
	struct secret *const *values; /* NULL: not read */
};

/* ---- those with hosts ---------------------------------------------------------------------- */

static int texts_refuse(const struct config_secret *s, const char *remedy, struct err *e)
{
	return err_set(e, ERR_DENIED, "the secret %.*s is for requests to %.*s%s, and %s",
		       STR_ARG(s->name), STR_CUT(s->hosts.p[0], 100),
		       s->hosts.n > 1 ? " and others" : "", remedy);
}

static int texts_note_bound(struct texts_secrets *s, enum config_text what,
			    const struct config_secret *of, struct err *e)
{
	size_t i = 0;

	if (what == CONFIG_TEXT_HEADER) {
		while (i < s->n_sent && s->sent[i] != of)
			i++;
		if (i == SECRETS_MAX_OF)
			return err_set(e, ERR_LIMIT, "more than %d secrets", SECRETS_MAX_OF);
		s->sent[i] = of;
		s->n_sent += i == s->n_sent;
		return 0;
	}
	if (what != CONFIG_TEXT_ARG && what != CONFIG_TEXT_ENV)
		return texts_refuse(of, "can stand in args, env and headers only", e);
	if (s->of->server->sandbox.off)
		return texts_refuse(of,
				    "enters no program: run this one in a sandbox whose network "
				    "has that host, or take a secret without hosts",
				    e);
	while (i < s->n_bound && !str_eq(s->bound[i].secret, of->name))
		i++;
	if (i == BOUND_MAX)
		return err_set(e, ERR_LIMIT, "more than %d secrets with hosts", BOUND_MAX);
	s->bound[i] = (struct bound_ref){ .secret = of->name };
	s->n_bound += i == s->n_bound;
	return 0;
}

/* The hub itself sends it, over TLS. */
static int texts_check_sent(const struct config_secret *s, const char *url, struct err *e)
{
	autofree char *origin = http_url_origin(url);
	const struct str rest = str_of(origin ? origin + strlen("https://") : "");
	struct net_rule to, host;

	if (origin && str_starts(str_of(origin), "https://") &&
	    net_rule_parse(rest, false, &to, e) == 0) {
		to.port = to.port ? to.port : 443;
		for (size_t i = 0; i < s->hosts.n; i++) {
			if (net_rule_parse(s->hosts.p[i], false, &host, e) < 0)
				return -1;
			host.port = host.port ? host.port : 443;
			if (net_rule_meets(&to, &host))
				return 0;
		}
	}
	return texts_refuse(s, "not to the URL of this module", e);
}

static struct str texts_placeholder(const struct bound *b, struct str name)
{
	for (size_t i = 0; b && i < b->n; i++) {
		if (str_eq(b->p[i].secret, name))
			return b->p[i].placeholder;
	}
	return STR_NONE;
}

/* ---- all ----------------------------------------------------------------------------------- */

static int texts_note_one(struct texts_secrets *s, enum config_text what, struct str name,
			  struct err *e)
{
	const struct config_secret *bound = config_secret_bound(config_file(s->of->config), name);
	size_t i = 0;

	if (bound && texts_note_bound(s, what, bound, e) < 0)
		return -1;
	if (bound && what != CONFIG_TEXT_HEADER)
		return 0;
	while (i < s->n && !str_eq(s->names[i], name))
		i++;
	if (i == SECRETS_MAX_OF)
		return err_set(e, ERR_LIMIT, "more than %d secrets", SECRETS_MAX_OF);
	s->names[i] = name;
	s->n += i == s->n;
	return 0;
}

static int texts_note(void *data, enum config_text what, struct str text, struct err *e)
{
	struct config_part part;
	int more;

	while ((more = config_part_next(&text, &part, e)) > 0) {
		if (part.kind == CONFIG_PART_SECRET && texts_note_one(data, what, part.text, e) < 0)
			return -1;
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
	if (kind == CONFIG_PART_SECRET)
		value = texts_placeholder(s->of->bound, name);
	for (size_t i = 0; kind == CONFIG_PART_SECRET && i < s->n; i++) {
		if (str_eq(s->names[i], name))
			value = secrets_text(secret_expose(s->values[i], "given to a program"));
	}
	return !value.p ? 0 : buf_add(to, value.p, value.n, e) < 0 ? -1 : 1;
}

static void texts_done(struct texts *t, struct texts_secrets *s, struct err *e)
{
	const struct config_values values = { s, texts_value };

	int rc = 0;

	t->has_target = config_target_init(&t->target, t->config, t->server, &values, e) == 0;
	for (size_t i = 0; t->has_target && rc == 0 && i < s->n_sent; i++)
		rc = texts_check_sent(s->sent[i], t->target.url, e);
	t->on_texts(t->owner, t->has_target && rc == 0 ? NULL : e);
}

static void texts_on_secrets(void *data, struct secret *const *values, const struct err *err)
{
	struct texts *t = data;
	const struct program_sandbox_of *of = t->of;
	struct texts_secrets s = { .of = t };
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
	struct texts_secrets s = { .of = t };
	struct bound_spec bound = { .p = s.bound };
	struct err e = ERR_INIT;
	int rc = config_server_texts(t->config, t->server, texts_note, &s, &e);

	bound.n = s.n_bound;
	if (rc == 0 && bound.n > 0) {
		t->bound = hub_sandboxes_bind(hub_sandboxes(t->of->hub), &bound, &e);
		rc = t->bound ? 0 : -1;
	}
	if (rc < 0) {
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
	bound_end(take_ptr(t->bound));
}
