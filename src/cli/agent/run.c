/*
 * `holt agent run`: an agent's own terminal interface, in a lasting sandbox of a folder (place.h).
 * Its program is an exec in the background, to which this terminal is attached: it goes on where
 * somebody detaches, and `holt agent run` in the folder comes back to it.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/agent/news.h"
#include "cli/agent/place.h"
#include "cli/agent/worktree.h"
#include "cli/common/home.h"
#include "cli/common/safe.h"
#include "cli/exec/detach.h"
#include "cli/exec/job.h"
#include "cli/exec/session.h"
#include "cli/link/ports.h"
#include "modules/agent_key.h"

enum { EXIT_HOLT = 125, PORTS_MAX = 16, ARENA_MAX = 1 << 20, DAY_S = 86400 };
#define EXECS "agent-" /* how ids of its execs begin */

struct run_options {
	struct verb_options common;
	const char *config, *name, *folder, *state, *prompt, *leave, *branch;
	struct env_options env;
	struct option_list volumes, allow, ports;
	uint64_t memory;
	uint32_t cpu_milli;
	bool fresh, remove, resume, autonomous, input, detach, quiet;
};

static const struct option_row rows[] = {
	OPTION(struct run_options, prompt, OPTION_TEXT, "prompt", .letter = 'p', .arg = "TEXT",
	       .doc = "Give it this one prompt, print the answer, and end with its status."),
	OPTION(struct run_options, input, OPTION_FLAG, "interactive", .letter = 'i',
	       .doc = "With -p: pass on standard input."),
	OPTION(struct run_options, resume, OPTION_FLAG, "continue", .letter = 'c',
	       .doc = "Go on with the last session of the folder."),
	OPTION(struct run_options, autonomous, OPTION_FLAG, "autonomous",
	       .doc = "Have it ask nothing: the sandbox alone is what holds it."),
	OPTION(struct run_options, folder, OPTION_TEXT, "folder", .letter = 'w', .arg = "DIR",
	       .doc = "The folder to work on; by default this one."),
	OPTION(struct run_options, branch, OPTION_TEXT, "worktree", .arg = "BRANCH",
	       .doc = "Work on a branch of its own, in a worktree beside the folder."),
	OPTION(struct run_options, name, OPTION_TEXT, "name", .letter = 'n', .arg = "NAME",
	       .doc = "Name of the sandbox; by default it is made of agent and folder."),
	OPTION(struct run_options, fresh, OPTION_FLAG, "new",
	       .doc = "Make another sandbox of this folder, beside those that are there."),
	OPTION(struct run_options, remove, OPTION_FLAG, "rm",
	       .doc = "Remove the sandbox when the program ends."),
	OPTION(struct run_options, detach, OPTION_FLAG, "detach", .letter = 'd',
	       .doc = "Start it and print the name of its sandbox; run again to attach."),
	OPTION(struct run_options, allow, OPTION_LIST, "allow", .arg = "HOST[:PORT]",
	       .doc = "Let it reach this host, too. May be repeated."),
	OPTION(struct run_options, ports, OPTION_LIST, "publish", .arg = "[HOST:]PORT",
	       .doc = "Forward this port to 127.0.0.1, as holt forward does. May be repeated."),
	OPTION(struct run_options, volumes, OPTION_LIST, "volume", .letter = 'v',
	       .arg = "HOST:INSIDE[:ro|rw|rw-all]",
	       .doc = "Give a new sandbox this folder or file, too. May be repeated."),
	ENV_ROWS(struct run_options, env),
	OPTION(struct run_options, state, OPTION_TEXT, "state", .arg = "DIR",
	       .doc = "What it keeps is here, as in a home; by default in Holt's data folder."),
	OPTION(struct run_options, memory, OPTION_SIZE, "memory", .letter = 'm', .arg = "SIZE",
	       .min = LIMIT_MEMORY_MIN, .max = LIMIT_MEMORY_MAX,
	       .doc = "Memory of a new sandbox, such as 2G; by default the hub's."),
	OPTION(struct run_options, cpu_milli, OPTION_MILLI, "cpus", .arg = "N",
	       .min = LIMIT_CPU_MIN, .max = LIMIT_CPU_MAX,
	       .doc = "Share of processors of a new sandbox, such as 2; by default the hub's."),
	OPTION(struct run_options, leave, OPTION_TEXT, "detach-keys", .arg = "KEYS",
	       .doc = "Keys that detach; " DETACH_KEYS_DEFAULT " by default."),
	OPTION(struct run_options, quiet, OPTION_FLAG, "quiet", .letter = 'q',
	       .doc = "Show no line of what it may not reach; holt events has it."),
	CONFIG_ROW(struct run_options, config),
	HELP_ROW(struct run_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

struct run {
	const struct run_options *o;
	char **more; /* arguments behind its own; NULL-terminated; NULL: none */
	struct arena *arena;
	struct agent_file file;
	struct agent_program program;
	struct agent_place place;
	struct hub_link *link;
	char images[PATH_MAX], folder[PATH_MAX], state[PATH_MAX], key[CONFIG_NAME_MAX * 2];
	char exec[JOB_ID_MAX + 1];
	uint64_t seen; /* of an exec that was there */
	int lock; /* held until its program has started; -1 */
};

/* ---- what is asked for ----------------------------------------------------------------------- */

static int run_find_preset(struct run *r, const char *name, struct err *e)
{
	if (agent_place_find(&r->place, &r->file, name, e) < 0)
		return -1;
	return r->place.preset->run.n
		     ? 0
		     : err_set(e, ERR_INVALID, "agent %.80s has no terminal interface", name);
}

/* It may write all of the folder but what the host acts on. */
static int run_find_folder(struct run *r, struct err *e)
{
	const char *said = r->o->folder ? r->o->folder : ".", *home = getenv("HOME");
	char own[PATH_MAX];
	struct stat st;
	size_t n;

	if (!realpath(said, r->folder) || stat(r->folder, &st) < 0)
		return err_sys(e, errno, "%.200s", said);
	if (!S_ISDIR(st.st_mode))
		return err_set(e, ERR_INVALID, "%.200s is no folder", said);
	n = strlen(r->folder);
	if (!r->folder[1] || (!r->o->folder && home && realpath(home, own) &&
			      strncmp(own, r->folder, n) == 0 && (!own[n] || own[n] == '/')))
		return err_set(e, ERR_INVALID,
			       "%s has your home in it: change to the folder of a project, or say "
			       "-w DIR",
			       r->folder);
	r->place.folder = r->folder;
	if (!r->o->branch)
		return 0;
	memcpy(own, r->folder, sizeof(own));
	return agent_worktree_make(own, r->o->branch, r->folder, e);
}

static int run_find_program(struct run *r, struct err *e)
{
	const struct agent_preset *p = r->place.preset;
	int rc = agent_program_find(p, &p->run, r->images, r->arena, &r->program, e);

	r->place.program = &r->program;
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	return err_set(e, ERR_PROGRAM, "%.*s is neither installed nor fetched: holt agent add %.*s",
		       STR_CUT(p->run.p[0], 80), STR_CUT(p->name, 64));
}

static int run_find_state(struct run *r, struct err *e)
{
	if (r->o->state && !realpath(r->o->state, r->state))
		return err_sys(e, errno, "--state %.200s", r->o->state);
	if (!r->o->state && agent_state_folder(r->images, r->place.agent, r->state, e) < 0)
		return -1;
	r->place.state = r->state;
	return agent_state_make(r->place.preset, r->state, e);
}

/* A log-in stands before a key. */
static void run_find_key(struct run *r)
{
	const struct config_file *file = config_file(r->file.config);
	struct agent_place *p = &r->place;
	const struct agent_preset_secret *key = agent_key_find(p->preset, file, r->images);
	char login[AGENT_LOGIN_MAX];

	p->login = agent_login_find(p->preset, file, r->images, p->agent, NULL);
	if (!p->login && !key)
		return;
	agent_login_name(p->agent, login);
	snprintf(r->key, sizeof(r->key), "%.*s=%.*s",
		 STR_CUT(p->login ? str_of(login) : key->name, CONFIG_NAME_MAX),
		 STR_CUT(p->login ? STR_LIT(AGENT_LOGIN_VARIABLE) : key->name, CONFIG_NAME_MAX));
	p->key = r->key;
}

static int run_find_toolchains(struct run *r, struct err *e)
{
	return toolchains_given(config_file(r->file.config), r->folder, true)
		     ? toolchains_find(r->arena, &r->place.toolchains, e)
		     : 0;
}

static int run_find(struct run *r, const char *name, struct err *e)
{
	if (agent_file_open(&r->file, r->o->config, e) < 0 ||
	    home_file("images", r->images, e) < 0 || run_find_preset(r, name, e) < 0 ||
	    run_find_folder(r, e) < 0 || run_find_program(r, e) < 0 || run_find_state(r, e) < 0 ||
	    run_find_toolchains(r, e) < 0)
		return -1;
	run_find_key(r);
	r->place.volumes = &r->o->volumes;
	r->place.allow = &r->o->allow;
	r->place.memory = r->o->memory;
	r->place.cpu_milli = r->o->cpu_milli;
	return 0;
}

/* Of several starts of an agent one makes the sandbox, and the others come to it. No sandbox has
 * the folder of state itself, so none holds this lock. */
static int run_lock(struct run *r, struct err *e)
{
	int rc;

	r->lock = open(r->state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r->lock < 0)
		return err_sys(e, errno, "open %s", r->state);
	while ((rc = flock(r->lock, LOCK_EX)) < 0 && errno == EINTR)
		;
	return rc < 0 ? err_sys(e, errno, "lock %s", r->state) : 0;
}

static void run_unlock(struct run *r)
{
	if (r->lock >= 0)
		close(r->lock);
	r->lock = -1;
}

/* ---- its program ----------------------------------------------------------------------------- */

static void run_words(struct json_writer *w, const struct field_strs *words, size_t from)
{
	for (size_t i = from; i < words->n; i++)
		json_write_str(w, words->p[i]);
}

/* The members of an exec that all ways share. */
static int run_write_command(const struct run *r, struct json_writer *w, bool tty, struct err *e)
{
	const struct agent_preset *p = r->place.preset;
	struct env_options env = r->o->env;

	env.git = true;
	json_write_key(w, "command");
	json_write_str(w, r->program.argv.p[0]);
	json_write_key(w, "args");
	json_write_array(w);
	run_words(w, &r->program.argv, 1);
	run_words(w, &p->no_sandbox, 0);
	if (r->o->autonomous)
		run_words(w, &p->autonomous, 0);
	if (r->o->resume)
		run_words(w, &p->resume, 0);
	if (r->o->prompt) {
		run_words(w, &p->print, 0);
		json_write_text(w, r->o->prompt);
	}
	for (char **more = r->more; more && *more; more++)
		json_write_text(w, *more);
	json_write_array_end(w);
	hub_link_text(w, "working_dir", r->folder);
	return agent_place_env(&r->place, w, &env, tty, e);
}

static int run_start(struct run *r, struct err *e)
{
	autobuf struct buf text = BUF_INIT(HUB_BODY_MAX);
	struct json_writer w = json_writer(&text);
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	snprintf(r->exec, sizeof(r->exec), EXECS "%jx%lx", (uintmax_t)now.tv_sec,
		 now.tv_nsec / 1000);
	json_write_object(&w);
	hub_link_text(&w, "sandbox", r->place.id);
	hub_link_text(&w, "exec_id", r->exec);
	json_write_key(&w, "background");
	json_write_bool(&w, true);
	json_write_key(&w, "timeout");
	json_write_uint(&w, 0);
	if (run_write_command(r, &w, true, e) < 0)
		return -1;
	hub_link_tty(&w);
	json_write_object_end(&w);
	return json_write_done(&w, e) < 0
		     ? -1
		     : hub_link_ask(r->link, "POST", "/v1/exec", buf_str(&text), NULL, e);
}

/* One that was left running: r->exec, else "". */
static int run_find_left(struct run *r, struct err *e)
{
	AUTO(json_free) struct json_doc *doc = NULL;
	char path[JOB_WORDS_MAX];
	struct json_iter it;

	r->exec[0] = '\0';
	if (hub_link_path(path, sizeof(path), r->place.id, "/execs", e) < 0 ||
	    hub_link_ask(r->link, "GET", path, STR_NONE, &doc, e) < 0)
		return -1;
	it = json_iter(json_root(doc));
	while (!*r->exec && json_next(&it)) {
		struct str id = json_str(json_get(it.val, "exec_id"));

		if (str_starts(id, EXECS) && json_bool(json_get(it.val, "tty")) &&
		    str_is(json_str(json_get(it.val, "state")), "running"))
			snprintf(r->exec, sizeof(r->exec), "%.*s", STR_CUT(id, JOB_ID_MAX));
	}
	return *r->exec ? job_seen(r->link, r->place.id, r->exec, &r->seen, e) : 0;
}

/* ---- at the terminal ------------------------------------------------------------------------- */

static void run_tell(const struct run *r)
{
	const struct field_strs *hosts = &r->place.preset->hosts;

	if (!isatty(STDERR_FILENO))
		return;
	fprintf(stderr,
		"holt: %s %.*s in sandbox %s, on %s; network:", *r->exec ? "back to" : "starting",
		STR_CUT(r->place.agent, 64), r->place.id, r->folder);
	for (size_t i = 0; r->place.made && i < hosts->n; i++)
		fprintf(stderr, " %.*s", STR_CUT(hosts->p[i], 80));
	fprintf(stderr, "%s; %s detaches\n",
		r->place.made && hosts->n ? ""
		: r->place.made		  ? " none"
					  : " as before",
		r->o->leave ? r->o->leave : DETACH_KEYS_DEFAULT);
}

static int run_publish(const struct run *r, struct err *e)
{
	for (size_t i = 0; i < r->o->ports.n; i++) {
		AUTO(json_free) struct json_doc *doc = NULL;
		struct port_words port;

		if (ports_read(r->o->ports.p[i], &port, e) < 0 ||
		    ports_forward(r->link, r->place.id, &port, &doc, e) < 0)
			return -1;
		fprintf(stderr, "holt: port %u is at ", port.guest);
		safe_puts(stderr, json_str(json_get(json_root(doc), "host")));
	}
	return 0;
}

/* Whether its program has ended, so that the sandbox may go. */
static bool run_is_over(struct run *r)
{
	AUTO(json_free) struct json_doc *doc = NULL;
	char path[JOB_WORDS_MAX];
	struct err none;

	return job_path(path, r->place.id, r->exec, "", &none) == 0 &&
	       hub_link_ask(r->link, "GET", path, STR_NONE, &doc, &none) == 0 &&
	       !str_is(json_str(json_get(json_root(doc), "state")), "running");
}

static int run_attach(struct run *r, const struct detach *leave, struct err *e)
{
	struct news news = NEWS_INIT;
	bool named = r->o->name || r->o->fresh;
	char path[JOB_WORDS_MAX], again[CONFIG_NAME_MAX * 2 + 256];
	struct exec_session_spec spec = {
		.path = path, .input = true, .leave = leave, .seen = r->seen, .again = again
	};
	int status;

	snprintf(again, sizeof(again), "holt agent run %s%s%s%s%s%s%.*s", named ? "--name " : "",
		 named ? r->place.id : "", named ? " " : "", r->o->branch ? "--worktree " : "",
		 r->o->branch ? r->o->branch : "", r->o->branch ? " " : "",
		 STR_CUT(r->place.agent, 64));
	if (job_path(path, r->place.id, r->exec, "/attach?offset=0", e) < 0 ||
	    (!r->o->quiet &&
	     news_start(&news, r->place.id, &r->place.preset->optional_hosts, true, e) < 0))
		return -1;
	spec.news = news.fd >= 0 ? news.fd : 0;
	status = exec_session(r->link, &spec, e);
	news_stop(&news);
	return status;
}

static int run_at_terminal(struct run *r, const struct detach *leave, struct err *e)
{
	int status;

	if (!r->more && !r->o->resume && !r->o->autonomous && !r->place.made &&
	    run_find_left(r, e) < 0)
		return -1;
	run_tell(r);
	if (!*r->exec && run_start(r, e) < 0)
		return -1;
	run_unlock(r);
	if (r->o->detach) {
		puts(r->place.id);
		return 0;
	}
	status = run_attach(r, leave, e);
	if (status >= 0 && r->o->remove && run_is_over(r) &&
	    agent_place_remove(&r->place, r->link, e) < 0)
		return -1;
	return status;
}

/* ---- for scripts ----------------------------------------------------------------------------- */

static int run_prompt(struct run *r, struct err *e)
{
	autobuf struct buf text = BUF_INIT(HUB_BODY_MAX);
	struct json_writer w = json_writer(&text);
	struct exec_session_spec spec = { .input = r->o->input };
	struct news news = NEWS_INIT;
	char path[256];
	int status;

	run_unlock(r);
	json_write_object(&w);
	json_write_key(&w, "open");
	json_write_object(&w);
	json_write_key(&w, "timeout");
	json_write_uint(&w, DAY_S);
	json_write_key(&w, "stdin");
	json_write_bool(&w, r->o->input);
	if (run_write_command(r, &w, false, e) < 0)
		return -1;
	json_write_object_end(&w);
	json_write_object_end(&w);
	if (json_write_done(&w, e) < 0 ||
	    hub_link_path(path, sizeof(path), r->place.id, "/exec", e) < 0 ||
	    (!r->o->quiet &&
	     news_start(&news, r->place.id, &r->place.preset->optional_hosts, false, e) < 0))
		return -1;
	spec.path = path;
	spec.open = buf_str(&text);
	status = exec_session(r->link, &spec, e);
	news_stop(&news);
	return r->o->remove && agent_place_remove(&r->place, r->link, e) < 0 ? -1 : status;
}

/* ---- the verb -------------------------------------------------------------------------------- */

static int run_all(struct run *r, const struct verb_input *in, const struct detach *leave,
		   struct err *e)
{
	if (run_find(r, in->operands[0], e) < 0)
		return -1;
	r->link = hub_link_open(e);
	if (!r->link || run_lock(r, e) < 0 ||
	    agent_place_name(&r->place, r->link, r->o->name, r->o->fresh, e) < 0 ||
	    agent_place_open(&r->place, r->link, e) < 0 || run_publish(r, e) < 0)
		return -1;
	if (r->place.before_login)
		fprintf(stderr,
			"holt: %s is older than the log-in and lacks it: holt down %s, or --new\n",
			r->place.id, r->place.id);
	return r->o->prompt ? run_prompt(r, e) : run_at_terminal(r, leave, e);
}

static int run_check(const struct verb_input *in, struct err *e)
{
	const struct run_options *o = in->options;
	struct port_words port;
	struct detach leave;

	if (detach_parse(o->leave ? o->leave : DETACH_KEYS_DEFAULT, &leave, e) < 0)
		return -1;
	if (o->ports.n > PORTS_MAX)
		return err_set(e, ERR_INVALID, "--publish: at most %d ports", PORTS_MAX);
	for (size_t i = 0; i < o->ports.n; i++) {
		if (ports_read(o->ports.p[i], &port, e) < 0)
			return -1;
	}
	if (o->prompt && o->detach)
		return err_set(e, ERR_INVALID, "-p waits for the answer: leave out -d");
	if (o->input && !o->prompt)
		return err_set(e, ERR_INVALID, "-i is for -p: a terminal has its input");
	if (!o->prompt && !o->detach && !(isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)))
		return err_set(e, ERR_INVALID,
			       "standard input and output are no terminal: say -p PROMPT, or -d");
	return 0;
}

static int run_run(const struct verb_input *in, struct err *e)
{
	static struct run r; /* large */
	struct detach leave;
	int status;

	r.lock = -1;
	r.o = in->options;
	r.more = in->rest && in->rest[0] ? in->rest : NULL;
	r.arena = arena_new(ARENA_MAX);
	if (!r.arena)
		return err_set(e, ERR_LIMIT, "out of memory");
	status = detach_parse(r.o->leave ? r.o->leave : DETACH_KEYS_DEFAULT, &leave, e) < 0
		       ? -1
		       : run_all(&r, in, &leave, e);
	run_unlock(&r);
	hub_link_close(r.link);
	agent_file_fini(&r.file);
	arena_free(r.arena);
	return status;
}

const struct verb agent_run_verb = {
	.name = "agent run",
	.usage = "[OPTION...] NAME [-- ARGUMENT...]",
	.doc = "Run an agent's own interface in a sandbox of this folder.",
	.more = "NAME is an agent of the operator's file, or a preset. It may write the folder,\n"
		"but for what programs of this machine act on, and reaches the hosts of its\n"
		"preset alone. Run it again to come back: to a program that runs on, or to the\n"
		"sandbox, which keeps what was installed. The exit status is the program's.",
	.page = "holt-agent",
	.options = &options,
	.size = sizeof(struct run_options),
	.min_operands = 1,
	.max_operands = 1,
	.usage_exit = EXIT_HOLT,
	.check = run_check,
	.run = run_run,
	.fail = hub_link_fail,
};
