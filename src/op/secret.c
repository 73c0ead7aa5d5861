#include "op/secret.h"

#include <stdlib.h>

#include "config/config.h"
#include "guard/policy/policy.h"
#include "guard/secret/secrets.h"
#include "base/when.h"
#include "hub/sandbox/sandbox.h"
#include "call/guard.h"
#include "op/network.h"
#include "op/ops.h"

_Static_assert(SECRET_REFS_MAX == (int)SECRETS_READ_MAX, "one read for one request");

/* ---- references ---------------------------------------------------------------------------- */

#define R struct secret_ref
#define SECRET_REF_ROWS                                                                            \
	FIELD(R, ref, .flags = FIELD_REQUIRED, .min = 1, .max = SECRETS_NAME_MAX,                  \
	      .doc = "Name of the secret."),                                                       \
		FIELD(R, file, .def = DEFAULT_BOOL(false),                                         \
		      .doc = "Set the variable to the name of a file with the value, which is "    \
			     "removed when the program ends.")
static const struct field ref_fields[] = { SECRET_REF_ROWS };
static const struct field bound_fields[] = {
	SECRET_REF_ROWS,
	FIELD(R, begin, .def = DEFAULT_BOOL(false),
	      .doc = "A log-in may begin in this sandbox: tokens that its program gets are kept. "
		     "Only the operator may say so."),
};
#undef R
const struct field_table secret_ref_table = FIELD_TABLE(struct secret_ref, ref_fields);
const struct field_table secret_bound_table = FIELD_TABLE(struct secret_ref, bound_fields);

static int secret_refs_order(const void *a, const void *b)
{
	return str_cmp(((const struct secret_ref *)a)->name, ((const struct secret_ref *)b)->name);
}

static int secret_ref_check(const struct secret_ref *r, const struct field_map *env, struct err *e)
{
	if (r->name.n > SECRET_VARIABLE_MAX || memchr(r->name.p, '=', r->name.n))
		return err_set(e, ERR_INVALID,
			       "secrets: a variable's name has at most %d bytes and no '='",
			       SECRET_VARIABLE_MAX);
	for (size_t i = 0; env && i < env->n; i++) {
		if (str_eq(env->p[i].key, r->name))
			return err_set(e, ERR_INVALID, "secrets: %.*s is in env, too",
				       STR_ARG(r->name));
	}
	return secrets_check_name(r->ref, e) < 0 ? err_wrap(e, "secrets") : 0;
}

int secret_refs_normalize(struct secret_refs *refs, const struct field_map *env, struct arena *a,
			  struct err *e)
{
	struct secret_ref *p = arena_array(a, refs->n, sizeof(*p), e);

	if (!p)
		return -1;
	for (size_t i = 0; i < refs->n; i++) {
		p[i] = refs->p[i];
		if (secret_ref_check(&p[i], env, e) < 0)
			return -1;
	}
	qsort(p, refs->n, sizeof(*p), secret_refs_order);
	refs->p = p;
	return 0;
}

/* ---- grants -------------------------------------------------------------------------------- */

struct granting {
	struct call *call;
	const struct secret_refs *refs;
	struct secrets_read *read;
	secret_granted_fn on_granted;
	void *data;
};

static void secret_on_read(void *data, struct secret *const *values, const struct err *err)
{
	struct granting *g = data;
	const struct guard *guard = call_guard(g->call);
	struct exec_secret to[SECRET_REFS_MAX];
	struct err e = ERR_INIT;

	call_on_cancel(g->call, NULL, NULL);
	for (size_t i = 0; !err && i < g->refs->n; i++) {
		const struct secret_ref *r = &g->refs->p[i];
		struct str value = secret_expose(values[i], "given to a program");

		/* No byte of it may leave where it can't be redacted. */
		if (guard->gave_secret(guard->data, r->ref, value, &e) < 0)
			err = &e;
		to[i] = (struct exec_secret){ r->name, r->file ? value : secrets_text(value),
					      r->file };
	}
	g->on_granted(g->data, to, err ? 0 : g->refs->n, err);
	explicit_bzero(to, sizeof(to));
}

static void secret_on_cancel(void *data)
{
	struct granting *g = data;
	struct err e;

	secrets_read_cancel(g->read);
	err_set(&e, ERR_CANCELLED, "%s was cancelled", call_op(g->call)->action);
	g->on_granted(g->data, NULL, 0, &e);
}

bool secret_listed(const struct config_file *f, struct str who, struct str name)
{
	return f && policy_grants(f, who, POLICY_SECRETS) &&
	       policy_allows(f, who, STR_NONE, POLICY_SECRETS, name);
}

int secret_check(struct call *c, const struct secret_refs *refs, struct err *e)
{
	const struct guard *guard = call_guard(c);

	if (refs->n == 0)
		return 0;
	if (!guard || !guard->secrets)
		return err_set(e, ERR_UNSUPPORTED, "there are no secrets here");
	for (size_t i = 0; i < refs->n; i++) {
		if (guard->check_secret(guard->data, c, refs->p[i].ref, false, e) < 0)
			return -1;
	}
	return 0;
}

