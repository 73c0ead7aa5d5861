/* The client's role without memory: from any allocation on there is none, and still each request
 * has its one end, and nothing is lost. */
#include "alloc_fail.h"
#include "mcp/client/client.h"
#include "test.h"

enum { TEXT_MAX = 2048, REQUESTS = 16 };

static struct mcp_client *client;
static uint64_t now, id;
static unsigned asked, ended, overs, readies;
static struct mcp_question *question;

/* Without a parser, which would need memory. */
static void on_send(void *transport, const struct mcp_client_out *m)
{
	const char *at = strstr(m->text.p, "\"id\":");

	assert_int_equal(overs, 0);
	if (m->pending && at)
		id = strtoull(at + 5, NULL, 10);
}

static const struct mcp_client_transport transport = { .streams = true, .send = on_send };

static void on_ready(void *owner)
{
	readies++;
}

static void on_over(void *owner, const struct err *e)
{
	overs++;
}

static void on_asked(void *owner, struct mcp_question *q)
{
	question = q;
}

static void on_withdrawn(void *owner, struct mcp_question *q)
{
	question = NULL;
}

static const struct mcp_client_handler handler = {
	.ready = on_ready,
	.over = on_over,
	.asked = on_asked,
	.withdrawn = on_withdrawn,
};

static void on_done(void *owner, const struct mcp_answer *a)
{
	bool *open = owner;

	assert_true(*open);
	*open = false;
	ended++;
}

static void on_listed(void *owner, const struct mcp_listed *l)
{
	bool *open = owner;

	assert_true(*open);
	*open = false;
	ended++;
}

static bool open_requests[REQUESTS];

static void call(const char *tool, unsigned ttl_ms)
{
	const struct mcp_request_spec s = { .on_done = on_done,
					    .task_ttl_ms = ttl_ms,
					    .owner = &open_requests[asked] };
	struct err e;

	open_requests[asked] = true;
	if (mcp_client_call(client, tool, STR_LIT("{\"a\":\"\xc3\xa4\"}"), &s, &e))
		asked++;
	else
		open_requests[asked] = false;
}

static void list(void)
{
	struct err e;

	open_requests[asked] = true;
	if (mcp_client_list(client, "tools", on_listed, &open_requests[asked], &e))
		asked++;
	else
		open_requests[asked] = false;
}

static void say(const char *text)
{
	char line[2 * TEXT_MAX];

	snprintf(line, sizeof(line), "{\"jsonrpc\":\"2.0\",%s}", text);
	mcp_client_message(client, NULL, str_of(line));
}

static void result(const char *value)
{
	char line[TEXT_MAX];

	snprintf(line, sizeof(line), "\"id\":%llu,\"result\":%s", (unsigned long long)id, value);
	say(line);
}

static void answer(const char *value)
{
	struct err e;

	if (question && mcp_question_answer(question, str_of(value), &e) == 0)
		question = NULL;
}

static void pass(unsigned ms)
{
	now += ms;
	mcp_client_tick(client);
}

#define CAN                                                                                        \
	"\"capabilities\":{\"tools\":{},\"logging\":{},\"resources\":{\"subscribe\":true},"        \
	"\"tasks\":{\"cancel\":{},\"requests\":{\"tools\":{\"call\":{}}}}}"
#define DONE "{\"content\":[],\"structuredContent\":{}}"
#define FORM                                                                                       \
	"{\"method\":\"elicitation/create\",\"params\":{\"message\":\"\",\"requestedSchema\":{"    \
	"\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"}}}}}"
#define URL                                                                                        \
	"\"method\":\"elicitation/create\",\"params\":{\"mode\":\"url\",\"message\":\"\",\"url\":" \
	"\"https://x.y/\",\"elicitationId\":\"e\"}"
#define ACCEPT "{\"action\":\"accept\",\"content\":{\"a\":\"b\"}}"

