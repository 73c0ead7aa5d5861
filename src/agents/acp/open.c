/* From initialize to the session. An earlier session is resumed, else loaded, else a new one is
 * made; of a loaded one the agent repeats all updates, which are known here and dropped. */
#include "agents/acp/internal.h"
#include "json/document/utf8.h"

/* ---- initialize ----------------------------------------------------------------------------- */

static void write_text(struct json_writer *w, const char *key, struct str text)
{
	json_put_str(w, key, text);
}

static void write_bool(struct json_writer *w, const char *key, bool b)
{
	json_put_bool(w, key, b);
}

/* Version 2 has neither files nor terminals: its agents use tools of MCP. */
static void write_can(struct json_writer *w, const struct acp *a)
{
	json_write_object(w);
	if (a->asked_version == 1) {
		json_put_object(w, "fs");
		write_bool(w, "readTextFile", a->o.files);
		write_bool(w, "writeTextFile", a->o.files);
		json_write_object_end(w);
		write_bool(w, "terminal", a->o.terminals);
		/* else agents do not tell of a log-in at a terminal (`holt agent login`) */
		json_put_object(w, "auth");
		write_bool(w, "terminal", true);
		json_write_object_end(w);
	}
	json_write_object_end(w);
}

static void open_initialize(struct acp *a, unsigned version)
{
	struct acp_out m;
	struct err e;

	a->asked_version = version;
	a->state = ACP_INITIALIZING;
	acp_out_request(&m, a, ACP_INITIALIZE);
	json_write_object(&m.w);
	json_put_uint(&m.w, "protocolVersion", version);
	json_write_key(&m.w, version == 1 ? "clientCapabilities" : "capabilities");
	write_can(&m.w, a);
	json_put_object(&m.w, version == 1 ? "clientInfo" : "info");
	write_text(&m.w, "name", a->o.name);
	write_text(&m.w, "version", a->o.version);
	json_write_object_end(&m.w);
	json_write_object_end(&m.w);
	if (acp_out_end(&m, &e) < 0)
		acp_end(a, &e);
}

void acp_start(struct acp *a)
{
	AUTO(acp_leave) struct acp *in = acp_enter(a);

	if (in->state == ACP_NEW)
		open_initialize(in, 1);
}

/* ---- the session ---------------------------------------------------------------------------- */

