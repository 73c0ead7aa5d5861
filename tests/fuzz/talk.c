/*
 * Who ends what, when: three clients of a server whose calls wait, ask and become tasks. Each pair
 * of bytes is one thing that happens: a message of a client, an answer to a question, a call that
 * ends, a session that closes, time that passes. Nothing may be used after its end, every session's
 * requests are answered at most once, and at the end nothing is left.
 *
 */
#include <stdarg.h>
#include <string.h>

#include "fuzz.h"
#include "mcp/server/server.h"

enum { CLIENTS = 3, HELD = 16, SEEN = 8, TEXT = 4096, IDS = 4096 };

#define FORM                                                                                       \
	STR_LIT("{\"message\":\"?\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{"     \
		"\"name\":{\"type\":\"string\"}}}}")
#define ANSWER "{\"action\":\"accept\",\"content\":{\"name\":\"x\"}}"
#define CAPABILITIES                                                                               \
	"{\"elicitation\":{},\"roots\":{},\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}"

struct client {
	struct mcp_session *session; /* NULL: closed */
	unsigned ids; /* of its requests, ever */
	unsigned char answers[IDS]; /* by id */
	uint64_t asked[SEEN]; /* ids of questions, the newest at ask_n - 1 */
	unsigned asked_n;
};

static struct mcp_server *server;
static struct client clients[CLIENTS];
static struct mcp_call *held[HELD];
static bool ends_on_cancel;
static char tasks[SEEN][80], state[TEXT];
static unsigned tasks_n;
static uint64_t clock_now;

/* --- the handlers --- */

static void drop_held(const struct mcp_call *c)
{
	for (unsigned i = 0; i < HELD; i++) {
		if (held[i] == c)
			held[i] = NULL;
	}
}

static bool is_held(const struct mcp_call *c)
{
	for (unsigned i = 0; i < HELD; i++) {
		if (held[i] == c)
			return true;
	}
	return false;
}

/* One that asks is held no more, and ends here or never. */
static void on_cancel(struct mcp_call *c, void *data)
{
	if (!ends_on_cancel && is_held(c))
		return;
	drop_held(c);
	mcp_call_text(c, STR_LIT("cancelled"));
}

static void hold(struct mcp_call *c)
{
	for (unsigned i = 0; i < HELD; i++) {
		if (held[i])
			continue;
		held[i] = c;
		mcp_call_on_cancel(c, on_cancel, NULL);
		return;
	}
	mcp_call_text(c, STR_LIT("full"));
}

static void ask(struct mcp_call *c, const char *key)
{
	const struct mcp_ask asks[] = { { key, MCP_ASK_FORM, FORM },
					{ "roots", MCP_ASK_ROOTS, STR_NONE } };
	struct err e;

	if (mcp_call_ask(c, asks, *key == 'a' ? 2 : 1, str_of(key), &e) < 0)
		mcp_call_fail(c, &e);
}

static bool is_told(const struct mcp_call *c, const char *key)
{
	return mcp_call_answer(c, key) || mcp_call_ask_error(c, key).p;
}

static void run_asks(struct mcp_call *c)
{
	if (!is_told(c, "a"))
		ask(c, "a");
	else if (!is_told(c, "b"))
		ask(c, "b");
	else
		mcp_call_text(c, mcp_call_state(c));
}

static void run_holds(struct mcp_call *c)
{
	hold(c);
}

static bool to_task(struct mcp_call *c)
{
	const struct mcp_task_options o = { .ttl_ms = 5000, .message = "at work" };
	struct err e;

	if (mcp_call_is_task(c) || mcp_call_to_task(c, &o, &e) == 0)
		return true;
	mcp_call_fail(c, &e);
	return false;
}

static void run_job(struct mcp_call *c)
{
	if (to_task(c))
		hold(c);
}

static void run_asking_job(struct mcp_call *c)
{
	if (to_task(c))
		run_asks(c);
}

#define TOOL(name_, run_, task_)                                                                   \
	{                                                                                          \
		.name = (name_), .description = "T.", .input_schema = "{\"type\":\"object\"}",     \
		.task = (task_), .run = (run_)                                                     \
	}

static struct mcp_tool tools[] = {
	TOOL("asks", run_asks, MCP_TASK_OPTIONAL),
	TOOL("holds", run_holds, MCP_TASK_OPTIONAL),
	TOOL("job", run_job, MCP_TASK_OPTIONAL),
	TOOL("asking_job", run_asking_job, MCP_TASK_REQUIRED),
};