static void modern(void)
{
	const struct str uri = STR_LIT("a:");
	struct err e;

	result("{\"supportedVersions\":[\"2026-07-28\"]," CAN "}");
	(void)!mcp_client_watch(client, MCP_TOOLS, &uri, 1, &e);
	result("{}");
	list();
	result("{\"tools\":[],\"nextCursor\":\"1\"}");
	result("{\"tools\":[{\"name\":\"t\",\"outputSchema\":{\"type\":\"object\"},"
	       "\"inputSchema\":{"
	       "\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\","
	       "\"x-mcp-header\":\"A\"}}}}]}");
	call("t", 0);
	result(DONE);
	call("t", 0);
	result("{\"resultType\":\"input_required\",\"requestState\":\"s\","
	       "\"inputRequests\":{\"f\":" FORM "}}");
	answer(ACCEPT);
	result("{\"resultType\":\"task\",\"taskId\":\"a\",\"status\":\"working\"}");
	pass(1000);
	result("{\"status\":\"input_required\",\"inputRequests\":{\"g\":" FORM "}}");
	answer(ACCEPT);
	result("{}");
	pass(1000);
	result("{\"status\":\"completed\",\"result\":" DONE "}");
	call("u", 0);
	say("\"id\":0,\"error\":{\"code\":-32020,\"message\":\"\"}");
}

static void legacy(void)
{
	const struct str uri = STR_LIT("a:");
	struct err e;

	result("{\"protocolVersion\":\"2025-11-25\"," CAN "}");
	(void)!mcp_client_set_level(client, MCP_ERROR, &e);
	result("{}");
	(void)!mcp_client_watch(client, MCP_TOOLS, &uri, 1, &e);
	result("{}");
	call("t", 0);
	say("\"id\":\"q\"," URL);
	answer(ACCEPT);
	say("\"id\":5,\"method\":\"roots/list\"");
	say("\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":5}");
	say("\"method\":\"notifications/elicitation/complete\","
	    "\"params\":{\"elicitationId\":\"e\"}");
	result(DONE);
	call("t", 5000);
	result("{\"task\":{\"taskId\":\"a\",\"status\":\"working\"}}");
	pass(1000);
	result("{\"taskId\":\"a\",\"status\":\"completed\"}");
	result(DONE);
	call("t", 0);
	mcp_client_session_lost(client, NULL);
	result("{\"protocolVersion\":\"2025-11-25\"," CAN "}");
	pass(60 * 1000);
}

static uint64_t now_ms(void)
{
	return now;
}

static void run(enum mcp_era era, void (*conversation)(void))
{
	const struct mcp_client_options o = {
		.name = "m",
		.version = "1",
		.can = MCP_CAN_ROOTS | MCP_CAN_FORM | MCP_CAN_URL | MCP_CAN_TASKS,
		.handler = &handler,
		.now_ms = now_ms,
	};
	const struct err gone = { ERR_TRANSPORT, "gone" };
	struct err e;

	asked = ended = overs = readies = 0;
	question = NULL;
	client = mcp_client_new(&o, &e);
	if (!client) {
		assert_int_equal(e.code, ERR_LIMIT);
		return;
	}
	if (mcp_client_start(client, &transport, NULL, era, NULL, &e) == 0) {
		conversation();
		mcp_client_lost(client, &gone);
		assert_int_equal(overs, 1);
		assert_int_equal(ended, asked);
		assert_null(question);
	}
	mcp_client_free(client);
}

static void test_modern(void **state)
{
	for (unsigned n = 0; alloc_fail_next(&n);)
		run(MCP_MODERN, modern);
	assert_int_equal(asked, 4);
	assert_int_equal(readies, 1);
}

static void test_legacy(void **state)
{
	for (unsigned n = 0; alloc_fail_next(&n);)
		run(MCP_LEGACY, legacy);
	assert_int_equal(asked, 3);
	assert_int_equal(readies, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_modern),
		cmocka_unit_test(test_legacy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
