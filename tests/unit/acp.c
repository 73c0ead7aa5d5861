/* The client of the Agent Client Protocol against agents that say what a test wants. */
#include "agents/acp/acp.h"
#include "rpc/sniff.h"
#include "test.h"

enum { SENT_MAX = 64, SENT_TEXT = 4096 };

static struct acp *acp;
static char sent[SENT_MAX][SENT_TEXT];
static unsigned sent_n, readies, overs, turns, withdrawn, sets;
static bool kept, loses;
static char session[64], why[64], updates[1024], asked_title[128];
static struct err over_err, turn_err, set_err;
static struct acp_ask *asked;

static void on_send(void *owner, struct str line)
{
	assert_true(sent_n < SENT_MAX && line.n < SENT_TEXT);
	assert_null(memchr(line.p, '\n', line.n));
	snprintf(sent[sent_n++], SENT_TEXT, "%.*s", STR_ARG(line));
}

static void on_ready(void *owner, struct str id, bool is_kept)
{
	readies++;
	kept = is_kept;
	snprintf(session, sizeof(session), "%.*s", STR_ARG(id));
}

static void on_update(void *owner, const struct acp_update *u)
{
	size_t n = strlen(updates);

	if (u->kind == ACP_OPENED || u->kind == ACP_LOGINS)
		return;
	snprintf(updates + n, sizeof(updates) - n, "%d%s:%.*s%.*s%.*s;", u->kind,
		 u->whole   ? "!"
		 : u->waits ? "w"
			    : "",
		 STR_ARG(u->text), STR_ARG(u->tool_call_id), STR_ARG(u->mode_id));
}

static void on_asked(void *owner, struct acp_ask *q)
{
	asked = q;
	if (q->kind == ACP_ASK_PERMISSION)
		snprintf(asked_title, sizeof(asked_title), "%.*s", STR_ARG(q->permission.title));
}

static void on_withdrawn(void *owner, struct acp_ask *q)
{
	assert_ptr_equal(q, asked);
	static const struct err full = { ERR_STORE_FULL, "no space is left", "" };

	asked = NULL;
	withdrawn++;
	if (loses)
		acp_lost(acp, &full);
}

static void on_turn_ended(void *owner, struct str text, const struct err *e)
{
	turns++;
	snprintf(why, sizeof(why), "%.*s", STR_ARG(text));
	turn_err = e ? *e : ERR_INIT;
}

static void on_set(void *owner, const struct json_val *result, const struct err *e)
{
	sets++;
	set_err = e ? *e : ERR_INIT;
}

static void on_over(void *owner, const struct err *e)
{
	overs++;
	over_err = *e;
}

static const struct acp_handler handler = { on_send,	  on_ready,	 on_update, on_asked,
					    on_withdrawn, on_turn_ended, on_set,    on_over };

static const struct acp_pair header = { STR_LIT("Authorization"), STR_LIT("Bearer t") };
static const struct acp_pair variable = { STR_LIT("TOKEN"), STR_LIT("t") };
static const struct str arg = STR_LIT("mcp");
static const struct acp_server server = {
	.name = STR_LIT("holt"),
	.url = STR_LIT("http://hub.holt/mcp"),
	.headers = &header,
	.n_headers = 1,
	.command = STR_LIT("/bin/holt"),
	.args = &arg,
	.n_args = 1,
	.env = &variable,
	.n_env = 1,
};

static void begin(const struct acp_options *more)
{
	struct acp_options o = more ? *more : (struct acp_options){ 0 };
	struct err e;

	sent_n = readies = overs = turns = withdrawn = sets = 0;
	loses = false;
	asked = NULL;
	*updates = *session = *why = '\0';
	o.handler = &handler;
	o.name = STR_LIT("holt");
	o.version = STR_LIT("1");
	o.cwd = STR_LIT("/workspace");
	acp = acp_new(&o, &e);
	assert_non_null(acp);
	acp_start(acp);
}

static void say(const char *line)
{
	acp_take(acp, str_of(line));
}

#define RESULT(id, text) say("{\"jsonrpc\":\"2.0\",\"id\":" id ",\"result\":" text "}")
#define FAULT(id, code)                                                                            \
	say("{\"jsonrpc\":\"2.0\",\"id\":" id ",\"error\":{\"code\":" code                         \
	    ",\"message\":\"no\\nway\"}}")
