/* A sandbox as a row of the registry, and back. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "hub/sandbox/internal.h"
#include "json/document/put.h"

enum { SPEC_MAX = 256 * 1024 };

/* ---- writing ------------------------------------------------------------------------------- */

char *hub_sandbox_spec_text(const struct sandbox_spec *spec, const struct volumes *volumes,
			    const struct bound *bound, const struct hub_modules *modules,
			    struct err *e)
{
	autobuf struct buf b = BUF_INIT(SPEC_MAX);
	struct json_writer w = json_writer(&b);

	json_write_object(&w);
	if (spec->cwd.p)
		json_put_str(&w, "cwd", spec->cwd);
	json_put_object(&w, "env");
	for (size_t i = 0; i < spec->n_env; i++) {
		json_write_key_str(&w, spec->env[i].name);
		json_write_str(&w, spec->env[i].value);
	}
	json_write_object_end(&w);
	volumes_write(volumes, &w);
	bound_write(bound, &w);
	if (modules && modules->names.n) {
		json_put_str(&w, "modules", modules->names);
		json_put_str(&w, "profiles", modules->profiles);
	}
	json_write_object_end(&w);
	return json_write_done(&w, e) < 0 ? NULL : buf_take(&b);
}

int hub_sandbox_set_labels(struct hub_sandbox *l, struct str labels, struct err *e)
{
	l->labels = labels.p ? mem_dup(labels.p, labels.n) : NULL;
	return labels.p && !l->labels ? err_set(e, ERR_LIMIT, "out of memory") : 0;
}

static struct store_sandbox row_of(const struct hub_sandbox *l)
{
	return (struct store_sandbox){
		.seq = l->seq,
		.id = str_of(l->id),
		.template = str_of(l->template),
		.spec = str_of(l->spec),
		.labels = str_of(l->labels),
		.source = l->source[0] ? str_of(l->source) : STR_NONE,
		.state = str_of(hub_sandbox_state_names[l->state]),
		.retention = str_of(hub_sandbox_retention_names[l->retention]),
		.generation = l->generation,
		.created_ms = l->created_ms,
		.changed_ms = l->changed_ms,
		.deadline_ms = l->deadline_ms,
		.ttl_ms = l->ttl_ms,
		.idle_ms = l->idle_ms,
		.code = l->why ? str_of(err_info(l->why->code)->name) : STR_NONE,
		.why = l->why ? str_of(l->why->msg) : STR_NONE,
		.memory = l->limits.memory,
		.disk = l->limits.disk,
		.pids = l->limits.pids,
		.cpu_milli = l->limits.cpu_milli,
		.files = l->limits.files,
		.debug = l->limits.debug,
		.root = l->limits.root,
		.network = str_of(l->network),
		.owner = str_of(l->owner),
		.spent_cpu_ms = l->spent.cpu_ms,
		.spent_out = l->spent.bytes_out,
		.lasts = l->state == SANDBOX_STOPPED || l->state == SANDBOX_COLD ||
			 (l->state == SANDBOX_RUNNING && volumes_written(l->volumes)),
	};
}

static int add_event(const struct hub_sandbox *l, const char *kind, struct str detail,
		     struct err *e)
{
	const struct store_event v = {
		.at_ms = clock_unix_ms(),
		.sandbox = str_of(l->id),
		.kind = str_of(kind),
		.detail = detail,
		.owner = str_of(l->owner),
	};

	return store_event_add(l->all->store, &v, e);
}

static int write_row(const struct hub_sandbox *l, const char *kind, struct str detail,
		     struct err *e)
{
	const struct store_sandbox r = row_of(l);
	int result = l->stored ? store_sandbox_change(l->all->store, &r, e)
			       : store_sandbox_add(l->all->store, &r, l->spec_of, e);

	return result == 0 && kind ? add_event(l, kind, detail, e) : result;
}

int hub_sandboxes_batch(struct hub_sandboxes *all, struct err *e)
{
	if (all->batch)
		return err_set(e, ERR_CONFLICT, "the registry is writing several changes already");
	if (all->store && store_begin(all->store, e) < 0)
		return -1;
	all->batch = true;
	return 0;
}

static void set_unsaved(struct hub_sandbox *l, bool unsaved)
{
	l->all->stats.unsaved -= l->unsaved;
	l->unsaved = unsaved;
	l->all->stats.unsaved += l->unsaved;
}

static void set_in_batch(struct hub_sandbox *l, bool in_batch)
{
	l->all->n_in_batch -= l->in_batch;
	l->in_batch = in_batch;
	l->all->n_in_batch += l->in_batch;
}

/* The rollback also undid what this transaction wrote for others. The children of a fork are the
 * newest rows. */
static void settle_batch(struct hub_sandboxes *all, bool undone)
{
	if (undone)
		all->forgotten_stored = 0;
	for (struct hub_sandbox *l = all->newest; l && all->n_in_batch; l = l->older) {
		if (l->in_batch && undone)
			set_unsaved(l, true);
		set_in_batch(l, false);
	}
}

