#include "config/agent_preset.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/folder.h"
#include "config/agent_presets.h"
#include "config/internal.h"
#include "config/variables.h"
#include "json/document/near.h"

enum {
	WORDS_MAX = 64,
	PRESET_VALUES_MAX = 4096,
	PRESET_NESTED_MAX = 16,
	PRESET_ARENA_MAX = 256 << 10, /* of each */
	SETTING_MAX = 16 << 10,
};

/* Holt's own, sorted. */
static const struct {
	const char *name, *text;
} preset_own[] = {
	{ "claude", guest_claude }, { "codex", guest_codex },	    { "copilot", guest_copilot },
	{ "gemini", guest_gemini }, { "opencode", guest_opencode }, { "qwen", guest_qwen },
};

#define WORDS .max = WORDS_MAX, .item_min = 1, .item_max = CONFIG_TEXT_MAX
#define RULES .max = WORDS_MAX, .item_min = 1, .item_max = CONFIG_TEXT_MAX
#define PATHS WORDS

static const struct field setting_fields[] = {
	FIELD(struct agent_preset_setting, json, .max = SETTING_MAX,
	      .doc = "What a JSON file must say; it may say more."),
	FIELD(struct agent_preset_setting, text, .min = 1, .max = SETTING_MAX,
	      .doc = "The contents of another file, written where there is none."),
};
static const struct field_table setting_table = FIELD_TABLE(struct agent_preset_setting,
							    setting_fields);

static const struct field secret_fields[] = {
	FIELD(struct agent_preset_secret, hosts, RULES, .flags = FIELD_REQUIRED, .min = 1,
	      .doc = "Hosts that get the value, as those of a secret: HOST[:PORT], *.DOMAIN."),
};
static const struct field_table secret_table = FIELD_TABLE(struct agent_preset_secret,
							   secret_fields);

static const struct field tokens_fields[] = {
	FIELD(struct agent_preset_tokens, urls, .flags = FIELD_REQUIRED, .min = 1, .max = 8,
	      .item_min = 1, .item_max = CONFIG_TEXT_MAX,
	      .doc = "URLs (https) that give tokens. TLS to them ends in the egress proxy, and the "
		     "agent gets placeholders."),
	FIELD(struct agent_preset_tokens, members, .max = 8, .item_min = 1, .item_max = 32,
	      .doc = "Members of these answers that are tokens, the one for requests first. By "
		     "default access_token, refresh_token and id_token."),
	FIELD(struct agent_preset_tokens, hosts, RULES, .flags = FIELD_REQUIRED, .min = 1,
	      .doc = "Hosts that get the access token, as those of a secret."),
	FIELD(struct agent_preset_tokens, env, .max = 64, .item_max = CONFIG_VALUE_MAX,
	      .doc = "Environment, where it works by the log-in."),
	FIELD_NAMED(struct agent_preset_tokens, auth_method, "authMethod", .min = 1, .max = 256,
		    .doc = "Its name for the log-in method of ACP that uses the log-in."),
};
static const struct field_table tokens_table = FIELD_TABLE(struct agent_preset_tokens,
							   tokens_fields);