#define UPDATE(text)                                                                               \
	say("{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"S\","  \
	    "\"update\":" text "}}")
#define ASK(id, method, text)                                                                      \
	say("{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" method                              \
	    "\",\"params\":{\"sessionId\":\"S\"," text "}}")
#define OPTIONS                                                                                    \
	"\"options\":[{\"optionId\":\"y\",\"name\":\"Yes\",\"kind\":\"allow_once\"},"              \
	"{\"optionId\":\"n\",\"name\":\"No\",\"kind\":\"reject_once\"},"                           \
	"{\"optionId\":\"z\",\"name\":\"Z\",\"kind\":\"maybe\"}]"

static const char *last(void)
{
	return sent_n > 0 ? sent[sent_n - 1] : "";
}

static bool has(const char *text)
{
	return strstr(last(), text) != NULL;
}

static void open_as(const struct acp_options *o, const char *can)
{
	char text[512];

	begin(o);
	snprintf(text, sizeof(text),
		 "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":1%s}}", can);
	say(text);
}

static void open_session(void)
{
	static const struct acp_options o = { .files = true, .terminals = true };

	open_as(&o, "");
	RESULT("2", "{\"sessionId\":\"S\"}");
	assert_int_equal(acp_state(acp), ACP_IDLE);
}

static void prompt(void)
{
	struct err e;

	assert_int_equal(acp_prompt(acp, STR_LIT("hi \"you\""), NULL, 0, &e), 0);
	assert_true(has("\"prompt\":[{\"type\":\"text\",\"text\":\"hi \\\"you\\\"\"}]"));
}

/* ---- the beginning -------------------------------------------------------------------------- */

static void test_begin(void **state)
{
	static const struct acp_options o = { .files = true, .servers = &server, .n_servers = 1 };

	begin(&o);
	assert_string_equal(
		last(),
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"
		"\"protocolVersion\":1,\"clientCapabilities\":{\"fs\":{\"readTextFile\":true,"
		"\"writeTextFile\":true},\"terminal\":false,\"auth\":{\"terminal\":true}},"
		"\"clientInfo\":{\"name\":\"holt\","
		"\"version\":\"1\"}}}");
	RESULT("1", "{\"protocolVersion\":1,\"agentCapabilities\":{\"mcpCapabilities\":{"
		    "\"http\":true}}}");
	assert_string_equal(last(),
			    "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"session/new\",\"params\":{"
			    "\"cwd\":\"/workspace\",\"mcpServers\":[{\"type\":\"http\",\"name\":"
			    "\"holt\",\"url\":\"http://hub.holt/mcp\",\"headers\":[{\"name\":"
			    "\"Authorization\",\"value\":\"Bearer t\"}]}]}}");
	RESULT("2", "{\"sessionId\":\"S\",\"modes\":{\"currentModeId\":\"ask\"}}");
	assert_int_equal(readies, 1);
	assert_string_equal(session, "S");
	assert_string_equal(updates, "7:ask;");
	acp_free(acp);
}

static void test_program_instead_of_url(void **state)
{
	static const struct acp_options o = { .servers = &server, .n_servers = 1 };

	open_as(&o, ",\"agentCapabilities\":{\"mcpCapabilities\":{\"http\":1}}");
	assert_true(has("\"mcpServers\":[{\"name\":\"holt\",\"command\":\"/bin/holt\",\"args\":["
			"\"mcp\"],\"env\":[{\"name\":\"TOKEN\",\"value\":\"t\"}]}]"));
	acp_free(acp);
}

static void test_earlier_session(void **state)
{
	static const struct acp_options o = { .session_id = STR_LIT("S") };

	open_as(&o, ",\"agentCapabilities\":{\"loadSession\":true,\"sessionCapabilities\":{"
		    "\"resume\":{}}}");
	assert_true(has("session/resume") && has("\"sessionId\":\"S\""));
	FAULT("2", "-32602");
	assert_true(has("session/new") && !has("\"sessionId\""));
	RESULT("3", "{\"sessionId\":\"T\"}");
	assert_false(kept);
	acp_free(acp);
	open_as(&o, ",\"agentCapabilities\":{\"loadSession\":true}");
	assert_true(has("session/load"));
	UPDATE("{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\","
	       "\"text\":\"old\"}}");
	RESULT("2", "null");
	assert_true(kept && readies == 1);
	assert_string_equal(updates, "");
	acp_free(acp);
}

