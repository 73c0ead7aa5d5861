/* `holt up`: creates a sandbox of the hub, which stays until it is removed or expires. */
#include "box/host/box.h"
#include "cli/build/build.h"
#include "cli/link/ask.h"
#include "cli/link/ports.h"
#include "cli/common/safe.h"
#include "cli/common/secret.h"
#include "cli/common/verb.h"
#include "cli/common/volume.h"

enum { PORTS_MAX = 16, VOLUMES_MAX = 32 };

struct up_options {
	struct verb_options common;
	const char *name, *cwd, *allow, *workspace;
	struct env_options env;
	struct option_list ports, labels, volumes, network, secrets, logins, profiles, modules;
	uint64_t memory, disk, ttl_ms, idle_ms;
	uint32_t pids, cpu_milli, files, retention, user, no_network, output;
	bool debug;
};

static const struct option_row rows[] = {
	OPTION(struct up_options, name, OPTION_TEXT, "name", .letter = 'n', .arg = "NAME",
	       .member = "id",
	       .doc = "Name: letters, digits, _ and -; by default a generated one."),
	ENV_ROWS(struct up_options, env),
	LABEL_ROW(struct up_options, labels),
	OPTION(struct up_options, volumes, OPTION_LIST, "volume", .letter = 'v',
	       .arg = "HOST:INSIDE[:ro|rw|rw-all]",
	       .doc = "Make a directory or file of the host visible inside, read-only by default. "
		      "May be repeated."),
	OPTION(struct up_options, ports, OPTION_LIST, "publish", .letter = 'p',
	       .arg = "[HOST:]PORT",
	       .doc = "Forward this port to 127.0.0.1, as holt forward does. May be repeated."),
	OPTION(struct up_options, workspace, OPTION_TEXT, "workspace", .arg = "NAME",
	       .member = "workspace",
	       .doc = "Show this workspace at /workspace, and keep what changes there."),
	OPTION(struct up_options, cwd, OPTION_TEXT, "workdir", .letter = 'w', .arg = "DIR",
	       .member = "cwd",
	       .doc = "Working directory; by default the template's, or /workspace."),
	OPTION(struct up_options, ttl_ms, OPTION_SECONDS, "ttl", .arg = "TIME", .min = 1000,
	       .member = "timeout_seconds", .doc = "Lifetime: 30, 5m, 2h; by default unlimited."),
	OPTION(struct up_options, idle_ms, OPTION_SECONDS, "idle", .arg = "TIME", .min = 1000,
	       .member = "idle_seconds",
	       .doc = "Time without use after which it ends; by default unlimited."),
	OPTION(struct up_options, retention, OPTION_CHOICE, "retention",
	       .arg = "destroy|stop|cold|snapshot", .member = "retention",
	       .doc = "What happens to its files at the deadline; by default they are deleted."),
	OPTION(struct up_options, memory, OPTION_SIZE, "memory", .letter = 'm', .arg = "SIZE",
	       .min = LIMIT_MEMORY_MIN, .max = LIMIT_MEMORY_MAX, .member = "limits.memory_mb",
	       .doc = "Memory for processes and files, such as 512M or 2G; by default the hub's."),
	OPTION(struct up_options, disk, OPTION_SIZE, "disk", .arg = "SIZE", .min = LIMIT_DISK_MIN,
	       .max = LIMIT_MEMORY_MAX, .member = "limits.disk_mb",
	       .doc = "Limit of its files, a part of the memory; by default the hub's."),
	OPTION(struct up_options, pids, OPTION_COUNT, "pids", .arg = "N", .min = LIMIT_PIDS_MIN,
	       .max = LIMIT_PIDS_MAX, .member = "limits.pids",
	       .doc = "Maximum number of processes and threads; by default the hub's."),
	OPTION(struct up_options, cpu_milli, OPTION_MILLI, "cpus", .arg = "N", .min = LIMIT_CPU_MIN,
	       .max = LIMIT_CPU_MAX, .member = "limits.cpus",
	       .doc = "Share of processors, such as 0.5 or 2; by default the hub's."),
	OPTION(struct up_options, files, OPTION_COUNT, "open-files", .arg = "N",
	       .min = LIMIT_FILES_MIN, .max = LIMIT_FILES_MAX, .member = "limits.open_files",
	       .doc = "Maximum number of open files per program; by default the hub's."),
	USER_ROW(struct up_options),
	OPTION(struct up_options, debug, OPTION_FLAG, "debug", .member = "debug",
	       .doc = "Let its programs trace each other, for gdb, strace and sanitizers."),
	OPTION(struct up_options, network, OPTION_LIST, "allow", .arg = "HOST[:PORT]",
	       .doc = "Allow it to reach this host, or *.DOMAIN, instead of the template's hosts. "
		      "May be repeated."),
	NO_NETWORK_ROW(struct up_options),
	BOUND_SECRET_ROW(struct up_options, secrets),
	BEGIN_LOGIN_ROW(struct up_options, logins),
	PROFILE_ROW(struct up_options),
	OPTION(struct up_options, modules, OPTION_LIST, "module", .arg = "NAME",
	       .member = "modules",
	       .doc = "Let its programs call this module's tools; '*' for all. May be repeated."),
	BUILD_ALLOW_ROW(struct up_options),
	OUTPUT_ROW(struct up_options),
	HELP_ROW(struct up_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

static int write_volumes(const struct option_list *volumes, struct json_writer *w, struct err *e)
{
	bool told = false;

	if (volumes->n > VOLUMES_MAX)
		return err_set(e, ERR_INVALID, "-v: at most %d times", VOLUMES_MAX);
	json_write_key(w, "volumes");
	json_write_array(w);
	for (size_t i = 0; i < volumes->n; i++) {
		struct volume_words v;

		if (volume_read(volumes->p[i], &v, e) < 0)
			return -1;
		if (v.size)
			return err_set(e, ERR_INVALID, "-v: size= is for holt run");
		told = told || volume_tell(&v);
		json_write_object(w);
		hub_link_text(w, "host", v.host);
		json_write_key_str(w, STR_LIT("inside"));
		json_write_str(w, v.inside);
		hub_link_text(w, "mode", v.all ? "rw-all" : v.writable ? "rw" : "ro");
		json_write_object_end(w);
	}
	json_write_array_end(w);
	return 0;
}

/* A path always means a folder: ".", or a name that begins with "./", "../" or "/". */
static bool is_path(const char *text)
{
	const char *slash = strchrnul(text, '/');
	size_t first = (size_t)(slash - text);

	return first == 0 ? *slash : first <= 2 && strspn(text, ".") == first;
}

/* Builds the folder's image. It is fast if the folder has not changed since the last build. */
static int find_template(const struct verb_input *in, struct built *built, const char **ret,
			 struct err *e)
{
	const struct up_options *o = in->options;
	const struct build_how how = { .allow = o->allow, .cli = in->cli };

	*ret = in->n_operands ? in->operands[0] : NULL;
	if (!*ret || !is_path(*ret))
		return 0;
	if (build_folder(*ret, &how, built, e) < 0)
		return -1;
	*ret = built->name;
	return 0;
}

static int read_ports(const struct option_list *from, struct port_words to[PORTS_MAX],
		      struct err *e)
{
	if (from->n > PORTS_MAX)
		return err_set(e, ERR_INVALID, "--publish: at most %d ports", PORTS_MAX);
	for (size_t i = 0; i < from->n; i++) {
		if (ports_read(from->p[i], &to[i], e) < 0)
			return err_wrap(e, "--publish");
	}
	return 0;
}

/* With all of them, or it does not stay. */
static int publish(struct hub_link *l, const struct json_val *made, const struct port_words *ports,
		   size_t n, struct err *e)
{
	struct str id = json_str(json_get(made, "id"));
	char name[SANDBOX_ID_MAX + 1], path[256];
	struct err ignored;

	snprintf(name, sizeof(name), "%.*s", STR_CUT(id, SANDBOX_ID_MAX));
	for (size_t i = 0; i < n; i++) {
		if (ports_forward(l, name, &ports[i], NULL, e) == 0)
			continue;
		if (hub_link_path(path, sizeof(path), name, "", &ignored) < 0 ||
		    hub_link_ask(l, "DELETE", path, STR_NONE, NULL, &ignored) < 0)
			return err_wrap(e, "sandbox %s was made, but its ports are not forwarded",
					name);
		return -1;
	}
	return 0;
}

static int up_make(const struct verb_input *in, struct err *e)
{
	const struct up_options *o = in->options;
	AUTO(hub_link_close) struct hub_link *l = NULL;
	AUTO(json_free) struct json_doc *doc = NULL;
	autobuf struct buf text = BUF_INIT(HUB_BODY_MAX);
	struct json_writer w = json_writer(&text);
	const struct secret_options secrets = { .words = o->secrets, .logins = o->logins };
	struct port_words ports[PORTS_MAX];
	const struct json_val *limits;
	const char *template;
	struct built built;

	if (no_network_check(o->no_network, o->network.n, e) < 0 ||
	    read_ports(&o->ports, ports, e) < 0)
		return -1;
	if (find_template(in, &built, &template, e) < 0)
		return -1;
	json_write_object(&w);
	hub_link_text(&w, "template", template);
	if (o->network.n || o->no_network)
		hub_link_network(&w, o->network.p, o->network.n);
	if (hub_ask_members(in, &w, e) < 0 || hub_link_secrets(&w, &secrets, e) < 0 ||
	    write_volumes(&o->volumes, &w, e) < 0 || hub_link_env(&w, &o->env, false, e) < 0 ||
	    hub_link_labels(&w, &o->labels, e) < 0)
		return -1;
	json_write_object_end(&w);
	if (json_write_done(&w, e) < 0)
		return -1;
	l = hub_link_open(e);
	if (!l)
		return -1;
	if (hub_link_ask(l, "POST", "/v1/sandboxes", buf_str(&text), &doc, e) < 0) {
		if (e->code == ERR_SANDBOX_NOT_FOUND)
			e->code = ERR_TEMPLATE_NOT_FOUND; /* REST has one code for both */
		return -1;
	}
	if (publish(l, json_root(doc), ports, o->ports.n, e) < 0)
		return -1;
	limits = json_get(json_root(doc), "limits");
	if (o->memory && str_is(json_str(json_get(limits, "enforced_by")), "rlimit"))
		fputs(MEMORY_NOTE, stderr);
	cpus_check(o->cpu_milli);
	if (o->output == OUTPUT_JSON)
		return hub_link_print(json_root(doc), e);
	safe_puts(stdout, json_str(json_get(json_root(doc), "id")));
	return 0;
}

const struct verb up_verb = {
	.name = "up",
	.alias = "create",
	.usage = "[OPTION...] [TEMPLATE|FOLDER]",
	.doc = "Make a lasting sandbox, and print its name.",
	.more = "TEMPLATE is a name from holt images; by default host, this machine's programs.\n"
		"A FOLDER, ./NAME or /PATH, is built as by holt build.",
	.page = "holt-sandbox",
	.options = &options,
	.size = sizeof(struct up_options),
	.max_operands = 1,
	.run = up_make,
	.fail = hub_link_fail,
};
