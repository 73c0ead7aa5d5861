/* One module: its states, its calls, and when it may be tried again. */
#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "modules/internal.h"

enum { BACKOFF_MS = 500 }; /* doubled by each failure */

const char *const upstream_state_names[UPSTREAM_STATES] = {
	[UPSTREAM_IDLE] = "idle",	    [UPSTREAM_CONNECTING] = "connecting",
	[UPSTREAM_CONNECTED] = "connected", [UPSTREAM_ERROR] = "error",
	[UPSTREAM_CLOSED] = "closed",
};

static void upstream_set_state(struct upstream *u, enum upstream_state s)
{
	if (u->state == s)
		return;
	log_info("module %s: %s, was %s", u->name, upstream_state_names[s],
		 upstream_state_names[u->state]);
	u->state = s;
	upstreams_changed(u->all);
}

/* ---- the beginning and the end ------------------------------------------------------------- */

static void upstream_on_again(uv_timer_t *t);
static int upstream_check_call(const struct upstream *u, const struct upstream_call *c,
			       struct err *e);

/* Closed where no call of it may be made. */
static enum upstream_state upstream_rest(const struct upstream *u)
{
	return u->disabled || u->server->disabled || !grant_holds(u) ? UPSTREAM_CLOSED
								     : UPSTREAM_IDLE;
}

struct upstream *upstream_new(struct upstreams *all, struct config *c,
			      const struct config_server *s, struct err *e)
{
	struct upstream *u = calloc(1, sizeof(*u));

	if (!u)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	*u = (struct upstream){ .all = all,
				.config = config_ref(c),
				.server = s,
				.state = UPSTREAM_CLOSED,
				.log = BUF_INIT(2 * UPSTREAM_LOG_MAX) };
	snprintf(u->name, sizeof(u->name), "%.*s", STR_ARG(s->name));
	u->end = &u->waiting;
	uv_timer_init(all->loop, &u->again);
	u->again.data = u;
	all->open++;
	grant_digest(u);
	return u;
}

static void upstream_on_closed(uv_handle_t *h)
{
	struct upstream *u = h->data;
	struct upstreams *all = u->all;

	upstream_tools_unref(u->tools);
	offers_forget(u);
	free(u->watched);
	config_unref(u->config);
	buf_fini(&u->log);
	pins_free(u);
	grant_forget_reach(u);
	package_unref(u->package);
	package_unref(u->update);
	free(u);
	all->open--;
	upstreams_try_close(all);
}

void upstream_free(struct upstream *u)
{
	uv_close((uv_handle_t *)&u->again, upstream_on_closed);
}

/* Calls of it may still be under way. Where several end at once, it may be freed already, which
 * takes until the loop's next turn. */
void upstream_try_free(struct upstream *u)
{
	struct upstream **at = &u->all->gone;

	if (!u->is_gone || u->calls > 0 || u->conn || u->waiting || u->refusing || u->fetch)
		return;
	while (*at && *at != u)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = u->next;
	upstream_free(u);
}

void upstream_released(struct upstream *u)
{
	u->calls--;
	u->used_ms = uv_now(u->all->loop);
	upstream_try_free(u);
}

/* ---- waiting ------------------------------------------------------------------------------- */

static struct upstream_call *upstream_pop(struct upstream *u)
{
	struct upstream_call *c = u->waiting;

	u->waiting = c->next;
	if (!u->waiting)
		u->end = &u->waiting;
	return c;
}

/* Whoever is told may cancel others of them, make calls that wait anew, and even come here again;
 * it is freed, if at all, behind the last. */
static void upstream_refuse(struct upstream *u, const struct err *e)
{
	const struct mcp_answer a = { .e = e };
	struct upstream_call **at = &u->refused, *c;
	bool nested = u->refusing;

	while (*at)
		at = &(*at)->next;
	*at = u->waiting;
	u->waiting = NULL;
	u->end = &u->waiting;
	u->refusing = true;
	while ((c = u->refused)) {
		u->refused = c->next;
		c->on_done(c->owner, &a);
	}
	u->refusing = nested;
}