static void test_log_in(void **state)
{
	static const struct acp_options with = { .auth_method = STR_LIT("key") };

	open_as(&with, ",\"authMethods\":[{\"id\":\"key\"},{\"id\":\"web\"}]");
	FAULT("2", "-32000");
	assert_true(has("\"authenticate\"") && has("{\"methodId\":\"key\"}"));
	RESULT("3", "{}");
	assert_true(has("session/new"));
	FAULT("4", "-32000");
	assert_int_equal(overs, 1);
	assert_int_equal(over_err.code, ERR_AGENT_LOGIN);
	assert_non_null(strstr(over_err.msg, "key, web"));
	assert_null(strchr(over_err.msg, '\n'));
	acp_free(acp);
	open_as(NULL, "");
	FAULT("2", "-32000");
	assert_int_equal(over_err.code, ERR_AGENT_LOGIN);
	acp_free(acp);
}

static void test_no_common_version(void **state)
{
	static const char *const answers[] = { "{\"protocolVersion\":3}", "{\"protocolVersion\":0}",
					       "{}", "null", "{\"protocolVersion\":\"1\"}" };

	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		char text[128];

		begin(NULL);
		snprintf(text, sizeof(text), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":%s}",
			 answers[i]);
		say(text);
		ROW_CHECK(overs == 1 && over_err.code == ERR_AGENT, answers[i]);
		acp_free(acp);
	}
}

static void test_session_without_id(void **state)
{
	open_as(NULL, "");
	RESULT("2", "{\"sessionId\":\"\"}");
	assert_int_equal(overs, 1);
	assert_int_equal(readies, 0);
	acp_free(acp);
}

/* ---- turns ---------------------------------------------------------------------------------- */

static void test_turn(void **state)
{
	struct err e;

	open_session();
	prompt();
	assert_int_equal(acp_prompt(acp, STR_LIT("again"), NULL, 0, &e), -1);
	assert_int_equal(e.code, ERR_CONFLICT);
	UPDATE("{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\","
	       "\"text\":\"a\"}}");
	UPDATE("{\"sessionUpdate\":\"agent_thought_chunk\",\"content\":{\"type\":\"image\","
	       "\"data\":\"\",\"mimeType\":\"image/png\"}}");
	UPDATE("{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":"
	       "\"resource_link\",\"name\":\"n\",\"uri\":\"file:///f\"}}");
	UPDATE("{\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"c\",\"title\":\"t\"}");
	UPDATE("{\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"c\"}");
	UPDATE("{\"sessionUpdate\":\"plan\",\"entries\":[]}");
	UPDATE("{\"sessionUpdate\":\"current_mode_update\",\"currentModeId\":\"m\"}");
	UPDATE("{\"sessionUpdate\":\"usage_update\",\"used\":1,\"size\":2}");
	UPDATE("{\"sessionUpdate\":\"notice\"}");
	assert_string_equal(updates, "1:a;2:[image image/png];1:[n](file:///f);3:c;4:c;5:;7:m;10:;"
				     "12:;");
	assert_int_equal(acp_strays(acp), 0);
	UPDATE("{\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"\"}");
	say("{\"jsonrpc\":\"2.0\",\"method\":\"_auth/status_update\",\"params\":{}}");
	RESULT("3", "{\"stopReason\":\"end_turn\"}");
	assert_int_equal(turns, 1);
	assert_string_equal(why, "end_turn");
	assert_int_equal(acp_state(acp), ACP_IDLE);
	acp_free(acp);
}

static void test_turn_fails(void **state)
{
	open_session();
	prompt();
	FAULT("3", "-32603");
	assert_int_equal(turn_err.code, ERR_AGENT);
	prompt();
	RESULT("4", "{\"stopReason\":\"\"}");
	assert_int_equal(turn_err.code, ERR_AGENT);
	prompt();
	RESULT("4", "{\"stopReason\":\"end_turn\"}"); /* the answer to another */
	RESULT("\"5\"", "{\"stopReason\":\"end_turn\"}");
	assert_int_equal(turns, 2);
	assert_int_equal(acp_strays(acp), 2);
	acp_lost(acp, &(struct err){ ERR_AGENT, "gone" });
	assert_int_equal(turns, 3);
	assert_int_equal(overs, 1);
	acp_free(acp);
}

