#include "door/http/common.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "op/exec.h"

static const struct field id_fields[] = {
	FIELD(struct id_path, id, .flags = FIELD_REQUIRED, .min = 1, .max = API_ID_MAX,
	      .doc = "Id of the sandbox."),
};
const struct field_table id_path_table = FIELD_TABLE(struct id_path, id_fields);

struct sandbox *api_enter(struct call *c, struct str sandbox, struct str path)
{
	struct err e = ERR_INIT;
	struct sandbox *sb;

	call_about(c)->path = path;
	sb = ask_sandbox(c, sandbox, &e);
	if (!sb)
		call_fail(c, &e);
	return sb;
}

static const struct field status_fields[] = {
	FIELD(struct api_status, status, .flags = FIELD_REQUIRED, .doc = "ok"),
};
const struct field_table api_status_table = FIELD_TABLE(struct api_status, status_fields);

void api_done(void *arg, const struct err *err)
{
	static const struct api_status ok = { STR_LIT("ok") };

	if (err)
		call_fail(arg, err);
	else
		call_answer(arg, &ok);
}

const struct field_table api_nothing_table = { .rows = NULL,
					       .n = 0,
					       .size = sizeof(struct api_nothing) };

static void on_discarded(void *arg, struct life *l, const struct err *err)
{
	if (err)
		log_warn("could not end a sandbox that nobody waits for: %s", err->msg);
}

void api_discard(struct life *l)
{
	life_terminate_start(l, on_discarded, NULL);
}

/* ---- the network --------------------------------------------------------------------------- */

static const struct field wish_fields[] = {
	FIELD(struct api_network_wish, block, .def = DEFAULT_BOOL(true),
	      .doc = "No network at all."),
	FIELD_ENUM(struct api_network_wish, egress, egress_names, .def = DEFAULT_ENUM(EGRESS_DENY),
		   .doc = "deny; anything else is refused by this version."),
	FIELD(struct api_network_wish, allow_domains, .max = 256,
	      .doc = "Must be empty: this version grants no network."),
	FIELD(struct api_network_wish, allow_cidrs, .max = 256,
	      .doc = "Must be empty: this version grants no network."),
	FIELD_ENUM(struct api_network_wish, inbound, egress_names, .def = DEFAULT_ENUM(EGRESS_DENY),
		   .doc = "deny; anything else is refused by this version."),
	FIELD(struct api_network_wish, inbound_cidrs, .max = 256,
	      .doc = "Must be empty: this version grants no network."),
};
const struct field_table api_network_wish_table = FIELD_TABLE(struct api_network_wish, wish_fields);

int api_network_refuse(const struct api_network_wish *w, struct err *e)
{
	const struct {
		const char *name;
		bool wanted;
	} rows[] = {
		{ "egress", w->egress != EGRESS_DENY },
		{ "allow_domains", w->allow_domains.n > 0 },
		{ "allow_cidrs", w->allow_cidrs.n > 0 },
		{ "inbound", w->inbound != EGRESS_DENY },
		{ "inbound_cidrs", w->inbound_cidrs.n > 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (rows[i].wanted)
			return err_set(e, ERR_INVALID,
				       "network.%s: this version grants sandboxes no network",
				       rows[i].name);
	}
	return 0;
}

/* ---- execs ---------------------------------------------------------------------------------- */

void api_exec_timeout(struct call *c, struct err *e)
{
	const struct exec_request *q = call_request(c);
	struct call_about *about = call_about(c);

	about->dimension = STR_LIT("wall");
	about->has_timeout_s = true;
	about->timeout_s = q->timeout_seconds;
	err_set(e, ERR_TIMEOUT, "the command was killed after %u s", q->timeout_seconds);
}

/* ---- small --------------------------------------------------------------------------------- */

int api_env(struct arena *a, const struct field_map *map, const struct env_var **ret, struct err *e)
{
	struct env_var *vars = arena_array(a, map->n, sizeof(*vars), e);

	if (!vars)
		return -1;
	for (size_t i = 0; i < map->n; i++) {
		vars[i] = (struct env_var){ .name = map->p[i].key, .value = map->p[i].value };
		if (vars[i].name.n == 0 || memchr(vars[i].name.p, '=', vars[i].name.n))
			return err_set(e, ERR_INVALID,
				       "env: a variable's name is not empty and has no '='");
	}
	*ret = vars;
	return 0;
}
