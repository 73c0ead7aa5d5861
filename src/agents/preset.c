/* What an agent's preset says where its entry in the operator's file says nothing. */
#include <limits.h>
#include <stdio.h>

#include "agents/internal.h"
#include "config/toolchains.h"
#include "hub/core/hub.h"
#include "modules/agent_key.h"
#include "modules/agent_program.h"
#include "modules/agent_state.h"

struct fill {
	struct agent *a;
	const struct agent_preset *preset;
	struct config_agent *conf; /* a copy of the entry */
	struct agent_program found;
	bool login; /* it works by its log-in */
	const char *images; /* the path of the store; NULL: the hub has no data folder */
	struct err *e;
};

static int fill_strs(struct fill *f, struct field_strs *to, const struct field_strs *more)
{
	struct str *p = arena_array(&f->a->arena, to->n + more->n, sizeof(*p), f->e);

	if (!p)
		return -1;
	for (size_t i = 0; i < to->n + more->n; i++)
		p[i] = i < to->n ? to->p[i] : more->p[i - to->n];
	*to = (struct field_strs){ p, to->n + more->n };
	return 0;
}

/* The preset's arguments come before those of the entry. */
static int fill_program(struct fill *f)
{
	struct config_server *s = &f->conf->program;
	const struct agent_preset *p = f->preset;
	struct field_strs args = { NULL, 0 };
	int rc = s->command.p
		       ? 1
		       : agent_program_find(p, &p->acp, f->images, &f->a->arena, &f->found, f->e);

	if (rc < 0 || s->command.p)
		return rc < 0 ? -1 : 0;
	if (!p->acp.n)
		return err_set(f->e, ERR_AGENT, "its preset %.*s has no program that speaks ACP",
			       STR_ARG(p->name));
	if (!rc)
		return err_set(f->e, ERR_AGENT,
			       "its program %.*s is neither installed nor fetched: holt agent add "
			       "%.*s",
			       STR_CUT(p->acp.p[0], 80), STR_ARG(p->name));
	if (s->sandbox.off && f->found.digest[0])
		return err_set(f->e, ERR_AGENT,
			       "its program was fetched, and so it runs in a sandbox only");
	args = (struct field_strs){ f->found.argv.p + 1, f->found.argv.n - 1 };
	if (fill_strs(f, &args, &s->args) < 0)
		return -1;
	s->command = f->found.argv.p[0];
	s->args = args;
	if (f->found.digest[0])
		s->sandbox.template = f->found.template;
	return fill_strs(f, &s->sandbox.read, &f->found.read);
}

static bool fill_has(const struct field_map *env, struct str name)
{
	for (size_t i = 0; i < env->n; i++) {
		if (str_eq(env->p[i].key, name))
			return true;
	}
	return false;
}

static int fill_put(struct fill *f, struct field_pair *to, struct str name, struct str value)
{
	*to = (struct field_pair){ name, { arena_dup(&f->a->arena, value, f->e), value.n } };
	return to->value.p ? 0 : -1;
}

/* Its log-in, else its key, unless the entry gives it one. Only what is in a sandbox can have a
 * placeholder. */
static int fill_key(struct fill *f, struct field_pair *to, size_t *n)
{
	const struct config_file *file = config_file(f->a->all->config);
	const struct agent_preset_secret *key = agent_key_find(f->preset, file, f->images);
	char value[CONFIG_NAME_MAX + 16], login[AGENT_LOGIN_MAX];

	for (size_t i = 0; i < f->preset->secrets.n; i++) {
		if (fill_has(&f->conf->program.env, f->preset->secrets.p[i].name))
			return 0;
	}
	if (f->conf->program.sandbox.off)
		return 0;
	f->login = agent_login_find(f->preset, file, f->images, f->conf->name, NULL);
	if (!f->login && !key)
		return 0;
	agent_login_name(f->conf->name, login);
	snprintf(value, sizeof(value), "${secret:%.*s}",
		 STR_ARG(f->login ? str_of(login) : key->name));
	return fill_put(f, &to[(*n)++], f->login ? STR_LIT(AGENT_LOGIN_VARIABLE) : key->name,
			str_of(value));
}

/* What its log-in needs beside that. */
static int fill_login(struct fill *f)
{
	const struct agent_preset_tokens *t = &f->preset->tokens;
	struct field_map *env = &f->conf->program.env;
	struct field_pair *p;
	struct field_strs hosts;

	if (!f->login)
		return 0;
	p = arena_array(&f->a->arena, env->n + t->env.n, sizeof(*p), f->e);
	if (!p || agent_login_hosts(f->preset, &f->a->arena, &hosts, f->e) < 0)
		return -1;
	for (size_t i = 0; i < env->n; i++)
		p[i] = env->p[i];
	for (size_t i = 0; i < t->env.n; i++) {
		if (!fill_has(env, t->env.p[i].key))
			p[env->n++] = t->env.p[i];
	}
	env->p = p;
	return fill_strs(f, &f->conf->program.sandbox.network, &hosts);
}