#define P struct agent_preset
static const struct field preset_fields[] = {
	FIELD(P, title, .flags = FIELD_REQUIRED, .min = 1, .max = 80,
	      .doc = "What people call the agent."),
	FIELD(P, about, .min = 1, .max = CONFIG_TEXT_MAX, .doc = "URL of its documentation."),
	FIELD(P, run, WORDS, .doc = "Program of its terminal interface, with arguments."),
	FIELD(P, print, WORDS,
	      .doc = "Arguments behind run, before one prompt, for scripts: it prints the answer "
		     "and ends."),
	FIELD(P, resume, WORDS,
	      .doc = "Arguments behind run that go on with the folder's last session."),
	FIELD(P, acp, WORDS, .doc = "Program that speaks ACP, with arguments."),
	FIELD(P, npm, .max = WORDS_MAX, .item_min = 1, .item_max = CONFIG_TEXT_MAX,
	      .doc = "Packages of npm that have these programs: NAME or NAME@VERSION, by program."),
	FIELD_NAMED(
		P, install_scripts, "installScripts",
		.doc = "Its packages can't work without their install scripts, which run in the "
		       "sandbox that fetches them."),
	FIELD(P, find, PATHS,
	      .doc = "Folders of the host, or patterns of them, in which its installer puts "
		     "programs: ~/.tool/bin. Others are known: PATH, ~/.local/bin, nvm and so on."),
	FIELD(P, node, .max = 1000, .doc = "Least major version of Node.js that it needs."),
	FIELD(P, hosts, RULES, .doc = "Hosts that it needs: HOST:PORT or *.DOMAIN:PORT."),
	FIELD_NAMED(P, optional_hosts, "optionalHosts", RULES,
		    .doc = "Hosts that it asks for and can do without. They are not granted."),
	FIELD_NAMED(P, login_hosts, "loginHosts", RULES,
		    .doc = "Hosts that it needs for its log-in only."),
	FIELD(P, env, .max = 256, .item_max = CONFIG_VALUE_MAX,
	      .doc = "Environment. A value that begins with ~/ is a path below its home."),
	FIELD(P, state, PATHS,
	      .doc = "Folders below its home (~/...) that last, and that it may change freely."),
	FIELD_DICT(P, settings, setting_table, .max = WORDS_MAX, .item_min = 3,
		   .item_max = CONFIG_TEXT_MAX,
		   .doc = "Files in its state that it has from the start, by path."),
	FIELD_DICT(P, secrets, secret_table, .max = WORDS_MAX, .item_min = 1,
		   .item_max = CONFIG_NAME_MAX,
		   .doc = "Variables that may have its key, any one of them. Inside they have a "
			  "placeholder."),
	FIELD(P, credentials, PATHS, .doc = "Files in its state that keep its log-in."),
	FIELD(P, login, WORDS, .doc = "Program that logs in at a terminal, with arguments."),
	FIELD_OBJECT(P, tokens, tokens_table, .has = FIELD_HAS(P, has_tokens),
		     .doc = "How the tokens of its log-in stay outside of its sandbox."),
	FIELD_NAMED(P, auth_method, "authMethod", .min = 1, .max = 256,
		    .doc = "Its name for the log-in method of ACP that uses the key."),
	FIELD(P, mode, .min = 1, .max = 256, .doc = "Its mode of ACP that asks."),
	FIELD_NAMED(P, autonomous_modes, "autonomousModes", WORDS,
		    .doc = "Its modes of ACP that approve by themselves."),
	FIELD(P, autonomous, WORDS, .doc = "Arguments behind run, so that it asks nothing."),
	FIELD_NAMED(P, no_sandbox, "noSandbox", WORDS,
		    .doc = "Arguments behind run that switch its own sandbox off, where that can't "
			   "work in Holt's."),
};
#undef P
const struct field_table agent_preset_table =
	FIELD_TABLE(struct agent_preset, preset_fields,
		    .doc = "What a coding agent needs to run in a sandbox of Holt.");

/* ---- checks that the table can't express ----------------------------------------------------- */

/* "~/", and below that neither . nor .. nor empty names. */
static bool preset_is_path(struct str path)
{
	const char *at = path.p + 2, *end = path.p + path.n, *slash;

	if (path.n < 3 || path.p[0] != '~' || path.p[1] != '/' || end[-1] == '/')
		return false;
	for (; at < end; at = slash + 1) {
		size_t n;

		slash = memchr(at, '/', (size_t)(end - at));
		slash = slash ? slash : end;
		n = (size_t)(slash - at);
		if (n == 0 || (n <= 2 && memcmp(at, "..", n) == 0))
			return false;
	}
	return true;
}

static bool preset_below(struct str path, const struct field_strs *folders)
{
	for (size_t i = 0; i < folders->n; i++) {
		struct str f = folders->p[i];

		if (path.n > f.n && memcmp(path.p, f.p, f.n) == 0 && path.p[f.n] == '/')
			return true;
	}
	return false;
}

static bool preset_has(struct str word, const struct field_strs *argv)
{
	return argv->n && str_eq(word, argv->p[0]);
}

static int preset_check_state(const struct agent_preset *p, struct err *e)
{
	for (size_t i = 0; i < p->state.n; i++) {
		if (!preset_is_path(p->state.p[i]))
			return err_set(e, ERR_INVALID, "state: %.*s is no path below ~/",
				       STR_CUT(p->state.p[i], 120));
	}
	for (size_t i = 0; i < p->credentials.n; i++) {
		if (!preset_is_path(p->credentials.p[i]) ||
		    !preset_below(p->credentials.p[i], &p->state))
			return err_set(e, ERR_INVALID, "credentials: %.*s is in no folder of state",
				       STR_CUT(p->credentials.p[i], 120));
	}
	for (size_t i = 0; i < p->settings.n; i++) {
		const struct agent_preset_setting *s = &p->settings.p[i];

		if (!preset_is_path(s->name) || !preset_below(s->name, &p->state))
			return err_set(e, ERR_INVALID, "settings: %.*s is in no folder of state",
				       STR_CUT(s->name, 120));
		if ((s->json.text.n > 0) + (s->text.n > 0) != 1)
			return err_set(e, ERR_INVALID, "settings: %.*s takes one of json and text",
				       STR_CUT(s->name, 120));
	}
	return 0;
}

