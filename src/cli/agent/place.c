#include "cli/agent/place.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "cli/common/volume.h"
#include "cli/sandbox/net.h"
#include "modules/agent_key.h"

enum {
	TRIES_MAX = 100, /* of names */
	BASE_MAX = 24, /* of a folder's name, in that of its sandbox */
	DIGITS = 4, /* of the folder's path */
	ARENA_MAX = 256 << 10,
	MB = 1 << 20,
};

#define LABEL_AGENT "holt.agent"
#define LABEL_FOLDER "holt.folder"
#define LABEL_LOGIN "holt.login"

int agent_place_find(struct agent_place *p, const struct agent_file *f, const char *name,
		     struct err *e)
{
	p->agent = str_of(name);
	p->entry = config_agent_find(config_file(f->config), p->agent);
	if (p->entry && !p->entry->preset.p)
		return err_set(e, ERR_INVALID,
			       "agent %.80s of the operator's file has no preset, so its terminal "
			       "interface is not known",
			       name);
	p->preset = agent_presets_find(f->presets, p->entry ? p->entry->preset : p->agent, e);
	return p->preset ? 0 : -1;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* AGENT-FOLDER-DIGITS, with the last part of the folder's path. */
static int place_default_name(struct agent_place *p, struct err *e)
{
	const char *base = strrchr(p->folder, '/') + 1;
	char digits[HASH_HEX + 1], part[BASE_MAX + 1];
	size_t n = 0;

	if (hash_of(str_of(p->folder), digits, e) < 0)
		return -1;
	for (; *base && n < BASE_MAX; base++) {
		bool plain = (*base >= 'a' && *base <= 'z') || (*base >= 'A' && *base <= 'Z') ||
			     (*base >= '0' && *base <= '9') || *base == '_';

		if (plain || (n && part[n - 1] != '-'))
			part[n++] = plain ? *base : '-';
	}
	part[n] = '\0';
	snprintf(p->id, sizeof(p->id), "%.*s-%s%s%.*s", STR_CUT(p->agent, 24), part,
		 n && part[n - 1] != '-' ? "-" : "", DIGITS, digits);
	return 0;
}

/* *ret NULL: there is none, or it has ended. */
static int place_look(const char *id, struct hub_link *l, struct json_doc **ret, struct err *e)
{
	AUTO(json_free) struct json_doc *doc = NULL;
	struct str state;
	char path[256];
	int status;

	*ret = NULL;
	if (hub_link_path(path, sizeof(path), id, "", e) < 0 ||
	    hub_link_ask_whole(l, "GET", path, STR_NONE, &doc, &status, e) < 0)
		return -1;
	if (status == 404)
		return 0;
	if (status != 200)
		return hub_link_refusal(json_root(doc), e);
	state = json_str(json_get(json_root(doc), "state"));
	if (!str_is(state, "terminated") && !str_is(state, "failed"))
		*ret = take_ptr(doc);
	return 0;
}

int agent_place_name(struct agent_place *p, struct hub_link *l, const char *name, bool fresh,
		     struct err *e)
{
	size_t n;