/* The first step, where a call waits and nothing stands in its way. */
static void upstream_connect(struct upstream *u)
{
	uint64_t now = uv_now(u->all->loop);
	struct err e = ERR_INIT;

	if (u->conn || !u->waiting)
		return;
	if (u->due_ms > now) {
		uv_timer_start(&u->again, upstream_on_again, u->due_ms - now, 0);
		return;
	}
	if (upstreams_make_room(u->all, &e) == 0)
		u->conn = conn_new(u, &e);
	if (u->conn) {
		upstream_set_state(u, UPSTREAM_CONNECTING);
		return;
	}
	upstream_refuse(u, &e);
	upstream_try_free(u);
}

/* A call whose tool is gone now is refused. */
static void upstream_send(struct upstream *u, struct upstream_call *c)
{
	struct mcp_answer a = { .e = NULL };
	struct err e = ERR_INIT;

	if (!c->tool.p) {
		c->on_done(c->owner, NULL);
		return;
	}
	if (upstream_check_call(u, c, &e) == 0 && conn_call(u->conn, c, &e) == 0)
		return;
	a.e = &e;
	c->on_done(c->owner, &a);
}

static void upstream_flush(struct upstream *u)
{
	while (u->waiting && u->conn && u->conn->ready)
		upstream_send(u, upstream_pop(u));
}

void upstream_ready(struct upstream *u)
{
	if (u->state != UPSTREAM_CONNECTED) {
		u->connects++;
		u->found = mcp_link_found(u->conn->link);
		u->why = (struct err)ERR_INIT;
	}
	u->used_ms = uv_now(u->all->loop);
	upstream_set_state(u, UPSTREAM_CONNECTED);
	upstreams_changed(u->all);
	upstream_flush(u);
}

static void upstream_on_again(uv_timer_t *t)
{
	struct upstream *u = t->data;

	upstream_flush(u);
	upstream_connect(u);
}

void upstream_lost(struct upstream *u, const struct err *e)
{
	uint64_t wait = (uint64_t)BACKOFF_MS << (u->failures < 6 ? u->failures : 6);

	struct err why;

	why_lost(u, e, &why);
	u->conn = NULL;
	u->why = why;
	u->failures++;
	u->due_ms = uv_now(u->all->loop) + wait;
	log_warn("module %s: %s", u->name, why.msg);
	upstream_set_state(u, UPSTREAM_ERROR);
	upstream_refuse(u, &why);
	upstream_try_free(u);
}

void upstream_drop(struct upstream *u, enum upstream_state then, const struct err *e)
{
	struct upstream_conn *k = take_ptr(u->conn);

	uv_timer_stop(&u->again);
	upstream_set_state(u, then);
	if (k)
		conn_end(k, e);
	upstream_refuse(u, e);
	upstream_try_free(u);
}

static void upstream_forgive(struct upstream *u)
{
	u->failures = 0;
	u->due_ms = 0;
	u->why = (struct err)ERR_INIT;
}

/* ---- changes ------------------------------------------------------------------------------- */

void upstream_unlink(struct upstream *u, const struct upstream_conn *k)
{
	struct upstream_conn **at = &u->retired;

	while (*at && *at != k)
		at = &(*at)->next;
	if (*at)
		*at = k->next;
}

void upstream_stop(struct upstream *u, const struct err *e)
{
	upstream_drop(u, UPSTREAM_CLOSED, e);
	while (u->retired)
		conn_end(u->retired, e);
}

/* Calls that were sent go on. */
static void upstream_retire(struct upstream *u)
{
	struct upstream_conn *k = take_ptr(u->conn);
	struct err e;

	if (!k)
		return;
	k->retired = true;
	if (k->calls) {
		k->next = u->retired;
		u->retired = k;
		return;
	}
	err_set(&e, ERR_CANCELLED, "the module is another now");
	conn_end(k, &e);
}

void upstream_change(struct upstream *u, struct config *c, const struct config_server *s)
{
	char was[sizeof(u->digest)];
	struct err e;

	memcpy(was, u->digest, sizeof(was));
	if (s) {
		config_ref(c);
		config_unref(u->config);
		u->config = c;
		u->server = s;
		packages_fit(u);
		u->revision = ++u->all->revisions;
		grant_digest(u);
	}
	if (s && was[0] && strcmp(u->digest, was) == 0 && upstream_rest(u) != UPSTREAM_CLOSED) {
		pins_recall(u);
		if (u->state == UPSTREAM_CLOSED)
			upstream_set_state(u, UPSTREAM_IDLE);
		return;
	}
	if (s && s->disabled) {
		err_set(&e, ERR_DENIED, "the operator has disabled the module %s", u->name);
		upstream_stop(u, &e);
	}
	upstream_retire(u);
	upstream_forgive(u);
	upstream_tools_unref(take_ptr(u->tools));
	offers_forget(u);
	pins_recall(u);
	if (s) {
		u->found = (struct mcp_found){ MCP_WIRE_FIND, MCP_BROKEN };
		err_set(&e, ERR_CANCELLED, "the module %s is another now", u->name);
	} else {
		err_set(&e, ERR_MODULE_NOT_FOUND, "there is no module %s any more", u->name);
	}
	upstream_drop(u, s ? upstream_rest(u) : UPSTREAM_CLOSED, &e);
}

