#include "op/sandbox_make.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "box/host/box.h"
#include "call/once.h"
#include "call/profile.h"
#include "hub/sandbox/snapshots.h"
#include "modules/upstream.h"
#include "op/module/module.h"
#include "op/budget.h"
#include "op/label.h"
#include "op/sandbox.h"
#include "op/secret.h"
#include "op/snapshot.h"
#include "op/template.h"
#include "op/workspace.h"

/* ---- what is made -------------------------------------------------------------------------- */

static const struct field made_fields[] = {
	VIEWS_ROW(sandbox_view_table, "The new sandboxes."),
	FIELD(struct sandboxes_view, ids, .flags = FIELD_REQUIRED,
	      .doc = "Ids of the new sandboxes."),
	FIELD(struct sandboxes_view, made_ms, .flags = FIELD_REQUIRED,
	      .doc = "How long it took, in milliseconds."),
	FIELD_NAMED(struct sandboxes_view, first, "sandbox", .flags = FIELD_REQUIRED,
		    .doc = "Id of the first new sandbox."),
	FIELD_NAMED_ENUM(struct sandboxes_view, first_state, "state", hub_sandbox_state_names,
			 .flags = FIELD_REQUIRED, .doc = "State of the first new sandbox."),
};
static const struct field_table made_table = FIELD_TABLE(struct sandboxes_view, made_fields);

/* All or none. Their names are known before they are made (call/once.h). Its memory is the
 * call's. */
struct making {
	struct call *call;
	uint64_t begun_ns;
	struct str ids[COPIES_MAX];
	size_t n;
	int64_t until; /* when they have to end, in Unix time; 0: never */
	struct hub_sandbox *one; /* to which a workspace is being attached */
};

static void making_answer(struct making *m, struct hub_sandbox *const *made)
{
	double took_ms = (double)(clock_ns() - m->begun_ns) / 1e6;
	struct sandbox_view views[COPIES_MAX];
	struct sandboxes_view r = {
		.sandboxes = { views, m->n },
		.ids = { m->ids, m->n },
		.made_ms = took_ms,
	};
	struct err e = ERR_INIT;

	for (size_t i = 0; i < m->n; i++) {
		if (sandbox_view(m->call, made[i], &views[i], &e) < 0) {
			call_fail(m->call, &e);
			return;
		}
		hub_sandbox_note_made(made[i], took_ms);
		views[i].has_made_ms = true;
		views[i].made_ms = took_ms;
	}
	r.first = views[0].sandbox;
	r.first_state = views[0].state;
	if (call_op(m->call)->result == &made_table)
		call_answer(m->call, &r);
	else
		call_answer(m->call, views);
}

static void on_discarded(void *arg, struct hub_sandbox *l, const struct err *err)
{
	if (err)
		log_warn("could not end a sandbox that nobody waits for: %s", err->msg);
}

static int making_bound(struct making *m, struct hub_sandbox *const *made, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		if (budget_apply(made[i], m->until, e) < 0)
			return -1;
	}
	return 0;
}

static void making_end(void *arg, struct hub_sandbox *const *made, size_t n, const struct err *err)
{
	struct making *m = arg;
	struct err e;

	if (err) {
		call_fail(m->call, err);
	} else if (making_bound(m, made, n, &e) < 0) {
		for (size_t i = 0; i < n; i++)
			hub_sandbox_terminate_start(made[i], on_discarded, NULL);
		call_fail(m->call, &e);
	} else if (call_cancelled(m->call) && !once_kept(m->call)) {
		for (size_t i = 0; i < n; i++)
			hub_sandbox_terminate_start(made[i], on_discarded, NULL);
		err_set(&e, ERR_CANCELLED, "%s was cancelled", call_op(m->call)->action);
		call_fail(m->call, &e);
	} else {
		making_answer(m, made);
	}
}

static int making_name(struct making *m, const struct str *ids, struct err *e)
{
	char made[ID_MAX];

	for (size_t i = 0; i < m->n; i++) {
		char *copy;

		if (ids) {
			m->ids[i] = ids[i];
			continue;
		}
		id_make(made, "sbx");
		copy = arena_dup(call_arena(m->call), str_of(made), e);
		if (!copy)
			return -1;
		m->ids[i] = str_of(copy);
	}
	return 0;
}

