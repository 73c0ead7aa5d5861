/* MCP servers, as people write them: mcpServers. */
#include "config/internal.h"
#include "config/variables.h"

const char *const config_wire_names[CONFIG_WIRES] = {
	[CONFIG_STDIO] = "stdio",
	[CONFIG_HTTP] = "http",
	[CONFIG_SSE] = "sse",
};

#define FOLDERS .max = 64, .item_min = 1, .item_max = CONFIG_TEXT_MAX
#define TOOLS .max = CONFIG_LIST_MAX, .item_min = 1, .item_max = CONFIG_TEXT_MAX
#define VALUES .max = 256, .item_max = CONFIG_VALUE_MAX

/* The fields of a program in a struct S, whose members begin with `at`. */
#define CONFIG_PROGRAM_FIELDS(S, at)                                                               \
	FIELD_NAMED(                                                                               \
		S, at command, "command", .min = 1, .max = CONFIG_TEXT_MAX,                        \
		.doc = "Program to run, a name in PATH or an absolute path. No shell interprets "  \
		       "it."),                                                                     \
		FIELD_NAMED(S, at args, "args", VALUES,                                            \
			    .doc = "Arguments of the program. Variables are replaced: ${NAME}, "   \
				   "${NAME:-default}, ${input:ID}, ${secret:NAME}."),              \
		FIELD_NAMED(                                                                       \
			S, at env, "env", VALUES, .flags = FIELD_SECRET,                           \
			.doc = "Environment of the program, in addition to PATH, HOME, LANG and "  \
			       "USER. Variables are replaced."),                                   \
		FIELD_NAMED_OBJECT(                                                                \
			S, at sandbox, "sandbox", sandbox_table, .flags = FIELD_SWITCH,            \
			.doc = "Sandbox in which the program runs. false: none, so it has the "    \
			       "hub's rights.")

static const struct field sandbox_fields[] = {
	FIELD(struct config_server_sandbox, template, .min = 1, .max = CONFIG_TEXT_MAX,
	      .def = DEFAULT_STR("host"), .doc = "Template of the sandbox."),
	FIELD(struct config_server_sandbox, read, FOLDERS,
	      .doc = "Folders of the host that the program may read, at the same path inside."),
	FIELD(struct config_server_sandbox, write, FOLDERS,
	      .doc = "Folders of the host that the program may also change."),
	FIELD(struct config_server_sandbox, state, FOLDERS,
	      .doc = "Folders and files of the host that are the program's own state, such as "
		     "~/.codex: it may change all of them, and nothing in them is protected."),
	FIELD(struct config_server_sandbox, network, .max = CONFIG_LIST_MAX, .item_min = 1,
	      .item_max = CONFIG_TEXT_MAX,
	      .doc = "Hosts that the program may reach: HOST:PORT, *.DOMAIN:PORT, presets. "
		     "Default: none."),
	FIELD_NAMED(struct config_server_sandbox, install_scripts, "installScripts",
		    .doc = "Of a package that npx runs: run the install scripts of it and of what "
			   "it depends on when it is fetched, in the sandbox that fetches it."),
};
static const struct field_table sandbox_table = FIELD_TABLE(struct config_server_sandbox,
							    sandbox_fields);

static const struct field approval_fields[] = {
	FIELD_ENUM(struct config_approval, then, config_then_names, .flags = FIELD_REQUIRED,
		   .doc = "Decision about a call of the tool."),
};
static const struct field_table approval_table = FIELD_TABLE(struct config_approval,
							     approval_fields, .bare = true);

static const struct field server_fields[] = {
	FIELD_ENUM(struct config_server, type, config_wire_names,
		   .has = FIELD_HAS(struct config_server, has_type),
		   .doc = "Transport. Default: stdio for a command, http (Streamable HTTP) for a "
			  "url."),
	CONFIG_PROGRAM_FIELDS(struct config_server, ),
	FIELD(struct config_server, cwd, .min = 1, .max = CONFIG_TEXT_MAX,
	      .doc = "Working directory of the program, an absolute path. Variables are replaced."),
	FIELD(struct config_server, url, .min = 1, .max = CONFIG_VALUE_MAX,
	      .doc = "URL of a remote server, instead of a command. Variables are replaced."),
	FIELD(struct config_server, headers, VALUES, .flags = FIELD_SECRET,
	      .doc = "HTTP headers to send with each request. Variables are replaced."),
	FIELD_NAMED(struct config_server, allow_tools, "allowTools", TOOLS,
		    .has = FIELD_HAS(struct config_server, has_allow_tools),
		    .doc = "Tools that may be used, by the server's own names. Default: all."),
	FIELD_NAMED(struct config_server, deny_tools, "denyTools", TOOLS,
		    .doc = "Tools that may not be used, even if allowTools names them."),
	FIELD_ENUM(struct config_server, approval, config_then_names,
		   .def = DEFAULT_ENUM(CONFIG_ASK), .doc = "Decision about a call of a tool."),
	FIELD_DICT(struct config_server, approvals, approval_table, .max = CONFIG_LIST_MAX,
		   .item_min = 1, .item_max = CONFIG_TEXT_MAX,
		   .doc = "Decisions for single tools, by the server's own names."),
	FIELD_NAMED(struct config_server, read_only_tools, "readOnlyTools", TOOLS,
		    .doc = "Tools that only read. They need no approval if approval is ask."),
	FIELD_NAMED(struct config_server, timeout_seconds, "timeoutSeconds", .min = 1, .max = 3600,
		    .def = DEFAULT_INT(30), .doc = "Time limit of a call in seconds."),
	FIELD_NAMED(struct config_server, connect_seconds, "connectSeconds", .min = 1, .max = 600,
		    .def = DEFAULT_INT(30),
		    .doc = "Time limit for starting or connecting, in seconds."),
	FIELD(struct config_server, disabled, .doc = "Treat the server as absent."),
};
const struct field_table config_server_table = FIELD_TABLE(struct config_server, server_fields);

