/*
 * Create and fork. A new sandbox is in the table from the start, so that nobody else takes its id,
 * and in the registry before any client is told. If the registry fails, the sandbox is destroyed.
 */
#include <stdio.h>
#include <stdlib.h>

#include "hub/sandbox/internal.h"

enum { FORK_MAX = 64 };

/* ---- checks -------------------------------------------------------------------------------- */

static int check_open(const struct hub_sandboxes *all, struct err *e)
{
	return all->stopping || !all->box ? err_set(e, ERR_CANCELLED, "Holt is shutting down") : 0;
}

/* Nobody is told the state of what belongs to others. */
static int check_id(const struct hub_sandboxes *all, struct str id, struct str owner, struct err *e)
{
	const struct hub_sandbox *l;

	if (sandbox_id_check(id, e) < 0)
		return -1;
	l = hub_sandboxes_get(all, id);
	if (l && l->state != SANDBOX_TERMINATED && !str_is(owner, l->owner))
		return err_set(e, ERR_NAME_TAKEN, "the id %s is taken", l->id);
	if (l && l->state != SANDBOX_TERMINATED)
		return err_set(e, ERR_NAME_TAKEN, "there is a sandbox %s already, and it is %s",
			       l->id, hub_sandbox_state_names[l->state]);
	return 0;
}

static int check_spec(const struct hub_sandboxes *all, const struct hub_sandbox_spec *spec,
		      struct err *e)
{
	if (spec->retention != RETAIN_DESTROY && !all->snapshots)
		return err_set(
			e, ERR_INVALID,
			"retention: this hub keeps no files, so it carries out \"destroy\" only, "
			"not \"%s\"",
			hub_sandbox_retention_names[spec->retention]);
	if (spec->box.ttl_ms > SANDBOX_TIMEOUT_MAX_MS || spec->idle_ms > SANDBOX_TIMEOUT_MAX_MS)
		return err_set(e, ERR_INVALID, "a deadline: at most %d days",
			       (int)(SANDBOX_TIMEOUT_MAX_MS / 86400000));
	return 0;
}

struct hub_sandbox *hub_sandbox_new_named(struct hub_sandboxes *all, struct str id,
					  struct str owner, struct err *e)
{
	char made[ID_MAX];
	struct hub_sandbox *l;

	if (id.p && check_id(all, id, owner, e) < 0)
		return NULL;
	if (!id.p)
		id_make(made, "sbx");
	l = hub_sandbox_new(all, id.p ? id : str_of(made), e);
	if (!l)
		return NULL;
	if (!id.p)
		l->generation = 1; /* nobody ever had such a name */
	snprintf(l->owner, sizeof(l->owner), "%.*s", STR_ARG(owner));
	return l;
}

/* ---- a new sandbox ------------------------------------------------------------------------- */

void hub_sandbox_replace_old(struct hub_sandbox *l)
{
	struct hub_sandbox *old = l->chain;

	while (old && strcmp(old->id, l->id) != 0)
		old = old->chain;
	if (old)
		hub_sandbox_forget(old);
}

int hub_sandbox_bear(struct hub_sandbox *l, struct sandbox *sb, struct err *e)
{
	/* why one that starts again has older files than it had */
	const struct err why = l->why ? *l->why : ERR_INIT;
	char mark[SANDBOX_MARK_MAX];
	int result;

	hub_sandbox_begin(l, sb);
	hub_sandbox_mark(l, mark);
	if (sandbox_set_record(sb, str_of(mark), e) < 0)
		return -1;
	result = hub_sandbox_set_state(l, SANDBOX_RUNNING, why.code ? &why : NULL, e);
	hub_sandbox_arm(l);
	return result;
}

void hub_sandbox_stillborn(struct hub_sandbox *l)
{
	struct err ignored;

	hub_sandbox_let_go(l);
	l->stored = false;
	if (hub_sandbox_set_state(l, SANDBOX_TERMINATED, NULL, &ignored) == 0)
		hub_sandbox_forget(l);
}

/* ---- create -------------------------------------------------------------------------------- */