/* "a b c" */
static int making_plan(const struct making *m, struct buf *to, struct err *e)
{
	for (size_t i = 0; i < m->n; i++) {
		if (buf_addf(to, e, "%s%.*s", i ? " " : "", STR_ARG(m->ids[i])) < 0)
			return -1;
	}
	return 0;
}

static void making_take_plan(struct making *m, struct str plan)
{
	for (size_t i = 0; i < m->n; i++) {
		const char *space = memchr(plan.p, ' ', plan.n);
		size_t length = space ? (size_t)(space - plan.p) : plan.n;

		m->ids[i] = (struct str){ plan.p, length };
		plan.p += length + (space != NULL);
		plan.n -= length + (space != NULL);
	}
}

/* Made by a call that was cut off, so by an earlier hub: all of them, as they are all or none. */
static bool making_is_made(struct making *m, struct hub_sandbox **ret)
{
	struct err e;

	for (size_t i = 0; i < m->n; i++) {
		struct hub_sandbox_info info = { .adopted = false };

		ret[i] = hub_sandboxes_find(call_sandboxes(m->call), m->ids[i], &e);
		if (ret[i] && call_sees(m->call, ret[i]))
			hub_sandbox_info(ret[i], &info);
		if (!info.adopted)
			return false;
	}
	return true;
}

/* Whether they are to be made; else the call has ended. */
static bool making_once(struct making *m)
{
	autobuf struct buf text = BUF_INIT(IDEMPOTENT_PLAN_MAX);
	struct hub_sandbox *made[COPIES_MAX];
	struct err e = ERR_INIT;
	struct str plan;

	if (making_plan(m, &text, &e) < 0) {
		call_fail(m->call, &e);
		return false;
	}
	plan = buf_str(&text);
	switch (once_begin(m->call, &plan)) {
	case ONCE_NEW:
		return true;
	case ONCE_AGAIN:
		making_take_plan(m, plan);
		if (!making_is_made(m, made))
			return true;
		making_answer(m, made);
		return false;
	case ONCE_OVER:
		break;
	}
	return false;
}

/* n of these ids, or of new ones where there are none; source: of forks. NULL: the call has ended,
 * failed or answered as the first time. */
static struct making *making_begin(struct call *c, struct field_strs ids, size_t n,
				   struct str source)
{
	struct err e = ERR_INIT;
	struct making *m = arena_alloc(call_arena(c), sizeof(*m), &e);

	if (m) {
		m->call = c;
		m->begun_ns = clock_ns();
		m->n = n;
	}
	if (!m || making_name(m, ids.n ? ids.p : NULL, &e) < 0) {
		call_fail(c, &e);
		return NULL;
	}
	if (!making_once(m))
		return NULL;
	if (budget_admit(c, n, source, &m->until, &e) == 0)
		return m;
	call_fail(c, &e);
	return NULL;
}

/* ---- sandbox.create ------------------------------------------------------------------------ */

enum {
	TEMPLATE_MAX = 255,
	ENV_MAX = 256,
	PATH_BYTES_MAX = 4095,
	ID_BYTES_MAX = 64,
	MODULES_MAX = 64,
};

struct limits_request {
	uint64_t memory_mb, disk_mb;
	uint32_t pids, open_files;
	bool has_cpus;
	double cpus;
};
static const struct field limits_fields[] = {
	FIELD(struct limits_request, memory_mb, .max = LIMIT_MEMORY_MAX / MIB,
	      .doc = "Memory in MiB for processes and files together; 0: the server's default."),
	FIELD(struct limits_request, disk_mb, .max = LIMIT_MEMORY_MAX / MIB,
	      .doc = "MiB of this memory that files may take; 0: the server's default."),
	FIELD(struct limits_request, pids, .max = LIMIT_PIDS_MAX,
	      .doc = "Processes and threads at once; 0: the server's default."),
	FIELD(struct limits_request, cpus, .max = LIMIT_CPU_MAX / 1000,
	      .has = FIELD_HAS(struct limits_request, has_cpus),
	      .doc = "Number of processors, such as 0.5; at least 0.01."),
	FIELD(struct limits_request, open_files, .max = LIMIT_FILES_MAX,
	      .doc = "Open files of each process, at least 16, at most what the host allows; "
		     "0: the server's default."),
};
static const struct field_table limits_table = FIELD_TABLE(struct limits_request, limits_fields);