	if (name)
		snprintf(p->id, sizeof(p->id), "%s", name);
	if (name && (strlen(name) > SANDBOX_ID_MAX || sandbox_id_check(str_of(name), e) < 0))
		return err_set(e, ERR_INVALID, "--name: 1 to %d letters, digits, - and _",
			       SANDBOX_ID_MAX);
	if (!name && place_default_name(p, e) < 0)
		return -1;
	n = strlen(p->id);
	for (unsigned i = 2; fresh && i < TRIES_MAX; i++) {
		AUTO(json_free) struct json_doc *has = NULL;

		if (place_look(p->id, l, &has, e) < 0)
			return -1;
		if (!has)
			return 0;
		if (name)
			return err_set(e, ERR_CONFLICT, "there is a sandbox %.80s", name);
		snprintf(p->id + n, sizeof(p->id) - n, "-%u", i);
	}
	return fresh ? err_set(e, ERR_LIMIT, "this folder has %d sandboxes", TRIES_MAX) : 0;
}

/* ---- what it is made of ---------------------------------------------------------------------- */

static void place_volume(struct json_writer *w, struct str host, struct str inside,
			 const char *mode)
{
	json_write_object(w);
	json_write_key(w, "host");
	json_write_str(w, host);
	json_write_key(w, "inside");
	json_write_str(w, inside);
	hub_link_text(w, "mode", mode);
	json_write_object_end(w);
}

static int place_volumes(const struct agent_place *p, struct json_writer *w, struct err *e)
{
	AUTO(arena_free) struct arena *a = arena_new(ARENA_MAX);
	struct volume state[VOLUMES_MAX];
	ssize_t n = a ? agent_state_volumes(p->preset, p->state, a, state, e)
		      : err_set(e, ERR_LIMIT, "out of memory");

	if (n < 0)
		return -1;
	json_write_key(w, "volumes");
	json_write_array(w);
	if (p->folder)
		place_volume(w, str_of(p->folder), str_of(p->folder), "rw");
	for (size_t i = 0; i < p->toolchains.read.n; i++)
		place_volume(w, p->toolchains.read.p[i], p->toolchains.read.p[i], "ro");
	for (size_t i = 0; i < p->program->read.n; i++)
		place_volume(w, p->program->read.p[i], p->program->read.p[i], "ro");
	for (ssize_t i = 0; i < n; i++)
		place_volume(w, state[i].host, state[i].inside, volume_mode_names[state[i].mode]);
	for (size_t i = 0; p->volumes && i < p->volumes->n; i++) {
		struct volume_words v;

		if (volume_read(p->volumes->p[i], &v, e) < 0)
			return -1;
		place_volume(w, str_of(v.host), v.inside,
			     v.all	  ? "rw-all"
			     : v.writable ? "rw"
					  : "ro");
	}
	json_write_array_end(w);
	return 0;
}

static void place_hosts(struct json_writer *w, const struct field_strs *hosts)
{
	for (size_t i = 0; i < hosts->n; i++)
		json_write_str(w, hosts->p[i]);
}

static int place_login_hosts(const struct agent_place *p, struct json_writer *w, struct err *e)
{
	AUTO(arena_free) struct arena *a = arena_new(ARENA_MAX);
	struct field_strs hosts;

	if (!a)
		return err_set(e, ERR_LIMIT, "out of memory");
	if (agent_login_hosts(p->preset, a, &hosts, e) < 0)
		return -1;
	place_hosts(w, &hosts);
	if (p->begin)
		place_hosts(w, &p->preset->login_hosts);
	return 0;
}

/* A network without hosts is one, too: what is asked for in vain is told. */
static int place_network(const struct agent_place *p, struct json_writer *w, struct err *e)
{
	int rc = 0;

	json_write_key(w, "network");
	json_write_object(w);
	hub_link_text(w, "mode", "bridge");
	json_write_key(w, "allow_domains");
	json_write_array(w);
	place_hosts(w, &p->preset->hosts);
	if (p->entry)
		place_hosts(w, &p->entry->program.sandbox.network);
	if (p->login)
		rc = place_login_hosts(p, w, e);
	for (size_t i = 0; p->allow && i < p->allow->n; i++)
		json_write_text(w, p->allow->p[i]);
	json_write_array_end(w);
	json_write_object_end(w);
	return rc;
}

static void place_limits(const struct agent_place *p, struct json_writer *w)
{
	if (!p->memory && !p->cpu_milli)
		return;
	json_write_key(w, "limits");
	json_write_object(w);
	if (p->memory) {
		json_write_key(w, "memory_mb");
		json_write_uint(w, p->memory / MB);
	}
	if (p->cpu_milli) {
		json_write_key(w, "cpus");
		json_write_real(w, p->cpu_milli / 1000.0);
	}
	json_write_object_end(w);
}

static void place_labels(const struct agent_place *p, struct json_writer *w)
{
	json_write_key(w, "labels");
	json_write_object(w);
	json_write_key(w, LABEL_AGENT);
	json_write_str(w, p->agent);
	if (p->folder && strlen(p->folder) <= 256)
		hub_link_text(w, LABEL_FOLDER, p->folder);
	if (p->login)
		hub_link_text(w, LABEL_LOGIN, p->key);
	json_write_object_end(w);
}

static int place_make(struct agent_place *p, struct hub_link *l, struct err *e)
{
	const struct env_options none = { .git = true };
	struct secret_options secrets = { .words = { .n = 0 } };
	struct option_list *keys = p->begin ? &secrets.logins : &secrets.words;
	autobuf struct buf text = BUF_INIT(HUB_BODY_MAX);
	struct json_writer w = json_writer(&text);

	json_write_object(&w);
	hub_link_text(&w, "id", p->id);
	json_write_key(&w, "template");
	json_write_str(&w, p->program->template);
	if (p->folder)
		hub_link_text(&w, "cwd", p->folder);
	if (place_volumes(p, &w, e) < 0 || agent_place_env(p, &w, &none, false, e) < 0)
		return -1;
	if (place_network(p, &w, e) < 0)
		return -1;
	place_limits(p, &w);
	place_labels(p, &w);
	if (p->key)
		keys->p[keys->n++] = p->key;
	if (p->key && hub_link_secrets(&w, &secrets, e) < 0)
		return -1;
	json_write_object_end(&w);
	p->made = true;
	return json_write_done(&w, e) < 0 ||
			       hub_link_ask(l, "POST", "/v1/sandboxes", buf_str(&text), NULL, e) < 0
		     ? -1
		     : 0;
}

/* ---- one that is there ----------------------------------------------------------------------- */

static int place_check(const struct agent_place *p, const struct json_val *has, struct err *e)
{
	const struct json_val *labels = json_get(has, "labels");
	struct str folder = json_str(json_get(labels, LABEL_FOLDER));

	if (str_eq(json_str(json_get(labels, LABEL_AGENT)), p->agent) &&
	    (!folder.n || str_is(folder, p->folder)))
		return 0;
	return err_set(e, ERR_CONFLICT, "sandbox %s is none of %.*s in this folder", p->id,
		       STR_CUT(p->agent, 64));
}

static int place_start(const struct agent_place *p, struct hub_link *l, struct err *e)
{
	autobuf struct buf text = BUF_INIT(1024);
	struct json_writer w = json_writer(&text);

	json_write_object(&w);
	hub_link_text(&w, "sandbox", p->id);
	json_write_object_end(&w);
	return json_write_done(&w, e) < 0
		     ? -1
		     : hub_link_ask(l, "POST", "/v1/resume", buf_str(&text), NULL, e);
}

int agent_place_remove(const struct agent_place *p, struct hub_link *l, struct err *e)
{
	char path[256];

	return hub_link_path(path, sizeof(path), p->id, "", e) < 0
		     ? -1
		     : hub_link_ask(l, "DELETE", path, STR_NONE, NULL, e);
}

int agent_place_open(struct agent_place *p, struct hub_link *l, struct err *e)
{
	AUTO(json_free) struct json_doc *has = NULL;
	struct str state;

	if (place_look(p->id, l, &has, e) < 0)
		return -1;
	if (!has)
		return place_make(p, l, e);
	if (place_check(p, json_root(has), e) < 0)
		return -1;
	p->before_login = p->login &&
			  !json_str(json_get(json_get(json_root(has), "labels"), LABEL_LOGIN)).n;
	state = json_str(json_get(json_root(has), "state"));
	if ((str_is(state, "stopped") || str_is(state, "paused") || str_is(state, "lost")) &&
	    place_start(p, l, e) < 0)
		return -1;
	return p->allow && p->allow->n ? net_allow(l, p->id, p->allow->p, p->allow->n, e) : 0;
}

/* ---- its environment ------------------------------------------------------------------------- */

static int place_env_word(struct str name, struct str value, const struct env_words *over,
			  struct json_writer *w, struct err *e)
{
	char text[PATH_MAX];