static void on_undone(void *arg, struct sandbox *sb, const struct err *err)
{
	struct hub_sandbox_op *op = arg;

	hub_sandbox_op_end(op, &op->err);
}

static void create_undo(struct hub_sandbox_op *op, struct sandbox *sb)
{
	hub_sandbox_stillborn(op->hs);
	sandbox_destroy_start(sb, on_undone, op);
}

static void on_served(void *arg, const struct err *err)
{
	struct hub_sandbox_op *op = arg;
	struct sandbox *sb = op->hs->box; /* alive in the engine until it is destroyed */

	if (!err) {
		hub_sandbox_replace_old(op->hs);
		hub_sandbox_op_end(op, NULL);
	} else if (!sb || op->hs->ending) { /* somebody else has ended it */
		hub_sandbox_op_end(op, err);
	} else {
		op->err = *err;
		create_undo(op, sb);
	}
}

static void on_inlet(void *arg, const struct err *err)
{
	struct hub_sandbox_op *op = arg;

	if (err || !network_serve(op->hs, on_served, op, &op->err))
		on_served(op, err ? err : op->err.code ? &op->err : NULL);
}

static void on_created(void *arg, struct sandbox *sb, const struct err *err)
{
	struct hub_sandbox_op *op = arg;

	if (err) {
		hub_sandbox_stillborn(op->hs);
		hub_sandbox_op_end(op, err);
	} else if (hub_sandbox_bear(op->hs, sb, &op->err) < 0) {
		create_undo(op, sb);
	} else if (!inlet_serve(op->hs, on_inlet, op, &op->err)) {
		on_inlet(op, op->err.code ? &op->err : NULL);
	}
}

static struct hub_sandbox *make_prepare(struct hub_sandboxes *all,
					const struct hub_sandbox_spec *spec, struct err *e)
{
	AUTO(volumes_unref) struct volumes *volumes = NULL;
	AUTO(bound_end) struct bound *bound = NULL;
	autofree char *text = NULL;
	struct hub_sandbox *l;
	bool needs;

	if (check_open(all, e) < 0 || check_spec(all, spec, e) < 0)
		return NULL;
	if (spec->n_volumes) {
		volumes = volumes_find(all->roots, spec->volumes, spec->n_volumes,
				       spec->by_operator, e);
		if (!volumes)
			return NULL;
	}
	if (network_needs_authority(all, spec->network, &needs, e) < 0 ||
	    (spec->modules.names.n && inlet_check(all, e) < 0))
		return NULL;
	if (spec->secrets.n || needs) {
		if (!spec->network.n || !all->jobs.folder) {
			err_set(e, ERR_INVALID, "secrets: nothing is granted to the sandbox");
			return NULL;
		}
		bound = hub_sandboxes_bind(all, &spec->secrets, e);
		if (!bound)
			return NULL;
	}
	text = all->store ? hub_sandbox_spec_text(&spec->box, volumes, bound, &spec->modules, e)
			  : NULL;
	if (all->store && !text)
		return NULL;
	l = hub_sandbox_new_named(all, spec->id, spec->owner, e);
	if (!l)
		return NULL;
	if (hub_sandbox_set_labels(l, spec->labels, e) < 0 ||
	    hub_sandbox_set_modules(l, &spec->modules, e) < 0) {
		hub_sandbox_stillborn(l);
		return NULL;
	}
	l->spec = take_ptr(text);
	l->volumes = take_ptr(volumes);
	l->bound = take_ptr(bound);
	snprintf(l->template, sizeof(l->template), "%.*s",
		 STR_ARG(spec->box.template.p ? spec->box.template : STR_LIT("host")));
	l->limits = spec->box.limits;
	l->ttl_ms = spec->box.ttl_ms;
	l->idle_ms = spec->idle_ms;
	l->retention = spec->retention;
	if (spec->network.n && !(l->network = strndup(spec->network.p, spec->network.n)))
		abort(); /* what follows could not tell it from no network */
	return l;
}

