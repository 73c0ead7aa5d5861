/* The operator's secrets: their sources, who may use which, and that what is given is redacted. */
#include <stdlib.h>
#include <sys/resource.h>

#include "base/log.h"
#include "guard/gate/internal.h"
#include "guard/gate/login.h"
#include "guard/policy/policy.h"
#include "guard/redact/redact.h"
#include "guard/secret/secrets.h"
#include "hub/core/hub.h"

bool gate_secret_allows(const struct config_file *f, const struct gate_names *by, bool by_operator,
			struct str name)
{
	struct str own = by->conversation.n ? by->conversation : by->who;

	return (by_operator || policy_grants(f, own, POLICY_SECRETS)) &&
	       policy_allows(f, by->who, by->conversation, POLICY_SECRETS, name);
}

static int gate_secret_check(void *data, const struct call *c, struct str name, bool to_hosts,
			     struct err *e)
{
	const struct gate *g = data;
	const struct config_file *f = config_file(g->config);
	const struct gate_names by = { principal_who(call_principal(c)),
				       principal_conversation(call_principal(c)) };

	if (!gate_secret_allows(f, &by, call_is_operator(c), name))
		return err_set(e, ERR_DENIED, "%s may not use the secret %.*s",
			       call_principal(c)->name, STR_ARG(name));
	if (to_hosts && !config_secret_bound(f, name))
		return err_set(e, ERR_DENIED,
			       "the secret %.*s has no hosts, so it is for programs, not for a "
			       "sandbox",
			       STR_ARG(name));
	if (!to_hosts && config_secret_bound(f, name))
		return err_set(
			e, ERR_DENIED,
			"the secret %.*s is for requests to its hosts, and enters no sandbox",
			STR_ARG(name));
	return 0;
}

int gate_login_gave(struct gate *g, const struct login *l, struct str name, struct err *e)
{
	for (size_t i = 0; i < l->n; i++) {
		if (gate_redact_value(g, name, secret_expose(l->of[i].value, "redacted"), e) < 0)
			return -1;
	}
	return 0;
}

int gate_secret_gave(void *data, struct str name, struct str value, struct err *e)
{
	struct gate *g = data;
	const struct config_secret *s = config_secret_bound(config_file(g->config), name);
	autologin struct login l = { .n = 0 };

	if (!s || !s->has_login)
		return gate_redact_value(g, name, secrets_text(value), e);
	return login_read(&l, value, e) < 0 ? -1 : gate_login_gave(g, &l, name, e);
}

static void gate_secret_known(void *data, struct str name, struct str value)
{
	struct err e;

	if (gate_secret_gave(data, name, value, &e) < 0)
		log_warn("secret %.*s can't be redacted: %s", STR_ARG(name), e.msg);
}

/* A program without a hub gives one command what it is granted, and nothing else can get there. */
static void gate_secret_redact_known(struct gate *g)
{
	if (g->hub)
		secrets_known(g->guard.secrets, gate_secret_known, g);
}

static void gate_secret_source(const struct config_secret *from, struct secrets_source *to)
{
	*to = (struct secrets_source){
		.name = from->name,
		.provider = from->env.p		? SECRETS_ENV
			  : from->file.p	? SECRETS_FILE
			  : from->command.n > 0 ? SECRETS_COMMAND
						: SECRETS_STORE,
		.from = from->env.p ? from->env : from->file,
		.argv = from->command.p,
		.n_argv = from->command.n,
	};
}

static int gate_secret_set(struct secrets *s, const struct config_file *f, struct err *e)
{
	const struct config_secrets *all = &f->secrets;
	autofree struct secrets_source *p = calloc(all->n + 1, sizeof(*p));

	if (!p)
		return err_set(e, ERR_LIMIT, "out of memory");
	for (size_t i = 0; i < all->n; i++)
		gate_secret_source(&all->p[i], &p[i]);
	return secrets_configure(s, p, all->n, e);
}

int gate_secret_check_file(const struct config_file *f, struct err *e)
{
	AUTO(secrets_free) struct secrets *s = secrets_open(NULL, e);

	return s ? gate_secret_set(s, f, e) : -1;
}

struct gate_secret_wanted {
	struct str name;
	struct secret *value; /* NULL: not found */
	struct err *err;
};

static void gate_secret_found(void *data, struct str name, struct str value)
{
	struct gate_secret_wanted *w = data;

	if (!w->value && str_eq(name, w->name))
		w->value = secret_new(secrets_text(value), w->err);
}

struct secret *gate_secret_now(const struct config_file *f, const char *folder, struct str name,
			       struct err *e)
{
	AUTO(secrets_free) struct secrets *s = secrets_open(folder, e);
	struct gate_secret_wanted w = { .name = name, .err = e };

	if (!s || gate_secret_set(s, f, e) < 0)
		return NULL;
	secrets_known(s, gate_secret_found, &w);
	if (!w.value && !e->code)
		err_set(e, ERR_SECRET_NOT_FOUND,
			"there is no secret %.*s that is stored, in a file or in a variable: `holt "
			"secret set %.*s` stores one",
			STR_ARG(name), STR_ARG(name));
	return w.value;
}

void gate_secret_reload(struct gate *g)
{
	struct err e;

	if (gate_secret_set(g->guard.secrets, config_file(g->config), &e) < 0)
		log_warn("secrets stay as they were: %s", e.msg);
	else
		gate_secret_redact_known(g);
	if (g->hub)
		hub_sandboxes_secrets_changed(hub_sandboxes(g->hub));
}

/* Values pass through buffers of the loop and of libraries, which a core would have. A limit of one
 * byte also keeps cores from a program that the kernel would pipe them to. */
static void gate_secret_no_core(void)
{
	const struct rlimit none = { 1, 1 };

	if (setrlimit(RLIMIT_CORE, &none) < 0)
		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
}

int gate_secret_open(struct gate *g, struct err *e)
{
	g->guard.secrets = secrets_open(g->secrets_folder, e);
	if (!g->guard.secrets || gate_secret_set(g->guard.secrets, config_file(g->config), e) < 0)
		return -1;
	g->guard.check_secret = gate_secret_check;
	g->guard.gave_secret = gate_secret_gave;
	gate_secret_no_core();
	gate_secret_redact_known(g);
	gate_bind_open(g);
	/* While nobody waits. */
	if (redactor_prepare(g->redactor, e) < 0)
		log_warn("nothing can be redacted, so nothing is shown: %s", e->msg);
	return 0;
}

void gate_secret_close(struct gate *g)
{
	gate_bind_close(g);
	secrets_free(take_ptr(g->guard.secrets));
}