static void upstream_approved_by(struct upstream *u, const char *digest, struct str who)
{
	snprintf(u->approved, sizeof(u->approved), "%s", digest);
	u->approved_ms = clock_unix_ms();
	snprintf(u->approved_by, sizeof(u->approved_by), "%.*s", STR_ARG(who));
}

/* What was fetched is run from now on. Approved tools stay so, and those that it changes are
 * quarantined; of a first package there are none. */
static int upstream_approve_update(struct upstream *u, struct str who,
				   const struct field_strs *tools, struct err *e)
{
	struct upstream was = *u;
	struct err why;

	if (tools->n)
		return err_set(e, ERR_CONFLICT, "the package of module %s is to be approved first",
			       u->name);
	upstream_approved_by(u, u->update_digest, who);
	u->package_image = u->update_image;
	u->update_image = (struct upstream_image){ .digest = "" };
	if (grant_write(u, e) < 0) {
		memcpy(u->approved, was.approved, sizeof(u->approved));
		memcpy(u->approved_by, was.approved_by, sizeof(u->approved_by));
		u->approved_ms = was.approved_ms;
		u->package_image = was.package_image;
		u->update_image = was.update_image;
		return -1;
	}
	packages_fit(u);
	grant_digest(u);
	upstream_retire(u);
	upstream_forgive(u);
	upstream_tools_unref(take_ptr(u->tools));
	offers_forget(u);
	u->found = (struct mcp_found){ MCP_WIRE_FIND, MCP_BROKEN };
	upstreams_changed(u->all);
	err_set(&why, ERR_CANCELLED, "the module %s is another now", u->name);
	upstream_drop(u, upstream_rest(u), &why);
	packages_sweep(u->all);
	return 0;
}

int upstream_approve(struct upstream *u, struct str who, const struct field_strs *tools,
		     struct err *e)
{
	struct upstream was = *u;
	bool same = grant_holds(u);

	if (u->update_digest[0])
		return upstream_approve_update(u, who, tools, e);
	if (!u->digest[0]) {
		*e = u->unfit;
		return -1;
	}
	if (tools->n && (!same || !u->tools))
		return err_set(e, ERR_CONFLICT, "the tools of module %s are not known yet",
			       u->name);
	upstream_approved_by(u, u->digest, who);
	if (!same) {
		was.pins = pins_swap(u, NULL);
		upstream_tools_unref(take_ptr(u->tools));
		offers_forget(u);
	}
	if ((u->tools ? pins_approve(u, tools, e) : grant_write(u, e)) < 0) {
		memcpy(u->approved, was.approved, sizeof(u->approved));
		memcpy(u->approved_by, was.approved_by, sizeof(u->approved_by));
		u->approved_ms = was.approved_ms;
		if (!same)
			free(pins_swap(u, was.pins));
		return -1;
	}
	if (!same)
		free(was.pins);
	upstreams_changed(u->all);
	upstream_forgive(u);
	if (u->state == UPSTREAM_CLOSED || u->state == UPSTREAM_ERROR)
		upstream_set_state(u, upstream_rest(u));
	return 0;
}

/* Written first, as all that an answer calls failed has no effect. */
int upstream_revoke(struct upstream *u, struct err *e)
{
	struct upstream was = *u;
	struct err why;

	u->approved[0] = '\0';
	u->approved_ms = 0;
	was.pins = pins_swap(u, NULL);
	if (grant_write(u, e) < 0) {
		memcpy(u->approved, was.approved, sizeof(u->approved));
		u->approved_ms = was.approved_ms;
		free(pins_swap(u, was.pins));
		return -1;
	}
	free(was.pins);
	err_set(&why, ERR_MODULE_UNAPPROVED, "the approval of module %s was revoked", u->name);
	upstream_stop(u, &why);
	return 0;
}