void hub_sandbox_create_start(struct hub_sandboxes *all, const struct hub_sandbox_spec *spec,
			      hub_sandbox_cb on_done, void *arg)
{
	struct err e = ERR_INIT;
	struct sandbox_mount mounts[VOLUMES_MAX + BOUND_MOUNTS + INLET_MOUNTS];
	struct env_var env[SANDBOX_ENV_MAX + BOUND_MAX + BOUND_VARIABLES + INLET_VARIABLES];
	struct sandbox_spec box = spec->box;
	struct hub_sandbox *l = make_prepare(all, spec, &e);

	if (!l) {
		hub_sandbox_later(all, NULL, on_done, arg, &e);
		return;
	}
	box.id = str_of(l->id);
	box.mounts = mounts;
	box.n_mounts = volumes_mounts(l->volumes, 0, mounts);
	bound_mounts(l->bound, mounts, &box.n_mounts);
	inlet_mounts(l, mounts, &box.n_mounts);
	if ((l->bound || l->modules) && box.n_env <= SANDBOX_ENV_MAX) {
		memcpy(env, box.env, box.n_env * sizeof(*env));
		bound_env(l->bound, env, &box.n_env);
		inlet_env(l, env, &box.n_env);
		box.env = env;
	}
	/* Its ttl_ms applies when no hub runs, which could keep its files. */
	if (spec->retention != RETAIN_DESTROY)
		box.ttl_ms = 0;
	sandbox_create_start(all->box, &box, on_created, hub_sandbox_op_new(all, l, on_done, arg));
}

/* ---- fork ---------------------------------------------------------------------------------- */

struct forking {
	struct hub_sandboxes *all;
	struct hub_sandbox *source; /* busy until the end */
	struct hub_sandbox *children[FORK_MAX]; /* references */
	size_t n;
	hub_sandbox_fork_cb on_done;
	void *arg;
	size_t undoing, serving; /* so many are to answer */
	struct err err;
};

static void end_fork(struct forking *f, const struct err *err)
{
	if (err)
		f->on_done(f->arg, NULL, 0, err);
	else
		f->on_done(f->arg, f->children, f->n, NULL);
	for (size_t i = 0; i < f->n; i++)
		hub_sandbox_unref(f->children[i]);
	hub_sandbox_busy(f->source, -1);
	free(f);
}

static void drop_children(struct forking *f)
{
	for (size_t i = 0; i < f->n; i++)
		hub_sandbox_stillborn(f->children[i]);
}

static void on_child_undone(void *arg, struct sandbox *sb, const struct err *err)
{
	struct forking *f = arg;

	if (--f->undoing == 0)
		end_fork(f, &f->err);
}

/* A child that is NULL has ended already. */
static void undo_fork(struct forking *f, struct sandbox *const *children)
{
	drop_children(f);
	for (size_t i = 0; i < f->n; i++)
		f->undoing += children[i] != NULL;
	if (!f->undoing) {
		end_fork(f, &f->err);
		return;
	}
	for (size_t i = 0, n = f->n; i < n; i++) {
		if (children[i])
			sandbox_destroy_start(children[i], on_child_undone, f);
	}
}

static int bear_all(struct forking *f, struct sandbox *const *children, struct err *e)
{
	struct err ignored = ERR_INIT;
	int result = 0;

	if (hub_sandboxes_batch(f->all, e) < 0)
		return -1;
	for (size_t i = 0; result == 0 && i < f->n; i++)
		result = hub_sandbox_bear(f->children[i], children[i], e);
	if (hub_sandboxes_batch_end(f->all, result == 0, result == 0 ? e : &ignored) < 0)
		result = -1;
	return result;
}

static void forked_end(struct forking *f)
{
	struct sandbox *children[FORK_MAX];

	if (!f->err.code) {
		for (size_t i = 0; i < f->n; i++)
			hub_sandbox_replace_old(f->children[i]);
		end_fork(f, NULL);
		return;
	}
	for (size_t i = 0; i < f->n; i++)
		children[i] = f->children[i]->box;
	undo_fork(f, children);
}

static void on_child_served(void *arg, const struct err *err)
{
	struct forking *f = arg;

	if (err && !f->err.code)
		f->err = *err;
	if (--f->serving == 0)
		forked_end(f);
}