int hub_sandboxes_batch_end(struct hub_sandboxes *all, bool keep, struct err *e)
{
	int result = 0;

	all->batch = false;
	if (all->store && keep)
		result = store_commit(all->store, e);
	else if (all->store)
		store_rollback(all->store);
	settle_batch(all, !keep || result < 0);
	hub_sandboxes_written(all);
	return result;
}

/* Some failures roll back the whole transaction: the rest is written in a new one, or each row
 * by itself. */
static void mend_batch(struct hub_sandboxes *all)
{
	struct err e = ERR_INIT;

	if (store_is_open(all->store))
		return;
	settle_batch(all, true);
	all->batch = store_begin(all->store, &e) == 0;
}

static int write_whole(struct hub_sandbox *l, const char *kind, struct str detail, struct err *e)
{
	struct store *store = l->all->store;

	if (store_begin(store, e) < 0)
		return -1;
	if (write_row(l, kind, detail, e) == 0)
		return store_commit(store, e);
	store_rollback(store);
	return -1;
}

static int write_in_batch(struct hub_sandbox *l, const char *kind, struct str detail, struct err *e)
{
	int result = write_row(l, kind, detail, e);

	set_in_batch(l, result == 0);
	if (result < 0)
		mend_batch(l->all);
	return result;
}

static int write_it(struct hub_sandbox *l, const char *kind, struct str detail, struct err *e)
{
	if (!l->all->store)
		return 0;
	return l->all->batch ? write_in_batch(l, kind, detail, e) : write_whole(l, kind, detail, e);
}

int hub_sandbox_save(struct hub_sandbox *l, const char *kind, struct str detail, struct err *e)
{
	struct hub_sandboxes *all = l->all;
	bool first = all->stats.unsaved == 0; /* of a trouble that may last */
	int result = write_it(l, kind, detail, e);

	set_unsaved(l, result < 0);
	if (result < 0) {
		all->stats.store_failures++;
		if (first || log_on(LOG_DEBUG))
			log_error("sandbox %s: %s", l->id, e->msg);
	} else {
		l->stored = true;
		free(take_ptr(l->spec));
	}
	if (!all->batch)
		hub_sandboxes_written(all);
	return result;
}

void hub_sandbox_tell(struct hub_sandbox *l, const char *kind, struct str detail)
{
	struct err e = ERR_INIT;

	if (l->all->store && add_event(l, kind, detail, &e) < 0)
		log_warn("sandbox %s: %s is not among the events: %s", l->id, kind, e.msg);
	hub_sandboxes_tell_watches(l->all);
}

/* ---- reading ------------------------------------------------------------------------------- */

/* The index of a name in a table; n if it is missing. */
static size_t row_place(struct str name, const char *const *names, size_t n)
{
	size_t i = 0;

	while (i < n && !str_is(name, names[i]))
		i++;
	return i;
}

enum err_code hub_sandbox_code_of(struct str name)
{
	for (int code = ERR_NONE + 1; code < ERR_CODES; code++) {
		if (str_is(name, err_info((enum err_code)code)->name))
			return (enum err_code)code;
	}
	return ERR_BUG;
}

static int read_why(struct hub_sandbox *l, const struct store_sandbox *r, struct err *e)
{
	if (!r->code.p)
		return 0;
	l->why = calloc(1, sizeof(*l->why));
	if (!l->why)
		return err_set(e, ERR_LIMIT, "out of memory");
	l->why->code = hub_sandbox_code_of(r->code);
	snprintf(l->why->msg, sizeof(l->why->msg), "%.*s", STR_ARG(r->why));
	return 0;
}

static int read_modules(struct str spec, struct hub_sandbox *l, struct err *e)
{
	AUTO(json_free) struct json_doc *doc = spec.n ? json_parse(spec, NULL, e) : NULL;
	const struct json_val *v = json_root(doc);

	if (spec.n && !doc)
		return -1;
	return hub_sandbox_set_modules(l,
				       &(struct hub_modules){ json_str(json_get(v, "modules")),
							      json_str(json_get(v, "profiles")) },
				       e);
}

int hub_sandbox_set_modules(struct hub_sandbox *l, const struct hub_modules *m, struct err *e)
{
	if (!m->names.n)
		return 0;
	l->modules = mem_dup(m->names.p, m->names.n);
	l->profiles = m->profiles.n ? mem_dup(m->profiles.p, m->profiles.n) : NULL;
	return !l->modules || (m->profiles.n && !l->profiles)
		     ? err_set(e, ERR_LIMIT, "out of memory")
		     : 0;
}

static struct bound *find_bound(void *arg, struct str id)
{
	const struct hub_sandboxes *all = arg;
	const struct hub_sandbox *l = all->oldest;

	while (l && !(l->bound && str_is(id, l->bound->id)))
		l = l->newer;
	return l ? l->bound : NULL;
}