/* ---- checks -------------------------------------------------------------------------------- */

/* Modules that code in a sandbox imports have these names already. */
static const char *const reserved[] = { "host", "ha", "holt", "fs-read", "fs-write", "fetch" };
static const char *const reserved_prefixes[] = { "host:", "ha:", "holt:", "mcp:" };

bool config_server_name_reserved(struct str name)
{
	for (size_t i = 0; i < ARRAY_LEN(reserved); i++) {
		if (str_is(name, reserved[i]))
			return true;
	}
	return false;
}

bool config_is_name(struct str name)
{
	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];

		if ((c < 'a' || c > 'z') && (i == 0 || ((c < '0' || c > '9') && c != '-')))
			return false;
	}
	return name.n > 0 && name.n <= CONFIG_SERVER_NAME_MAX;
}

static int server_check_name(struct config_reader *r, const struct json_pointer *at,
			     struct str name)
{
	for (size_t i = 0; i < ARRAY_LEN(reserved_prefixes); i++) {
		if (str_starts(name, reserved_prefixes[i]))
			return config_refuse(r, at, "names that begin with \"%s\" are reserved",
					     reserved_prefixes[i]);
	}
	if (config_server_name_reserved(name))
		return config_refuse(r, at, "the name is reserved");
	return config_is_name(name) ? 0
				    : config_refuse(r, at,
						    "a name here has a-z, 0-9 and -, with a letter "
						    "first");
}

/* Members that only servers of the other kind have. */
static int server_check_kind(struct config_reader *r, const struct json_pointer *at,
			     struct config_server *s)
{
	if (!s->command.p && !s->url.p)
		return config_refuse(r, at, "a server has a command or a url");
	if (s->command.p && s->url.p)
		return config_refuse(r, at, "a server has a command or a url, not both");
	if (!s->has_type)
		s->type = s->command.p ? CONFIG_STDIO : CONFIG_HTTP;
	s->has_type = true;
	if (s->command.p && s->type != CONFIG_STDIO)
		return config_refuse(r, at, "a server with a command is of type stdio");
	if (s->url.p && s->type == CONFIG_STDIO)
		return config_refuse(r, at, "a server with a url is of type http or sse");
	if (s->url.p && (s->args.n || s->env.n || s->cwd.p || s->sandbox.off || s->sandbox.read.n ||
			 s->sandbox.write.n || s->sandbox.state.n || s->sandbox.network.n))
		return config_refuse(r, at, "args, env, cwd and sandbox are for a command");
	if (s->command.p && s->headers.n)
		return config_refuse(r, at, "headers are for a url");
	return 0;
}

static int server_check_command(struct config_reader *r, const struct json_pointer *at,
				const struct config_server *s)
{
	const struct json_pointer command = config_at(*at, STR_LIT("command"));

	if (s->command.p && memmem(s->command.p, s->command.n, "${", 2))
		return config_refuse(r, &command, "a command has no variables");
	if (s->command.p && s->command.p[0] != '/' && memchr(s->command.p, '/', s->command.n))
		return config_refuse(r, &command, "a command is a name or an absolute path");
	return 0;
}

static bool server_is_header(struct str name)
{
	static const char marks[] = "!#$%&'*+-.^_`|~";

	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
		    !memchr(marks, c, sizeof(marks) - 1))
			return false;
	}
	return name.n > 0;
}