	for (size_t i = 0; i < over->n; i++) {
		if (str_eq(over->all[i].name, name))
			return 0;
	}
	json_write_key_str(w, name);
	if (!str_starts(value, "~/")) {
		json_write_str(w, value);
		return 0;
	}
	if (agent_preset_path(value, AGENT_HOME, text, sizeof(text), e) < 0)
		return -1;
	json_write_text(w, text);
	return 0;
}

static bool place_has(const struct field_map *env, struct str name)
{
	for (size_t i = 0; i < env->n; i++) {
		if (str_eq(env->p[i].key, name))
			return true;
	}
	return false;
}

/* An entry's values with variables are for the hub, which starts it by ACP. */
static int place_env_words(const struct agent_place *p, const struct env_words *over,
			   struct json_writer *w, struct err *e)
{
	const struct field_map none = { NULL, 0 }, *own = p->entry ? &p->entry->program.env : &none,
			       *const more[] = { &p->preset->env,
						 p->login ? &p->preset->tokens.env : &none,
						 &p->toolchains.env };

	for (size_t i = 0; i < own->n; i++) {
		if (!memmem(own->p[i].value.p, own->p[i].value.n, "${", 2) &&
		    place_env_word(own->p[i].key, own->p[i].value, over, w, e) < 0)
			return -1;
	}
	for (size_t m = 0; m < ARRAY_LEN(more); m++) {
		for (size_t i = 0; i < more[m]->n; i++) {
			const struct field_pair *v = &more[m]->p[i];
			bool has = place_has(own, v->key);

			for (size_t before = 0; before < m; before++)
				has |= place_has(more[before], v->key);
			if (!has && place_env_word(v->key, v->value, over, w, e) < 0)
				return -1;
		}
	}
	return 0;
}

int agent_place_env(const struct agent_place *p, struct json_writer *w,
		    const struct env_options *more, bool tty, struct err *e)
{
	autofree struct env_words *l = calloc(1, sizeof(*l));
	int rc = l ? env_read(l, more, tty, e) : err_set(e, ERR_LIMIT, "out of memory");

	json_write_key(w, "env");
	json_write_object(w);
	if (rc == 0)
		rc = place_env_words(p, l, w, e);
	for (size_t i = 0; rc == 0 && i < l->n; i++) {
		json_write_key_str(w, l->all[i].name);
		json_write_str(w, l->all[i].value);
	}
	json_write_object_end(w);
	if (l)
		env_fini(l);
	return rc;
}