/* ---- those with hosts ---------------------------------------------------------------------- */

static int secret_check_bound(struct call *c, const struct secret_ref *r, struct str network,
			      struct err *e)
{
	const struct guard *guard = call_guard(c);
	struct net_rule hosts[NW_SECRET_HOSTS_MAX];
	const struct config_secret *s = NULL;
	size_t n = 0;

	if (!guard || !guard->secrets)
		return err_set(e, ERR_UNSUPPORTED, "there are no secrets here");
	if (r->file)
		return err_set(e, ERR_INVALID,
			       "secrets: a sandbox gets placeholders in variables, not in files");
	if (guard->check_secret(guard->data, c, r->ref, true, e) < 0)
		return -1;
	if (guard->policy)
		s = config_secret_bound(config_file(guard->policy->config), r->ref);
	if (!s || network_secret_hosts(s, hosts, &n, e) < 0)
		return s ? -1 : err_set(e, ERR_BUG, "a secret without hosts");
	if (r->begin && !s->has_login)
		return err_set(e, ERR_INVALID, "secrets: %.*s is no log-in", STR_ARG(r->ref));
	if (r->begin && !call_is_operator(c))
		return err_set(e, ERR_DENIED, "only the operator may begin a log-in");
	if (!network_reaches(network, hosts, n))
		return err_set(e, ERR_INVALID,
			       "secrets: %.*s is for requests to %.*s%s, which the sandbox can't "
			       "reach: add it to network",
			       STR_ARG(r->ref), STR_CUT(s->hosts.p[0], 100),
			       n > 1 ? " and others" : "");
	return 0;
}

int secret_bind(struct call *c, const struct secret_refs *refs, struct str network,
		struct bound_spec *ret, struct err *e)
{
	struct bound_ref *p = arena_array(call_arena(c), refs->n, sizeof(*p), e);

	if (!p)
		return -1;
	for (size_t i = 0; i < refs->n; i++) {
		if (secret_check_bound(c, &refs->p[i], network, e) < 0)
			return -1;
		p[i] = (struct bound_ref){ refs->p[i].name, refs->p[i].ref, refs->p[i].begin };
	}
	*ret = (struct bound_spec){ p, refs->n, str_of(call_principal(c)->name),
				    call_is_operator(c) };
	return 0;
}

/* ---- reading ------------------------------------------------------------------------------- */

static struct secrets_read *secret_start(struct granting *g, struct err *e)
{
	struct call *c = g->call;
	struct str *names = arena_array(call_arena(c), g->refs->n, sizeof(*names), e);

	for (size_t i = 0; names && i < g->refs->n; i++)
		names[i] = g->refs->p[i].ref;
	return names ? secrets_read_start(call_guard(c)->secrets, call_loop(c), names, g->refs->n,
					  secret_on_read, g, e)
		     : NULL;
}

void secret_grant(struct call *c, const struct secret_refs *refs, secret_granted_fn on_granted,
		  void *data)
{
	struct err e = ERR_INIT;
	struct granting *g;

	if (refs->n == 0) {
		on_granted(data, NULL, 0, NULL);
		return;
	}
	g = secret_check(c, refs, &e) < 0 ? NULL : arena_alloc(call_arena(c), sizeof(*g), &e);
	if (g)
		*g = (struct granting){
			.call = c, .refs = refs, .on_granted = on_granted, .data = data
		};
	if (!g || !(g->read = secret_start(g, &e)))
		on_granted(data, NULL, 0, &e);
	else
		call_on_cancel(c, secret_on_cancel, g);
}

/* ---- secret.set ---------------------------------------------------------------------------- */

struct set_request {
	struct str secret, value;
};
static const struct field set_fields[] = {
	FIELD(struct set_request, secret, .flags = FIELD_REQUIRED, .min = 1,
	      .max = SECRETS_NAME_MAX,
	      .doc = "Name of the secret: A-Z a-z 0-9 . _ -, with a letter or digit first."),
	FIELD(struct set_request, value, .flags = FIELD_REQUIRED | FIELD_SECRET, .min = 1,
	      .max = SECRETS_MAX,
	      .doc = "The value, at least 8 bytes. Nothing ever shows it again."),
};
static const struct field_table set_table = FIELD_TABLE(struct set_request, set_fields);

static const struct field view_fields[] = { SECRET_ROWS("secret") };
static const struct field_table view_table = FIELD_TABLE(struct secret_view, view_fields);

static struct secrets *secret_store(struct call *c, struct err *e)
{
	const struct guard *guard = call_guard(c);

	if (!guard || !guard->secrets)
		err_set(e, ERR_UNSUPPORTED, "there are no secrets here");
	return guard ? guard->secrets : NULL;
}