static int server_check_names(struct config_reader *r, const struct json_pointer *at,
			      const struct config_server *s)
{
	const struct json_pointer env = config_at(*at, STR_LIT("env")),
				  headers = config_at(*at, STR_LIT("headers"));
	struct json_pointer here;

	for (size_t i = 0; i < s->env.n; i++) {
		struct str name = s->env.p[i].key;

		here = config_at(env, name);
		if (name.n == 0 || memchr(name.p, '=', name.n))
			return config_refuse(r, &here,
					     "the name of a variable is not empty and "
					     "has no =");
	}
	for (size_t i = 0; i < s->headers.n; i++) {
		here = config_at(headers, s->headers.p[i].key);
		if (!server_is_header(s->headers.p[i].key))
			return config_refuse(r, &here, "that is no name of a header");
	}
	return 0;
}

static int server_check_text(void *data, enum config_text what, struct str text, struct err *e)
{
	const struct config_inputs *in = data;
	struct config_part part;
	size_t i = 0;
	int more;

	while ((more = config_part_next(&text, &part, e)) > 0) {
		if (part.kind != CONFIG_PART_INPUT)
			continue;
		for (i = 0; i < in->n && !str_eq(in->p[i].id, part.text);)
			i++;
		if (i == in->n)
			return err_set(e, ERR_INVALID, "inputs has no %.*s",
				       STR_CUT(part.text, 80));
	}
	return more;
}

static int server_check(struct config_reader *r, const struct json_pointer *at,
			struct config_server *s, struct config_inputs *in)
{
	if (server_check_name(r, at, s->name) < 0 || server_check_command(r, at, s) < 0 ||
	    server_check_names(r, at, s) < 0)
		return -1;
	return config_texts(s, server_check_text, in, r->where, r->e);
}

int config_check_servers(struct config_reader *r, struct json_pointer at, struct config_file *f)
{
	struct config_lines lines = config_lines(r, &at);

	if (f->mcp_servers.n > f->modules.servers)
		return config_refuse(r, &at, "there are %zu servers, and modules.servers is %u",
				     f->mcp_servers.n, f->modules.servers);
	for (size_t i = 0; i < f->mcp_servers.n; i++) {
		struct config_server *s = &f->mcp_servers.p[i];
		struct json_pointer here = config_at(at, s->name);

		s->line = config_next_line(&lines);
		s->section = "mcpServers";
		if (server_check_kind(r, &here, s) < 0 || server_check(r, &here, s, &f->inputs) < 0)
			return -1;
	}
	return 0;
}

/* ---- agents --------------------------------------------------------------------------------- */

static const struct field agent_fields[] = {
	FIELD(struct config_agent, preset, .min = 1, .max = CONFIG_SERVER_NAME_MAX,
	      .doc = "What is known of this agent (holt agent presets): it stands for all that the "
		     "entry does not say."),
	CONFIG_PROGRAM_FIELDS(struct config_agent, program.),
	FIELD_NAMED(struct config_agent, auth_method, "authMethod", .min = 1, .max = 256,
		    .doc = "The agent's own name for its log-in method, if it needs one."),
	FIELD(struct config_agent, options, .max = 32, .item_max = 256,
	      .doc = "Values for the agent's own options, by their ids, such as mode and model."),
	FIELD_NAMED(struct config_agent, start_seconds, "startSeconds", .min = 1, .max = 3600,
		    .def = DEFAULT_INT(60),
		    .doc = "Time limit for starting a session, in seconds."),
	FIELD_NAMED(struct config_agent, stall_seconds, "stallSeconds", .min = 1, .max = 86400,
		    .def = DEFAULT_INT(300),
		    .doc = "Seconds without a message after which a turn is shown as stalled."),
	FIELD_NAMED(
		struct config_agent, cancel_seconds, "cancelSeconds", .min = 1, .max = 3600,
		.def = DEFAULT_INT(10),
		.doc = "Seconds until the program of a cancelled turn is ended, if the turn goes "
		       "on."),
	FIELD_NAMED(struct config_agent, permission_seconds, "permissionSeconds", .min = 1,
		    .max = 604800, .def = DEFAULT_INT(3600),
		    .doc = "Seconds that a person has to answer a permission request."),
};
const struct field_table config_agent_table = FIELD_TABLE(struct config_agent, agent_fields);

int config_check_agents(struct config_reader *r, struct json_pointer at, struct config_file *f)
{
	struct config_lines lines = config_lines(r, &at);

	for (size_t i = 0; i < f->agents.n; i++) {
		struct config_agent *a = &f->agents.p[i];
		struct config_server *s = &a->program;
		struct json_pointer here = config_at(at, s->name);

		s->line = config_next_line(&lines);
		s->section = "agents";
		if (!s->command.p && !a->preset.p)
			return config_refuse(r, &here, "an agent has a command or a preset");
		if (a->preset.p && !config_is_name(a->preset))
			return config_refuse(r, &here, "preset: it takes the name of a preset");
		if (server_check(r, &here, s, &f->inputs) < 0)
			return -1;
	}
	return 0;
}