static void write_pairs(struct json_writer *w, const char *key, const struct acp_pair *p, size_t n)
{
	json_put_array(w, key);
	for (size_t i = 0; i < n; i++) {
		json_write_object(w);
		write_text(w, "name", p[i].name);
		write_text(w, "value", p[i].value);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

/* Version 1 knows a program by its having no type. */
static void write_server(struct json_writer *w, const struct acp *a, const struct acp_server *s)
{
	bool http = a->can_http && s->url.p;

	if (!http && (!s->command.p || !a->can_stdio))
		return;
	json_write_object(w);
	if (http || a->version == 2)
		write_text(w, "type", http ? STR_LIT("http") : STR_LIT("stdio"));
	write_text(w, "name", s->name);
	if (http) {
		write_text(w, "url", s->url);
		write_pairs(w, "headers", s->headers, s->n_headers);
	} else {
		write_text(w, "command", s->command);
		json_put_array(w, "args");
		for (size_t i = 0; i < s->n_args; i++)
			json_write_str(w, s->args[i]);
		json_write_array_end(w);
		write_pairs(w, "env", s->env, s->n_env);
	}
	json_write_object_end(w);
}

static void open_session(struct acp *a, enum acp_method method)
{
	struct acp_out m;
	struct err e;

	a->state = ACP_OPENING;
	acp_out_request(&m, a, method);
	json_write_object(&m.w);
	if (method != ACP_SESSION_NEW)
		write_text(&m.w, "sessionId", a->o.session_id);
	write_text(&m.w, "cwd", a->o.cwd);
	if (a->can_folders && a->o.n_folders > 0) {
		json_put_array(&m.w, "additionalDirectories");
		for (size_t i = 0; i < a->o.n_folders; i++)
			json_write_str(&m.w, a->o.folders[i]);
		json_write_array_end(&m.w);
	}
	json_put_array(&m.w, "mcpServers");
	for (size_t i = 0; i < a->o.n_servers; i++)
		write_server(&m.w, a, &a->o.servers[i]);
	json_write_array_end(&m.w);
	json_write_object_end(&m.w);
	if (acp_out_end(&m, &e) < 0)
		acp_end(a, &e);
}

static void open_any(struct acp *a)
{
	bool earlier = a->o.session_id.n > 0 && a->o.session_id.n <= ACP_ID_MAX;

	open_session(a, earlier && a->can_resume ? ACP_SESSION_RESUME
			: earlier && a->can_load ? ACP_SESSION_LOAD
						 : ACP_SESSION_NEW);
}

/* ---- answers -------------------------------------------------------------------------------- */

static bool is_object(const struct json_val *v)
{
	return json_type(v) == JSON_OBJECT;
}

static void open_learn(struct acp *a, const struct json_val *result)
{
	const struct json_val *can = json_get(result, "agentCapabilities"), *mcp, *session;

	if (a->version == 1) {
		mcp = json_get(can, "mcpCapabilities");
		session = json_get(can, "sessionCapabilities");
		a->can_load = json_bool(json_get(can, "loadSession"));
		a->can_resume = is_object(json_get(session, "resume"));
		a->can_http = json_bool(json_get(mcp, "http"));
		a->can_images = json_bool(json_get(json_get(can, "promptCapabilities"), "image"));
		a->can_stdio = true;
	} else {
		session = json_get(json_get(result, "capabilities"), "session");
		mcp = json_get(session, "mcp");
		a->can_resume = true;
		a->can_http = is_object(json_get(mcp, "http"));
		a->can_images = is_object(json_get(json_get(session, "prompt"), "image"));
		a->can_stdio = is_object(json_get(mcp, "stdio"));
	}
	a->can_folders = is_object(json_get(session, "additionalDirectories"));
}

/* Ids of how one can log in, for the message that says so. */
static void learn_methods(struct acp *a, const struct json_val *list)
{
	struct json_iter it = json_iter(list);
	size_t n = 0;
	char room[64];

	while (json_next(&it)) {
		struct str id = json_str(json_get(it.val, a->version == 1 ? "id" : "methodId"));

		id = utf8_line(id, room, sizeof(room));
		if (id.n == 0 || n + id.n + 3 > sizeof(a->methods))
			continue;
		n += (size_t)snprintf(a->methods + n, sizeof(a->methods) - n, "%s%.*s",
				      n > 0 ? ", " : "", STR_ARG(id));
	}
}

static void on_initialized(struct acp *a, const struct json_val *result)
{
	int64_t version = 0;
	struct err e;

	if (!json_int64(json_get(result, "protocolVersion"), &version) || version < 1 ||
	    version > 2) {
		err_set(&e, ERR_AGENT, "the agent speaks version %lld of its protocol, not 1 or 2",
			(long long)version);
		acp_end(a, &e);
		return;
	}
	a->version = (unsigned)version;
	open_learn(a, result);
	learn_methods(a, json_get(result, "authMethods"));
	a->o.handler->update(a->o.owner, &(struct acp_update){ .kind = ACP_LOGINS,
							       .name = STR_LIT("logins"),
							       .all = result });
	if (acp_lives(a))
		open_any(a);
}

void acp_authenticate(struct acp *a)
{
	struct acp_out m;
	struct err e;

	if (!acp_is_open(a))
		a->state = ACP_AUTHENTICATING;
	acp_out_request(&m, a, ACP_AUTHENTICATE);
	json_write_object(&m.w);
	write_text(&m.w, "methodId", a->o.auth_method);
	json_write_object_end(&m.w);
	if (acp_out_end(&m, &e) < 0)
		acp_end(a, &e);
}

static void on_opened(struct acp *a, enum acp_method method, const struct json_val *result)
{
	struct str id = method == ACP_SESSION_NEW ? json_str(json_get(result, "sessionId"))
						  : a->o.session_id;
	const struct json_val *mode = json_get(json_get(result, "modes"), "currentModeId");
	struct err e;

	if (id.n == 0 || id.n > ACP_ID_MAX || memchr(id.p, '\0', id.n)) {
		err_set(&e, ERR_AGENT, "the agent's session has no id");
		acp_end(a, &e);
		return;
	}
	a->session_id = mem_dup(id.p, id.n);
	if (!a->session_id) {
		err_set(&e, ERR_LIMIT, "out of memory");
		acp_end(a, &e);
		return;
	}
	a->state = ACP_IDLE;
	if (is_object(result))
		a->o.handler->update(a->o.owner, &(struct acp_update){ .kind = ACP_OPENED,
								       .name = STR_LIT("opened"),
								       .all = result });
	if (acp_lives(a))
		a->o.handler->ready(a->o.owner, acp_session_id(a), method != ACP_SESSION_NEW);
	if (acp_lives(a) && json_str(mode).n > 0 && json_str(mode).n <= ACP_ID_MAX)
		a->o.handler->update(a->o.owner,
				     &(struct acp_update){ .kind = ACP_MODE,
							   .name = STR_LIT("current_mode_update"),
							   .mode_id = json_str(mode),
							   .all = json_get(result, "modes") });
}

static void on_refused(struct acp *a, enum acp_method method, const struct json_val *fault)
{
	struct err e;

	acp_fault_err(method, fault, &e);
	if (method == ACP_INITIALIZE && a->asked_version == 1 && e.code != ERR_AGENT_LOGIN) {
		open_initialize(a, 2); /* one that knows nothing else */
		return;
	}
	if (e.code == ERR_AGENT_LOGIN && method != ACP_AUTHENTICATE && a->o.auth_method.p &&
	    !a->authenticated) {
		acp_authenticate(a);
		return;
	}
	if (method == ACP_AUTHENTICATE || e.code == ERR_AGENT_LOGIN) {
		e.code = ERR_AGENT_LOGIN;
		a->refused |= a->prompt.n > 0;
		if (a->methods[0])
			err_wrap(&e, "ways to log in: %s", a->methods);
		acp_end(a, &e);
	} else if (method == ACP_SESSION_LOAD || method == ACP_SESSION_RESUME) {
		open_session(a, ACP_SESSION_NEW);
	} else {
		acp_end(a, &e);
	}
}

void acp_open_answer(struct acp *a, enum acp_method method, const struct json_val *result,
		     const struct json_val *fault)
{
	if (fault) {
		on_refused(a, method, fault);
	} else if (method == ACP_INITIALIZE) {
		on_initialized(a, result);
	} else if (method == ACP_AUTHENTICATE) {
		a->authenticated = true;
		if (acp_is_open(a))
			acp_prompt_again(a);
		else
			open_any(a);
	} else {
		on_opened(a, method, result);
	}
}