static bool needs_bound(void *arg, struct str id)
{
	return find_bound(arg, id) != NULL;
}

int hub_sandboxes_open_bound(struct hub_sandboxes *all, struct err *e)
{
	if (!all->store)
		return 0;
	for (struct hub_sandbox *l = all->oldest; l; l = l->newer) {
		if (l->bound && bound_open(l->bound, all->jobs.folder, e) < 0)
			return -1;
	}
	bound_sweep(all->jobs.folder, needs_bound, all);
	return 0;
}

static int load_one(void *arg, const struct store_sandbox *r, struct err *e)
{
	struct hub_sandboxes *all = arg;
	size_t state = row_place(r->state, hub_sandbox_state_names, SANDBOX_STATES);
	size_t retention = row_place(r->retention, hub_sandbox_retention_names, RETENTIONS);
	struct hub_sandbox *l;

	if (state == SANDBOX_STATES || retention == RETENTIONS ||
	    r->template.n >= sizeof(l->template) || r->source.n >= sizeof(l->source) ||
	    r->owner.n > OWNER_MAX || sandbox_id_check(r->id, e) < 0)
		return err_set(e, ERR_STORE_CORRUPT, "the registry has a sandbox that can't be");
	all->last_seq = r->seq - 1;
	l = hub_sandbox_new(all, r->id, e);
	if (!l)
		return -1;
	snprintf(l->template, sizeof(l->template), "%.*s", STR_ARG(r->template));
	snprintf(l->source, sizeof(l->source), "%.*s", STR_ARG(r->source));
	snprintf(l->owner, sizeof(l->owner), "%.*s", STR_ARG(r->owner));
	all->stats.by_state[l->state]--;
	l->state = (enum hub_sandbox_state)state;
	all->stats.by_state[l->state]++;
	l->stored = true;
	l->generation = r->generation;
	l->retention = (enum hub_sandbox_retention)retention;
	l->created_ms = r->created_ms;
	l->changed_ms = r->changed_ms;
	l->deadline_ms = r->deadline_ms;
	l->ttl_ms = r->ttl_ms;
	l->idle_ms = r->idle_ms;
	l->spent = (struct hub_sandbox_budget){ r->spent_cpu_ms, r->spent_out };
	l->limits = (struct limits){ .memory = r->memory,
				     .disk = r->disk,
				     .pids = r->pids,
				     .cpu_milli = r->cpu_milli,
				     .files = r->files,
				     .debug = r->debug,
				     .root = r->root };
	if (volumes_read(r->spec, &l->volumes, e) < 0)
		return err_wrap(e, "the volumes of sandbox %s", l->id);
	if (!hub_sandbox_is_gone(l) && bound_read(r->spec, find_bound, all, &l->bound, e) < 0)
		return err_wrap(e, "the secrets of sandbox %s", l->id);
	if (!hub_sandbox_is_gone(l) && read_modules(r->spec, l, e) < 0)
		return err_wrap(e, "the modules of sandbox %s", l->id);
	if (r->network.p && !(l->network = strndup(r->network.p, r->network.n)))
		return err_set(e, ERR_LIMIT, "out of memory");
	return hub_sandbox_set_labels(l, r->labels, e) < 0 ? -1 : read_why(l, r, e);
}

int hub_sandboxes_load(struct hub_sandboxes *all, struct err *e)
{
	if (!all->store)
		return 0;
	if (store_forgotten(all->store, &all->forgotten, e) < 0 ||
	    store_sandboxes(all->store, load_one, all, e) < 0 ||
	    store_sandbox_last(all->store, &all->last_seq, e) < 0 || jobs_load(all, e) < 0)
		return -1;
	all->forgotten_stored = all->forgotten;
	return 0;
}

struct reader {
	void (*each)(void *arg, const struct hub_sandbox_event *v);
	void *arg;
};

static int on_event(void *arg, const struct store_event *v, struct err *e)
{
	const struct reader *r = arg;

	r->each(r->arg, &(struct hub_sandbox_event){ v->seq, v->at_ms, v->sandbox, v->kind,
						     v->detail, v->owner });
	return 0;
}

int hub_sandboxes_events_kept(struct hub_sandboxes *all, uint64_t *ret_oldest, uint64_t *ret_newest,
			      struct err *e)
{
	*ret_oldest = *ret_newest = 0;
	return all->store ? store_events_kept(all->store, ret_oldest, ret_newest, e) : 0;
}

int hub_sandboxes_events(struct hub_sandboxes *all, const struct hub_sandbox_events *of,
			 unsigned max, void (*each)(void *arg, const struct hub_sandbox_event *v),
			 void *arg, struct err *e)
{
	const struct store_events_of which = { of->after, of->sandbox, of->owner };
	struct reader r = { each, arg };

	return all->store ? store_events(all->store, &which, max, on_event, &r, e) : 0;
}