static void test_cancel(void **state)
{
	open_session();
	acp_cancel(acp);
	assert_int_equal(sent_n, 2);
	prompt();
	ASK("0", "session/request_permission", OPTIONS ",\"toolCall\":{\"toolCallId\":\"c\"}");
	assert_non_null(asked);
	acp_cancel(acp);
	assert_int_equal(withdrawn, 1);
	assert_non_null(strstr(sent[3], "session/cancel"));
	assert_string_equal(last(), "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"outcome\":{"
				    "\"outcome\":\"cancelled\"}}}");
	ASK("1", "session/request_permission", OPTIONS);
	assert_null(asked);
	assert_true(has("cancelled"));
	RESULT("3", "{\"stopReason\":\"cancelled\"}");
	assert_string_equal(why, "cancelled");
	prompt();
	acp_free(acp);
}

static void test_mode(void **state)
{
	struct err e;

	open_session();
	assert_int_equal(acp_set(acp, ACP_SETTING_MODE, STR_NONE, STR_LIT("m"), false, &e), 0);
	assert_true(has("session/set_mode") && has("\"modeId\":\"m\""));
	RESULT("3", "{}");
	assert_int_equal(sets, 1);
	assert_int_equal(set_err.code, ERR_NONE);
	assert_int_equal(
		acp_set(acp, ACP_SETTING_OPTION, STR_LIT("fast"), STR_LIT("true"), true, &e), 0);
	assert_true(has("\"configId\":\"fast\",\"type\":\"boolean\",\"value\":true"));
	FAULT("4", "-32602");
	assert_int_equal(sets, 2);
	assert_non_null(strstr(set_err.msg, "no way"));
	/* an agent that answers nothing holds nothing up but itself */
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(acp_set(acp, ACP_SETTING_MODE, STR_NONE, STR_LIT("m"), false, &e),
				 0);
	assert_int_equal(acp_set(acp, ACP_SETTING_MODE, STR_NONE, STR_LIT("m"), false, &e), -1);
	assert_int_equal(e.code, ERR_CONFLICT);
	acp_free(acp);
}

/* ---- what the agent asks -------------------------------------------------------------------- */

static void test_permission(void **state)
{
	struct err e;

	open_session();
	prompt();
	ASK("0", "session/request_permission",
	    OPTIONS ",\"toolCall\":{\"toolCallId\":\"c\",\"title\":\"Edit\"}");
	assert_string_equal(asked_title, "Edit");
	assert_int_equal(asked->permission.options.n, 3);
	assert_int_equal(asked->permission.options.p[1].kind, ACP_REJECT_ONCE);
	assert_int_equal(asked->permission.options.p[2].kind, ACP_OPTION_OTHER);
	assert_int_equal(acp_permit(asked, STR_LIT("q"), &e), -1);
	assert_int_equal(acp_permit(asked, STR_LIT("y"), &e), 0);
	assert_true(has("{\"outcome\":\"selected\",\"optionId\":\"y\"}"));
	ASK("0", "session/request_permission", OPTIONS);
	acp_deny(asked);
	assert_int_equal(acp_asks(acp), 0);
	ASK("7", "session/request_permission", OPTIONS);
	say("{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{\"requestId\":7}}");
	assert_true(has("-32800"));
	assert_int_equal(withdrawn, 1);
	/* the turn ends while one waits */
	ASK("8", "session/request_permission", OPTIONS);
	RESULT("3", "{\"stopReason\":\"end_turn\"}");
	assert_int_equal(withdrawn, 2);
	acp_free(acp);
}

/* Whoever is told that a question is withdrawn ends the agent for it: it was told once. */
static void test_lost_while_withdrawn(void **state)
{
	open_session();
	prompt();
	ASK("7", "session/request_permission", OPTIONS);
	assert_non_null(asked);
	loses = true;
	say("{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{\"requestId\":7}}");
	assert_int_equal(withdrawn, 1);
	assert_int_equal(overs + turns, 2);
	acp_free(acp);
}