int upstream_enable(struct upstream *u, bool on, struct err *e)
{
	bool was = u->disabled;
	struct err why;

	u->disabled = !on;
	if (grant_write(u, e) < 0) {
		u->disabled = was;
		return -1;
	}
	if (!on) {
		err_set(&why, ERR_DENIED, "the module %s was disabled", u->name);
		upstream_stop(u, &why);
		return 0;
	}
	upstream_forgive(u);
	if (u->state == UPSTREAM_CLOSED || u->state == UPSTREAM_ERROR)
		upstream_set_state(u, upstream_rest(u));
	return 0;
}

int upstream_disconnect(struct upstream *u, struct err *e)
{
	struct err why;

	if (u->calls || u->waiting)
		return err_set(e, ERR_CONFLICT, "the module %s has calls under way", u->name);
	if (!u->conn)
		return 0;
	err_set(&why, ERR_CANCELLED, "the module %s was disconnected", u->name);
	upstream_drop(u, upstream_rest(u), &why);
	return 0;
}

/* ---- what it is ---------------------------------------------------------------------------- */

void upstream_info(struct upstream *u, struct upstream_info *ret)
{
	const struct upstream_tools *t = u->tools;
	struct err none;

	if (u->update_digest[0])
		snprintf(u->shown, sizeof(u->shown), "%s", u->update_digest);
	else
		snprintf(u->shown, sizeof(u->shown), "%s%s%.*s", u->digest, t ? "." : "",
			 SEEN_SHOWN, t ? t->seen : "");
	*ret = (struct upstream_info){
		.name = str_of(u->name),
		.server = u->server,
		.network = u->reach,
		.state = u->state,
		.digest = str_of(u->shown),
		.approved = grant_holds(u),
		.disabled = u->disabled || u->server->disabled,
		.why = u->why.code   ? &u->why
		     : !u->digest[0] ? &u->unfit
				     : NULL,
		.failures = u->failures,
		.calls = u->calls,
		.calls_total = u->calls_total,
		.connects = u->connects,
		.approved_ms = grant_holds(u) ? u->approved_ms : 0,
		.approved_by = grant_holds(u) ? str_of(u->approved_by) : STR_NONE,
		.pins = str_of(u->pins),
		.is_package = packages_wanted(u, &none) > 0,
		.package = u->package,
		.update = u->update,
		.fetching = u->fetch != NULL,
		.denied = u->denied,
		.n_denied = u->n_denied < UPSTREAM_DENIED ? u->n_denied : UPSTREAM_DENIED,
		.listed = t != NULL,
		.revision = u->revision,
	};
	for (int i = 0; i < UPSTREAM_LISTS; i++) {
		ret->lists[i].p = u->offers[i].p;
		ret->lists[i].n = u->offers[i].n;
	}
	if (!t)
		return;
	ret->version = t->version;
	ret->title = t->title;
	ret->instructions = t->instructions;
	ret->tools = t->p;
	ret->n_tools = t->n;
	ret->told = t->told;
}

static const struct upstream_tool *upstream_tool(const struct upstream *u, struct str name)
{
	for (size_t i = 0; u->tools && i < u->tools->n; i++) {
		if (str_eq(u->tools->p[i].name, name))
			return &u->tools->p[i];
	}
	return NULL;
}

static int upstream_check_itself(const struct upstream *u, struct err *e)
{
	if (upstreams_check(u->all, e) < 0)
		return -1;
	if (u->is_gone)
		return err_set(e, ERR_MODULE_NOT_FOUND, "there is no module %s any more", u->name);
	if (u->disabled || u->server->disabled)
		return err_set(e, ERR_DENIED, "the operator has disabled the module %s", u->name);
	if (!u->digest[0]) {
		*e = u->unfit;
		return -1;
	}
	if (!grant_holds(u))
		return err_set(e, ERR_MODULE_UNAPPROVED,
			       u->approved[0] ? "the module %s is another than was approved"
					      : "nobody has approved the module %s",
			       u->name);
	return 0;
}