struct create_request {
	struct str template, id, cwd;
	bool has_network;
	struct network_request network;
	bool of_template; /* the network is; no client says so */
	struct limits_request limits;
	enum sandbox_user user;
	bool debug;
	struct field_map env, labels;
	struct str workspace;
	enum workspace_mode workspace_mode;
	struct secret_refs secrets;
	struct field_strs profiles;
	struct field_strs modules;
	uint64_t ttl_seconds, idle_seconds;
	enum hub_sandbox_retention retention;
	struct {
		const struct volume *p;
		size_t n;
	} volumes;
	bool by_operator; /* the volumes are; no client says so */
};
static const struct field volume_fields[] = {
	FIELD(struct volume, host, .flags = FIELD_REQUIRED | FIELD_PATH,
	      .doc = "Path on the host."),
	FIELD(struct volume, inside, .flags = FIELD_REQUIRED | FIELD_PATH, .doc = "Absolute path."),
	FIELD_ENUM(struct volume, mode, volume_mode_names, .def = DEFAULT_ENUM(VOLUME_RO),
		   .doc = "rw keeps .git/hooks etc. read-only."),
};
static const struct field_table volume_table = FIELD_TABLE(struct volume, volume_fields);
/* Limits stand in an object or beside the rest, as a door likes: both rows are of the same
 * member. */
static const struct field create_fields[] = {
	FIELD(struct create_request, template, .min = 1, .max = TEMPLATE_MAX,
	      .def = DEFAULT_STR("host"), .doc = "Template to start from, such as \"host\"."),
	FIELD(struct create_request, id, .min = 1, .max = ID_BYTES_MAX,
	      .doc = "Id of the sandbox: letters, digits, _ and -, but neither _ nor - first. "
		     "Absent: one is generated."),
	FIELD_OBJECT(struct create_request, network, network_request_table,
		     .has = FIELD_HAS(struct create_request, has_network),
		     .doc = "What it may reach. Default: what its template says."),
	FIELD_OBJECT(struct create_request, limits, limits_table, .doc = "Resource limits."),
	FIELD_NAMED(struct create_request, limits.memory_mb, "memory_mb",
		    .min = LIMIT_MEMORY_MIN / MIB, .max = LIMIT_MEMORY_MAX / MIB,
		    .doc = "Memory in MiB for its processes and files together; 1024 if absent."),
	FIELD_NAMED(struct create_request, limits.disk_mb, "disk_mb", .min = LIMIT_DISK_MIN / MIB,
		    .max = LIMIT_MEMORY_MAX / MIB,
		    .doc = "MiB of this memory that its files may take; 512, or half of a small "
			   "memory, if absent."),
	FIELD_NAMED(struct create_request, limits.pids, "pids", .min = LIMIT_PIDS_MIN,
		    .max = LIMIT_PIDS_MAX, .doc = "Processes and threads at once; 512 if absent."),
	FIELD_NAMED(struct create_request, limits.cpus, "cpus", .max = LIMIT_CPU_MAX / 1000,
		    .has = FIELD_HAS(struct create_request, limits.has_cpus),
		    .doc = "Number of processors it may use, such as 0.5 or 2, at least 0.01; all "
			   "if absent."),
	FIELD_NAMED(
		struct create_request, limits.open_files, "open_files", .min = LIMIT_FILES_MIN,
		.max = LIMIT_FILES_MAX,
		.doc = "Files that each process may have open; what the host allows if absent."),
	FIELD_ENUM(struct create_request, user, sandbox_user_names,
		   .def = DEFAULT_ENUM(SANDBOX_USER),
		   .doc = "User that its programs run as. user: uid 1000; root: uid 0, with ids "
			  "and rights that hold only in the sandbox."),
	FIELD(struct create_request, debug,
	      .doc = "Let its programs trace each other, for gdb, strace or LeakSanitizer."),
	FIELD(struct create_request, env, .max = ENV_MAX,
	      .doc = "Environment variables of all its programs."),
	BOUND_SECRETS_ROW(struct create_request),
	PROFILES_ROW(struct create_request),
	FIELD(struct create_request, modules, .max = MODULES_MAX, .item_min = 1,
	      .item_max = MODULE_NAME_MAX,
	      .doc = "Modules whose tools its programs may call, with the rights of its "
		     "owner; \"*\" for all."),
	FIELD(struct create_request, cwd, .flags = FIELD_PATH, .min = 1, .max = PATH_BYTES_MAX,
	      .doc = "Working directory of its programs, to which paths are relative; "
		     "/workspace if absent."),
	FIELD(struct create_request, ttl_seconds, .max = SANDBOX_TIMEOUT_MAX,
	      .doc = "Time to live in seconds; 0: no end."),
	FIELD(struct create_request, idle_seconds, .max = SANDBOX_TIMEOUT_MAX,
	      .doc = "Seconds that it may be unused; 0: no limit. An open stream counts as use."),
	FIELD_ENUM(struct create_request, retention, hub_sandbox_retention_names,
		   .def = DEFAULT_ENUM(RETAIN_DESTROY),
		   .doc = "What happens to it when its time is over. What this version can't do is "
			  "refused."),
	FIELD(struct create_request, labels, .max = LABELS_MAX, .item_max = LABEL_VALUE_MAX,
	      .doc = "Labels by which lists can be filtered: keys of letters, digits and "
		     "._-/, and values."),
	FIELD_OBJECTS(
		struct create_request, volumes, volume_table, .max = VOLUMES_MAX,
		.doc = "Folders or files of the host to show in the sandbox, where the operator "
		       "allows it."),
	FIELD(struct create_request, workspace, .min = 1, .max = ID_BYTES_MAX,
	      .doc = "Name of a workspace to attach at /workspace."),
	FIELD_ENUM(struct create_request, workspace_mode, workspace_mode_names,
		   .def = DEFAULT_ENUM(WORKSPACE_WRITE),
		   .doc = "write: its changes there become a revision when it ends; copy: they are "
			  "not kept."),
};
static const struct field_table create_table = FIELD_TABLE(struct create_request, create_fields);