const struct config_agent *config_agent_find(const struct config_file *f, struct str name)
{
	for (size_t i = 0; i < f->agents.n; i++) {
		if (str_eq(f->agents.p[i].name, name))
			return &f->agents.p[i];
	}
	return NULL;
}

/* ---- what a server's entry says ------------------------------------------------------------ */

const struct config_server *config_server_find(const struct config_file *f, struct str name)
{
	for (size_t i = 0; i < f->mcp_servers.n; i++) {
		if (str_eq(f->mcp_servers.p[i].name, name))
			return &f->mcp_servers.p[i];
	}
	return NULL;
}

static bool server_lists(const struct field_strs *list, struct str tool)
{
	for (size_t i = 0; i < list->n; i++) {
		if (str_eq(list->p[i], tool))
			return true;
	}
	return false;
}

bool config_server_shows(const struct config_server *s, struct str tool)
{
	return (!s->has_allow_tools || server_lists(&s->allow_tools, tool)) &&
	       !server_lists(&s->deny_tools, tool);
}

enum config_then config_server_approval(const struct config_server *s, struct str tool)
{
	enum config_then then = s->approval;

	for (size_t i = 0; i < s->approvals.n; i++) {
		if (str_eq(s->approvals.p[i].name, tool))
			return s->approvals.p[i].then;
	}
	if (then == CONFIG_ASK && server_lists(&s->read_only_tools, tool))
		return CONFIG_ALLOW;
	return then;
}

/* ---- texts with variables ------------------------------------------------------------------ */

/* Passes the texts of a server on, one after the other, until one fails. */
struct texts {
	config_text_fn each;
	void *data;
	struct json_pointer *where;
	struct err *e;
};

static int texts_one(struct texts *t, enum config_text what, struct str text,
		     const struct json_pointer *at)
{
	if (!text.p || t->each(t->data, what, text, t->e) == 0)
		return 0;
	*t->where = *at;
	return -1;
}

static int texts_list(struct texts *t, enum config_text what, const struct field_strs *list,
		      const struct json_pointer *at)
{
	for (size_t i = 0; i < list->n; i++) {
		struct json_pointer here = *at;

		json_pointer_index(&here, i);
		if (texts_one(t, what, list->p[i], &here) < 0)
			return -1;
	}
	return 0;
}

static int texts_map(struct texts *t, enum config_text what, const struct field_map *map,
		     const struct json_pointer *at)
{
	for (size_t i = 0; i < map->n; i++) {
		struct json_pointer here = config_at(*at, map->p[i].key);

		if (texts_one(t, what, map->p[i].value, &here) < 0)
			return -1;
	}
	return 0;
}

int config_texts(const struct config_server *s, config_text_fn each, void *data,
		 struct json_pointer *where, struct err *e)
{
	struct texts t = { each, data, where, e };
	const struct json_pointer root = JSON_POINTER_INIT,
				  at = config_at(config_at(root, str_of(s->section)), s->name),
				  args = config_at(at, STR_LIT("args")),
				  env = config_at(at, STR_LIT("env")),
				  cwd = config_at(at, STR_LIT("cwd")),
				  url = config_at(at, STR_LIT("url")),
				  headers = config_at(at, STR_LIT("headers")),
				  sandbox = config_at(at, STR_LIT("sandbox")),
				  read = config_at(sandbox, STR_LIT("read")),
				  write = config_at(sandbox, STR_LIT("write")),
				  state = config_at(sandbox, STR_LIT("state"));

	if (texts_list(&t, CONFIG_TEXT_ARG, &s->args, &args) < 0 ||
	    texts_map(&t, CONFIG_TEXT_ENV, &s->env, &env) < 0 ||
	    texts_one(&t, CONFIG_TEXT_CWD, s->cwd, &cwd) < 0 ||
	    texts_one(&t, CONFIG_TEXT_URL, s->url, &url) < 0 ||
	    texts_map(&t, CONFIG_TEXT_HEADER, &s->headers, &headers) < 0 ||
	    texts_list(&t, CONFIG_TEXT_READ, &s->sandbox.read, &read) < 0 ||
	    texts_list(&t, CONFIG_TEXT_WRITE, &s->sandbox.write, &write) < 0 ||
	    texts_list(&t, CONFIG_TEXT_STATE, &s->sandbox.state, &state) < 0)
		return -1;
	return 0;
}

int config_server_texts(const struct config *c, const struct config_server *s, config_text_fn each,
			void *data, struct err *e)
{
	struct json_pointer where = JSON_POINTER_INIT;

	return config_texts(s, each, data, &where, e) < 0 ? config_wrap_at(c, &where, e) : 0;
}