static int fill_env(struct fill *f)
{
	struct config_server *s = &f->conf->program;
	const struct field_map *more = &f->preset->env;
	const char *home = s->sandbox.off ? getenv("HOME") : AGENT_HOME;
	struct field_pair *p = arena_array(&f->a->arena, s->env.n + more->n + 1, sizeof(*p), f->e);
	size_t n = 0;

	for (; p && n < s->env.n; n++)
		p[n] = s->env.p[n];
	for (size_t i = 0; p && i < more->n; i++) {
		char value[PATH_MAX];

		if (fill_has(&s->env, more->p[i].key))
			continue;
		if (agent_preset_path(more->p[i].value, home ? home : "", value, sizeof(value),
				      f->e) < 0 ||
		    fill_put(f, &p[n++], more->p[i].key, str_of(value)) < 0)
			return -1;
	}
	if (!p || fill_key(f, p, &n) < 0)
		return -1;
	s->env = (struct field_map){ p, n };
	return 0;
}

/* The toolchains with which it works on its folder, where whoever made the conversation may have
 * them. What the entry says of a variable counts. */
static int fill_toolchains(struct fill *f)
{
	const struct conversation_record *r = conversation_record(f->a->conversation);
	struct config_server *s = &f->conf->program;
	struct toolchains found;
	struct field_pair *env;
	char folder[PATH_MAX];
	size_t n = s->env.n;

	snprintf(folder, sizeof(folder), "%.*s", STR_ARG(r->working_dir));
	if (!*folder || s->sandbox.off ||
	    !toolchains_given(config_file(f->a->all->config), folder, str_is(r->owner, "local")))
		return 0;
	if (toolchains_find(&f->a->arena, &found, f->e) < 0 ||
	    fill_strs(f, &s->sandbox.read, &found.read) < 0)
		return -1;
	env = arena_array(&f->a->arena, n + found.env.n, sizeof(*env), f->e);
	if (!env)
		return -1;
	for (size_t i = 0; i < n; i++)
		env[i] = s->env.p[i];
	for (size_t i = 0; i < found.env.n; i++) {
		if (!fill_has(&s->env, found.env.p[i].key))
			env[n++] = found.env.p[i];
	}
	s->env = (struct field_map){ env, n };
	return 0;
}

/* The mode in which it asks, where neither the entry nor the conversation says another. */
static int fill_mode(struct fill *f)
{
	const struct field_map *is = &f->conf->options;
	struct field_pair *p = arena_array(&f->a->arena, is->n + 1, sizeof(*p), f->e);

	if (!p)
		return -1;
	for (size_t i = 0; i < is->n; i++)
		p[i] = is->p[i];
	p[is->n] = (struct field_pair){ STR_LIT("mode"), f->preset->mode };
	if (f->preset->mode.p && !fill_has(is, STR_LIT("mode")))
		f->conf->options = (struct field_map){ p, is->n + 1 };
	return 0;
}

static int fill_state(struct fill *f)
{
	struct volume state[VOLUMES_MAX];
	char folder[PATH_MAX];
	ssize_t n;

	if (!f->images || f->conf->program.sandbox.off)
		return 0;
	if (agent_state_folder(f->images, f->conf->name, folder, f->e) < 0 ||
	    agent_state_make(f->preset, folder, f->e) < 0)
		return -1;
	n = agent_state_volumes(f->preset, folder, &f->a->arena, state, f->e);
	if (n < 0)
		return -1;
	if (n == VOLUMES_MAX) /* its workspace needs one */
		return err_set(f->e, ERR_LIMIT, "its preset has too many folders of state");
	for (ssize_t i = 0; i < n; i++)
		f->a->volumes[f->a->place.n_more++] = state[i];
	f->a->place.more = f->a->volumes;
	return 0;
}

int agent_fill(struct agent *a, const struct config_agent *conf, struct err *e)
{
	const struct agent_preset *p;
	struct fill f = { .a = a, .images = hub_images(a->all->place->hub), .e = e };

	a->conf = conf;
	if (!conf->preset.p)
		return 0;
	a->presets = agent_presets_read(config_path(a->all->config), e);
	f.preset = a->presets ? agent_presets_find(a->presets, conf->preset, e) : NULL;
	f.conf = f.preset ? arena_alloc(&a->arena, sizeof(*f.conf), e) : NULL;
	if (!f.conf)
		return -1;
	*f.conf = *conf;
	a->conf = f.conf;
	p = f.preset;
	if (fill_program(&f) < 0 || fill_env(&f) < 0 || fill_login(&f) < 0 ||
	    fill_toolchains(&f) < 0 || fill_mode(&f) < 0 ||
	    fill_strs(&f, &f.conf->program.sandbox.network, &p->hosts) < 0 || fill_state(&f) < 0)
		return -1;
	if (!conf->auth_method.p)
		f.conf->auth_method = f.login ? p->tokens.auth_method : p->auth_method;
	return 0;
}