static int text_order(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* Each once, in order; all of them are "*" alone. */
static int modules_normalize(struct field_strs *m, struct arena *a, struct err *e)
{
	struct str *to = arena_array(a, m->n, sizeof(*to), e);
	size_t n = 0;

	if (!to)
		return -1;
	for (size_t i = 0; i < m->n; i++) {
		if (str_is(m->p[i], "*")) {
			*m = (struct field_strs){ &m->p[i], 1 };
			return 0;
		}
		to[i] = m->p[i];
	}
	qsort(to, m->n, sizeof(*to), text_order);
	for (size_t i = 0; i < m->n; i++) {
		if (n == 0 || !str_eq(to[n - 1], to[i]))
			to[n++] = to[i];
	}
	*m = (struct field_strs){ to, n };
	return 0;
}

/* As the hub keeps them. What they are called is known to the operator's file alone. */
static int modules_text(struct call *c, const struct field_strs *m, struct str *ret, struct err *e)
{
	struct upstreams *all = call_upstreams(c);
	autobuf struct buf text = BUF_INIT(MODULES_MAX * (CONFIG_SERVER_NAME_MAX + 1));

	*ret = STR_NONE;
	if (!m->n)
		return 0;
	if (!all)
		return err_set(e, ERR_UNSUPPORTED, "there are no modules here");
	if (upstreams_check(all, e) < 0)
		return -1;
	for (size_t i = 0; i < m->n; i++) {
		if ((!str_is(m->p[i], "*") && !upstreams_find(all, m->p[i], e)) ||
		    buf_addf(&text, e, "%s%.*s", i ? " " : "", STR_ARG(m->p[i])) < 0)
			return -1;
	}
	*ret = (struct str){ arena_dup(call_arena(c), buf_str(&text), e), text.n };
	return ret->p ? 0 : -1;
}

/* By what they are judged when they are called (op/module/inlet.c). What the operator has given
 * without profiles is given. */
static int modules_profiles(struct call *c, const struct create_request *q, struct str *ret,
			    struct err *e)
{
	autobuf struct buf text = BUF_INIT(CONFIG_PROFILES_ASKED * 7 * CONFIG_NAME_MAX);
	struct json_writer w = json_writer(&text);

	*ret = STR_LIT(SANDBOX_UNPROFILED);
	if (!q->modules.n || (!q->profiles.n && call_is_operator(c)))
		return 0;
	json_write_array(&w);
	for (size_t i = 0; i < q->profiles.n; i++)
		json_write_str(&w, q->profiles.p[i]);
	json_write_array_end(&w);
	if (json_write_done(&w, e) < 0)
		return -1;
	*ret = (struct str){ arena_dup(call_arena(c), buf_str(&text), e), text.n };
	return ret->p ? 0 : -1;
}

static uint32_t cpu_milli(const struct limits_request *w)
{
	return (uint32_t)(w->cpus * 1000 + 0.5);
}

/* 0 says nothing. */
static int create_limit(const char *name, bool has, uint32_t limit, uint64_t *value, struct err *e)
{
	uint32_t n = *value > UINT32_MAX ? UINT32_MAX : (uint32_t)*value;

	if (profile_limit(name, has, limit, n > 0, &n, e) < 0)
		return -1;
	*value = n;
	return 0;
}

/* As if the caller had asked for it: who may grant what decides as always. */
static int create_add_network(struct create_request *q, const struct field_strs *more,
			      struct arena *a, struct err *e)
{
	struct field_strs *to = &q->network.allow_domains;
	struct str *all = arena_array(a, to->n + more->n, sizeof(*all), e);

	if (!all)
		return -1;
	for (size_t i = 0; i < to->n + more->n; i++)
		all[i] = i < to->n ? to->p[i] : more->p[i - to->n];
	*to = (struct field_strs){ all, to->n + more->n };
	q->has_network = true;
	return 0;
}

/* By the names of the operator's file. */
static int modules_expand(struct call *c, struct field_strs *m, struct err *e)
{
	struct str *p = arena_array(call_arena(c), m->n, sizeof(*p), e);

	for (size_t i = 0; p && i < m->n; i++) {
		p[i] = m->p[i];
		if (module_expand(c, &p[i], e) < 0)
			return -1;
	}
	m->p = p;
	return p ? 0 : -1;
}

static int create_expand(struct call *c, void *request, struct err *e)
{
	struct create_request *q = request;
	struct config_profile p = { .name = STR_NONE };
	const struct config_profile_limits *l = &p.limits;
	uint64_t pids = q->limits.pids;
	bool any;

	if (modules_expand(c, &q->modules, e) < 0 || profile_names(c, &q->profiles, e) < 0 ||
	    profile_of(c, &q->profiles, &p, &any, e) < 0 ||
	    create_limit("memory_mb", l->has_memory_mb, l->memory_mb, &q->limits.memory_mb, e) <
		    0 ||
	    create_limit("disk_mb", l->has_disk_mb, l->disk_mb, &q->limits.disk_mb, e) < 0 ||
	    create_limit("pids", l->has_pids, l->pids, &pids, e) < 0 ||
	    create_limit("ttl_seconds", l->has_ttl_seconds, l->ttl_seconds, &q->ttl_seconds, e) < 0)
		return -1;
	q->limits.pids = (uint32_t)pids;
	for (size_t i = 0; any && i < q->modules.n; i++) {
		if (profile_check_server(&p, q->modules.p[i], e) < 0)
			return -1;
	}
	/* who asks for no network has none */
	return p.network.n == 0 || (q->network.has_mode && q->network.mode == NETWORK_NONE)
		     ? 0
		     : create_add_network(q, &p.network, call_arena(c), e);
}

static int create_normalize(void *request, struct arena *a, struct err *e)
{
	struct create_request *q = request;

	if (op_check_env(&q->env, e) < 0 || secret_refs_normalize(&q->secrets, &q->env, a, e) < 0 ||
	    labels_normalize(&q->labels, a, e) < 0 || modules_normalize(&q->modules, a, e) < 0)
		return -1;
	/* 0 would mean the default to the engine. */
	if (q->limits.has_cpus && cpu_milli(&q->limits) < LIMIT_CPU_MIN)
		return err_set(e, ERR_INVALID, "cpus: at least 0.01");
	return q->has_network ? network_normalize(&q->network, a, e) : 0;
}

/* A request without a network gets that of its template; one that says none has none. */
static int create_complete(struct call *c, void *request, struct err *e)
{
	struct create_request *q = request;
	int wants = q->has_network ? 0 : template_network(c, q->template, &q->network, e);

	q->of_template = wants > 0;
	q->has_network = q->network.allow.n > 0;
	if (!q->cwd.n)
		q->cwd = template_cwd(c, q->template);
	return wants < 0 ? -1 : 0;
}

static int create_network(struct call *c, const struct create_request *q, struct str *ret,
			  struct err *e)
{
	if (network_text(c, &q->network, ret, e) == 0)
		return 0;
	return q->of_template ? err_wrap(e, "the template wants a network (mode none asks for a "
					    "sandbox without)")
			      : -1;
}

static void create_on_attached(void *arg, struct workspace *w, const struct err *err)
{
	struct making *m = arg;
	struct hub_sandbox *l = m->one;

	(void)w;
	if (err)
		hub_sandbox_terminate_start(l, on_discarded, NULL);
	making_end(m, &l, 1, err);
}

static void create_on_done(void *arg, struct hub_sandbox *l, const struct err *err)
{
	struct making *m = arg;
	const struct create_request *q = call_request(m->call);
	struct err e = ERR_INIT;
	struct workspace *w;

	if (err || !q->workspace.p) {
		making_end(m, &l, 1, err);
		return;
	}
	m->one = l;
	w = call_workspace(m->call, q->workspace, &e);
	if (w)
		workspace_attach_start(w, l, q->workspace_mode == WORKSPACE_WRITE,
				       create_on_attached, m);
	else
		create_on_attached(m, NULL, &e);
}

static void sandbox_create_run(struct call *c, const void *request)
{
	const struct create_request *q = request;
	struct err e = ERR_INIT;
	struct env_var *env = arena_array(call_arena(c), q->env.n, sizeof(*env), &e);
	struct bound_spec secrets;
	struct str network;
	struct making *m;
	struct hub_modules modules;
	struct str labels;

	call_about(c)->sandbox = q->id;
	if (!env || (q->workspace.p && !call_workspace(c, q->workspace, &e)) ||
	    create_network(c, q, &network, &e) < 0 ||
	    secret_bind(c, &q->secrets, network, &secrets, &e) < 0 ||
	    modules_text(c, &q->modules, &modules.names, &e) < 0 ||
	    modules_profiles(c, q, &modules.profiles, &e) < 0 ||
	    labels_text(&q->labels, call_arena(c), &labels, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	for (size_t i = 0; i < q->env.n; i++)
		env[i] = (struct env_var){ q->env.p[i].key, q->env.p[i].value };
	m = making_begin(c, (struct field_strs){ &q->id, q->id.p != NULL }, 1, STR_NONE);
	if (m)
		hub_sandbox_create_start(
			call_sandboxes(c),
			&(struct hub_sandbox_spec){
				.box = { .template = q->template,
					 .limits = { .memory = q->limits.memory_mb * MIB,
						     .disk = q->limits.disk_mb * MIB,
						     .pids = q->limits.pids,
						     .cpu_milli = cpu_milli(&q->limits),
						     .files = q->limits.open_files,
						     .debug = q->debug,
						     .root = q->user == SANDBOX_ROOT },
					 .ttl_ms = q->ttl_seconds * 1000,
					 .env = env,
					 .n_env = q->env.n,
					 .cwd = q->cwd },
				.id = m->ids[0],
				.network = network,
				.idle_ms = q->idle_seconds * 1000,
				.retention = q->retention,
				.labels = labels,
				.volumes = q->volumes.p,
				.n_volumes = q->volumes.n,
				.by_operator = q->by_operator || call_is_operator(c),
				.owner = call_owner(c),
				.secrets = secrets,
				.modules = modules,
			},
			create_on_done, m);
}

const struct op sandbox_create_op = {
	.action = "sandbox.create",
	.doc = "Creates a sandbox.",
	.effect = OP_WRITE,
	.flags = OP_KEYED | OP_LIFECYCLE,
	.request = &create_table,
	.result = &sandbox_view_table,
	.expand = create_expand,
	.normalize = create_normalize,
	.complete = create_complete,
	.run = sandbox_create_run,
};

void sandbox_need(const struct sandbox_needed *n, void *request)
{
	struct create_request *q = request;

	field_defaults(&create_table, q);
	q->id = n->id;
	q->cwd = n->cwd;
	q->labels = n->labels;
	q->env = n->env;
	q->idle_seconds = n->idle_seconds;
	q->volumes.p = n->volumes;
	q->volumes.n = n->n_volumes;
	q->by_operator = true;
}

/* ---- copies -------------------------------------------------------------------------------- */

/* Normalized, replicas is their number and id is among ids. */
struct copies {
	uint32_t replicas;
	struct str id;
	struct field_strs ids;
	bool has_labels;
	struct field_map labels;
};
#define COPIES_ROWS(S, labels_doc_)                                                                \
	FIELD_NAMED(                                                                               \
		S, copies.replicas, "replicas", .min = 1, .max = COPIES_MAX,                       \
		.doc = "Number of new sandboxes, all of the same instant; all are made or none. "  \
		       "Default: 1."),                                                             \
		FIELD_NAMED(S, copies.id, "id", .min = 1, .max = ID_BYTES_MAX,                     \
			    .doc = "Id of the new sandbox, if it is only one; absent: one is "     \
				   "generated."),                                                  \
		FIELD_NAMED(S, copies.ids, "ids", .min = 1, .max = COPIES_MAX, .item_min = 1,      \
			    .item_max = ID_BYTES_MAX, .doc = "Ids of all new sandboxes."),         \
		FIELD_NAMED(S, copies.labels, "labels", .max = LABELS_MAX,                         \
			    .item_max = LABEL_VALUE_MAX, .has = FIELD_HAS(S, copies.has_labels),   \
			    .doc = labels_doc_)

static int copies_normalize(struct copies *w, struct arena *a, struct err *e)
{
	struct str *one;

	if (labels_normalize(&w->labels, a, e) < 0)
		return -1;
	if (w->ids.n && (w->id.p || (w->replicas && w->replicas != w->ids.n)))
		return err_set(e, ERR_INVALID,
			       "body: ids names all of them: no id, and count is their number");
	if (w->id.p && w->replicas > 1)
		return err_set(e, ERR_INVALID, "body: id names one; ids names %u", w->replicas);
	if (w->id.p) {
		one = arena_alloc(a, sizeof(*one), e);
		if (!one)
			return -1;
		*one = w->id;
		w->id = STR_NONE;
		w->ids = (struct field_strs){ one, 1 };
	}
	w->replicas = w->ids.n ? (uint32_t)w->ids.n : w->replicas ? w->replicas : 1;
	return 0;
}

/* Without memory it is "", which only a pattern for everything matches. */
static struct str copies_image(struct call *c, struct str image)
{
	struct err e;
	char *copy = arena_dup(call_arena(c), image, &e);

	return copy ? (struct str){ copy, image.n } : STR_LIT("");
}

/* ---- sandbox.fork -------------------------------------------------------------------------- */

struct fork_request {
	struct str sandbox, template;
	struct copies copies;
	bool pause_source;
};
static const struct field fork_fields[] = {
	OP_SANDBOX_ROW(struct fork_request),
	COPIES_ROWS(struct fork_request,
		    "Labels of the new sandboxes; those of the source if absent."),
	FIELD(struct fork_request, pause_source,
	      .doc = "No effect: the source is always paused while it is copied."),
	FIELD(struct fork_request, template, .max = TEMPLATE_MAX,
	      .doc = "Ignored: the source's template is used."),
};
static const struct field_table fork_table = FIELD_TABLE(struct fork_request, fork_fields);

static int fork_normalize(void *request, struct arena *a, struct err *e)
{
	struct fork_request *q = request;

	q->pause_source = false;
	q->template = STR_NONE;
	return copies_normalize(&q->copies, a, e);
}

/* The new sandboxes are made from what the source was made from. */
static struct str fork_image(struct call *c, const void *request)
{
	const struct fork_request *q = request;
	struct hub_sandbox_info i;
	struct err e;
	struct hub_sandbox *l = hub_sandboxes_find(call_sandboxes(c), q->sandbox, &e);

	if (!l || !call_sees(c, l))
		return STR_NONE;
	hub_sandbox_info(l, &i);
	return copies_image(c, i.template);
}

/* Repeats an earlier answer, whether or not the source still exists. */
static void sandbox_fork_run(struct call *c, const void *request)
{
	const struct fork_request *q = request;
	struct making *m = making_begin(c, q->copies.ids, q->copies.replicas, q->sandbox);
	struct err e = ERR_INIT;
	struct hub_sandbox *l = m ? call_hub_sandbox(c, q->sandbox, &e) : NULL;
	struct str labels;

	if (l && labels_text(&q->copies.labels, call_arena(c), &labels, &e) == 0)
		hub_sandbox_fork_start(l,
				       &(struct hub_sandbox_fork_spec){
					       m->n, m->ids, q->copies.has_labels, labels },
				       making_end, m);
	else if (m)
		call_fail(c, &e);
}

const struct op sandbox_fork_op = {
	.action = "sandbox.fork",
	.doc = "Forks a running sandbox: makes new ones with its files as they are at one instant.",
	.effect = OP_WRITE,
	.flags = OP_KEYED | OP_LIFECYCLE,
	.request = &fork_table,
	.target = OP_TARGET(struct fork_request, sandbox),
	.result = &made_table,
	.image = fork_image,
	.normalize = fork_normalize,
	.run = sandbox_fork_run,
};

/* ---- snapshot.restore ---------------------------------------------------------------------- */

struct restore_request {
	struct str snapshot;
	struct copies copies;
};
static const struct field restore_fields[] = {
	FIELD(struct restore_request, snapshot, .flags = FIELD_REQUIRED, .min = 1,
	      .max = ID_BYTES_MAX, .doc = "Id of the snapshot."),
	COPIES_ROWS(struct restore_request, "Labels of the new sandboxes."),
};
static const struct field_table restore_table = FIELD_TABLE(struct restore_request, restore_fields);

static int restore_normalize(void *request, struct arena *a, struct err *e)
{
	return copies_normalize(&((struct restore_request *)request)->copies, a, e);
}

static struct str restore_image(struct call *c, const void *request)
{
	const struct restore_request *q = request;
	char image[SNAPSHOT_IMAGE_MAX];
	struct err e;
	struct snapshot *s = call_snapshot(c, q->snapshot, &e);

	if (!s)
		return STR_NONE;
	snapshot_image(s, image);
	return copies_image(c, str_of(image));
}

static void snapshot_restore_run(struct call *c, const void *request)
{
	const struct restore_request *q = request;
	struct making *m;
	struct err e = ERR_INIT;
	struct snapshot *s;
	struct str labels;

	call_about(c)->snapshot = q->snapshot;
	m = making_begin(c, q->copies.ids, q->copies.replicas, STR_NONE);
	s = m ? call_snapshot(c, q->snapshot, &e) : NULL;
	if (s && labels_text(&q->copies.labels, call_arena(c), &labels, &e) == 0)
		snapshot_restore_start(s, &(struct snapshot_restore){ m->n, m->ids, labels },
				       making_end, m);
	else if (m)
		call_fail(c, &e);
}

const struct op snapshot_restore_op = {
	.action = "snapshot.restore",
	.doc = "Creates sandboxes with the files of a snapshot, each with its own id, "
	       "randomness and processes.",
	.effect = OP_WRITE,
	.flags = OP_KEYED | OP_LIFECYCLE,
	.request = &restore_table,
	.result = &made_table,
	.image = restore_image,
	.normalize = restore_normalize,
	.run = snapshot_restore_run,
};