int upstream_check(const struct upstream *u, struct str tool, struct err *e)
{
	const struct upstream_tool *t;

	if (upstream_check_itself(u, e) < 0)
		return -1;
	if (!tool.p)
		return 0;
	if (!config_server_shows(u->server, tool) ||
	    config_server_approval(u->server, tool) == CONFIG_DENY)
		return err_set(e, ERR_DENIED, "the operator's file hides the tool %.*s of %s",
			       STR_CUT(tool, 128), u->name);
	t = upstream_tool(u, tool);
	/* it may have others than were approved, which are quarantined */
	if (!u->tools || (!t && u->tools->recalled))
		return 0;
	if (!t)
		return err_set(e, ERR_MODULE_TOOL, "the module %s has no tool called \"%.*s\"",
			       u->name, STR_CUT(tool, 128));
	if (t->pin != UPSTREAM_PIN_APPROVED)
		return err_set(e, ERR_MODULE_UNAPPROVED,
			       "the tool %.*s of module %s is quarantined, since it is %s",
			       STR_CUT(tool, 128), u->name, upstream_pin_names[t->pin]);
	return 0;
}

int upstream_check_kind(const struct upstream *u, enum upstream_kind kind, struct err *e)
{
	struct str name = str_of(upstream_kind_methods[kind]);
	enum config_then then = config_server_approval(u->server, name);

	if (upstream_check_itself(u, e) < 0)
		return -1;
	if (!config_server_shows(u->server, name) || then == CONFIG_DENY ||
	    (then == CONFIG_ASK && kind == UPSTREAM_COMPLETE))
		return err_set(e, ERR_DENIED, "the operator's file does not allow %.*s of %s",
			       STR_ARG(name), u->name);
	return 0;
}

static int upstream_check_call(const struct upstream *u, const struct upstream_call *c,
			       struct err *e)
{
	return c->kind == UPSTREAM_CALL ? upstream_check(u, c->tool, e)
					: upstream_check_kind(u, c->kind, e);
}

/* ---- its log ------------------------------------------------------------------------------- */

void upstream_heard(struct upstream *u, struct str bytes)
{
	struct err e;

	if (bytes.n > UPSTREAM_LOG_MAX) {
		bytes.p += bytes.n - UPSTREAM_LOG_MAX;
		bytes.n = UPSTREAM_LOG_MAX;
	}
	if (u->log.n + bytes.n > u->log.max)
		buf_drop(&u->log, u->log.n + bytes.n - UPSTREAM_LOG_MAX);
	if (buf_add(&u->log, bytes.p, bytes.n, &e) < 0)
		log_debug("module %s: its log: %s", u->name, e.msg);
	u->heard += bytes.n;
}

struct str upstream_log(const struct upstream *u)
{
	struct str all = buf_str(&u->log);
	size_t over = all.n > UPSTREAM_LOG_MAX ? all.n - UPSTREAM_LOG_MAX : 0;

	return (struct str){ all.p + over, all.n - over };
}

/* ---- calls --------------------------------------------------------------------------------- */

int upstream_call_start(struct upstream *u, struct upstream_call *c, struct err *e)
{
	c->of = u;
	c->conn = NULL;
	c->pending = NULL;
	c->next = NULL;
	c->asked = NULL;
	c->asks = 0;
	c->logged = 0;
	if (upstream_check_call(u, c, e) < 0)
		return -1;
	if (c->tool.p && u->conn && u->conn->ready)
		return conn_call(u->conn, c, e);
	if (u->state == UPSTREAM_ERROR && u->failures >= UPSTREAM_TRIES &&
	    (c->tool.p || c->waits)) {
		*e = u->why;
		return err_wrap(e, "module %s failed %u times", u->name, u->failures);
	}
	if (!c->tool.p && !c->waits)
		upstream_forgive(u);
	*u->end = c;
	u->end = &c->next;
	uv_timer_start(&u->again, upstream_on_again, 0, 0);
	return 0;
}

/* Whether it was in this list. */
static bool upstream_forget(struct upstream_call **at, const struct upstream_call *c)
{
	while (*at && *at != c)
		at = &(*at)->next;
	if (!*at)
		return false;
	*at = c->next;
	return true;
}

void upstream_call_cancel(struct upstream_call *c)
{
	struct upstream *u = c->of;

	if (c->conn) {
		mcp_pending_cancel(c->pending);
		conn_release(c);
		return;
	}
	if (!upstream_forget(&u->refused, c) && upstream_forget(&u->waiting, c)) {
		u->end = &u->waiting;
		while (*u->end)
			u->end = &(*u->end)->next;
	}
	upstream_try_free(u);
}