static void serve_children(struct forking *f)
{
	for (size_t i = 0; i < f->n && !f->err.code; i++) {
		f->serving += inlet_serve(f->children[i], on_child_served, f, &f->err);
		if (!f->err.code)
			f->serving += network_serve(f->children[i], on_child_served, f, &f->err);
	}
	if (!f->serving)
		forked_end(f);
}

static void on_forked(void *arg, struct sandbox *const *children, size_t n, const struct err *err)
{
	struct forking *f = arg;

	if (err) {
		drop_children(f);
		end_fork(f, err);
	} else if (bear_all(f, children, &f->err) < 0) {
		undo_fork(f, children);
	} else {
		serve_children(f);
	}
}

static int name_children(struct forking *f, const struct hub_sandbox_fork_spec *spec, struct err *e)
{
	for (size_t i = 0; i < spec->n; i++) {
		struct hub_sandbox *l = hub_sandbox_new_named(
			f->all, spec->ids ? spec->ids[i] : STR_NONE, str_of(f->source->owner), e);

		if (!l)
			return -1;
		f->children[f->n++] = hub_sandbox_ref(l);
		snprintf(l->source, sizeof(l->source), "%s", f->source->id);
		snprintf(l->template, sizeof(l->template), "%s", f->source->template);
		if (hub_sandbox_set_labels(
			    l, spec->has_labels ? spec->labels : str_of(f->source->labels), e) < 0)
			return -1;
		l->limits = f->source->limits;
		l->volumes = volumes_ref(f->source->volumes);
		l->volumes_gone = f->source->volumes_gone;
		l->bound = bound_ref(f->source->bound);
		l->spec_of = f->source->seq;
		l->ttl_ms = f->source->ttl_ms;
		l->idle_ms = f->source->idle_ms;
		l->retention = f->source->retention;
		if (f->source->network && !(l->network = strdup(f->source->network)))
			return err_set(e, ERR_LIMIT, "out of memory");
		if (hub_sandbox_set_modules(l,
					    &(struct hub_modules){ str_of(f->source->modules),
								   str_of(f->source->profiles) },
					    e) < 0)
			return -1;
	}
	return 0;
}

static int check_source(const struct hub_sandbox *source, struct err *e)
{
	return source->state == SANDBOX_PAUSED && !source->ending && !source->stopping
		     ? 0
		     : hub_sandbox_check_runs(source, e);
}

static void on_refused(void *arg)
{
	struct forking *f = arg;

	drop_children(f);
	end_fork(f, &f->err);
}

static void make_split(struct forking *f)
{
	struct str ids[FORK_MAX];

	for (size_t i = 0; i < f->n; i++) {
		ids[i] = str_of(f->children[i]->id);
		budget_inherit(f->children[i], f->source);
	}
	sandbox_fork_start(f->source->box, (uint32_t)f->n, ids, on_forked, f);
}

static void on_counted(void *arg, const struct err *err)
{
	struct forking *f = arg;

	if (err)
		f->err = *err;
	if (err || check_source(f->source, &f->err) < 0 ||
	    hub_sandbox_check_budget(f->source, &f->err) < 0)
		on_refused(f);
	else
		make_split(f);
}

static int check_fork(const struct forking *f, size_t n, struct err *e)
{
	if (check_open(f->all, e) < 0)
		return -1;
	if (n < 1 || n > FORK_MAX)
		return err_set(e, ERR_INVALID, "replicas: from 1 to %d", FORK_MAX);
	return check_source(f->source, e);
}

void hub_sandbox_fork_start(struct hub_sandbox *source, const struct hub_sandbox_fork_spec *spec,
			    hub_sandbox_fork_cb on_done, void *arg)
{
	struct forking *f = calloc(1, sizeof(*f));

	if (!f)
		abort(); /* out of memory: no callback could report it */
	f->all = source->all;
	f->source = source;
	hub_sandbox_busy(source, 1);
	f->on_done = on_done;
	f->arg = arg;
	if (check_fork(f, spec->n, &f->err) < 0 || name_children(f, spec, &f->err) < 0)
		hub_sandboxes_later(f->all, on_refused, f);
	else if (!hub_sandbox_count(f->source, on_counted, f))
		make_split(f);
}