static struct mcp_call *some_held(unsigned char which)
{
	for (unsigned i = 0; i < HELD; i++) {
		struct mcp_call *c = held[(which + i) % HELD];

		if (c)
			return c;
	}
	return NULL;
}

static void end_held(unsigned char how)
{
	struct mcp_call *c = some_held(how / 8);
	const struct err failed = { ERR_IO, "it failed" };

	if (!c)
		return;
	if (how % 8 == 6) {
		mcp_call_progress(c, (double)clock_now, 0, "on");
		mcp_call_log(c, MCP_ERROR, NULL, STR_LIT("1"));
		return;
	}
	drop_held(c);
	switch (how % 8) {
	case 0:
		mcp_call_fail(c, &failed);
		break;
	case 1:
		mcp_call_refuse(c, -32603, "no", STR_NONE);
		break;
	case 2:
		ask(c, "a");
		break;
	case 3:
		if (to_task(c))
			hold(c);
		break;
	default:
		mcp_call_text(c, STR_LIT("ended"));
		break;
	}
}

/* --- what is sent --- */

static void see_task(const struct json_val *result)
{
	struct str id = json_str(json_get(result, "taskId"));

	if (!id.p)
		id = json_str(json_get(json_get(result, "task"), "taskId"));
	if (id.p && id.n < sizeof(tasks[0]))
		snprintf(tasks[tasks_n++ % SEEN], sizeof(tasks[0]), "%.*s", STR_ARG(id));
}

static void on_send(void *transport, void *stream, const struct mcp_out *m)
{
	struct client *to = transport;
	struct err e;
	AUTO(json_free) struct json_doc *d = json_parse(m->text, NULL, &e);
	const struct json_val *root = json_root(d), *result = json_get(root, "result");
	struct str sealed = json_str(json_get(result, "requestState"));
	int64_t id;

	MUST(d && to->session);
	if (m->kind == MCP_OUT_REQUEST) {
		MUST(json_int64(json_get(root, "id"), &id));
		to->asked[to->asked_n++ % SEEN] = (uint64_t)id;
	}
	if (m->kind == MCP_OUT_RESPONSE && json_int64(json_get(root, "id"), &id)) {
		MUST(id > 0 && (unsigned)id <= to->ids);
		MUST(to->answers[id % IDS]++ == 0);
	}
	see_task(result);
	if (sealed.p && sealed.n < sizeof(state))
		snprintf(state, sizeof(state), "%.*s", STR_ARG(sealed));
}

static const struct mcp_transport transport = { .send = on_send };

/* --- what clients say --- */

static void say(struct client *c, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void say(struct client *c, const char *fmt, ...)
{
	static char text[3 * TEXT];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	mcp_session_message(c->session, str_of(text));
}

static unsigned new_id(struct client *c)
{
	c->ids++;
	c->answers[c->ids % IDS] = 0;
	return c->ids;
}

#define META                                                                                       \
	"\"_meta\":{\"progressToken\":1,\"io.modelcontextprotocol/protocolVersion\":"              \
	"\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":%s}"

static void request(struct client *c, bool modern, const char *method, const char *params)
{
	if (modern)
		say(c,
		    "{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"%s\",\"params\":{%s%s" META "}}",
		    new_id(c), method, params, *params ? "," : "", CAPABILITIES);
	else
		say(c, "{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"%s\",\"params\":{%s}}",
		    new_id(c), method, params);
}

static void call_tool(struct client *c, unsigned char arg)
{
	static char params[2 * TEXT];
	const char *name = tools[arg % ARRAY_LEN(tools)].name;
	bool modern = arg & 4;

	if (modern && (arg & 8) && *state)
		snprintf(
			params, sizeof(params),
			"\"name\":\"%s\",\"requestState\":\"%s\",\"inputResponses\":{\"%s\":" ANSWER
			"%s}",
			name, state, arg & 16 ? "a" : "b",
			arg & 32 ? ",\"roots\":{\"roots\":[]}" : "");
	else
		snprintf(params, sizeof(params), "\"name\":\"%s\"%s", name,
			 !modern && (arg & 8) ? ",\"task\":{\"ttl\":9000}" : "");
	request(c, modern, "tools/call", params);
}