static int secret_find(struct secrets *s, struct str name, struct secret_view *ret,
		       char when[WHEN_MAX], struct err *e)
{
	autofree struct secrets_entry *p = NULL;
	size_t n;

	if (secrets_list(s, &p, &n, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		if (!str_eq(p[i].name, name))
			continue;
		when_text(when, p[i].changed_ms);
		*ret = (struct secret_view){ name, str_of(secrets_provider_names[p[i].provider]),
					     p[i].changed_ms ? str_of(when) : STR_NONE };
		return 0;
	}
	return err_set(e, ERR_SECRET_NOT_FOUND, "there is no secret %.*s", STR_ARG(name));
}

static void secret_set_run(struct call *c, const void *request)
{
	const struct set_request *q = request;
	struct err e = ERR_INIT;
	struct secrets *s = secret_store(c, &e);
	struct secret_view view;
	char when[WHEN_MAX];

	if (!s || secrets_set(s, q->secret, q->value, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	hub_sandboxes_secrets_changed(call_sandboxes(c));
	if (call_guard(c)->gave_secret(call_guard(c)->data, q->secret, q->value, &e) == 0 &&
	    secret_find(s, q->secret, &view, when, &e) == 0) {
		call_answer(c, &view);
	} else {
		err_unsure(&e);
		call_fail(c, &e);
	}
}

const struct op secret_set_op = {
	.action = "secret.set",
	.doc = "Stores or replaces a secret of the operator, encrypted.",
	.effect = OP_ADMINISTER,
	.flags = OP_IDEMPOTENT | OP_REPLACES,
	.request = &set_table,
	.result = &view_table,
	.run = secret_set_run,
};

/* ---- secret.list --------------------------------------------------------------------------- */

static const struct field all_fields[] = {
	FIELD_OBJECTS(struct secrets_view, secrets, view_table, .flags = FIELD_REQUIRED,
		      .doc = "Sorted by name."),
};
static const struct field_table all_table = FIELD_TABLE(struct secrets_view, all_fields);

static struct secret_view *secret_views(struct arena *a, const struct secrets_entry *p, size_t n,
					struct err *e)
{
	struct secret_view *views = arena_array(a, n, sizeof(*views), e);
	char(*when)[WHEN_MAX] = arena_array(a, n, sizeof(*when), e);

	for (size_t i = 0; views && when && i < n; i++) {
		when_text(when[i], p[i].changed_ms);
		views[i] = (struct secret_view){ p[i].name,
						 str_of(secrets_provider_names[p[i].provider]),
						 p[i].changed_ms ? str_of(when[i]) : STR_NONE };
	}
	return when ? views : NULL;
}

static void secret_list_run(struct call *c, const void *request)
{
	autofree struct secrets_entry *p = NULL;
	struct secrets_view all = { .secrets = { NULL, 0 } };
	struct err e = ERR_INIT;
	struct secrets *s = secret_store(c, &e);

	if (s && secrets_list(s, &p, &all.secrets.n, &e) == 0)
		all.secrets.p = secret_views(call_arena(c), p, all.secrets.n, &e);
	if (all.secrets.p)
		call_answer(c, &all);
	else
		call_fail(c, &e);
}

const struct op secret_list_op = {
	.action = "secret.list",
	.doc = "Lists the names of the operator's secrets, and where each comes from.",
	.effect = OP_ADMINISTER,
	.request = &op_nothing_table,
	.result = &all_table,
	.run = secret_list_run,
};

/* ---- secret.remove ------------------------------------------------------------------------- */

struct remove_request {
	struct str secret;
};
static const struct field remove_fields[] = {
	FIELD(struct remove_request, secret, .flags = FIELD_REQUIRED, .min = 1,
	      .max = SECRETS_NAME_MAX, .doc = "Name of the secret."),
};
static const struct field_table remove_table = FIELD_TABLE(struct remove_request, remove_fields);

static const struct field removed_fields[] = {
	FIELD(struct secret_removed, status, .flags = FIELD_REQUIRED, .doc = "Always removed."),
	FIELD(struct secret_removed, secret, .flags = FIELD_REQUIRED, .doc = "Name of the secret."),
};
static const struct field_table removed_table = FIELD_TABLE(struct secret_removed, removed_fields);

/* Running programs may still print it, so it is redacted until the hub ends. */
static void secret_remove_run(struct call *c, const void *request)
{
	const struct remove_request *q = request;
	struct err e = ERR_INIT;
	struct secrets *s = secret_store(c, &e);

	if (s && secrets_remove(s, q->secret, &e) == 0) {
		hub_sandboxes_secrets_changed(call_sandboxes(c));
		call_answer(c, &(struct secret_removed){ q->secret, STR_LIT("removed") });
	} else {
		call_fail(c, &e);
	}
}

const struct op secret_remove_op = {
	.action = "secret.remove",
	.doc = "Deletes a secret from the store; programs that have it keep it.",
	.effect = OP_ADMINISTER,
	.flags = OP_REPLACES,
	.request = &remove_table,
	.result = &removed_table,
	.run = secret_remove_run,
};