static int preset_check_programs(const struct agent_preset *p, struct err *e)
{
	const struct field_strs *const lists[] = { &p->run, &p->acp, &p->login };

	if (!p->run.n && !p->acp.n)
		return err_set(e, ERR_INVALID, "it has neither run nor acp");
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		struct str program = lists[i]->n ? lists[i]->p[0] : STR_NONE;

		if (program.n && *program.p != '/' && memchr(program.p, '/', program.n))
			return err_set(e, ERR_INVALID,
				       "%.*s: a program is a name or an absolute path",
				       STR_CUT(program, 120));
	}
	for (size_t i = 0; i < p->npm.n; i++) {
		struct str of = p->npm.p[i].key;

		if (!preset_has(of, &p->run) && !preset_has(of, &p->acp))
			return err_set(e, ERR_INVALID,
				       "npm: %.*s is neither the program of run nor that of acp",
				       STR_CUT(of, 80));
	}
	if (p->has_tokens && !p->login.n)
		return err_set(e, ERR_INVALID, "tokens: it has no program that logs in (login)");
	for (size_t i = 0; p->has_tokens && i < p->tokens.urls.n; i++) {
		if (!str_starts(p->tokens.urls.p[i], "https://"))
			return err_set(e, ERR_INVALID, "tokens: %.*s is no https URL",
				       STR_CUT(p->tokens.urls.p[i], 120));
	}
	for (size_t i = 0; i < p->env.n; i++) {
		struct str name = p->env.p[i].key;

		if (!name.n || memchr(name.p, '=', name.n))
			return err_set(e, ERR_INVALID,
				       "env: the name of a variable is not empty and has no =");
	}
	return 0;
}

int agent_preset_decode(const struct json_val *v, struct str name, struct arena *a,
			struct agent_preset *ret, struct err *e)
{
	if (!config_is_name(name))
		return err_set(e, ERR_INVALID,
			       "the name of a preset is a-z, then a-z, 0-9 and -: at most %d",
			       CONFIG_SERVER_NAME_MAX);
	if (field_decode(&agent_preset_table, v, a, ret, e) < 0)
		return -1;
	ret->name = name;
	return preset_check_programs(ret, e) < 0 || preset_check_state(ret, e) < 0 ? -1 : 0;
}

/* ---- all of them ----------------------------------------------------------------------------- */

struct preset_entry {
	struct json_doc *doc;
	bool own; /* the operator's */
	struct agent_preset preset;
};

struct agent_presets {
	struct arena *arena;
	struct preset_entry p[AGENT_PRESETS_MAX];
	size_t n;
};

static int preset_add(struct agent_presets *all, struct str text, struct str name, bool own,
		      struct err *e)
{
	const struct json_options limits = { .bytes = AGENT_PRESET_BYTES_MAX,
					     .values = PRESET_VALUES_MAX,
					     .depth = PRESET_NESTED_MAX };
	struct str kept = { arena_dup(all->arena, name, e), name.n };
	AUTO(json_free) struct json_doc *doc = kept.p ? json_parse(text, &limits, e) : NULL;
	struct preset_entry *at = all->p;
	struct agent_preset preset;

	if (!doc || agent_preset_decode(json_root(doc), kept, all->arena, &preset, e) < 0)
		return -1;
	while (at < all->p + all->n && !str_eq(at->preset.name, kept))
		at++;
	if (at == all->p + AGENT_PRESETS_MAX)
		return err_set(e, ERR_LIMIT, "there are more than %d presets", AGENT_PRESETS_MAX);
	if (at == all->p + all->n)
		all->n++;
	json_free(at->doc);
	*at = (struct preset_entry){ take_ptr(doc), own, preset };
	return 0;
}

