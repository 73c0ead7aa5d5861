/*
 * `holt agent login`, `logout`: the log-in of an agent. Its own program logs in, in a sandbox that
 * ends with it. The tokens go to the secret NAME-login of the operator's file, which is made where
 * there is none, and what the agent keeps of them has placeholders (docs/secrets.md, "Log-ins").
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "cli/agent/news.h"
#include "cli/agent/place.h"
#include "cli/common/home.h"
#include "cli/common/safe.h"
#include "cli/common/tty.h"
#include "cli/exec/session.h"
#include "cli/import/own.h"
#include "modules/agent_key.h"

enum {
	ARENA_MAX = 1 << 20,
	LOGIN_SECONDS = 3600,
	ENTRY_MAX = 64 << 10,
	READ_TRIES = 100, /* of the hub, to read the file again */
	READ_PAUSE_MS = 100,
};

struct login_options {
	struct verb_options common;
	const char *config;
};

static const struct option_row rows[] = {
	CONFIG_ROW(struct login_options, config),
	HELP_ROW(struct login_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

struct login {
	struct agent_file file;
	struct agent_place place;
	struct agent_program program;
	struct arena *arena;
	struct hub_link *link;
	char images[PATH_MAX], state[PATH_MAX];
	char secret[AGENT_LOGIN_MAX], key[AGENT_LOGIN_MAX + sizeof("=" AGENT_LOGIN_VARIABLE)];
	char changed[64]; /* when the store got its tokens, as the hub says; "": it has none */
};

static int login_open(struct login *l, const char *said, const char *name, struct err *e)
{
	struct agent_place *p = &l->place;

	l->arena = arena_new(ARENA_MAX);
	if (!l->arena)
		return err_set(e, ERR_LIMIT, "out of memory");
	if (agent_file_open(&l->file, said, e) < 0 || home_file("images", l->images, e) < 0 ||
	    agent_place_find(p, &l->file, name, e) < 0 ||
	    agent_state_folder(l->images, p->agent, l->state, e) < 0)
		return -1;
	agent_login_name(p->agent, l->secret);
	snprintf(l->key, sizeof(l->key), "%s=" AGENT_LOGIN_VARIABLE, l->secret);
	p->state = l->state;
	p->key = l->key;
	p->login = p->begin = true;
	if (p->preset->has_tokens)
		return 0;
	return err_set(e, ERR_INVALID, "the preset %.*s has no log-in that stays outside: %s",
		       STR_CUT(p->preset->name, 64),
		       p->preset->secrets.n ? "give it a key, holt agent doctor says how"
					    : "log in inside, in holt agent run");
}

static int login_close(struct login *l, int rc)
{
	hub_link_close(l->link);
	agent_file_fini(&l->file);
	arena_free(l->arena);
	return rc;
}

/* ---- its secret ------------------------------------------------------------------------------ */

static void login_write_strs(struct json_writer *w, const char *key, const struct field_strs *list)
{
	json_write_key(w, key);
	json_write_array(w);
	for (size_t i = 0; i < list->n; i++)
		json_write_str(w, list->p[i]);
	json_write_array_end(w);
}

static int login_write(const void *data, struct str text, struct buf *to, struct err *e)
{
	const struct login *l = data;
	const struct agent_preset_tokens *t = &l->place.preset->tokens;
	autobuf struct buf json = BUF_INIT(ENTRY_MAX);
	struct json_writer w = json_writer(&json);

	json_write_object(&w);
	json_write_key(&w, l->secret);
	json_write_object(&w);
	json_write_key(&w, "store");
	json_write_bool(&w, true);
	login_write_strs(&w, "hosts", &t->hosts);
	json_write_key(&w, "login");
	json_write_object(&w);
	login_write_strs(&w, "urls", &t->urls);
	if (t->members.n)
		login_write_strs(&w, "members", &t->members);
	json_write_object_end(&w);
	json_write_object_end(&w);
	json_write_object_end(&w);
	return json_write_done(&w, e) < 0 ? -1
					  : agent_file_add(buf_str(&json), "secrets", text, to, e);
}

/* l->changed. 1: the hub knows of the secret. */
static int login_look(struct login *l, struct err *e)
{
	AUTO(json_free) struct json_doc *doc = NULL;
	struct json_iter it;

	l->changed[0] = '\0';
	if (hub_link_ask(l->link, "GET", "/v1/secrets", STR_NONE, &doc, e) < 0)
		return -1;
	it = json_iter(json_get(json_root(doc), "secrets"));
	while (json_next(&it)) {
		if (!str_is(json_str(json_get(it.val, "name")), l->secret))
			continue;
		snprintf(l->changed, sizeof(l->changed), "%.*s",
			 STR_CUT(json_str(json_get(it.val, "changed_at")), 63));
		return 1;
	}
	return 0;
}

/* The entry is in the file, and the hub has read it. */
static int login_prepare(struct login *l, struct err *e)
{
	const struct timespec pause = { .tv_nsec = READ_PAUSE_MS * 1000000L };
	const struct config_secret *s = config_secret_bound(config_file(l->file.config),
							    str_of(l->secret));
	int known = 0;

	if (s && !s->has_login)
		return err_set(e, ERR_CONFLICT,
			       "the secret %s of the operator's file is no log-in: rename it",
			       l->secret);
	if (!s && own_edit(l->file.config, login_write, l, e) < 0)
		return -1;
	for (unsigned i = 0; i < READ_TRIES && (known = login_look(l, e)) == 0; i++)
		nanosleep(&pause, NULL);
	if (known)
		return known < 0 ? -1 : 0;
	return err_set(e, ERR_CONFLICT,
		       "the hub has not read the secret %s of %s: is that its file? holt hub, "
		       "holt config check",
		       l->secret, config_path(l->file.config));
}

/* ---- its program ----------------------------------------------------------------------------- */

static int login_find_program(struct login *l, struct err *e)
{
	const struct agent_preset *p = l->place.preset;
	int rc = agent_program_find(p, &p->login, l->images, l->arena, &l->program, e);

	l->place.program = &l->program;
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	return err_set(e, ERR_PROGRAM, "%.*s is neither installed nor fetched: holt agent add %.*s",
		       STR_CUT(p->login.p[0], 80), STR_CUT(p->name, 64));
}

static int login_write_open(const struct login *l, bool tty, struct json_writer *w, struct err *e)
{
	const struct env_options none = { .git = false };

	json_write_object(w);
	json_write_key(w, "open");
	json_write_object(w);
	json_write_key(w, "command");
	json_write_str(w, l->program.argv.p[0]);
	json_write_key(w, "args");
	json_write_array(w);
	for (size_t i = 1; i < l->program.argv.n; i++)
		json_write_str(w, l->program.argv.p[i]);
	json_write_array_end(w);
	json_write_key(w, "timeout");
	json_write_uint(w, LOGIN_SECONDS);
	json_write_key(w, "stdin");
	json_write_bool(w, true);
	if (agent_place_env(&l->place, w, &none, tty, e) < 0)
		return -1;
	if (tty)
		hub_link_tty(w);
	json_write_object_end(w);
	json_write_object_end(w);
	return json_write_done(w, e);
}

/* The exit status of the program. */
static int login_follow(struct login *l, struct err *e)
{
	autobuf struct buf open = BUF_INIT(HUB_BODY_MAX);
	struct json_writer w = json_writer(&open);
	struct exec_session_spec spec = { .input = true,
					  .tty = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) };
	struct news news = NEWS_INIT;
	char path[256];
	int status;

	if (login_write_open(l, spec.tty, &w, e) < 0 ||
	    hub_link_path(path, sizeof(path), l->place.id, "/exec", e) < 0 ||
	    news_start(&news, l->place.id, &l->place.preset->optional_hosts, spec.tty, e) < 0)
		return -1;
	spec.path = path;
	spec.open = buf_str(&open);
	spec.news = news.fd >= 0 ? news.fd : 0;
	status = exec_session(l->link, &spec, e);
	news_stop(&news);
	return status;
}

static int login_run_program(struct login *l, struct err *e)
{
	struct err gone = ERR_INIT;
	int status = agent_place_open(&l->place, l->link, e) < 0 ? -1 : login_follow(l, e);

	if (l->place.made && agent_place_remove(&l->place, l->link, &gone) < 0 && status >= 0) {
		*e = gone;
		return -1;
	}
	return status;
}

/* ---- login ----------------------------------------------------------------------------------- */

static int login_all(struct login *l, struct err *e)
{
	char before[sizeof(l->changed)];
	int status;

	if (login_find_program(l, e) < 0 || agent_state_make(l->place.preset, l->state, e) < 0)
		return -1;
	l->link = hub_link_open(e);
	if (!l->link || login_prepare(l, e) < 0)
		return -1;
	if (agent_place_name(&l->place, l->link, l->secret, true, e) < 0)
		return e->code != ERR_CONFLICT
			     ? -1
			     : err_set(e, ERR_CONFLICT,
				       "another log-in of %.*s is under way, or was left behind: "
				       "finish it, or holt down %s",
				       STR_CUT(l->place.agent, 64), l->secret);
	strcpy(before, l->changed);
	status = login_run_program(l, e);
	if (status < 0 || login_look(l, e) < 0)
		return -1;
	if (!l->changed[0] || strcmp(before, l->changed) == 0)
		return err_set(
			e, ERR_PROGRAM,
			"%.*s ended (status %d) without a new log-in; what was stored before "
			"is as it was",
			STR_CUT(l->place.agent, 64), status);
	printf("logged in: tokens in the secret %s, placeholders inside; next: holt agent run "
	       "%.*s\n",
	       l->secret, STR_CUT(l->place.agent, 64));
	return 0;
}

static int login_run(const struct verb_input *in, struct err *e)
{
	static struct login l; /* large */
	const struct login_options *o = in->options;

	return login_close(
		&l, login_open(&l, o->config, in->operands[0], e) < 0 ? -1 : login_all(&l, e));
}

const struct verb agent_login_verb = {
	.name = "agent login",
	.usage = "[OPTION...] NAME",
	.doc = "Log an agent in, with its tokens outside of its sandboxes.",
	.more = "Runs the agent's own log-in at this terminal, in a sandbox that ends with it and\n"
		"reaches the hosts of the log-in, too. The tokens are stored as the secret\n"
		"NAME-login. Inside are placeholders, with which holt agent run and conversations\n"
		"of the agent work, and which renew themselves.",
	.page = "holt-agent",
	.options = &options,
	.size = sizeof(struct login_options),
	.min_operands = 1,
	.max_operands = 1,
	.run = login_run,
	.fail = hub_link_fail,
};

/* ---- logout ---------------------------------------------------------------------------------- */

/* 1: there was one. */
static int logout_secret(struct login *l, struct err *e)
{
	AUTO(json_free) struct json_doc *doc = NULL;
	char path[256];
	int known = login_look(l, e);

	if (known < 0 || !l->changed[0])
		return known < 0 ? -1 : 0;
	snprintf(path, sizeof(path), "/v1/secrets/%s", l->secret);
	return hub_link_ask(l->link, "DELETE", path, STR_NONE, &doc, e) < 0 ? -1 : 1;
}

static int logout_all(struct login *l, struct err *e)
{
	const struct field_strs *files = &l->place.preset->credentials;
	int ended;

	l->link = hub_link_open(e);
	ended = l->link ? logout_secret(l, e) : -1;
	if (ended < 0)
		return -1;
	for (size_t i = 0; i < files->n; i++) {
		int rc = agent_state_remove(l->state, files->p[i], e);

		if (rc < 0)
			return -1;
		ended |= rc;
	}
	if (!ended)
		return err_set(e, ERR_SECRET_NOT_FOUND, "%.*s has no log-in",
			       STR_CUT(l->place.agent, 64));
	printf("%.*s is logged out here; its server honours the tokens until they expire or are "
	       "revoked there\n",
	       STR_CUT(l->place.agent, 64));
	return 0;
}

static int logout_run(const struct verb_input *in, struct err *e)
{
	static struct login l; /* large */
	const struct login_options *o = in->options;

	return login_close(
		&l, login_open(&l, o->config, in->operands[0], e) < 0 ? -1 : logout_all(&l, e));
}

const struct verb agent_logout_verb = {
	.name = "agent logout",
	.usage = "[OPTION...] NAME",
	.doc = "End an agent's log-in here.",
	.more = "Removes its tokens, and the file that has their placeholders. Its settings and\n"
		"sessions stay.",
	.page = "holt-agent",
	.options = &options,
	.size = sizeof(struct login_options),
	.min_operands = 1,
	.max_operands = 1,
	.run = logout_run,
	.fail = hub_link_fail,
};