static void task_method(struct client *c, unsigned char arg)
{
	static const char *const names[] = {
		"tasks/get",	"tasks/cancel", "tasks/result",
		"tasks/update", "tasks/list",	"subscriptions/listen"
	};
	const char *name = names[arg % ARRAY_LEN(names)], *id = tasks[arg / 16 % SEEN];
	char params[512];

	if (strcmp(name, "tasks/update") == 0)
		snprintf(params, sizeof(params),
			 "\"taskId\":\"%s\",\"inputResponses\":{\"a\":" ANSWER ",\"b\":" ANSWER
			 ",\"roots\":{\"roots\":[]}}",
			 id);
	else if (strcmp(name, "subscriptions/listen") == 0)
		snprintf(params, sizeof(params), "\"notifications\":{\"taskIds\":[\"%s\"]}", id);
	else
		snprintf(params, sizeof(params), "\"taskId\":\"%s\"", id);
	request(c, arg & 8, name, params);
}

static void answer(struct client *c, unsigned char arg)
{
	uint64_t id = c->asked[arg / 8 % SEEN];

	if (arg % 8 == 7)
		say(c,
		    "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"error\":{\"code\":-1,\"message\":\"x\"}}",
		    (unsigned long long)id);
	else
		say(c, "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"result\":%s}", (unsigned long long)id,
		    arg % 8 < 3	  ? ANSWER
		    : arg % 8 < 6 ? "{\"roots\":[]}"
				  : "{}");
}

static void reopen(struct client *c, unsigned char arg)
{
	static const char *const versions[] = { "2024-11-05", "2025-03-26", "2025-06-18",
						"2025-11-25" };

	mcp_session_close(take_ptr(c->session));
	*c = (struct client){ .ids = 0 };
	c->session = mcp_session_new(server, &transport, c, MCP_ROAD_LINES, clients);
	MUST(c->session);
	if (arg & 4)
		return;
	say(c,
	    "{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"initialize\",\"params\":{"
	    "\"protocolVersion\":\"%s\",\"capabilities\":" CAPABILITIES "}}",
	    new_id(c), versions[arg % ARRAY_LEN(versions)]);
}

static void happen(unsigned char what, unsigned char arg)
{
	struct client *c = &clients[what / 16 % CLIENTS];

	switch (what % 16) {
	case 0:
	case 1:
	case 2:
		call_tool(c, arg);
		break;
	case 3:
	case 4:
		task_method(c, arg);
		break;
	case 5:
	case 6:
		answer(c, arg);
		break;
	case 7:
	case 8:
		end_held(arg);
		break;
	case 9:
		say(c,
		    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
		    "\"requestId\":%u}}",
		    c->ids - arg % 4);
		break;
	case 10:
		reopen(c, arg);
		break;
	case 11:
		clock_now += (uint64_t)arg * 100;
		mcp_server_tick(server);
		break;
	case 12:
		mcp_session_fail_all(c->session);
		break;
	case 13:
		mcp_session_drain(c->session);
		break;
	case 14:
		ends_on_cancel = arg & 1;
		break;
	case 15:
		*state = '\0';
		break;
	}
}

static uint64_t now(void)
{
	return clock_now;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const unsigned char key[1][MCP_KEY_BYTES] = { { 1 } };
	const struct mcp_server_options o = {
		.name = "talk",
		.version = "1",
		.offer = { .tools = tools, .tools_n = ARRAY_LEN(tools) },
		.logging = true,
		.tasks = true,
		.keys = key,
		.keys_n = 1,
		.inflight_max = 8,
		.listens_max = 2,
		.tasks_max = 6,
		.now_ms = now,
		.wall_ms = now,
	};
	struct err e;

	clock_now = 1000000;
	ends_on_cancel = false;
	tasks_n = 0;
	*state = '\0';
	memset(tasks, 0, sizeof(tasks));
	server = mcp_server_new(&o, &e);
	MUST(server);
	for (unsigned i = 0; i < CLIENTS; i++)
		reopen(&clients[i], (unsigned char)(i + 2));
	for (size_t i = 0; i + 1 < n && i < 512; i += 2)
		happen(data[i], data[i + 1]);
	for (unsigned i = 0; i < CLIENTS; i++)
		mcp_session_close(take_ptr(clients[i].session));
	for (struct mcp_call *c; (c = some_held(0));) {
		drop_held(c);
		mcp_call_text(c, STR_LIT("late"));
	}
	ends_on_cancel = true; /* what runs as a task is cancelled with the server */
	mcp_server_free(server);
	return 0;
}