/* One file of the operator's; others of the folder are not looked at. */
static int preset_add_file(void *arg, int dir, const struct dirent *entry)
{
	struct {
		struct agent_presets *all;
		struct err *e;
	} *to = arg;
	autobuf struct buf text = BUF_INIT(AGENT_PRESET_BYTES_MAX);
	size_t n = strlen(entry->d_name);
	autoclose int fd = -1;
	int rc;

	if (n < 6 || strcmp(entry->d_name + n - 5, ".json") != 0 || *entry->d_name == '.')
		return 0;
	fd = openat(dir, entry->d_name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	rc = fd < 0 ? err_sys(to->e, errno, "open") : config_load(fd, entry->d_name, &text, to->e);
	if (rc == 0)
		rc = preset_add(to->all, buf_str(&text), (struct str){ entry->d_name, n - 5 }, true,
				to->e);
	if (rc < 0)
		err_wrap(to->e, "%s/%.80s", AGENT_PRESET_FOLDER, entry->d_name);
	return rc;
}

static int preset_add_folder(struct agent_presets *all, const char *config, struct err *e)
{
	const char *slash = strrchr(config, '/');
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%.*s" AGENT_PRESET_FOLDER,
			 slash ? (int)(slash - config) + 1 : 0, config);
	struct {
		struct agent_presets *all;
		struct err *e;
	} to = { all, e };

	if (n < 0 || n >= (int)sizeof(path))
		return err_set(e, ERR_INVALID, "the path of the operator's file is too long");
	if (folder_each(AT_FDCWD, path, preset_add_file, &to) == 0 ||
	    (!e->code && (errno == ENOENT || errno == ENOTDIR)))
		return 0;
	return e->code ? -1 : err_sys(e, errno, "read the folder " AGENT_PRESET_FOLDER);
}

static int preset_order(const void *a, const void *b)
{
	const struct str x = ((const struct preset_entry *)a)->preset.name,
			 y = ((const struct preset_entry *)b)->preset.name;
	int order = memcmp(x.p, y.p, x.n < y.n ? x.n : y.n);

	return order ? order : x.n < y.n ? -1 : x.n > y.n;
}

struct agent_presets *agent_presets_read(const char *config, struct err *e)
{
	AUTO(agent_presets_free) struct agent_presets *all = calloc(1, sizeof(*all));

	if (all)
		all->arena = arena_new(AGENT_PRESETS_MAX * (size_t)PRESET_ARENA_MAX);
	if (!all || !all->arena)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	for (size_t i = 0; i < ARRAY_LEN(preset_own); i++) {
		if (preset_add(all, str_of(preset_own[i].text), str_of(preset_own[i].name), false,
			       e) < 0)
			return err_wrap(e, "the preset %s", preset_own[i].name), NULL;
	}
	e->code = ERR_NONE;
	if (config && preset_add_folder(all, config, e) < 0)
		return NULL;
	qsort(all->p, all->n, sizeof(*all->p), preset_order);
	return take_ptr(all);
}

void agent_presets_free(struct agent_presets *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n; i++)
		json_free(p->p[i].doc);
	arena_free(p->arena);
	free(p);
}

size_t agent_presets_n(const struct agent_presets *p)
{
	return p->n;
}

const struct agent_preset *agent_presets_at(const struct agent_presets *p, size_t i)
{
	return &p->p[i].preset;
}

bool agent_preset_is_own(const struct agent_presets *p, const struct agent_preset *of)
{
	for (size_t i = 0; i < p->n; i++) {
		if (&p->p[i].preset == of)
			return p->p[i].own;
	}
	return false;
}

const struct agent_preset *agent_presets_find(const struct agent_presets *p, struct str name,
					      struct err *e)
{
	unsigned best = UINT_MAX, d;
	struct str near = STR_NONE;

	for (size_t i = 0; i < p->n; i++) {
		struct str is = p->p[i].preset.name;

		if (str_eq(is, name))
			return &p->p[i].preset;
		d = near_distance(name, is);
		if (d <= near_enough(name) && d < best) {
			best = d;
			near = is;
		}
	}
	if (near.p)
		err_set(e, ERR_INVALID, "there is no preset %.*s: did you mean %.*s?",
			STR_CUT(name, 64), STR_ARG(near));
	else
		err_set(e, ERR_INVALID, "there is no preset %.*s: holt agent presets lists them",
			STR_CUT(name, 64));
	return NULL;
}

int agent_preset_path(struct str path, const char *home, char *ret, size_t size, struct err *e)
{
	bool below = path.n > 1 && path.p[0] == '~' && path.p[1] == '/';
	int n = below ? snprintf(ret, size, "%s%.*s", home, (int)path.n - 1, path.p + 1)
		      : snprintf(ret, size, "%.*s", STR_ARG(path));

	return n < 0 || (size_t)n >= size ? err_set(e, ERR_INVALID, "a path is too long") : 0;
}