static void test_files_and_terminals(void **state)
{
	open_session();
	ASK("0", "fs/read_text_file", "\"path\":\"/a\",\"line\":null,\"limit\":3,\"_meta\":{}");
	assert_int_equal(asked->read.limit, 3);
	acp_answer_content(asked, STR_LIT("a\xff"));
	assert_true(has("{\"content\":\"a\xef\xbf\xbd\"}"));
	ASK("1", "fs/write_text_file", "\"path\":\"/a\",\"content\":\"x\\u0000\"");
	assert_int_equal(asked->write.content.n, 2);
	acp_answer_done(asked);
	assert_true(has("\"result\":{}"));
	ASK("2", "terminal/create",
	    "\"command\":\"ls\",\"args\":[\"-l\"],\"env\":[{\"name\":\"A\",\"value\":\"b\"}]");
	assert_int_equal(asked->terminal.args.n, 1);
	assert_int_equal(asked->terminal.env.n, 1);
	acp_answer_terminal(asked, STR_LIT("t1"));
	ASK("3", "terminal/output", "\"terminalId\":\"t1\"");
	acp_answer_output(asked, STR_LIT("out"), true,
			  &(struct acp_exit){ .over = true, .has_code = true, .code = 3 });
	assert_true(has("{\"output\":\"out\",\"truncated\":true,\"exitStatus\":{\"exitCode\":3,"
			"\"signal\":null}}"));
	ASK("4", "terminal/wait_for_exit", "\"terminalId\":\"t1\"");
	acp_answer_exit(asked, &(struct acp_exit){ .signal = STR_LIT("KILL") });
	assert_true(has("{\"exitCode\":null,\"signal\":\"KILL\"}"));
	ASK("5", "fs/read_text_file", "\"path\":\"/none\"");
	acp_refuse(asked, &(struct err){ ERR_PATH_NOT_FOUND, "no such file" });
	assert_true(has("-32002"));
	assert_int_equal(acp_strays(acp), 0);
	acp_free(acp);
}

static void test_bad_asks(void **state)
{
	static const struct {
		const char *method, *params, *code;
	} table[] = {
		{ "fs/read_text_file", "{}", "-32602" },
		{ "fs/read_text_file", "[]", "-32602" },
		{ "fs/read_text_file", "{\"sessionId\":\"T\",\"path\":\"/a\"}", "-32602" },
		{ "fs/read_text_file", "{\"sessionId\":\"S\",\"path\":\"a\"}", "-32602" },
		{ "fs/read_text_file", "{\"sessionId\":\"S\",\"path\":\"/a\\u0000\"}", "-32602" },
		{ "fs/read_text_file", "{\"sessionId\":\"S\",\"path\":\"/a\",\"line\":-1}",
		  "-32602" },
		{ "fs/write_text_file", "{\"sessionId\":\"S\",\"path\":\"/a\"}", "-32602" },
		{ "session/request_permission", "{\"sessionId\":\"S\",\"options\":[]}", "-32602" },
		{ "terminal/create", "{\"sessionId\":\"S\",\"command\":\"a\",\"cwd\":\"b\"}",
		  "-32602" },
		{ "terminal/output", "{\"sessionId\":\"S\",\"terminalId\":7}", "-32602" },
		{ "elicitation/create", "{\"sessionId\":\"S\"}", "-32601" },
		{ "_x/y", "{}", "-32601" },
	};
	char text[512];

	open_session();
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		snprintf(text, sizeof(text),
			 "{\"jsonrpc\":\"2.0\",\"id\":\"i\",\"method\":\"%s\",\"params\":%s}",
			 table[i].method, table[i].params);
		say(text);
		ROW_CHECK(has(table[i].code) && !asked, text);
	}
	assert_int_equal(acp_asks(acp), 0);
	acp_free(acp);
	/* what is not offered is not there */
	open_as(NULL, "");
	RESULT("2", "{\"sessionId\":\"S\"}");
	ASK("0", "fs/read_text_file", "\"path\":\"/a\"");
	assert_true(has("-32601"));
	ASK("0", "terminal/create", "\"command\":\"a\"");
	assert_true(has("-32601"));
	acp_free(acp);
}

static void test_many_asks(void **state)
{
	char text[256];

	open_session();
	for (int i = 0; i <= ACP_ASKS_MAX; i++) {
		snprintf(text, sizeof(text),
			 "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"terminal/wait_for_exit\","
			 "\"params\":{\"sessionId\":\"S\",\"terminalId\":\"t\"}}",
			 i);
		say(text);
	}
	assert_int_equal(acp_asks(acp), ACP_ASKS_MAX);
	assert_true(has("-32603"));
	ASK("3", "terminal/wait_for_exit", "\"terminalId\":\"t\"");
	assert_true(has("-32600"));
	acp_free(acp);
}

/* ---- garbage -------------------------------------------------------------------------------- */

static void test_garbage(void **state)
{
	static const char *const lines[] = {
		"Welcome to the agent!",
		"",
		"[]",
		"[{\"jsonrpc\":\"2.0\"}]",
		"{}",
		"7",
		"{\"id\":",
		"{\"jsonrpc\":\"1.0\",\"id\":99,\"result\":{}}",
		"{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}",
		("{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":"
		 "\"T\",\"update\":{\"sessionUpdate\":\"plan\"}}}"),
	};
	struct rpc_sniff sniff = { 0 };

	open_session();
	prompt();
	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		say(lines[i]);
	assert_int_equal(sent_n, 3);
	assert_int_equal(turns + overs, 0);
	assert_int_equal(acp_strays(acp), ARRAY_LEN(lines));
	/* a request that can't be taken is refused by its id */
	say("{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"a\",\"params\":{\"a\":1,\"a\":2}}");
	assert_true(has("\"id\":5") && has("-32600"));
	/* an answer that was too long fails what it answered */
	rpc_sniff_feed(&sniff, STR_LIT("{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}"));
	acp_dropped(acp, &sniff, &(struct err){ ERR_TOO_LARGE, "long" });
	assert_int_equal(turns, 1);
	assert_int_equal(turn_err.code, ERR_TOO_LARGE);
	acp_free(acp);
}

/* ---- version 2 ------------------------------------------------------------------------------ */

static void begin_2(void)
{
	static const struct acp_options o = {
		.files = true, .terminals = true, .servers = &server, .n_servers = 1
	};

	begin(&o);
	FAULT("1", "-32022");
	assert_true(has("\"protocolVersion\":2,\"capabilities\":{},\"info\":{"));
	RESULT("2", "{\"protocolVersion\":2,\"info\":{\"name\":\"a\",\"version\":\"1\"},"
		    "\"capabilities\":{\"session\":{\"mcp\":{\"stdio\":{}}}}}");
	assert_true(has("\"mcpServers\":[{\"type\":\"stdio\",\"name\":\"holt\""));
	RESULT("3", "{\"sessionId\":\"S\"}");
	assert_int_equal(readies, 1);
}

static void test_version_2(void **state)
{
	struct err e;

	begin_2();
	prompt();
	UPDATE("{\"sessionUpdate\":\"state_update\",\"state\":\"idle\"}"); /* that of before */
	assert_int_equal(turns, 0);
	RESULT("4", "{}");
	UPDATE("{\"sessionUpdate\":\"state_update\",\"state\":\"running\"}");
	UPDATE("{\"sessionUpdate\":\"agent_message\",\"messageId\":\"m\",\"content\":[{\"type\":"
	       "\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]}");
	UPDATE("{\"sessionUpdate\":\"agent_message\",\"messageId\":\"m\"}");
	UPDATE("{\"sessionUpdate\":\"tool_call_content_chunk\",\"toolCallId\":\"c\"}");
	ASK("0", "session/request_permission",
	    OPTIONS ",\"title\":\"Run it\",\"subject\":{\"type\":\"command\",\"command\":\"ls\"}");
	assert_string_equal(asked_title, "Run it");
	UPDATE("{\"sessionUpdate\":\"state_update\",\"state\":\"requires_action\"}");
	acp_deny(asked);
	UPDATE("{\"sessionUpdate\":\"state_update\",\"state\":\"idle\",\"stopReason\":"
	       "\"refusal\"}");
	assert_string_equal(updates, "11:;1!:ab;4:c;11w:;");
	assert_int_equal(turns, 1);
	assert_string_equal(why, "refusal");
	assert_int_equal(acp_set(acp, ACP_SETTING_MODE, STR_NONE, STR_LIT("m"), false, &e), -1);
	acp_free(acp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_begin),
		cmocka_unit_test(test_program_instead_of_url),
		cmocka_unit_test(test_earlier_session),
		cmocka_unit_test(test_log_in),
		cmocka_unit_test(test_no_common_version),
		cmocka_unit_test(test_session_without_id),
		cmocka_unit_test(test_turn),
		cmocka_unit_test(test_turn_fails),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_mode),
		cmocka_unit_test(test_permission),
		cmocka_unit_test(test_lost_while_withdrawn),
		cmocka_unit_test(test_files_and_terminals),
		cmocka_unit_test(test_bad_asks),
		cmocka_unit_test(test_many_asks),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_version_2),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
